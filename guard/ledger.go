package guard

import "github.com/dialai/dialai/internal/spend"

// A program with agents of its own keeps what they spend in one [Ledger]: it reserves
// what a call may cost before it is made, and settles it by what it did cost. Sessions
// of the runner do so by themselves. The names are those of the engine's own ledger.
type (
	// A Ledger keeps what is spent and reserved, by scope. It may be used concurrently.
	Ledger = spend.Ledger
	// A LedgerConfig is what [NewLedger] needs: a clock, a budget, prices, quotas.
	LedgerConfig = spend.LedgerConfig
	// A LedgerScope says for whom something is spent: tenant, session, round, proposer.
	LedgerScope = spend.Scope
	// A LedgerOpening says how [Ledger.Open] opens a scope, for instance below which other.
	LedgerOpening = spend.Opening
	// A LedgerHandle is one reservation: start it, then settle or release it.
	LedgerHandle = spend.Handle
	// A CallEstimate is what a call may cost.
	CallEstimate = spend.Estimate
	// A CallUsage is what a call did cost.
	CallUsage = spend.Usage
	// A BudgetError is a refusal of the [Ledger]. It says which limit, and what is left.
	BudgetError = spend.BudgetError
	// A Quota bounds the sessions of a tenant, and how many and how deep they start others.
	Quota = spend.Quota
)

// NewLedger returns an empty Ledger. It returns an error wrapping [verdict.ErrInput] if
// the clock is missing or the budget is not valid. Budget and prices are those of a
// section: [Config.Budget] and [Cost.Table].
func NewLedger(c LedgerConfig) (*Ledger, error) { return spend.NewLedger(c) }
