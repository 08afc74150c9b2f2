package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
	"github.com/dialai/dialai/verdict"
)

// A tx gathers the events of one commit and the session they lead to. It
// belongs to one goroutine. Its buffers are used again and again; what becomes
// part of the log is allocated anew.
type tx struct {
	r      *Runner
	before *session.Session // nil for a new session
	now    session.Session
	round  session.OpenRound
	events []session.Event
	at     specialist.Time // one reading of the clock for the whole commit

	plan *plan
	here *statePlan // who takes part in the present round

	batch        *batch                // where the data of the events lies
	asked        *session.Asked        // the event that the local asks of this commit share
	roster       []session.RosterEvent // that goes with this commit
	championship championship

	weighed   bool // weights has been read
	weights   []exact.Billionths
	votes     []arbiter.Vote
	open      []arbiter.Standing
	judging   arbiter.Round
	reads     *arbiter.Evidence // nil until bayes decides
	stop      trust.Stop        // why nobody else is asked, "" if somebody is or all were
	unasked   []*member         // those of the present wave who are yet to be asked
	past      past
	pending   judgement
	change    session.Change
	overdrawn error // a charge that makes no sense: nothing is committed
}

// begin opens a tx on a session.
func (r *Runner) begin(ctx context.Context, s *session.Session) (*tx, error) {
	t := &tx{}
	return t, t.begin(ctx, r, s)
}

// beginPartial is begin where nobody will be asked: what asking takes may be
// missing.
func (r *Runner) beginPartial(ctx context.Context, s *session.Session) (*tx, error) {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	t := &tx{}
	t.reset(r, p, s)
	return t, nil
}

// begin makes t a tx on a session, whatever it was before.
func (t *tx) begin(ctx context.Context, r *Runner, s *session.Session) error {
	p, err := r.plan(ctx, s.Program)
	if err == nil {
		t.reset(r, p, s)
	}
	return err
}

func (t *tx) reset(r *Runner, p *plan, s *session.Session) {
	t.bare(r, s)
	t.plan, t.here = p, &p.states[s.State.Index]
}

// bare makes t a tx that only ends a session: it knows of nobody who takes part.
func (t *tx) bare(r *Runner, s *session.Session) {
	proposals, asks := t.round.Proposals[:0], t.round.Asks[:0]
	*t = tx{
		r: r, before: s, now: *s, at: r.now(),
		events: t.events[:0], votes: t.votes[:0], open: t.open[:0],
	}
	if s.Open != nil {
		t.round = *s.Open
		proposals, asks = append(proposals, s.Open.Proposals...), append(asks, s.Open.Asks...)
	}
	t.round.Proposals, t.round.Asks = proposals, asks
	t.past.r, t.past.s = r, &t.now
}

// emit adds one event and applies it.
func (t *tx) emit(d session.Data) {
	t.events = append(t.events, session.Event{At: t.at, Data: d})
	if err := session.Apply(&t.now, &t.round, &t.events[len(t.events)-1]); err != nil && t.overdrawn == nil {
		t.overdrawn = err
	}
}

// commit makes the events durable and returns the session as it is now. With
// nothing to write it returns the session as it was.
func (t *tx) commit(ctx context.Context) (*session.Session, error) {
	if len(t.events) == 0 {
		return t.before, nil // a demotion alone waits for something to go with
	}
	if t.overdrawn != nil {
		return nil, fmt.Errorf("session %s: %w", t.now.ID, t.overdrawn)
	}
	first := int64(1)
	if t.before != nil {
		first = t.before.Sequence + 1
	}
	c := &t.change
	*c = session.Change{Before: t.before, After: session.Freeze(&t.now, &t.round), First: first, Events: t.events, Roster: t.roster}
	if err := t.r.store.Commit(ctx, c); err != nil {
		return nil, err
	}
	t.r.ended(c.After)
	if t.r.config.Observer != nil {
		t.r.config.Observer(session.Record{Before: c.Before, After: c.After, First: c.First, Events: c.Events})
	}
	return c.After, nil
}

// members returns who proposes in the present round.
func (t *tx) members() []member {
	if t.now.Options().DefaultProposer && len(t.here.members) == 0 && t.here.state.Roster == nil {
		return []member{defaultProposer(t.now.ID)}
	}
	return t.here.members
}

// mode returns how the proposers of the present round are asked.
func (t *tx) mode() machine.Mode {
	if o := t.now.Options(); o.Mode != "" {
		return o.Mode
	}
	return t.now.State.Solicit.Mode
}

// execute takes a decision through the gate and, if it passes, moves the
// session. It is the only way a session moves. The verdict is recorded whatever
// it is; what follows from a refusal is up to the caller.
func (t *tx) execute(ctx context.Context, d decision) (verdict.Verdict, error) {
	t.pending = judgement{ctx: ctx, step: t.step(d), inquiry: d.inquiry}
	permit, verdict, err := t.here.gates[d.transition.Index].pass(ctx, t)
	if err != nil {
		return verdict, err
	}
	g := t.newGated()
	*g = session.Gated{Transition: d.transition, Verdict: verdict, IsHuman: d.how != session.ByConsensus}
	t.emit(g)
	if permit.valid {
		t.move(permit, d, verdict)
	}
	return verdict, nil
}

// move executes what a permit allows.
func (t *tx) move(p permit, d decision, v verdict.Verdict) {
	round := t.now.Round
	t.emit(&session.Executed{
		Transition: p.transition, How: d.how, IsHuman: d.how != session.ByConsensus,
		SpecialistID: d.by, Arrival: d.arrival, Reasoning: d.reasoning, MetaJSON: d.meta,
		At: t.at, Standing: d.standing, Round: round, Attempt: t.now.Attempt, Draws: d.draws, Authors: d.authors,
	})
	if d.learned != nil {
		t.emit(d.learned)
	}
	switch to := p.transition.To; {
	case to.Terminal():
		end := session.Ends(to)
		t.emit(&end)
	default:
		o := t.newOpened()
		*o = session.RoundOpened{Round: round + 1, State: to, Notices: slices.Clip(v.Notices)}
		t.emit(o)
		t.here, t.weighed, t.reads = &t.plan.states[to.Index], false, nil
	}
}

// step returns a decision as the guards see it.
func (t *tx) step(d decision) verdict.Step {
	s := session.StepFor(&t.now, d.transition, d.reasoning, d.meta, d.how != session.ByConsensus, d.winner)
	s.Attempt, s.At = int64(t.now.Rejects), t.at
	s.Began, s.Moved = t.now.CountedSince(t.at)
	if len(t.r.config.Guards) > 0 || t.now.Program.Guarded {
		s.Task = t.now.ID.String()
	}
	return s
}

// raise adds to d the limits that a human wants to raise in the session.
func (t *tx) raise(d *session.Resumed, asked []guard.Raise) (err error) {
	s := &t.now
	switch {
	case s.Status == session.Completed:
		return refuse(ErrNotRunning, "completed", "the session has completed in %q, so there is nothing to raise a limit for", s.State.Name)
	case !t.mayRule(d.Actor):
		e := refuse(ErrForbidden, "not_human", "only humans who take part in state %q can raise a limit, and %q is none", s.State.Name, d.Actor)
		e.Hint = "the machine file says who they are (isHuman)"
		return e
	case d.Note == "":
		return refuse(nil, session.BadRaise, "a limit is raised without a note: say why")
	}
	var problems []machine.Problem
	if d.Raised, problems = s.Program.Guards(s.State).Raise(s.State.Name, asked); len(problems) > 0 {
		e := refuse(nil, session.BadRaise, "%s", problems[0].Message)
		e.Hint = problems[0].Hint
		return e
	}
	d.Program, err = s.Program.Lift(s.State, d.Raised)
	return err
}
