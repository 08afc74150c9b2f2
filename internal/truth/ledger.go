package truth

import (
	"fmt"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// A Ledger counts what a truth gate spends. Record, Tripped and Totals may be
// called concurrently, by several gates and by others.
type Ledger interface {
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

// A TokenLedger is the [Ledger] of a budget of tokens and of calls. It remembers
// every id it has charged, for as long as it lives. It may be used concurrently.
type TokenLedger struct {
	budget *spend.Budget
	onSoft func(TokenTotals) error

	mu     sync.Mutex
	spent  spend.Book
	ids    map[string]bool
	warned bool
}

// NewTokenLedger returns an empty ledger. Its calls are records, not calls of a model.
// onSoft, if not nil, is called once in the life of the ledger, by the Record that first
// crosses the soft limit, and may call the ledger; its error is Record's, and what was
// recorded stays. NewTokenLedger returns an error if the budget cannot be used, or limits
// what the ledger does not see: dollars and times. A nil b, and
// the zero Budget, limit nothing.
func NewTokenLedger(b *spend.Budget, onSoft func(TokenTotals) error) (*TokenLedger, error) {
	if b == nil {
		b = &spend.Budget{}
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	if b.SoftUSD != nil || b.HardUSD != nil || b.WallMsec != nil || b.RoundWallMsec != nil || b.NoProgressMsec != nil {
		return nil, fmt.Errorf("%w: a budget of tokens limits neither dollars nor times", verdict.ErrInput)
	}
	return &TokenLedger{budget: b, onSoft: onSoft, ids: map[string]bool{}}, nil
}

// Record adds u, unless its id has been charged before. It returns an error that
// is [verdict.ErrInput] for negative tokens, which are not recorded, and the error that
// the soft limit made.
func (l *TokenLedger) Record(u TokenUsage) (soft bool, err error) {
	if u.Input < 0 || u.Output < 0 {
		return false, fmt.Errorf("%w: %d and %d tokens", verdict.ErrInput, u.Input, u.Output)
	}
	totals, soft := l.add(u)
	if soft && l.onSoft != nil {
		err = l.onSoft(totals)
	}
	return soft, err
}

func (l *TokenLedger) add(u TokenUsage) (totals TokenTotals, soft bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.ID != "" && l.ids[u.ID] {
		return l.totals(), false
	}
	if u.ID != "" {
		l.ids[u.ID] = true
	}
	l.spent = l.spent.Plus(spend.Book{Calls: 1, TokensIn: u.Input, TokensOut: u.Output})
	soft = !l.warned && l.budget.OverSoft(l.spent)
	l.warned = l.warned || soft
	return l.totals(), soft
}

// Tripped says which hard limit has been crossed, tokens before calls.
func (l *TokenLedger) Tripped() Trip {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.budget.Judge(l.spent, 0, 0, 0) {
		return Trip{r.Code, r.Class == verdict.Abort}
	}
	return Trip{}
}

// Totals returns what has been recorded so far.
func (l *TokenLedger) Totals() TokenTotals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals()
}

func (l *TokenLedger) totals() TokenTotals {
	return TokenTotals{Tokens: exact.AddSat(l.spent.TokensIn, l.spent.TokensOut), Calls: l.spent.Calls}
}
