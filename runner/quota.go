package runner

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// Quotas bound what a tenant may use over all its sessions: in windows of time,
// by the minute, and how many sessions at once. They are this runner's: it reads
// from the store what a tenant did before it loaded it, and then counts what it asks
// for itself. What a session may spend in all is its budget's matter.

// quota returns the ledger that counts for tenants; nil if nothing is limited.
func (c *Config) quota(t *tenants.Tenants) (*spend.Ledger, error) {
	if c.Quota == nil {
		return nil, nil
	}
	untilGivenBack := &spend.Budget{ReserveTTLMsec: math.MaxInt64} // who waits its turn loses no place, however long the others take
	return spend.NewLedger(spend.LedgerConfig{Now: c.Now, Quota: t.Quota, Budget: untilGivenBack})
}

// loadTenant reads what the tenant of a session did before this Runner knew of it, once.
func (r *Runner) loadTenant(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	return r.tenants.Recall(ctx, r.quota, r.scope(s).Tenant)
}

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

// admitted makes room for a session that is about to begin, or to go on.
func (r *Runner) admitted(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	if err := r.loadTenant(ctx, s); err != nil {
		return err
	}
	r.closeScopes()
	scope := r.scope(s)
	err := r.quota.Open(scope, spend.Opening{})
	over, full := errors.AsType[*spend.BudgetError](err)
	switch {
	case errors.Is(err, verdict.ErrInput): // it is open: calls are still out that it sent before it stopped
		r.keepScope(scope)
		return nil
	case !full:
		return err
	}
	gone, err := r.tenants.Ended(ctx, scope.Tenant)
	if r.closeScopes(gone...); err != nil {
		return err
	}
	if err = r.quota.Open(scope, spend.Opening{}); err != nil {
		err = refuse(ErrQuota, over.Code, "%s", over.Reason().Message)
	}
	return err
}

// ended gives the room of a session back that has come to its end. Calls that are
// still out keep it until they are settled or their step is over.
func (r *Runner) ended(s *session.Session) {
	if r.quota != nil && !s.Status.Live() {
		r.closeScopes(r.scope(s))
	}
}

// closeScopes closes a session's scope, and all that could not be closed before.
func (r *Runner) closeScopes(scopes ...spend.Scope) {
	r.quota.Expire()
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := r.leaving[:0:0]
	for _, s := range append(r.leaving, scopes...) {
		if r.quota.Close(s) != nil {
			busy = append(busy, s)
		}
	}
	r.leaving = busy
}

// keepScope keeps the scope of a session that was to be closed.
func (r *Runner) keepScope(s spend.Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = slices.DeleteFunc(r.leaving, func(other spend.Scope) bool { return other == s })
}

// A ticket is what one call holds of a quota. The zero ticket holds nothing.
type ticket struct {
	handle *spend.Handle
	spare  []*spend.Handle // of repairs, which are settled with the call
}

// start says that the call is on its way.
func (t ticket) start() {
	if t.handle != nil {
		_ = t.handle.Start() // one that is asked for again may have been charged at its estimate
	}
}

// settle says what the call has cost. What is not known is as expected.
func (t ticket) settle(u specialist.Usage) {
	if t.handle != nil {
		t.handle.Settle(spend.Usage{Usage: u.Clean()})
		t.release()
	}
}

// release gives back what is held for repairs.
func (t ticket) release() {
	for _, h := range t.spare {
		h.Release()
	}
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
	t.spare = append(t.spare, h)
	w.hold(id, t)
	return true
}

// reserve holds what a call of somebody needs of the tenant's quota. call names it, if
// it is to be found again.
func (w *engine) reserve(ctx context.Context, id, call string, need spend.Book) (*spend.Handle, error) {
	scope := w.r.scope(&w.now)
	scope.Round, scope.Proposer = w.now.Key().ID(), id
	return w.r.quota.Reserve(ctx, scope, spend.Estimate{ID: call, Input: need.TokensIn, MaxOutput: need.TokensOut, Cost: need.Money, CostGiven: true})
}

// keep takes the ticket of a call that is asked for again. It is on its way, so
// nobody refuses it.
func (w *engine) keep(ctx context.Context, id string, need spend.Book) {
	if w.r.quota == nil {
		return
	}
	if h := w.r.quota.Find(w.r.scope(&w.now), tenants.CallID(w.now.Key(), id)); h != nil {
		w.tickets[id].release()
		w.hold(id, ticket{handle: h})
		return
	}
	_ = w.take(ctx, id, need)
}

func (w *engine) hold(id string, t ticket) {
	if w.tickets == nil {
		w.tickets = map[string]ticket{}
	}
	w.tickets[id] = t
}

// paid says what a call of somebody has cost. Without a ticket it was thought to be
// free.
func (w *engine) paid(id string, u specialist.Usage) {
	if t := w.tickets[id]; t.handle != nil {
		t.settle(u)
	} else if w.r.quota != nil {
		w.r.charge(w.r.scope(&w.now), u)
	}
}

// charge counts what nobody reserved.
func (r *Runner) charge(s spend.Scope, u specialist.Usage) {
	if u != (specialist.Usage{}) {
		_, _ = r.quota.Charge(s, spend.Estimate{}, spend.Usage{Usage: u.Clean()}) // a session that may not be opened has no quota left to charge
	}
}

// corrected says what a call has cost that was answered later.
func (r *Runner) corrected(ctx context.Context, s *session.Session, id string, u specialist.Usage) error {
	if r.quota == nil {
		return nil
	}
	if err := r.loadTenant(ctx, s); err != nil {
		return err
	}
	if h := r.quota.Find(r.scope(s), tenants.CallID(s.Key(), id)); h != nil {
		h.Settle(spend.Usage{Usage: u.Clean()})
	}
	return nil
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
		w.hold(id, ticket{handle: h})
	}
	return nil
}

// drop returns the ticket of somebody, if there is one.
func (w *engine) drop(id string) {
	t := w.tickets[id]
	t.handle.Release()
	t.release()
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
