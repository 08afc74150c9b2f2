package spend

import "github.com/dialai/dialai/specialist"

// What a Ledger knows of quotas, for whoever counts elsewhere, so that both refuse the same calls with
// the same words: how a window is divided, whether what was counted leaves room, and what a call is
// charged.

// A Span says how what is used in a window is counted: in slots of equal length, numbered from 1970 on,
// the newest Parts of which belong to the window.
type Span struct {
	Msec  int64 // length of the window
	Step  int64 // length of a slot; that of the window if it is fixed
	Parts int64 // above 0
}

// Spans returns the windows of the quota, the dollars per minute last. q may be nil.
func (q *Quota) Spans() (list []Span) {
	for _, w := range windowsOf(q) {
		list = append(list, Span{Msec: w.length, Step: w.step, Parts: int64(len(w.parts))})
	}
	return list
}

// Refuses returns why a tenant has no room for one more call, as a [Ledger] does, or nil. used is what
// was counted in each of the Spans, held what open calls hold. q may be nil.
func (q *Quota) Refuses(tenant string, used []Book, held, need Book) *BudgetError {
	n := node{scope: Scope{Tenant: tenant}, depth: 1, caps: capsOf(nil), windows: windowsOf(q), held: held.amount()}
	for i := range n.windows {
		n.windows[i].sum = used[i].amount()
	}
	return n.refusal(&call{entry: need, free: need.Money == 0})
}

// RefusesSession returns why a tenant that has a number of open sessions may not open another one, or
// nil. q may be nil.
func (q *Quota) RefusesSession(tenant string, open int64) *BudgetError {
	if q == nil || q.MaxSessions == nil || open < *q.MaxSessions {
		return nil
	}
	n := node{scope: Scope{Tenant: tenant}}
	return n.refuse(codeQuota, UnitSessions, *q.MaxSessions, open, 0, 1)
}

// Billed returns what a call is charged that was expected to need b: what u does not say is as
// expected, but for its cost.
func (b Book) Billed(u specialist.Usage) Book {
	return (&Ledger{}).bill(&Usage{Usage: u}, &call{entry: b}, nil)
}

// Above returns what b has more than other, for windows, which give nothing back.
func (b Book) Above(other Book) Book {
	over := b.amount().minus(other.amount()).orNothing()
	return Book{Calls: over.calls, TokensIn: over.tokens, Money: over.usd}
}
