// Package projection says which rows a store writes for a commit, and which rows the logs
// of a store stand for. It knows no database: rows are plain values, and tables the names
// of their columns.
//
// # What is written
//
// [Of] makes the [Rows] of a change. A driver writes them in one transaction, or nothing:
//
//  1. the row of the machine's name, and the definition under its digest, if they are new;
//  2. the row of the session, where its sequence is still [Rows.Before]: if not, the change
//     is stale; of a session that is [Rows.New] there must be no row yet;
//  3. the row of the log. Its number orders the records of all sessions, so what is
//     committed later has a higher one, and who reads sees no number before all lower ones;
//  4. what follows from the events: a lesson under the number of the log's row, alignment,
//     an exemplar, the machine's version of trust, records of its roster.
//
// Numbers of rows are the driver's own; a [Session] or an [Alignment] names its machine.
// All that stands in rows but not in a log follows from the logs: [Follow] says what, live
// and when a store is checked or rebuilt.
//
// # How to add a driver
//
// Write a package below store, such as store/postgres, that implements [session.Store]: its tables have the columns
// of tables.go (store/migrations says what each holds), Commit writes the rows of Of, and
// the other methods read them, as store/commit.go and store/read*.go do for SQLite. Then
// hold it against storetest.Run. A driver that is also a [session.LedgerKeeper] (store/ledger.go)
// spares its processes the fold of all lessons. One that a server is to use also implements
// [control.Store], and passes storetest.RunControl.
package projection

import (
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Rows are what one commit writes.
type Rows struct {
	Machine   *machine.Machine // its name and its definition have rows
	Session   Session
	New       bool  // there must be no row of the session yet
	Redefined bool  // it goes on under another definition: every column may have changed
	Before    int64 // else the sequence that its row must have
	Moved     bool  // nothing of it has changed but the columns from [SessionMoving]
	Record    Record
	Alignment []Alignment // to be added to what is there; of what is taken back below zero
	Exemplar  *Exemplar
	Retracted string                // how the text of an exemplar begins that is to be emptied; "" for none
	Lesson    []byte                // nil if there is none
	Learned   bool                  // the machine's version of trust grows by one
	Roster    []session.RosterEvent // each is to be a record of its own: [RosterRecord]
}

// A Record is a row of the log.
type Record struct {
	session.StoredRecord
	At      int64 // of the last event
	Decides bool  // a transition is executed
}

// Of returns the rows of a change whose session's log ends with the hash prev. The events
// are appended to buffer, which must stay as it is until they are written.
func Of(c *session.Change, prev session.Hash, buffer []byte) (r Rows, err error) {
	follows := Follow(c.Events)
	r = Rows{Machine: c.After.Machine(), Session: SessionOf(c.After), Roster: c.Roster, New: c.Before == nil, Learned: follows.Teaches()}
	if b := c.Before; b != nil {
		was, is := b.Standing(), c.After.Standing()
		r.Before, r.Redefined = b.Sequence, b.Machine().Digest() != r.Session.Digest
		r.Moved = !r.Redefined && c.After.Status == b.Status && is.Code == was.Code && is.Reason == was.Reason && len(c.After.Reviews()) == len(b.Reviews()) && c.After.Subject() == b.Subject() &&
			c.After.DueAt() == b.DueAt() && c.After.Options().Driver == b.Options().Driver && c.After.WaitingSince() == b.WaitingSince()
	}
	events := session.AppendEvents(buffer, c.Key(), c.First, c.Events)
	r.Record = Record{session.StoredRecord{First: c.First, Events: events, Prev: prev, Hash: session.Chain(prev, r.Session.ID, events)}, r.Session.UpdatedAt, follows.Decides}
	if follows.Lesson != nil {
		r.Lesson, err = follows.Lesson.Encode()
	}
	comparisons := follows.Comparisons()
	for i := range comparisons {
		r.Alignment = append(r.Alignment, compared(r.Session.Machine, &comparisons[i]))
	}
	if l := follows.Learned; l != nil && l.Exemplar != nil {
		e := ExemplarOf(r.Session.Machine, l.Exemplar)
		r.Exemplar = &e
	}
	if d := follows.Retracted; d != nil {
		r.Retracted = ExemplarPrefix(d.ExemplarID)
	}
	return r, err
}

// A Following is what follows from a record beside its session.
type Following struct {
	Decides bool             // a transition is executed
	Learned *session.Learned // nil if nothing is
	Lesson  *trust.Lesson    // for the ledger; nil if there is none

	Retracted *session.Retracted // nil unless a ruling is taken back
}

// Teaches reports whether tallies or exemplars are other ones afterwards.
func (f *Following) Teaches() bool { return f.Learned != nil || f.Retracted != nil }

// Comparisons returns those to be counted; the caller must not change them.
func (f *Following) Comparisons() []trust.Comparison {
	switch {
	case f.Learned != nil:
		return f.Learned.Comparisons
	case f.Retracted != nil:
		return f.Retracted.Comparisons
	}
	return nil
}

// Follow returns what follows from the events of a record.
func Follow(events []session.Event) (f Following) {
	for i := range events {
		switch d := events[i].Data.(type) {
		case *session.Executed:
			f.Decides = true
		case *session.Learned:
			if d.Unruled == nil { // or it is no human's decision, and teaches the ledger alone
				f.Learned = d
			}
			if lesson := session.LessonOf(d); lesson != nil {
				f.Lesson = lesson
			}
		case *session.Retracted:
			f.Retracted, f.Lesson = d, session.LessonOf(d)
		case *session.Reviewed, *session.Adopted:
			f.Lesson = session.LessonOf(d)
		}
	}
	return f
}

// RosterRecord returns the record of one event that follows the record of a machine name
// with the sequence number last and the hash prev.
func RosterRecord(machineName string, last int64, prev session.Hash, e session.RosterEvent) (session.StoredRecord, error) {
	events, err := session.AppendRosterEvent(nil, last+1, e)
	return session.StoredRecord{First: last + 1, Events: events, Prev: prev, Hash: session.Chain(prev, machineName, events)}, err
}
