package runner

import (
	"context"
	"slices"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// From a verdict to an executed transition, or to what follows from a refusal. execute is the
// only way a session moves: the gate gives a permit, conditions and data are worked out, and
// only then are the events made. A guard that refuses sends the round back (retry), to a human,
// or stops the session (abort); the verdict is recorded in each case.

// elected returns the decision to execute a verdict's winner.
func (t *round) elected(v *session.Judged) decision {
	arrival := v.Order[v.Decision.Winner]
	for _, p := range t.open.Proposals {
		if p.Arrival == arrival {
			return decision{transition: p.Transition, how: session.ByConsensus, by: p.SpecialistID, arrival: arrival, reasoning: p.Reasoning, meta: p.MetaJSON, winner: p}
		}
	}
	panic("runner: the verdict is not on the present proposals") // a broken invariant: the fold drops it with the set
}

// cancelOpen records that asks still out when a round is decided are not waited
// for. They are charged as estimated.
func (w *engine) cancelOpen() {
	for _, a := range w.open.Asks {
		if a.Status.Pending() && a.Role == machine.Proposer && a.Remote != nil {
			w.recordAnswer(&response{key: w.now.Key(), id: a.SpecialistID, source: a.Source, ask: a.Index, repeat: a.Remote.Repeat, estimate: a.Remote, code: session.CodeCancelled, message: "the round was decided without it"})
		}
	}
}

// defaultRejects is how many steps in a row a guard may send back before a human
// is asked.
const defaultRejects = 3

// refused records what follows from a guard's refusal.
func (t *commit) refused(v verdict.Verdict) roundInput {
	reason := v.Reasons[0]
	if v.Status == verdict.Abort {
		t.emit(&session.Ended{Status: session.Stopped, Code: reason.Code, Reason: reason.Message})
		return seenStopped
	}
	limit := int32(defaultRejects)
	if c := t.now.Program.Guards(t.now.State); c != nil && c.Retry.MaxAttempts != nil {
		limit = int32(min(*c.Retry.MaxAttempts, 1<<20))
	}
	if v.Status == verdict.Retry && t.now.Rejects < limit {
		notices := append([]string(nil), v.Notices...)
		for _, r := range v.Reasons {
			notices = append(notices, r.Text())
		}
		o := t.newOpened()
		*o = session.RoundOpened{Round: t.now.Round, Attempt: t.now.Attempt + 1, State: t.now.State, Notices: notices}
		t.emit(o)
		return seenSentBack
	}
	t.emit(&session.AwaitsHuman{Code: reason.Code, Reason: reason.Text()})
	return seenHuman
}

// execute takes a decision through the gate and, if it passes, moves the
// session. It is the only way a session moves. The verdict is recorded whatever
// it is; what follows from a refusal is up to the caller. Where the transition cannot set
// what it is to set the error is a *cases.SetError, and nothing is recorded.
func (w *engine) execute(ctx context.Context, d *decision) (verdict.Verdict, error) {
	w.passing = judgement{ctx: ctx, step: w.guardStep(d), inquiry: d.inquiry}
	permit, verdict, err := w.plan.gates[w.here.State.Index][d.transition.Index].pass(ctx, w)
	if err != nil {
		return verdict, err
	}
	if permit.valid {
		step := cases.Step{Transition: d.transition, MetaJSON: d.meta, By: d.by, Human: d.how.Ruling() || d.winner != nil && d.winner.IsHuman, At: w.at}
		if d.data, d.subject, err = w.plan.Cases.Write(ctx, &w.now, step); err != nil {
			return verdict, err // nothing of the step has happened
		}
	}
	g := w.newGated()
	*g = session.Gated{Transition: d.transition, Verdict: verdict, IsHuman: d.how.Ruling()}
	w.emit(g)
	if permit.valid {
		w.move(ctx, permit, d, verdict)
	}
	return verdict, nil
}

// move executes what a permit allows.
func (w *engine) move(ctx context.Context, p permit, d *decision, v verdict.Verdict) {
	round := w.now.Round
	w.emit(&session.Executed{
		Transition: p.transition, How: d.how, IsHuman: d.how.Ruling(),
		SpecialistID: d.by, Arrival: d.arrival, Reasoning: d.reasoning, MetaJSON: d.meta,
		At: w.at, Standing: d.standing, Round: round, Attempt: w.now.Attempt, Draws: d.draws, Authors: d.authors, Data: d.data, Subject: d.subject, Actor: d.actor, QuestionDigest: d.seen, Manner: d.manner,
	})
	if d.learned != nil {
		w.emit(d.learned)
	}
	switch to := p.transition.To; {
	case to.Terminal():
		end := session.Ends(to)
		w.emit(&end)
	default:
		o := w.newOpened()
		*o = session.RoundOpened{Round: round + 1, State: to, Notices: slices.Clip(v.Notices), Closed: w.plan.Cases.Closed(ctx, &w.now), Due: w.plan.Cases.Due(ctx, &w.now, w.at)}
		w.emit(o)
		w.here, w.weighed, w.reads = &w.plan.States[to.Index], false, nil
	}
}
