package report

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
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
func EvaluateAlignment(ctx context.Context, r *runner.Runner, machineName string, id machine.SpecialistID, maxRounds int) (Evaluation, error) {
	return evaluateOver(ctx, r.Store(), machineName, id, func(own []ownProposal) []ownProposal {
		if maxRounds > 0 {
			own = own[:min(maxRounds, len(own))]
		}
		return own
	})
}

// EvaluateAccuracy evaluates a specialist over the last lookback human decisions
// in whose rounds it proposed; 0 means all. It reads history only.
func EvaluateAccuracy(ctx context.Context, r *runner.Runner, machineName string, id machine.SpecialistID, lookback int) (Evaluation, error) {
	return evaluateOver(ctx, r.Store(), machineName, id, func(own []ownProposal) []ownProposal {
		if lookback > 0 {
			own = own[max(0, len(own)-lookback):]
		}
		return own
	})
}

// An ownProposal is what a specialist proposed in a round that a human decided.
type ownProposal struct {
	SpecialistID   string `json:"specialistId"`
	TransitionName string `json:"transitionName"`
	ToState        string `json:"toState"`

	usage   specialist.Usage
	decided specialist.Exemplar
}

// UnmarshalJSON reads a proposal as exemplars keep it.
func (p *ownProposal) UnmarshalJSON(data []byte) error {
	type named ownProposal
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &members), json.Unmarshal(data, (*named)(p))); err != nil {
		return err
	}
	var err error
	p.usage, err = specialist.ReadUsage(func(name string) []byte { return members[name] })
	return err
}

func evaluateOver(ctx context.Context, s session.Store, machineName string, id machine.SpecialistID, choose func([]ownProposal) []ownProposal) (Evaluation, error) {
	exemplars, err := s.Exemplars(ctx, machineName, "", 0)
	if err != nil {
		return Evaluation{}, err
	}
	var own []ownProposal
	for _, e := range exemplars {
		var proposals []ownProposal
		if err := json.Unmarshal(e.Proposals, &proposals); err != nil {
			return Evaluation{}, &session.CorruptError{What: "exemplar " + e.ExemplarID, Problem: err.Error()}
		}
		for _, p := range proposals {
			if p.SpecialistID == string(id) {
				p.decided = e
				own = append(own, p)
			}
		}
	}
	v := Evaluation{SpecialistID: string(id), MachineName: machineName}
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
		u := p.usage
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
