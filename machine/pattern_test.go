package machine_test

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestPatternError names the place of each kind of mistake, also where what is wrong
// stands rightly somewhere before.
func TestPatternError(t *testing.T) {
	for source, want := range map[string]string{
		`a(b`:            "missing closing ) at offset 1: `(b`",
		`(a)(b[(](?:c`:   "missing closing ) at offset 8: `(?:c`",
		`\(([]()]`:       "missing closing ) at offset 2: `([]()]`",
		`(([[:alpha:](]`: "missing closing ) at offset 1: `([[:alpha:](]`",
		`(a)b)c`:         "unexpected ) at offset 4: `)c`",
		`[a-z]x[b`:       "missing closing ] at offset 6: `[b`",
		`\\z\y`:          "invalid escape sequence at offset 3: `\\y`",
		`a+b**`:          "invalid nested repetition operator at offset 3: `**`",
		`*a`:             "missing argument to repetition operator at offset 0: `*`",
		`[z-a]`:          "invalid character class range at offset 1: `z-a`",
		`ok(?=later)`:    "invalid or unsupported Perl syntax at offset 2: `(?=`",
		`a{2000}`:        "invalid repeat count at offset 1: `{2000}`",
		strings.Repeat("(a", 1200) + strings.Repeat(")", 1200): "expression nests too deeply",
	} {
		_, err := regexp.Compile(source)
		if err == nil {
			t.Errorf("%.40s compiles", source)
		} else if got := machine.PatternError(source, err).Error(); got != want {
			t.Errorf("%.40s: %s, want %s", source, got, want)
		}
	}
	if err := errors.New("another"); machine.PatternError("a", err) != err {
		t.Error("an error of another kind changes")
	}
}

// FuzzPatternError: whatever is wrong, its place is in the pattern.
func FuzzPatternError(f *testing.F) {
	for _, s := range []string{`a(b`, `[`, `\`, `(?P<n>`, `a**`, `)`, "\xff(", `\Q(\E(`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 500 {
			return
		}
		_, err := syntax.Parse(source, syntax.Perl)
		if err == nil {
			return
		}
		if got := machine.PatternError(source, err).Error(); got == "" || strings.Contains(got, "offset -") {
			t.Errorf("%q: %s", source, got)
		}
	})
}
