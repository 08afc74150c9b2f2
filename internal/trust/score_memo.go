package trust

import "math"

// From manyOptions on most answers have the same few counts, below mostCounted, and
// what is made of those is worked out once for each voter.
const (
	manyOptions = 8
	mostCounted = 8
)

// A word is what is made of an answer: its probability, 0 as long as it is not worked
// out, the logarithm of that, and what it adds to the entropy of the answers.
type word struct{ p, log, surprise float64 }

// A memo holds what is made of a voter's answers: by whether the answer is wrong, how
// often the option was right and how often the answer was given then.
type memo [2][mostCounted][mostCounted]word

// tabulate prepares a voter whose answers to every option will be looked at.
func (b *ballot) tabulate(v *voter) {
	if b.k >= manyOptions {
		v.memo = &memo{}
	}
	if v.cell == nil || v.human > 0 {
		return
	}
	rows := make([]int32, b.k)
	for t := range rows {
		rows[t] = b.row(v, int32(t))
	}
	v.rows = rows
}

// word returns what is made of v's answer l if t were right.
func (b *ballot) word(v *voter, t, l int32) word {
	hits, row := b.counted(v, t, l)
	if v.memo == nil || row >= mostCounted {
		return b.work(v, t == l, hits, row)
	}
	at := &v.memo[wrong(t, l)][row][hits]
	if at.p == 0 {
		*at = b.work(v, t == l, hits, row)
	}
	return *at
}

// likely returns the probability of v's answer l if t were right.
func (b *ballot) likely(v *voter, t, l int32) float64 {
	if v.memo == nil {
		return b.answer(v, t, l)
	}
	return b.word(v, t, l).p
}

func (b *ballot) work(v *voter, agrees bool, hits, row int32) word {
	p := v.chance(agrees, hits, row, b.k)
	log := math.Log(p)
	return word{p, log, -float64(p * log)}
}
