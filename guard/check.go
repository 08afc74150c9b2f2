package guard

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// The checks of one step, in the published order: limits, contents, tools, cost, budget,
// and then, for steps that are no human's, loops, attempts and batches. Each one runs,
// whatever the others found, so that a verdict names all reasons at once: the gravest
// first, whose class is the status, and equally grave ones in this order. A human's
// ruling is stopped only by an abort.
//
// A check changes nothing and remembers nothing: State is a value, and who records the
// step makes the next one of it (Advance, Refuse). So a check may be made again, live
// and from the log, and says the same. What asks somebody outside is not here: it was
// asked before.

// Check judges one step of a task and changes nothing. c may be nil: then every
// step is ok. For a human's ruling only the checks of budgets and tools and the
// packs run, and only an abort stops it. A step whose tool calls cannot be read is stopped.
func (c *Config) Check(s State, step verdict.Step) verdict.Verdict {
	if c == nil {
		return verdict.Verdict{}
	}
	l := looks.Get().(*look)
	defer l.release()
	l.step, l.before = step, s
	m := s.memory
	if m == nil {
		m = &memory{}
	}
	if err := l.read(c, &l.step, m.foresee(c, &l.step)); err != nil {
		return verdict.Verdict{Status: verdict.Abort, Reasons: []verdict.Reason{{Code: "internal_error", Guard: "internal", Class: verdict.Abort, Message: err.Error()}}}
	}
	return c.judge(&l.before, m, &l.step, l)
}

// judge runs every check, in the published order.
func (c *Config) judge(s *State, m *memory, step *verdict.Step, l *look) verdict.Verdict {
	k := &checking{c: c, s: s, m: m, step: step, look: l}
	k.limits()
	k.content()
	k.tools()
	k.cost()
	k.budget()
	if step.Human {
		return verdict.Of(k.reasons).ForHuman()
	}
	k.loops()
	k.attempts()
	k.batch()
	v := verdict.Of(k.reasons)
	v.Notices = k.notices
	return v
}

// A checking is one run of the checks.
type checking struct {
	c       *Config
	s       *State
	m       *memory
	step    *verdict.Step
	look    *look
	reasons []verdict.Reason
	notices []string
	firsts  []bool // of calls, whether they are the first of their tool; nil for few calls
}

func (k *checking) report(r verdict.Reason) { k.reasons = append(k.reasons, r) }

// over reports a number above its limit, as an abort.
func (k *checking) over(code, guard, what string, limit, seen int64) *verdict.Reason {
	k.report(verdict.Reason{
		Code: code, Guard: guard, Class: verdict.Abort,
		Message: fmt.Sprintf("%s is %d, more than the limit of %d", what, seen, limit),
		Limit:   fmt.Sprint(limit), Seen: fmt.Sprint(seen),
	})
	return &k.reasons[len(k.reasons)-1]
}

func (k *checking) limits() {
	l, step := &k.c.Limits, k.step
	if next := max(exact.AddSat(k.s.Steps, 1), step.Number); l.MaxSteps != nil && next > *l.MaxSteps {
		k.over("max_steps", "limits", "the number of steps", *l.MaxSteps, next)
	}
	own := exact.AddSat(step.TokensIn, step.TokensOut)
	if l.MaxTokensPerStep != nil && own > *l.MaxTokensPerStep {
		k.over("max_tokens_step", "limits", "the number of tokens of this step", *l.MaxTokensPerStep, own)
	}
	if l.MaxTotalTokens != nil {
		total := exact.AddSat(k.s.Spent.TokensIn, k.s.Spent.TokensOut)
		if l.CapBasis == Progress {
			total = exact.AddSat(exact.AddSat(k.s.TokensIn, k.s.TokensOut), own)
		}
		if total > *l.MaxTotalTokens {
			k.over("max_tokens_total", "limits", "the number of tokens of the session", *l.MaxTotalTokens, total)
		}
	}
	if !step.Human {
		k.length()
	}
}

func (k *checking) length() {
	low, high := k.c.Limits.OutputMin, k.c.Limits.OutputMax
	if !k.step.HasOutput || low == nil && high == nil {
		return
	}
	n := k.look.runes(k.step.Output)
	if low != nil && n < *low {
		k.report(verdict.Reason{
			Code: "length_min", Guard: "limits", Class: verdict.Retry,
			Message: fmt.Sprintf("the output has %d characters, fewer than %d", n, *low), Limit: fmt.Sprint(*low), Seen: fmt.Sprint(n),
		})
	}
	if high != nil && n > *high {
		k.over("length_max", "limits", "the length of the output", *high, n).Class = verdict.Retry
	}
}

func (k *checking) cost() {
	c := &k.c.Cost
	unpriced := k.s.Spent.Unpriced > 0
	if k.c.Limits.CapBasis == Progress {
		unpriced = k.step.Model != "" && !k.step.CostGiven
	}
	if unpriced && c.MaxDollars != nil || k.s.Spent.Unpriced > 0 && k.c.Budget.CapsDollars() {
		k.unpriced()
	}
	if c.MaxDollars == nil {
		return
	}
	total := k.s.Spent.Money
	if k.c.Limits.CapBasis == Progress {
		total = k.s.Money.Add(k.step.Cost)
	}
	if total > *c.MaxDollars {
		k.report(verdict.Reason{
			Code: "cost_cap", Guard: "cost", Class: verdict.Abort,
			Message: fmt.Sprintf("the session has cost $%s, more than the cap of $%s", total, *c.MaxDollars),
			Limit:   c.MaxDollars.String(), Seen: total.String(),
		})
	}
}

// unpriced judges spending that no price covers: nothing to worry about while
// another cap bounds it.
func (k *checking) unpriced() {
	class := verdict.Warn
	l := &k.c.Limits
	onlyCap := l.MaxSteps == nil && l.MaxTotalTokens == nil && l.MaxTokensPerStep == nil && !k.c.Budget.CapsMore()
	switch {
	case k.c.Cost.OnUnknownModel == "skip":
		return
	case k.c.Cost.OnUnknownModel == "abort" || onlyCap:
		class = verdict.Abort
	}
	k.report(verdict.Reason{Code: "unpriced_model", Guard: "cost", Class: class, Message: k.unpricedText()})
}

// unpricedText names the model, if it is known: the step's own in the book of
// progress, else the last that was called.
func (k *checking) unpricedText() string {
	name := k.s.unpriced
	if k.c.Limits.CapBasis == Progress && k.step.Model != "" && !k.step.CostGiven {
		name = k.step.Model
	}
	if name == "" {
		return "a model without a price was used, so the dollar cap does not see its cost"
	}
	return fmt.Sprintf("the model %q has no price, so the dollar cap does not see its cost; give it one in cost.prices", name)
}

// budget judges what the task has spent and how long it has taken. Limits of
// money and tokens are those of the spend book: what nobody executed counts too.
func (k *checking) budget() {
	b := k.c.Budget
	if b == nil {
		return
	}
	spent := k.s.Spent
	k.reasons = append(k.reasons, b.Judge(spent, k.step.At, k.step.Began, k.step.Moved)...)
	if !k.s.warned && b.OverSoft(spent) {
		message := "more was spent than the soft limit"
		k.report(verdict.Reason{Code: spend.CodeSoft, Guard: "budget", Class: verdict.Warn, Message: message})
		k.notices = append(k.notices, "Budget: "+message+"; come to an end.")
	}
}

func (k *checking) attempts() {
	if most := k.c.Retry.MaxAttempts; most != nil && k.step.Attempt > *most {
		k.over("retry_exhausted", "retry", "the attempt", *most, k.step.Attempt)
	}
}
