package spend

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A Past is what a tenant did before a [Ledger] knew of it, such as before a
// restart. The zero Past is none.
type Past struct {
	Sessions []string    // that are open, in any order
	Ended    []string    // that have ended, and have something in Spent, in any order; a ledger does not need them
	Spent    []Spending  // calls that are settled, in any order
	Calls    []CallState // that are open; those that were not started are ignored
}

// A Spending is what was spent at a moment. Members of Book below 0 count as 0.
type Spending struct {
	At   specialist.Time
	Book Book
}

// Recall tells the ledger of a tenant's past. What was spent counts in the windows
// of the tenant's quota, each part at its own time (now, if that is still to come),
// and in no budget: see Spent of [Opening] for those. The sessions are opened whatever the quota says; those that
// are open already stay as they are. Who made the open calls may be gone, so they
// are charged as estimated now, which [Ledger.Find] can still correct.
//
// Whoever calls it twice with the same past counts it twice. It returns an error
// wrapping [verdict.ErrInput], and changes nothing, if a call is not of a session of the
// tenant, or its entry is negative.
func (l *Ledger) Recall(tenant string, p Past) error {
	for _, c := range p.Calls {
		if c.Scope.Tenant != tenant || c.Scope.levels() < 2 || (Opening{Spent: c.Entry}).check(c.Scope) != nil {
			return fmt.Errorf("%w: the call %q of scope %s cannot be of tenant %q", verdict.ErrInput, c.ID, c.Scope, tenant)
		}
	}
	now := l.config.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	root, err := l.ensure(Scope{Tenant: tenant}, now)
	if err != nil {
		return err
	}
	root.remember(p.Spent, now.UnixMilli())
	for _, session := range p.Sessions {
		if session != "" {
			l.reopen(Scope{Tenant: tenant, Session: session}, now)
		}
	}
	for _, c := range p.Calls {
		c.Scope = l.reopen(Scope{Tenant: tenant, Session: c.Scope.Session}, now).scope
		if err := l.restoreCall(c, now.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

// reopen returns the node of a session, which it opens whatever its tenant's quota
// says; l.mu is locked.
func (l *Ledger) reopen(s Scope, now time.Time) *node {
	if n := l.scopes[s]; n != nil {
		return n
	}
	n := l.add(s, l.scopes[s.around()], now)
	n.limit(l.config.Budget)
	return n
}

// remember counts what a tenant spent in its windows, at its times.
func (n *node) remember(spent []Spending, now int64) {
	n.lock()
	defer n.unlock()
	sorted := slices.Clone(spent)
	slices.SortStableFunc(sorted, func(a, b Spending) int { return cmp.Compare(a.At, b.At) })
	for _, s := range sorted {
		for i := range n.windows {
			n.windows[i].count(s.Book.amount().orNothing(), min(max(int64(s.At), 0), now))
		}
	}
}

// count adds what was used at a moment since 1970, which may be one that has gone by.
func (w *window) count(a amount, at int64) {
	w.advance(at)
	n := int64(len(w.parts))
	if number := at / w.step; w.at-number < n {
		part := &w.parts[number%n]
		*part, w.sum = part.plus(a), w.sum.plus(a)
	}
}
