package session

import (
	"github.com/dialai/dialai/machine"
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
func known(a *Ask, u specialist.Usage, model string) specialist.Usage {
	switch {
	case u != specialist.Usage{}:
	case a.Source != specialist.Model:
		u.Given = specialist.CostGiven
	case model == "":
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

// closeAsk charges what came of an ask of the round.
func (o *OpenRound) closeAsk(s *Session, index int32, id string, e payEvent, u specialist.Usage, model string) {
	a := o.At(index)
	if index == 0 || a == nil || a.Remote == nil {
		o.charge(s, id, u, model)
		return
	}
	a.account = o.book(s, a.Ask, a.account, e, a.Remote.Repeat, known(a.Ask, u, model), model)
}

// abandon charges an ask that nobody waits for any more: a late answer corrects that.
func (o *OpenRound) abandon(s *Session, a *AskState) {
	if a.Remote != nil {
		a.account = o.book(s, a.Ask, a.account, abandoned, a.Remote.Repeat, expected(a.Ask), "")
	}
}

// chargeOpen charges the asks that are still out when their round, in state st, is
// over.
func chargeOpen(s *Session, o *OpenRound, st *machine.State) {
	for i := range o.Asks {
		a := &o.Asks[i]
		if a.Status != AskStatusOpen {
			continue
		}
		a.Status = AskStatusCancelled
		if c := s.Program.Guards(st); guardsOwn(a.SpecialistID) && (c == nil || !c.DebitsProbes()) {
			a.account = o.book(s, a.Ask, a.account, notCharged, a.Remote.Repeat, specialist.Usage{}, "")
			continue
		}
		o.abandon(s, a)
	}
}

// chargeOutside charges an ask that was answered by a proposal from outside. Where
// somebody waits for another answer to it, that will say what it cost, and the
// proposal is charged beside it; else the proposal has said.
func (o *OpenRound) chargeOutside(s *Session, a *AskState, d *Proposed, model string) (proposalCharged bool) {
	if a.Remote == nil || !a.Remote.Accepted {
		o.abandon(s, a)
		return false
	}
	o.closeAsk(s, a.Index, a.SpecialistID, said, d.Usage, model)
	return true
}

// chargeArbiter charges an arbiter's ask that is still out when the proposals
// change: nobody waits for its answer any more.
func (o *OpenRound) chargeArbiter(s *Session) {
	for i := range o.Asks {
		if a := &o.Asks[i]; a.Status == AskStatusOpen && a.Role == machine.Arbiter {
			o.abandon(s, a)
		}
	}
}

// takeOver makes known the ask as another process repeats it. What a model was asked
// before is charged, for it is paid again.
func (o *OpenRound) takeOver(s *Session, known *AskState, again *Ask) {
	if r := again.Remote; r != nil && known.Remote != nil && known.Status == AskStatusOpen && r.Repeat > known.Remote.Repeat {
		if r.Lost {
			o.abandon(s, known)
		}
		known.account = known.account.repeated(r.Repeat, r.Lost)
	}
	known.Ask = again
}

// chargeDiscarded charges an answer that came when nobody waited for it: to the
// account of its ask, whose round may be over, or, unasked, at once.
func chargeDiscarded(s *Session, o *OpenRound, d *Discarded, model string) {
	cost := o.Cost
	switch a, owed := o.At(d.Ask), s.owed(d.Round, d.Attempt, d.Ask); {
	case d.Usage == specialist.Usage{}:
	case d.Ask == 0:
		o.charge(s, d.SpecialistID, d.Usage, model)
		o.Cost = cost
	case owed != nil: // also of the last round of a session that has ended
		e := failure(d.Code, d.Usage)
		s.owing = s.owing.with(owed, o.book(s, owed.ask, owed.account, e, d.Repeat, d.Usage, model))
		o.Cost = cost
	case a != nil && a.Remote != nil && d.Round == s.Round && d.Attempt == s.Attempt:
		a.account = o.book(s, a.Ask, a.account, failure(d.Code, d.Usage), d.Repeat, d.Usage, model)
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
