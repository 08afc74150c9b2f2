package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/verdict"
)

// A Ledger is a tree of scopes: tenant, session, round, proposer. A call holds what it
// may need in its own scope and in all around it, or, if one of them has no room, in
// none; it is settled once, with what it did need. ledger_open.go opens and closes
// scopes, ledger_check.go and ledger_quota.go say whether there is room, ledger_calls.go
// keeps the calls, and ledger_settle.go charges them; ledger_state.go writes all of it
// down and reads it back.
//
// Limits bind reservations, never charges: what was spent is spent. A call that was
// started and that nobody settles in time is charged as estimated, one that was not
// costs nothing; an answer that comes after that corrects the charge. Locks are taken
// from the tenant inwards (ledger_scope.go), so calls cannot deadlock.

const maxInt64 = math.MaxInt64

// A Ledger keeps what is spent below the limits, before it is spent. A call is
// made in three steps: [Ledger.Reserve] holds what it is expected to need in its
// scope and in all scopes around it, or nowhere; [Handle.Start] says that it is
// on its way; [Handle.Settle] charges what it needed. [Handle.Release] gives the
// reservation back and may be deferred.
//
// The sum of what is spent and reserved never passes a limit by a reservation.
// What a call needed is charged in full, so spending alone may.
//
// A Ledger may be used concurrently. It does no I/O and starts no goroutine:
// reservations that nobody settled are cleared when the ledger is used next.
type Ledger struct {
	config LedgerConfig

	mu     sync.RWMutex // guards the maps and the tree of scopes
	scopes map[Scope]*node
	models map[string]*model
}

// A LedgerConfig says how a [Ledger] works. Only Now is required.
type LedgerConfig struct {
	Now    func() time.Time                      // must not call the ledger
	Budget *Budget                               // of sessions that are opened without one; nil limits nothing
	Quota  func(tenant string) *Quota            // asked once for each tenant; nil, and a nil *Quota, limit nothing
	Prices *PriceTable                           // nil: no model has a price
	OnSoft func(s Scope, r verdict.Reason) error // told once when a soft limit is passed; an error or a panic escalates
}

// A Scope is where a call belongs: tenant, session, round, proposer. Each level
// but the first may be empty, and then those after it must be empty too. The
// tenant "" is a tenant like others. What the names are is up to the caller; a
// round's name should include the attempt.
type Scope struct {
	Tenant   string `json:"tenant,omitempty"`
	Session  string `json:"session,omitempty"`
	Round    string `json:"round,omitempty"`
	Proposer string `json:"proposer,omitempty"`
}

// String returns the names joined by slashes.
func (s Scope) String() string {
	names := []string{s.Tenant, s.Session, s.Round, s.Proposer}
	return strings.Join(names[:s.levels()], "/")
}

// levels returns how many levels of s are named.
func (s Scope) levels() int {
	switch {
	case s.Session == "":
		return 1
	case s.Round == "":
		return 2
	case s.Proposer == "":
		return 3
	}
	return 4
}

func (s Scope) check() error {
	if s.Session == "" && s.Round+s.Proposer != "" || s.Round == "" && s.Proposer != "" {
		return fmt.Errorf("%w: scope %+v leaves a level out", verdict.ErrInput, s)
	}
	return nil
}

// around returns the scope around s, which has at least two levels.
func (s Scope) around() Scope {
	switch s.levels() {
	case 4:
		s.Proposer = ""
	case 3:
		s.Round = ""
	default:
		s.Session = ""
	}
	return s
}

// ErrClosed is wrapped by the errors of handles that are no longer open.
var ErrClosed = errors.New("the reservation is not open any more")

// NewLedger returns an empty Ledger. It returns an error wrapping [verdict.ErrInput] if
// the clock is missing or the budget is not valid.
func NewLedger(c LedgerConfig) (*Ledger, error) {
	if c.Now == nil {
		return nil, fmt.Errorf("%w: a ledger needs a clock", verdict.ErrInput)
	}
	if err := c.Budget.Check(); err != nil {
		return nil, err
	}
	return &Ledger{config: c, scopes: map[Scope]*node{}, models: map[string]*model{}}, nil
}

// A Handle is one reservation. Its methods may be called concurrently and more
// than once. A nil *Handle can be released.
type Handle struct {
	ledger     *Ledger
	leaf       *node
	slot, call uint32
}

// Reserve holds what a call is expected to need in s and in every scope around
// it. Scopes that are not open yet are opened. If a limit does not allow the
// call, nothing is held and the error is a [*BudgetError]; an error wrapping
// [verdict.ErrInput] means that the scope or the estimate cannot be. Reserve never
// waits; it returns ctx's error if ctx is done.
func (l *Ledger) Reserve(ctx context.Context, s Scope, e Estimate) (*Handle, error) {
	// Kept so small that it is inlined: then a handle that does not escape its
	// caller costs no allocation.
	var h Handle
	return h.reserve(ctx, l, &s, &e)
}

// reserve makes h the handle of a new reservation and returns it.
func (h *Handle) reserve(ctx context.Context, l *Ledger, s *Scope, e *Estimate) (*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	now := l.config.Now()
	for {
		leaf, known, err := l.find(s, e.Model, now)
		if err != nil {
			return nil, err
		}
		c := l.call(leaf, known, e, now)
		open, err := h.hold(l, &c)
		switch {
		case err != nil:
			return nil, err
		case open:
			return h, nil
		}
	}
}

// hold makes the reservation c. open is false if its scope was closed in the
// meantime.
func (h *Handle) hold(l *Ledger, c *call) (open bool, err error) {
	leaf, root := c.leaf, c.leaf.path[0]
	root.mu.Lock()
	root.sweep(c.at)
	leaf.lockBelow()
	defer leaf.unlock()
	if leaf.closed {
		return false, nil
	}
	if err := l.refusal(leaf, c); err != nil {
		return false, err
	}
	leaf.hold(c)
	h.ledger, h.leaf = l, leaf
	h.slot, h.call = root.calls.take(c)
	return true, nil
}

// call works out what e needs in leaf.
func (l *Ledger) call(leaf *node, known *model, e *Estimate, now time.Time) call {
	c := call{leaf: leaf, id: e.ID, model: known, at: now.UnixMilli(), ttl: DefaultReserveTTLMsec}
	likely, debit := int64(0), true
	if s := leaf.session(); s != nil {
		c.ttl, c.probe = s.ttl.Load(), e.Probe
		debit = !e.Probe || s.debit.Load()
		if s.adaptive.Load() && known != nil {
			likely = known.likely.Load()
		}
	}
	if !debit {
		c.free, c.waived = true, true
		return c
	}
	out := e.output(likely)
	c.entry = Book{Calls: 1, TokensIn: e.Input, TokensOut: out, Estimated: 1}
	switch price := known.priceAt(now); {
	case e.CostGiven:
		c.entry.Money = e.Cost
	case price != nil:
		c.entry.Money = price.estimate(e.Input, out)
	case known != nil:
		cost, how := l.config.Prices.guess(now, func(p *Price) exact.Money { return p.estimate(e.Input, out) })
		c.entry.Money, c.entry.Unpriced, c.unpriced = cost, 1, how == Unpriced
	}
	c.free = c.entry.Money == 0 && !c.unpriced
	return c
}

// Start says that the call is being made. It returns an error wrapping
// [ErrClosed], and the call must not be made, if the reservation has been
// settled, released, or cleared because it was too old.
func (h *Handle) Start() error {
	h.leaf.lock()
	defer h.leaf.unlock()
	c := h.leaf.path[0].calls.of(h)
	if c == nil || c.state != callReserved && c.state != callStarted {
		return fmt.Errorf("%w: scope %s", ErrClosed, h.leaf.scope)
	}
	c.state = callStarted
	return nil
}

// Release gives back what is reserved for a call that was not started. A call
// that was started and never settled may have cost anything: it is charged as
// estimated, and Settle still corrects that. Otherwise Release does nothing.
func (h *Handle) Release() {
	if h == nil || h.leaf == nil {
		return
	}
	root := h.leaf.path[0]
	now := h.ledger.windowTime(root)
	h.leaf.lock()
	defer h.leaf.unlock()
	switch c := root.calls.of(h); {
	case c == nil:
	case c.state == callStarted:
		c.expire(now)
	case c.state == callReserved:
		c.unhold()
		root.calls.drop(h.slot)
	case c.state == callLapsed:
		h.leaf.kept(-1)
		root.calls.drop(h.slot)
	}
}

// Reserved returns what the handle holds as long as it is open: what it will be
// charged if nobody ever settles it.
func (h *Handle) Reserved() Book {
	h.leaf.lock()
	defer h.leaf.unlock()
	if c := h.leaf.path[0].calls.of(h); c != nil {
		return c.entry
	}
	return Book{}
}

// refusal returns why leaf or a scope around it has no room for c, or nil. What
// does not pass with time or other calls comes first.
func (l *Ledger) refusal(leaf *node, c *call) error {
	var contended *BudgetError
	for _, n := range leaf.path[:leaf.depth] {
		e := n.refusal(c)
		switch {
		case e == nil:
		case e.Class() == verdict.Abort:
			return e
		case contended == nil:
			contended = e
		}
	}
	if c.unpriced {
		if e := leaf.blind(l.config.Prices, c); e != nil {
			return e
		}
	}
	if contended != nil { // a nil *BudgetError is no nil error
		return contended
	}
	return nil
}
