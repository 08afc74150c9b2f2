package spend

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// A Budget is limits, and nothing that is spent: it is read from the guards' section and
// never changes. Admit compares it with two sums that its caller keeps, what is spent
// and what is held; a Ledger keeps them for callers of its own, an engine folds them
// from the log of the session. A limit that is reached refuses the next call; a soft one
// only warns.

// A Budget limits what may be spent in one scope of a [Ledger]. Nil means no
// limit; every limit is the largest permitted value. The zero Budget limits
// nothing. A Budget must not be changed once a Ledger has it.
type Budget struct {
	SoftTokens *int64 `json:"soft_limit_tokens,omitempty"` // input and output together
	HardTokens *int64 `json:"hard_limit_tokens,omitempty"`
	HardCalls  *int64 `json:"hard_limit_calls,omitempty"`

	SoftUSD *exact.Money `json:"soft_limit_usd,omitempty"`
	HardUSD *exact.Money `json:"hard_limit_usd,omitempty"`
	// DefaultUSD is what an ask of a service or a model is thought to cost of which
	// nothing else says so. Under HardUSD and without it, such an ask is not made. A
	// [Ledger] does not read it: whoever reserves there says what a call may cost.
	DefaultUSD *exact.Money `json:"default_estimate_usd,omitempty"`

	// Milliseconds: since the scope was opened, since the round was (for every
	// round of a session), and since the session's last progress.
	WallMsec       *int64 `json:"hard_limit_wall_ms,omitempty"`
	RoundWallMsec  *int64 `json:"round_limit_wall_ms,omitempty"`
	NoProgressMsec *int64 `json:"no_progress_ms,omitempty"`

	Mode BudgetMode `json:"mode,omitempty"` // "" is ModeHardKill

	// DebitProbes charges the guard's own calls too; otherwise they cost nothing
	// here. ProbeShareMax, from 0 to 1, is the most they may be of all that a
	// session spends.
	DebitProbes   bool              `json:"debit_probes"`
	ProbeShareMax *exact.Billionths `json:"probe_share_max,omitempty"`

	ReserveTTLMsec int64       `json:"reserve_ttl_ms,omitempty"` // 0 is DefaultReserveTTLMsec
	ReserveMode    ReserveMode `json:"reserve_mode,omitempty"`   // "" is ReserveStatic

	// Bounded says that something else bounds the session, such as a limit of
	// steps: then a dollar limit that cannot see an unpriced model is not the only
	// one. It is not part of the section.
	Bounded bool `json:"x-bounded,omitempty"`
}

// A BudgetMode says what a limit that is reached does.
type BudgetMode string

// The modes: refuse, or only warn.
const (
	ModeHardKill BudgetMode = "hard_kill"
	ModeObserve  BudgetMode = "observe"
)

// A ReserveMode says how much output is reserved for a call.
type ReserveMode string

// The modes: as much as the request allows, or as much as the model's last
// outputs make likely.
const (
	ReserveStatic   ReserveMode = "static"
	ReserveAdaptive ReserveMode = "adaptive"
)

// Defaults of a budget section.
const (
	DefaultReserveTTLMsec                  = 60_000
	DefaultProbeShareMax  exact.Billionths = exact.One / 5
)

// ParseBudget reads a budget section, a JSON object, with the defaults of the
// profile strict. The problems have JSON pointers relative to the section.
func ParseBudget(data []byte) (*Budget, []machine.Problem) {
	b := &Budget{
		Mode: ModeHardKill, DebitProbes: true, ProbeShareMax: new(DefaultProbeShareMax),
		ReserveTTLMsec: DefaultReserveTTLMsec, ReserveMode: ReserveAdaptive,
	}
	problems := section.Parse("budget", data, func(r *section.Reader) func(path string, value []byte) { return r.Object(budgetMembers(r, b)) })
	problems = append(problems, b.Contradictions()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return b, nil
}

func budgetMembers(r *section.Reader, b *Budget) []section.Member {
	return []section.Member{
		{Name: "soft_limit_tokens", Read: r.OptionalCount(&b.SoftTokens)},
		{Name: "hard_limit_tokens", Read: r.OptionalCount(&b.HardTokens)},
		{Name: "hard_limit_calls", Read: r.OptionalCount(&b.HardCalls)},
		{Name: "soft_limit_usd", Read: r.OptionalMoney(&b.SoftUSD)},
		{Name: "hard_limit_usd", Read: r.OptionalMoney(&b.HardUSD)},
		{Name: "default_estimate_usd", Read: r.OptionalMoney(&b.DefaultUSD)},
		{Name: "hard_limit_wall_ms", Read: r.OptionalCount(&b.WallMsec)},
		{Name: "round_limit_wall_ms", Read: r.OptionalCount(&b.RoundWallMsec)},
		{Name: "no_progress_ms", Read: r.OptionalCount(&b.NoProgressMsec)},
		{Name: "mode", Read: r.OneOf((*string)(&b.Mode), string(ModeHardKill), string(ModeObserve))},
		{Name: "debit_probes", Read: r.Flag(&b.DebitProbes)},
		{Name: "probe_share_max", Read: r.OptionalShare(&b.ProbeShareMax)},
		{Name: "reserve_ttl_ms", Read: r.Count(&b.ReserveTTLMsec, 1)},
		{Name: "reserve_mode", Read: r.OneOf((*string)(&b.ReserveMode), string(ReserveStatic), string(ReserveAdaptive))},
	}
}

// Contradictions are limits that cannot both be meant.
func (b *Budget) Contradictions() (problems []machine.Problem) {
	above := func(soft, hard, softText, hardText string) {
		problems = append(problems, machine.Problem{Path: "/" + soft, Code: "contradiction",
			Message: fmt.Sprintf("%s is %s, more than %s, which is %s", soft, softText, hard, hardText),
			Hint:    "a soft limit warns before the hard one stops"})
	}
	if b.SoftTokens != nil && b.HardTokens != nil && *b.SoftTokens > *b.HardTokens {
		above("soft_limit_tokens", "hard_limit_tokens", fmt.Sprint(*b.SoftTokens), fmt.Sprint(*b.HardTokens))
	}
	if b.SoftUSD != nil && b.HardUSD != nil && *b.SoftUSD > *b.HardUSD {
		above("soft_limit_usd", "hard_limit_usd", b.SoftUSD.String(), b.HardUSD.String())
	}
	return problems
}

// Check refuses what ParseBudget would have refused, for budgets made by hand.
func (b *Budget) Check() error {
	if b == nil {
		return nil
	}
	for _, n := range []*int64{
		b.SoftTokens, b.HardTokens, b.HardCalls, (*int64)(b.SoftUSD), (*int64)(b.HardUSD), (*int64)(b.DefaultUSD),
		b.WallMsec, b.RoundWallMsec, b.NoProgressMsec, &b.ReserveTTLMsec,
	} {
		if n != nil && *n < 0 {
			return fmt.Errorf("%w: a limit of the budget is negative", verdict.ErrInput)
		}
	}
	if p := b.Contradictions(); len(p) > 0 {
		return fmt.Errorf("%w: %s", verdict.ErrInput, p[0].Message)
	}
	switch {
	case b.Mode != "" && b.Mode != ModeHardKill && b.Mode != ModeObserve:
		return fmt.Errorf("%w: unknown mode %q of the budget", verdict.ErrInput, b.Mode)
	case b.ReserveMode != "" && b.ReserveMode != ReserveStatic && b.ReserveMode != ReserveAdaptive:
		return fmt.Errorf("%w: unknown reserve mode %q of the budget", verdict.ErrInput, b.ReserveMode)
	case b.ProbeShareMax != nil && (*b.ProbeShareMax < 0 || *b.ProbeShareMax > exact.One):
		return fmt.Errorf("%w: the share of probes is %s, not from 0 to 1", verdict.ErrInput, *b.ProbeShareMax)
	}
	return nil
}

// A BudgetError is why a [Ledger] refused a call. Numbers are in Unit; a limit of
// dollars is in pico-dollars, as [exact.Money] counts.
type BudgetError struct {
	Code     string // such as "budget_tokens"
	Scope    Scope  // whose limit it is
	Unit     Unit
	Limit    int64
	Spent    int64 // settled so far; for times, the milliseconds that have passed
	Reserved int64 // held by others
	Estimate int64 // what this call would need
}

// A Unit is what a limit counts.
type Unit string

// The units of limits.
const (
	UnitTokens       Unit = "tokens"
	UnitCalls        Unit = "calls"
	UnitUSD          Unit = "usd"
	UnitMilliseconds Unit = "ms"
	UnitSessions     Unit = "sessions"
	UnitChildren     Unit = "children"
	UnitLevels       Unit = "levels"
	UnitShare        Unit = "share" // billionths
)

// Codes of a [BudgetError] and of the ledger's reasons.
const (
	CodeTokens      = "budget_tokens"
	CodeCalls       = "budget_calls"
	CodeUSD         = "budget_usd"
	CodeWall        = "budget_wall"
	CodeNoProgress  = "budget_no_progress"
	CodeProbeShare  = "budget_probe_share"
	CodeSoft        = "budget_soft"
	CodeUnpricedAsk = "unpriced_ask"
	codeContended   = "budget_contended"
	codeQuota       = "quota_exceeded"
	codeVelocity    = "quota_velocity"
	codeUnpriced    = "unpriced_model"
)

// UnpricedHint is how an ask is given a price.
const UnpricedHint = "write estimatedCostUSD for it (0 if it is free), a price for its model in cost.prices, or budget.default_estimate_usd beside the limit"

func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s: %s", e.Code, e.message())
}

func (e *BudgetError) message() string {
	switch {
	case e.Code == CodeUnpricedAsk:
		return fmt.Sprintf("nothing says what it may cost, so the dollar limit of %s, which is %s, would not see it: %s", e.where(), e.text(e.Limit), UnpricedHint)
	case e.Code == codeUnpriced:
		return fmt.Sprintf("the model has no price, so the dollar limit of %s would not see the call", e.where())
	case e.Unit == UnitMilliseconds:
		return fmt.Sprintf("%d ms have passed in %s, more than the limit of %d", e.Spent, e.where(), e.Limit)
	}
	return fmt.Sprintf("%s %s in %s: %s spent, %s reserved and %s more are above the limit of %s",
		e.what(), e.Unit, e.where(), e.text(e.Spent), e.text(e.Reserved), e.text(e.Estimate), e.text(e.Limit))
}

// where names the scope; errors of a task whose calls the caller knows have none.
func (e *BudgetError) where() string {
	if e.Scope == (Scope{}) {
		return "the task"
	}
	return e.Scope.String()
}

func (e *BudgetError) what() string {
	switch e.Code {
	case codeContended:
		return "open calls hold the last"
	case CodeProbeShare:
		return "probes take too many"
	case codeVelocity:
		return "too fast: a window allows no more"
	}
	return "not enough"
}

// text returns a number of the error's unit for a message.
func (e *BudgetError) text(n int64) string {
	if e.Unit == UnitUSD {
		return "$" + e.number(n)
	}
	return e.number(n)
}

func (e *BudgetError) number(n int64) string {
	switch e.Unit {
	case UnitUSD:
		return exact.Money(n).String()
	case UnitShare:
		return exact.Billionths(n).String()
	}
	return fmt.Sprint(n)
}

// Class returns how severe the refusal is: Retry for what passes once other
// calls are settled or time goes by, Abort for the rest.
func (e *BudgetError) Class() verdict.Status {
	switch e.Code {
	case codeContended, codeVelocity:
		return verdict.Retry
	case CodeUnpricedAsk:
		return verdict.Escalate // somebody else may be asked, or a human decides
	}
	return verdict.Abort
}

// Reason returns the refusal as one reason of a verdict.
func (e *BudgetError) Reason() verdict.Reason {
	return verdict.Reason{Code: e.Code, Guard: "budget", Class: e.Class(), Message: e.message(),
		Limit: e.number(e.Limit), Seen: e.number(exact.AddSat(exact.AddSat(e.Spent, e.Reserved), e.Estimate))}
}
