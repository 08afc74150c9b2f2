package tenants

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What a tenant may use over all its sessions, while an engine runs. A session is admitted
// before it begins, or goes on after a stop; each call reserves what it may cost and settles
// what it did; a session that ends gives its room back, once none of its calls is out. Where
// that is counted says session.QuotaStore: in the store, for all who use it, or else here
// (counted.go). What happened before is read from the logs, once a tenant (tenants.go).

// Quotas bound what a tenant may use over all its sessions: in windows of time,
// by the minute, and how many sessions at once. What a session may spend in all is its
// budget's matter. They may be used concurrently.
type Quotas struct {
	counts  session.QuotaStore
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
	if from.Shared != nil {
		return &Quotas{counts: from.Shared, tenants: t}, nil
	}
	c, err := NewCounted(from.Clock, t.Quota)
	if err != nil {
		return nil, err
	}
	c.ended = t.Ended
	return &Quotas{counts: c, tenants: t}, nil
}

// Load reads what a tenant did before the engine knew of it, once.
func (q *Quotas) Load(ctx context.Context, tenant string) error {
	return q.tenants.Recall(ctx, q.counts, tenant)
}

// Admit makes room for a session that is about to begin, or to go on. The error is a
// [spend.BudgetError] if its tenant has none, or a store's.
func (q *Quotas) Admit(ctx context.Context, scope spend.Scope) error {
	if err := q.Load(ctx, scope.Tenant); err != nil {
		return err
	}
	q.keep(scope)
	q.Leave()
	return q.known(scope.Tenant, q.counts.OpenQuota(ctx, scope, q.tenants.Quota(scope.Tenant)))
}

// known returns an error of the store. Where that does not know any more what a tenant used, it is
// read again.
func (q *Quotas) known(tenant string, err error) error {
	if errors.Is(err, session.ErrQuotaUnknown) {
		q.tenants.Forget(tenant)
	}
	return err
}

// Leave gives the room of sessions back that have come to their end, and of all whose room
// could not be given back before: calls that are still out keep it until they are settled.
func (q *Quotas) Leave(scopes ...spend.Scope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := q.leaving[:0:0]
	for _, s := range append(q.leaving, scopes...) {
		if !slices.Contains(busy, s) && q.counts.CloseQuota(context.Background(), s) != nil {
			busy = append(busy, s)
		}
	}
	q.leaving = busy
}

// keep keeps the scope of a session that was to be closed: it goes on.
func (q *Quotas) keep(s spend.Scope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaving = slices.DeleteFunc(q.leaving, func(other spend.Scope) bool { return other == s })
}

// Refuse gives the room of a session back that was admitted and has no calls yet.
func (q *Quotas) Refuse(s spend.Scope) { q.Leave(s) }

// Reserve holds what calls need that are made together, or nothing. The error is a
// [spend.BudgetError] if there is no room, or a store's. The tickets are in the order of the calls.
func (q *Quotas) Reserve(ctx context.Context, s spend.Scope, wave ...session.QuotaCall) ([]Ticket, error) {
	holds, err := q.counts.ReserveQuota(ctx, s, q.tenants.Quota(s.Tenant), wave...)
	if err != nil {
		return nil, q.known(s.Tenant, err)
	}
	tickets := make([]Ticket, len(holds))
	for i, h := range holds {
		tickets[i] = Ticket{quotas: q, scope: s, hold: h}
	}
	return tickets, nil
}

// Find returns the ticket of a call that was reserved under a name; ok is false if there is none.
func (q *Quotas) Find(ctx context.Context, s spend.Scope, call string) (t Ticket, ok bool, err error) {
	h, err := q.counts.FindQuota(ctx, s, call)
	return Ticket{quotas: q, scope: s, hold: h}, h != nil, err
}

// Charge counts what nobody reserved.
func (q *Quotas) Charge(s spend.Scope, u specialist.Usage) {
	if u != (specialist.Usage{}) {
		q.counts.EndQuota(context.Background(), s, session.QuotaEnd{Settled: true, Used: u.Clean()})
	}
}

// Correct says what a call has cost that was answered later.
func (q *Quotas) Correct(ctx context.Context, s spend.Scope, call string, u specialist.Usage) error {
	if err := q.Load(ctx, s.Tenant); err != nil {
		return err
	}
	t, ok, err := q.Find(ctx, s, call)
	if ok {
		t.Settle(u)
	}
	return err
}

// Snapshot returns what is counted here now; nothing if that is counted in the store.
func (q *Quotas) Snapshot() spend.LedgerState {
	if c, here := q.counts.(*Counted); here {
		return c.ledger.Snapshot()
	}
	return spend.LedgerState{}
}

// A Ticket is what one call holds of a quota. The zero Ticket holds nothing.
type Ticket struct {
	quotas *Quotas
	scope  spend.Scope
	hold   session.QuotaHold   // nil if it holds nothing
	spare  []session.QuotaHold // of repairs, which are settled with the call
}

// Holds reports whether the ticket holds anything.
func (t Ticket) Holds() bool { return t.hold != nil }

// Start says that the call is on its way.
func (t Ticket) Start() {
	if t.hold != nil {
		t.hold.Start()
	}
}

// Settle says what the call has cost. What is not known is as expected.
func (t Ticket) Settle(u specialist.Usage) {
	if t.hold != nil {
		t.end(session.QuotaEnd{Hold: t.hold, Settled: true, Used: u.Clean()})
	}
}

// Release gives back what is held for the call and its repairs. A call that was started and never
// settled is charged as expected.
func (t Ticket) Release() {
	if t.hold != nil {
		t.end(session.QuotaEnd{Hold: t.hold})
	}
}

// GiveUp is Release of the call alone.
func (t Ticket) GiveUp() {
	if t.hold != nil {
		t.quotas.counts.EndQuota(context.Background(), t.scope, session.QuotaEnd{Hold: t.hold})
	}
}

// ReleaseRepairs gives back what is held for repairs alone.
func (t Ticket) ReleaseRepairs() {
	if len(t.spare) > 0 {
		t.end()
	}
}

// end ends the call, and gives back what is held for repairs.
func (t Ticket) end(ends ...session.QuotaEnd) {
	for _, h := range t.spare {
		ends = append(ends, session.QuotaEnd{Hold: h})
	}
	t.quotas.counts.EndQuota(context.Background(), t.scope, ends...)
}

// Add adds what another ticket holds, for a repair.
func (t *Ticket) Add(more Ticket) {
	if more.hold != nil {
		t.spare = append(t.spare, more.hold)
	}
}
