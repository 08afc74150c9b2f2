package guard

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/verdict"
)

// A TruthLedger counts what a truth gate spends. Record, Tripped and Totals may be
// called concurrently, by several gates and by others.
type TruthLedger interface {
	// Record adds one record. soft says that it was the first to cross the soft
	// limit. An error, and a panic, makes the gate escalate.
	Record(u TokenUsage) (soft bool, err error)
	// Tripped says which hard limit has been crossed. The zero Trip means none.
	Tripped() Trip
	// Totals returns what has been recorded so far.
	Totals() TokenTotals
}

// A TokenUsage is one record of a ledger, in tokens.
type TokenUsage struct {
	ID        string `json:"id,omitempty"` // of the call; "" if it has none
	Input     int64  `json:"input"`        // from 0, as the next
	Output    int64  `json:"output"`
	Estimated bool   `json:"estimated,omitempty"` // at least one of the two is
}

// TokenTotals sums records. Sums saturate.
type TokenTotals struct {
	Tokens int64 `json:"tokens"` // input and output
	Calls  int64 `json:"calls"`  // records, not model calls
}

// A Trip names a hard limit that was crossed.
type Trip struct {
	Code string // budget_tokens or budget_calls; "" if none was
	Kill bool   // whether that stops the gate
}

// The codes of a Trip.
const (
	CodeBudgetTokens = "budget_tokens"
	CodeBudgetCalls  = "budget_calls"
)

// A TripMode says what crossing a hard limit does.
type TripMode string

// The modes: stop, or only warn.
const (
	TripKill    TripMode = "hard_kill"
	TripObserve TripMode = "observe"
)

// A TokenBudget bounds a [TokenLedger]. Limits are from 0, are the largest
// permitted values, and nil means none. The zero TokenBudget bounds nothing.
type TokenBudget struct {
	SoftLimitTokens *int64
	HardLimitTokens *int64
	HardLimitCalls  *int64   // records
	Mode            TripMode // "" is TripKill
	// OnSoftWarn, if not nil, is called once in the life of a ledger, by the
	// Record that first crosses the soft limit, and may call the ledger. Its error
	// is Record's; what was recorded stays.
	OnSoftWarn func(TokenTotals) error
}

// Check returns an error for each limit that cannot be used.
func (b TokenBudget) Check() error {
	var errs []error
	for _, l := range []struct {
		key   string
		value *int64
	}{{"soft_limit_tokens", b.SoftLimitTokens}, {"hard_limit_tokens", b.HardLimitTokens}, {"hard_limit_calls", b.HardLimitCalls}} {
		if l.value != nil && *l.value < 0 {
			errs = append(errs, budgetError(l.key, fmt.Sprint(*l.value), "it must not be negative"))
		}
	}
	if soft, hard := b.SoftLimitTokens, b.HardLimitTokens; soft != nil && hard != nil && *soft > *hard {
		errs = append(errs, budgetError("soft_limit_tokens", fmt.Sprint(*soft), fmt.Sprintf("it must be at most hard_limit_tokens, which is %d", *hard)))
	}
	if b.Mode != "" && b.Mode != TripKill && b.Mode != TripObserve {
		errs = append(errs, budgetError("mode", fmt.Sprintf("%q", b.Mode), fmt.Sprintf("it must be one of %q", []TripMode{TripKill, TripObserve})))
	}
	return errors.Join(errs...)
}

func budgetError(key, value, problem string) error {
	return &OptionError{Key: "budget." + key, Value: value, Problem: problem}
}

// ParseTokenBudget reads a budget, a JSON object with the members
// soft_limit_tokens, hard_limit_tokens, hard_limit_calls and mode. Its error joins
// one [OptionError] for each member that cannot be used.
func ParseTokenBudget(data []byte) (TokenBudget, error) {
	var b TokenBudget
	r := &optionReader{path: "budget"}
	r.object(data, b.options())
	if err := r.err(); err != nil {
		return TokenBudget{}, err
	}
	return b, b.Check()
}

func (b *TokenBudget) options() []option {
	return []option{
		countOption("soft_limit_tokens", &b.SoftLimitTokens),
		countOption("hard_limit_tokens", &b.HardLimitTokens),
		countOption("hard_limit_calls", &b.HardLimitCalls),
		choiceOption("mode", &b.Mode, TripKill, TripObserve),
	}
}

// A TokenLedger is the [TruthLedger] of a [TokenBudget]. It remembers every id it
// has charged, for as long as it lives. It may be used concurrently.
type TokenLedger struct {
	budget TokenBudget

	mu     sync.Mutex
	totals TokenTotals
	ids    map[string]bool
	warned bool
}

// NewTokenLedger returns an empty ledger, or the error of b.Check.
func NewTokenLedger(b TokenBudget) (*TokenLedger, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	return &TokenLedger{budget: b, ids: map[string]bool{}}, nil
}

// Record adds u, unless its id has been charged before. It returns an error that
// is [ErrInput] for negative tokens, which are not recorded, and the error of
// OnSoftWarn.
func (l *TokenLedger) Record(u TokenUsage) (soft bool, err error) {
	if u.Input < 0 || u.Output < 0 {
		return false, fmt.Errorf("%w: %d and %d tokens", verdict.ErrInput, u.Input, u.Output)
	}
	totals, soft := l.add(u)
	if soft && l.budget.OnSoftWarn != nil {
		err = l.budget.OnSoftWarn(totals)
	}
	return soft, err
}

func (l *TokenLedger) add(u TokenUsage) (totals TokenTotals, soft bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.ID != "" && l.ids[u.ID] {
		return l.totals, false
	}
	if u.ID != "" {
		l.ids[u.ID] = true
	}
	l.totals.Calls = exact.AddSat(l.totals.Calls, 1)
	l.totals.Tokens = exact.AddSat(l.totals.Tokens, exact.AddSat(u.Input, u.Output))
	soft = !l.warned && l.budget.SoftLimitTokens != nil && l.totals.Tokens > *l.budget.SoftLimitTokens
	l.warned = l.warned || soft
	return l.totals, soft
}

// Tripped says which hard limit has been crossed, tokens before calls.
func (l *TokenLedger) Tripped() Trip {
	totals := l.Totals()
	kill := l.budget.Mode != TripObserve
	switch tokens, calls := l.budget.HardLimitTokens, l.budget.HardLimitCalls; {
	case tokens != nil && totals.Tokens > *tokens:
		return Trip{CodeBudgetTokens, kill}
	case calls != nil && totals.Calls > *calls:
		return Trip{CodeBudgetCalls, kill}
	}
	return Trip{}
}

// Totals returns what has been recorded so far.
func (l *TokenLedger) Totals() TokenTotals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals
}
