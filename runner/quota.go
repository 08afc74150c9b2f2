package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
)

// Quotas bound what a tenant may use over all its sessions: in windows of time,
// by the minute, and how many sessions at once. They are this runner's: another
// process counts for itself, and a new one begins with empty windows, as a rate
// limit does. What a session may spend in all is its budget's matter, which no
// restart refills.

// quota returns the ledger that counts for tenants; nil if nothing is limited.
func (c *Config) quota() (*guard.Ledger, error) {
	if c.Quota == nil {
		return nil, nil
	}
	return guard.NewLedger(guard.LedgerConfig{Now: c.Now, Quota: c.Quota})
}

// scope returns where a session's calls are counted.
func (r *Runner) scope(s *Session) guard.Scope {
	scope := guard.Scope{Session: s.ID.String()}
	if r.config.Tenant != nil {
		scope.Tenant = r.config.Tenant(s.Machine(), s.Options().Meta)
	}
	return scope
}

// admitted makes room for a session that is about to begin.
func (r *Runner) admitted(s *Session) error {
	if r.quota == nil {
		return nil
	}
	r.leave()
	err := r.quota.Open(r.scope(s), guard.Opening{})
	if over, ok := errors.AsType[*guard.BudgetError](err); ok {
		return refuse(ErrQuota, over.Code, "%s", over.Reason().Message)
	}
	return err
}

// ended gives the room of a session back that has come to its end. Calls that are
// still out keep it until they are settled or have expired.
func (r *Runner) ended(s *Session) {
	if r.quota != nil && !s.Status.Live() {
		r.leave(r.scope(s))
	}
}

// leave closes a session's scope, and all that could not be closed before.
func (r *Runner) leave(scopes ...guard.Scope) {
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

// A ticket is what one call holds of a quota. The zero ticket holds nothing.
type ticket struct {
	handle *guard.Handle
	spare  []*guard.Handle // of repairs, which are settled with the call
}

// sent says that the call is on its way.
func (t ticket) sent() {
	if t.handle != nil {
		_ = t.handle.Start() // one that has expired was charged at its estimate
	}
}

// came says what the call has cost. What is not known is as expected.
func (t ticket) came(u specialist.Usage) {
	if t.handle != nil {
		t.handle.Settle(guard.Usage{Usage: cleanUsage(u)})
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
func (w *work) takeMore(ctx context.Context, id string, need guard.Book) bool {
	t, limited := w.tickets[id]
	if !limited {
		return true
	}
	h, err := w.reserve(ctx, id, need)
	if err != nil {
		return false
	}
	t.spare = append(t.spare, h)
	w.tickets[id] = t
	return true
}

// reserve holds what a call of somebody needs of the tenant's quota.
func (w *work) reserve(ctx context.Context, id string, need guard.Book) (*guard.Handle, error) {
	scope := w.r.scope(&w.t.now)
	scope.Round, scope.Proposer = w.t.now.Key().ID(), id
	return w.r.quota.Reserve(ctx, scope, guard.Estimate{Input: need.TokensIn, MaxOutput: need.TokensOut, Cost: need.Money, CostGiven: true})
}

// take takes a ticket for a call of somebody, or says why there is none. What is
// free needs none.
func (w *work) take(ctx context.Context, id string, need guard.Book) *guard.BudgetError {
	if w.r.quota == nil || need == (guard.Book{}) {
		return nil
	}
	h, err := w.reserve(ctx, id, need)
	if over, ok := errors.AsType[*guard.BudgetError](err); ok {
		return over
	}
	if err == nil {
		if w.tickets == nil {
			w.tickets = map[string]ticket{}
		}
		w.tickets[id] = ticket{handle: h}
	}
	return nil
}

// giveBack returns the tickets of calls that were never made.
func (w *work) giveBack() {
	for _, t := range w.tickets {
		t.handle.Release()
		t.release()
	}
	if w.tickets != nil {
		w.tickets = nil
		w.r.ended(w.s) // nothing keeps it any more
	}
}
