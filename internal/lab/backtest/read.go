package backtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// From events to tracks. Of each event only what a round was decided on is read,
// without explanations and texts (session.Raw.Skim); events that say nothing of that
// are passed over. A log that does not begin with its creation, or has events of a
// round where there is none, is damaged, and ends the back-test.
//
// A round is decided again when its verdict is read, and where a human ruled without
// one, when that was executed. What was learned from it comes after, in an event of its
// own.

// A reader reads the events of one record into a track. It takes from them what a
// round was decided on, and does not look into events that say nothing of that.
type reader struct {
	*fold
	t     *track
	place int64
	at    specialist.Time
}

// record reads one record.
func (f *fold) record(ctx context.Context, e *session.LogEntry) error {
	t := f.tracks[e.Session]
	if t == nil {
		t = &track{id: e.Session, machine: e.MachineName}
		f.tracks[e.Session] = t
	}
	r := reader{fold: f, t: t, place: e.Place}
	var err error
	f.raw, err = session.SplitRaw(f.raw[:0], e.Events)
	for i := range f.raw {
		if err == nil {
			err = r.event(ctx, &f.raw[i])
		}
	}
	if f.broken != nil {
		return f.broken
	}
	if err != nil {
		return &session.CorruptError{What: fmt.Sprintf("the record of session %s at event %d", e.Session, e.First), Problem: err.Error()}
	}
	return nil
}

// event reads one event.
func (r *reader) event(ctx context.Context, e *session.Raw) error {
	r.at = e.At
	if r.since == 0 && r.at >= r.Since {
		r.since = r.place
	}
	switch {
	case r.t.scene == nil && e.Kind != session.KindCreated:
		return fmt.Errorf("the log does not begin with %s", session.KindCreated)
	case r.t.inherits && e.Kind != session.KindRoundOpened && e.Kind != session.KindMoved:
		return nil // the round was begun in another session, which counts it
	case r.t.round != nil:
		r.t.round.at = r.at
	case slices.Contains(aboutRound, e.Kind):
		return fmt.Errorf("%s where there is no round", e.Kind)
	}
	if err := r.kind(ctx, e); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return nil
}

// aboutRound are the events that only an open round has.
var aboutRound = []string{session.KindProposed, session.KindJudged, session.KindGated, session.KindRuled, session.KindExecuted}

func (r *reader) kind(ctx context.Context, e *session.Raw) error {
	switch e.Kind {
	case session.KindCreated:
		return r.created(ctx, e)
	case session.KindRoundOpened:
		return r.opened(e)
	case session.KindProposed:
		return r.proposed(e)
	case session.KindAskFailed:
		return r.failed(e)
	case session.KindDiscarded:
		return r.discarded(e)
	case session.KindJudged:
		return r.judged(ctx, e)
	case session.KindGated:
		return r.gated(e)
	case session.KindExecuted:
		return r.executed(ctx, e)
	case session.KindLearned:
		return r.learned(e)
	case session.KindMoved:
		return r.moved(ctx, e)
	case session.KindRetracted:
		return r.retracted(e)
	case session.KindRuled:
		return r.ruled(e)
	case session.KindNeedsHuman, session.KindResumed:
		if r.t.round != nil {
			r.t.round.wait(e.Kind == session.KindNeedsHuman)
		}
	} // a round is closed by what is executed; a session that ended may be resumed or reviewed
	return nil
}

func (r *reader) created(ctx context.Context, e *session.Raw) error {
	digest, options, err := e.Creation()
	if err != nil {
		return err
	}
	t := r.t
	t.mode, t.standIn = options.Mode, options.DefaultArbiter
	r.report.Sessions++
	if t.scene, r.broken = r.scenes.of(ctx, t.machine, digest); r.broken != nil {
		return r.broken
	}
	t.names.Program = &session.Program{Machine: t.scene.m}
	if t.inherits = options.ForkedFrom != nil; t.inherits {
		return nil
	}
	initial := t.scene.m.Initial()
	t.begin(specialist.RoundKey{Session: t.id}, &t.scene.parts[initial.Index], r.at, r.place)
	return nil
}

// moved reads that the session goes on under another definition: its round begins anew.
func (r *reader) moved(ctx context.Context, e *session.Raw) error {
	var d session.Moved
	if err := e.Read(&d, &r.t.names); err != nil {
		return err
	}
	t := r.t
	if t.scene, r.broken = r.scenes.of(ctx, t.machine, d.Next()); r.broken != nil {
		return r.broken
	}
	r.close(t)
	t.inherits = false
	t.names.Program = &session.Program{Machine: t.scene.m}
	return nil
}

func (r *reader) opened(e *session.Raw) error {
	var d session.RoundOpened
	if err := e.Skim(&d, &r.t.names); err != nil {
		return err
	}
	if d.Attempt > 0 && r.t.round != nil {
		r.t.round.by = sentBack
	}
	if r.t.inherits && d.Attempt > 0 {
		return nil
	}
	r.t.inherits = false
	before := r.t.round
	r.close(r.t)
	r.t.begin(specialist.RoundKey{Session: r.t.id, Round: d.Round, Attempt: d.Attempt}, &r.t.scene.parts[d.State.Index], r.at, r.place)
	switch now := r.t.round; {
	case d.Attempt > 0 && before != nil:
		now.offered = before.offered // what was closed stays closed
	case len(d.Closed) > 0:
		now.offered = now.offered.Without(d.Closes)
	}
	return nil
}

// given stands for a payload: what it says decides nothing.
var given = json.RawMessage("{}")

func (r *reader) proposed(e *session.Raw) error {
	d := &session.Proposed{}
	if err := e.Skim(d, &r.t.names); err != nil {
		return err
	}
	p := &d.Proposal
	if p.MetaJSON != nil {
		p.MetaJSON = given
	}
	r.t.round.propose(p)
	r.t.round.spend(p.SpecialistID, p.Usage.CostUSD)
	return nil
}

// failed reads an ask that came to nothing.
func (r *reader) failed(e *session.Raw) error {
	var d session.AskFailed
	if err := e.Skim(&d, &r.t.names); err != nil || r.t.round == nil {
		return err // a round that is over was counted
	}
	if d.Role != machine.Arbiter && d.Code != session.CodeCancelled {
		r.t.round.failed = append(r.t.round.failed, d.SpecialistID)
	}
	r.t.round.spend(d.SpecialistID, d.Usage.CostUSD)
	return nil
}

// discarded reads an answer that came too late.
func (r *reader) discarded(e *session.Raw) error {
	var d session.Discarded
	if err := e.Skim(&d, &r.t.names); err != nil || r.t.round == nil {
		return err
	}
	r.t.round.spend(d.SpecialistID, d.Usage.CostUSD)
	return nil
}

func (r *reader) judged(ctx context.Context, e *session.Raw) error {
	j, read := &session.Judged{}, e.Skim
	if r.Exact {
		read = e.Read
	}
	if err := read(j, &r.t.names); err != nil {
		return err
	}
	pt, err := r.t.round.point(j.Order, j.Weights, r.place)
	if err != nil {
		return err
	}
	if pt.judged = j; j.Evidence != nil {
		for i := range pt.votes {
			pt.votes[i].Version = j.Evidence.Versions[i]
		}
	}
	return r.decide(ctx, r.t.round, pt)
}

func (r *reader) gated(e *session.Raw) error {
	var d session.Gated
	if err := e.Skim(&d, &r.t.names); err != nil {
		return err
	}
	if !d.Verdict.Passed() && !d.IsHuman {
		r.t.round.refused = d.Transition
	}
	return nil
}

func (r *reader) executed(ctx context.Context, e *session.Raw) error {
	var d session.Executed
	if err := e.Skim(&d, &r.t.names); err != nil {
		return err
	}
	now := r.t.round
	now.looked += d.Looked
	switch now.took = d.Transition; d.How {
	case session.ByConsensus:
		now.by = byConsensus
	case session.Forced:
		now.by = byHuman
	default:
		now.by = byProgram
	}
	if now.by == byHuman && len(now.points) == 0 {
		pt, err := now.point(d.Standing.Order, d.Standing.Weights, r.place) // nobody had judged it
		if err != nil {
			return err
		}
		if err := r.decide(ctx, now, pt); err != nil {
			return err
		}
	}
	now.at = r.at
	r.close(r.t)
	return nil
}

func (r *reader) ruled(e *session.Raw) error {
	var d session.Ruled
	if err := e.Skim(&d, &r.t.names); err != nil {
		return err
	}
	r.t.round.looked += d.Looked
	r.t.round.rule(d.SpecialistID, d.Transition == nil)
	return nil
}

func (r *reader) learned(e *session.Raw) error {
	var d session.Learned
	if err := e.Skim(&d, &r.t.names); err != nil {
		return err
	}
	for i := range d.Comparisons {
		r.compared(r.t.machine, &d.Comparisons[i])
	}
	return nil
}

// retracted reads that a ruling teaches nothing any more.
func (r *reader) retracted(e *session.Raw) error {
	var d session.Retracted
	if err := e.Read(&d, &r.t.names); err != nil {
		return err
	}
	for i := range d.Comparisons {
		r.compared(r.t.machine, &d.Comparisons[i])
	}
	return nil
}
