package session

import (
	"github.com/dialai/dialai/specialist"
)

// Limits of time bound what a session does, not how long people think: the time in
// which it waits for a human or a timer, or stands stopped or failed, is not counted. It is
// folded from the log, event by event: what passes between two events of a session
// that does not run is waiting. So is what passes after a human's ruling was executed,
// or after somebody proposed where a human was asked, until somebody goes on: the
// session is then dormant, though its status is running. A clock that goes backwards
// gives no waiting back.

// waitedBy returns how long, in all, the session, of which o is the open round, has waited by a
// moment. While events are applied, the round is not yet the session's.
func (s *Session) waitedBy(at specialist.Time, o *OpenRound) specialist.Time {
	if s.Status == Running && !s.dormant && !s.waitsIn(o) || s.Status == Completed || at <= s.UpdatedAt {
		return s.waited
	}
	return s.waited + at - s.UpdatedAt
}

// CountedSince returns since when the session has been at it, and since when it has made no
// progress, as limits of time see it at a moment: as if it had begun that much later
// as it has waited.
func (s *Session) CountedSince(at specialist.Time) (began, moved specialist.Time) {
	waited := s.waitedBy(at, s.round())
	began, moved = s.CreatedAt+waited, s.CreatedAt+waited
	if s.last != nil {
		moved = s.last.At + waited - s.waitedAtMove
	}
	return began, moved
}

// wakes reports whether an event says that somebody has gone on with the session. What
// comes from outside (proposals, rulings, looks, late answers) does not.
func wakes(d Data) bool {
	switch d.(type) {
	case *Asked, *Judged, *Resumed:
		return true
	}
	return false
}
