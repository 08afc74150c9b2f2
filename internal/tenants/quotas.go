package tenants

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What a tenant may use over all its sessions, while an engine runs. A session is admitted
// before it begins, or goes on after a stop; each call reserves what it may cost and settles
// what it did; a session that ends gives its room back, once none of its calls is out. What
// happened before the engine ran is read from the store, once a tenant (tenants.go).

// Quotas bound what a tenant may use over all its sessions: in windows of time,
// by the minute, and how many sessions at once. They are one engine's: it reads
// from the store what a tenant did before it loaded it, and then counts what it asks
// for itself. What a session may spend in all is its budget's matter. They may be used
// concurrently.
type Quotas struct {
	ledger  *spend.Ledger
	tenants *Tenants

	mu      sync.Mutex
	leaving []spend.Scope // of sessions that have ended, with calls still out
}

// NewQuotas returns the quotas of the tenants of a source; nil if nothing is limited.
func NewQuotas(from Source) (*Quotas, error) {
	if from.Quota == nil {
		return nil, nil
	}
	t := New(from)
	untilGivenBack := &spend.Budget{ReserveTTLMsec: math.MaxInt64} // who waits its turn loses no place, however long the others take
	l, err := spend.NewLedger(spend.LedgerConfig{Now: from.Clock, Quota: t.Quota, Budget: untilGivenBack})
	if err != nil {
		return nil, err
	}
	return &Quotas{ledger: l, tenants: t}, nil
}

// Load reads what a tenant did before the engine knew of it, once.
func (q *Quotas) Load(ctx context.Context, tenant string) error {
	return q.tenants.Recall(ctx, q.ledger, tenant)
}

// Admit makes room for a session that is about to begin, or to go on. The error is a
// [spend.BudgetError] if its tenant has none, or a store's.
func (q *Quotas) Admit(ctx context.Context, scope spend.Scope) error {
	if err := q.Load(ctx, scope.Tenant); err != nil {
		return err
	}
	q.Leave()
	err := q.ledger.Open(scope, spend.Opening{})
	over, full := errors.AsType[*spend.BudgetError](err)
	switch {
	case errors.Is(err, verdict.ErrInput): // it is open: calls are still out that it sent before it stopped
		q.keep(scope)
		return nil
	case !full:
		return err
	}
	gone, err := q.tenants.Ended(ctx, scope.Tenant)
	if q.Leave(gone...); err != nil {
		return err
	}
	if q.ledger.Open(scope, spend.Opening{}) != nil {
		return over
	}
	return nil
}

// Leave gives the room of sessions back that have come to their end, and of all whose room
// could not be given back before: calls that are still out keep it until they are settled.
func (q *Quotas) Leave(scopes ...spend.Scope) {
	q.ledger.Expire()
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := q.leaving[:0:0]
	for _, s := range append(q.leaving, scopes...) {
		if q.ledger.Close(s) != nil {
			busy = append(busy, s)
		}
	}
	q.leaving = busy
}

// keep keeps the scope of a session that was to be closed.
func (q *Quotas) keep(s spend.Scope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaving = slices.DeleteFunc(q.leaving, func(other spend.Scope) bool { return other == s })
}

// Refuse gives the room of a session back that was admitted and has no calls yet.
func (q *Quotas) Refuse(s spend.Scope) { _ = q.ledger.Close(s) }

// Reserve holds what a call needs. call names it, if it is to be found again.
func (q *Quotas) Reserve(ctx context.Context, s spend.Scope, call string, need spend.Book) (*spend.Handle, error) {
	return q.ledger.Reserve(ctx, s, spend.Estimate{ID: call, Input: need.TokensIn, MaxOutput: need.TokensOut, Cost: need.Money, CostGiven: true})
}

// Find returns what a call holds that was reserved under a name; nil if nothing is.
func (q *Quotas) Find(s spend.Scope, call string) *spend.Handle { return q.ledger.Find(s, call) }

// Charge counts what nobody reserved.
func (q *Quotas) Charge(s spend.Scope, u specialist.Usage) {
	if u != (specialist.Usage{}) {
		_, _ = q.ledger.Charge(s, spend.Estimate{}, spend.Usage{Usage: u.Clean()}) // a session that may not be opened has no quota left to charge
	}
}

// Correct says what a call has cost that was answered later.
func (q *Quotas) Correct(ctx context.Context, s spend.Scope, call string, u specialist.Usage) error {
	if err := q.Load(ctx, s.Tenant); err != nil {
		return err
	}
	if h := q.Find(s, call); h != nil {
		h.Settle(spend.Usage{Usage: u.Clean()})
	}
	return nil
}

// Snapshot returns what is counted now.
func (q *Quotas) Snapshot() spend.LedgerState { return q.ledger.Snapshot() }

// A Ticket is what one call holds of a quota. The zero Ticket holds nothing.
type Ticket struct {
	Handle *spend.Handle   // nil if it holds nothing
	spare  []*spend.Handle // of repairs, which are settled with the call
}

// Start says that the call is on its way.
func (t Ticket) Start() {
	if t.Handle != nil {
		_ = t.Handle.Start() // one that is asked for again may have been charged at its estimate
	}
}

// Settle says what the call has cost. What is not known is as expected.
func (t Ticket) Settle(u specialist.Usage) {
	if t.Handle != nil {
		t.Handle.Settle(spend.Usage{Usage: u.Clean()})
		t.Release()
	}
}

// Release gives back what is held for repairs.
func (t Ticket) Release() {
	for _, h := range t.spare {
		h.Release()
	}
}

// Add adds what is held for a repair.
func (t *Ticket) Add(h *spend.Handle) { t.spare = append(t.spare, h) }
