package runner

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// An Alike compares the session that was live after each commit with the one
// that is folded from the log, in the order of the log. A history only grows, at
// its end, so each comparison looks at what is new since the last one: to write
// both sessions out after each commit, history and machine included, took half
// the time of this package's tests.
type Alike struct {
	live     *session.Executed // the newest of a history that has been compared, live
	folded   *session.Executed // and folded
	programs map[[2]*session.Program]bool
}

// Difference returns how a session that was live differs from the same one
// folded, "" if nobody who looks at them can tell them apart.
func (a *Alike) Difference(live, folded *session.Session) string {
	if d := a.program(live, folded); d != "" {
		return d
	}
	if l, f := plain(live), plain(folded); l != f {
		return fmt.Sprintf("the session was\n%+v\nfolded it is\n%+v", l, f)
	}
	if l, f := live.Options(), folded.Options(); !reflect.DeepEqual(l, f) {
		return fmt.Sprintf("the options were %+v, folded %+v", l, f)
	}
	began, moved := live.CountedSince(live.UpdatedAt + 1)
	if b, m := folded.CountedSince(live.UpdatedAt + 1); b != began || m != moved {
		return fmt.Sprintf("time counted since %s, and since %s without progress; folded since %s and %s", began, moved, b, m)
	}
	if l, f := live.GuardState(), folded.GuardState(); !reflect.DeepEqual(l, f) {
		return fmt.Sprintf("the guards remembered %+v, folded %+v", l, f)
	}
	if l, f := live.OpenAsks(), folded.OpenAsks(); !reflect.DeepEqual(l, f) {
		return fmt.Sprintf("open asks were %+v, folded %+v", l, f)
	}
	if l, f := OpenRound(live), OpenRound(folded); l != f {
		return fmt.Sprintf("the round was\n%s\nfolded it is\n%s", l, f)
	}
	return a.history(live, folded)
}

// program compares machines, and what of them was raised, once for each pair.
func (a *Alike) program(live, folded *session.Session) string {
	pair := [2]*session.Program{live.Program, folded.Program}
	if a.programs[pair] {
		return ""
	}
	l, f := live.Machine(), folded.Machine()
	switch {
	case l.Name() != f.Name() || l.Digest() != f.Digest() || !bytes.Equal(l.JSON(), f.JSON()):
		return fmt.Sprintf("the machine was\n%s\nfolded it is\n%s", l.JSON(), f.JSON())
	case !reflect.DeepEqual(live.Raised(), folded.Raised()):
		return fmt.Sprintf("the limits raised were %+v, folded %+v", live.Raised(), folded.Raised())
	}
	if a.programs == nil {
		a.programs = map[[2]*session.Program]bool{}
	}
	a.programs[pair] = true
	return ""
}

// A plainSession is what of a session can be compared as it is.
type plainSession struct {
	Key       specialist.RoundKey
	State     string
	Sequence  int64
	CreatedAt specialist.Time
	UpdatedAt specialist.Time
	Executed  int32
	Rejects   int32
	Status    session.Status
	Outcome   session.Outcome
	Reviews   int
}

func plain(s *session.Session) plainSession {
	return plainSession{s.Key(), s.State.Name, s.Sequence, s.CreatedAt, s.UpdatedAt, s.Executed, s.Rejects, s.Status, s.Outcome(), len(s.Reviews())}
}

// history compares the transitions that were executed since the last call.
func (a *Alike) history(live, folded *session.Session) string {
	l, f := live.Last(), folded.Last()
	for (l != nil || f != nil) && (l != a.live || f != a.folded) {
		if l == nil || f == nil {
			return fmt.Sprintf("%d transitions were executed, folded it is %d", live.Executed, folded.Executed)
		}
		if was, is := written(live, l), written(folded, f); was != is {
			return fmt.Sprintf("executed was\n%s\nfolded it is\n%s", was, is)
		}
		l, f = l.Previous, f.Previous
	}
	a.live, a.folded = live.Last(), folded.Last()
	return ""
}

// written returns a transition as it is stored, with what is not stored of it.
func written(s *session.Session, e *session.Executed) string {
	events := []session.Event{{At: e.At, Data: e}}
	return fmt.Sprintf("%s, visit %d", session.AppendEvents(nil, e.Key(s.ID), 0, events), e.Visits)
}
