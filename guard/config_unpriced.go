package guard

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// A hard limit of dollars holds only if it sees what is asked for. So an ask of a
// service or a model needs to say beforehand what it may cost: by its own estimate, by
// the price of its model, or by the budget's default for whoever says nothing. What
// says nothing is not asked; what a machine file names is a load error. A section of
// profile compat keeps what was published of it: such asks cost nothing until their
// answer says otherwise, and lint warns.

// UnpricedAsk is the code of a problem about an ask of which nothing says what it may
// cost, under a hard limit of dollars.
const UnpricedAsk = "unpriced-ask"

// unpricedService is how an ask of a service is given a price.
const unpricedService = "write estimatedCostUSD for it (0 if it is free), or budget.default_estimate_usd beside the limit"

// DefaultEstimate returns what an ask is thought to cost of which nothing else says
// so; 0 if the budget does not say. c may be nil.
func (c *Config) DefaultEstimate() exact.Money {
	if c == nil || c.Budget == nil || c.Budget.DefaultUSD == nil {
		return 0
	}
	return *c.Budget.DefaultUSD
}

// Unpriced returns why an ask may not be made of which nothing says what it may cost;
// nil if it may. c may be nil.
func (c *Config) Unpriced() *spend.BudgetError {
	if c == nil || c.Profile == Compat || !c.Budget.CapsDollars() || c.Budget.DefaultUSD != nil {
		return nil
	}
	return &spend.BudgetError{Code: spend.CodeUnpricedAsk, Unit: spend.UnitUSD, Limit: int64(*c.Budget.HardUSD)}
}

// CheckPriced returns a function that says what is wrong with a specialist which is
// asked by webhook under the guards section of a machine; nil if everybody may be asked,
// or the section is not valid. What models cost a program knows only when it starts.
func CheckPriced(section []byte) func(*machine.Specialist) *machine.Problem {
	c, problems := Parse(section, false)
	if len(problems) > 0 || c.Unpriced() == nil {
		return nil
	}
	return func(s *machine.Specialist) *machine.Problem {
		if s.IsHuman || s.Off() || s.StrategyWebhookURL == "" || s.EstimatedCostUSD != nil {
			return nil
		}
		return &machine.Problem{Code: UnpricedAsk, Hint: unpricedService, Message: fmt.Sprintf(
			"specialist %q is asked by webhook and does not say what that may cost, so the limit budget.hard_limit_usd of $%s would not see it", s.SpecialistID, c.Budget.HardUSD)}
	}
}
