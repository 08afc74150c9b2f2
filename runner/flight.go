package runner

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A flight is the requests of one round that are out. send starts each in a goroutine of
// its own, in order, at most maxParallel at once; request waits for the answer until the
// specialist's timeout, the round's, or the end of the step. When a request ends its
// quota is settled, then its slot is free, then its response goes to results, in the
// order that Config.Arrivals says, if there is one. The engine takes responses as they
// come (receive.go).
//
// Whoever sends takes every result or stops the flight: no goroutine outlives its step.
// A request whose turn never comes is not sent, costs nothing, and says so. A panic in a
// proposer is an answer that failed; where Arrivals panics the answer is recorded at
// once. The asks were recorded before.

// A flight is a number of requests under way.
type flight struct {
	results chan response
	out     int
	cancel  context.CancelCauseFunc
	done    func()
	local   bool // functions have answered meanwhile, and nobody has looked at what that leads to
}

// send sends requests, at most maxParallel at once. The caller must take every
// result, or stop the flight.
func (r *Runner) send(ctx context.Context, requests []request, q specialist.Question) *flight {
	s, step := q.State, ctx
	ctx, cancelTime := context.WithTimeout(ctx, time.Duration(s.Solicit.RoundTimeout))
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{results: make(chan response, len(requests)), out: len(requests), cancel: cancel, done: cancelTime}
	arrive := r.arrivals(requests) // before anything is noted: it belongs to the program
	r.mu.Lock()
	for _, req := range requests {
		r.inflight[askKey{q.Key, req.index}] = true
	}
	r.mu.Unlock()
	slots := make(chan struct{}, s.Solicit.MaxParallel)
	async := specialist.Time(time.Duration(s.Solicit.AsyncTimeout).Milliseconds())
	go func() {
		for i, req := range requests { // whoever comes first in the list is sent first
			slot := enter(ctx, slots)
			go func() {
				h := r.answer(ctx, req, q, slot, async)
				h.givenUp = h.code != "" && step.Err() != nil
				if slot {
					r.settle(req.ticket, &q, &h)
					<-slots
				}
				r.deliver(q.Key.Session, func(record func()) { arrive(ctx, i, record) }, func() { f.results <- h })
			}()
		}
	}()
	return f
}

// arrivals returns what answers to requests come through.
func (r *Runner) arrivals(requests []request) func(ctx context.Context, place int, record func()) {
	if r.config.Arrivals == nil {
		return func(_ context.Context, _ int, record func()) { record() }
	}
	asked := make([]specialist.Caller, len(requests))
	for i := range requests {
		asked[i] = requests[i].caller
	}
	return r.config.Arrivals.Together(asked)
}

// enter waits for one of the slots and reports whether it has got one before ctx was
// done.
func enter(ctx context.Context, slots chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer is request, in a goroutine of its own: a panic is an answer that failed.
func (r *Runner) answer(ctx context.Context, req request, q specialist.Question, send bool, async specialist.Time) (h response) {
	if err := r.contain(q.Key.Session, func() error {
		h = r.request(ctx, req, q, send, async)
		return nil
	}); err != nil {
		h = response{key: q.Key, id: req.member.SpecialistID, source: req.member.Source, ask: req.index, repeat: req.estimate.Repeat, estimate: req.estimate}
		h.code, h.message = session.CodePanic, err.Error()
	}
	return h
}

// deliver has an answer recorded through what decides when; if that panics, at once.
func (r *Runner) deliver(id specialist.SessionID, arrive func(record func()), record func()) {
	once := sync.OnceFunc(record)
	if err := r.contain(id, func() error { arrive(once); return nil }); err != nil {
		once()
	}
}

// request sends one request, if it is to be sent, and waits for what comes of it.
func (r *Runner) request(ctx context.Context, req request, q specialist.Question, send bool, async specialist.Time) response {
	defer r.setInflight(askKey{q.Key, req.index}, false)
	if !send {
		h := response{key: q.Key, id: req.member.SpecialistID, source: req.member.Source, ask: req.index, repeat: req.estimate.Repeat}
		h.fail(ctx, ctx.Err())
		h.answer.Usage = specialist.Usage{}.WithCalls(0, 0) // it was never sent
		return h
	}
	ctx, cancel := context.WithTimeout(specialist.WithCaller(ctx, req.caller), req.member.Timeout)
	defer cancel()
	if req.limit != (specialist.CallLimit{}) {
		ctx = specialist.WithCallLimit(ctx, req.limit)
	}
	q.Ask = &req.ask
	start := r.config.Now()
	var h response
	req.ticket.Start()
	call(ctx, req.member, &q, &h)
	h.ask, h.repeat, h.estimate = req.index, req.estimate.Repeat, req.estimate
	if u := &h.answer.Usage; !u.Has(specialist.LatencyGiven) && h.code == "" {
		u.LatencyMsec, u.Given = r.config.Now().Sub(start).Milliseconds(), u.Given|specialist.LatencyGiven
	}
	h.until = r.now() + async
	return h
}

// stop cancels what is still under way and waits for it to return.
func (f *flight) stop() {
	f.cancel(specialist.ErrDecided)
	for ; f.out > 0; f.out-- {
		<-f.results
	}
	f.done()
}

// take waits for a result and returns it with all others that are there.
func (f *flight) take(ctx context.Context, into []response) []response {
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
