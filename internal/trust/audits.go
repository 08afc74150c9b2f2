package trust

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/wire"
)

// Audits sums what audits found of automatic decisions. The zero Audits is empty.
type Audits struct {
	n, wrong      int64
	all, estimate float64 // weighed by the inverse of the probability of each audit
}

// Add counts an outcome if it is an audit of an automatic decision. One that a
// human overruled unasked is no random sample and is not counted.
func (a *Audits) Add(o *Outcome) {
	if !o.Automatic || o.Unasked || o.Pick == "" {
		return
	}
	p := o.samplingProb()
	a.n++
	a.all += 1 / p.Float()
	if o.Pick != o.Truth {
		a.wrong++
		a.estimate += 1 / p.Float()
	}
}

// Plus returns the sum of both.
func (a Audits) Plus(b Audits) Audits {
	return Audits{a.n + b.n, a.wrong + b.wrong, a.all + b.all, a.estimate + b.estimate}
}

// Code writes a, or fills it in.
func (a *Audits) Code(c *wire.Coder) {
	count(c, &a.n)
	count(c, &a.wrong)
	c.Float(&a.all)
	c.Float(&a.estimate)
}

// Counts returns how many audits there were and how many found an error.
func (a Audits) Counts() (wrong, n int64) { return a.wrong, a.n }

// Error returns the estimated share of automatic decisions that a human would have
// decided otherwise (Hajek: J. Hajek, "Comment", in Foundations of Statistical
// Inference, 1971), and its one-sided upper Clopper-Pearson bound at a confidence
// in (0, 1); 0 and 1 without audits.
func (a Audits) Error(confidence exact.Billionths) (share, bound exact.Billionths) {
	if a.n == 0 {
		return 0, exact.One
	}
	// Hajek's ratio: the sum of 1/p over audits that found an error, by that over all.
	return billionths(a.estimate / a.all), billionths(ErrorAbove(a.wrong, a.n, confidence.Float()))
}
