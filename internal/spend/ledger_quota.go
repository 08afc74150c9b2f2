package spend

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/verdict"
)

// How much a tenant may use in a stretch of time. A window is a ring of parts: a fixed
// one has a single part, which begins at a multiple of its length since 1970; a sliding
// one has sixty and one more, so that it forgets in steps of a sixtieth and never too
// early. advance moves it to now and sums the parts that are left; a clock that goes
// back moves nothing.
//
// A call is held against each window of its tenant before it is made; what open calls
// hold counts as if it were used now. A limit of tokens, calls or dollars of a window
// aborts, one of dollars per minute passes with time, and the former is named first.
// Windows count what was charged, and give nothing back if a charge turns out to have
// been too high.

// A Quota limits what one tenant may use. Nil and zero members limit nothing;
// every limit is the largest permitted value. A Quota must not be changed once a
// Ledger has it.
type Quota struct {
	Windows      []Window
	USDPerMinute *exact.Money // of any 60 seconds; refused with quota_velocity, which passes
	MaxSessions  *int64       // open at a time
	MaxFanOut    *int64       // open sessions that one session may have spawned
	MaxDepth     *int64       // generations of spawned sessions below one that was not
}

// Longest returns how far back the quota looks, in milliseconds; 0 if it has no
// window. q may be nil.
func (q *Quota) Longest() (msec int64) {
	if q == nil {
		return 0
	}
	for _, w := range q.Windows {
		msec = max(msec, w.Msec)
	}
	if q.USDPerMinute != nil {
		msec = max(msec, minuteMsec)
	}
	return msec
}

// minuteMsec is how many milliseconds a minute has.
const minuteMsec = 60_000

// A Window limits what is used in a stretch of time. A fixed window begins at
// every multiple of its length since 1970; a sliding one ends now. It is counted
// in sixtieths, the oldest of which counts until it has left as a whole.
type Window struct {
	Msec    int64 // its length; 0 and less is no window
	Sliding bool
	Tokens  *int64
	Calls   *int64
	USD     *exact.Money
}

// buckets is into how many parts a sliding window is divided.
const buckets = 60

// A window counts what a tenant used. The lock of the tenant guards it.
type window struct {
	limit   amount // the largest number for none
	code    string
	length  int64
	sliding bool
	step    int64    // how long a part is
	at      int64    // number of the newest part since 1970
	parts   []amount // by number, as a ring
	sum     amount
}

func windowsOf(q *Quota) (list []window) {
	if q == nil {
		return nil
	}
	for _, w := range q.Windows {
		if w.Msec > 0 {
			list = append(list, newWindow(w, codeQuota))
		}
	}
	if q.USDPerMinute != nil {
		list = append(list, newWindow(Window{Msec: minuteMsec, Sliding: true, USD: q.USDPerMinute}, codeVelocity))
	}
	return list
}

func newWindow(w Window, code string) window {
	n := window{limit: amount{limitOf(w.Tokens), limitOf(w.Calls), limitOf(w.USD)}, code: code, length: w.Msec, sliding: w.Sliding, step: w.Msec, parts: make([]amount, 1)}
	if w.Sliding {
		n.step = max((w.Msec+buckets-1)/buckets, 1)
		n.parts = make([]amount, (w.Msec+n.step-1)/n.step+1)
	}
	return n
}

// advance moves the window to now and forgets what has left it. A clock that
// goes back moves nothing.
func (w *window) advance(now int64) {
	at := now / w.step
	if at <= w.at {
		return
	}
	n := int64(len(w.parts))
	for i := max(w.at+1, at-n+1); i <= at; i++ {
		w.parts[i%n] = amount{}
	}
	w.at, w.sum = at, amount{}
	for _, p := range w.parts {
		w.sum = w.sum.plus(p)
	}
}

// pass counts what a tenant used in its windows.
func (n *node) pass(a amount, now int64) {
	for i := range n.windows {
		w := &n.windows[i]
		w.advance(now)
		part := &w.parts[w.at%int64(len(w.parts))]
		*part, w.sum = part.plus(a), w.sum.plus(a)
	}
}

// overQuota holds a call against the windows of a tenant. What open calls hold
// counts as if it were used now.
func (n *node) overQuota(c *call) *BudgetError {
	need := c.entry.amount()
	var passing *BudgetError
	for i := range n.windows {
		w := &n.windows[i]
		w.advance(c.at)
		e := n.overWindow(w, need, c.free)
		if e != nil && e.Class() == verdict.Abort {
			return e
		}
		if passing == nil {
			passing = e
		}
	}
	return passing
}

func (n *node) overWindow(w *window, need amount, free bool) *BudgetError {
	for e := range n.passed(w.limit, w.sum, need, free) {
		if e.Code != codeContended {
			e.Code = w.code
		}
		return e
	}
	return nil
}

// allowsSession reports whether a tenant may open another session.
func (q *Quota) allowsSession(tenant *node) error {
	if e := q.RefusesSession(tenant.scope.Tenant, int64(len(tenant.inside))); e != nil {
		return e // a nil *BudgetError is no nil error
	}
	return nil
}

// allowsChild reports whether a session may spawn another one.
func (q *Quota) allowsChild(parent *node) error {
	if q == nil {
		return nil
	}
	if m := q.MaxFanOut; m != nil && int64(parent.children) >= *m {
		return parent.refuse(codeQuota, UnitChildren, *m, int64(parent.children), 0, 1)
	}
	if m := q.MaxDepth; m != nil && int64(parent.spawned) >= *m {
		return parent.refuse(codeQuota, UnitLevels, *m, int64(parent.spawned), 0, 1)
	}
	return nil
}
