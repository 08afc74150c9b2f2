package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dialai/dialai/machine"
)

// TestHidden holds the set to its description: what a name and what prose may not hold.
func TestHidden(t *testing.T) {
	for _, c := range []struct {
		what            string
		from, to        rune
		inName, inProse bool
	}{
		{"C0 before tab", 0, 8, true, true},
		{"tab and line feed", 9, 10, true, false},
		{"the rest of C0 before carriage return", 11, 12, true, true},
		{"carriage return", 13, 13, true, false},
		{"the rest of C0", 14, 31, true, true},
		{"ASCII", 32, 126, false, false},
		{"DEL and C1", 0x7F, 0x9F, true, true},
		{"no-break space", 0xA0, 0xA0, true, false},
		{"soft hyphen", 0xAD, 0xAD, true, true},
		{"Arabic letter mark", 0x61C, 0x61C, true, true},
		{"zero width space", 0x200B, 0x200B, true, true},
		{"joiners", 0x200C, 0x200D, true, false},
		{"direction marks", 0x200E, 0x200F, true, true},
		{"separators and embeddings", 0x2028, 0x202E, true, true},
		{"word joiner to deprecated format characters", 0x2060, 0x2064, true, true},
		{"isolates", 0x2066, 0x2069, true, true},
		{"byte order mark", 0xFEFF, 0xFEFF, true, true},
		{"combining grapheme joiner", 0x34F, 0x34F, true, true},
		{"Hangul fillers", 0x115F, 0x1160, true, true},
		{"Hangul filler", 0x3164, 0x3164, true, true},
		{"half-width Hangul filler", 0xFFA0, 0xFFA0, true, true},
		{"Khmer inherent vowels", 0x17B4, 0x17B5, true, true},
		{"Ogham space", 0x1680, 0x1680, true, false},
		{"Mongolian variation selectors", 0x180B, 0x180D, true, false},
		{"spaces of all widths", 0x2000, 0x200A, true, false},
		{"narrow no-break space", 0x202F, 0x202F, true, false},
		{"mathematical space", 0x205F, 0x205F, true, false},
		{"blank of Braille", 0x2800, 0x2800, true, false},
		{"Braille", 0x2801, 0x28FF, false, false},
		{"a filler of Khitan", 0x16FE4, 0x16FE4, true, false},
		{"blanks of hieroglyphs", 0x13441, 0x13442, true, false},
		{"null notehead", 0x1D159, 0x1D159, true, false},
		{"noteheads", 0x1D157, 0x1D158, false, false},
		{"beams and slurs of music, which show nothing alone", 0x1D173, 0x1D17A, true, true},
		{"ideographic space", 0x3000, 0x3000, true, false},
		{"variation selectors, which pictures in prose need", 0xFE00, 0xFE0F, true, false},
		{"unassigned default ignorables", 0xFFF0, 0xFFF8, true, true},
		{"noncharacters", 0xFFFE, 0xFFFF, true, true},
		{"the replacement character", 0xFFFD, 0xFFFD, false, false},
		{"pictures", 0x1F600, 0x1F64F, false, false},
		{"hearts and stars", 0x2600, 0x27BF, false, false},
		{"tags", 0xE0020, 0xE007F, true, true},
		{"variation selectors of ideographs", 0xE0100, 0xE01EF, true, false},
	} {
		for r := c.from; r <= c.to; r++ {
			text := "é" + string(r) + "b"
			if _, at := machine.Hidden(text); (at == 2) != c.inName {
				t.Errorf("%s: U+%04X in a name is found at %d", c.what, r, at)
			}
			if _, at := machine.HiddenInProse(text); (at == 2) != c.inProse {
				t.Errorf("%s: U+%04X in prose is found at %d", c.what, r, at)
			}
		}
	}
	if r, at := machine.Hidden("ab\xffc"); r != 0xFFFD || at != 3 {
		t.Errorf("what is not UTF-8 is found as U+%04X at %d", r, at)
	}
}

// TestNamesHoldNothingIgnorable: of the whole of Unicode, no name holds what a font may
// leave out (Default_Ignorable_Code_Point), nor a space but U+0020.
func TestNamesHoldNothingIgnorable(t *testing.T) {
	ignorable := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector, unicode.Zs}
	n := 0
	for r := rune(' ' + 1); r <= unicode.MaxRune; r++ {
		if !unicode.IsOneOf(ignorable, r) {
			continue
		}
		n++
		if got, at := machine.Hidden("pay" + string(r)); got != r || at != 4 {
			t.Errorf("U+%04X passes in a name", r)
		}
	}
	if n < 4000 { // there are 4,174 ignorable ones alone
		t.Errorf("%d were tried", n)
	}
}

// TestHiddenCharactersAreRefused puts each kind of hidden character into each kind of
// name of a machine file, as keys and as values, and into its prose.
func TestHiddenCharactersAreRefused(t *testing.T) {
	const file = `{"machineName":"@m","initialState":"a","goalState":"b","states":{"a":{"prompt":"@p","transitions":{"@go":"b","off":{"target":"@b","description":"@d",
		"parameters":{"type":"object","properties":{"@k":{"enum":["@e"]}}}}},"x-note":{"@x":"@y"}},"b":{}},
		"specialists":[{"role":"@proposer","specialistId":"@p","modelId":"@m"},{"role":"proposer","specialistId":"e","strategyFn":"@= proposals"},
			{"role":"proposer","specialistId":"w","strategyWebhookUrl":"https://example.com/@p","webhookTokenName":"@T"}],
		"guards":{"tool_calls":{"allowed":["@t"],"per_tool":{"@u":{"exempt":true}}},"forbidden_patterns":["@f"],"cost":{"version":"@v"}}}`
	inProse := []string{`\n`, `\t`, `\u200d`, `\ufe0f`, `\u00a0`, `\u2800`, `\ud834\udd59`}
	plain := strings.ReplaceAll(file, "@", "")
	for i := 1; i <= strings.Count(file, "@"); i++ {
		before := strings.Split(file, "@")
		at := strings.Join(before[:i], "") + "@" + strings.Join(before[i:], "")
		value := at[strings.Index(at, "@"):]
		prose := false
		for _, p := range []string{"@p\",\"transitions", "@d", "@e", "@y", "@= ", "@f"} {
			prose = prose || strings.HasPrefix(value, p)
		}
		for _, escaped := range []string{`\u0000`, `\u001b`, `\u007f`, `\u009b`, `\u200b`, `\u2028`, `\u202e`, `\u2066`, `\ufeff`, `\u3164`, `\n`, `\t`, `\u200d`, `\ufe0f`, `\u00a0`, `\u2800`, `\ud834\udd59`} {
			text := strings.Replace(at, "@", escaped, 1)
			found := hiddenIn(t, text)
			if allowed := prose && slices.Contains(inProse, escaped); found == allowed {
				t.Errorf("%s in %.30s: refused is %t", escaped, value, found)
			}
		}
	}
	if hiddenIn(t, plain) {
		t.Error("what holds nothing hidden is refused")
	}
}

// hiddenIn reports whether loading says that something is hidden in a file, and where.
func hiddenIn(t *testing.T, text string) (found bool) {
	t.Helper()
	_, err := machine.Parse("m.json", []byte(text), machine.Checks{})
	var invalid *machine.Error
	if !errors.As(err, &invalid) {
		return false
	}
	for _, p := range invalid.Problems {
		if p.Code == "hidden-character" {
			found = true
			if p.Line == 0 || p.Column == 0 || !strings.Contains(p.Message, "U+") {
				t.Errorf("the problem is %v", p)
			}
		}
	}
	return found
}

// TestHiddenCharactersInGo: a definition built in Go is held to the same.
func TestHiddenCharactersInGo(t *testing.T) {
	def := reviewDefinition()
	def.States[0].Transitions[0].Name = "app\u202erove"
	_, err := machine.Compile(def, checks())
	if err == nil || !strings.Contains(err.Error(), "[hidden-character]: a name in transitions holds U+202E as character 4") {
		t.Error(err)
	}
}

// TestHiddenCharactersInSections: files with one section are held to the same.
func TestHiddenCharactersInSections(t *testing.T) {
	err := machine.ParseSection("prices.json", []byte(`{"prices":{"gpt\u200b":{}}}`), nil, func([]byte) []machine.Problem { return nil })
	if want := "prices.json:1:12: error[hidden-character]: a name in prices holds U+200B as character 4"; err == nil || !strings.Contains(fmt.Sprint(err), want) {
		t.Error(err)
	}
}
