package text_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/internal/text"
)

// TestSameSeen compares reading two texts side by side with taking what nobody sees out
// of each.
func TestSameSeen(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 9))
	parts := []string{"a", "b", "~", " ", "\t", "\x00", "\x7f", "é", "\xc3", "\xff", "\u200b", "\u00ad", "\u2028", "plain text "}
	random := func() (s []byte) {
		for range r.IntN(8) {
			s = append(s, parts[r.IntN(len(parts))]...)
		}
		return s
	}
	same := 0
	for range 50000 {
		a, b := random(), random()
		got, want := text.SameSeen(a, b), bytes.Equal(text.AppendSeen(nil, a), text.AppendSeen(nil, b))
		if got != want {
			t.Fatalf("seed %d: SameSeen(%q, %q) = %v, want %v", seed, a, b, got, want)
		}
		if want {
			same++
		}
		for i, c := range string(a) {
			if first := text.FirstUnseen(a); first == i && !text.Unseen(c) || text.Unseen(c) && (first < 0 || first > i) {
				t.Fatalf("seed %d: the first of %q that shows nothing is said to be at %d", seed, a, first)
			}
		}
	}
	if same < 100 {
		t.Errorf("seed %d: only %d pairs are the same", seed, same)
	}
}
