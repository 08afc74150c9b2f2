package text

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		source, literal string
		plain           bool
		yes, no         []string
	}{
		{"lorem ipsum", "lorem ipsum", true, []string{"x LOREM Ipsum y"}, []string{"lorem  ipsum"}},
		{`\bkill\b`, "kill", false, []string{"KILL it"}, []string{"skills"}},
		{`a(bcd|bce)f`, "bc", false, []string{"ABCEF"}, []string{"abcf"}},
		{`(?:abc|xyz)`, "", false, []string{"XYZ"}, []string{"xy"}},
		{`(?-i:Secret)`, "secret", false, []string{"Secret"}, []string{"secret", "SECRET"}},
		{`x*yz{2,3}`, "y", false, []string{"YZZ"}, []string{"yz"}},
		{`(abc)+`, "abc", false, []string{"ABCabc"}, []string{"ab"}},
		{`(abc)?d`, "d", false, []string{"D"}, []string{"abc"}},
		{`^$`, "", false, []string{""}, []string{"a"}},
		{"straße", "straße", true, []string{"STRAẞE"}, []string{"strasse"}},
		{"ſ", "s", true, []string{"S", "ſ"}, []string{"t"}},
		{`é`, "é", true, []string{"É"}, []string{"e"}},
	} {
		p, err := CompilePattern(c.source)
		if err != nil {
			t.Fatal(err)
		}
		if string(p.Literal) != c.literal || p.Plain != c.plain {
			t.Errorf("%s: literal %q, plain %v", c.source, p.Literal, p.Plain)
		}
		for _, list := range [][]string{c.yes, c.no} {
			for _, s := range list {
				var x Text
				x.Read(s, false)
				if got, want := p.Matches(s, &x), len(c.yes) > 0 && &list[0] == &c.yes[0]; got != want {
					t.Errorf("%s on %q: %v", c.source, s, got)
				}
			}
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for source, want := range map[string]string{
		"ab(":         "missing closing )",
		`ok(?=later)`: "at offset 2: `(?=`",
		`(a)\1`:       "at offset 3: `\\1`",
		`[z-a]`:       "at offset 1: `z-a`",
		"a**":         "at offset 1: `**`",
		strings.Repeat("(a", 1200) + strings.Repeat(")", 1200): "nests too deeply",
		strings.Repeat("a", 5000):                              "at most 4096",
		`((a{100}){100}){100}`:                                 "invalid repeat count",
		`(a|bb|cc){1000}x{1000}(d|ee){1000}(foo|bar){999}`:     "too large",
	} {
		_, err := CompilePattern(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", source, err, want)
		}
	}
}

// TestPatternFind compares the search for a literal with the plain one, on texts
// of few letters, in which most of it occurs often.
func TestPatternFind(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 9))
	found := 0
	for range 20_000 {
		alphabet := "abq!"[:1+r.IntN(4)]
		literal := lettersFrom(r, 1+r.IntN(1+r.IntN(20)), alphabet)
		if r.IntN(10) == 0 {
			literal += "é"
		}
		p, err := CompilePattern(literal)
		if err != nil {
			t.Fatal(err)
		}
		var x Text
		x.Read(lettersFrom(r, r.IntN(1+r.IntN(300)), alphabet), false)
		want := bytes.Contains(x.Lower, []byte(literal))
		if got := p.find(x.Lower); got != want {
			t.Fatalf("%q in %q: %v", literal, x.Lower, got)
		}
		if want {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d literals occurred", found)
	}
}

// FuzzPattern checks that looking for the literal first never hides a match.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"as an ai", `\bk(ey|ill)s?\b`, "(?-i:Ab)c", "a.b", "x{2,}", "[k-s]t", "ß|ss", "(?s).", `\s*a`} {
		f.Add(s, "As an AI, the \u212aeyſ are ABC: axb xx Kt ß SS")
	}
	f.Fuzz(func(t *testing.T, source, output string) {
		p, err := CompilePattern(source)
		if err != nil {
			return
		}
		var x Text
		x.Read(output, false)
		want := regexp.MustCompile("(?i)" + source).MatchString(output)
		if got := p.Matches(output, &x); got != want {
			t.Fatalf("%q on %q: %v, the expression says %v (literal %q)", source, output, got, want, p.Literal)
		}
	})
}
