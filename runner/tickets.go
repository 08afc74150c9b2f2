package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the sessions of this Runner take from the quotas of their tenants (package tenants):
// room for a session while it lives, and a ticket for each call, from before it is recorded
// until it is settled.

// scope returns where a session's calls are counted.
func (r *Runner) scope(s *session.Session) spend.Scope {
	return r.scopeOf(s.ID, s.Machine(), s.Options().Meta)
}

func (r *Runner) scopeOf(id specialist.SessionID, m *machine.Machine, meta []byte) spend.Scope {
	scope := spend.Scope{Session: id.String()}
	if r.config.Tenant != nil {
		scope.Tenant = r.config.Tenant(m, meta)
	}
	return scope
}

// loadTenant reads what the tenant of a session did before this Runner knew of it, once.
func (r *Runner) loadTenant(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	return r.quota.Load(ctx, r.scope(s).Tenant)
}

// admitted makes room for a session that is about to begin, or to go on.
func (r *Runner) admitted(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	err := r.quota.Admit(ctx, r.scope(s))
	if over, full := errors.AsType[*spend.BudgetError](err); full {
		return refuse(ErrQuota, over.Code, "%s", over.Reason().Message)
	}
	return err
}

// ended gives the room of a session back that has come to its end. Calls that are
// still out keep it until they are settled or their step is over.
func (r *Runner) ended(s *session.Session) {
	if r.quota != nil && !s.Status.Live() {
		r.quota.Leave(r.scope(s))
	}
}

// corrected says what a call has cost that was answered later.
func (r *Runner) corrected(ctx context.Context, s *session.Session, id string, u specialist.Usage) error {
	if r.quota == nil {
		return nil
	}
	return r.quota.Correct(ctx, r.scope(s), tenants.CallID(s.Key(), id), u)
}

// takeMore adds room for a repair to a ticket, and reports whether there is any.
func (w *engine) takeMore(ctx context.Context, id string, need spend.Book) bool {
	t, limited := w.tickets[id]
	if !limited {
		return true
	}
	h, err := w.reserve(ctx, id, "", need)
	if err != nil {
		return false
	}
	t.Add(h)
	w.hold(id, t)
	return true
}

// reserve holds what a call of somebody needs of the tenant's quota. call names it, if
// it is to be found again.
func (w *engine) reserve(ctx context.Context, id, call string, need spend.Book) (*spend.Handle, error) {
	scope := w.r.scope(&w.now)
	scope.Round, scope.Proposer = w.now.Key().ID(), id
	return w.r.quota.Reserve(ctx, scope, call, need)
}

// keep takes the ticket of a call that is asked for again. It is on its way, so
// nobody refuses it.
func (w *engine) keep(ctx context.Context, id string, need spend.Book) {
	if w.r.quota == nil {
		return
	}
	if h := w.r.quota.Find(w.r.scope(&w.now), tenants.CallID(w.now.Key(), id)); h != nil {
		w.tickets[id].Release()
		w.hold(id, tenants.Ticket{Handle: h})
		return
	}
	_ = w.take(ctx, id, need)
}

func (w *engine) hold(id string, t tenants.Ticket) {
	if w.tickets == nil {
		w.tickets = map[string]tenants.Ticket{}
	}
	w.tickets[id] = t
}

// paid says what a call of somebody has cost. Without a ticket it was thought to be
// free.
func (w *engine) paid(id string, u specialist.Usage) {
	if t := w.tickets[id]; t.Handle != nil {
		t.Settle(u)
	} else if w.r.quota != nil {
		w.r.quota.Charge(w.r.scope(&w.now), u)
	}
}

// take takes a ticket for a call of somebody, or says why there is none. What is
// free needs none. A ticket that they have, such as from before a lost race, goes back
// first.
func (w *engine) take(ctx context.Context, id string, need spend.Book) *spend.BudgetError {
	if w.r.quota == nil || need == (spend.Book{}) {
		return nil
	}
	w.drop(id)
	h, err := w.reserve(ctx, id, tenants.CallID(w.now.Key(), id), need)
	if over, ok := errors.AsType[*spend.BudgetError](err); ok {
		return over
	}
	if err == nil {
		w.hold(id, tenants.Ticket{Handle: h})
	}
	return nil
}

// drop returns the ticket of somebody, if there is one.
func (w *engine) drop(id string) {
	t := w.tickets[id]
	t.Handle.Release()
	t.Release()
	delete(w.tickets, id)
}

// giveBack returns the tickets of calls that were never made.
func (w *engine) giveBack() {
	for id := range w.tickets {
		w.drop(id)
	}
	if w.tickets != nil {
		w.tickets = nil
		w.r.ended(w.s) // nothing keeps it any more
	}
}
