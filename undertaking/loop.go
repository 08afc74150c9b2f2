package undertaking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The loop steps the session, serves the asks that are open, and waits for what happens next.
//
// Serving an ask means that somebody works on it: the orchestrator's agent session is opened,
// woken or prompted; the check command runs; the engine's own ask is answered when a worker
// has to be cut short or is lost. What comes of it is handed in with Propose, or ended with
// Withdraw when nobody will answer. Both are commits of the session; the next step sees them.

// A Config is what an undertaking is carried on with.
type Config struct {
	Runner  *runner.Runner
	Session specialist.SessionID // that was started with session.DriverNone
	// Agent returns the agent of a name, as the machine has it.
	Agent func(name string) (agent.Agent, error)
	// Permit decides what agents ask to be allowed; its Runner may be the same.
	Permit   permit.Config
	Settings Settings
	Cwd      string // the working tree, absolute
	Model    string // of the agents; "" leaves it to them
	Env      []string
	// Price returns what tokens of a model cost, for an agent that does not say; nil, and a
	// model that it does not know, cost nothing, which people are told.
	Price func(model string, u specialist.Usage) (exact.Money, bool)
	Trust bool // open agents, too, that cannot ask for permission
	// NoWait ends the loop when a human's move is waited for.
	NoWait bool
	// Tell is told what happens, in order, for people; nil is told nothing. It must not block.
	Tell func(Line)
	// Changed is called whenever something may have changed, with what is now; neither is changed
	// any more. nil is not called. It must not block.
	Changed func(*session.Session, State)
	// Saved is called with the state after each transition and at the end.
	Saved func(State)
	Now   func() time.Time // nil means time.Now
}

// A Line is what happened, for people.
type Line struct {
	At     time.Time
	State  string // of the session
	Worker string // the agent session: orch-2, manager; "" for what is about none
	Pct    int    // how full its context is; -1 if that is not known
	Text   string
}

// A Loop carries one undertaking on. It is used by one goroutine, that of Run.
type Loop struct {
	c       Config
	set     Settings
	s       *session.Session
	state   State
	live    map[who]*live
	in      *queue
	pending []session.AgentEvent
	failed  error
	beside  sync.WaitGroup     // permissions that are asked for, and the check
	gone    map[who]time.Time  // when processes went in this one
	check   context.CancelFunc // of the check that runs; nil if none does
	checked int32              // the round it is for
	told    map[string]bool    // what a line was written about once
	looked  time.Time          // at the store
	served  int                // how many words there were when asks were served
	waiting bool               // a human is waited for, and people were told
}

// New returns a Loop.
func New(c Config) *Loop {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Tell == nil {
		c.Tell = func(Line) {}
	}
	if c.Changed == nil {
		c.Changed = func(*session.Session, State) {}
	}
	if c.Saved == nil {
		c.Saved = func(State) {}
	}
	return &Loop{c: c, set: c.Settings.withDefaults(), live: map[who]*live{}, gone: map[who]time.Time{}, in: newQueue(), told: map[string]bool{}}
}

func (l *Loop) now() specialist.Time { return specialist.TimeOf(l.c.Now()) }

// fail notes an error that ends the loop.
func (l *Loop) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
}

// ErrWaits says that a human is waited for, and that whoever runs the loop does not wait.
var ErrWaits = errors.New("a human is asked")

// Run carries the undertaking on until it has ended, ctx is done, or, with NoWait, a human is
// waited for (ErrWaits). Whatever ends it, no process of an agent is left when it returns; the
// session as it was last seen is returned beside an error too.
func (l *Loop) Run(ctx context.Context) (*session.Session, State, error) {
	host, err := l.c.Runner.Store().Claim(ctx)
	if err != nil {
		return nil, State{}, err
	}
	if err = l.begin(ctx, host.Name()); err == nil {
		err = l.run(ctx)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	err = errors.Join(err, l.closeAll(context.WithoutCancel(ctx)), host.Release())
	l.c.Saved(l.state)
	return l.s, l.state, err
}

// begin folds the logs. Agents that were open in another process are not in this one.
func (l *Loop) begin(ctx context.Context, host string) (err error) {
	if l.s, err = l.c.Runner.Session(ctx, l.c.Session); err != nil {
		return err
	}
	if l.state, err = Load(ctx, l.c.Runner.Store(), l.c.Session, State{}); err != nil {
		return err
	}
	for _, as := range []string{manager, orchestrator, verifierA, verifierB} {
		for _, w := range l.state.sessions(as) {
			if w.Open {
				l.note(w.who(), string(agent.KindExited), closing{Closed: true, Host: true})
			}
		}
	}
	if err := l.commit(ctx, who{}, kindHost, hosted{host}); err != nil {
		return err
	}
	return l.release(ctx)
}

// A hosted says which process has begun to drive an undertaking.
type hosted struct {
	Owner string `json:"owner"`
}

// run is the loop.
func (l *Loop) run(ctx context.Context) error {
	for {
		if err := l.advance(ctx); err != nil {
			return err
		}
		l.c.Changed(l.s, l.state)
		if l.over() {
			return nil
		}
		if l.c.NoWait && l.humansMove() {
			return ErrWaits
		}
		if err := l.next(ctx); err != nil {
			return err
		}
	}
}

// next handles what happens, one after the other, until the session has to be stepped: what is
// decided is decided by what had happened before.
func (l *Loop) next(ctx context.Context) error {
	for again := false; !again; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e := l.in.take(); e != nil {
			again = e.handle(ctx, l)
		} else {
			l.wait(ctx)
		}
		if now := l.c.Now(); now.Sub(l.looked) >= l.set.Poll || now.Before(l.looked) {
			if now.Sub(l.looked) >= paused*l.set.Poll {
				l.unpause(now)
			}
			l.looked = now
			changed, err := l.look(ctx)
			if err != nil {
				return err
			}
			again = l.watch(ctx) || changed || again
		}
		if l.failed != nil {
			return l.failed
		}
		l.c.Changed(l.s, l.state)
	}
	return nil
}

// paused is after how many looks at the store that did not come this process was paused.
const paused = 20

// unpause takes nobody for silent whom this process did not hear because it was paused itself.
func (l *Loop) unpause(now time.Time) {
	for _, v := range l.live {
		v.heard = now
	}
}

// wait waits until something happens, for at most one look at the store.
func (l *Loop) wait(ctx context.Context) {
	timer := time.NewTimer(l.set.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.in.filled:
	case <-timer.C:
	}
}

// look commits what is pending, and reads what others have written.
func (l *Loop) look(ctx context.Context) (changed bool, err error) {
	if err := l.flush(ctx); err != nil {
		return false, err
	}
	if err := l.readAgentLog(ctx); err != nil {
		return false, err
	}
	s, err := l.c.Runner.Session(ctx, l.c.Session)
	if err != nil {
		return false, err
	}
	l.deliver(ctx)
	changed = s.Sequence != l.s.Sequence || len(l.state.Words) != l.served // some may have come with any writing
	l.s = s
	return changed, nil
}

// full reports whether the undertaking has a manager.
func (l *Loop) full() bool { return l.s.Machine().Name() == fullMachine }

// fullMachine is the machine with a manager.
const fullMachine = "undertaking"

// over reports whether the session has ended.
func (l *Loop) over() bool { return !l.s.Status.Live() }

// humansMove reports whether nothing goes on without a human.
func (l *Loop) humansMove() bool {
	return l.s.Status == session.NeedsHuman
}

// advance steps the session and serves its asks until nothing follows by itself.
func (l *Loop) advance(ctx context.Context) error {
	for {
		if err := l.flush(ctx); err != nil {
			return err
		}
		tick, err := l.c.Runner.Step(ctx, l.c.Session)
		if err != nil {
			return err
		}
		l.s = tick.Session
		before := l.state.Last
		if err := l.readLog(ctx); err != nil {
			return err
		}
		if l.state.Last.Round != before.Round || l.state.Last.Transition != before.Transition {
			if err := l.moved(ctx); err != nil {
				return err
			}
		}
		if l.over() {
			if reason := l.s.Outcome().Reason; reason != "" {
				l.tell(who{}, "%s", reason)
			}
			return nil
		}
		switch tick.Status {
		case runner.TickAdvanced, runner.TickRejected, runner.TickSolicited:
			continue
		}
		l.served = len(l.state.Words)
		if again, err := l.serve(ctx); err != nil || !again {
			return err
		}
	}
}

// serve has somebody work on each ask that is open, and reports whether an answer was handed
// in, or an ask ended.
func (l *Loop) serve(ctx context.Context) (again bool, err error) {
	if l.s.Status != session.Running {
		l.asked()
		return false, nil
	}
	l.waiting = false
	for _, ask := range l.s.OpenAsks() {
		did, err := l.serveAsk(ctx, ask.SpecialistID)
		if did || err != nil {
			return did, err
		}
	}
	return false, nil
}

// serveAsk has somebody work on the ask of a specialist.
func (l *Loop) serveAsk(ctx context.Context, as string) (again bool, err error) {
	switch as {
	case manager:
		return l.serveManager(ctx)
	case orchestrator:
		return l.serveWorker(ctx)
	case verifierA, verifierB:
		return l.serveVerifier(ctx, as)
	case engine:
		return l.serveEngine(ctx)
	case checks:
		return l.serveChecks(ctx)
	}
	return false, nil
}

// moved is done after a transition: it lets workers go whose part is over, and tells people.
func (l *Loop) moved(ctx context.Context) error {
	m := l.state.Last
	l.tell(who{orchestrator, l.state.Bound}, "%s %s → %s%s", m.By, m.Transition, l.s.State.Name, l.messageOf(m))
	for of, v := range l.live {
		inPlace := mayMove(m.From, of.As, m.Transition) || !works(l.s.State.Name)
		if m.Human && inPlace && v.turn && !v.interrupted {
			l.drop(ctx, v) // a human has ruled in its place
		}
	}
	if err := l.release(ctx); err != nil {
		return err
	}
	if err := errors.Join(l.dismissVerifiers(ctx), l.flush(ctx)); err != nil {
		return err
	}
	l.c.Saved(l.state)
	return nil
}

// propose hands in the move of a specialist, with what its turns have cost.
func (l *Loop) propose(ctx context.Context, id string, m Move) (bool, error) {
	if err := l.flush(ctx); err != nil {
		return false, err
	}
	_, s, err := l.c.Runner.Propose(ctx, runner.Submission{
		SessionID: l.c.Session, RoundID: l.s.Key().ID(), SpecialistID: machine.SpecialistID(id), TransitionName: m.Transition,
		MetaJSON: m.Payload, Reasoning: messageIn(m.Payload), Usage: l.state.due(id).usage(),
	})
	switch {
	case errors.Is(err, runner.ErrStaleRound), errors.Is(err, runner.ErrNotRunning): // a human was faster
		return true, nil
	case errors.Is(err, runner.ErrIllegal): // as an edited machine has it
		l.note(l.goesOn(id), kindRefused, map[string]string{"reason": err.Error()})
		return l.withdraw(ctx, id, "illegal_move", err.Error())
	case err != nil:
		return false, fmt.Errorf("the move %s of %s: %w", m.Transition, id, err)
	}
	l.s = s
	return true, l.dismissVerifiers(ctx)
}

// goesOn names the agent session of a specialist that goes on.
func (l *Loop) goesOn(as string) who {
	if as == orchestrator {
		return who{as, l.state.Bound}
	}
	return who{as, len(l.state.sessions(as))}
}

// withdraw ends the ask of a specialist, with what its turns have cost, and those of the
// others of the round: a human is asked. A verifier's ends alone.
func (l *Loop) withdraw(ctx context.Context, id, code, note string) (bool, error) {
	if err := l.flush(ctx); err != nil {
		return false, err
	}
	for _, ask := range l.s.OpenAsks() {
		if isVerifier(id) && ask.SpecialistID != id {
			continue
		}
		why := note
		if ask.SpecialistID != id {
			why = "the ask of " + id + " has ended"
		}
		w := runner.Withdrawal{
			SessionID: l.c.Session, RoundID: l.s.Key().ID(), SpecialistID: machine.SpecialistID(ask.SpecialistID), Code: code, Note: why,
			Usage: l.state.due(ask.SpecialistID).usage(),
		}
		if _, err := l.c.Runner.Withdraw(ctx, w); err != nil && !errors.Is(err, session.ErrNotFound) {
			return false, err
		}
	}
	if id != checks {
		l.tell(l.goesOn(id), "%s: %s", code, note)
	}
	s, err := l.c.Runner.Session(ctx, l.c.Session)
	if err != nil {
		return false, err
	}
	l.s = s
	return true, l.dismissVerifiers(ctx)
}

func (c Cost) usage() specialist.Usage {
	if c == (Cost{}) {
		return specialist.Usage{}
	}
	return specialist.Usage{CostUSD: c.USD, NumInputTokens: c.In, NumOutputTokens: c.Out, Given: specialist.CostGiven | specialist.InputGiven | specialist.OutputGiven}
}

// tell writes a line for people.
func (l *Loop) tell(of who, format string, args ...any) {
	line := Line{At: l.c.Now(), State: l.s.State.Name, Pct: -1, Text: fmt.Sprintf(format, args...)}
	if w := l.state.agent(of); w != nil {
		line.Worker, line.Pct = w.id(), w.Usage.Percent(agent.Ceiling)
	}
	l.c.Tell(line)
}
