package strategies

import (
	"context"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/trust"
)

// Bayes weighs every vote by what the recorded outcomes say of its author, and
// decides alone only where they say enough: see [trust.Ledger.Judge]. Without
// recorded outcomes it leaves every round to a human.
type Bayes struct{}

// Decide implements [arbiter.Arbiter]. It never fails.
func (Bayes) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	ledger := r.Evidence.Ledger
	if ledger == nil {
		ledger = trust.New()
	}
	j := ledger.Judge(Question(r))
	d := arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.Judged, Judgement: &j, Subject: j.Pick}
	if j.Code == trust.Decided {
		d.Winner = j.Winner
	}
	return d, nil
}

// Settled implements [arbiter.Stopper]: never, since every answer teaches and
// moves a probability. Asking in waves has stop rules of its own.
func (Bayes) Settled(*arbiter.Round, []arbiter.Standing) bool { return false }

// Question returns a round as the ledger is asked it.
func Question(r *arbiter.Round) trust.Question {
	transitions := r.State.Transitions
	q := trust.Question{
		Machine: r.Machine.Name(), State: r.State.Name,
		Options: make([]string, len(transitions)), Irreversible: make([]bool, len(transitions)),
		Removed: r.Evidence.Removed, Partial: r.Evidence.Partial,
		PolicyDigest: r.Evidence.PolicyDigest, Policy: r.Evidence.Policy,
		Votes: make([]trust.Vote, len(r.Votes)),
	}
	for i, t := range transitions {
		q.Options[i], q.Irreversible[i] = t.Name, t.Irreversible
	}
	for i := range r.Votes {
		v := &r.Votes[i]
		q.Votes[i] = trust.Vote{SpecialistID: v.SpecialistID, Version: v.Version, Model: v.Model, Option: v.Transition.Index, Human: v.IsHuman}
		if v.Detail != nil {
			q.Votes[i].OptionOrder = trust.OrderKey(v.Detail.OptionOrder)
		}
	}
	return q
}
