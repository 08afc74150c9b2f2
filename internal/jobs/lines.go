package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/lab/simulate"
)

// The lines in which --json prints what came of the work, and what is made of them where they
// are read again: at the terminal of whoever had a server do it. docs/json.md describes them.

// FlipLine is one round that is decided otherwise.
type FlipLine struct {
	Kind string `json:"kind"` // flip
	backtest.Flip
}

// FlipOf returns the line of a flip.
func FlipOf(f backtest.Flip) FlipLine { return FlipLine{"flip", f} }

// BacktestLine is a state, a machine or the sum.
type BacktestLine struct {
	Kind string `json:"kind"` // state, machine or summary
	backtest.Result
	Sessions   int                  `json:"sessions,omitempty"`
	Verdicts   *int                 `json:"verdicts,omitempty"`   // given again, without changes
	Reproduced *int                 `json:"reproduced,omitempty"` // of those, with the same outcome
	Guards     *guardlog.GatesAgain `json:"guards,omitempty"`
}

// BacktestLines returns the lines of a back-test behind those of its flips. gates is nil without
// guards; changed says that anything was tried.
func BacktestLines(r *backtest.Report, gates *guardlog.GatesAgain, changed bool) (lines []any) {
	if gates != nil {
		for _, c := range gates.Changes {
			lines = append(lines, c)
		}
	}
	for _, s := range r.States {
		lines = append(lines, BacktestLine{Kind: "state", Result: s})
	}
	for _, m := range r.Machines {
		lines = append(lines, BacktestLine{Kind: "machine", Result: m})
	}
	sum := BacktestLine{Kind: "summary", Result: r.Total, Sessions: r.Sessions, Guards: gates}
	if !changed {
		sum.Verdicts, sum.Reproduced = &r.Verdicts, &r.Reproduced
	}
	return append(lines, sum)
}

// ReadBacktest makes of the lines of a back-test what they were made of, as far as it is shown.
// flip is called with each round that is decided otherwise.
func ReadBacktest(text []byte, flip func(backtest.Flip) error) (*backtest.Report, *guardlog.GatesAgain, error) {
	r := &backtest.Report{}
	var gates *guardlog.GatesAgain
	var changes []guardlog.GateChange
	for line := range bytes.Lines(text) {
		var of struct{ Kind string }
		var round FlipLine
		var gate guardlog.GateChange
		var sum BacktestLine
		err := json.Unmarshal(line, &of)
		switch {
		case err != nil:
		case of.Kind == "flip":
			if err = json.Unmarshal(line, &round); err == nil {
				err = flip(round.Flip)
			}
		case of.Kind == "gate":
			err = json.Unmarshal(line, &gate)
			changes = append(changes, gate)
		default:
			err = json.Unmarshal(line, &sum)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the lines of a back-test: %w", err)
		}
		switch of.Kind {
		case "state":
			r.States = append(r.States, sum.Result)
		case "machine":
			r.Machines = append(r.Machines, sum.Result)
		case "summary":
			r.Total, r.Sessions, gates = sum.Result, sum.Sessions, sum.Guards
			if sum.Verdicts != nil && sum.Reproduced != nil {
				r.Verdicts, r.Reproduced = *sum.Verdicts, *sum.Reproduced
			}
		}
	}
	if gates != nil {
		gates.Changes = changes
	}
	return r, gates, nil
}

// The lines of a simulation.
type (
	PointLine struct {
		Kind string `json:"kind"` // point
		simulate.Point
	}
	VoterLine struct {
		Kind string `json:"kind"` // specialist
		simulate.Record
	}
	EventLine struct {
		Kind string `json:"kind"` // event
		simulate.Event
	}
	SimulationLine struct {
		Kind    string `json:"kind"` // summary
		Machine string `json:"machine"`
		simulate.Summary
	}
)

// SimulationLines returns the lines of a simulation.
func SimulationLines(r *simulate.Report) (lines []any) {
	for _, p := range r.Curve {
		lines = append(lines, PointLine{"point", p})
	}
	for _, v := range r.Voters {
		lines = append(lines, VoterLine{"specialist", v})
	}
	for _, e := range r.Events {
		lines = append(lines, EventLine{"event", e})
	}
	return append(lines, SimulationLine{"summary", r.Machine, r.Summary})
}
