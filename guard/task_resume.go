package guard

import (
	"fmt"

	"github.com/dialai/dialai/verdict"
)

// A guard that goes on where another one ended, and a step that somebody allowed. Nothing
// is judged here: a log says what was judged and executed, and a panel of its own, or a
// human, has said that a step may be executed though a check stopped it. Limits, tools and
// loops count such a step as any other.

// Take takes in a record of an event log as it happened: the step of a check is charged,
// and counts if it was executed then. A step that was reserved, without a check of the
// same candidate after it, was sent and nobody knows what came of it: whoever reads the log
// takes its record as a check that was executed. Other types change nothing. The error says
// what of the step cannot be read; nothing has changed then.
func (g *Guard) Take(rec LogRecord) error {
	if rec.Type != LogCheck || rec.Input == nil {
		return nil
	}
	step := rec.Input.step(g.config, rec.Task())
	t := g.lock(step.Task)
	defer t.mu.Unlock()
	if t.busy(g) {
		return fmt.Errorf("%w: %q", ErrBusy, step.Task)
	}
	l := looks.Get().(*look)
	defer l.release()
	if err := l.read(g.config, &step, t.memory.foresee(g.config, &step)); err != nil {
		return fmt.Errorf("%w: %w", verdict.ErrInput, err)
	}
	at, ok := rec.Time()
	if !ok {
		at = g.now()
	}
	t.judged = at
	if t.began.IsZero() {
		t.began = at
	}
	if !rec.Input.Charged {
		t.state = t.state.Charge(usageOf(&step), step.Model)
	}
	if rec.executed() {
		t.commit(g, &step, l, at)
	} else if status, known := verdict.StatusNamed(rec.Verdict); known {
		t.memory.refuse(g.config, &step, rec.refusal(status))
	}
	return nil
}

// Allow opens a step that a check has stopped and somebody has allowed: it is not judged,
// and, since that was done when it was, not charged. Like Begin it returns ErrBusy while
// another step of the task is open.
func (g *Guard) Allow(in CheckInput) (*Token, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	step := in.step(g.config)
	t := g.lock(step.Task)
	defer t.mu.Unlock()
	if t.busy(g) {
		return nil, fmt.Errorf("%w: %q", ErrBusy, step.Task)
	}
	t.open = &Token{guard: g, task: t, step: step, resets: t.resets, given: g.now()}
	return t.open, nil
}
