package truth

import (
	"context"
	"strings"
	"unicode"
)

// A TextDistance says how different two texts are, from 0 (alike) to 1. A value
// outside of that, or an error, fails the probe that asked. It may be called
// concurrently.
type TextDistance interface {
	Distance(ctx context.Context, a, b string) (float64, error)
}

// JaccardDistance is the TextDistance that [Jaccard] computes. The zero value is
// ready to use.
type JaccardDistance struct{}

// Distance returns Jaccard(a, b). It never fails.
func (JaccardDistance) Distance(_ context.Context, a, b string) (float64, error) {
	return Jaccard(a, b), nil
}

// Jaccard returns the share of words, from 0 to 1, that only one of two texts has.
// Words are runs of letters and digits, and letter case does not matter. Two texts
// without words are at distance 0, one with and one without at 1.
func Jaccard(a, b string) float64 {
	left, right := words(a), words(b)
	if len(left) == 0 && len(right) == 0 {
		return 0
	}
	shared := 0
	for w := range left {
		if right[w] {
			shared++
		}
	}
	union := len(left) + len(right) - shared
	return float64(union-shared) / float64(union)
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		set[strings.Map(unicode.ToLower, w)] = true
	}
	return set
}
