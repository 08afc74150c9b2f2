package permit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// An allowed session is good for one use: before the answer goes out, permission_used is
// appended to its agent_log, after the entry that was read last. One of several appends; the
// others ask anew. A process that dies between the two has used the permission for nothing,
// and the agent asks again: never is one given twice.

// allows reports whether a session has ended with a transition that allows what was asked, and
// that nobody has taken back.
func allows(s *session.Session) bool {
	if s.Status != session.Completed || s.Last() == nil || s.Retracted(s.Last().Round) != nil {
		return false
	}
	name := s.Last().Transition.Name
	return name == "allow" || name == "answer"
}

func (a *asking) expired(s *session.Session) bool {
	return a.Now().Sub(s.Last().At.Time()) >= allowedFor
}

// use makes the one use of a session that allows what was asked.
func (a *asking) use(ctx context.Context, s *session.Session) (Answer, error) {
	s, err := a.Runner.Session(ctx, s.ID) // this process may have been paused
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Behavior: Allow, Session: s.ID}
	if given, ok := payload(s)["answers"]; ok {
		if answer.Answers, err = delivered(given, questionsOf(a.facts.Input), questionsOf(a.prompt.Input)); err != nil {
			return Answer{}, fmt.Errorf("session %s: %w", s.ID, err)
		}
	}
	log, err := a.log(ctx, s.ID)
	if err != nil {
		return Answer{}, err
	}
	if log.permission || !allows(s) || a.expired(s) {
		return Answer{}, errUsed
	}
	data, err := jsontext.Marshal(map[string]string{"inputDigest": a.facts.InputDigest, "agentSession": a.prompt.AgentSession, "transition": string(s.Last().Transition.Name)})
	if err != nil {
		return Answer{}, err
	}
	err = a.Runner.Store().AppendAgentLog(ctx, s.ID, log.last, session.AgentEvent{At: specialist.TimeOf(a.Now()), Kind: permissionUsed, Data: data})
	switch {
	case errors.Is(err, session.ErrStale):
		return Answer{}, errUsed
	case err != nil:
		return Answer{}, err
	}
	return answer, nil
}

// permissionUsed is the kind of the entry that says so.
const permissionUsed = "permission_used"

// A usedLog is what the agent_log of a session says of its permission.
type usedLog struct {
	last       int64            // the number of the newest entry
	permission bool             // it was used
	waiting    map[string]int64 // who waits for a human, by the entries that say so
}

func (a *asking) log(ctx context.Context, id specialist.SessionID) (usedLog, error) {
	return readLog(ctx, a.Runner.Store(), id, a.Now())
}

func readLog(ctx context.Context, store session.Store, id specialist.SessionID, now time.Time) (usedLog, error) {
	l := usedLog{waiting: map[string]int64{}}
	for e, err := range store.AgentLog(ctx, id, 0) {
		if err != nil {
			return l, err
		}
		l.last, l.permission = e.Seq, l.permission || e.Kind == permissionUsed
		l.take(e, now)
	}
	return l, nil
}
