package batch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// When do two turns make the same calls? When their batches have the same hash:
// SHA-256, cut to 16 bytes, of the sorted forms of all calls, each the tool's name and
// its arguments in canonical form. In that form members are sorted, texts are trimmed
// as ECMAScript trims them, numbers are digits and a power of ten (1, 1.0 and 10e-1 are
// equal, long whole numbers stay distinct), and members that differ between calls that
// do the same, by name, are left out: id, timestamp, nonce and the like, or those that
// the section lists for the tool. In the profile strict names of nonces count too, and
// characters that nobody sees do not.
//
// A long text stands as its beginning, its length and the hash of the whole. Texts are
// handled in UTF-16 units, as ECMAScript does.

// A Batch is the identity of the tool calls of one turn. Two turns have the same
// hash if they make the same calls, in whatever order. The zero Batch is that of
// a turn without calls. It is what a log has to keep to fold a [State].
type Batch struct {
	Hash  string   `json:"hash,omitempty"`  // 32 hexadecimal digits
	Tools []string `json:"tools,omitempty"` // sorted, distinct
}

// Batch returns the identity of some calls. Calls without a name are left out, and
// ids do not matter. Absent and null arguments are the same. In arguments the
// order of members, blanks at the ends of texts, how a number is written, and
// members with a volatile name do not matter; everything else does, the order of
// lists too. It returns an error that is [verdict.ErrInput] for arguments that are no JSON,
// name a member twice, or are nested deeper than [MaxArgsDepth].
func (b *Loop) Batch(calls []specialist.ToolCall) (Batch, error) {
	var batch Batch
	var forms []string
	for _, call := range calls {
		name := esTrim(call.Name)
		if name == "" {
			continue
		}
		args, err := b.canonicalArgs(name, call.Args)
		if err != nil {
			return Batch{}, fmt.Errorf("%w: arguments of %q: %w", verdict.ErrInput, name, err)
		}
		if seen := text.AppendSeen(nil, []byte(name)); b.strict && len(seen) > 0 {
			name = string(seen)
		}
		forms = append(forms, string(appendText(nil, textUnits(name)))+":"+string(args))
		batch.Tools = append(batch.Tools, name)
	}
	if len(forms) == 0 {
		return Batch{}, nil
	}
	slices.Sort(forms)
	slices.Sort(batch.Tools)
	batch.Tools = slices.Compact(batch.Tools)
	batch.Hash = shortHash([]byte(strings.Join(forms, "\n"))) // no form has a line break
	return batch, nil
}

// CallsOf returns the calls that stand for an engine step: those it declares, and
// one of the transition itself with its target state and metaJson.
func CallsOf(step verdict.Step) []specialist.ToolCall {
	args := jsontext.AppendString([]byte(`{"state":`), step.State)
	if len(step.MetaJSON) > 0 {
		args = append(append(args, `,"metaJson":`...), step.MetaJSON...)
	}
	return append(slices.Clip(step.ToolCalls), specialist.ToolCall{Name: step.Transition, Args: append(args, '}')})
}

// MaxArgsDepth bounds how deep arguments may be nested.
const MaxArgsDepth = 64

const (
	longText  = 160 // UTF-16 units; a longer text is shortened
	shownText = 80  // UTF-16 units of a shortened text that are kept
)

// volatileNames are members that differ between calls that do the same.
var volatileNames = []string{"id", "requestid", "traceid", "timestamp", "time", "nonce"}

func shortHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// canonicalArgs returns the one form of all arguments that count as equal. It is
// JSON, and its own canonical form.
func (b *Loop) canonicalArgs(tool string, args []byte) ([]byte, error) {
	args = bytes.TrimLeft(args, " \t\r\n")
	if len(args) == 0 {
		return []byte("null"), nil
	}
	if !json.Valid(args) {
		return nil, fmt.Errorf("they are not JSON")
	}
	c := &canonicaliser{in: jsontext.Cursor{B: args}, volatile: volatileNames, nonces: b.strict, keepLast: b.strict}
	if own, listed := b.volatile[tool]; listed {
		c.volatile, c.nonces = own, false
	}
	form := c.value(nil, 0)
	return form, c.err
}

// A canonicaliser walks over JSON that is known to be valid. It goes on after an error, and
// what it returns then is of no use.
type canonicaliser struct {
	in       jsontext.Cursor
	err      error // the first
	volatile []string
	nonces   bool // names of nonces are volatile too, and what nobody sees does not count
	keepLast bool // keep volatile members if the arguments had nothing else
}

func (c *canonicaliser) refuse(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *canonicaliser) value(dst []byte, depth int) []byte {
	next := c.in.Peek()
	if depth == MaxArgsDepth && (next == '{' || next == '[') {
		c.refuse(fmt.Errorf("they are nested deeper than %d", MaxArgsDepth))
		c.in.Raw()
		return dst
	}
	switch next {
	case '{':
		return c.object(dst, depth)
	case '[':
		return c.array(dst, depth)
	case '"':
		return appendShortened(dst, c.normal(trimUnits(c.seen())))
	}
	word := c.in.Raw()
	if next == 't' || next == 'f' || next == 'n' {
		return append(dst, word...)
	}
	dst, err := appendNumber(dst, string(word))
	if err != nil {
		c.refuse(err)
	}
	return dst
}

// normal returns the canonical form of the object or list that a text holds as JSON, where
// nonces are volatile, and any other text as it is.
func (c *canonicaliser) normal(units []uint16) []uint16 {
	if !c.nonces || len(units) == 0 || units[0] != '{' && units[0] != '[' {
		return units
	}
	held := []byte(string(utf16.Decode(units)))
	if !json.Valid(held) {
		return units
	}
	inner := &canonicaliser{in: jsontext.Cursor{B: held}, volatile: c.volatile, nonces: true, keepLast: c.keepLast}
	if form := inner.value(nil, 0); inner.err == nil {
		return textUnits(string(form))
	}
	return units
}

func (c *canonicaliser) array(dst []byte, depth int) []byte {
	dst = append(dst, '[')
	c.in.Elements(func() {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = c.value(dst, depth+1)
	})
	return append(dst, ']')
}

// A namedForm is a member of an object: its name and its value in canonical form.
type namedForm struct {
	name, form string
	volatile   bool
}

func (c *canonicaliser) object(dst []byte, depth int) []byte {
	members := c.members(depth)
	slices.SortFunc(members, func(a, b namedForm) int { return strings.Compare(a.name, b.name) })
	lasting := slices.ContainsFunc(members, func(m namedForm) bool { return !m.volatile })
	keepAll := c.keepLast && depth == 0 && !lasting
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 && m.name == members[i-1].name {
			c.refuse(fmt.Errorf("they name %s twice", m.name))
		}
		if m.volatile && !keepAll {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, m.name...), ':'), m.form...)
	}
	return append(dst, '}')
}

func (c *canonicaliser) members(depth int) (members []namedForm) {
	c.in.Members(func(quoted []byte) {
		name := string(appendText(nil, jsontext.Units(quoted)))
		form := c.value(nil, depth+1)
		plain := lowerASCII(name[1 : len(name)-1])
		volatile := slices.Contains(c.volatile, plain) || c.nonces && text.NonceOf([]byte(plain)) != text.NoNonce
		members = append(members, namedForm{name, string(form), volatile})
	})
	return members
}

// seen reads a text and returns its UTF-16 units, where nonces are volatile without
// those that nobody sees.
func (c *canonicaliser) seen() []uint16 {
	units := jsontext.Units(c.in.Quoted())
	if !c.nonces || !slices.ContainsFunc(units, func(u uint16) bool { return u >= 0x7F || u < ' ' }) {
		return units
	}
	kept := units[:0]
	for i, size := 0, 1; i < len(units); i += size {
		r := rune(units[i])
		size = 1
		if i+1 < len(units) && utf16.DecodeRune(r, rune(units[i+1])) != unicode.ReplacementChar {
			r, size = utf16.DecodeRune(r, rune(units[i+1])), 2
		}
		if !text.Unseen(r) {
			kept = append(kept, units[i:i+size]...)
		}
	}
	return kept
}

func textUnits(s string) []uint16 { return utf16.Encode([]rune(s)) }

// esSpace reports whether ECMAScript's trim removes r: U+FEFF and line and
// paragraph separators too, but not U+0085.
func esSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', 0xFEFF, 0x2028, 0x2029:
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

func esTrim(s string) string { return strings.TrimFunc(s, esSpace) }

func trimUnits(units []uint16) []uint16 {
	for len(units) > 0 && esSpace(rune(units[0])) {
		units = units[1:]
	}
	for len(units) > 0 && esSpace(rune(units[len(units)-1])) {
		units = units[:len(units)-1]
	}
	return units
}

// appendShortened appends a text, or what stands for it if it is long: its
// beginning, its length, and the hash of the whole, which decides.
func appendShortened(dst []byte, units []uint16) []byte {
	if len(units) <= longText {
		return appendText(dst, units)
	}
	head := units[:shownText]
	if utf16.IsSurrogate(rune(head[shownText-1])) {
		head = head[:shownText-1] // never half a pair
	}
	hash := shortHash(appendText(nil, units))
	stand := slices.Concat(textUnits("text:"), head, textUnits(fmt.Sprintf("…:%d:%s", len(units), hash)))
	return appendText(dst, stand)
}

// appendText appends a text as JSON.
func appendText(dst []byte, units []uint16) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) && i+1 < len(units) {
			if pair := utf16.DecodeRune(r, rune(units[i+1])); pair != unicode.ReplacementChar {
				r = pair
				i++
			}
		}
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || utf16.IsSurrogate(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// mostExponent bounds the exponents of numbers. Numbers are never expanded, so it
// only keeps the arithmetic below from overflowing.
const mostExponent = 1_000_000_000_000_000

// appendNumber appends a number's digits, as a whole number without zeros at its
// ends, and the power of ten that goes with them: 1, 1.0 and 10e-1 are all 1, and
// long whole numbers stay distinct.
func appendNumber(dst []byte, word string) ([]byte, error) {
	mantissa, power, _ := strings.Cut(strings.ReplaceAll(word, "E", "e"), "e")
	rest, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return append(dst, '0'), nil
	}
	exponent, err := strconv.ParseInt(cmp.Or(power, "0"), 10, 62)
	short := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(short) - len(fraction))
	if err != nil || exponent < -mostExponent || exponent > mostExponent {
		return nil, fmt.Errorf("a number has an exponent of more than 15 digits")
	}
	if negative {
		dst = append(dst, '-')
	}
	dst = append(dst, short...)
	if exponent != 0 {
		dst = strconv.AppendInt(append(dst, 'e'), exponent, 10)
	}
	return dst, nil
}

// lowerASCII lowers the letters A to Z. No other letter turns into one of them in
// ECMAScript, so this is all that the built-in names need.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
