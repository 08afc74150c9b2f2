package session

import (
	"cmp"
	"fmt"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// How the events of an account (account.go) reach what a session has spent, and whoever wants
// to know for whom and for what.

// A Charge is a part of what a session has spent, as an event has changed it: members are below
// zero where an answer takes back what was assumed before.
type Charge struct {
	SpecialistID string // who was asked; [TruthID] or [ClassifierID] for the guards' own questions
	Model        string // that is charged for; "" if it is none, or nobody has said
	Guards       bool   // the guards asked that themselves
	Book         spend.Book
}

// book takes one event of a request into the account of an ask, and charges the
// session what follows.
func (o *OpenRound) book(s *Session, ask *Ask, a *account, e payEvent, repeat int32, u specialist.Usage, model spend.Called) *account {
	if e == sentNone {
		u = expected(ask) // another request may have been answered
	}
	was := a.payment(repeat)
	is := was.after(e, repeat, o.positive(ask.SpecialistID, u))
	if is == was {
		return a
	}
	is.model = cmp.Or(model.Model, was.model)
	o.post(s, ask.SpecialistID, was, is, model)
	return a.with(repeat, is)
}

// post charges a session the difference that an event makes to a payment.
func (o *OpenRound) post(s *Session, id string, was, is payment, model spend.Called) {
	next, before := s.GuardState(), s.Spent()
	own, first := guardsOwn(id), was.state == reserved
	switch {
	case is.state == free, is.state == reserved, is.charged == was.charged && is.model == was.model && !first:
		return
	case first && own:
		next = next.ChargeProbe(is.charged, model.String())
	case first:
		next = next.Charge(is.charged, model.String())
	case own:
		next = next.CorrectProbe(was.charged, is.charged)
	default:
		next = next.Correct(was.charged, is.charged)
	}
	if !o.pay(s, id, next) || o.charged == nil {
		return
	}
	if !first { // what was charged is taken from whom it was charged to
		nothing := specialist.Usage{}.WithCalls(0, 0)
		o.charged(Charge{id, was.model, own, spend.Book{}.Correct(was.charged, nothing)})
		o.charged(Charge{id, is.model, own, spend.Book{}.Correct(nothing, is.charged)})
		return
	}
	o.charged(Charge{id, is.model, own, next.Spent.Minus(before)})
}

// charge charges a session what was not asked for outside this process.
func (o *OpenRound) charge(s *Session, id string, u specialist.Usage, model spend.Called) {
	if u == (specialist.Usage{}) && model.Model == "" {
		return // nothing was said of any cost
	}
	o.post(s, id, payment{}, payment{state: settled, charged: o.positive(id, u), model: model.Model}, model)
}

// pay makes next what the guards remember, and returns true, unless less than nothing were spent.
func (o *OpenRound) pay(s *Session, id string, next guard.State) bool {
	if b := next.Spent; b.Calls < 0 || b.TokensIn < 0 || b.TokensOut < 0 || b.Money < 0 {
		o.refused = fmt.Errorf("%w: after the answer of %s $%s in %d calls", ErrCharge, id, b.Money, b.Calls)
		return false
	}
	before := s.Spent().Money
	s.guard = &next
	o.Cost = o.Cost.Add(next.Spent.Money - before)
	return true
}

// positive returns u without members below zero. That there are some is an error.
func (o *OpenRound) positive(id string, u specialist.Usage) specialist.Usage {
	clean := u.Clean()
	if clean != u {
		o.refused = fmt.Errorf("%w: %s says that it cost $%s in %d calls, %d and %d tokens", ErrCharge, id, u.CostUSD, u.Made(), u.NumInputTokens, u.NumOutputTokens)
	}
	return clean
}
