package guard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

const streamed = `{"limits":{"output_max":60},"forbidden_patterns":["kelvin","straße","lorem ipsum","ksksksksksks","a","\\x{FFFD}b","b\\x{FFFD}","^c"],"loop_detection":{"mode":"%s"}}`

// chunks cuts a text at random places.
func chunks(rng *rand.Rand, text string) (list []string) {
	for len(text) > 0 {
		n := 1 + rng.IntN(len(text))
		if rng.IntN(3) > 0 {
			n = min(n, 1+rng.IntN(5))
		}
		list, text = append(list, text[:n]), text[n:]
	}
	return list
}

// whole returns what a stream must find in a text, the slow way.
func whole(c *guard.Config, text string) (codes []string) {
	known := text
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ { // more bytes could make another character of it
		if tail := text[len(text)-cut:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				known = text[:len(text)-cut]
			}
			break
		}
	}
	if int64(utf8.RuneCountInString(known)) > *c.Limits.OutputMax {
		codes = append(codes, "length_max")
	}
	for i := range c.Forbidden {
		if f := &c.Forbidden[i]; f.Plain() && regexp.MustCompile("(?i)"+f.Source).MatchString(known) {
			codes = append(codes, fmt.Sprint("forbidden_pattern ", i))
		}
	}
	return codes
}

func subjects(v verdict.Verdict) (list []string) {
	for _, r := range v.Reasons {
		list = append(list, strings.TrimSpace(r.Code+" "+r.Subject))
	}
	return list
}

// checkSeams streams a text in chunks and holds the stream to the whole text, and
// what it says at the end to what Check says.
func checkSeams(t *testing.T, rng *rand.Rand, c *guard.Config, text string) {
	t.Helper()
	g := newGuard(t, c)
	s := g.Stream("t")
	sofar := ""
	for _, chunk := range chunks(rng, text) {
		sofar += chunk
		if got, want := subjects(s.Add(chunk)), whole(c, sofar); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, of %q, with a seam before %q: %q, want %q", seed, sofar, text, chunk, got, want)
		}
	}
	v, m, err := s.Close(t.Context(), guard.CheckInput{State: "s"})
	want, wantM, wantErr := newGuard(t, c).Check(guard.CheckInput{TaskID: "t", State: "s", Output: &text})
	if !reflect.DeepEqual(v, want) || m.Steps != wantM.Steps || m.Spent != wantM.Spent || err != nil || wantErr != nil {
		t.Fatalf("seed %d: %q at the end: %v %v (%v), want %v %v (%v)", seed, text, v, m, err, want, wantM, wantErr)
	}
}

// TestStreamSeams: a hit across a seam is found, and a seam never makes one.
func TestStreamSeams(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	parts := []string{"kelvin", "\u212aELVIN", strings.Repeat("\u212aſ", 6), "\u212aſks", "STRAßE", "straẞe", "strasse", "Lorem ", "ipsum", "lorem  ", "x", "c", "\n", "ß", "ſ", "é", "\u212a", "k", "elvin", "€", "\U0001F600", "\xe2", "\x84", "\xaa", "\xf0\x9f", "\ufffdb", "b", "\xff", "lor", "em"}
	for _, mode := range []string{"overlap", "off"} {
		c := parse(t, fmt.Sprintf(streamed, mode))
		for range 1500 {
			var text strings.Builder
			for range rng.IntN(30) {
				text.WriteString(parts[rng.IntN(len(parts))])
			}
			checkSeams(t, rng, c, text.String())
		}
	}
}

func FuzzStreamSeams(f *testing.F) {
	for _, s := range []string{"", "lorem ipsum", "\u212aelvin", "straße \xe2\x84", "\xf0\x9f\x98", "\xf0\x80\x80\x80b", strings.Repeat("é", 61)} {
		f.Add(s, uint64(1))
	}
	c := parse(f, fmt.Sprintf(streamed, "overlap"))
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		if len(text) < 900 { // no run of the same is that short
			checkSeams(t, rand.New(rand.NewPCG(cuts, 3)), c, text)
		}
	})
}

// TestStreamTail: a run of the same is found with every period and however it is
// cut, as soon as it is long enough, and said again at the end.
func TestStreamTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 4))
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefghij  \n"[rng.IntN(13)]
		}
		return string(b)
	}
	c := parse(t, `{}`)
	for _, period := range []int{1, 2, 3, 7, 8, 9, 31, 64, 65, 200, 1000, 2048} {
		before, unit := text(rng.IntN(3000)), text(period)
		repeats := max(20, 1100/period+2)
		full := before + strings.Repeat(unit, repeats) + text(50)
		var at []int
		for range 3 {
			s := newGuard(t, c).Stream("t")
			sofar, found := 0, 0
			for _, chunk := range append(chunks(rng, full[:len(before)+1100]), chunks(rng, full[len(before)+1100:])...) {
				for i := range len(chunk) { // byte by byte tells where
					sofar++
					if v := s.Add(chunk[i : i+1]); found == 0 && codes(v) == "retry [loop_repeat_output]" {
						found = sofar
					}
				}
			}
			at = append(at, found)
			v, _, err := s.Close(t.Context(), guard.CheckInput{})
			if codes(v) != "retry [loop_repeat_output]" || err != nil {
				t.Errorf("seed %d: period %d, at the end: %s (%v)", seed, period, codes(v), err)
			}
		}
		least, most := len(before)+max(1024, 16*period)-16, len(before)+max(1024, 16*period)+64
		if at[0] < least || at[0] > most || at[1] != at[0] || at[2] != at[0] {
			t.Errorf("seed %d: period %d after %d bytes was found at %d, want from %d to %d", seed, period, len(before), at, least, most)
		}
		at0 := newGuard(t, c).Stream("t")
		if v := at0.Add(full); codes(v) != "retry [loop_repeat_output]" {
			t.Errorf("seed %d: period %d in one chunk: %s", seed, period, codes(v))
		}
	}
	off := newGuard(t, parse(t, `{"loop_detection":{"mode":"off"}}`)).Stream("t")
	if v := off.Add(strings.Repeat("the ", 1000)); codes(v) != "ok" {
		t.Errorf("without loop detection: %s", codes(v))
	}
	for _, harmless := range []string{text(20000), strings.Repeat("-", 1000), strings.Repeat("| 0 | 0 |\n", 100), strings.Repeat(text(300), 15)} {
		if v := newGuard(t, c).Stream("t").Add(harmless); codes(v) != "ok" {
			t.Errorf("seed %d: %.40q…: %s", seed, harmless, codes(v))
		}
	}
}

// TestStreamCaps: what a call has used so far is held to the caps, is not counted
// while it runs, and is spent at the end whatever the verdict.
func TestStreamCaps(t *testing.T) {
	for _, x := range []struct{ section, want string }{
		{`{"limits":{"max_tokens_per_step":10}}`, "abort [max_tokens_step]"},
		{`{"limits":{"max_total_tokens":10}}`, "abort [max_tokens_total]"},
		{`{"limits":{"max_total_tokens":10,"cap_basis":"progress"}}`, "abort [max_tokens_total]"},
		{`{"cost":{"prices":{"m":{"output_per_1m":100000}},"max_dollars_per_task":1}}`, "abort [cost_cap]"},
	} {
		g := newGuard(t, parse(t, x.section))
		s := g.Stream("t")
		for n := int64(1); n <= 11; n++ {
			s.Use(specialist.Usage{NumOutputTokens: n}, "m")
			want := "ok"
			if n > 10 {
				want = x.want
			}
			if got := codes(s.Add("x")); got != want {
				t.Errorf("%s at %d tokens: %s, want %s", x.section, n, got, want)
			}
		}
		if spent := g.State("t").Spent; spent != (spend.Book{}) {
			t.Errorf("%s: %+v is spent while the call runs", x.section, spent)
		}
		v, _, err := s.Close(t.Context(), guard.CheckInput{})
		if after := g.State("t"); codes(v) != x.want || err != nil || after.Spent.TokensOut != 11 || after.Spent.Calls != 1 || after.Steps != 0 {
			t.Errorf("%s at the end: %s (%v), %+v", x.section, codes(v), err, after)
		}
		if _, _, err := s.Close(t.Context(), guard.CheckInput{}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("closed twice: %v", err)
		}
		s.Abandon() // too late
		if after := g.State("t"); after.Spent.Calls != 1 {
			t.Errorf("abandoned after it was closed: %+v", after)
		}
	}
}

// TestStreamAbandon: an output that is given up has cost something.
func TestStreamAbandon(t *testing.T) {
	g := newGuard(t, parse(t, `{"cost":{"prices":{"m":{"output_per_1m":1}}}}`))
	s := g.Stream("t")
	s.Add("123456")
	s.Add("é")
	s.Abandon()
	s.Abandon()
	if b := g.State("t").Spent; b.Calls != 1 || b.TokensOut != 8 || b.Estimated != 1 {
		t.Errorf("an output of 6 bytes and a letter was estimated as %+v", b)
	}
	s = g.Stream("t")
	s.Use(specialist.Usage{NumInputTokens: 5, NumOutputTokens: 1_000_000}, "m")
	s.Abandon()
	if b := g.State("t").Spent; b.Calls != 2 || b.TokensIn != 5 || b.Money.String() != "1" || b.Estimated != 1 {
		t.Errorf("what was used is not spent: %+v", b)
	}
	if got := codes(s.Add("more")); got != "ok" {
		t.Errorf("after the end: %s", got)
	}
	before := g.State("t").Spent
	s = g.Stream("t")
	s.Use(specialist.Usage{NumInputTokens: -5, NumOutputTokens: -7}.WithCost(-exact.Dollar), "m")
	if _, _, err := s.Close(t.Context(), guard.CheckInput{}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("a negative usage was closed: %v", err)
	}
	s.Abandon()
	if before.Calls++; g.State("t").Spent != before {
		t.Errorf("a negative usage gave something back: %+v, not %+v", g.State("t").Spent, before)
	}
}

// TestStreamClose: the whole is judged in full, and the step is the caller's.
func TestStreamClose(t *testing.T) {
	g := newGuard(t, parse(t, `{"forbidden_patterns":["^end$"],"packs":{"secrets":{}},"limits":{"output_min":3},"tool_calls":{"allowed":[]}}`))
	s := g.Stream("t")
	for _, chunk := range []string{"e", "n", "d"} {
		if got := codes(s.Add(chunk)); got != "ok" {
			t.Errorf("a pattern that is no literal, and packs, are for the end: %s", got)
		}
	}
	if v, _, err := s.Close(t.Context(), guard.CheckInput{TaskID: "u"}); !errors.Is(err, verdict.ErrInput) || err.Error() != `invalid input: the stream is of task "t", the step of "u"` {
		t.Errorf("a step of another task: %v (%v)", v, err)
	}
	v, m, err := s.Close(t.Context(), guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: "x"}}})
	if codes(v) != "abort [tool_not_allowed forbidden_pattern]" || m.Steps != 0 || err != nil {
		t.Errorf("%s, %d steps (%v)", codes(v), m.Steps, err)
	}
	s = g.Stream("t")
	s.Add("okay")
	if v, m, err := s.Close(t.Context(), guard.CheckInput{}); codes(v) != "ok" || m.Steps != 1 || err != nil {
		t.Errorf("%s, %d steps (%v)", codes(v), m.Steps, err)
	}
	_, token, _ := g.Begin(t.Context(), guard.CheckInput{TaskID: "t"})
	s = g.Stream("t")
	s.Add("okay")
	if _, _, err := s.Close(t.Context(), guard.CheckInput{}); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("while a step is open: %v", err)
	}
	token.Release()
	if v, _, err := s.Close(t.Context(), guard.CheckInput{}); codes(v) != "ok" || err != nil {
		t.Errorf("and once it is not: %s (%v)", codes(v), err)
	}
}
