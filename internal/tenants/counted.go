package tenants

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// Quotas as one process counts them for itself, in a ledger. It knows no owners: what it holds ends
// with it, and what a tenant did before is read again by the next process.

// A Counted is a [session.QuotaStore] that ends with the process.
type Counted struct {
	ledger *spend.Ledger
	ended  func(ctx context.Context, tenant string) ([]spend.Scope, error) // whose sessions others have ended
}

// NewCounted returns quotas of which nothing is used. quota returns that of a tenant; what is given
// later is not looked at.
func NewCounted(now func() time.Time, quota func(tenant string) *spend.Quota) (*Counted, error) {
	untilGivenBack := &spend.Budget{ReserveTTLMsec: math.MaxInt64} // who waits its turn loses no place, however long the others take
	l, err := spend.NewLedger(spend.LedgerConfig{Now: now, Quota: quota, Budget: untilGivenBack})
	return &Counted{ledger: l}, err
}

// RecallQuota implements [session.QuotaStore].
func (c *Counted) RecallQuota(ctx context.Context, tenant string, q *spend.Quota, past func(context.Context) (spend.Past, error)) error {
	if q == nil {
		return nil
	}
	p, err := past(ctx)
	if err != nil {
		return err
	}
	return c.ledger.Recall(tenant, p)
}

// OpenQuota implements [session.QuotaStore].
func (c *Counted) OpenQuota(ctx context.Context, s spend.Scope, _ *spend.Quota) error {
	err := c.ledger.Open(s, spend.Opening{})
	switch over, full := errors.AsType[*spend.BudgetError](err); {
	case errors.Is(err, verdict.ErrInput): // it is open
		return nil
	case !full || c.ended == nil:
		return err
	default:
		gone, err := c.ended(ctx, s.Tenant)
		for _, g := range gone {
			_ = c.ledger.Close(g) // or a call is still out, which keeps it
		}
		if err != nil {
			return err
		}
		if c.ledger.Open(s, spend.Opening{}) != nil {
			return over
		}
		return nil
	}
}

// CloseQuota implements [session.QuotaStore].
func (c *Counted) CloseQuota(_ context.Context, s spend.Scope) error {
	c.ledger.Expire()
	return c.ledger.Close(s)
}

// A counted is the hold of one call.
type counted struct{ handle *spend.Handle }

// Start implements [session.QuotaHold].
func (h *counted) Start() { _ = h.handle.Start() } // one that is asked for again may have been charged as expected

// ReserveQuota implements [session.QuotaStore].
func (c *Counted) ReserveQuota(ctx context.Context, s spend.Scope, _ *spend.Quota, wave ...session.QuotaCall) ([]session.QuotaHold, error) {
	calls := make([]spend.Estimate, len(wave))
	for i, w := range wave {
		calls[i] = spend.Estimate{ID: w.Name, Input: w.Need.TokensIn, MaxOutput: w.Need.TokensOut, Cost: w.Need.Money, CostGiven: true}
	}
	handles, err := c.ledger.ReserveAll(ctx, s, calls)
	if err != nil {
		return nil, err
	}
	holds := make([]session.QuotaHold, len(handles))
	for i, h := range handles {
		holds[i] = &counted{h}
	}
	return holds, nil
}

// FindQuota implements [session.QuotaStore].
func (c *Counted) FindQuota(_ context.Context, s spend.Scope, call string) (session.QuotaHold, error) {
	if h := c.ledger.Find(s, call); h != nil {
		return &counted{h}, nil
	}
	return nil, nil
}

// EndQuota implements [session.QuotaStore].
func (c *Counted) EndQuota(_ context.Context, s spend.Scope, ends ...session.QuotaEnd) {
	for _, e := range ends {
		used := spend.Usage{Usage: e.Used.Clean()}
		switch h, _ := e.Hold.(*counted); {
		case h == nil:
			_, _ = c.ledger.Charge(s, spend.Estimate{}, used) // a session that may not be opened has no quota left to charge
		case e.Settled:
			h.handle.Settle(used)
		default:
			h.handle.Release()
		}
	}
}
