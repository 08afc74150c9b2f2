package guard

import (
	"slices"

	"github.com/dialai/dialai/specialist"
)

// Price returns u with its cost filled in from the price table, if the model is
// in it and the cost is not already known. c may be nil.
func (c *Config) Price(u specialist.Usage, model string) specialist.Usage {
	if c == nil || u.Has(specialist.CostGiven) {
		return u
	}
	p, known := c.Cost.Prices[model]
	if !known {
		return u
	}
	return u.WithCost(p.InputPer1M.PerMillion(u.NumInputTokens).Add(p.OutputPer1M.PerMillion(u.NumOutputTokens)))
}

// Knows reports whether the table has a price for the model.
func (c *Config) Knows(model string) bool {
	if c == nil {
		return false
	}
	_, known := c.Cost.Prices[model]
	return known
}

// Models returns the models with a price, sorted.
func (c *Config) Models() []string {
	if c == nil {
		return nil
	}
	return slices.Clip(sortedKeys(c.Cost.Prices))
}
