package truth_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/truth"
)

func TestJaccard(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       float64
	}{
		{"both empty", "", "", 0},
		{"no words at all", " -- ", "...", 0},
		{"one empty", "word", "?", 1},
		{"alike", "to be", "to be", 0},
		{"order and number", "to be to be", "be to", 0},
		{"letter case", "ÄRGER Now", "ärger NOW", 0},
		{"punctuation", "a-b_c", "a b,c!", 0},
		{"digits belong to words", "x1", "x 1", 1},
		{"one of three", "red green", "red blue", 2.0 / 3},
		{"one of four", "red green", "green blue white", 0.75},
		{"nothing", "red", "blue", 1},
		{"other alphabets", "мир и война", "Война и мир", 0},
	} {
		if got := truth.Jaccard(c.a, c.b); got != c.want {
			t.Errorf("%s: Jaccard(%q, %q) = %v, want %v", c.name, c.a, c.b, got, c.want)
		}
	}
}

func TestJaccardIsADistance(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	text := func() string {
		var b strings.Builder
		for range rng.IntN(8) {
			b.WriteString([]string{"a", "B", "c1", "dé", " "}[rng.IntN(5)] + " ")
		}
		return b.String()
	}
	for range 5000 {
		a, b, c := text(), text(), text()
		ab, ba := truth.Jaccard(a, b), truth.Jaccard(b, a)
		switch {
		case ab != ba, ab < 0, ab > 1:
			t.Fatalf("seed %d: Jaccard(%q, %q) = %v and %v", seed, a, b, ab, ba)
		case truth.Jaccard(a, a+" "+strings.ToUpper(a)) != 0:
			t.Fatalf("seed %d: %q is not like itself", seed, a)
		case ab > truth.Jaccard(a, c)+truth.Jaccard(c, b)+1e-12:
			t.Fatalf("seed %d: the way from %q to %q is shorter over %q", seed, a, b, c)
		}
	}
}
