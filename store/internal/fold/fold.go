// Package fold makes of the records of a log what they say: a session, a roster.
package fold

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Each record is held to the chain of hashes on the way: a log that was altered, or that ends before or
// after what the session's row says, is damaged, and nothing is made of it.

// A Log is the log of one session, as far as its row says that it goes.
type Log struct {
	ID       specialist.SessionID
	Sequence int64  // of its last event
	Head     []byte // the hash of its last record
	// Records yields the records from the one that holds an event on, 0 for all, and may yield some that
	// were committed since the row was read.
	Records func(from int64) iter.Seq2[session.StoredRecord, error]
	// Kept is a snapshot of the session; nil if there is none. It is only used if it fits.
	Kept *snapshots.Session
	used bool // it did
	// Definition returns a definition by its digest.
	Definition func(digest string) ([]byte, error)
}

// Session returns the session whose log it is. The records are read again where a definition is not
// compiled yet, so that nobody holds a connection for the records and waits for another for that.
//
// It begins with the snapshot if that is of this log: if its head is the hash of the record that ends at its
// event, and it can be read. Else, and if what follows cannot be added, the log is folded from its beginning.
func (l *Log) Session(programs *session.Programs) (*session.Session, error) {
	if k := l.Kept; k != nil && k.Format == session.SnapshotFormat && k.ID == l.ID && k.Sequence <= l.Sequence {
		if folded, err := l.session(programs, k); err == nil {
			l.used = true
			return folded, nil
		}
	}
	return l.session(programs, nil)
}

// Progress says how far the snapshots of the session are.
func (l *Log) Progress() (p snapshots.Progress) {
	if l.used {
		p.Kept = l.Kept.Sequence
	}
	return p
}

func (l *Log) session(programs *session.Programs, from *snapshots.Session) (*session.Session, error) {
	definitions := map[string][]byte{}
	for {
		lacks := ""
		f := &session.Folder{Programs: programs, Definition: func(digest string) ([]byte, error) {
			if text := definitions[digest]; text != nil {
				return text, nil
			}
			lacks = digest
			return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not read yet"}
		}}
		folded, err := l.once(f, from)
		if lacks == "" {
			return folded, err
		}
		if definitions[lacks], err = l.Definition(lacks); err != nil {
			return nil, err
		}
	}
}

func (l *Log) once(f *session.Folder, from *snapshots.Session) (*session.Session, error) {
	log := "the log of session " + l.ID.String()
	damaged := func(problem string) error { return &session.CorruptError{What: log, Problem: problem} }
	var prev session.Hash
	var last int64
	erased := Erased{Stream: l.ID.String(), Records: func() iter.Seq2[session.StoredRecord, error] { return l.Records(0) }}
	if from != nil {
		if err := f.Restore(from.Body); err != nil {
			return nil, err
		}
		if last = from.Sequence; f.Current.ID != l.ID || f.Current.Sequence != last {
			return nil, damaged("its snapshot is of another")
		}
	}
	for r, err := range l.Records(last) {
		if form, ok := alteredForm(err, func(events []byte) bool { return r.Hash == session.Chain(r.Prev, l.ID.String(), events) }); ok {
			return nil, damaged(fmt.Sprintf("the first byte of the record at event %d was 0x%02x and was altered; run dialai store verify", r.First, form))
		}
		if newer, ok := errors.AsType[*session.NewerError](err); ok {
			return nil, &session.NewerError{What: log, Has: newer.Has}
		}
		if err != nil {
			return nil, err
		}
		if from != nil { // the record with which the snapshot ends
			if r.First > last || r.Hash != from.Head {
				return nil, damaged("its snapshot is of another log")
			}
			prev, from = r.Hash, nil
			continue
		}
		if r.First > l.Sequence {
			break // committed since the row was read
		}
		if r.Hash != session.Chain(prev, l.ID.String(), r.Events) && !erased.Proves(&r) {
			return nil, damaged(fmt.Sprintf("the hash of the record at event %d is wrong; run dialai store verify", r.First))
		}
		events, err := f.Add(r.Events)
		if newer, ok := errors.AsType[*session.NewerError](err); ok {
			return nil, session.Corrupt(log, newer)
		}
		if err != nil {
			return nil, damaged(err.Error())
		}
		prev, last = r.Hash, r.First+int64(len(events))-1
	}
	if last != l.Sequence || string(prev[:]) != string(l.Head) {
		return nil, damaged(fmt.Sprintf("it ends at event %d, but the session is at event %d; run dialai store verify", last, l.Sequence))
	}
	folded := f.Session()
	folded.Head = &prev
	return folded, nil
}

// Roster returns the roster of a machine name whose records they are.
func Roster(machineName string, records iter.Seq2[session.StoredRecord, error]) (*session.Roster, error) {
	damaged := func(problem string) error {
		return &session.CorruptError{What: "the log of machine " + machineName, Problem: problem}
	}
	roster := &session.Roster{}
	var prev session.Hash
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if r.Prev != prev || r.Hash != session.Chain(prev, machineName, r.Events) {
			return nil, damaged(fmt.Sprintf("the hash of the record at event %d is wrong; run dialai store verify", r.First))
		}
		events, err := session.DecodeRosterEvents(r.Events)
		if err != nil {
			return nil, session.Corrupt("the log of machine "+machineName, err)
		}
		for _, e := range events {
			roster = roster.With(e)
		}
		prev = r.Hash
	}
	return roster, nil
}

// Unpack returns the events of a record that is stored, in memory of their own or in buffer's. An error of a form that is not
// known keeps the record, so that [Log] can say by its hash whether it was altered.
func Unpack(buffer, stored []byte, first int64) ([]byte, error) {
	events, err := pack.Unpack(buffer, stored)
	switch {
	case err != nil:
		err = session.Corrupt(fmt.Sprintf("the record at event %d", first), err)
		if errors.As(err, new(*session.NewerError)) {
			err = &unpackError{err, bytes.Clone(stored)}
		}
		return nil, err
	case len(events) > 0 && &events[0] == &stored[0]: // which is the driver's
		events = append(buffer[:0], events...)
	}
	return events, nil
}
