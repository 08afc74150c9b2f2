package arbiter

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/trust"
)

// Evidence is what the strategy bayes decides a round by, besides its votes. It
// is shared between rounds and never changed.
type Evidence struct {
	Ledger *trust.Ledger // never nil
	Place  int64         // Outcome.Seq of the newest outcome in Ledger; 0 if there is none
	// Question is all of the round's question but the votes.
	Question trust.Question
}

// Ask returns the question that r puts to the ledger.
func (e *Evidence) Ask(r *Round) trust.Question {
	q := e.Question
	q.Votes = make([]trust.Vote, len(r.Votes))
	for i := range r.Votes {
		v := &r.Votes[i]
		q.Votes[i] = trust.Vote{SpecialistID: v.SpecialistID, Version: v.Version, Option: v.Transition.Index, Human: v.IsHuman}
		if v.Detail != nil {
			q.Votes[i].Model, q.Votes[i].OptionOrder = v.Detail.Model, OrderKey(v.Detail.OptionOrder)
		}
	}
	return q
}

// OrderKey returns a text that is equal for equal orders of options; "" for the
// declared one.
func OrderKey(order []string) string {
	if len(order) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", order)
}

// Judged makes a decision of a judgement.
func Judged(j *trust.Judgement) Decision {
	d := Decision{Winner: NoWinner, Rule: ByJudgement, Judgement: j}
	switch j.Code {
	case trust.NoProposals:
		d.Rule, d.Judgement = NoProposals, nil
	case trust.Irreversible:
		d.Rule, d.Subject = Irreversible, j.Pick
	case trust.Decided:
		d.Winner = j.Winner
	}
	return d
}

// sayJudgement puts the outcome of a judgement in words.
func sayJudgement(j *trust.Judgement) string {
	p := exact.Billionths(0)
	if j.Best >= 0 {
		p = j.P[j.Best]
	}
	switch j.Code {
	case trust.Decided:
		return sayDecided(j, p)
	case trust.ColdStart:
		return fmt.Sprintf("Cold start: %d of %d human decisions recorded, human input required", j.N, trust.CalibratedFrom)
	case trust.BelowThreshold:
		return fmt.Sprintf("Probability %s of %q below threshold %s, human input required", p.Text2(), j.Pick, j.Threshold)
	case trust.BelowTau:
		return fmt.Sprintf("Probability %s of %q below %s, human input required (%s)", p.Text2(), j.Pick, j.Risk.Tau, sayPromise(j.Risk.Promise))
	case trust.CannotReach:
		return fmt.Sprintf("Probability %s of %q, and no answer that is still out could decide, human input required", p.Text2(), j.Pick)
	case trust.RiskNotEstablished:
		return sayUnestablished(j)
	}
	return string(j.Code)
}

func sayDecided(j *trust.Judgement, p exact.Billionths) string {
	switch {
	case len(j.Options) == 1:
		return fmt.Sprintf("%q is the only transition", j.Pick)
	case j.Risk != nil:
		return fmt.Sprintf("Probability %s of %q >= %s (%s)", p.Text2(), j.Pick, j.Risk.Tau, sayPromise(j.Risk.Promise))
	}
	return fmt.Sprintf("Probability %s of %q >= threshold %s", p.Text2(), j.Pick, j.Threshold)
}

func sayPromise(p trust.Promise) string {
	return fmt.Sprintf("maxError %s, confidence %s", p.MaxError, p.Confidence)
}

func sayUnestablished(j *trust.Judgement) string {
	p := sayPromise(j.Risk.Promise)
	switch j.Risk.State {
	case trust.Unattainable:
		return fmt.Sprintf("The promise (%s) cannot be kept by these specialists, human input required", p)
	case trust.Lost:
		return fmt.Sprintf("The promise (%s) was lost and is being tested again, human input required", p)
	}
	return fmt.Sprintf("The promise (%s) is not established yet by %d human decisions, human input required", p, j.N)
}
