package runner

import (
	"context"
	"encoding/json"
	"math"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// An Evaluation compares what a specialist proposed with what humans decided.
type Evaluation struct {
	SpecialistID       string      `json:"specialistId"`
	MachineName        string      `json:"machineName"`
	Rounds             int         `json:"rounds"` // in which it proposed; all rates are shares of them
	MatchingTransition int         `json:"matchingTransition"`
	MatchingState      int         `json:"matchingState"`
	TransitionRate     float64     `json:"transitionRate"`
	StateRate          float64     `json:"stateRate"`
	TotalCostUSD       exact.Money `json:"totalCostUSD"`
	MeanLatencyMsec    float64     `json:"meanLatencyMsec"` // of the answers that took any time
}

// EvaluateAlignment evaluates a specialist over the first maxRounds human
// decisions in whose rounds it proposed; 0 means all. It reads history only.
func (r *Runner) EvaluateAlignment(ctx context.Context, machineName, id string, maxRounds int) (Evaluation, error) {
	return r.evaluateOver(ctx, machineName, id, func(own []ownProposal) []ownProposal {
		if maxRounds > 0 {
			own = own[:min(maxRounds, len(own))]
		}
		return own
	})
}

// EvaluateAccuracy evaluates a specialist over the last lookback human decisions
// in whose rounds it proposed; 0 means all. It reads history only.
func (r *Runner) EvaluateAccuracy(ctx context.Context, machineName, id string, lookback int) (Evaluation, error) {
	return r.evaluateOver(ctx, machineName, id, func(own []ownProposal) []ownProposal {
		if lookback > 0 {
			own = own[max(0, len(own)-lookback):]
		}
		return own
	})
}

// An ownProposal is what a specialist proposed in a round that a human decided.
type ownProposal struct {
	usage
	SpecialistID   string `json:"specialistId"`
	TransitionName string `json:"transitionName"`
	ToState        string `json:"toState"`

	decided specialist.Exemplar
}

func (r *Runner) evaluateOver(ctx context.Context, machineName, id string, choose func([]ownProposal) []ownProposal) (Evaluation, error) {
	exemplars, err := r.store.Exemplars(ctx, machineName, "", 0)
	if err != nil {
		return Evaluation{}, err
	}
	var own []ownProposal
	for _, e := range exemplars {
		var proposals []ownProposal
		if err := json.Unmarshal(e.Proposals, &proposals); err != nil {
			return Evaluation{}, &CorruptError{"exemplar " + e.ExemplarID, err.Error()}
		}
		for _, p := range proposals {
			if p.SpecialistID == id {
				p.decided = e
				own = append(own, p)
			}
		}
	}
	v := Evaluation{SpecialistID: id, MachineName: machineName}
	v.add(choose(own))
	return v, nil
}

func (v *Evaluation) add(own []ownProposal) {
	var latency, timed int64
	for _, p := range own {
		v.Rounds++
		if p.TransitionName == p.decided.HumanTransitionName {
			v.MatchingTransition++
		}
		if p.ToState == p.decided.HumanToState {
			v.MatchingState++
		}
		u := p.value()
		v.TotalCostUSD = v.TotalCostUSD.Add(u.CostUSD)
		if u.LatencyMsec > 0 {
			latency, timed = latency+u.LatencyMsec, timed+1
		}
	}
	v.TransitionRate, v.StateRate = ratio(v.MatchingTransition, v.Rounds), ratio(v.MatchingState, v.Rounds)
	if timed > 0 {
		v.MeanLatencyMsec = math.Round(float64(latency)/float64(timed)*1e3) / 1e3
	}
}

// Exemplars returns the newest human decisions in a state, the oldest first;
// state "" means all states, limit 0 as many as are kept in view.
func (r *Runner) Exemplars(ctx context.Context, machineName, state string, limit int) ([]specialist.Exemplar, error) {
	return r.store.Exemplars(ctx, machineName, state, limit)
}

// Alignment returns the alignment records of a machine.
func (r *Runner) Alignment(ctx context.Context, machineName string) ([]trust.Record, error) {
	b, err := r.store.Book(ctx, machineName)
	return b.Records(machineName), err
}

// SelectChampion returns the enabled AI proposer of highest alignment in the
// session's present state, the first in the roster among equals, if its alignment
// reaches the bar; "" if nobody does. bar 0 means trust.Trusted.
func (r *Runner) SelectChampion(ctx context.Context, s *Session, bar exact.Billionths) (string, error) {
	if bar == 0 {
		bar = trust.Trusted
	}
	t, err := r.begin(ctx, s)
	if err != nil {
		return "", err
	}
	members := t.members()
	weights, err := t.weigh(ctx, members)
	if err != nil {
		return "", err
	}
	if best := favourite(members, weights, bar); best != nil {
		return best.SpecialistID, nil
	}
	return "", nil
}
