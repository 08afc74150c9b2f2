package explain

import (
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// A Distance says how far the round was from another outcome.
type Distance struct {
	Measure string           `json:"measure"` // one of the measures below
	Has     exact.Billionths `json:"has"`
	Needs   exact.Billionths `json:"needs"`
	Missing exact.Billionths `json:"missing"` // Needs - Has: below 0 is to spare
	// Weight is the least further alignment behind For that changes the outcome,
	// where a human's vote is 1; nil if none does. Of alignmentMargin only.
	Weight *exact.Billionths `json:"weight,omitempty"`
	For    string            `json:"for,omitempty"` // a transition
	To     string            `json:"to,omitempty"`  // which is decided then, or leads by probability; "" if a human must decide
}

// The measures of a Distance. Where no margin was compared there is only the
// weight: Has, Needs and Missing are 0.
const (
	ByProbability = "probability"
	ByOutcomes    = "outcomes" // human decisions of the machine
	ByMargin      = "margin"
	ByWeight      = "weight"
)

// distance says how far the decision is from another; nil if that is no number.
func (a *again) distance(d arbiter.Decision) *Distance {
	switch j := d.Judgement; {
	case d.Rule == arbiter.ByChampion || d.Rule == arbiter.Held:
		return nil // no probability decides
	case j != nil && j.Best >= 0:
		return judgementDistance(j)
	case a.margin && d.Rule != arbiter.Untrusted:
		return a.marginDistance(d)
	}
	return nil
}

func judgementDistance(j *trust.Judgement) *Distance {
	at := &Distance{Measure: ByProbability, Has: j.P[j.Best], For: j.Pick}
	switch {
	case j.N < trust.CalibratedFrom:
		at = &Distance{Measure: ByOutcomes, Has: exact.Billionths(j.N) * exact.One, Needs: trust.CalibratedFrom * exact.One}
	case j.Threshold != nil:
		at.Needs = *j.Threshold
	case j.Risk == nil || j.Risk.Tau == 0:
		return nil
	default:
		at.Needs = j.Risk.Tau
	}
	if second, half := runnerUp(j); at.Has >= at.Needs && half > at.Needs {
		at.Needs, at.To = half, second // the other would be decided before nobody is
	}
	at.Missing = at.Needs - at.Has
	return at
}

// runnerUp returns the next most probable transition, and the probability at which
// the pick and it would be even; "" and 0 without one.
func runnerUp(j *trust.Judgement) (second string, half exact.Billionths) {
	for t, p := range j.P {
		if even := (j.P[j.Best] + p) / 2; t != j.Best && even > half {
			second, half = j.Options[t], even
		}
	}
	return second, half
}

// mostWeight is as much further weight as is ever tried: a thousand humans.
const mostWeight = 1000 * exact.One

// marginDistance asks by how much more weight the outcome would change: behind the
// runner-up where the leader has won, else behind the leader.
func (a *again) marginDistance(d arbiter.Decision) *Distance {
	at := &Distance{Measure: ByWeight, For: a.leader()}
	if d.Rule == arbiter.MarginReached || d.Rule == arbiter.MarginBelow {
		at = &Distance{Measure: ByMargin, Has: d.Margin, Needs: d.Threshold.Weight, Missing: d.Threshold.Weight - d.Margin, For: at.For}
	}
	was := decided(d, a.round.Votes)
	if was != "" {
		at.For = a.rival(was)
	}
	option := a.round.State.Transition(at.For)
	if option == nil {
		return at // there is only one transition
	}
	var to string
	differs := func(w exact.Billionths) bool {
		further := &specialist.Proposal{Transition: option}
		votes := append(slices.Clone(a.round.Votes), arbiter.Vote{Proposal: further, Weight: w, Rank: 1 << 30})
		d, err := a.decide(votes)
		to = decided(d, votes)
		return err == nil && to != was
	}
	if w, found := least(mostWeight, differs); found {
		differs(w)
		at.Weight, at.To = &w, to
	}
	return at
}

// least returns the least weight up to most for which is holds, which holds for
// all greater ones too.
func least(most exact.Billionths, is func(exact.Billionths) bool) (exact.Billionths, bool) {
	if !is(most) {
		return 0, false
	}
	low := exact.Billionths(-1) // does not hold
	for most-low > 1 {
		if middle := low + (most-low)/2; is(middle) {
			most = middle
		} else {
			low = middle
		}
	}
	return most, true
}

// rival returns the transition that comes next after the winning one; if nobody
// proposed another, the first other one.
func (a *again) rival(winner string) string {
	scores := a.round.Tally(nil)
	_, second := arbiter.Leaders(scores, func(s arbiter.Score) exact.Billionths { return s.Sum })
	if second >= 0 && scores[second].Transition.Name != winner {
		return scores[second].Transition.Name
	}
	for _, s := range scores { // the winner was not the leader
		if s.Transition.Name != winner {
			return s.Transition.Name
		}
	}
	for _, t := range a.round.State.Transitions {
		if t.Name != winner {
			return t.Name
		}
	}
	return ""
}
