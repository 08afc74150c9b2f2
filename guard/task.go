package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A guard for programs that use this package alone: the checks of one step (check.go),
// and what is remembered of each task between its steps. A step is judged in this
// order:
//
//  1. It is charged: what it used is spent, whatever the verdict.
//  2. The configured checks run, under the lock of the task. If one stops the step,
//     nothing else happens.
//  3. The task gets an open token, which keeps other steps of it out; then the lock is
//     released, and the program's own checkers run, and the classifier, if it is asked.
//  4. The observer is told. If it panics the step is stopped.
//  5. The caller commits the token, and the step counts, or releases it, and it does
//     not. Check does that at once.
//
// Whatever fails on the way stops the step: a panic of a check, a checker or the
// observer is internal_error. The memory of a task belongs to its guard and is changed
// in place, so that Check allocates nothing where the verdict is ok.

// A Guard judges the steps of many tasks and remembers each of them. It is for
// programs that use this package alone. It may be used concurrently; steps of
// one task are judged one after the other.
type Guard struct {
	config   *Config
	checkers []Checker
	now      func() time.Time
	observe  func(Observation)

	classifier Classifier
	asker      *Asker

	mu    sync.RWMutex
	tasks map[string]*task
}

// An Option changes how a Guard works.
type Option func(*Guard)

// WithCheckers adds guards of the program's own. They run after the checks that
// are configured, in their order; rulings of humans they do not judge.
func WithCheckers(checkers ...Checker) Option {
	return func(g *Guard) { g.checkers = append(g.checkers, checkers...) }
}

// WithClock sets the clock; without it the time is that of the computer.
func WithClock(now func() time.Time) Option { return func(g *Guard) { g.now = now } }

// WithObserver has f called after each step that was judged, before it counts, and
// when a human clears a task. It must return soon and must not call the Guard. If it
// panics the step is stopped (internal_error): what nobody can be told of does not
// happen.
func WithObserver(f func(Observation)) Option { return func(g *Guard) { g.observe = f } }

// An Observation is something that happened to a task.
type Observation struct {
	Task    string
	At      time.Time
	Verdict verdict.Verdict // of a step; zero if a human cleared the task
	Cleared *Clearing
}

// A Clearing is a human's word that a task may go on.
type Clearing struct{ Code, Actor, Note string }

type task struct {
	mu      sync.Mutex
	state   State
	memory  memory
	began   time.Time // of the first step
	moved   time.Time // of the last committed one
	judged  time.Time // of the newest one
	open    *Token
	resets  int  // how often its progress was forgotten
	evicted bool // GC has dropped it

	truncated bool     // of the newest output only the ends became n-grams
	turns     []string // outputs of executed steps, for a classifier
}

// New returns a Guard with the given configuration, which may be nil: then only
// the program's own checkers judge. The error says which option is wrong.
func New(c *Config, options ...Option) (*Guard, error) {
	if c == nil {
		c = &Config{Profile: Compat, Loop: LoopDetection{Mode: "off", MaxStateVisits: 1 << 62}, Cost: Cost{OnUnknownModel: "skip"}, Store: Store{HistoryLimit: 1, TTL: defaultTTL}}
	}
	g := &Guard{config: c, now: clock, tasks: map[string]*task{}}
	for _, o := range options {
		o(g)
	}
	if slices.Contains(g.checkers, nil) {
		return nil, errors.New("a checker is nil")
	}
	if g.now == nil {
		return nil, errors.New("the clock is nil")
	}
	if err := g.checkClassifier(); err != nil {
		return nil, err
	}
	if c.Classifier != nil {
		g.asker = NewAsker(c.Classifier, g.now)
	}
	return g, nil
}

// ErrBusy is returned by Begin while another step of the task is open.
var ErrBusy = errors.New("the task has an open step")

// Check judges a step and, if it may be executed, counts it at once. It does no
// I/O, so a classifier is not asked, and, where the verdict is ok, allocates
// nothing.
func (g *Guard) Check(in CheckInput) (verdict.Verdict, Metrics, error) {
	return g.check(context.Background(), &in, nil)
}

// CheckContext is Check with the classifier, and for guards of the program's own
// that need a context.
func (g *Guard) CheckContext(ctx context.Context, in CheckInput) (verdict.Verdict, Metrics, error) {
	return g.check(ctx, &in, g.classifier)
}

func (g *Guard) check(ctx context.Context, in *CheckInput, asked Classifier) (_ verdict.Verdict, m Metrics, _ error) {
	start := g.now()
	defer func() { m.Elapsed = max(0, g.now().Sub(start)) }()
	if err := in.check(); err != nil {
		return verdict.Verdict{}, Metrics{}, err
	}
	if len(g.checkers) == 0 && asked == nil {
		return g.checkLocked(in)
	}
	step := in.step(g.config)
	v, token, err := g.beginWith(ctx, step, asked)
	if token != nil {
		token.Commit()
	}
	if err != nil {
		return v, Metrics{}, err
	}
	t := g.lock(step.Task)
	defer t.mu.Unlock()
	return v, t.metrics(&step), nil
}

// checkLocked is CheckContext without guards of the program's own.
func (g *Guard) checkLocked(in *CheckInput) (verdict.Verdict, Metrics, error) {
	t := g.lock(in.TaskID)
	defer t.mu.Unlock()
	if t.busy(g) {
		return verdict.Verdict{}, Metrics{}, fmt.Errorf("%w: %q", ErrBusy, in.TaskID)
	}
	l := looks.Get().(*look)
	defer l.release()
	step := &l.step
	in.fill(step, g.config)
	v, err := g.judge(t, step, l)
	if err != nil {
		return verdict.Verdict{}, Metrics{}, err
	}
	if v = g.tell(step, v); v.Passed() {
		t.commit(g, step, l, t.judged)
	} else {
		t.memory.refuse(g.config, step, v)
	}
	return v, t.metrics(step), nil
}

// CheckStep is Check for a step in full, with what it used.
func (g *Guard) CheckStep(ctx context.Context, step verdict.Step, usage specialist.Usage) (verdict.Verdict, error) {
	v, token, err := g.BeginStep(ctx, step, usage)
	if token != nil {
		token.Commit()
	}
	return v, err
}

// DryRun judges a step as it stands and changes nothing. Guards of the program's
// own are not asked.
func (g *Guard) DryRun(in CheckInput) (verdict.Verdict, Metrics, error) {
	start := g.now()
	if err := in.check(); err != nil {
		return verdict.Verdict{}, Metrics{}, err
	}
	step := in.step(g.config)
	t := g.lock(step.Task)
	defer t.mu.Unlock()
	l := looks.Get().(*look)
	defer l.release()
	state, began := t.state, t.began
	v, err := g.judge(t, &step, l)
	t.state, t.began = state, began
	m := t.metrics(&step)
	m.Elapsed = max(0, g.now().Sub(start))
	return v, m, err
}

// Begin judges a step and, if it may be executed, returns a token: the step
// counts once the token is committed. Whatever the verdict, the usage is spent.
// A task has at most one open token. After an error, nothing has changed: if it
// wraps [ErrBusy], begin again once the open step is committed or released, or its
// token has expired.
func (g *Guard) Begin(ctx context.Context, in CheckInput) (verdict.Verdict, *Token, error) {
	if err := in.check(); err != nil {
		return verdict.Verdict{}, nil, err
	}
	return g.beginWith(ctx, in.step(g.config), g.classifier)
}

// BeginStep is Begin for a step in full. Its tokens and cost are those of usage,
// priced by the table if the cost is not known.
func (g *Guard) BeginStep(ctx context.Context, step verdict.Step, usage specialist.Usage) (verdict.Verdict, *Token, error) {
	in := CheckInput{TaskID: step.Task, ToolCalls: step.ToolCalls, TokensIn: usage.NumInputTokens, TokensOut: usage.NumOutputTokens, Attempt: step.Attempt, Step: step.Number, Context: step.Context}
	if err := in.check(); err != nil {
		return verdict.Verdict{}, nil, err
	}
	if usage.CostUSD < 0 {
		return verdict.Verdict{}, nil, fmt.Errorf("%w: a negative cost", verdict.ErrInput)
	}
	usage = g.config.Price(usage, step.Model)
	step.TokensIn, step.TokensOut = usage.NumInputTokens, usage.NumOutputTokens
	step.Cost, step.CostGiven = usage.CostUSD, usage.Has(specialist.CostGiven)
	return g.beginWith(ctx, step, g.classifier)
}

// beginWith is Begin; also is what has been found out about the step before.
func (g *Guard) beginWith(ctx context.Context, step verdict.Step, asked Classifier, also ...verdict.Reason) (verdict.Verdict, *Token, error) {
	v, token, err := g.open(&step)
	judged := false
	defer func() {
		if token != nil && !judged { // a checker has ended the goroutine
			token.Release()
		}
	}()
	if err == nil && len(also) > 0 {
		v = v.Join(verdict.Of(also))
	}
	if token != nil && v.Passed() && !step.Human {
		for _, c := range g.checkers { // unlocked: the open token keeps others out
			v = v.Join(safely(ctx, c, step))
		}
		if asked != nil && v.Passed() {
			v = v.Join(g.classify(ctx, token.task, &step))
		}
	}
	if err == nil {
		v = g.tell(&step, v)
	}
	judged = true
	switch {
	case token == nil:
	case v.Passed():
		token.give()
	default:
		token.Release()
		token = nil
	}
	return v, token, err
}

// open charges the step, runs the configured checks and opens the token.
func (g *Guard) open(step *verdict.Step) (verdict.Verdict, *Token, error) {
	t := g.lock(step.Task)
	defer t.mu.Unlock()
	if t.busy(g) {
		return verdict.Verdict{}, nil, fmt.Errorf("%w: %q", ErrBusy, step.Task)
	}
	l := looks.Get().(*look)
	defer l.release()
	v, err := g.judge(t, step, l)
	if err != nil {
		return v, nil, err
	}
	if !v.Passed() {
		t.memory.refuse(g.config, step, v)
		return v, nil, nil
	}
	t.open = &Token{guard: g, task: t, step: *step, resets: t.resets}
	return v, t.open, nil
}

// tell tells the observer of a step that was judged, and returns the verdict that
// holds: an observer that panics fails closed.
func (g *Guard) tell(step *verdict.Step, v verdict.Verdict) verdict.Verdict {
	if g.observe != nil && !g.told(Observation{Task: step.Task, At: g.now(), Verdict: v}) {
		return v.Join(verdict.InternalError("the observer"))
	}
	return v
}

// told calls the observer, and reports whether it did not panic.
func (g *Guard) told(o Observation) (ok bool) {
	defer func() { ok = recover() == nil }()
	g.observe(o)
	return true
}

// judge charges the step and runs the configured checks. The task is locked.
func (g *Guard) judge(t *task, step *verdict.Step, l *look) (v verdict.Verdict, err error) {
	defer func() { // a check that panics fails closed
		if recover() != nil {
			v, err = verdict.InternalError("a check"), nil
		}
	}()
	if err := l.read(g.config, step, t.memory.foresee(g.config, step)); err != nil {
		return verdict.Verdict{}, fmt.Errorf("%w: %w", verdict.ErrInput, err)
	}
	now := g.now()
	t.judged = now
	if t.began.IsZero() {
		t.began = now
	}
	began := specialist.TimeOf(t.began)
	step.At, step.Began, step.Moved = specialist.TimeOf(now), began, max(began, specialist.TimeOf(t.moved))
	t.state = t.state.Charge(usageOf(step), step.Model)
	t.truncated = l.truncated
	return g.config.judge(&t.state, &t.memory, step, l), nil
}

func usageOf(s *verdict.Step) specialist.Usage {
	u := specialist.Usage{NumInputTokens: s.TokensIn, NumOutputTokens: s.TokensOut}
	if s.CostGiven {
		u = u.WithCost(s.Cost)
	}
	return u
}

// commit counts a step that was judged, as of now. The task is locked.
func (t *task) commit(g *Guard, step *verdict.Step, l *look, now time.Time) {
	t.state = t.state.count(step)
	t.state.warned = t.state.warned || g.config.Budget != nil && g.config.Budget.OverSoft(t.state.Spent)
	t.memory.learn(g.config, step)
	t.memory.add(g.config, step, l, true)
	t.moved = now
	t.turned(g.config.Classifier, step)
}

// lock returns a task, locked, and makes it if there is none.
func (g *Guard) lock(name string) *task {
	for {
		g.mu.RLock()
		t := g.tasks[name]
		g.mu.RUnlock()
		if t == nil {
			g.mu.Lock()
			if t = g.tasks[name]; t == nil {
				t = &task{}
				g.tasks[name] = t
			}
			g.mu.Unlock()
		}
		if t.mu.Lock(); !t.evicted {
			return t
		}
		t.mu.Unlock()
	}
}

// metrics returns what a task has used. The task is locked.
func (t *task) metrics(step *verdict.Step) Metrics {
	m := Metrics{
		Steps: t.state.Steps, TokensIn: t.state.TokensIn, TokensOut: t.state.TokensOut, Dollars: t.state.Money,
		Spent: t.state.Spent, Truncated: t.truncated && step.HasOutput, task: t,
	}
	if !t.began.IsZero() {
		m.TaskAge = t.judged.Sub(t.began)
	}
	return m
}
