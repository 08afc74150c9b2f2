// Package packs finds in texts what should not be there: credentials, data about
// persons, words that try to take a model over.
//
// A rule is a detector that is asked only at the bytes that what it finds begins with,
// and looks a bounded way ahead and back, so that no text takes long. What is found is
// reported by the name of its rule and by its place, never by itself: [Packs.Read]
// makes reasons of it for a step, [Redact] replaces it in what is shown and logged. What
// was read is never changed, and nothing is decided here: what follows from a finding
// is up to the section that a pack was configured by.
package packs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// Packs look for texts that should not be there, by rules that come with the
// program. A nil pack does not run.
type Packs struct {
	Secrets   *Pack // credentials
	PII       *Pack // data about persons
	Injection *Pack // words that try to take a model over
}

// A Pack says where one pack looks and what follows from what it finds.
type Pack struct {
	Action                verdict.Status // from warn to abort
	Output, Args, Results bool           // the parts of a step that it reads
}

// Read reads a step and returns a reason for every rule that something in it fits;
// scratch is used and changed. Only p is read by several goroutines at once.
func (p *Packs) Read(step *verdict.Step, scratch *Scratch) (reasons []verdict.Reason) {
	if p.Secrets != nil {
		reasons = p.Secrets.read(step, &packRun{code: "secret_found", what: "a secret", scan: secretRules.scan}, reasons)
	}
	if p.PII != nil {
		reasons = p.PII.read(step, &packRun{code: "pii_found", what: "personal data", scan: piiRules.scan}, reasons)
	}
	if p.Injection != nil {
		reasons = p.Injection.read(step, &packRun{code: "prompt_injection", what: "a prompt injection", scan: scratch.scanPhrases}, reasons)
	}
	return reasons
}

// read reads the parts of the step that a pack is about.
func (p *Pack) read(step *verdict.Step, run *packRun, reasons []verdict.Reason) []verdict.Reason {
	run.class = p.Action
	if p.Output && step.HasOutput {
		run.read(&verdict.Finding{Part: "output"}, step.Output, nil)
	}
	if p.Output {
		run.json(&verdict.Finding{Part: "meta"}, step.MetaJSON)
	}
	for i := range step.ToolCalls {
		if call := &step.ToolCalls[i]; p.Args {
			run.json(&verdict.Finding{Part: "args", Call: i + 1}, call.Args)
		}
	}
	for i := range step.ToolCalls {
		if call := &step.ToolCalls[i]; p.Results {
			run.json(&verdict.Finding{Part: "result", Call: i + 1}, call.Result)
		}
	}
	return append(reasons, run.reasons...)
}

// A packRun is one run of a pack over a step.
type packRun struct {
	code, what string
	scan       func(s string, found func(rule string, start, end int))
	class      verdict.Status
	reasons    []verdict.Reason
	counts     []int64 // of findings, one for each reason
}

// json reads a JSON value as the texts in it read, and not as they are escaped.
func (r *packRun) json(in *verdict.Finding, value json.RawMessage) {
	r.read(in, unescaped(value), value)
}

// read reads one part. Each rule is reported once for each kind of part, with
// the place where it was found at first. escaped is what text was before its
// escapes were undone, nil if there was nothing to undo.
func (r *packRun) read(in *verdict.Finding, text string, escaped []byte) {
	r.scan(text, func(rule string, start, end int) {
		for i := range r.reasons {
			if seen := &r.reasons[i]; seen.Subject == rule && seen.Found.Part == in.Part {
				r.counts[i]++
				seen.Seen = strconv.FormatInt(r.counts[i], 10)
				return
			}
		}
		if escaped != nil {
			start, end = escapedAt(escaped, start), escapedAt(escaped, end)
		}
		r.counts = append(r.counts, 1)
		r.reasons = append(r.reasons, verdict.Reason{
			Code: r.code, Guard: "packs", Class: r.class, Subject: rule, Seen: "1",
			Message: fmt.Sprintf("%s what looks like %s (%s)", containing(in), r.what, rule),
			Found:   &verdict.Finding{Part: in.Part, Call: in.Call, Offset: start, Length: end - start},
		})
	})
}

// containing begins a sentence about the part.
func containing(f *verdict.Finding) string {
	switch f.Part {
	case "args":
		return fmt.Sprintf("the arguments of tool call %d contain", f.Call)
	case "result":
		return fmt.Sprintf("the result of tool call %d contains", f.Call)
	case "meta":
		return "the metaJson contains"
	}
	return "the output contains"
}

// unescaped returns a JSON value with the escapes of its texts undone, so that
// nothing hides behind them.
func unescaped(value []byte) string {
	next := bytes.IndexByte(value, '\\')
	if next < 0 {
		return text.StringOf(value)
	}
	out := make([]byte, 0, len(value))
	for ; next >= 0; next = bytes.IndexByte(value, '\\') {
		r, n := unescape(value[next:])
		if out = append(out, value[:next]...); n > 1 {
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, '\\')
		}
		value = value[next+n:]
	}
	return text.StringOf(append(out, value...))
}

// escapedAt returns where in a value byte at of its unescaped text comes from.
func escapedAt(value []byte, at int) (i int) {
	for text := 0; text < at; {
		r, n := unescape(value[i:])
		if text++; n > 1 {
			text += len(string(r)) - 1
		}
		i += n
	}
	return i
}

// unescape reads one escape and returns its length, 1 if there is none.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, 1
	}
	if i := strings.IndexByte(`nrtbf`, b[1]); i >= 0 {
		return rune("\n\r\t\b\f"[i]), 2
	}
	if b[1] != 'u' {
		return rune(b[1]), 2
	}
	unit, ok := hexUnit(b)
	if !ok {
		return 'u', 2
	}
	if low, ok := hexUnit(b[6:]); ok {
		if pair := utf16.DecodeRune(unit, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return unit, 6
}

// hexUnit reads \uXXXX.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// Redact returns text with everything in it that looks like a secret or like
// personal data replaced by the name of the rule that found it. It is for logs:
// a check never changes what it reads.
func Redact(text string) string {
	for range 4 { // what a replacement has laid bare; seldom more than one round
		var spans []span // by where they begin
		add := func(rule string, start, end int) { spans = append(spans, span{rule, start, end}) }
		secretRules.scan(text, add)
		piiRules.scan(text, add)
		slices.SortStableFunc(spans, func(a, b span) int { return a.start - b.start })
		if len(spans) == 0 {
			break
		}
		var b strings.Builder
		at := 0
		for _, s := range spans {
			if s.start >= at {
				b.WriteString(text[at:s.start] + "[redacted:" + s.rule + "]")
			}
			at = max(at, s.end)
		}
		b.WriteString(text[at:])
		text = b.String()
	}
	return text
}

// HoldsSecret reports whether there is something in a text that looks like a secret:
// a key, a token, a password in an address.
func HoldsSecret(text string) bool {
	found := false
	secretRules.scan(text, func(string, int, int) { found = true })
	return found
}

// A span is a finding for Redact.
type span struct {
	rule       string
	start, end int
}

// A detector finds one kind of thing. match is asked at every byte that is one
// of first, and returns where the thing is that this byte belongs to; an end of
// 0 says that there is none. At letters and digits it is asked only where a word
// begins. It looks only a bounded way back and ahead.
type detector struct {
	rule  string
	first string
	whole string // what it begins with; may be ""
	match func(s string, at int) (start, end int)
}

// A ruleSet is a list of detectors; the first that matches wins. Which of them may
// begin with a byte is worked out when a text is first looked through: most programs
// that know the rules never use them.
type ruleSet struct{ at func() *[256][]detector }

func newRuleSet(lists ...[]detector) *ruleSet {
	return &ruleSet{sync.OnceValue(func() *[256][]detector {
		var at [256][]detector
		for _, list := range lists {
			for _, d := range list {
				for i := range len(d.first) {
					at[d.first[i]] = append(at[d.first[i]], d)
				}
			}
		}
		return &at
	})}
}

// scan calls found with everything in a text, from its start to its end and
// without overlaps.
func (set *ruleSet) scan(s string, found func(rule string, start, end int)) {
	done, at := 0, set.at()
	for i := 0; i < len(s); i++ {
		list := at[s[i]]
		if len(list) == 0 || alnumBytes[s[i]] && wordBefore(s, i) {
			continue
		}
		for k := range list {
			d := &list[k]
			if len(s)-i < len(d.whole) || s[i:i+len(d.whole)] != d.whole {
				continue
			}
			if start, end := d.match(s, i); end > i && start >= done {
				found(d.rule, start, end)
				done, i = end, end-1
				break
			}
		}
	}
}

// A byteSet is a set of bytes.
type byteSet [256]bool

// bytesIn returns the set of the bytes of s, where a-z stands for a range.
func bytesIn(s string) *byteSet {
	var set byteSet
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				set[c] = true
			}
			i += 2
			continue
		}
		set[s[i]] = true
	}
	return &set
}

var (
	digitBytes = bytesIn("0-9")
	lowerBytes = bytesIn("a-z")
	upperBytes = bytesIn("A-Z")
	alnumBytes = bytesIn("0-9A-Za-z")
	nameBytes  = bytesIn("0-9A-Za-z_-")
)

// run returns the end of the run of bytes of the set that begins at at, after
// at most limit bytes.
func (set *byteSet) run(s string, at, limit int) int {
	end := min(len(s), at+limit)
	for at < end && set[s[at]] {
		at++
	}
	return at
}

// wordBefore reports whether the byte at at goes on a word.
func wordBefore(s string, at int) bool {
	if at == 0 || !text.WordByte[s[at-1]] && s[at-1] != '_' {
		return false
	}
	if at >= 2 && s[at-2] == '\\' { // an escape in quoted code, such as \n
		return false
	}
	return at < 3 || s[at-3] != '%' // an escape in an address, such as %20
}

// wordAt reports whether there is a word at at.
func wordAt(s string, at int) bool { return at < len(s) && (text.WordByte[s[at]] || s[at] == '_') }
