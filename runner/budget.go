package runner

import (
	"context"
	"slices"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A session's ledger is its log. What was spent is folded from it, and an ask
// that is recorded and not yet answered holds what it is expected to cost: asks
// are recorded, by compare-and-swap, before they are sent. So proposers that are
// asked at once, and processes that work on one session, never spend a budget
// together that none of them could spend alone, and no crash gives anything
// back.
//
// Four things say how much one ask may take. The budget is the limits of the session. The
// ask's hold is what it takes of them: its first call, which has to fit, and its spare,
// the calls for repairs that still fitted when everybody had a first. Both are recorded
// with the ask and end when it is settled. The ticket is the same for the quota of a
// tenant, which is shared by its sessions: it is taken when the ask is admitted, with those of
// all who are asked together, started when it is sent, and settled with what it cost.

// admit returns whom the budget lets be asked. Who would break a hard limit is
// recorded as a failed ask; who would only have to wait for others is left for
// later. Where those others are nobody but asks that are to be repeated themselves, what they
// hold is as good as spent for the first of them. What is left is set aside for repairs of
// those who are asked.
func (w *engine) admit(ctx context.Context, ask []*planning.Member) ([]*planning.Member, error) {
	b := w.budget()
	if w.holds = nil; b == nil && w.r.quota == nil {
		return ask, nil
	}
	if err := w.takeAll(ctx, ask); err != nil {
		return nil, err
	}
	defer w.dropUntaken()
	w.holds = map[string]*hold{}
	a := &repairBudget{engine: w, budget: b, spent: w.now.Spent()}
	held := w.held(w.repeated(ask)...)
	for {
		a.held, a.waiting = held, nil
		admitted, err := a.admitAll(ctx, ask)
		if err != nil {
			return nil, err
		}
		lost := w.repeated(a.waiting)
		if len(admitted) > 0 || held != (spend.Book{}) || len(lost) == 0 {
			a.setAside(ctx, admitted)
			return admitted, nil
		}
		ask, a.last = a.waiting, lost[0].SpecialistID // they wait for one another: nobody else will give anything back
	}
}

// admitAll returns who can be asked.
func (a *repairBudget) admitAll(ctx context.Context, ask []*planning.Member) ([]*planning.Member, error) {
	a.again = map[string]spend.Book{}
	for _, old := range a.repeated(ask) {
		a.again[old.SpecialistID] = old.Remote.Held()
	}
	admitted := ask[:0:0]
	for _, m := range ask {
		ok, err := a.admits(ctx, m)
		if err != nil {
			return nil, err
		}
		if ok {
			admitted = append(admitted, m)
		}
	}
	return admitted, nil
}

// admits reports whether one member can be asked, and holds what that needs, or
// records why not, or that it waits until others are settled.
func (a *repairBudget) admits(ctx context.Context, m *planning.Member) (ok bool, err error) {
	old, paid := a.repeats(m), a.spent
	delete(a.again, m.SpecialistID)
	if old != nil && m.Source != specialist.Model {
		a.held = a.held.Plus(old.Remote.Held())
		return true, a.keep(ctx, m.SpecialistID, a.need(m).first) // it is repeated under its key: what it costs is held already
	}
	if old != nil {
		paid = paid.Plus(guard.State{}.Charge(old.Remote.Expected(), "").Spent)
	}
	n := a.need(m)
	refused, overQuota := a.unpriced(n), false
	unpriced := refused != nil
	if refused == nil {
		refused = a.tooLate(a.budget, n.first)
	}
	if refused == nil {
		gone, open := paid, a.reserved()
		if m.SpecialistID == a.last {
			gone, open = gone.Plus(open), spend.Book{}
		}
		refused = a.budget.Admit(gone, open, n.first)
	}
	if refused == nil {
		if refused, err = a.take(ctx, m.SpecialistID, n.first); err != nil {
			return false, err
		}
		overQuota = refused != nil
	}
	switch {
	case refused == nil:
		a.spent, a.held = paid, a.held.Plus(n.first)
		a.holds[m.SpecialistID] = &hold{member: m, need: n}
	case refused.Class() == verdict.Abort || overQuota || unpriced: // nobody knows when there will be room
		a.refuse(m, old, refused)
		a.spent = paid
	default:
		a.waiting = append(a.waiting, m)
		if old != nil {
			a.held = a.held.Plus(old.Remote.Held())
		}
	}
	return refused == nil, nil
}

// repeated returns the open asks of members.
func (w *engine) repeated(list []*planning.Member) (open []*session.AskState) {
	for _, m := range list {
		if a := w.repeats(m); a != nil {
			open = append(open, a)
		}
	}
	return open
}

// repeats returns the open ask of a member that is to be asked again, because the
// process that asked is lost; nil if there is none.
func (w *engine) repeats(m *planning.Member) *session.AskState {
	if a := w.open.Ask(m.SpecialistID, machine.Proposer); a != nil && a.Status.Pending() && a.Remote != nil {
		return a
	}
	return nil
}

// refuse records that a member is not asked, or not again.
func (w *engine) refuse(m *planning.Member, old *session.AskState, why *spend.BudgetError) {
	h := response{key: w.now.Key(), id: m.SpecialistID, local: true, source: m.Source, code: why.Code, message: why.Reason().Message}
	if old != nil {
		h.local, h.ask, h.repeat, h.answer.Usage = false, old.Index, old.Remote.Repeat, old.Remote.Expected() // nobody will ever say what it cost
	}
	w.recordAnswer(&h)
}

// budget returns the budget in force; nil if there is none.
func (w *engine) budget() *spend.Budget {
	if c := w.now.Program.Guards(w.now.State); c != nil {
		return c.Budget
	}
	return nil
}

// held returns what the asks that are out are expected to cost, but for some.
func (t *round) held(but ...*session.AskState) (b spend.Book) {
	for i := range t.open.Asks {
		a := &t.open.Asks[i]
		if a.Reserved() && !slices.Contains(but, a) {
			b = b.Plus(a.Remote.Held())
		}
	}
	return b
}

// overBudget stops the session if nobody is left to be asked in this round, and
// nobody has proposed, because of the budget. In mode sequential a human is asked
// instead, who is the last and costliest there anyway.
func (w *engine) overBudget() roundInput {
	if len(w.open.Proposals) > 0 || w.waiting() {
		return seenNothing
	}
	var last *session.AskFailed
	for _, e := range w.events {
		if f, ok := e.Data.(*session.AskFailed); ok && f.Role == machine.Proposer {
			last = f
		}
	}
	if last == nil || !session.Unpaid(last.Code) {
		return seenNothing
	}
	for i := range w.members() {
		m := &w.members()[i]
		if w.asks(m) && w.open.Ask(m.SpecialistID, machine.Proposer) == nil {
			return seenNothing // somebody can still be asked
		}
	}
	if w.mode() == machine.Sequential {
		w.emit(&session.AwaitsHuman{Code: last.Code, Reason: last.Message})
		return seenHuman
	}
	w.emit(&session.Ended{Status: session.Stopped, Code: last.Code, Reason: last.Message})
	return seenStopped
}

// tooLate returns the limit of time that has passed for a call that costs
// something; nil if there is none.
func (t *round) tooLate(b *spend.Budget, need spend.Book) *spend.BudgetError {
	if b == nil || need == (spend.Book{}) {
		return nil
	}
	began, moved := t.now.CountedSince(t.at)
	return b.TooLate(t.at, began, moved)
}
