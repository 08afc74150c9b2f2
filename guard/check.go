package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// Check judges one step of a task and changes nothing. c may be nil: then every
// step is ok. For a human's ruling only the budget checks run, and only an abort
// stops it.
func (c *Config) Check(s State, step Step) Verdict {
	if c == nil {
		return Verdict{}
	}
	var reasons []Reason
	reasons = c.limits(reasons, s, step)
	reasons = c.cost(reasons, s, step)
	if step.Human {
		return with(reasons).ForHuman()
	}
	reasons = c.cycles(reasons, s, step)
	reasons = c.attempts(reasons, step)
	return with(reasons)
}

func over(code, guard, what string, limit, seen int64) Reason {
	return Reason{Code: code, Guard: guard, Class: Abort,
		Message: fmt.Sprintf("%s is %d, more than the limit of %d", what, seen, limit),
		Limit:   fmt.Sprint(limit), Seen: fmt.Sprint(seen)}
}

func (c *Config) limits(reasons []Reason, s State, step Step) []Reason {
	if m := c.Limits.MaxSteps; m != nil && s.Steps+1 > *m {
		reasons = append(reasons, over("max_steps", "limits", "the number of steps", *m, s.Steps+1))
	}
	own := exact.AddSat(step.TokensIn, step.TokensOut)
	if m := c.Limits.MaxTokensPerStep; m != nil && own > *m {
		reasons = append(reasons, over("max_tokens_step", "limits", "the number of tokens of this step", *m, own))
	}
	if m := c.Limits.MaxTotalTokens; m != nil {
		total := exact.AddSat(s.Spent.TokensIn, s.Spent.TokensOut)
		if c.Limits.CapBasis == Progress {
			total = exact.AddSat(exact.AddSat(s.TokensIn, s.TokensOut), own)
		}
		if total > *m {
			reasons = append(reasons, over("max_tokens_total", "limits", "the number of tokens of the session", *m, total))
		}
	}
	return reasons
}

func (c *Config) cost(reasons []Reason, s State, step Step) []Reason {
	unpriced := s.Spent.Unpriced > 0
	if c.Limits.CapBasis == Progress {
		unpriced = step.Model != "" && !step.CostGiven
	}
	if unpriced && c.Cost.MaxDollars != nil {
		reasons = c.unpriced(reasons)
	}
	if m := c.Cost.MaxDollars; m != nil {
		total := s.Spent.Money
		if c.Limits.CapBasis == Progress {
			total = s.Money.Add(step.Cost)
		}
		if total > *m {
			reasons = append(reasons, Reason{Code: "cost_cap", Guard: "cost", Class: Abort,
				Message: fmt.Sprintf("the session has cost $%s, more than the cap of $%s", total, *m),
				Limit:   m.String(), Seen: total.String()})
		}
	}
	return reasons
}

// unpriced judges spending that no price covers: nothing to worry about while
// another cap bounds it.
func (c *Config) unpriced(reasons []Reason) []Reason {
	class := Warn
	onlyCap := c.Limits.MaxSteps == nil && c.Limits.MaxTotalTokens == nil && c.Limits.MaxTokensPerStep == nil
	switch {
	case c.Cost.OnUnknownModel == "skip":
		return reasons
	case c.Cost.OnUnknownModel == "abort" || onlyCap:
		class = Abort
	}
	return append(reasons, Reason{Code: "unpriced_model", Guard: "cost", Class: class,
		Message: "a model without a price was used, so the dollar cap does not see its cost"})
}

// cycles counts earlier visits of the state that knew no more than this one. The
// stay the session is in at the start counts as executed by nobody, so it is not
// among them.
func (c *Config) cycles(reasons []Reason, s State, step Step) []Reason {
	s.facts = s.factsAfter(step)
	now := visit{step.State, s.context(step)}
	seen := int64(1)
	var indices []int32
	for i, v := range s.visits {
		if v == now {
			seen++
			indices = append(indices, int32(i))
		}
	}
	if seen <= c.Loop.MaxStateVisits {
		return reasons
	}
	class := Abort
	if len(step.SessionMeta) == 0 && len(s.facts) == 0 {
		class = Warn // nothing is known, so nothing says that there was no progress
	}
	r := over("loop_state_cycle", "loop", fmt.Sprintf("the number of visits of state %q without news", step.State), c.Loop.MaxStateVisits, seen)
	r.Class, r.Indices = class, indices
	return append(reasons, r)
}

func (c *Config) attempts(reasons []Reason, step Step) []Reason {
	if m := c.Retry.MaxAttempts; m != nil && step.Attempt > *m {
		reasons = append(reasons, over("retry_exhausted", "retry", "the attempt", *m, step.Attempt))
	}
	return reasons
}

// Price returns u with its cost filled in from the price table, by the newest
// prices, if the cost is not already known. A model that is not in the table
// leaves u as it is, unless the table says to take its dearest price: then the
// cost is marked as estimated. c may be nil.
func (c *Config) Price(u specialist.Usage, model string) specialist.Usage {
	if c == nil || u.Has(specialist.CostGiven) {
		return u
	}
	cost, pricing := c.Cost.Table().Quote(u, model, time.Time{})
	if pricing == Unpriced || model == "" {
		return u
	}
	u = u.WithCost(cost)
	u.Estimated = u.Estimated || pricing == PricedAsDearest
	return u
}

// Table returns the prices as a table of their own.
func (c Cost) Table() *PriceTable {
	return &PriceTable{Version: c.Version, Prices: c.Prices, OnUnknownModel: c.OnUnknownModel}
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
