package guard

import (
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// Price returns u with its cost filled in from the price table, by the newest
// prices, if the cost is not already known. A model that is not in the table
// leaves u as it is, unless the table says to take its costliest price, or the budget
// says what an ask costs of which nothing else does: then the cost is marked as
// estimated. c may be nil.
func (c *Config) Price(u specialist.Usage, model string) specialist.Usage {
	if c == nil || u.Has(specialist.CostGiven) {
		return u
	}
	if u.Billed() == 0 {
		return u.WithCost(0)
	}
	cost, pricing := c.Cost.Table().Quote(u, model, time.Time{})
	switch {
	case model == "", pricing == spend.Unpriced && (c.Budget == nil || c.Budget.DefaultUSD == nil):
		return u
	case pricing == spend.Unpriced:
		cost = c.Budget.DefaultUSD.Times(u.Billed())
	}
	u.Estimated = u.Estimated || pricing != spend.Priced
	return u.WithCost(cost)
}

// Table returns the prices as a table of their own.
func (c Cost) Table() *spend.PriceTable {
	return &spend.PriceTable{Version: c.Version, Prices: c.Prices, OnUnknownModel: c.OnUnknownModel}
}

// Knows reports whether the table has a price for the model.
func (c *Config) Knows(model string) bool {
	if c == nil {
		return false
	}
	_, known := c.Cost.Prices[model]
	return known
}
