package runner

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// due returns whom to ask now: everybody enabled who has not been heard in this
// round. An ask that is out counts as heard while its owner lives; one whose
// owner is lost is repeated under its key.
func (w *work) due(ctx context.Context) ([]*member, error) {
	t := w.t
	if c := t.reign.champion; c != "" && t.failed(c) {
		t.reign.champion = "" // it had its chance: now the others are asked
	}
	members := t.members()
	due, have := w.dueNow[:0], t.round.finder()
	for i := range members {
		m := &members[i]
		if !t.asks(m) || have.proposal(m.SpecialistID) != nil {
			continue
		}
		a := have.ask(m.SpecialistID)
		if a != nil && a.status == askOpen {
			if out, err := w.out(ctx, a); out || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		if a == nil || a.status == askCancelled || a.status == askOpen {
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
func (w *work) out(ctx context.Context, a *askState) (bool, error) {
	t := w.t
	late := a.Remote != nil && t.at > a.Remote.Deadline
	switch {
	case a.Remote == nil:
		return false, nil
	case a.Remote.Accepted:
		if late {
			t.hear(&heard{key: t.now.Key(), id: a.SpecialistID, ask: a.Index, estimate: a.Remote, code: CodeTimeout, message: "accepted, but no answer came in time"})
		}
		return !late, nil
	case w.r.waitsFor(askKey{t.now.Key(), a.Index}):
		return true, nil
	case w.r.owns(a.Remote.Owner):
		return false, nil
	case t.at > a.Remote.Deadline+specialist.Time(overdue.Milliseconds()):
		return false, nil
	}
	return w.r.store.Alive(ctx, a.Remote.Owner)
}

// waiting reports whether an answer is still out.
func (w *work) waiting() bool {
	for _, a := range w.t.round.asks {
		if a.status == askOpen && a.Role == machine.Proposer {
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

// claim returns the name under which this runner asks outside its process.
func (r *Runner) claim(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// gather asks the members and hears their answers: functions one by one in
// roster order, everybody else at once and meanwhile. w.t then holds what is not
// durable yet.
func (w *work) gather(ctx context.Context, ask []*member) error {
	for _, m := range ask {
		if !m.local() {
			return w.gatherRemote(ctx, ask)
		}
	}
	return w.gatherLocal(ctx, ask)
}

// gatherLocal asks functions inside this process, one by one, until the round
// is settled.
func (w *work) gatherLocal(ctx context.Context, ask []*member) error {
	w.t.expect(len(ask))
	q := w.t.question()
	for i, m := range ask {
		if i > 0 {
			if settled, err := w.settled(ctx); settled || err != nil {
				return err
			}
		}
		w.heard = append(w.heard, heard{wave: w.chosen})
		h := &w.heard[len(w.heard)-1]
		w.chosen = nil
		w.tickets[m.SpecialistID].sent()
		w.callLocal(ctx, m, q, h)
		w.paid(m.SpecialistID, w.t.price(h.usage(), h.answer.Model))
		if err := ctx.Err(); err != nil {
			w.heard = w.heard[:len(w.heard)-1]
			return err // whatever was said, the step is given up
		}
		w.t.hear(h)
		w.note(w.t.asked)
	}
	return nil
}

// note remembers who was asked, for the Tick.
func (w *work) note(a *Asked) {
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
func (w *work) callLocal(ctx context.Context, m *member, q specialist.Question, h *heard) {
	if m.source != specialist.Function {
		call(ctx, m, q, h)
		return
	}
	if w.limit == nil || !w.limit.reuse(ctx, m.timeout) {
		w.limit = &lazyDeadline{Context: ctx, timeout: m.timeout}
	}
	defer w.limit.release()
	call(w.limit, m, q, h)
}

// A request is one ask outside this process, ready to be sent.
type request struct {
	member   *member
	estimate *RemoteAsk // what it is expected to need
	ask      specialist.Ask
	index    int32
	ticket   ticket
}

// gatherRemote records all asks in one commit, sends them, asks the local
// functions meanwhile, and commits answers as they come in.
func (w *work) gatherRemote(ctx context.Context, ask []*member) error {
	requests, err := w.recordAsks(ctx, ask)
	if err != nil {
		return err
	}
	if err := w.commit(ctx); err != nil {
		return err
	}
	q := questionOf(w.s, w.s.Notices(), &past{r: w.r, s: w.s, mu: &sync.Mutex{}})
	if slices.ContainsFunc(requests, func(req request) bool { return req.member.webhook() }) {
		q.Encoded = q.AppendContext(nil, true)
	}
	f := w.r.send(ctx, requests, q)
	defer f.stop()
	for _, m := range ask {
		if m.local() {
			var h heard
			w.tickets[m.SpecialistID].sent()
			w.callLocal(ctx, m, q, &h)
			w.paid(m.SpecialistID, w.t.price(h.usage(), h.answer.Model))
			w.heard = append(w.heard, h)
		}
	}
	return w.receive(ctx, f)
}

// recordAsks records the asks of everybody outside this process.
func (w *work) recordAsks(ctx context.Context, ask []*member) ([]request, error) {
	t := w.t
	owner, err := w.r.claim(ctx)
	if err != nil {
		return nil, err
	}
	recorded := &Asked{Wave: w.chosen}
	w.chosen = nil
	var requests []request
	next := t.nextAsk()
	for _, m := range ask {
		if m.local() {
			continue
		}
		a := Ask{SpecialistID: m.SpecialistID, Index: next, Role: m.Role, Source: m.source, Shadow: t.shadows(m.SpecialistID),
			Remote: &RemoteAsk{Owner: owner, Deadline: t.at + specialist.Time(m.timeout.Milliseconds())}}
		a.Remote.hold(t.need(m))
		if old := t.round.ask(m.SpecialistID, m.Role); old != nil && old.status == askOpen {
			a.Index, a.Remote.Repeat = old.Index, old.Remote.Repeat+1
		} else {
			next++
		}
		req := request{member: m, index: a.Index, estimate: a.Remote, ask: specialist.Ask{ID: t.now.Key().AskID(a.Index)}, ticket: w.tickets[m.SpecialistID]}
		if err := w.r.callback(t, &req, &a); err != nil {
			return nil, err
		}
		recorded.Asks = append(recorded.Asks, a)
		requests = append(requests, req)
	}
	t.emit(recorded)
	w.note(recorded)
	return requests, nil
}

// callback gives a request a place where it may be answered later, and the
// secret that goes with it; only the secret's hash is stored.
func (r *Runner) callback(t *tx, req *request, a *Ask) error {
	if r.config.PublicURL == "" || req.member.Role != machine.Proposer {
		return nil
	}
	var secret [32]byte
	if _, err := io.ReadFull(r.config.Random, secret[:]); err != nil {
		return err
	}
	req.ask.CallbackToken = base64.RawURLEncoding.EncodeToString(secret[:])
	req.ask.CallbackURL = r.config.PublicURL + "/v1/callbacks/" + t.now.ID.String() + "." + req.ask.ID
	a.Remote.TokenHash = hashToken(req.ask.CallbackToken)
	return nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A flight is a number of requests under way.
type flight struct {
	results chan heard
	out     int
	cancel  context.CancelCauseFunc
	done    func()
}

// send sends requests, at most maxParallel at once. The caller must take every
// result, or stop the flight.
func (r *Runner) send(ctx context.Context, requests []request, q specialist.Question) *flight {
	s := q.State
	ctx, cancelTime := context.WithTimeout(ctx, time.Duration(s.Solicit.RoundTimeout))
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{results: make(chan heard, len(requests)), out: len(requests), cancel: cancel, done: cancelTime}
	r.mu.Lock()
	for _, req := range requests {
		r.inflight[askKey{q.Key, req.index}] = true
	}
	r.mu.Unlock()
	slots := make(chan struct{}, s.Solicit.MaxParallel)
	async := specialist.Time(time.Duration(s.Solicit.AsyncTimeout).Milliseconds())
	for _, req := range requests {
		go func() {
			f.results <- r.request(ctx, req, q, slots, async)
		}()
	}
	return f
}

// request sends one request and waits for what comes of it.
func (r *Runner) request(ctx context.Context, req request, q specialist.Question, slots chan struct{}, async specialist.Time) heard {
	defer r.setInflight(askKey{q.Key, req.index}, false)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		h := heard{key: q.Key, id: req.member.SpecialistID, source: req.member.source, ask: req.index}
		h.fail(ctx, ctx.Err()) // never sent, so it costs nothing
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, req.member.timeout)
	defer cancel()
	q.Ask = &req.ask
	start := r.config.Now()
	var h heard
	req.ticket.sent()
	call(ctx, req.member, q, &h)
	h.ask, h.estimate = req.index, req.estimate
	r.settle(req.ticket, &q, &h)
	if u := &h.answer.Usage; !u.Has(specialist.LatencyGiven) && h.code == "" {
		u.LatencyMsec, u.Given = r.config.Now().Sub(start).Milliseconds(), u.Given|specialist.LatencyGiven
	}
	h.until = r.now() + async
	return h
}

// stop cancels what is still under way and waits for it to return.
func (f *flight) stop() {
	f.cancel(errCancelled)
	for ; f.out > 0; f.out-- {
		<-f.results
	}
	f.done()
}

// take waits for a result and returns it with all others that are there.
func (f *flight) take(ctx context.Context, into []heard) []heard {
	select {
	case h := <-f.results:
		into = append(into, h)
		f.out--
	case <-ctx.Done():
		return into
	}
	for yielded := false; f.out > 0; {
		select {
		case h := <-f.results:
			into, yielded = append(into, h), false
			f.out--
		default:
			if yielded {
				return into
			}
			runtime.Gosched() // more may be on their way; they share the commit
			yielded = true
		}
	}
	return into
}

// receive commits answers as they come in. Those of the last batch are left in
// w.t, to share the commit of what follows from them.
func (w *work) receive(ctx context.Context, f *flight) error {
	for local := len(w.heard) > 0; ; local = false { // what functions said may settle the round already
		if !local && f.out > 0 && ctx.Err() == nil {
			w.heard = f.take(ctx, w.heard)
		}
		if ctx.Err() != nil {
			return w.giveUp(ctx, f)
		}
		if err := w.open(ctx); err != nil {
			return err
		}
		over := w.over()
		if !over && f.out > 0 {
			var err error
			if over, err = w.settled(ctx); err != nil {
				return err
			}
		}
		if over || f.out == 0 {
			w.land(f)
			return nil
		}
		if local {
			continue // it shares the commit of what comes next
		}
		err := w.commit(ctx)
		if errors.Is(err, ErrStale) {
			w.s, err = w.r.load(ctx, w.s.ID)
		}
		if err != nil {
			return err
		}
	}
}

// land ends a flight: nobody else is waited for. Answers that came while it was
// being cancelled still count.
func (w *work) land(f *flight) {
	f.cancel(errCancelled)
	for ; f.out > 0; f.out-- {
		w.heard = append(w.heard, <-f.results)
		w.t.hear(&w.heard[len(w.heard)-1])
	}
}

// giveUp ends a flight because ctx is done: what was answered is recorded, what
// was not stays open and is asked for again by the next step.
func (w *work) giveUp(ctx context.Context, f *flight) error {
	f.cancel(ctx.Err())
	for ; f.out > 0; f.out-- {
		w.heard = append(w.heard, <-f.results)
	}
	w.heard = slices.DeleteFunc(w.heard, func(h heard) bool { return h.code != "" && !h.local })
	safe := context.WithoutCancel(ctx)
	for range maxRaces {
		if err := w.open(safe); err != nil {
			return err
		}
		err := w.commit(safe)
		if err == nil {
			return ctx.Err()
		}
		if !errors.Is(err, ErrStale) {
			return err
		}
		if w.s, err = w.r.load(safe, w.s.ID); err != nil {
			return err
		}
	}
	return ctx.Err()
}
