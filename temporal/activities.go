package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What activities do is the engine's; here it is only called, with a heartbeat, and errors are sorted: what
// the store has recorded, a failure too, is success; what another try may change (a
// store that fails, a worker that lacks something, one that is lost) is tried again without end;
// what no try changes is not.

// LongAsk is from which timeout on an ask is an activity of its own.
const LongAsk = 30 * time.Second

// activities are the activities of a worker.
type activities struct{ r *runner.Runner }

// A Registry is what a worker of Temporal and its test environment have in common.
type Registry interface {
	worker.WorkflowRegistry
	RegisterActivityWithOptions(any, activity.RegisterOptions)
}

// Register has a worker run the sessions of a Runner's store. Workers on one task queue need a Runner
// each that reaches the same store and the same specialists.
func Register(w Registry, r *runner.Runner) {
	register(w, r, map[string]any{WorkflowName: Session, FormerWorkflowName: FormerSession})
}

func register(w Registry, r *runner.Runner, workflows map[string]any) {
	for name, f := range workflows {
		w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	a := &activities{r}
	for name, f := range map[string]any{AdvanceActivity: a.advance, AskActivity: a.ask, DecideActivity: a.decide, ProposeActivity: a.propose, ResumeActivity: a.resume, ReviewActivity: a.review} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// long reports whether an ask is an activity of its own: then nothing else waits for it.
func long(a runner.ExternalAsk) bool { return a.Timeout > LongAsk }

func (a *activities) advance(ctx context.Context, in Input) (Status, error) {
	id, err := session.ParseID(in.SessionID)
	if err != nil {
		return Status{}, told(ctx, &session.NotFoundError{What: "Session", ID: in.SessionID})
	}
	defer beat(ctx)()
	p, err := a.r.Advance(ctx, id, runner.AdvanceOptions{External: long, MaxTime: advanceTime / 2})
	if err != nil {
		return Status{}, told(ctx, err)
	}
	s, err := a.r.Session(ctx, id)
	if err != nil {
		return Status{}, told(ctx, err)
	}
	at := Status{Sequence: p.Sequence, Status: p.Status, State: string(s.State.Name), RoundID: s.Key().ID(), Code: p.Code, WakeAt: int64(p.WakeAt), Tenant: a.r.Tenant(s)}
	for _, e := range p.Asks {
		at.Asks = append(at.Asks, Ask{e.Round.Round, e.Round.Attempt, e.Index, e.Repeat, e.SpecialistID, e.Timeout.Milliseconds(), int64(e.Deadline)})
	}
	return at, nil
}

func (a *activities) ask(ctx context.Context, in Input, of Ask) (came Came, err error) {
	id, err := session.ParseID(in.SessionID)
	if err != nil {
		return came, told(ctx, &session.NotFoundError{What: "Session", ID: in.SessionID})
	}
	defer beat(ctx)()
	key := specialist.RoundKey{Session: id, Round: of.Round, Attempt: of.Attempt}
	if err := a.r.Ask(ctx, runner.AskRef{Round: key, Index: of.Index, Repeat: of.Repeat, SpecialistID: of.SpecialistID}); err != nil {
		return came, told(ctx, err)
	}
	came.Waits, _ = a.r.Waits(ctx, id) // if that cannot be told now, an advance looks
	return came, nil
}

// told returns an error as Temporal is to take it: by its code, since histories hold no contents. Its words are in
// the log of the worker.
func told(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	activity.GetLogger(ctx).Error("a session cannot go on", "error", err)
	code := "error"
	refused, ok := errors.AsType[*runner.Error](err)
	switch {
	case errors.Is(err, session.ErrNotFound):
		code = "not_found"
	case ok && refused.Code != "":
		code = refused.Code
	}
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, runner.ErrIllegal) { // no further try changes that
		return temporal.NewNonRetryableApplicationError(code, "dialai", nil)
	}
	return temporal.NewApplicationError(code, "dialai")
}

// beat tells Temporal that an activity is alive, until what it returns is called.
func beat(ctx context.Context) (stop func()) {
	every := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if every <= 0 {
		return func() {}
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-over }
}
