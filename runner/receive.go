package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// receiving commits answers as they come in. The last are left in the commit, to share it
// with what follows from them.
func (w *engine) receiving(ctx context.Context) (roundInput, error) {
	f := w.flight
	local := f.local // what functions said may settle the round already
	if f.local = false; !local && f.out > 0 && ctx.Err() == nil {
		w.responses = f.take(ctx, w.responses)
	}
	if ctx.Err() != nil {
		return seenNothing, ctx.Err()
	}
	if err := w.begin(ctx); err != nil {
		return seenNothing, err
	}
	over := w.over()
	if !over && f.out > 0 {
		var err error
		if over, err = w.settled(ctx); err != nil {
			return seenNothing, err
		}
	}
	if over || f.out == 0 {
		w.closeFlight(f)
		return seenAllIn, nil
	}
	if local {
		return seenMore, nil // it shares the commit of what comes next
	}
	err := w.save(ctx)
	if errors.Is(err, session.ErrStale) {
		err = w.reload(ctx)
	}
	return seenMore, err
}

// closeFlight ends a flight: nobody else is waited for. Answers that came while it was
// being cancelled still count.
func (w *engine) closeFlight(f *flight) {
	f.cancel(specialist.ErrDecided)
	for ; f.out > 0; f.out-- {
		w.responses = append(w.responses, <-f.results)
		w.recordAnswer(&w.responses[len(w.responses)-1])
	}
	w.abort()
}

// abort ends a flight, if there is one, whatever is still out.
func (w *engine) abort() {
	if w.flight != nil {
		w.flight.stop()
		w.flight = nil
	}
}

// A process that has lost its store ([session.ErrOwnerLost]) waits for so long until it can record what it was answered, and
// tries that often: others go on with its sessions meanwhile.
const (
	lostFor    = time.Minute
	lostPauses = 500 * time.Millisecond
)

// giveUp ends a step that has failed with err. Where that is because ctx is done, what was answered is recorded, as whatever
// it counts by now, for it was paid; what was not answered stays open and is asked for again by the next step. Local functions
// alone are not worth it: they are called again.
func (w *engine) giveUp(ctx context.Context, err error) error {
	lost := errors.Is(context.Cause(ctx), session.ErrOwnerLost)
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !(lost && errors.Is(err, session.ErrBusy)) {
		return err
	}
	if f := w.flight; f != nil {
		f.cancel(ctx.Err())
		for ; f.out > 0; f.out-- {
			w.responses = append(w.responses, <-f.results)
		}
	} else if !slices.ContainsFunc(w.responses, func(h response) bool { return h.ask != 0 }) {
		return err
	}
	w.responses = slices.DeleteFunc(w.responses, func(h response) bool { return h.givenUp })
	safe := context.WithoutCancel(ctx)
	if err = w.recordLate(safe); lost {
		limit, cancel := context.WithTimeout(safe, lostFor)
		defer cancel()
		for errors.Is(err, session.ErrBusy) && len(w.responses) > 0 && limit.Err() == nil {
			select {
			case <-limit.Done():
			case <-time.After(lostPauses):
				err = w.recordLate(safe)
			}
		}
	}
	if err != nil {
		return err
	}
	return ctx.Err()
}

// recordLate records what was answered in the session as it is by now.
func (w *engine) recordLate(ctx context.Context) (err error) {
	for range maxRaces {
		if err = w.begin(ctx); err == nil {
			err = w.save(ctx)
		}
		if !errors.Is(err, session.ErrStale) {
			return err
		}
		if err := w.reload(ctx); err != nil {
			return err
		}
	}
	return err
}
