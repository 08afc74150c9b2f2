package runner

import (
	"context"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// A session's ledger is its log. What was spent is folded from it, and an ask
// that is recorded and not yet answered holds what it is expected to cost: asks
// are recorded, by compare-and-swap, before they are sent. So proposers that are
// asked at once, and processes that work on one session, never spend a budget
// together that none of them could spend alone, and no crash gives anything
// back.

// admit returns whom the budget lets be asked. Who would break a hard limit is
// recorded as a failed ask; who would only have to wait for others is left for
// later.
func (w *work) admit(ctx context.Context, ask []*member) []*member {
	b := w.budget()
	if b == nil && w.r.quota == nil {
		return ask
	}
	held := w.t.held()
	admitted := ask[:0:0]
	for _, m := range ask {
		if a := w.t.round.ask(m.SpecialistID, machine.Proposer); a != nil && a.status == askOpen {
			w.keep(ctx, m.SpecialistID, w.t.need(m))
			admitted = append(admitted, m) // it is repeated: what it costs is held already
			continue
		}
		need := w.t.need(m)
		refused, overQuota := w.t.tooLate(b, need), false
		if refused == nil {
			refused = b.Admit(w.t.now.Spent(), held, need)
		}
		if refused == nil {
			refused = w.take(ctx, m.SpecialistID, need)
			overQuota = refused != nil
		}
		switch {
		case refused == nil:
			admitted, held = append(admitted, m), held.Plus(need)
		case refused.Class() == guard.Abort || overQuota: // nobody knows when there will be room
			w.t.hear(&heard{key: w.t.now.Key(), id: m.SpecialistID, local: true, source: m.source, code: refused.Code, message: refused.Reason().Message})
		}
	}
	return admitted
}

// tooLate returns the limit of time that has passed for a call that costs
// something; nil if there is none.
func (t *tx) tooLate(b *guard.Budget, need guard.Book) *guard.BudgetError {
	if b == nil || need == (guard.Book{}) {
		return nil
	}
	moved := t.now.CreatedAt
	if t.now.last != nil {
		moved = t.now.last.At
	}
	return b.TooLate(t.at, t.now.CreatedAt, moved)
}

// budget returns the budget in force; nil if there is none.
func (w *work) budget() *guard.Budget {
	if c := w.t.now.Program.Guards(w.t.now.State); c != nil {
		return c.Budget
	}
	return nil
}

// held returns what the asks that are out are expected to cost.
func (t *tx) held() (b guard.Book) {
	for _, a := range t.round.asks {
		if a.status == askOpen && a.Remote != nil {
			b = b.Plus(guard.Book{Calls: 1, Money: a.Remote.Estimate, TokensIn: a.Remote.TokensIn, TokensOut: a.Remote.TokensOut})
		}
	}
	return b
}

// unpaid reports whether a code says that there was no room to ask somebody.
func unpaid(code string) bool {
	return strings.HasPrefix(code, "budget_") || strings.HasPrefix(code, "quota_")
}

// overBudget stops the session if nobody is left to be asked in this round, and
// nobody has proposed, because of the budget. In mode sequential a human is asked
// instead, who is the last and dearest there anyway.
func (w *work) overBudget() bool {
	if len(w.t.round.proposals) > 0 || w.waiting() {
		return false
	}
	var last *AskFailed
	for _, e := range w.t.events {
		if f, ok := e.Data.(*AskFailed); ok && f.Role == machine.Proposer {
			last = f
		}
	}
	if last == nil || !unpaid(last.Code) {
		return false
	}
	for i := range w.t.members() {
		m := &w.t.members()[i]
		if w.t.asks(m) && w.t.round.ask(m.SpecialistID, machine.Proposer) == nil {
			return false // somebody can still be asked
		}
	}
	if w.t.mode() == machine.Sequential {
		w.t.emit(&AwaitsHuman{Code: last.Code, Reason: last.Message})
		return true
	}
	w.t.emit(&Ended{Status: Stopped, Code: last.Code, Reason: last.Message})
	return true
}
