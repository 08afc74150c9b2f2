package spend

import (
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// Tables are a machine's table of prices and the program's, which is looked at after it.
// Either may be nil.
type Tables [2]*PriceTable

// Find returns the price of the first of some names that the machine's table knows, else
// of the first that the program's does.
func (t Tables) Find(names ...string) (p Price, known bool) {
	for _, table := range t {
		for _, name := range names {
			if p, known = table.Find(name); known && name != "" {
				return p, true
			}
		}
	}
	return Price{}, false
}

// Price returns u with what the call cost, and whether that is known. The model that
// answered is looked up by its own name first, then without its version. If neither is
// known, and its name is not that of a relative of the model that was asked, the server
// only has a name of its own for that: its price holds, as an estimate.
func (t Tables) Price(u specialist.Usage, of Called) (_ specialist.Usage, known bool) {
	if u.Billed() == 0 {
		return u.WithCost(0), true
	}
	p, known := t.Find(of.Answered, of.Model)
	if !known && of.Asked != "" && !AkinModels(of.Asked, of.Model) {
		p, known = t.Find(of.Asked)
		u.Estimated = u.Estimated || known
	}
	if !known {
		return u, false
	}
	return u.WithCost(p.Cost(u)), true
}

// Costliest returns what a call would cost of the costliest of the program's models, if
// unknown, which says what becomes of calls of models in neither table, asks for that.
func (t Tables) Costliest(u specialist.Usage, unknown string) (most exact.Money, asked bool) {
	if t[1] == nil {
		return 0, false
	}
	table := PriceTable{Prices: t[1].Prices, OnUnknownModel: unknown}
	most, how := table.guess(time.Time{}, func(p *Price) exact.Money { return p.cost(&u) })
	return most, how == PricedAsCostliest
}
