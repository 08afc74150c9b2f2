package guard

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// A loop is in disguise if each of its rounds differs from the one before only in
// what says nothing: characters that nobody sees, or a nonce, which is made anew for
// every call. Where loop_detection.normalize is set (in the profile strict), outputs,
// arguments and the metaJson of transitions are compared without them, names of tools and
// results without what nobody sees (a nonce may be the news in a result); what is judged
// otherwise, recorded and executed stays as it was said.
//
// A nonce is known by its name. A value that only looks like one, such as a UUID, may
// as well be what the call is about, one order after another: calls that differ in
// nothing else are counted as almost the same (near), which warns and stops nobody.

// unseen reports whether r shows nothing wherever it stands: all that [machine.Hidden]
// finds in names but white space.
func unseen(r rune) bool { return machine.IsHidden(r) && !unicode.IsSpace(r) }

// firstUnseen returns where the first character of s that shows nothing begins, -1 if
// there is none.
func firstUnseen(s []byte) int {
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			x := binary.LittleEndian.Uint64(s[i:])
			if ((x+ones)|(x-' '*ones))&high == 0 { // eight bytes from ' ' to '~'
				i += 8
				continue
			}
		}
		r, size := utf8.DecodeRune(s[i:])
		if unseen(r) {
			return i
		}
		i += size
	}
	return -1
}

// appendSeen appends s without what shows nothing. dst may be s[:0].
func appendSeen(dst, s []byte) []byte {
	for {
		at := firstUnseen(s)
		if at < 0 {
			return append(dst, s...)
		}
		_, size := utf8.DecodeRune(s[at:])
		dst, s = append(dst, s[:at]...), s[at+size:]
	}
}

// toolOf returns the name under which calls of a tool are counted and its rules looked
// up: where loops in disguise are looked for, the one that is seen, so that no limit is
// had twice.
func (c *Config) toolOf(name string) string {
	if !c.Loop.Normalize || firstUnseen(bytesOf(name)) < 0 {
		return name
	}
	return string(appendSeen(nil, bytesOf(name)))
}

// sameTool reports whether two names are those of one tool as far as a loop goes.
func (c *Config) sameTool(a, b string) bool {
	return a == b || c.Loop.Normalize && sameSeen(bytesOf(a), bytesOf(b))
}

// sameSeen reports whether a and b are the same but for what shows nothing.
func sameSeen(a, b []byte) bool {
	for {
		x, y := skipUnseen(a), skipUnseen(b)
		if len(x) == 0 || len(y) == 0 {
			return len(x) == len(y)
		}
		if x[0] != y[0] {
			return false
		}
		_, n := utf8.DecodeRune(x)
		_, m := utf8.DecodeRune(y)
		if string(x[:n]) != string(y[:m]) {
			return false
		}
		a, b = x[n:], y[m:]
	}
}

func skipUnseen(s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if !unseen(r) {
			break
		}
		s = s[n:]
	}
	return s
}

// normalValue returns a decoded JSON value without what disguises a loop, as
// hashNormal reads it.
func normalValue(v any, depth int) any {
	switch v := v.(type) {
	case string:
		return string(appendSeen(nil, []byte(v)))
	case []any:
		for i := range v {
			v[i] = normalValue(v[i], depth+1)
		}
	case map[string]any:
		return normalObject(v, depth)
	}
	return v
}

func normalObject(members map[string]any, depth int) map[string]any {
	kept, aside := map[string]any{}, map[string]any{}
	for name, member := range members {
		seen := string(appendSeen(nil, []byte(name)))
		switch member = normalValue(member, depth+1); nonceOf([]byte(seen)) {
		case noNonce:
			kept[seen] = member
		case callNonce:
			aside[seen] = member
		}
	}
	if len(kept) == 0 && depth == 0 {
		return aside
	}
	return kept
}

// normalizes reports whether the arguments of a tool are compared without what
// disguises a loop. A tool of which the configuration says what counts, or what does
// not, is taken at its word.
func (c *Config) normalizes(tool string) bool {
	if !c.Loop.Normalize {
		return false
	}
	rule := c.Tools.PerTool[tool]
	return rule.LoopKey == nil && rule.Volatile == nil
}

// A nonceKind says what a member of arguments is by its name.
type nonceKind byte

const (
	noNonce   nonceKind = iota
	callNonce           // names the call, unless it is all the arguments there are
	pureNonce           // is there to differ
)

// nonceOf returns what a member is. The case of ASCII letters, underscores, hyphens,
// dots and blanks of its name do not count.
func nonceOf(name []byte) nonceKind {
	var room [20]byte
	short := room[:0]
	for _, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.' || c == ' ':
			continue
		case len(short) == len(room):
			return noNonce
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		short = append(short, c)
	}
	switch string(short) {
	case "nonce", "salt", "rand", "random", "cachebuster", "cachebust":
		return pureNonce
	case "requestid", "reqid", "xrequestid", "clientrequestid", "traceid", "traceparent", "tracestate", "spanid", "correlationid",
		"xcorrelationid", "idempotencykey", "idempotencytoken", "invocationid", "callid", "toolcallid", "attemptid",
		"timestamp", "ts", "timestampms", "unixtime", "requesttime", "requestedat", "sentat", "calledat", "now", "currenttime":
		return callNonce
	}
	return noNonce
}

// appendLasting appends s without the words in it that look as if made up for one
// occasion: UUIDs, moments as RFC 3339 has them, long runs of hexadecimal or other
// digits, and long words of letters and digits. dst may be s[:0].
func appendLasting(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if n := max(uuidAt(s[i:]), momentAt(s[i:])); n > 0 {
			i += n
			continue
		}
		n := 0
		for i+n < len(s) && wordByte[s[i+n]] {
			n++
		}
		if n == 0 {
			n = 1
		} else if madeUp(s[i : i+n]) {
			i += n
			continue
		}
		dst = append(dst, s[i:i+n]...)
		i += n
	}
	return dst
}

// blank reports whether there is no word in s.
func blank(s []byte) bool {
	for _, c := range s {
		if wordByte[c] {
			return false
		}
	}
	return true
}

// madeUp reports whether a word looks random: at least eight hexadecimal digits with
// letters and digits among them, ten digits, or twenty letters and digits mixed.
func madeUp(word []byte) bool {
	digits, hex := 0, 0
	for _, c := range word {
		switch {
		case c >= utf8.RuneSelf:
			return false
		case c-'0' <= 9:
			digits++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			hex++
		}
	}
	letters := len(word) - digits
	switch {
	case letters == 0:
		return digits >= 10
	case letters == hex:
		return digits > 0 && len(word) >= 8
	}
	return len(word) >= 20 && digits >= 3
}

// shapes of what [inShape] finds: 'x' is a hexadecimal digit, '0' a decimal one.
const (
	uuidShape   = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	momentShape = "0000-00-00T00:00:00"
)

func uuidAt(s []byte) int { return inShape(s, uuidShape) }

// momentAt returns how long the moment is that s begins with, 0 if there is none.
func momentAt(s []byte) int {
	n := inShape(s, momentShape)
	for n > 0 && n < len(s) && (s[n]-'0' <= 9 || s[n] == '.' || s[n] == ':' || s[n] == '+' || s[n] == '-' || s[n] == 'Z') {
		n++
	}
	return n
}

// inShape returns the length of shape if s begins with it, else 0.
func inShape(s []byte, shape string) int {
	if len(s) < len(shape) {
		return 0
	}
	for i := range len(shape) {
		c := s[i]
		digit := c-'0' <= 9
		switch shape[i] {
		case 'x':
			if !digit && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		case '0':
			if !digit {
				return 0
			}
		default:
			if c != shape[i] {
				return 0
			}
		}
	}
	return len(shape)
}

// readSeen reads an output that has characters that nobody sees once more, without
// them, for what it is compared by. Patterns and packs read all of it.
func (l *look) readSeen(c *Config, s *verdict.Step) {
	plain := looks.Get().(*look)
	defer plain.release()
	plain.word = appendSeen(plain.word[:0], bytesOf(s.Output))
	plain.output = outputMark{grams: plain.output.grams[:0], print: plain.output.print, context: l.output.context}
	plain.truncated, plain.text.lower = false, plain.text.lower[:0]
	said := verdict.Step{HasOutput: true, Output: stringOf(plain.word), Canned: s.Canned, Human: s.Human}
	plain.readPlain(c, &said)
	l.output, plain.output, l.truncated = plain.output, l.output, plain.truncated
}

// alike returns how many calls in a row, the only one of a step included, are the same
// but for values that look made up for the occasion, without news in between.
func (m *memory) alike(c *Config, s *verdict.Step, l *look) int64 {
	n := m.calls.len()
	if c.Loop.Near == nil || len(s.ToolCalls) != 1 || n == 0 || !c.normalizes(s.ToolCalls[0].Name) {
		return 1
	}
	call, then, now := &s.ToolCalls[0], m.calls.at(n-1), &l.calls[0]
	rule := c.Tools.PerTool[call.Name]
	switch {
	case !c.sameTool(m.tools[then.tool].name, call.Name), rule.Exempt, rule.Poll,
		c.Loop.ProgressAware && then.context != now.context,
		then.result != 0 && now.result != 0 && then.result != now.result,
		l.lastingArgs(c, call.Name, call.Args) != l.lastingArgs(c, call.Name, m.last):
		return 1
	}
	return max(m.run, 1) + 1
}

// lastingArgs hashes what counts of arguments that were checked, without what looks
// made up for the occasion.
func (l *look) lastingArgs(c *Config, tool string, args []byte) uint64 {
	args, err := counted(c, tool, args)
	if err != nil || len(args) == 0 {
		return spread(seedNull)
	}
	h, _ := l.hasher.hashLasting(args)
	return h
}
