package text

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
)

// TestSketch holds the estimate of similarity to the truth: over many random
// sets it decides well above and well below the threshold as counting does.
func TestSketch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	const limit = exact.Billionths(800_000_000)
	wrong, tries := 0, 0
	for range 4000 {
		n := 30 + r.IntN(40)
		a := make([]string, n)
		for i := range a {
			a[i] = fmt.Sprintf("w%d", r.IntN(1_000_000))
		}
		b := append([]string(nil), a...)
		for range r.IntN(n) {
			b[r.IntN(n)] = fmt.Sprintf("w%d", r.IntN(1_000_000))
		}
		j := jaccardOf(a, b)
		if j > 0.55 && j < 0.95 {
			continue // too near to the threshold to be certain
		}
		tries++
		r.Shuffle(n, func(i, k int) { b[i], b[k] = b[k], b[i] })
		if Similar(sketchOf([]byte(strings.Join(a, " "))), sketchOf([]byte(`{"`+strings.Join(b, `","`)+`"}`)), limit) != (j >= 0.8) {
			wrong++
		}
	}
	if tries < 1000 || wrong*20 > tries {
		t.Errorf("%d of %d decisions are wrong", wrong, tries)
	}
	if empty := sketchOf([]byte("{} ,.")); Similar(empty, empty, limit) {
		t.Error("two calls without a word are similar")
	}
}

// TestMostDiffering: sketches that differ in more groups are never similar.
func TestMostDiffering(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 13))
	alike := 0
	for range 100_000 {
		a := r.Uint64() | r.Uint64()&r.Uint64() // some groups are empty
		b := a
		for range r.IntN(17) {
			shift := 4 * r.IntN(16)
			b = b&^(15<<shift) | r.Uint64N(16)<<shift
		}
		j := exact.Billionths(r.Int64N(1e9 + 1))
		if Similar(a, b, j) {
			alike++
			if Differing(a, b) > MostDiffering(j) {
				t.Fatalf("%x and %x are similar at %d, and differ in %d groups", a, b, j, Differing(a, b))
			}
		}
	}
	if alike < 1000 {
		t.Errorf("only %d pairs were similar", alike)
	}
}

func jaccardOf(a, b []string) float64 {
	set := map[string]int{}
	for _, w := range a {
		set[w] |= 1
	}
	for _, w := range b {
		set[w] |= 2
	}
	both := 0
	for _, in := range set {
		if in == 3 {
			both++
		}
	}
	return float64(both) / float64(len(set))
}

// TestSketchWords compares the words that are found 64 bytes at a time with the
// plain definition.
func TestSketchWords(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 7))
	for range 20000 {
		data := []byte(lettersFrom(r, r.IntN(200), strings.Repeat("aZ09é", 1+r.IntN(30))+"_., \"{"))
		var want groups
		want.clear()
		padded := append(data[:len(data):len(data)], make([]byte, padding)...)
		for _, span := range wordSpans(data) {
			want.word(padded, span[0], span[1])
		}
		if got := sketchOf(data); got != want.bits() {
			t.Fatalf("%q: %x, want %x", data, got, want.bits())
		}
	}
}

func sketchOf(data []byte) uint64 { return Sketch(append(data, make([]byte, padding)...), len(data)) }

func wordSpans(data []byte) (spans [][2]int) {
	start := -1
	for i := range len(data) + 1 {
		in := i < len(data) && WordByte[data[i]]
		switch {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			spans = append(spans, [2]int{start, i})
			start = -1
		}
	}
	return spans
}

// TestNoteIsTheWord: a word counts the same wherever it stands.
func TestNoteIsTheWord(t *testing.T) {
	for _, w := range []string{"a", "word", "eightchr", "morethaneight", "é"} {
		if a, b := sketchOf([]byte(w)), sketchOf([]byte("  "+w+" ............")); a != b {
			t.Errorf("%q counts as %x and %x", w, a, b)
		}
	}
}

func BenchmarkSketch(b *testing.B) {
	data := append([]byte(sampleArgs(330)), make([]byte, padding)...)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Sketch(data, 330)
	}
}
