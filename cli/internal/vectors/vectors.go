// Package vectors runs test vectors through the public packages and prints the actual
// results. It never looks at what a case expects.
package vectors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A vector is one case; which members it has says what it is about.
type vector struct {
	Name     string `json:"name"`
	Suite    string `json:"suite"` // of the guards; "" for other cases
	Strategy string `json:"strategy"`

	Proposals []struct {
		ProposalID     string  `json:"proposalId"`
		SpecialistID   string  `json:"specialistId"`
		TransitionName string  `json:"transitionName"`
		CreatedAt      float64 `json:"createdAt"`
	} `json:"proposals"`
	AlignmentScores map[string]float64 `json:"alignmentScores"`
	Threshold       *float64           `json:"threshold"`

	Matches *int64   `json:"matches"`
	Total   int64    `json:"total"`
	Z       *float64 `json:"z"`
}

// A Program runs a command line and returns its exit code.
type Program func(argv []string, in io.Reader, out, err io.Writer) int

// Run prints a line for each case of a JSON array, or for each step of one, whatever the
// others are like. What cannot be run has an error as its result, and is an error in the
// end. Nothing is run of what is no array.
func Run(ctx context.Context, out io.Writer, data []byte, program Program) error {
	var cases []json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&cases); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is more after the array")
	}
	r := &run{out, program}
	var failed []error
	for i, raw := range cases {
		name, err := r.one(ctx, raw)
		if err != nil {
			failed = append(failed, fmt.Errorf("case %d (%s): %w", i, name, err))
		}
	}
	return errors.Join(failed...)
}

// A run is what cases are run with.
type run struct {
	out     io.Writer
	program Program
}

func (r *run) one(ctx context.Context, raw json.RawMessage) (name string, err error) {
	var v vector
	var result any
	if err = json.Unmarshal(raw, &v); err == nil {
		if v.Suite != "" {
			return v.Name, r.guards(ctx, raw)
		}
		result, err = v.run(ctx)
	}
	return v.Name, errors.Join(err, render.JSON(r.out, struct {
		Name   string `json:"name"`
		Result any    `json:"result"`
	}{v.Name, orFailed(result, err)}))
}

// orFailed returns the result of a case, or that it has none.
func orFailed(result any, err error) any {
	if err == nil {
		return result
	}
	return struct {
		Error string `json:"error"`
	}{err.Error()}
}

func (v *vector) run(ctx context.Context) (any, error) {
	switch {
	case v.Strategy != "":
		return v.arbitrate(ctx)
	case v.Matches != nil:
		return v.wilson()
	}
	return nil, fmt.Errorf("it has neither a strategy nor matches")
}

func (v *vector) wilson() (any, error) {
	z := trust.Z
	if v.Z != nil {
		z = *v.Z
	}
	score := trust.Wilson(*v.Matches, v.Total, z)
	billionths, err := exact.FromFloat(score)
	if err != nil {
		return nil, err
	}
	return struct {
		Score      float64 `json:"score"`
		Billionths int64   `json:"billionths"`
	}{score, int64(billionths)}, nil
}

func (v *vector) arbitrate(ctx context.Context) (any, error) {
	by, err := strategies.Registry{}.Arbiter(nil, &machine.Specialist{StrategyFnName: v.Strategy})
	if by == nil || err != nil {
		return nil, fmt.Errorf("unknown strategy %q", v.Strategy)
	}
	round := &arbiter.Round{}
	if v.Threshold != nil {
		t, err := machine.NewThreshold(*v.Threshold)
		if err != nil {
			return nil, err
		}
		round.Threshold = &t
	}
	for i, p := range v.Proposals {
		weight, err := exact.FromFloat(v.AlignmentScores[p.SpecialistID])
		if err != nil {
			return nil, fmt.Errorf("score of %s: %w", p.SpecialistID, err)
		}
		round.Votes = append(round.Votes, arbiter.Vote{Weight: weight, Rank: int32(i), Proposal: &specialist.Proposal{
			SpecialistID: p.SpecialistID, Transition: &machine.Transition{Name: p.TransitionName},
			CreatedAt: specialist.Time(math.Round(p.CreatedAt)), Arrival: int32(i + 1),
		}})
	}
	d, err := by.Decide(ctx, round)
	if err != nil {
		return nil, err
	}
	var winner *string
	if d.Consensus() {
		winner = &v.Proposals[d.Winner].ProposalID
	}
	return struct {
		ConsensusReached bool    `json:"consensusReached"`
		Winner           *string `json:"winner"`
		Reasoning        string  `json:"reasoning"`
	}{d.Consensus(), winner, d.Reasoning()}, nil
}
