package permit

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Several may wait for one prompt: an agent that was started again asks for the same once more.
// Whoever waits for a human is noted in the agent_log of the session, and so is who leaves. A
// question that nobody waits for any more is ended by the last one. The log is appended to after
// the entry that was read last, so two who leave at once see each other. One that was killed
// leaves no note: it keeps its question open, which does no harm, for a day at most.

// permissionAsked is the kind of the entries that say who waits.
const permissionAsked = "permission"

// A waiter is what such an entry says.
type waiter struct {
	Waits string `json:"waits"` // one who asks
	Left  bool   `json:"left,omitempty"`
}

// waits notes that this one waits for a human, or has left, and returns how many others wait.
func (a *asking) waits(ctx context.Context, id specialist.SessionID, left bool) (others int, err error) {
	data, err := jsontext.Marshal(waiter{a.own, left})
	if err != nil {
		return 0, err
	}
	for {
		log, err := a.log(ctx, id)
		if err != nil {
			return 0, err
		}
		_, noted := log.waiting[a.own]
		if delete(log.waiting, a.own); left && !noted {
			return len(log.waiting), nil
		}
		err = a.Runner.Store().AppendAgentLog(ctx, id, log.last, session.AgentEvent{At: specialist.TimeOf(a.Now()), Kind: permissionAsked, Data: data})
		if !errors.Is(err, session.ErrStale) {
			return len(log.waiting), err
		}
	}
}

// Waited reports whether an agent waits for the answer to a permission. One that was told to do other
// work does not, and the question is kept.
func Waited(ctx context.Context, store session.Store, id specialist.SessionID, now time.Time) (bool, error) {
	log, err := readLog(ctx, store, id, now)
	return len(log.waiting) > 0, err
}

// take takes up what an entry says of who waits.
func (l *usedLog) take(e session.AgentEvent, now time.Time) {
	var w waiter
	if e.Kind != permissionAsked || json.Unmarshal(e.Data, &w) != nil {
		return
	}
	if delete(l.waiting, w.Waits); !w.Left && now.Sub(e.At.Time()) < allowedFor {
		l.waiting[w.Waits] = e.Seq
	}
}

// leave ends the question of a session for which nobody else waits, also after the agent has
// gone.
func (a *asking) leave(ctx context.Context, s *session.Session, note string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if others, err := a.waits(ctx, s.ID, true); err == nil && others > 0 {
		return nil
	}
	return a.stop(ctx, s, note)
}
