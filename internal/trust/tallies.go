package trust

import (
	"sort"

	"github.com/dialai/dialai/exact"
)

// TallyOf returns a tally with that score: the one of most comparisons that is not
// beyond limit, a later tally of the same specialist. It turns [Score] round, to
// say what a recorded weight was made of. ok is false if no tally has the score,
// or if the score is 0 and limit knows of comparisons: then nothing ever agreed,
// but how often was asked cannot be told.
func TallyOf(score exact.Billionths, limit Tally) (t Tally, ok bool) {
	if score == 0 {
		return Tally{}, limit.Total == 0
	}
	for n := limit.Total; n > 0; n-- {
		most := min(n, limit.Matching)
		k := int64(sort.Search(int(most)+1, func(k int) bool { return Score(int64(k), n) >= score }))
		if k <= most && n-k <= limit.Total-limit.Matching && Score(k, n) == score {
			return Tally{Matching: k, Total: n}, true
		}
	}
	return Tally{}, false
}
