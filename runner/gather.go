package runner

import (
	"context"
	"slices"
	"time"

	"github.com/dialai/dialai/internal/deadline"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Who is asked next, and how. due says who: everybody enabled without an answer or an
// ask that is out; out says whether an ask is still being waited for, which it is while
// the process that sent it lives or its service has time left. gather then asks those
// whom the budget admits.
//
// If all of them are functions inside this process they are asked one by one, until the
// round is settled, and their asks are recorded together with their answers. Otherwise
// the asks of all others are recorded in one commit, the commit is saved, and only then
// are they sent: nothing leaves this process that the log does not know. Meanwhile the
// functions answer. An ask whose process was lost keeps its index and is repeated under
// its key, so that a service which knows the key is paid once.

// due returns whom to ask now: everybody enabled who has not answered in this
// round. An ask that is out counts as answered while its owner lives; one whose
// owner is lost is repeated under its key.
func (w *engine) due(ctx context.Context) ([]*planning.Member, error) {
	if c := w.championship.champion; c != "" && (w.failed(c) || !w.championship.alone && w.open.Proposal(c) != nil && (w.tooFewAlone() || w.lacksPayload(c))) {
		w.championship.champion = "" // it was asked and failed: now the others are asked
	}
	members := w.members()
	due, have := w.dueNow[:0], w.open.Finder()
	for i := range members {
		m := &members[i]
		if have.Proposal(m.SpecialistID) != nil {
			continue
		}
		a := have.Ask(m.SpecialistID)
		if a != nil && a.Status.Pending() {
			if out, err := w.out(ctx, a); out || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		if !w.asks(m) {
			if a != nil && a.Status.Pending() && a.Remote != nil { // its process is lost, and nobody repeats it
				w.recordAnswer(&response{key: w.now.Key(), id: a.SpecialistID, source: a.Source, ask: a.Index, repeat: a.Remote.Repeat, estimate: a.Remote, code: session.CodeCancelled, message: "nobody answered, and it is not asked any more"})
			}
			continue
		}
		if a == nil || a.Status.Dropped() || a.Status.Pending() {
			due = append(due, m)
		}
	}
	w.dueNow = due
	return due, nil
}

// overdue is how long after its deadline an ask of a living process is left
// alone.
const overdue = 5 * time.Second

// out reports whether an open ask is being waited for. One that was accepted but
// never answered is recorded as failed.
func (w *engine) out(ctx context.Context, a *session.AskState) (bool, error) {
	late := a.Remote != nil && w.at > a.Remote.Deadline
	switch {
	case a.Remote == nil:
		return false, nil
	case a.Remote.Accepted:
		if late {
			w.recordAnswer(&response{key: w.now.Key(), id: a.SpecialistID, ask: a.Index, repeat: a.Remote.Repeat, estimate: a.Remote, code: session.CodeTimeout, message: "accepted, but no answer came in time"})
		}
		return !late, nil
	case w.r.waitsFor(askKey{w.now.Key(), a.Index}):
		return true, nil
	case a.External():
		return w.sendable(a), nil
	case w.r.owns(a.Remote.Owner):
		return false, nil
	case w.at > a.Remote.Deadline+specialist.Time(overdue.Milliseconds()):
		return false, nil
	}
	return w.r.store.Alive(ctx, a.Remote.Owner)
}

// waiting reports whether an answer is still out.
func (w *engine) waiting() bool {
	for _, a := range w.open.Asks {
		if a.Status.Pending() && a.Role == machine.Proposer {
			return true
		}
	}
	return false
}

// waitsFor reports whether this runner is waiting for an ask right now.
func (r *Runner) waitsFor(k askKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inflight[k]
}

func (r *Runner) owns(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owner != nil && r.owner.Name() == name
}

// claim returns the name under which this runner asks outside its process. If the store
// has lost it (its directory of owners was deleted, say), it makes another: who asks is
// always alive for others, or they would take the ask, and lose it again, without end.
func (r *Runner) claim(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != nil {
		alive, err := r.store.Alive(ctx, r.owner.Name())
		if err != nil {
			return "", err
		}
		if !alive {
			_ = r.owner.Release() // of what is not there any more
			r.owner = nil
		}
	}
	if r.owner == nil {
		o, err := r.store.Claim(ctx)
		if err != nil {
			return "", err
		}
		r.owner = o
	}
	return r.owner.Name(), nil
}

func (r *Runner) setInflight(k askKey, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.inflight[k] = true
	} else {
		delete(r.inflight, k)
	}
}

// gather asks the members: functions one by one in roster order, everybody else at once
// and meanwhile. What functions have answered is in the commit, unless asks were sent.
func (w *engine) gather(ctx context.Context, ask []*planning.Member) (roundInput, error) {
	for _, m := range ask {
		if !m.Local() {
			return w.gatherRemote(ctx, ask)
		}
	}
	return seenAsked, w.gatherLocal(ctx, ask)
}

// gatherLocal asks functions inside this process, one by one, until the round
// is settled.
func (w *engine) gatherLocal(ctx context.Context, ask []*planning.Member) error {
	w.expect(len(ask))
	defer func() { w.unasked = nil }()
	q := w.question()
	for i, m := range ask {
		if w.unasked = ask[i:]; i > 0 {
			if settled, err := w.settled(ctx); settled || err != nil {
				return err
			}
		}
		w.responses = append(w.responses, response{wave: w.chosen})
		h := &w.responses[len(w.responses)-1]
		w.chosen = nil
		w.callLocal(ctx, m, &q, h)
		if err := ctx.Err(); err != nil {
			w.responses = w.responses[:len(w.responses)-1]
			return err // whatever was said, the step is given up
		}
		w.recordAnswer(h)
		w.note(w.shared)
	}
	return nil
}

// note remembers who was asked, for the Tick.
func (w *engine) note(a *session.Asked) {
	switch {
	case a == nil || a == w.asked || slices.Contains(w.asked2, a):
	case w.asked == nil:
		w.asked = a
	default:
		w.asked2 = append(w.asked2, a)
	}
}

// callLocal asks one function. Only those of a program's own can wait, so only
// they get a deadline.
func (w *engine) callLocal(ctx context.Context, m *planning.Member, q *specialist.Question, h *response) {
	limited := w.r.quota != nil // or there is no ticket, and nobody to tell what the call has cost
	if limited {
		w.tickets[m.SpecialistID].Start()
	}
	if m.Source == specialist.Function {
		if w.limit == nil || !w.limit.Reuse(ctx, m.Timeout) {
			w.limit = deadline.New(ctx, m.Timeout)
		}
		defer w.limit.Release()
		ctx = w.limit
	}
	if call(ctx, m, q, h); limited {
		w.paid(m.SpecialistID, w.priced(h, h.usage()))
	}
}

// A request is one ask outside this process, ready to be sent.
type request struct {
	member   *planning.Member
	estimate *session.RemoteAsk // what it is expected to need
	ask      specialist.Ask
	caller   specialist.Caller
	index    int32
	ticket   tenants.Ticket
	limit    specialist.CallLimit
}

// gatherRemote records all asks in one commit, sends those that are not left to others, and
// asks the local functions meanwhile. Where bayes decides, what it will decide by is made ready meanwhile, too.
func (w *engine) gatherRemote(ctx context.Context, ask []*planning.Member) (roundInput, error) {
	requests, err := w.recordAsks(ctx, ask)
	if err != nil {
		return seenNothing, err
	}
	if err := w.save(ctx); err != nil {
		return seenNothing, err
	}
	requests = slices.DeleteFunc(requests, func(req request) bool {
		external := w.open.At(req.index).External()
		if external {
			req.ticket.Start() // until it is answered it is charged as expected
			w.left = append(w.left, req.index)
		}
		return external
	})
	q := questionOf(w.s, w.s.Notices(), &lessons.Past{Store: w.r.store, Session: w.s})
	if slices.ContainsFunc(requests, func(req request) bool { return req.member.Webhook() }) {
		q.Encoded = q.AppendContext(nil, true)
	}
	w.flight = w.r.send(ctx, requests, q)
	for _, m := range ask {
		if m.Local() {
			var h response
			w.callLocal(ctx, m, &q, &h)
			w.responses = append(w.responses, h)
		}
	}
	w.flight.local = len(w.responses) > 0
	if w.here.Arbiter != nil && w.here.Arbiter.ByBayes() {
		_ = w.r.lessons.ReadAhead(ctx, w.r.store) // the decision, when they have answered, says what fails
	}
	return seenSent, nil
}

// recordAsks records the asks of everybody outside this process.
func (w *engine) recordAsks(ctx context.Context, ask []*planning.Member) ([]request, error) {
	owner, err := w.r.claim(ctx)
	if err != nil {
		return nil, err
	}
	recorded := &session.Asked{Wave: w.chosen}
	w.chosen = nil
	var requests []request
	next, besides := w.nextAsk(), w.besides(ask)
	for _, m := range ask {
		if m.Local() {
			continue
		}
		a := session.Ask{SpecialistID: m.SpecialistID, Index: next, Role: m.Role, Source: m.Source, Shadow: w.shadows(m.SpecialistID),
			Remote: &session.RemoteAsk{Owner: owner, Deadline: w.at + specialist.Time(m.Timeout.Milliseconds())}}
		req := request{member: m, estimate: a.Remote, ticket: w.tickets[m.SpecialistID]}
		if h := w.holds[m.SpecialistID]; h != nil {
			a.Remote.Hold(h.need.first)
			a.Remote.Spare, req.limit = h.spare, h.callLimit()
		} else {
			a.Remote.Hold(w.need(m).first)
		}
		if old := w.open.Ask(m.SpecialistID, m.Role); old != nil && old.Status.Pending() {
			a.Index, a.Remote.Repeat = old.Index, old.Remote.Repeat+1
			a.Remote.Lost = m.Source == specialist.Model && !slices.Contains(w.left, old.Index) // a service would know the key, and be paid once
		} else {
			next++
		}
		w.leave(m, &a, besides)
		req.index, req.caller = a.Index, w.caller(m.SpecialistID, m.Role, a.Index, a.Remote.Repeat)
		req.ask = specialist.Ask{ID: req.caller.AskID, Nth: req.caller.Nth}
		if err := w.r.callback(ctx, w.now.Key(), &req, &a); err != nil {
			return nil, err
		}
		recorded.Asks = append(recorded.Asks, a)
		requests = append(requests, req)
	}
	w.emit(recorded)
	w.note(recorded)
	return requests, nil
}

// caller says on whose behalf an ask is made that is recorded now. It is wanted while its
// answer would count: until somebody cancels the session, answers in its place, or takes
// it over.
func (w *engine) caller(id string, role machine.Role, index, repeat int32) specialist.Caller {
	r, t, key := w.r, &w.now, w.now.Key()
	return specialist.Caller{
		SessionID: t.ID.String(), MachineName: t.Machine().Name(), State: t.State.Name, SpecialistID: id, Round: t.Round, Attempt: t.Attempt,
		Nth: w.open.Before(id, role, index), AskID: key.AskID(index),
		Wanted: func(ctx context.Context) error {
			s, err := r.load(ctx, key.Session)
			if err != nil {
				return err
			}
			if code := s.Refuses(s.Open, key, index, repeat); code != "" {
				return refuse(ErrStaleRound, code, "an answer would count for nothing (%s)", code)
			}
			return nil
		},
	}
}
