package runner

import (
	"context"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// From a verdict to an executed transition, or to what follows from a refusal.

// advance takes the winner of a verdict through the gate.
func (w *work) advance(ctx context.Context, v *session.Judged) (Tick, error) {
	if c := w.t.now.Program.Guards(w.t.now.State); c != nil && (c.Classifier != nil || c.Truth != nil) {
		q, status, err := w.inquire(ctx, w.elected)
		if err != nil {
			return Tick{}, err
		}
		if status != "" {
			return w.finish(ctx, status)
		}
		return w.enter(ctx, w.t.round.Verdict, q)
	}
	return w.enter(ctx, v, nil)
}

// elected is tx.elected of the present tx.
func (w *work) elected(v *session.Judged) decision { return w.t.elected(v) }

// enter takes the winner of a verdict through the gate, with what came of asking
// about it.
func (w *work) enter(ctx context.Context, v *session.Judged, q *inquiry) (Tick, error) {
	d := w.t.elected(v)
	d.inquiry = q
	from := w.t.now.State
	w.t.cancelOpen()
	if held, err := w.t.holdForAudit(ctx, w.by, &d); err != nil {
		return Tick{}, err
	} else if held {
		return w.finish(ctx, TickHuman)
	}
	w.t.demoteOnMismatch(d.transition)
	verdict, err := w.t.execute(ctx, d)
	if err != nil {
		return Tick{}, err
	}
	if !verdict.Passed() {
		tick, err := w.finish(ctx, w.t.refused(verdict))
		tick.Code = verdict.Reasons[0].Code
		return tick, err
	}
	tick, err := w.finish(ctx, TickAdvanced)
	tick.Previous, tick.Transition, tick.verdict = from, d.transition, v
	return tick, err
}

// elected returns the decision to execute a verdict's winner.
func (t *tx) elected(v *session.Judged) decision {
	arrival := v.Order[v.Decision.Winner]
	for _, p := range t.round.Proposals {
		if p.Arrival == arrival {
			return decision{transition: p.Transition, how: session.ByConsensus, by: p.SpecialistID, arrival: arrival, reasoning: p.Reasoning, meta: p.MetaJSON, winner: p}
		}
	}
	panic("runner: the verdict is not on the present proposals") // a broken invariant: the fold drops it with the set
}

// cancelOpen records that asks still out when a round is decided are not waited
// for. They are charged as estimated.
func (t *tx) cancelOpen() {
	for _, a := range t.round.Asks {
		if a.Status.Pending() && a.Role == machine.Proposer && a.Remote != nil {
			t.recordAnswer(&response{key: t.now.Key(), id: a.SpecialistID, ask: a.Index, estimate: a.Remote, code: session.CodeCancelled, message: "the round was decided without it"})
		}
	}
}

// DefaultRejects is how many steps in a row a guard may send back before a human
// is asked.
const DefaultRejects = 3

// refused records what follows from a guard's refusal.
func (t *tx) refused(v verdict.Verdict) TickStatus {
	reason := v.Reasons[0]
	if v.Status == verdict.Abort {
		t.emit(&session.Ended{Status: session.Stopped, Code: reason.Code, Reason: reason.Message})
		return TickStopped
	}
	limit := int32(DefaultRejects)
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
		return TickRejected
	}
	t.emit(&session.AwaitsHuman{Code: reason.Code, Reason: reason.Text()})
	return TickHuman
}
