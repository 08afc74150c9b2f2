package spend

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/exact"
)

// The tree of a ledger, and its locks. A scope is a tenant, a session, a round or a
// proposer, and each is a node that knows its path from the tenant down. A scope that
// is named for the first time is opened with those around it (ensure); a session then
// gets the budget of the ledger, a tenant its quota.
//
// Locks: Ledger.mu guards the maps of scopes and models, the mutex of a node what is
// booked there. Whoever books locks the whole path, from the tenant down (lock), so two
// calls never wait for each other in a circle, and whoever holds the lock of a tenant
// alone keeps all that is booked in its tree still. Ledger.mu is taken before the lock
// of a node, never while one is held.
//
// Limits are kept as plain numbers (caps), the largest number for none, so that the
// checks on the way of every call need no nil.

// A node is one open scope. Locks are taken from the root down. Whoever changes
// a scope holds the locks of it and of all around it, so the lock of a tenant
// alone keeps its whole tree still.
type node struct {
	scope    Scope
	path     [4]*node // from the tenant down to the node itself
	depth    int      // of path
	inside   map[*node]struct{}
	parent   *node // the session that spawned this one; nil for most
	spawned  int   // how deep this session was spawned
	children int   // sessions spawned by this one that are open

	mu      sync.Mutex
	closed  bool
	budget  *Budget
	caps    caps
	spent   Book
	held    amount
	open    int   // calls here and inside that are neither settled nor released
	opened  int64 // in milliseconds since 1970
	soft    softState
	settled map[string]struct{} // usage ids; in sessions, and tenants for calls of no session

	// Of sessions only.
	progress        int64
	probes          Book
	probesHeld      amount
	unsettled       int // calls that ended without being settled
	ttl             atomic.Int64
	adaptive, debit atomic.Bool

	// Of tenants only.
	calls   calls
	quota   *Quota
	windows []window
}

// softState says what has become of a node's soft limits.
type softState struct{ passed, due bool }

// caps are a budget's limits, with the largest number for none.
type caps struct {
	amount
	softTokens            int64
	softUSD               exact.Money
	wall, roundWall, idle int64
	share                 exact.Billionths
	observe, bounded      bool
	none                  bool // there is no limit but soft ones
}

func capsOf(b *Budget) caps {
	if b == nil {
		b = &Budget{}
	}
	c := caps{
		amount:     b.hard(),
		softTokens: limitOf(b.SoftTokens), softUSD: limitOf(b.SoftUSD),
		wall: limitOf(b.WallMsec), roundWall: limitOf(b.RoundWallMsec), idle: limitOf(b.NoProgressMsec),
		share: limitOf(b.ProbeShareMax), observe: b.Mode == ModeObserve, bounded: b.Bounded,
	}
	c.none = min(c.tokens, c.calls, int64(c.usd), c.wall, c.idle, int64(c.share)) == maxInt64
	return c
}

// limitOf returns a limit as a plain number, the largest for none.
func limitOf[T ~int64](limit *T) T {
	if limit == nil {
		return maxInt64
	}
	return *limit
}

// limit gives n a budget.
func (n *node) limit(b *Budget) {
	n.budget, n.caps = b, capsOf(b)
	if n.soft.passed && !n.overSoft() {
		n.soft = softState{}
	}
	if n.depth != 2 {
		return
	}
	n.ttl.Store(DefaultReserveTTLMsec)
	n.adaptive.Store(b != nil && b.ReserveMode == ReserveAdaptive)
	n.debit.Store(b != nil && b.DebitProbes)
	if b != nil && b.ReserveTTLMsec > 0 {
		n.ttl.Store(b.ReserveTTLMsec)
	}
}

func (n *node) lock() {
	for _, p := range n.path[:n.depth] {
		p.mu.Lock()
	}
}

// lockBelow locks the path of n but for its tenant, which is locked.
func (n *node) lockBelow() {
	for _, p := range n.path[1:n.depth] {
		p.mu.Lock()
	}
}

func (n *node) unlockBelow() {
	for i := n.depth - 1; i > 0; i-- {
		n.path[i].mu.Unlock()
	}
}

func (n *node) unlock() {
	n.unlockBelow()
	n.path[0].mu.Unlock()
}

// session returns the session of n, or nil for a tenant.
func (n *node) session() *node { return n.path[1] }

// home returns the node that remembers the usage ids of n.
func (n *node) home() *node {
	if n.depth == 1 {
		return n
	}
	return n.path[1]
}

// kept counts calls that are kept although they are not open.
func (n *node) kept(more int) { n.home().unsettled += more }

func (n *node) overSoft() bool {
	a := n.spent.amount()
	return a.tokens > n.caps.softTokens || a.usd > n.caps.softUSD
}

// find returns the node of a scope, which it opens if need be, and what is known
// of a model, or nil for no model.
func (l *Ledger) find(s *Scope, name string, now time.Time) (*node, *model, error) {
	l.mu.RLock()
	n, m := l.scopes[*s], (*model)(nil)
	if name != "" {
		m = l.models[name]
	}
	l.mu.RUnlock()
	if n != nil && (m != nil || name == "") {
		return n, m, nil
	}
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.ensure(*s, now)
	if err == nil && name != "" {
		m = l.model(name)
	}
	return n, m, err
}

// model returns what is known of a model; l.mu is locked.
func (l *Ledger) model(name string) *model {
	m := l.models[name]
	if m == nil {
		m = &model{name: name}
		if t := l.config.Prices; t != nil {
			if p, ok := t.Prices[name]; ok {
				m.price = &p
			}
		}
		l.models[name] = m
	}
	return m
}

// modelNamed returns what is known of a model, or nil for no model.
func (l *Ledger) modelNamed(name string) *model {
	if name == "" {
		return nil
	}
	l.mu.RLock()
	m := l.models[name]
	l.mu.RUnlock()
	if m != nil {
		return m
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.model(name)
}

// ensure returns the node of a scope and opens it if need be; l.mu is locked.
func (l *Ledger) ensure(s Scope, now time.Time) (*node, error) {
	if n := l.scopes[s]; n != nil {
		return n, nil
	}
	if s.levels() == 1 {
		return l.add(s, nil, now), nil
	}
	outer, err := l.ensure(s.around(), now)
	if err != nil {
		return nil, err
	}
	if s.levels() == 2 {
		if err := outer.quota.allowsSession(outer); err != nil {
			return nil, err
		}
	}
	n := l.add(s, outer, now)
	if s.levels() == 2 {
		n.limit(l.config.Budget)
	}
	return n, nil
}

func (l *Ledger) add(s Scope, outer *node, now time.Time) *node {
	n := &node{scope: s, depth: 1, opened: now.UnixMilli(), progress: now.UnixMilli(), caps: capsOf(nil)}
	if outer != nil {
		n.path, n.depth = outer.path, outer.depth+1
		if outer.inside == nil {
			outer.inside = map[*node]struct{}{}
		}
		outer.inside[n] = struct{}{}
	} else if l.config.Quota != nil {
		n.quota = l.config.Quota(s.Tenant)
		n.windows = windowsOf(n.quota)
	}
	n.path[n.depth-1] = n
	if n == n.home() {
		n.settled = map[string]struct{}{}
	}
	l.scopes[s] = n
	return n
}

// at returns the node of a scope, or nil.
func (l *Ledger) at(s Scope) *node {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.scopes[s]
}

// nearest returns the node of s or of the innermost open scope around it, or nil.
func (l *Ledger) nearest(s Scope) *node {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for l.scopes[s] == nil && s.levels() > 1 {
		s = s.around()
	}
	return l.scopes[s]
}

// Progress notes that a session has just got on, for its limit of time without
// progress.
func (l *Ledger) Progress(s Scope) {
	n := l.nearest(s)
	if n == nil || n.session() == nil {
		return
	}
	now := l.config.Now().UnixMilli()
	n = n.session()
	n.lock()
	defer n.unlock()
	n.progress = max(n.progress, now)
}

// A Balance is what a scope has spent and what open calls hold there.
type Balance struct {
	Spent     Book
	Probes    Book        // the guards' own calls, as far as they are charged; of sessions only
	Tokens    int64       // held
	Calls     int64       // held
	USD       exact.Money // held
	OpenCalls int         // calls neither settled nor released, also those that hold nothing
}

// Balance returns what is booked in one scope; zero if it is not open.
func (l *Ledger) Balance(s Scope) Balance {
	n := l.at(s)
	if n == nil {
		return Balance{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return Balance{n.spent, n.probes, n.held.tokens, n.held.calls, n.held.usd, n.open}
}

// above reports whether a/b is above share.
func above(a, b int64, share exact.Billionths) bool {
	if a <= 0 {
		return false
	}
	ah, al := bits.Mul64(uint64(a), uint64(exact.One))
	bh, bl := bits.Mul64(uint64(max(b, 0)), uint64(share))
	return ah > bh || ah == bh && al > bl
}
