// Package trust works out, from recorded outcomes, what each specialist's word
// counts for.
//
// Only human decisions are outcomes. A [Book] holds the counts of one machine;
// it never changes, and [Book.With] returns the next one. Scores are Wilson
// lower bounds in billionths.
package trust

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// Z is the normal quantile of the alignment score: 97.5 %, one-sided.
const Z = 1.96

// Trusted is the score from which a specialist may be champion, and from which
// a lone proposal passes requireTrust.
const Trusted exact.Billionths = 800_000_000

// Wilson returns the lower bound of Wilson's score interval for k agreements in
// n comparisons, 0 unless n > 0 and 0 <= k <= n, as a float64. Source:
// E. B. Wilson, "Probable inference, the law of succession, and statistical
// inference", JASA 22, 1927.
func Wilson(k, n int64, z float64) float64 {
	if n <= 0 || k < 0 || k > n {
		return 0
	}
	return wilson(float64(k), float64(n), z)
}

// wilson is Wilson of counts that need not be whole, as those that a version inherits.
func wilson(k, n, z float64) float64 {
	if n <= 0 || k < 0 || k > n {
		return 0
	}
	p, size := k/n, n
	z2 := float64(z * z)
	// Products are rounded by hand, so that no compiler fuses them into the
	// sums and every architecture gets the same bits.
	margin := float64(z * math.Sqrt((float64(p*(1-p))+z2/(4*size))/size))
	return max(0, (p+z2/(2*size)-margin)/(1+z2/size))
}

// z90 is the normal quantile of a two-sided interval of 90 %.
const z90 = 1.645

// Interval returns Wilson's score interval for the share of k agreements in n comparisons at
// 90 %: 0 and 1 for n = 0.
func Interval(k, n int64) (low, high exact.Billionths) {
	return billionths(Wilson(k, n, z90)), billionths(1 - Wilson(n-k, n, z90))
}

// Score returns the alignment score of k agreements in n comparisons.
func Score(k, n int64) exact.Billionths {
	b, err := exact.FromFloat(Wilson(k, n, Z))
	if err != nil {
		return 0 // never: the bound lies in 0..1
	}
	return b
}

// A Key names one alignment record of a machine: a specialist, and the state if
// the state declares specialists of its own.
type Key struct {
	SpecialistID string `json:"specialistId"`
	State        string `json:"state,omitempty"` // "" for the machine
}

// A Tally counts comparisons with human decisions. The zero Tally is empty.
type Tally struct {
	Matching, Total int64
	Updated         specialist.Time
}

// Score returns the alignment score of t.
func (t Tally) Score() exact.Billionths { return Score(t.Matching, t.Total) }

// A Comparison is one outcome for one specialist: whether it proposed what a
// human then decided.
type Comparison struct {
	Key
	Match bool            `json:"match,omitempty"`
	At    specialist.Time `json:"at"`
	// Retracted says that the human takes back what was compared: it leaves the tally.
	Retracted bool `json:"retracted,omitempty"`
}

// A Book holds the tallies of one machine. It never changes and may be used
// concurrently; the zero Book is empty.
type Book struct{ tallies map[Key]Tally }

// NewBook returns a Book of the given tallies, which it copies.
func NewBook(tallies map[Key]Tally) *Book { return &Book{maps.Clone(tallies)} }

// Tally returns the counts of one record, zero if there is none.
func (b *Book) Tally(k Key) Tally {
	if b == nil {
		return Tally{}
	}
	return b.tallies[k]
}

// Score returns a specialist's alignment in the scope of a state; state is ""
// where the machine's specialists take part.
func (b *Book) Score(id, state string) exact.Billionths {
	return b.Tally(Key{id, state}).Score()
}

// With returns a Book in which the comparisons have been counted.
func (b *Book) With(comparisons ...Comparison) *Book {
	next := &Book{tallies: map[Key]Tally{}}
	if b != nil {
		maps.Copy(next.tallies, b.tallies)
	}
	for _, c := range comparisons {
		t, one := next.tallies[c.Key], c.Tally()
		t.Total, t.Matching = t.Total+one.Total, t.Matching+one.Matching
		t.Updated = max(t.Updated, c.At)
		next.tallies[c.Key] = t
	}
	return next
}

// Tally returns what the comparison adds to the counts.
func (c *Comparison) Tally() Tally {
	one := Tally{Total: 1, Updated: c.At}
	if c.Match {
		one.Matching = 1
	}
	if c.Retracted {
		one.Total, one.Matching = -one.Total, -one.Matching
	}
	return one
}

// A Record is one row of a Book as it is shown.
type Record struct {
	SpecialistID     string           `json:"specialistId"`
	MachineName      string           `json:"machineName"`
	State            string           `json:"state,omitempty"`
	MatchingChoices  int64            `json:"matchingChoices"`
	TotalComparisons int64            `json:"totalComparisons"`
	AlignmentScore   exact.Billionths `json:"alignmentScore"`
	LastUpdated      specialist.Time  `json:"lastUpdated"`
}

// Records returns every tally, by specialist and then state.
func (b *Book) Records(machineName string) []Record {
	if b == nil {
		return nil
	}
	records := make([]Record, 0, len(b.tallies))
	for k, t := range b.tallies {
		records = append(records, Record{
			SpecialistID: k.SpecialistID, MachineName: machineName, State: k.State,
			MatchingChoices: t.Matching, TotalComparisons: t.Total, AlignmentScore: t.Score(), LastUpdated: t.Updated,
		})
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.SpecialistID, b.SpecialistID), cmp.Compare(a.State, b.State))
	})
	return records
}
