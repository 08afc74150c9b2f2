package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A panic is a bug: in a strategy of the program, in its observer, in this engine. It
// is the matter of the session in whose step it came up, never of the others. Functions
// that are asked something are caught where they are called (call, decideRound, send):
// what they said is lost, and the round goes on. One that ends its goroutine is caught
// there too (apart). Everything else is caught at the
// boundary of a session: contain. What was in use there is dropped, not used again
// (buffers, passages of gates, prepared events), and locks are given back by defer. The
// step is then recorded on its session as failed, with the code panic; a resume tries
// again.

// A PanicError says that the work on one session came to a panic. Whoever sees one
// from Step, Run or Tick knows that it could not be recorded on the session. One of [Runner.ReadAhead]
// is of no session: its Session is zero.
type PanicError struct {
	Session specialist.SessionID
	Value   string // what the panic said; not what looks like a secret
	Stack   []byte // where it was, for a log; names of functions and places, no values of the program's own
}

func (e *PanicError) Error() string {
	if e.Session == (specialist.SessionID{}) {
		return "panic: " + e.Value
	}
	return fmt.Sprintf("session %s: panic: %s", e.Session, e.Value)
}

// errGone is what came of a function of the program's own that ended its goroutine instead
// of returning, as a test's FailNow does.
var errGone = errors.New("a Go function of a specialist or guard ended its goroutine (runtime.Goexit)")

// apart runs f on a goroutine that it may end, and waits for it. It reports whether f
// returned. f panics only where nobody could go on. It costs about a microsecond: so Run,
// Tick, Decide, Propose and whoever asks services use it, and a single Step, which calls
// the Go functions of a machine as any Go program calls a function, does not.
func apart(f func()) (returned bool) {
	done := make(chan bool, 1)
	go func() {
		returned := false
		defer func() { done <- returned }()
		f()
		returned = true
	}()
	return <-done
}

// maxPanic is how much of what a panic says is kept, in bytes.
const maxPanic = 500

// newPanic returns what a recovered value says. It is called by the function that
// recovered it.
func newPanic(id specialist.SessionID, value any) *PanicError {
	text := fmt.Sprint(value)
	if _, ours := value.(runtime.Error); !ours && packs.HoldsSecret(text) {
		text = fmt.Sprintf("a %T that holds what looks like a secret", value)
	}
	return &PanicError{Session: id, Value: specialist.Clip(text, maxPanic), Stack: debug.Stack()}
}

// contain runs part of the work on a session. A panic in it is an error.
func (r *Runner) contain(id specialist.SessionID, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p := newPanic(id, v)
			r.tell(p)
			err = p
		}
	}()
	return f()
}

// containApart is contain for code that may end its goroutine: that is an error too.
func (r *Runner) containApart(id specialist.SessionID, f func() error) (err error) {
	if !apart(func() { err = r.contain(id, f) }) {
		return r.left(id)
	}
	return err
}

// tell tells the program of a panic, if it wants to know.
func (r *Runner) tell(p *PanicError) {
	defer func() { _ = recover() }() // it is told once
	if r.config.Panicked != nil {
		r.config.Panicked(p)
	}
}

// failed records a panic on its session and returns what the step has come to. Other
// errors are returned as they are.
func (r *Runner) failed(ctx context.Context, id specialist.SessionID, err error) (Tick, error) {
	p, panicked := errors.AsType[*PanicError](err)
	if !panicked {
		return Tick{}, err
	}
	ctx = context.WithoutCancel(ctx) // or the next process would find out for itself
	s, _, unrecorded := r.end(ctx, id, &session.Ended{Status: session.Failed, Code: session.CodePanic, Reason: p.reason()}, nil)
	if _, again := errors.AsType[*PanicError](unrecorded); again { // the observer's, perhaps: it is told when all is durable
		s, unrecorded = r.load(ctx, id)
	}
	if unrecorded != nil || s.Status.Live() {
		return Tick{}, errors.Join(err, unrecorded)
	}
	tick := Tick{Status: statusOf(s), Session: s, Code: s.Outcome().Code}
	return tick, nil
}

// gone records on a session that a step of it has ended its goroutine, as a panic is
// recorded.
func (r *Runner) gone(ctx context.Context, id specialist.SessionID) (Tick, error) {
	return r.failed(ctx, id, r.left(id))
}

// StepApart is Step for whoever steps the sessions of others: it works on a goroutine of
// its own, so that a function which ends that (runtime.Goexit) fails its session as one
// that panics does, and nothing else.
func (r *Runner) StepApart(ctx context.Context, id specialist.SessionID) (tick Tick, err error) {
	if !apart(func() { tick, err = r.Step(ctx, id) }) {
		return r.gone(ctx, id)
	}
	return tick, err
}

// left returns what is said of a step that has ended its goroutine, and tells the program.
func (r *Runner) left(id specialist.SessionID) *PanicError {
	p := &PanicError{Session: id, Value: errGone.Error()}
	r.tell(p)
	return p
}

func (p *PanicError) reason() string {
	return "panic: " + p.Value + ": this is a bug in the program, not in the session; resume tries again"
}

// end ends a live session, whatever is missing to go on with it; a human may also give up
// one that has failed. Any other that has ended already is returned as it is, with did
// false. If is asked about the session that is to end; nil asks nothing.
func (r *Runner) end(ctx context.Context, id specialist.SessionID, d *session.Ended, If func(*session.Session) error) (after *session.Session, did bool, err error) {
	err = r.contain(id, func() error {
		for range maxRaces {
			s, err := r.load(ctx, id)
			if err != nil {
				return err
			}
			if err := holds(If, s); err != nil {
				after = s
				return err
			}
			if after = s; !s.Status.Live() && !(s.Status == session.Failed && d.Code == session.CodeCancelled) {
				return nil
			}
			t := &commit{}
			t.reset(r, s)
			t.emit(d)
			if after, err = t.write(ctx); !errors.Is(err, session.ErrStale) {
				did = err == nil
				return err
			}
		}
		return fmt.Errorf("session %s: %w", id, session.ErrStale)
	})
	return after, did, err
}
