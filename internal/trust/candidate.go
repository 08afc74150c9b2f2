package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// ClassFrom is the number of rounds in which humans chose a transition from which
// a candidate has to show that it finds that transition too.
const ClassFrom = 10

// A Target is what a specialist has to prove to decide a state alone.
type Target struct {
	Share      exact.Billionths // of agreement with humans, p0, in (0, 1)
	Alpha      exact.Billionths // chance of promoting somebody who does not reach it, in (0, 1)
	ClassShare exact.Billionths // the same share where humans chose one transition, in (0, 1)
	AnyRuling  bool             // also count rulings of humans who had seen proposals
	FromOthers bool             // let half the stakes follow what it showed in other states
	MoreTrials int64            // candidates to be counted on top of those the ledger knows
}

// A Candidate is the evidence that one version of a specialist may decide a state
// alone.
type Candidate struct {
	SpecialistID string           `json:"specialist"`
	Version      string           `json:"version"`
	Machine      string           `json:"machine"`
	State        string           `json:"state"`
	K            int64            `json:"k"` // agreements
	N            int64            `json:"n"` // in rounds that are a random sample
	E            float64          `json:"E"` // see EValue; at most the largest float64
	M            int64            `json:"M"` // candidates ever tested in this state
	Bar          float64          `json:"bar"`
	LowerBound   exact.Billionths `json:"lowerBound"` // of its share of agreement, valid whenever one looks
	Classes      []ClassEvidence  `json:"classes,omitempty"`
	From         int64            `json:"evidenceFrom"` // Outcome.Seq
	To           int64            `json:"evidenceTo"`
	Promotable   bool             `json:"promotable"` // E and that of every class with enough rounds have reached their bars
}

// ClassEvidence is a candidate's evidence in rounds where humans chose one
// transition.
type ClassEvidence struct {
	Transition string  `json:"transition"`
	K          int64   `json:"k"`
	N          int64   `json:"n"`
	E          float64 `json:"E"`
	Counts     bool    `json:"counts"` // N has reached ClassFrom
}

// Candidates returns everyone with evidence in a state, by specialist and version.
// A new version starts from nothing.
func (l *Ledger) Candidates(machine, state string, t Target) []Candidate {
	m := l.pools[machine]
	s := m.state(state)
	if s == nil {
		return nil
	}
	var list []Candidate
	for i, c := range s.cells {
		if c != nil && c.evidence.begun {
			list = append(list, l.candidate(m, s, int32(i), c, t))
		}
	}
	for i := range list {
		list[i].Machine = machine
	}
	slices.SortFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.SpecialistID, b.SpecialistID), cmp.Compare(a.Version, b.Version))
	})
	return list
}

func (l *Ledger) candidate(m *pool, s *stateCounts, member int32, cell *cell, t Target) Candidate {
	u := &l.units.list[m.list[member].unit]
	e := &cell.evidence
	seen := e.blind
	if t.AnyRuling {
		seen = e.all
	}
	alpha, p0 := t.Alpha.Float(), t.Share.Float()
	c := Candidate{
		SpecialistID: u.id, Version: u.version, State: s.name, K: seen.tally.k, N: seen.tally.n,
		M: s.tested + max(0, t.MoreTrials), From: e.from, To: e.to,
	}
	stakes := evenStakes
	if t.FromOthers {
		stakes = betaStakes(e.a, e.b, p0)
	}
	c.E, c.Bar = finiteExp(logEValue(c.K, c.N, p0, &stakes)), float64(c.M)/alpha
	c.LowerBound = LowerBound(c.K, c.N, alpha)
	c.Promotable = c.E >= c.Bar
	for class, k := range seen.byTruth {
		if k.n == 0 {
			continue
		}
		one := ClassEvidence{s.classes[class], k.k, k.n, finiteExp(logEValue(k.k, k.n, t.ClassShare.Float(), &evenStakes)), k.n >= ClassFrom}
		c.Promotable = c.Promotable && (!one.Counts || one.E >= 1/alpha)
		c.Classes = append(c.Classes, one)
	}
	slices.SortFunc(c.Classes, func(a, b ClassEvidence) int { return cmp.Compare(a.Transition, b.Transition) })
	return c
}

// finiteExp is exp, at most the largest number.
func finiteExp(x float64) float64 { return min(math.MaxFloat64, math.Exp(x)) }
