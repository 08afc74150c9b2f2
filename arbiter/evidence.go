package arbiter

import "github.com/dialai/dialai/internal/trust"

// Evidence is what the strategy bayes decides a round by, besides its votes. It
// is shared between rounds and never changed.
type Evidence struct {
	Ledger *trust.Ledger // never nil
	Place  int64         // Lesson.Seq of the newest lesson in Ledger; 0 if there is none
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
			q.Votes[i].Model, q.Votes[i].OptionOrder = v.Detail.Model, trust.OrderKey(v.Detail.OptionOrder)
		}
	}
	return q
}

// Judged makes a decision of a judgement.
func Judged(j *trust.Judgement) Decision {
	d := Decision{Winner: NoWinner, Rule: ByJudgement, Judgement: j, Subject: j.Pick}
	if j.Code == trust.Decided {
		d.Winner = j.Winner
	}
	return d
}
