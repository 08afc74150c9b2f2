package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// One question of the guards' own, from the log back into the log. call first looks
// whether the log has the answer to a question of that digest. If not: takeOver settles
// what a lost process has asked, admit asks budget and quota, reserve records the ask
// and saves it, send asks, and conclude records the answer and its cost and saves that,
// even if ctx is done meanwhile: what was sent is paid for.
//
// Nothing is sent before it is durable, and no answer is used before it is. If another
// process is asking, or the round went on meanwhile, the inquiry ends without a verdict
// (errElsewhere, errMeanwhile); an answer that comes too late is only charged.

// A probe is one question of the guards' own.
type probe struct {
	guard   string // truthID or classifierID
	source  specialist.Source
	stage   string
	model   string           // "" if none is known
	digest  string           // of the question: equal ones have the same
	need    specialist.Usage // what it is expected to cost
	retries int64            // how many calls more are held, which cost nothing
	timeout time.Duration    // after which nobody waits
}

// mostRetries is how many calls that a provider refuses are expected of a question.
const mostRetries = 2

// A reply is what came of one.
type reply struct {
	text  string
	usage specialist.Usage
	model string // that answered, "" for the one that was asked
	asked string // "" for that of the probe
	err   error
}

// call asks one question, unless the log has the answer. The ask is durable
// before it is sent, and what came of it before call returns. Where that cannot
// be, q.err says why.
func (q *inquirer) call(ctx context.Context, p probe, ask func(context.Context) reply) (string, error) {
	w := q.w
	switch {
	case q.err != nil:
		return "", q.err // a gate may ask on after an error
	case q.refused != nil:
		return "", truth.ErrOverBudget
	}
	if known := w.open.Known(p.guard, p.digest); known != nil {
		return known.Reply, nil
	}
	if q.err = ctx.Err(); q.err == nil {
		q.err = q.takeOver(ctx)
	}
	if q.err != nil {
		return "", q.err
	}
	switch q.refused, q.err = q.admit(ctx, &p); {
	case q.err != nil:
		return "", q.err
	case q.refused != nil:
		return "", truth.ErrOverBudget
	}
	key := askKey{w.now.Key(), w.nextAsk()}
	w.r.setInflight(key, true)
	defer w.r.setInflight(key, false)
	if q.err = q.reserve(ctx, key, &p); q.err != nil {
		return "", q.err
	}
	a := q.send(ctx, key, &p, ask)
	if q.err = q.conclude(ctx, key, &p, &a); q.err == nil {
		q.err = ctx.Err()
	}
	return a.text, errors.Join(a.err, q.err)
}

// admit reports why the budget or a quota does not let a question be asked, nil if
// they do.
func (q *inquirer) admit(ctx context.Context, p *probe) (*spend.BudgetError, error) {
	w, b := q.w, q.config.Budget
	unsaid := p.source != specialist.Function && !p.need.Has(specialist.CostGiven)
	if most := q.config.DefaultEstimate(); unsaid && most != 0 {
		p.need = p.need.WithCost(most)
	}
	need := bookOf(p.need)
	if !q.config.DebitsProbes() {
		p.need = specialist.Usage{}
	} else if unpriced := q.config.Unpriced(); unsaid && unpriced != nil {
		return unpriced, nil
	} else if over := b.Over(w.now.Spent()); over != nil {
		return over, nil
	} else if late := w.tooLate(b, need); late != nil {
		return late, nil
	} else if over := b.AdmitProbe(w.now.Spent(), w.now.GuardState().Probes, w.held(), need); over != nil {
		return over, nil
	}
	if b != nil && b.HardCalls != nil && q.config.DebitsProbes() {
		held := w.held().Plus(need)
		for p.retries = 0; p.retries < mostRetries && b.Admit(w.now.Spent(), held, spend.Book{Calls: p.retries + 1}) == nil; p.retries++ {
		}
	}
	return w.take(ctx, p.guard, need)
}

// bookOf returns one call of that cost.
func bookOf(u specialist.Usage) spend.Book {
	return spend.Book{Calls: 1, TokensIn: u.NumInputTokens, TokensOut: u.NumOutputTokens, Money: u.CostUSD}
}

// takeOver settles what a lost process has asked: at its estimate, because
// nobody will ever say what it cost.
func (q *inquirer) takeOver(ctx context.Context) error {
	w := q.w
	for i := range w.open.Asks {
		a := &w.open.Asks[i]
		if !a.Status.Pending() || a.Role != session.GuardRole {
			continue
		}
		if out, err := w.out(ctx, a); err != nil {
			return err
		} else if out {
			return errElsewhere
		}
		w.emit(&session.Probed{Guard: a.SpecialistID, Ask: a.Index, Code: session.CodeLost, Message: "the process that asked was lost", Usage: a.Remote.Expected(), Free: !q.config.DebitsProbes()})
	}
	return nil
}

// reserve records the ask, and with it whatever else was gathered.
func (q *inquirer) reserve(ctx context.Context, key askKey, p *probe) error {
	w := q.w
	owner, err := w.r.claim(ctx)
	if err != nil {
		return err
	}
	w.emit(&session.Asked{Asks: []session.Ask{{SpecialistID: p.guard, Index: key.index, Role: session.GuardRole, Source: p.source, Remote: &session.RemoteAsk{
		Owner: owner, Deadline: w.at + specialist.Time(p.timeout.Milliseconds()), Estimate: p.need.CostUSD, TokensIn: p.need.NumInputTokens, TokensOut: p.need.NumOutputTokens,
		Spare: session.Spare{Calls: p.retries},
	}}}})
	return w.save(ctx)
}

// send asks. A panic, and an end of the goroutine, are errors.
func (q *inquirer) send(ctx context.Context, key askKey, p *probe, ask func(context.Context) reply) (a reply) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	defer func() {
		a.text = specialist.Clip(a.text, maxReasoning)
		if late := ctx.Err(); late != nil && a.err == nil {
			a.err = late
		}
		if a.err != nil && (ctx.Err() != nil || errors.Is(a.err, specialist.ErrUncounted)) && a.usage == (specialist.Usage{}) {
			a.usage = p.need // nobody will ever say what it cost
			a.usage.Estimated = p.need != specialist.Usage{}
		}
	}()
	q.w.tickets[p.guard].Start()
	defer func() {
		_, cost := q.cost(p, &a)
		q.w.paid(p.guard, cost)
	}()
	var m meter
	defer m.read(&a)
	caller := q.w.caller(p.guard, session.GuardRole, key.index, 0)
	caller.Spent = m.add
	if !apart(func() { a = replied(specialist.WithCaller(q.bounded(ctx, p), caller), ask) }) {
		a.err = errGone
	}
	return a
}

// replied asks. A panic is an error.
func replied(ctx context.Context, ask func(context.Context) reply) (a reply) {
	defer func() {
		if v := recover(); v != nil {
			a.err = fmt.Errorf("panic: %v", v)
		}
	}()
	return ask(ctx)
}

// bounded tells a model how many calls the budget has set aside for a question.
func (q *inquirer) bounded(ctx context.Context, p *probe) context.Context {
	b := q.config.Budget
	if b == nil || !q.config.DebitsProbes() {
		return ctx
	}
	limit := specialist.CallLimit{Billed: 1}
	if b.HardCalls != nil {
		limit.Calls = 1 + p.retries
	}
	return specialist.WithCallLimit(ctx, limit)
}

// A meter knows what a question has cost, if a model that knows was asked.
type meter struct {
	mu       sync.Mutex
	told     bool
	usage    specialist.Usage
	asked    string
	answered string
}

func (m *meter) add(u specialist.Usage, asked, answered string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told, m.usage, m.asked = true, m.usage.Plus(u), asked
	if answered != "" {
		m.answered = answered
	}
}

// read puts what the meter knows in the place of what a reply says.
func (m *meter) read(a *reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told {
		a.usage = m.usage
		a.asked, a.model = m.asked, cmp.Or(m.answered, a.model)
	}
}

// cost returns who answered and what that cost. A service that names no cost, and calls of
// a model without a price, cost what was expected of them.
func (q *inquirer) cost(p *probe, a *reply) (of spend.Called, u specialist.Usage) {
	of = spend.Called{Model: a.model}
	if asked := cmp.Or(p.model, a.asked); asked != "" { // a classifier is a model only if it says so
		of = spend.CalledOf(asked, a.model)
	}
	u = q.w.price(a.usage.Clean(), of)
	if a.err == nil && p.source != specialist.Function {
		u = unnamed(u, p.need.CostUSD.Times(u.Billed()))
	}
	return of, u
}

// conclude records what came of an ask, whatever has happened to the session since,
// and begins a new commit.
func (q *inquirer) conclude(ctx context.Context, key askKey, p *probe, a *reply) error {
	w, safe := q.w, context.WithoutCancel(ctx)
	for range maxRaces {
		if err := w.begin(safe); err != nil {
			return err
		}
		counts := q.record(key, p, a)
		err := w.save(safe)
		if errors.Is(err, session.ErrStale) {
			if err = w.reload(safe); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err = w.begin(safe); err == nil && !(counts && q.stillAsked()) {
			err = errMeanwhile
		}
		return err
	}
	return fmt.Errorf("session %s: %w", w.s.ID, session.ErrStale)
}

// record puts what came of an ask into the commit: an answer of this round, or one
// that came too late and only costs. It reports whether it counts: nothing is decided
// by an answer that the log does not give to a question.
func (q *inquirer) record(key askKey, p *probe, a *reply) bool {
	w := q.w
	called, usage := q.cost(p, a)
	if !q.config.DebitsProbes() {
		usage = specialist.Usage{}
	}
	if w.now.Refuses(&w.open, key.round, key.index, 0) != "" {
		d := &session.Discarded{SpecialistID: p.guard, Round: key.round.Round, Attempt: key.round.Attempt, Ask: key.index, Code: session.CodeLate, Usage: usage, Model: called.Model, Asked: called.Asked}
		d.Correct(w.now.Charged(&w.open, key.round, key.index, 0))
		w.emit(d)
		return false
	}
	d := &session.Probed{Guard: p.guard, Ask: key.index, Stage: p.stage, Question: p.digest, Reply: a.text, Model: called.Model, Asked: called.Asked, Usage: usage, Free: !q.config.DebitsProbes()}
	if a.err != nil {
		d.Code, d.Message, d.Reply = codeOf(a.err), specialist.Clip(a.err.Error(), maxMessage), ""
	}
	w.emit(d)
	return true
}

// codeOf says what kind of failure an error is.
func codeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return session.CodeTimeout
	case errors.Is(err, context.Canceled):
		return session.CodeCancelled
	}
	return session.CodeAskError
}
