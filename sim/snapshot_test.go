package sim_test

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/dialai/dialai/session"
)

const snapshotsHold = "a snapshot and the records behind it are the session"

// snapshotsHold has every log folded a second time: from the newest snapshot on, which is that of whoever
// committed the record. It has to be that of the log too, and what it comes to with the records behind it has
// to be what the whole log comes to, after each of them.
func (c *check) snapshotsHold() error {
	if c.fold != nil {
		return nil
	}
	s := c.s
	if s.kept != nil && c.w.mutation.is("snapshot lacks a record") {
		return same(s.kept.Session(), c.after)
	}
	if s.kept != nil {
		if _, err := s.kept.Add(c.stored.Events); err != nil {
			return err
		}
		if err := same(s.kept.Session(), c.after); err != nil {
			return fmt.Errorf("from the snapshot of a former record: %w", err)
		}
		c.w.count("records added to snapshots")
	}
	if change := (&session.Change{After: c.live, Events: c.events}); !change.Begins() {
		return nil
	}
	snapshot := c.live.Snapshot()
	if snapshot == nil {
		return fmt.Errorf("no snapshot can be made")
	}
	if !bytes.Equal(c.after.Snapshot(), snapshot) {
		return fmt.Errorf("the snapshot of who committed is another than that of the log")
	}
	s.kept = &session.Folder{Programs: s.folder.Programs}
	if err := s.kept.Restore(snapshot); err != nil {
		return fmt.Errorf("what was written cannot be read: %w", err)
	}
	c.w.count("sessions restored")
	if again := s.kept.Session().Snapshot(); !bytes.Equal(again, snapshot) {
		return fmt.Errorf("read and written again the snapshot is another")
	}
	return same(s.kept.Session(), c.after)
}

// same says in what two sessions differ, of which the open rounds are compared member by member, and all
// else as it is written.
func same(a, b *session.Session) error {
	if !reflect.DeepEqual(openOf(a), openOf(b)) {
		return fmt.Errorf("the open round is\n%+v\ninstead of\n%+v", a.Open, b.Open)
	}
	if a.Status != b.Status || a.Outcome() != b.Outcome() {
		return fmt.Errorf("it is %s (%v) instead of %s (%v)", a.Status, a.Outcome(), b.Status, b.Outcome())
	}
	if !reflect.DeepEqual(a.History(), b.History()) || !reflect.DeepEqual(a.Reviews(), b.Reviews()) || a.Accounts() != b.Accounts() ||
		!reflect.DeepEqual(a.Options(), b.Options()) || !reflect.DeepEqual(a.Offered(), b.Offered()) || !reflect.DeepEqual(a.Raised(), b.Raised()) {
		return fmt.Errorf("it is\n%+v\ninstead of\n%+v", a.View(), b.View())
	}
	if one, two := writtenSession(a), writtenSession(b); !bytes.Equal(one, two) {
		return fmt.Errorf("it is written\n%q\ninstead of\n%q", one, two)
	}
	return nil
}

// openOf returns the open round of a session, with no list where one is empty.
func openOf(s *session.Session) session.OpenRound {
	if s.Open == nil {
		return session.OpenRound{}
	}
	o := *s.Open
	o.Proposals, o.Asks, o.Probes = some(o.Proposals), some(o.Asks), some(o.Probes)
	return o
}

func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// writtenSession returns all of a session but its open round.
func writtenSession(s *session.Session) []byte {
	rest := *s
	rest.Open, rest.Status = nil, session.Running
	return rest.Snapshot()
}
