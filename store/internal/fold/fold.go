// Package fold makes of the records of a log what they say: a session, a roster.
package fold

import (
	"fmt"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
)

// Each record is held to the chain of hashes on the way: a log that was altered, or that ends before or
// after what the session's row says, is damaged, and nothing is made of it.

// A Log is the log of one session, as far as its row says that it goes.
type Log struct {
	ID       specialist.SessionID
	Sequence int64  // of its last event
	Head     []byte // the hash of its last record
	// Records yields all records, and may yield some that were committed since the row was read.
	Records func() iter.Seq2[session.StoredRecord, error]
	// Definition returns a definition by its digest.
	Definition func(digest string) ([]byte, error)
}

// Session returns the session whose log it is. The records are read again where a definition is not
// compiled yet, so that nobody holds a connection for the records and waits for another for that.
func (l *Log) Session(programs *session.Programs) (*session.Session, error) {
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
		folded, err := l.once(f)
		if lacks == "" {
			return folded, err
		}
		if definitions[lacks], err = l.Definition(lacks); err != nil {
			return nil, err
		}
	}
}

func (l *Log) once(f *session.Folder) (*session.Session, error) {
	damaged := func(problem string) error {
		return &session.CorruptError{What: "the log of session " + l.ID.String(), Problem: problem}
	}
	var prev session.Hash
	var last int64
	erased := Erased{Stream: l.ID.String(), Records: l.Records}
	for r, err := range l.Records() {
		if err != nil {
			return nil, err
		}
		if r.First > l.Sequence {
			break // committed since the row was read
		}
		if r.Hash != session.Chain(prev, l.ID.String(), r.Events) && !erased.Proves(&r) {
			return nil, damaged(fmt.Sprintf("the hash of the record at event %d is wrong; run dialai store verify", r.First))
		}
		events, err := f.Add(r.Events)
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
			return nil, damaged(err.Error())
		}
		for _, e := range events {
			roster = roster.With(e)
		}
		prev = r.Hash
	}
	return roster, nil
}

// Unpack returns the events of a record that is stored, in memory of their own or in buffer's.
func Unpack(buffer, stored []byte, first int64) ([]byte, error) {
	events, err := pack.Unpack(buffer, stored)
	switch {
	case err != nil:
		return nil, &session.CorruptError{What: fmt.Sprintf("the record at event %d", first), Problem: err.Error()}
	case len(events) > 0 && &events[0] == &stored[0]: // which is the driver's
		events = append(buffer[:0], events...)
	}
	return events, nil
}
