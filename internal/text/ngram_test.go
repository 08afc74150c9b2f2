package text

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// plainTokens is the plain definition of tokens.
func plainTokens(s string) []string {
	return strings.FieldsFunc(strings.Map(unicode.ToLower, s), unicode.IsSpace)
}

// TestTokens compares the fast reading with the plain definition: two texts have
// equal hashes token by token exactly if they have equal tokens.
func TestTokens(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	known := map[uint64]string{}
	for i := range 4000 {
		alphabet := "abcABCzZ@[`{ \t\n\v\f\r\x00\x1c\x1f0"
		if i%3 == 0 {
			alphabet += "éÉßſK\u0085\u00a0\u2003日"
		}
		if i%4 == 0 {
			alphabet = strings.Repeat("aBc", r.IntN(60)) + " d" // words of any length
		}
		s := lettersFrom(r, r.IntN(300), alphabet)
		var x Text
		x.Read(s, true)
		want := plainTokens(s)
		if len(x.Tokens) != len(want) {
			t.Fatalf("%q has %d tokens, want %q", s, len(x.Tokens), want)
		}
		for k, w := range want {
			if other, seen := known[x.Tokens[k]]; seen && other != w {
				t.Fatalf("%q and %q have one hash", other, w)
			}
			known[x.Tokens[k]] = w
		}
		if x.ASCII && string(x.Lower) != strings.ToLower(s) {
			t.Fatalf("%q became %q", s, x.Lower)
		}
	}
	back := map[string]uint64{}
	for h, w := range known {
		if other, seen := back[w]; seen && other != h {
			t.Fatalf("%q has two hashes", w)
		}
		back[w] = h
	}
}

// TestNgramsPosition checks that an n-gram's hash depends on its tokens alone.
func TestNgramsPosition(t *testing.T) {
	var a, b Text
	a.Read("one two three four five six seven", true)
	b.Read("ONE\ttwo three  four five six Seven eight", true)
	x, y := AppendNgrams(nil, a.Tokens, 5), AppendNgrams(nil, b.Tokens, 5)
	if len(x) != 3 || len(y) != 4 || !slices.Equal(x, y[:3]) {
		t.Errorf("n-grams %x and %x", x, y)
	}
	if got := AppendNgrams(nil, a.Tokens[:4], 5); got != nil {
		t.Errorf("four tokens have n-grams %x", got)
	}
}

// TestWinnow compares what is added of a text with the plain definition of
// winnowing, also for texts in two parts.
func TestWinnow(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		var p Print
		p.Begin()
		set := map[uint32]bool{}
		n := 1 + r.IntN(7)
		pool := uint64(1 + r.IntN(1+r.IntN(300)))
		for range 1 + r.IntN(2) {
			tokens := make([]uint64, r.IntN(1+r.IntN(200)))
			for i := range tokens {
				tokens[i] = r.Uint64N(pool) * Prime2
			}
			p.Add(tokens, n)
			plainWinnow(set, AppendNgrams(nil, tokens, n))
		}
		slices.Sort(p.Marks)
		if got, want := slices.Compact(p.Marks), slices.Sorted(maps.Keys(set)); !slices.Equal(got, want) {
			t.Fatalf("%d-grams: marks %v, want %v", n, got, want)
		}
	}
}

func plainWinnow(set map[uint32]bool, grams []uint64) {
	window := min(winnowWindow, len(grams))
	for i := 0; window > 0 && i+window <= len(grams); i++ {
		set[uint32(slices.Min(grams[i:i+window])>>32)] = true
	}
}

// TestPrint compares prints with the distinct lowest marks.
func TestPrint(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 1000 {
		marks := make([]uint32, r.IntN(600))
		if r.IntN(20) == 0 {
			marks = make([]uint32, r.IntN(20_000))
		}
		width, shift := r.IntN(32), r.IntN(20)
		for i := range marks {
			marks[i] = r.Uint32N(1<<width) << shift // some repeat
		}
		want := slices.Compact(slices.Sorted(slices.Values(marks)))
		p := Print{Marks: marks}
		p.End()
		slices.Sort(p.Marks)
		if want = want[:min(len(want), maxPrint)]; !slices.Equal(p.Marks, want) {
			t.Fatalf("%d marks: print %v, want %v", len(marks), p.Marks, want)
		}
	}
}

// TestShared compares the comparison of prints with counting.
func TestShared(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 2000 {
		pool := 1 + r.IntN(400)
		draw := func() (p Print) {
			for range r.IntN(300) {
				p.Marks = append(p.Marks, uint32(r.IntN(pool))*0x9e3779b1)
			}
			p.End()
			return p
		}
		p, q := draw(), draw()
		if lacking := len(p.Marks) - p.Shared(&q); p.Lacking(&q) > lacking {
			t.Fatalf("at least %d marks are said to be missing, %d are", p.Lacking(&q), lacking)
		}
		common := 0
		for _, m := range p.Marks {
			if slices.Contains(q.Marks, m) {
				common++
			}
		}
		if got := p.Shared(&q); got != common {
			t.Fatalf("%d marks in common, want %d", got, common)
		}
	}
}

func BenchmarkText(b *testing.B) {
	s := sampleText(2048)
	var x Text
	b.Run("lower", func(b *testing.B) {
		for b.Loop() {
			x.Read(s, false)
		}
	})
	b.Run("tokens", func(b *testing.B) {
		for b.Loop() {
			x.Read(s, true)
		}
	})
	var grams []uint64
	b.Run("ngrams", func(b *testing.B) {
		for b.Loop() {
			grams = AppendNgrams(grams[:0], x.Tokens, 5)
		}
	})
	var p Print
	b.Run("print", func(b *testing.B) {
		for b.Loop() {
			p.Begin()
			p.Add(x.Tokens, 5)
			p.End()
		}
	})
	b.Logf("%d tokens, %d marks", len(x.Tokens), len(p.Marks))
}
