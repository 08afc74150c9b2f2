package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// A Guard judges the steps of many tasks and remembers each task's state. It is
// for programs that use this package alone. It may be used concurrently.
type Guard struct {
	config   *Config
	checkers []Checker

	mu    sync.Mutex
	tasks map[string]*task
}

type task struct {
	state State
	open  *Token
}

// New returns a Guard with the given configuration, which may be nil. The
// program's own checkers run after the checks it configures, in their order;
// rulings of humans they do not judge.
func New(c *Config, checkers ...Checker) *Guard {
	return &Guard{config: c, checkers: slices.Clone(checkers), tasks: map[string]*task{}}
}

// Errors of [Guard.Begin].
var (
	ErrInput = errors.New("invalid step")
	ErrBusy  = errors.New("the task has an open step")
)

// A Token is the right to commit one judged step. Exactly one of Commit and
// Release must be called; further calls do nothing.
type Token struct {
	guard *Guard
	step  Step
}

// Begin judges a step and, if it may be executed, returns a token: the step
// counts once the token is committed. Whatever the verdict, the usage is spent.
// A task has at most one open token. After an error, nothing has changed: if it
// wraps [ErrBusy], begin again once the open step is committed or released.
func (g *Guard) Begin(ctx context.Context, step Step, usage specialist.Usage) (Verdict, *Token, error) {
	if err := checkInput(step, usage); err != nil {
		return Verdict{}, nil, err
	}
	v, token, err := g.begin(step, usage)
	if token == nil {
		return v, nil, err
	}
	if !step.Human {
		for _, c := range g.checkers { // unlocked: the open token keeps others out
			v = v.Join(safely(ctx, c, token.step))
		}
	}
	if !v.Passed() {
		token.Release()
		return v, nil, nil
	}
	return v, token, nil
}

// begin charges the usage, runs the configured checks and opens the token.
func (g *Guard) begin(step Step, usage specialist.Usage) (Verdict, *Token, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.task(step.Task)
	if t.open != nil {
		return Verdict{}, nil, fmt.Errorf("%w: %q", ErrBusy, step.Task)
	}
	usage = g.config.Price(usage, step.Model)
	step.TokensIn, step.TokensOut = usage.NumInputTokens, usage.NumOutputTokens
	step.Cost, step.CostGiven = usage.CostUSD, usage.Has(specialist.CostGiven)
	t.state = t.state.Charge(usage, step.Model)
	v := g.config.Check(t.state, step)
	if !v.Passed() {
		return v, nil, nil
	}
	t.open = &Token{g, step}
	return v, t.open, nil
}

// Check judges a step and, if it may be executed, counts it at once.
func (g *Guard) Check(ctx context.Context, step Step, usage specialist.Usage) (Verdict, error) {
	v, token, err := g.Begin(ctx, step, usage)
	if token != nil {
		token.Commit()
	}
	return v, err
}

// Commit counts the step as executed.
func (t *Token) Commit() {
	t.close(func(task *task) { task.state = task.state.Advance(t.guard.config, t.step) })
}

// Release gives the step up: it was not executed.
func (t *Token) Release() { t.close(func(*task) {}) }

func (t *Token) close(change func(*task)) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	if task := t.guard.task(t.step.Task); task.open == t {
		change(task)
		task.open = nil
	}
}

// State returns what is remembered of a task.
func (g *Guard) State(name string) State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.task(name).state
}

func (g *Guard) task(name string) *task {
	t := g.tasks[name]
	if t == nil {
		t = &task{}
		g.tasks[name] = t
	}
	return t
}

func checkInput(step Step, u specialist.Usage) error {
	switch {
	case step.Task == "":
		return fmt.Errorf("%w: task is empty", ErrInput)
	case u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < exact.Money(0) || step.Attempt < 0:
		return fmt.Errorf("%w: negative tokens, cost or attempt", ErrInput)
	}
	return nil
}
