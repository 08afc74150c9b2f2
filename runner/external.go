package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Driving a session from outside: a cron job, a queue, a workflow engine. Step waits for
// whom it asks, so that whoever calls it waits as long. Advance takes all steps that need no
// long wait, records the asks that its caller wants to send itself, and returns them by
// name; Ask sends one of them, in whatever process, and records what came of it. Between two
// calls nothing runs and nothing is held in memory: the log has everything, and any process
// may make the next call.
//
// An ask that Advance has recorded so is external: it has no owner (RemoteAsk.Owner is
// empty), since no process waits for it. It is out until its deadline, then whoever steps
// the session next repeats it under its key, as an ask whose process is lost. So a caller
// that is gone for good costs a delay, and nothing else.
//
// The order of things: an ask is recorded before anybody knows of it; it is sent at most
// once at a time by one process, and by any number of processes under one key; one answer to
// its newest request counts (Session.Refuses), and what comes otherwise is recorded with
// its cost, or not sent at all. A request ends before the deadline of its ask, so that nobody
// sends what somebody else may repeat. One that had all its time has failed by that; one that was begun too late is
// repeated, but not for ever.

// An ExternalAsk is an ask that is recorded and that whoever calls [Runner.Advance] has sent
// by [Runner.Ask]. It holds no contents.
type ExternalAsk struct {
	AskRef
	Source   specialist.Source
	Timeout  time.Duration   // how long Ask takes at most
	Deadline specialist.Time // before which Ask sends it; from then on a step repeats it
}

// AdvanceOptions bound one Advance. With the zero value all asks are sent by Advance itself.
type AdvanceOptions struct {
	// External reports whether an ask is left to the caller, who has it sent by [Runner.Ask].
	// It is asked before the ask is recorded, when that has no deadline yet, maybe more than once, and must not block.
	// Functions of the program, arbiters and questions of guards are never external. nil means
	// that no ask is.
	External func(ExternalAsk) bool
	// MaxSteps is how many transitions the session may take since it was started or resumed:
	// then it is stopped with the code step_limit, as by Run. 0 means DefaultMaxSteps.
	MaxSteps int
	// MaxTime is after how long no further step is begun; the session then stands as it is,
	// and its Progress is running. At least one step is taken. 0 means no limit.
	MaxTime time.Duration
}

// A Progress is where an Advance left its session.
type Progress struct {
	Sequence int64  // of the last event
	Status   string // completed, needs_human, stopped, failed, waiting, or running: it can go on at once
	Code     string
	// WakeAt is when to call Advance again though nothing happens to the session; 0 is never,
	// and what has passed is now: see [session.Session.WakeAt].
	WakeAt specialist.Time
	// Asks are the external asks that are out, also those of former calls, by index.
	Asks []ExternalAsk
}

// Advance takes the steps of a session that can be taken now, until it has ended, needs a
// human, or only waits: for answers, or for a timer. Asks that o says are external it
// records, and returns instead of sending them; others it sends, and waits for them. It
// may be called at any time, and as often as one likes: where there is nothing to do it changes
// nothing and says the same again.
//
// Call it again when an ask has been answered (it may have settled the round), at WakeAt,
// and when somebody else has committed something ([Runner.Watch]). Errors are those of Step;
// what was committed before one stands.
func (r *Runner) Advance(ctx context.Context, id specialist.SessionID, o AdvanceOptions) (p Progress, err error) {
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	if !apart(func() { p, err = r.advance(ctx, id, o) }) {
		var tick Tick
		if tick, err = r.gone(ctx, id); err == nil {
			return r.progress(ctx, tick.Session, tick.Session.Status.String())
		}
	}
	return p, err
}

func (r *Runner) advance(ctx context.Context, id specialist.SessionID, o AdvanceOptions) (Progress, error) {
	began := r.config.Now()
	s, err := r.load(ctx, id)
	if err != nil {
		return Progress{}, err
	}
	for first := true; ; first = false {
		if s.Status == session.Running && int(s.SinceResumed) >= o.MaxSteps {
			limit := RunOptions{MaxSteps: o.MaxSteps}
			stopped, err := r.stopRun(ctx, id, session.CodeStepLimit, limit.stepLimit())
			if err != nil {
				return Progress{}, err
			}
			return r.progress(ctx, stopped.Session, stopped.Status)
		}
		if !first && o.MaxTime > 0 && r.config.Now().Sub(began) >= o.MaxTime {
			return r.progress(ctx, s, s.Status.String())
		}
		tick, err := r.stepWith(ctx, s, o.External)
		if err != nil {
			return Progress{}, err
		}
		s = tick.Session
		switch tick.Status {
		case TickAdvanced, TickSolicited, TickRejected:
			if s.Status == session.Running {
				continue
			}
		case TickWaiting:
			return r.progress(ctx, s, WaitingStatus)
		}
		if s, err = r.load(ctx, id); err != nil { // somebody else may have moved it
			return Progress{}, err
		}
		if s.Status == session.Running {
			continue
		}
		if s.Status == session.NeedsHuman && s.TimerComes(r.now()) {
			continue
		}
		return r.progress(ctx, s, s.Status.String())
	}
}

// Waits reports whether an Advance would do nothing but wait for external asks that are out: nobody else is to be asked, no
// timer has come, and nothing that was answered settles the round. Whoever has had one of several asks sent may save the
// call then. It changes nothing, and says false where only an Advance can tell.
func (r *Runner) Waits(ctx context.Context, id specialist.SessionID) (bool, error) {
	s, err := r.load(ctx, id)
	if err != nil || s.Status != session.Running || s.State.Collapse != nil || s.WakeAt() != 0 && s.WakeAt() <= r.now() {
		return false, err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil || w.mode() == machine.Eager || !w.externalOut() {
		return false, err
	}
	if w.by, err = w.arbiter(); err != nil {
		return false, err
	}
	due, err := w.due(ctx)
	if err != nil || len(due) > 0 || len(w.events) > 0 {
		return false, err
	}
	settled, err := w.settled(ctx)
	return !settled && err == nil, err
}

// progress says where a session stands.
func (r *Runner) progress(ctx context.Context, s *session.Session, status string) (Progress, error) {
	p := Progress{Sequence: s.Sequence, Status: status, Code: s.Standing().Code, WakeAt: s.WakeAt()}
	if s.Status == session.NeedsHuman {
		why, err := r.outcomeNow(ctx, s)
		if err != nil {
			return Progress{}, err
		}
		p.Code = why.Code
	}
	if !s.Status.Live() || !slices.ContainsFunc(s.OpenAsks(), func(a session.Ask) bool { return a.External() }) {
		return p, nil
	}
	plan, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return Progress{}, err
	}
	t := r.look(plan, s)
	for _, a := range s.OpenAsks() {
		if m := t.member(a.SpecialistID); m != nil && a.External() {
			p.Asks = append(p.Asks, ExternalAsk{AskRef{s.Key(), a.Index, a.Remote.Repeat, a.SpecialistID}, a.Source, t.mostTime(m), a.Remote.Deadline})
		}
	}
	return p, nil
}

// member returns the proposer of that id; nil if there is none.
func (t *round) member(id string) *planning.Member {
	members := t.members()
	for i := range members {
		if members[i].SpecialistID == id {
			return &members[i]
		}
	}
	return nil
}

// mostTime returns how long a request of a member may take: as long as it may take itself,
// or its round.
func (t *round) mostTime(m *planning.Member) time.Duration {
	return min(m.Timeout, time.Duration(t.now.State.Solicit.RoundTimeout))
}

// besides returns how long an Advance may be busy with those of a wave whom it asks itself, before its caller
// knows of the others.
func (w *engine) besides(ask []*planning.Member) (most time.Duration) {
	if w.external == nil {
		return 0
	}
	for _, m := range ask {
		if m.Local() || !w.external(ExternalAsk{AskRef{w.now.Key(), 0, 0, m.SpecialistID}, m.Source, w.mostTime(m), 0}) {
			most += w.mostTime(m)
		}
	}
	return min(most, time.Duration(w.now.State.Solicit.RoundTimeout))
}

// leave makes an ask that is about to be recorded external, if the caller of Advance wants
// to send it. It is not overdue before a process would be that had sent it once the others of its wave, who may
// take so long, had answered.
func (w *engine) leave(m *planning.Member, a *session.Ask, besides time.Duration) {
	most := w.mostTime(m)
	if w.external == nil || !w.external(ExternalAsk{AskRef{w.now.Key(), a.Index, a.Remote.Repeat, a.SpecialistID}, a.Source, most, 0}) {
		return
	}
	a.Remote.Owner, a.Remote.Deadline = "", w.at+specialist.Time((besides+most+overdue).Milliseconds())
}

// sendable reports whether an external ask may still be sent.
func (w *engine) sendable(a *session.AskState) bool {
	return a.Status.Pending() && a.External() && w.at < a.Remote.Deadline
}

// externalOut reports whether an external ask is out. Nobody else is asked meanwhile where one
// is asked after the other, as when this process waits for the answer.
func (w *engine) externalOut() bool {
	for i := range w.open.Asks {
		if w.sendable(&w.open.Asks[i]) {
			return true
		}
	}
	return false
}

// cancelExternal records that nobody needs the external asks of a settled round, before it
// is decided, as those that this process has out are cancelled then.
func (w *engine) cancelExternal() {
	for i := range w.open.Asks {
		if a := &w.open.Asks[i]; a.Status.Pending() && a.External() {
			h := response{key: w.now.Key(), id: a.SpecialistID, source: a.Source, ask: a.Index, repeat: a.Remote.Repeat, estimate: a.Remote, code: session.CodeCancelled, message: "the round was decided without it"}
			if slices.Contains(w.left, a.Index) {
				h.answer.Usage = specialist.Usage{}.WithCalls(0, 0) // it was never sent
			}
			w.recordAnswer(&h)
		}
	}
}

// Ask sends an external ask under its key, unless it is answered, closed, repeated or
// overdue meanwhile, and records what comes of it: an answer, that it will come later, or
// why there is none. In each of these cases it returns nil, and the log says which; call
// Advance then. An ask that another call of this Runner is sending it waits for. Sent by
// several processes at a time it counts once, as the first that is recorded; a service knows the key
// and is paid once, a model knows none and is paid for each request, of which the log has
// those that were answered.
//
// If ctx is done first nothing is recorded, and the ask stays out; of one that is closed by then it records what it had
// cost. Other errors:
// [session.ErrNotFound] for what was never asked, or somebody who is switched off, ErrIllegal for an ask that another process
// sends, a [*StartError] if this process lacks what asking takes, and a store that fails.
// After each of them Ask may be called again, by any process.
func (r *Runner) Ask(ctx context.Context, ask AskRef) error {
	key := askKey{ask.Round, ask.Index}
	for {
		r.mu.Lock()
		other := r.sending[key]
		if other == nil {
			done := make(chan struct{})
			r.sending[key] = done
			r.mu.Unlock()
			defer func() {
				r.mu.Lock()
				delete(r.sending, key)
				r.mu.Unlock()
				close(done)
			}()
			return r.containApart(ask.Round.Session, func() error { return r.sendExternal(ctx, ask) })
		}
		r.mu.Unlock()
		select {
		case <-other: // it may have been given up
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendExternal is Ask while nobody else of this process sends the ask.
func (r *Runner) sendExternal(ctx context.Context, ask AskRef) error {
	s, err := r.load(ctx, ask.Round.Session)
	if err != nil {
		return err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return err
	}
	if !w.placed(&response{key: ask.Round, id: ask.SpecialistID, ask: ask.Index, repeat: ask.Repeat}) {
		return &session.NotFoundError{What: "Ask", ID: ask.Round.AskID(ask.Index)}
	}
	a := w.open.At(ask.Index)
	switch {
	case w.now.Refuses(&w.open, ask.Round, ask.Index, ask.Repeat) != "", a.Remote.Accepted:
		return nil // others were faster
	case !a.External():
		return refuse(ErrIllegal, "not_external", "the ask of %s is sent by another process: Advance returns those that are to be sent", ask.SpecialistID)
	}
	left := time.Duration(a.Remote.Deadline-w.at) * time.Millisecond
	if left <= 0 {
		return nil // it is repeated by whoever steps
	}
	if w, err = r.begin(ctx, s); err != nil {
		return err
	}
	req, err := w.again(ctx, a)
	if err != nil {
		return err
	}
	most := w.mostTime(req.member)
	limited, cancel := context.WithTimeout(ctx, min(most, left))
	defer cancel()
	q := questionOf(s, s.Notices(), &lessons.Past{Store: r.store, Session: s})
	if req.member.Webhook() {
		q.Encoded = q.AppendContext(nil, true)
	}
	h := r.answer(limited, *req, q, true, specialist.Time(time.Duration(s.State.Solicit.AsyncTimeout).Milliseconds()))
	if h.code != "" && ctx.Err() != nil {
		return errors.Join(ctx.Err(), r.givenUp(context.WithoutCancel(ctx), ask, &h))
	}
	if h.code == session.CodeTimeout && left < most && ask.Repeat < mostLate {
		return nil // it was begun too late, and had less than its time
	}
	return r.record(context.WithoutCancel(ctx), ask, &h) // what was sent is paid for
}

// mostLate is how often an external ask is repeated whose requests were begun too late to have all their time. Then it has
// failed: whoever sends it is always late, and each of its requests is paid for.
const mostLate = 3

// givenUp records what a request had cost whose caller gave up when nobody needed its answer any more. One
// that may still be asked again is charged for when it is.
func (r *Runner) givenUp(ctx context.Context, ask AskRef, h *response) error {
	if h.answer.Usage == (specialist.Usage{}) {
		return nil
	}
	s, err := r.load(ctx, ask.Round.Session)
	if err != nil || s.Refuses(s.Open, ask.Round, ask.Index, ask.Repeat) == "" {
		return err
	}
	return r.record(ctx, ask, h)
}

// again makes the request of an external ask that is recorded.
func (w *engine) again(ctx context.Context, a *session.AskState) (*request, error) {
	m := w.member(a.SpecialistID)
	if m == nil || m.Off {
		return nil, &session.NotFoundError{What: "Specialist", ID: a.SpecialistID}
	}
	req := &request{member: m, estimate: a.Remote, index: a.Index, caller: w.caller(a.SpecialistID, a.Role, a.Index, a.Remote.Repeat)}
	req.ask = specialist.Ask{ID: req.caller.AskID, Nth: req.caller.Nth}
	if b := w.budget(); b != nil || w.r.quota != nil {
		n := w.need(m)
		h := hold{spare: a.Remote.Spare, limited: b != nil && b.HardCalls != nil && n.repairs+n.retries > 0}
		req.limit = h.callLimit()
	}
	if a.Remote.TokenHash == "" || w.r.config.PublicURL == "" {
		return req, nil
	}
	secret, err := w.r.callbackSecret(ctx, req.ask.ID, true)
	if err == nil {
		w.r.address(w.now.ID, req, secret)
	}
	return req, err
}

// record records what came of an external ask. What does not count any more is not an error.
func (r *Runner) record(ctx context.Context, ask AskRef, h *response) error {
	for range maxRaces {
		s, err := r.load(ctx, ask.Round.Session)
		if err != nil {
			return err
		}
		switch _, _, err = r.recordResponse(ctx, s, ask, *h); {
		case errors.Is(err, session.ErrStale):
		case errors.Is(err, ErrStaleRound), errors.Is(err, ErrIllegal), errors.Is(err, specialist.ErrAccepted):
			return nil
		default:
			return err
		}
	}
	return fmt.Errorf("session %s: %w", ask.Round.Session, session.ErrStale)
}
