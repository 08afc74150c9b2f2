package spend

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What a call is charged once it is over. settle books it, in all scopes of its path,
// in full: limits bind what is reserved, not what was used. Which way depends on what
// has become of the call meanwhile (ledger_calls.go):
//
//   - open: what it held is given back, and what it used is charged;
//   - expired: it was charged as estimated, which is replaced by what it used;
//   - lapsed, or made without a reservation: what it used is charged;
//   - over: only a usage with an id that was not charged yet is charged.
//
// A usage id is charged once in its session, so an answer that arrives twice costs
// once. bill turns a usage into an entry: counts that are missing are those of the
// estimate, a cost that the provider told is taken, another one is priced by the table
// as of the moment when the call was made.

// A Receipt says what settling a call did.
type Receipt struct {
	Charged   Book   // what this call has added to the books, all corrections included
	Duplicate bool   // it was charged before, so this time it was not
	Late      bool   // the reservation had been cleared
	Prices    string // version of the price table
	Reasons   []verdict.Reason
}

// Settle ends a call and charges what it needed, in full, even past a limit.
// Counts that u does not give, and negative ones, are those of the estimate; the
// call is then counted as estimated. Without a cost, u is priced by the table.
//
// A usage id is charged once in a session, whichever handle it came with. Settle
// may be called again with other ids, for calls that were several messages; a
// handle that is settled ignores usages without an id. Settling a call that was
// cleared replaces what it was charged.
//
// The reasons of the receipt say that a soft limit was passed, and that OnSoft
// did not take it well.
func (h *Handle) Settle(u Usage) Receipt {
	l, root := h.ledger, h.leaf.path[0]
	m := l.modelNamed(u.Model)
	now := l.windowTime(root)
	h.leaf.lock()
	c := root.calls.of(h)
	r, m := l.settle(h.leaf, c, m, &u, now)
	if c != nil {
		root.calls.drop(h.slot)
	}
	l.conclude(h.leaf, &r, &u, m)
	return r
}

// settle books u in leaf for the call c of the model m, and returns the model of the call
// if that is nil. Both may be nil: the call if it is over. The path is locked.
func (l *Ledger) settle(leaf *node, c *call, m *model, u *Usage, now int64) (Receipt, *model) {
	if m == nil && c != nil {
		m = c.model
	}
	r := Receipt{Duplicate: c == nil && u.ID == "" || !leaf.home().claims(u.ID)}
	if l.config.Prices != nil {
		r.Prices = l.config.Prices.Version
	}
	if !r.Duplicate {
		r.Charged = l.bill(u, c, m)
	}
	switch {
	case c == nil:
		leaf.charge(r.Charged, false, now)
	case c.open():
		c.unhold()
		leaf.charge(r.Charged, c.probe, now)
	case c.state == callExpired:
		r.Late = true
		leaf.kept(-1)
		leaf.correct(c.entry, r.Charged, c.probe, now)
	default: // callLapsed, or callFree if there was no reservation
		if r.Late = c.state == callLapsed; r.Late {
			leaf.kept(-1)
		}
		leaf.charge(r.Charged, c.probe, now)
	}
	return r, m
}

// claims notes a usage id and reports whether it is to be charged: it has not
// been before, and the session is open. No id is always to be charged.
func (n *node) claims(id string) bool {
	if n.closed {
		return false
	}
	if id == "" {
		return true
	}
	if _, again := n.settled[id]; again {
		return false
	}
	n.settled[id] = struct{}{}
	return true
}

// conclude unlocks leaf and does what follows a settlement without a lock: it remembers
// the length of the output and announces the limits that were passed.
func (l *Ledger) conclude(leaf *node, r *Receipt, u *Usage, m *model) {
	due := leaf.collect()
	leaf.unlock()
	if m != nil && !r.Duplicate && !u.Estimated && u.Has(specialist.OutputGiven) && u.NumOutputTokens >= 0 {
		m.Add(u.NumOutputTokens)
	}
	if due != nil {
		r.Reasons = l.announce(due)
	}
}

// Charge books a call that was made without a reservation, whatever the limits
// say. Counts that u does not give are those of the estimate. A usage id that was
// charged before is not charged again. The error wraps [verdict.ErrInput] for a scope or
// an estimate that cannot be; it is a [*BudgetError] if a quota does not let the
// session be opened.
func (l *Ledger) Charge(s Scope, e Estimate, u Usage) (Receipt, error) {
	if err := e.check(); err != nil {
		return Receipt{}, err
	}
	now := l.config.Now()
	for {
		leaf, known, err := l.find(&s, e.Model, now)
		if err != nil {
			return Receipt{}, err
		}
		c := l.call(leaf, known, &e, now)
		if r, open := l.charge(leaf, &c, &u); open {
			return r, nil
		}
	}
}

// charge books u for c, which has no reservation. open is false if the scope was
// closed in the meantime.
func (l *Ledger) charge(leaf *node, c *call, u *Usage) (r Receipt, open bool) {
	m := l.modelNamed(u.Model)
	leaf.lock()
	if leaf.closed {
		leaf.unlock()
		return r, false
	}
	r, m = l.settle(leaf, c, m, u, c.at)
	l.conclude(leaf, &r, u, m)
	return r, true
}

// bill returns what u is charged for the call c of the model m. Both may be nil.
func (l *Ledger) bill(u *Usage, c *call, m *model) Book {
	if c == nil {
		c = &call{at: l.config.Now().UnixMilli()}
	}
	if c.waived {
		return Book{}
	}
	use := u.Usage
	if !use.Has(specialist.InputGiven) || use.NumInputTokens < 0 {
		use.NumInputTokens, use.Estimated = c.entry.TokensIn, true
	}
	if !use.Has(specialist.OutputGiven) || use.NumOutputTokens < 0 {
		use.NumOutputTokens, use.Estimated = c.entry.TokensOut, true
	}
	b := Book{Calls: use.Made(), TokensIn: use.NumInputTokens, TokensOut: use.NumOutputTokens}
	price, how := m.priceAt(moment(c.at)), Priced
	if price != nil {
		b.TokensIn = price.input(&use)
	}
	switch {
	case use.Has(specialist.CostGiven):
		b.Money = max(use.CostUSD, 0)
	case price != nil:
		b.Money = price.cost(&use)
	case m != nil:
		b.Money, how = l.config.Prices.guess(moment(c.at), func(p *Price) exact.Money { return p.cost(&use) })
		b.Unpriced = use.Billed()
	}
	if use.Estimated || how == PricedAsCostliest {
		b.Estimated = 1
	}
	return b
}

// charge adds to the books of n and of all around it. The path is locked.
func (n *node) charge(b Book, probe bool, now int64) {
	n.spend(b)
	if probe {
		n.path[1].probes = n.path[1].probes.Plus(b)
	}
	n.path[0].pass(b.amount(), now)
}

// correct replaces one entry in the books of n and of all around it. Windows of
// quotas only see what is more: they give nothing back.
func (n *node) correct(was, is Book, probe bool, now int64) {
	for _, p := range n.path[:n.depth] {
		p.spent = p.spent.corrected(was, is)
		p.notice()
	}
	if probe {
		n.path[1].probes = n.path[1].probes.corrected(was, is)
	}
	n.path[0].pass(is.amount().minus(was.amount()).orNothing(), now)
}

// orNothing returns a without what is negative.
func (a amount) orNothing() amount {
	return amount{max(a.tokens, 0), max(a.calls, 0), max(a.usd, 0)}
}
