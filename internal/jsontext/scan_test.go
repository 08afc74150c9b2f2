package jsontext_test

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
)

// TestSkipPlain compares looking at eight bytes at a time with looking at each.
func TestSkipPlain(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	plain := func(data []byte, i int) int {
		for ; i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' && data[i] < utf8.RuneSelf; i++ {
		}
		return i
	}
	for range 20000 {
		data := make([]byte, rng.IntN(40))
		for i := range data {
			if data[i] = byte(' ' + rng.IntN(0x60)); rng.IntN(20) == 0 {
				data[i] = byte(rng.IntN(256))
			}
		}
		from := rng.IntN(len(data) + 1)
		if got, want := jsontext.SkipPlain(data, from), plain(data, from); got != want {
			t.Fatalf("seed %d: SkipPlain(%q, %d) = %d, want %d", seed, data, from, got, want)
		}
	}
}
