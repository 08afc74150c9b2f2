package runner

import (
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// What an ask may cost, before it is made, and what it did cost, after. Before: need
// says what a first call, each repair and each retry take, from the machine's estimate,
// else from the model's own at its price, else from the budget's default. After: price
// fills in what the answer does not say: the price of the model that answered, in the
// machine's table and then in the program's; else that of the model that was asked, if
// the answer only has the server's own name for it; else what the machine says of
// unknown models.
//
// What an answer says of its cost is never overruled. What is only thought to be so is
// marked as estimated. Something that nothing puts a price on is not asked where a limit
// of dollars is all that would end the session (unpriced).

// A need is what an ask of a member is expected to need.
type need struct {
	first            spend.Book // its first call; all of it for those who are no models
	repair           spend.Book // each call more that may be charged
	repairs, retries int64
	unpriced         bool // nothing says what it may cost
}

// need returns what an ask of a member is expected to need: what the machine says
// of its cost, else what the model's proposer says, at the price of the model. A
// function of this process that says nothing of its cost needs nothing.
func (t *assessment) need(m *planning.Member) need {
	if m.Local() && m.Estimate == 0 {
		return need{}
	}
	n := need{first: spend.Book{Calls: 1}}
	n.first.Money, n.unpriced = t.estimateOf(m)
	asked := m.Proposer
	if g, ok := asked.(given); ok {
		asked = g.Proposer
	}
	by, ok := asked.(specialist.Estimator)
	if !ok {
		return n
	}
	q := t.question()
	q.Self = m.SpecialistID
	e := by.Estimate(q)
	n.repairs, n.retries = e.Repairs, e.Retries
	n.first, n.unpriced = t.bookOf(m, &e)
	e.InputTokens = exact.AddSat(e.InputTokens, e.RepairInput)
	n.repair, _ = t.bookOf(m, &e)
	return n
}

// estimateOf returns what the machine says that an ask of a member costs, of a service
// that it says nothing of what its budget says of such. unsaid reports that.
func (t *round) estimateOf(m *planning.Member) (cost exact.Money, unsaid bool) {
	if m.Local() || m.EstimatedCostUSD != nil {
		return m.Estimate, false
	}
	return t.now.Program.Guards(t.now.State).DefaultEstimate(), true
}

// unpriced returns why an ask may not be made of which nothing says what it may cost;
// nil if it may, or something does.
func (t *round) unpriced(n need) *spend.BudgetError {
	if !n.unpriced {
		return nil
	}
	return t.now.Program.Guards(t.now.State).Unpriced()
}

// bookOf returns what one call of a model needs, and whether nothing says what it may
// cost: no estimate, and no price. Then it is the budget's default.
func (t *assessment) bookOf(m *planning.Member, e *specialist.Estimate) (b spend.Book, unpriced bool) {
	b = spend.Book{Calls: 1, Money: m.Estimate, TokensIn: e.InputTokens, TokensOut: e.OutputTokens}
	if b.Money == 0 {
		u := specialist.Usage{NumInputTokens: e.InputTokens, NumOutputTokens: e.OutputTokens, Given: specialist.InputGiven | specialist.OutputGiven}
		u = t.price(u, spend.Called{Model: e.Model})
		b.Money, unpriced = u.CostUSD, m.EstimatedCostUSD == nil && !u.Has(specialist.CostGiven)
	}
	if unpriced {
		b.Money = t.now.Program.Guards(t.now.State).DefaultEstimate()
	}
	return b, unpriced
}

// price fills in what an answer cost: the price of the machine comes first, then
// the program's, then what the machine does about models without a price.
func (t *assessment) price(u specialist.Usage, of spend.Called) specialist.Usage {
	return t.r.price(t.now.Program.Guards(t.now.State), u, of)
}

// price is that of an assessment under given guards, which may be nil.
func (r *Runner) price(c *guard.Config, u specialist.Usage, of spend.Called) specialist.Usage {
	if u.Has(specialist.CostGiven) || of.Model == "" {
		return u
	}
	tables := r.prices(c)
	if priced, known := tables.Price(u, of); known {
		return priced
	}
	own := c.Price(u, of.Model)
	if c != nil {
		if most, asked := tables.Costliest(u, c.Cost.OnUnknownModel); asked {
			own = own.WithCost(max(most, own.CostUSD))
			own.Estimated = true
		}
	}
	return own
}

// prices returns where prices are looked up: in the machine's table, then in the program's.
func (r *Runner) prices(c *guard.Config) spend.Tables {
	if c == nil {
		return spend.Tables{nil, r.config.Prices}
	}
	return spend.Tables{c.Cost.Table(), r.config.Prices}
}

// settle gives back what an ask held of a quota and did not need. What is to be
// answered later is charged as estimated until then, and so is what is given up, which
// the next step repeats.
func (r *Runner) settle(t tenants.Ticket, q *specialist.Question, h *response) {
	if r.quota == nil {
		return
	}
	if h.accepted || h.givenUp {
		t.GiveUp()
		return
	}
	u := h.usage()
	if p, err := r.programs.Of(q.Machine); err == nil {
		u = r.priced(p.Guards(q.State), h, u)
	}
	if !t.Holds() {
		r.quota.Charge(r.scopeOf(q.Key.Session, q.Machine, q.Meta), u)
	}
	t.Settle(u)
}

// pricesOf returns the version of the program's prices, "" for a machine that names
// no model: its sessions are priced without them.
func (r *Runner) pricesOf(m *machine.Machine) string {
	if r.config.Prices == nil {
		return ""
	}
	names := func(s machine.Specialist) bool { return s.ModelID != "" }
	if slices.ContainsFunc(m.Specialists(), names) || slices.ContainsFunc(m.States(), func(s machine.State) bool { return slices.ContainsFunc(s.Roster, names) }) {
		return r.config.Prices.Version
	}
	return ""
}
