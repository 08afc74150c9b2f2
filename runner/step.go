package runner

import (
	"cmp"
	"context"

	"github.com/dialai/dialai/internal/deadline"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Step drives a session: this file is its frame, round_states.go its way through a
// round. A Step loads the session (or takes the one that was committed last), makes an
// engine, and returns as a Tick what the engine came to. The engine holds what the step
// knows: one commit in the making, the assessment of the round that this leads to, and
// what was answered but is not durable.
//
// begin starts a commit on the session as it is and records in it again what is not
// durable; save writes it. If somebody else wrote first, save returns ErrStale: the
// engine reloads the session and begins anew, and keeps its answers. A panic ends the
// session, not the process, and an engine that did not come to its end is not used
// again.

// A Tick is what one Step did.
type Tick struct {
	Status     TickStatus
	Session    *session.Session // as it is now
	Previous   *machine.State
	Transition *machine.Transition // executed; nil unless advanced
	Code       string

	outcome session.Outcome  // why it needs a human, by who may rule now; zero if it does not
	verdict *session.Judged  // that led to the transition
	asked   *session.Asked   // the first to be asked
	asked2  []*session.Asked // the rest, if they were asked later
}

// Reasoning returns why: the arbiter's reasoning if the session advanced, else
// why it is not running; "" for the zero Tick, which comes with an error.
func (t Tick) Reasoning() string {
	switch {
	case t.verdict != nil:
		return t.verdict.Decision.Reasoning()
	case t.Session == nil:
		return ""
	case t.Transition != nil: // of a timer
		return t.Session.Last().Reasoning
	case t.Status == TickWaiting && t.Session.Waits():
		return t.Session.WaitsFor()
	}
	return cmp.Or(t.outcome, t.Session.Outcome()).Reason
}

// Asked returns the ids of those who were asked in this step.
func (t Tick) Asked() []string {
	var ids []string
	if t.asked != nil {
		for i := range t.asked.Asks {
			ids = append(ids, t.asked.Asks[i].SpecialistID)
		}
	}
	for _, later := range t.asked2 {
		for i := range later.Asks {
			ids = append(ids, later.Asks[i].SpecialistID)
		}
	}
	return ids
}

// A TickStatus says how far a Step came.
type TickStatus string

// What a Step can come to.
const (
	TickSolicited TickStatus = "solicited" // answers recorded, the round is not complete
	TickAdvanced  TickStatus = "advanced"
	TickRejected  TickStatus = "rejected" // a guard sent the round back
	TickWaiting   TickStatus = "waiting"  // an answer is still out
	TickHuman     TickStatus = "needs_human"
	TickStopped   TickStatus = "stopped"
	TickFailed    TickStatus = "failed"
	TickCompleted TickStatus = "completed"
)

// Step carries a session one step further: it asks whoever is to be asked, records
// the answers, lets the arbiter decide, passes the gate and commits. What was
// recorded before, by this process or another, is never asked for again.
//
// A refusal, a missing consensus, a failing specialist are no errors: the Tick
// says what became of the step. Errors are: ErrNotFound, a *StartError, a store
// that fails, and a ctx that is done. After an error everything that was
// committed stands, and Step may be called again. A Go function of the machine that ends its
// goroutine ends that of the caller.
func (r *Runner) Step(ctx context.Context, id specialist.SessionID) (Tick, error) {
	if s := r.store.Recent(id); s != nil && s.Status == session.Running {
		tick, err := r.step(ctx, s)
		if err != nil || tick.Session.Sequence != s.Sequence {
			return tick, err // something was committed, so s was the latest or has been read again
		}
	}
	s, err := r.load(ctx, id)
	if err != nil {
		return Tick{}, err
	}
	return r.step(ctx, s)
}

// step is Step on a session that was just read or committed. A panic in it becomes
// the end of the session.
func (r *Runner) step(ctx context.Context, s *session.Session) (Tick, error) {
	return r.stepWith(ctx, s, nil)
}

// stepWith is step that leaves the asks to others that external says (external.go).
func (r *Runner) stepWith(ctx context.Context, s *session.Session, external func(ExternalAsk) bool) (tick Tick, err error) {
	ctx, end := r.trace(ctx, PartStep, s)
	defer func() { end(err) }()
	if err = r.contain(s.ID, func() (err error) {
		tick, err = r.stepOnce(ctx, s, external)
		return err
	}); err != nil {
		return r.failed(ctx, s.ID, err)
	}
	return tick, nil
}

func (r *Runner) stepOnce(ctx context.Context, s *session.Session, external func(ExternalAsk) bool) (Tick, error) {
	w := r.newEngine(s)
	w.external = external
	defer w.end()
	tick, err := w.step(ctx)
	w.whole = true
	if err == nil && tick.Status == TickHuman {
		if tick.outcome, err = r.outcomeNow(ctx, tick.Session); tick.outcome.Code != tick.Session.Outcome().Code {
			tick.Code = tick.outcome.Code
		}
	}
	return tick, err
}

// end gives back what w holds. Its buffers are used again only if the step came to its
// end: after a panic nobody knows who else has them.
func (w *engine) end() {
	w.abort()
	if w.giveBack(); w.whole {
		w.release()
	}
}

// reload reads the session again after a lost race. If that fails, w keeps the session
// that it had: whoever gives up still has something to give back.
func (w *engine) reload(ctx context.Context) error {
	s, err := w.r.load(ctx, w.s.ID)
	if err == nil {
		w.s = s
	}
	return err
}

// An engine is one Step under way, or one of its pieces: it asks, has the arbiter decide,
// passes the gate and commits. It has one commit in the making, and an assessment of the
// round that this leads to; begin makes both anew. What was answered but is not durable
// yet outlives a lost race.
type engine struct {
	r   *Runner
	s   *session.Session    // as last committed
	key specialist.RoundKey // of the round the step is about

	commit
	assessment
	passing judgement // of the step that is at the gate

	responses []response
	pending   *pendingVerdict  // nil unless an arbiter outside has spoken
	by        *planning.Member // the arbiter of the round

	asked  *session.Asked     // the first to be asked in this step
	asked2 []*session.Asked   // who was asked later
	chosen *session.Wave      // by what the wave that is to be asked was chosen; nil once that is noted
	dueNow []*planning.Member // a buffer
	limit  *deadline.Lazy

	tickets map[string]tenants.Ticket // of a quota, by who is asked; nil if nothing is limited
	taken   map[string]bool           // who has a ticket and was not looked at yet
	holds   map[string]*hold          // of those who are about to be asked; nil if nothing is limited

	flight *flight  // of asks that left this process; nil if none is waited for
	found  *inquiry // what came of asking about the decision; nil if nobody was asked
	turn   bool     // somebody was asked in this step
	moved  Tick     // what the gate made of the step

	whole   bool // the step has come to its end
	looking bool // nobody is asked to propose, so nobody becomes champion

	external func(ExternalAsk) bool // which asks are left to others; nil for none
	left     []int32                // those of this step, of which nobody knows yet
}

// newEngine returns an engine on a session. Its buffers have been used before.
func (r *Runner) newEngine(s *session.Session) *engine {
	w, _ := r.engines.Get().(*engine)
	if w == nil {
		w = &engine{}
	}
	w.r, w.s, w.key = r, s, s.Key()
	return w
}

// release gives the buffers back. Nothing of w may be used afterwards.
func (w *engine) release() {
	clear(w.responses[:cap(w.responses)])
	clear(w.dueNow[:cap(w.dueNow)])
	clear(w.votes[:cap(w.votes)])
	w.commit.release()
	r := w.r
	*w = engine{responses: w.responses[:0], dueNow: w.dueNow[:0], commit: w.commit, assessment: assessment{votes: w.votes[:0], outstanding: w.outstanding[:0]}}
	r.engines.Put(w)
}

// begin returns an engine with a commit that follows s, for what needs no asking but
// whoever takes part.
func (r *Runner) begin(ctx context.Context, s *session.Session) (*engine, error) {
	p, err := r.plan(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	return r.beginWith(p, s), nil
}

// beginPartial is begin where nobody will be asked: what asking takes may be
// missing.
func (r *Runner) beginPartial(ctx context.Context, s *session.Session) (*engine, error) {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	return r.beginWith(p, s), nil
}

func (r *Runner) beginWith(p *plan, s *session.Session) *engine {
	w := &engine{r: r, s: s, key: s.Key()}
	w.beginWith(p)
	return w
}

// beginWith begins a commit on the present session, and assesses what it leads to.
func (w *engine) beginWith(p *plan) {
	w.commit.reset(w.r, w.s)
	w.assess(w.r, p, &w.commit.now, &w.commit.open, w.commit.at)
}

// begin begins a commit on the present session and records in it all that is not durable.
// A state that the evidence has brought to another stage is assessed anew.
func (w *engine) begin(ctx context.Context) error {
	if err := w.r.loadTenant(ctx, w.s); err != nil {
		return err
	}
	for range maxRaces {
		p, err := w.r.plan(ctx, w.s.Program)
		if err != nil {
			return err
		}
		w.beginWith(p)
		w.recordAgain()
		if w.over() || w.looking {
			return nil
		}
		if err := w.applyChampion(ctx); err != nil {
			return err
		}
		if changed, err := w.reachStage(ctx); !changed || err != nil {
			return err
		}
	}
	return session.ErrStale
}

// recordAgain records in the commit what is not durable yet.
func (w *engine) recordAgain() {
	for i := range w.responses {
		w.recordAnswer(&w.responses[i])
	}
	if w.pending != nil {
		w.recordPending(w.pending, w.by)
	}
}

// over reports whether the round of this step has been decided by somebody else.
func (w *engine) over() bool { return w.now.Status != session.Running || w.now.Key() != w.key }

// save makes durable what was gathered. What was answered is then safe.
func (w *engine) save(ctx context.Context) error {
	w.noteChampion()
	s, err := w.commit.write(ctx)
	if err != nil {
		return err
	}
	w.s, w.responses, w.pending = s, w.responses[:0], nil
	return nil
}

func (w *engine) tick(status TickStatus) Tick {
	tick := w.moved
	tick.Status, tick.Session, tick.asked, tick.asked2 = status, w.s, w.asked, w.asked2
	tick.Code = cmp.Or(tick.Code, w.s.Outcome().Code)
	return tick
}

func statusOf(s *session.Session) TickStatus {
	switch s.Status {
	case session.NeedsHuman:
		return TickHuman
	case session.Completed:
		return TickCompleted
	case session.Stopped:
		return TickStopped
	case session.Failed:
		return TickFailed
	}
	return TickSolicited
}
