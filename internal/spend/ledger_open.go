package spend

import (
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/verdict"
)

// How scopes begin and end. A scope opens by itself when a call names it; Open gives it
// a budget of its own, a parent that spawned it, and what was spent before the ledger
// knew it, such as before a restart: that counts in the scopes around it too, but in no
// window of a quota, since it was not used now. Close forgets a scope and all inside
// it, and is refused while a call is open there; what was spent stays in the scopes
// around it. A tenant never closes, since that would refill its budget.

// An Opening says how a scope begins. The zero Opening is that of a scope in
// which nothing has happened.
type Opening struct {
	Budget   *Budget   // nil: the ledger's for a session, else no limits
	Parent   string    // the session of the same tenant that spawned this one
	Spent    Book      // before the ledger knew of the scope, such as before a restart
	Opened   time.Time // zero: now
	Progress time.Time // the last progress; zero: when it was opened
	Settled  []string  // usage ids that are part of Spent
}

// Open opens a scope, and those around it if need be. What was spent before
// counts in the scopes around it too, but in no window of a quota. Open returns
// an error wrapping [verdict.ErrInput] if the scope is open or o is not valid, and a
// [*BudgetError] if a quota does not allow another session.
func (l *Ledger) Open(s Scope, o Opening) error {
	if err := o.check(s); err != nil {
		return err
	}
	now := l.config.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scopes[s] != nil {
		return fmt.Errorf("%w: scope %s is open already", verdict.ErrInput, s)
	}
	parent, err := l.parent(s, o)
	if err != nil {
		return err
	}
	n, err := l.ensure(s, now)
	if err != nil {
		return err
	}
	if parent != nil {
		n.parent, n.spawned = parent, parent.spawned+1
		parent.children++
	}
	n.begin(o)
	return nil
}

// parent returns the session that spawned the scope, if one did.
func (l *Ledger) parent(s Scope, o Opening) (*node, error) {
	if o.Parent == "" {
		return nil, nil
	}
	parent := l.scopes[Scope{Tenant: s.Tenant, Session: o.Parent}]
	if parent == nil || s.levels() != 2 {
		return nil, fmt.Errorf("%w: %q is no open session that could have spawned %s", verdict.ErrInput, o.Parent, s)
	}
	return parent, parent.path[0].quota.allowsChild(parent)
}

func (o Opening) check(s Scope) error {
	if err := s.check(); err != nil {
		return err
	}
	b := o.Spent
	if min(b.Calls, b.TokensIn, b.TokensOut, int64(b.Money), b.Unpriced, b.Estimated) < 0 {
		return fmt.Errorf("%w: negative spending of scope %s", verdict.ErrInput, s)
	}
	return o.Budget.Check()
}

// begin applies an opening to a new node.
func (n *node) begin(o Opening) {
	n.lock()
	defer n.unlock()
	if o.Budget != nil {
		n.limit(o.Budget)
	}
	if !o.Opened.IsZero() {
		n.opened, n.progress = o.Opened.UnixMilli(), o.Opened.UnixMilli()
	}
	if !o.Progress.IsZero() {
		n.progress = o.Progress.UnixMilli()
	}
	for _, id := range o.Settled {
		n.home().settled[id] = struct{}{}
	}
	n.spend(o.Spent)
}

// spend adds to the books of n and of all around it.
func (n *node) spend(b Book) {
	for _, p := range n.path[:n.depth] {
		p.spent = p.spent.Plus(b)
		p.notice()
	}
}

// notice notes that a soft limit was passed, once.
func (n *node) notice() {
	if !n.soft.passed && n.overSoft() {
		n.soft = softState{passed: true, due: true}
	}
}

// SetBudget replaces the budget of an open scope; nil takes its limits away.
func (l *Ledger) SetBudget(s Scope, b *Budget) error {
	if err := b.Check(); err != nil {
		return err
	}
	n := l.at(s)
	if n == nil {
		return fmt.Errorf("%w: scope %s is not open", verdict.ErrInput, s)
	}
	n.lock()
	defer n.unlock()
	n.limit(b)
	n.notice()
	return nil
}

// ErrOpenCalls is wrapped by the error of closing a scope in which calls are open.
var ErrOpenCalls = errors.New("the scope has open calls")

// Close forgets a session, a round or a proposer and all inside it. What was
// spent there stays spent in the scopes around it; a session that is opened
// again begins with what its Opening says. Close returns an error wrapping
// [ErrOpenCalls] while a call is open there. A tenant is never closed: that would
// refill its budget.
func (l *Ledger) Close(s Scope) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.scopes[s]
	switch {
	case n == nil:
		return nil
	case n.depth == 1:
		return fmt.Errorf("%w: tenant %q cannot be closed", verdict.ErrInput, s.Tenant)
	}
	n.lock()
	defer n.unlock()
	if n.open > 0 {
		return fmt.Errorf("%w: %s", ErrOpenCalls, s)
	}
	if n.parent != nil {
		n.parent.children--
	}
	delete(n.path[n.depth-2].inside, n)
	l.forget(n)
	n.path[0].calls.forget(n)
	return nil
}

// forget takes n and all inside it out of the tree; the path of n is locked.
func (l *Ledger) forget(n *node) {
	n.closed = true
	delete(l.scopes, n.scope)
	for inner := range n.inside {
		inner.mu.Lock()
		l.forget(inner)
		inner.mu.Unlock()
	}
}
