package runner

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A commit is what a step is about to write: the events, those of the roster that go
// with them, and the session that they lead to. Every event is applied as it is emitted,
// so now and open are always what a reader of the log will find. It belongs to one
// goroutine. Its buffers are used again and again; what becomes part of the log is
// allocated anew.
type commit struct {
	r      *Runner
	before *session.Session // that the commit follows
	now    session.Session
	open   session.OpenRound // of now
	at     specialist.Time   // one reading of the clock for the whole commit

	events    []session.Event
	roster    []session.RosterEvent // that goes with this commit
	batch     *batch                // where the data of the events lies
	shared    *session.Asked        // the event that the local asks of this commit share
	change    session.Change
	overdrawn error // a charge that makes no sense: nothing is committed
}

// reset makes t an empty commit that follows s, and is no earlier than what has happened, whatever a clock says.
func (t *commit) reset(r *Runner, s *session.Session) {
	proposals, asks := t.open.Proposals[:0], t.open.Asks[:0]
	*t = commit{r: r, before: s, now: *s, at: max(r.now(), s.UpdatedAt), events: t.events[:0]}
	if s.Open != nil {
		t.open = *s.Open
		proposals, asks = append(proposals, s.Open.Proposals...), append(asks, s.Open.Asks...)
	}
	t.open.Proposals, t.open.Asks = proposals, asks
}

// release drops what the buffers hold.
func (t *commit) release() {
	clear(t.events[:cap(t.events)])
	proposals, asks := t.open.Proposals[:cap(t.open.Proposals)], t.open.Asks[:cap(t.open.Asks)]
	clear(proposals)
	clear(asks)
	*t = commit{events: t.events[:0], open: session.OpenRound{Proposals: proposals[:0], Asks: asks[:0]}}
}

// emit adds one event and applies it.
func (t *commit) emit(d session.Data) {
	t.events = append(t.events, session.Event{At: t.at, Data: d})
	if err := session.Apply(&t.now, &t.open, &t.events[len(t.events)-1]); err != nil && t.overdrawn == nil {
		t.overdrawn = err
	}
}

// write makes the events durable and returns the session as it is now. With
// nothing to write it returns the session as it was.
func (t *commit) write(ctx context.Context) (*session.Session, error) {
	if len(t.events) == 0 {
		return t.before, nil // a demotion alone waits for something to go with
	}
	if t.overdrawn != nil {
		return nil, fmt.Errorf("session %s: %w", t.now.ID, t.overdrawn)
	}
	if t.before.Erased() && t.now.Status.Live() {
		return nil, gone(t.now.ID)
	}
	c := &t.change
	*c = session.Change{Before: t.before, After: session.Freeze(&t.now, &t.open), First: t.before.Sequence + 1, Events: t.events, Roster: t.roster}
	if err := t.r.commitTraced(ctx, c); err != nil {
		return nil, err
	}
	t.r.ended(c.After)
	t.r.announce(c)
	return c.After, nil
}

// gone refuses to go on with a session out of which payloads were erased: nobody could be asked about it.
func gone(id specialist.SessionID) error {
	return refuse(ErrNotRunning, "erased", "what was said in session %s was erased: nothing goes on from there", id)
}
