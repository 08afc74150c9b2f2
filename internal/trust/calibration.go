package trust

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// Whether what bayes says is so: of the rounds in which it gave its pick a probability before a
// human spoke, how often the human chose that. A round that humans see with probability p
// stands for 1/p rounds (Horvitz, Thompson 1952). The sums are kept as whole numbers for each
// p, so that what is taken back leaves nothing behind.

// A Calibration sums looks of humans at rounds that bayes had judged. The zero Calibration is
// empty.
type Calibration struct{ cells map[calibrationCell]looked }

// A calibrationCell is one bin of stated probabilities and one probability of being looked at.
type calibrationCell struct {
	bin  int
	prob exact.Billionths
}

// looked are looks: how many, in how many the human chose the pick, and the stated
// probabilities, in billionths.
type looked struct{ n, right, stated int64 }

// Bins are the equal parts of 0..1 into which stated probabilities fall. One that lies between
// two belongs to the upper.
const Bins = 10

// EnoughLooks is from how many looks on a calibration says anything.
const EnoughLooks = 30

// Add counts an outcome in which bayes had stated a probability. One that a human overruled
// unasked is no random sample and is not counted, nor is one that left nothing to choose.
func (c *Calibration) Add(o *Outcome) { c.count(o, 1) }

// Retract takes back an outcome that was added.
func (c *Calibration) Retract(o *Outcome) { c.count(o, -1) }

func (c *Calibration) count(o *Outcome, times int64) {
	if o.Unasked || o.Pick == "" || o.P <= 0 || len(o.Options) < 2 {
		return
	}
	one := looked{n: times, stated: times * int64(o.P)}
	if o.Pick == o.Truth {
		one.right = times
	}
	c.enter(calibrationCell{min(Bins-1, int(o.P*Bins/exact.One)), o.samplingProb()}, one)
}

func (c *Calibration) enter(key calibrationCell, one looked) {
	if c.cells == nil {
		c.cells = map[calibrationCell]looked{}
	}
	was := c.cells[key]
	c.cells[key] = looked{was.n + one.n, was.right + one.right, was.stated + one.stated}
}

// Plus returns the sum of both.
func (c Calibration) Plus(d Calibration) Calibration {
	sum := Calibration{maps.Clone(c.cells)}
	for key, one := range d.cells {
		sum.enter(key, one)
	}
	return sum
}

// A CalibrationReport says how stated probabilities compare with what humans chose. Its JSON
// form is stable.
type CalibrationReport struct {
	Looks  int64 `json:"looks"`  // rounds that a human has looked at
	Enough bool  `json:"enough"` // Looks is 30 or more: below that the figures say nothing
	// ECE is the expected calibration error: the difference of P and Right in the bins, weighted
	// as they are; nil without looks.
	ECE  *exact.Billionths `json:"ece,omitempty"`
	Bins []CalibrationBin  `json:"bins"` // ten, in order
}

// A CalibrationBin are the rounds whose stated probability was From or more and below To; of
// the last, or To. P to High are nil without looks.
type CalibrationBin struct {
	From  exact.Billionths  `json:"from"`
	To    exact.Billionths  `json:"to"`
	N     int64             `json:"n"`               // looks
	P     *exact.Billionths `json:"p,omitempty"`     // weighted mean of what was stated
	Right *exact.Billionths `json:"right,omitempty"` // weighted share in which the human chose the pick
	// Low and High are the Clopper-Pearson interval of Right at 90 %, for as many looks as the
	// weighted ones are worth: the square of the sum of weights by the sum of their squares
	// (Kish 1965; Korn, Graubard 1998).
	Low  *exact.Billionths `json:"low,omitempty"`
	High *exact.Billionths `json:"high,omitempty"`
}

// calibrationConfidence is that of the interval of a bin.
const calibrationConfidence = .9

// Report works out the figures.
func (c Calibration) Report() CalibrationReport {
	r := CalibrationReport{Bins: make([]CalibrationBin, Bins)}
	var sums [Bins]weighted
	keys := slices.SortedFunc(maps.Keys(c.cells), func(a, b calibrationCell) int {
		return cmp.Or(cmp.Compare(a.bin, b.bin), cmp.Compare(a.prob, b.prob))
	})
	all := 0.
	for _, key := range keys {
		one := c.cells[key]
		r.Looks += one.n
		r.Bins[key.bin].N += one.n
		all += sums[key.bin].add(one, 1/key.prob.Float())
	}
	r.Enough = r.Looks >= EnoughLooks
	off := 0.
	for i := range r.Bins {
		b := &r.Bins[i]
		b.From, b.To = exact.One/Bins*exact.Billionths(i), exact.One/Bins*exact.Billionths(i+1)
		if b.N > 0 {
			off += sums[i].fill(b)
		}
	}
	if r.Looks > 0 {
		r.ECE = new(billionths(off / all))
	}
	return r
}

// weighted are sums of looks over their weights.
type weighted struct{ all, squares, right, stated float64 }

// add counts looks of one weight, and returns the sum of these weights.
func (s *weighted) add(one looked, weight float64) float64 {
	sum := float64(weight * float64(one.n))
	s.all += sum
	s.squares += float64(weight * sum)
	s.right += float64(weight * float64(one.right))
	s.stated += float64(weight*float64(one.stated)) / 1e9
	return sum
}

// fill enters the figures of a bin, and returns how far off it is, times its weight.
func (s *weighted) fill(b *CalibrationBin) float64 {
	p, right, worth := s.stated/s.all, s.right/s.all, float64(s.all*s.all)/s.squares
	low, high := ClopperPearson(float64(right*worth), worth, calibrationConfidence)
	b.P, b.Right, b.Low, b.High = new(billionths(p)), new(billionths(right)), new(billionths(low)), new(billionths(high))
	return math.Abs(s.stated - s.right)
}
