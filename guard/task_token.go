package guard

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// A Token is the right to commit one judged step. Exactly one of Commit and
// Release must be called; further calls do nothing. One that is kept for longer than
// reservations of money are (budget.reserve_ttl_ms, else a minute) expires: it keeps no
// other step of its task out any more. Commit still counts its step, for it was executed.
type Token struct {
	guard  *Guard
	task   *task
	step   verdict.Step
	given  time.Time // to the caller; zero while the step is being judged
	resets int       // of the task when it was opened
	closed bool
}

// Commit counts the step as executed. Results are what its tool calls gave, in their
// order, where the caller knows; loops are told from progress by them.
func (t *Token) Commit(results ...json.RawMessage) {
	t.close(func() {
		t.step.ToolCalls = withResults(t.step.ToolCalls, results)
		l := looks.Get().(*look)
		defer l.release()
		if l.read(t.guard.config, &t.step, t.task.memory.foresee(t.guard.config, &t.step)) == nil { // it was read before
			t.task.commit(t.guard, &t.step, l, t.guard.now())
		}
	})
}

// withResults returns calls with what they gave.
func withResults(calls []verdict.ToolCall, results []json.RawMessage) []verdict.ToolCall {
	if len(results) == 0 {
		return calls
	}
	calls = slices.Clone(calls)
	for i := range min(len(calls), len(results)) {
		calls[i].Result = results[i]
	}
	return calls
}

// Release gives the step up: it was not executed.
func (t *Token) Release() { t.close(func() {}) }

func (t *Token) close(change func()) {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.task.open == t {
		t.task.open = nil
	}
	if t.resets == t.task.resets {
		change()
	}
}

// give begins the time of a token that goes to the caller.
func (t *Token) give() {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.given = t.guard.now()
}

// busy reports whether a step of the task is open. The task is locked.
func (t *task) busy(g *Guard) bool {
	return t.open != nil && (t.open.given.IsZero() || g.now().Sub(t.open.given) < g.config.tokenTTL())
}

// tokenTTL is how long a token keeps others out.
func (c *Config) tokenTTL() time.Duration {
	msec := int64(spend.DefaultReserveTTLMsec)
	if c.Budget != nil && c.Budget.ReserveTTLMsec > 0 {
		msec = c.Budget.ReserveTTLMsec
	}
	return time.Duration(min(msec, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
