package session

import (
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// What the events of a round mean for the accounts of its asks (account.go).

// expected returns what an ask is charged of which nobody says what it cost: as
// estimated, and if there is no estimate as a call, for it was sent.
func expected(a *Ask) specialist.Usage {
	u := a.Remote.Expected()
	if u == (specialist.Usage{}) {
		u.Given = specialist.CostGiven
	}
	return u
}

// known returns what is charged for what came of an ask. One that left this process
// is a call, whatever is known of its cost, unless it says that nothing was sent. Who
// asks a model says how often it did.
func known(a *Ask, u specialist.Usage, model spend.Called) specialist.Usage {
	switch {
	case u != specialist.Usage{}:
	case a.Source != specialist.Model:
		u.Given = specialist.CostGiven
	case model.Model == "":
		u = u.WithCalls(0, 0)
	}
	return u
}

// failure returns what a failed ask, or an answer that nobody waits for, means for its
// account. Of what was cancelled or not answered in time an answer may still come, for
// another process may be waiting for it.
func failure(code string, u specialist.Usage) payEvent {
	switch {
	case u.Made() == 0 && !u.Has(specialist.CostGiven):
		return sentNone
	case u.Estimated, u == specialist.Usage{} && (code == CodeCancelled || code == CodeTimeout || code == CodeLost):
		return unknown
	}
	return said
}

// abandon charges an ask that nobody waits for any more: a late answer corrects that.
func (o *OpenRound) abandon(s *Session, a *AskState) {
	c := s.Program.Guards(s.State)
	switch {
	case a.Remote == nil:
	case guardsOwn(a.SpecialistID) && (c == nil || !c.DebitsProbes()):
		a.account = o.book(s, a.Ask, a.account, notCharged, a.Remote.Repeat, specialist.Usage{}, spend.Called{})
	default:
		a.account = o.book(s, a.Ask, a.account, abandoned, a.Remote.Repeat, expected(a.Ask), spend.Called{})
	}
}

// closeAsks takes to all asks that their round is over.
func (o *OpenRound) closeAsks(s *Session) {
	for i := range o.Asks {
		o.take(s, &o.Asks[i], roundOver, statement{})
	}
}

// chargeDiscarded charges an answer that came when nobody waited for it: to the
// account of its ask, whose round may be over, or, unasked, at once.
func chargeDiscarded(s *Session, o *OpenRound, d *Discarded, model spend.Called) {
	cost, in := o.Cost, lateAnswer
	if d.Code == CodeTakenOver {
		in = formerAnswer
	}
	a, owed := o.At(d.Ask), s.owed(d.Round, d.Attempt, d.Ask)
	mine := a != nil && d.Round == s.Round && d.Attempt == s.Attempt
	switch {
	case d.Usage == specialist.Usage{}:
		if mine {
			a.Status = askTable[a.Status][in].to
		}
	case d.Ask == 0:
		o.charge(s, d.SpecialistID, d.Usage, model)
		o.Cost = cost
	case owed != nil: // also of the last round of a session that has ended
		e := failure(d.Code, d.Usage)
		s.owing = s.owing.with(owed, o.book(s, owed.ask, owed.account, e, d.Repeat, d.Usage, model))
		o.Cost = cost
	case mine:
		o.take(s, a, in, statement{failure(d.Code, d.Usage), d.Repeat, d.Usage, model})
	}
}

// Correct notes in an answer that comes when nobody waits for it what the session
// was charged for it before, as far as the answer knows better. It is there to be
// read: the fold corrects what the account says.
func (d *Discarded) Correct(charged specialist.Usage) {
	u := d.Usage
	if u.Has(specialist.CostGiven) || u.Made() == 0 {
		d.Charged, d.ChargedIn, d.ChargedOut = charged.CostUSD, charged.NumInputTokens, charged.NumOutputTokens
		return
	}
	if u.Has(specialist.InputGiven) {
		d.ChargedIn = charged.NumInputTokens
	}
	if u.Has(specialist.OutputGiven) {
		d.ChargedOut = charged.NumOutputTokens
	}
}
