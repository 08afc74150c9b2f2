package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
)

// Forbidden patterns, fast. Running a regular expression over every output is what
// costs, so loading finds the longest literal that every match must contain (required),
// and matching looks for that first, in the output in lower case. Only if it is there
// does the expression run, and never if the pattern is a literal and nothing else.
//
// The literal is looked for by its two bytes that are rarest in English text, at their
// distance, 64 places at a time: both differences become zero together, which a
// subtraction shows in the high bits. A false hit costs a comparison; a match is never
// missed. Outputs that are not ASCII go to the expression, since folding case is not
// one to one there.

// A Pattern is one forbidden pattern. Running a regular expression over every
// output is what costs; so a text that every match must contain is looked for
// first, in the output in lower case, and the expression runs only if it is
// there. Where the text is all there is to the pattern, it never runs.
type Pattern struct {
	Expr    *regexp.Regexp
	Literal []byte // in lower case; empty if there is none
	rare    int    // index of the literal's rarest byte in English text
	next    int    // index of the one that is rarest after that
	Plain   bool   // a match is exactly the literal
}

// Bounds of a pattern, so that neither loading nor matching takes long: its
// length in bytes, and the instructions it compiles to.
const (
	maxPatternLength = 4096
	maxPattern       = 20000
)

// CompilePattern compiles an RE2 pattern that ignores case. The error says where
// the pattern is wrong.
func CompilePattern(source string) (*Pattern, error) {
	if len(source) > maxPatternLength {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are allowed", len(source), maxPatternLength)
	}
	tree, err := syntax.Parse(source, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return nil, machine.PatternError(source, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, machine.PatternError(source, err)
	}
	if len(prog.Inst) > maxPattern {
		return nil, fmt.Errorf("the pattern is too large: it takes %d instructions, at most %d are allowed", len(prog.Inst), maxPattern)
	}
	expr, err := regexp.Compile("(?i)" + source)
	if err != nil {
		return nil, machine.PatternError(source, err)
	}
	p := &Pattern{Expr: expr}
	if literal := required(tree); literal != "" {
		p.Literal, p.Plain = []byte(literal), whole(tree)
		p.rare, p.next = rarest(literal)
	}
	return p, nil
}

// required returns the longest text, in lower case, that every match contains.
func required(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		return folded(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if text := required(sub); len(text) > len(longest) {
				longest = text
			}
		}
	}
	return longest
}

// whole reports whether the expression is one literal and nothing else.
func whole(re *syntax.Regexp) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	return re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase != 0
}

// folded returns runes in lower case, as an ASCII letter where one of the forms
// that ignoring case makes equal is one: the Kelvin sign is a k.
func folded(runes []rune) string {
	var b strings.Builder
	for _, r := range runes {
		low := unicode.ToLower(r)
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if f < utf8.RuneSelf {
				low = unicode.ToLower(f)
			}
		}
		b.WriteRune(low)
	}
	return b.String()
}

// Matches reports whether the pattern occurs in an output that was read. Outputs
// that are not ASCII have letters with more than two forms, so the expression
// itself runs on them.
func (p *Pattern) Matches(output string, t *Text) bool {
	if t.ASCII && len(p.Literal) > 0 {
		if found := p.find(t.Lower); !found || p.Plain {
			return found
		}
	}
	return p.Expr.MatchString(output)
}

// find reports whether an ASCII text in lower case, with padding behind it,
// contains the literal. It looks for the two rarest bytes at their distance, at 64
// places at a time; a single byte would be found far too often.
func (p *Pattern) find(lower []byte) bool {
	rare, next := p.Literal[p.rare], p.Literal[p.next]
	first := bytes.IndexByte(lower, rare)
	start, last := max(first-p.rare, 0), len(lower)-len(p.Literal) // of a match
	if first < 0 || start > last || rare >= utf8.RuneSelf {
		return false
	}
	padded := lower[:len(lower)+padding]
	a, b := padded[start+p.rare:], padded[start+p.next:]
	r, n := uint64(rare)*ones, uint64(next)*ones
	for at := start; at <= last && len(a) >= 64 && len(b) >= 64; at += 64 {
		v, w := (*[64]byte)(a), (*[64]byte)(b)
		hits := both(v, w, 0, r, n) | both(v, w, 8, r, n) | both(v, w, 16, r, n) | both(v, w, 24, r, n) |
			both(v, w, 32, r, n) | both(v, w, 40, r, n) | both(v, w, 48, r, n) | both(v, w, 56, r, n)
		if hits&high != 0 && bytes.Contains(lower[at:min(at+63+len(p.Literal), len(lower))], p.Literal) {
			return true
		}
		a, b = a[64:], b[64:]
	}
	return false
}

// both sets a high bit if one of eight ASCII bytes of v from i on equals that in r
// and the one at its place in w equals that in n: then both become zero, and borrow.
func both(v, w *[64]byte, i int, r, n uint64) uint64 {
	return ((binary.LittleEndian.Uint64(v[i:]) ^ r) | (binary.LittleEndian.Uint64(w[i:]) ^ n)) - ones
}

// byFrequency has the common bytes of English text, the most common first.
const byFrequency = " etaoinsrhldcumfpgwybvk\n.,0123456789xjqz-'\"()"

// rarest returns the indices of the two bytes that are rarest in English text. A
// byte beyond ASCII comes first; a text of one byte has the same index twice.
func rarest(s string) (first, second int) {
	best, good := -1, -1
	for i := range len(s) {
		switch rank := rarity(s[i]); {
		case rank > best:
			second, good = first, best
			first, best = i, rank
		case rank > good:
			second, good = i, rank
		}
	}
	if good < 0 {
		second = first
	}
	return first, second
}

// rarity ranks a byte by how rare it is.
func rarity(c byte) int {
	rank := strings.IndexByte(byFrequency, c)
	switch {
	case c >= utf8.RuneSelf:
		return len(byFrequency) + 1
	case rank < 0:
		return len(byFrequency)
	}
	return rank
}
