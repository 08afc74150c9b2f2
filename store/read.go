package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// Reading a SQLite file. What is cached was folded from the log or committed here; a
// row tells whether that is still so: the sequence number for a session, the versions
// of trust and roster for a machine name (versions.go). If not, the session is folded from its log
// again, and each record is held to the chain of hashes on the way: a log that was
// altered, or ends before or after what the session's row says, is damaged.
//
// A fold keeps to one connection, that of a statement which is prepared once: a definition
// that is not compiled yet is read between two attempts. Each row that is read goes through
// scan, which gives errors their names.

const loadQuery = `SELECT s.id, s.sequence, s.head, m.id, m.machine_name FROM sessions s JOIN machines m ON m.id=s.machine WHERE s.session_id=?`

// Load implements [session.SessionStore]. A session that was committed or loaded
// here before, and has not changed since, is not folded again.
func (s *SQLite) Load(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Session, error) {
	var row, sequence, machine int64
	var head []byte
	var name string
	err := s.load.QueryRowContext(ctx, id.String()).Scan(&row, &sequence, &head, &machine, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, s.reader().elsewhere(ctx, id)
	case err != nil:
		return nil, translate(err)
	}
	s.mu.Lock()
	s.cache.machine(name).id = machine
	v, ok := s.cache.sessions.Get(id)
	s.mu.Unlock()
	if ok && v.session.Sequence == sequence {
		return v.session, nil
	}
	session, err := s.fold(ctx, programs, id, row, sequence, head)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.put(id, cached{row, session})
	return session, nil
}

// Recent implements [session.SessionStore].
func (s *SQLite) Recent(id specialist.SessionID) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.cache.sessions.Get(id)
	return v.session
}

// fold rebuilds a session from its log up to a sequence number, and checks that
// the log is whole. Folds that each held a connection and waited for a second one would
// wait for each other for ever, so a definition that lacks is read before the next attempt.
func (s *SQLite) fold(ctx context.Context, programs *session.Programs, id specialist.SessionID, row, sequence int64, head []byte) (*session.Session, error) {
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
		folded, err := s.foldOnce(ctx, f, id, row, sequence, head)
		if lacks == "" {
			return folded, err
		}
		if definitions[lacks], err = s.reader().definition(ctx, lacks); err != nil {
			return nil, err
		}
	}
}

func (s *SQLite) foldOnce(ctx context.Context, f *session.Folder, id specialist.SessionID, row, sequence int64, head []byte) (*session.Session, error) {
	damaged := func(problem string) error {
		return &session.CorruptError{What: "the log of session " + id.String(), Problem: problem}
	}
	var prev session.Hash
	var last int64
	for r, err := range stored(s.records.QueryContext(ctx, row, 0)) { // r.Prev is the hash of the one before
		if err != nil {
			return nil, err
		}
		if r.First > sequence {
			break // committed since the row was read
		}
		if r.Hash != session.Chain(prev, id.String(), r.Events) {
			return nil, damaged(fmt.Sprintf("the hash of the record at event %d is wrong; run dialai store verify", r.First))
		}
		events, err := f.Add(r.Events)
		if err != nil {
			return nil, damaged(err.Error())
		}
		prev, last = r.Hash, r.First+int64(len(events))-1
	}
	if last != sequence || string(prev[:]) != string(head) {
		return nil, damaged(fmt.Sprintf("it ends at event %d, but the session is at event %d; run dialai store verify", last, sequence))
	}
	session := f.Session()
	session.Head = &prev
	return session, nil
}

// A reader reads from one connection, or from a pool of them.
type reader struct{ q querier }

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scan goes through the rows of a query: for err := range scan(query).into(fields). Each
// time a row is in the fields, or err says in the words of callers why there is none.
func scan(rows *sql.Rows, err error) scanner { return scanner{rows, err} }

type scanner struct {
	rows *sql.Rows
	err  error
}

func (s scanner) into(fields ...any) iter.Seq[error] {
	return func(yield func(error) bool) {
		if s.err != nil {
			yield(translate(s.err))
			return
		}
		defer s.rows.Close()
		for s.rows.Next() {
			if err := s.rows.Scan(fields...); !yield(translate(err)) || err != nil {
				return
			}
		}
		if err := s.rows.Err(); err != nil {
			yield(translate(err))
		}
	}
}

// each has do look at each of the rows, up to the first error.
func each(rows iter.Seq[error], do func() error) error {
	for err := range rows {
		if err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// reader returns a reader of what was committed last.
func (s *SQLite) reader() reader { return reader{s.read} }

func (r reader) definition(ctx context.Context, digest string) ([]byte, error) {
	var definition string
	err := r.q.QueryRowContext(ctx, `SELECT definition FROM definitions WHERE machine_digest=?`, digest).Scan(&definition)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
	}
	return []byte(definition), translate(err)
}

// logRows yields the log rows of a session from the one that holds the event.
func (r reader) logRows(ctx context.Context, row, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		stored(r.q.QueryContext(ctx, recordsQuery, row, from))(yield)
	}
}

// recordsQuery yields the records of a session from the one that holds the event ?2, and the one before
// that, whose hash it follows.
const recordsQuery = `WITH start AS (SELECT coalesce(max(first), 0) AS at FROM log WHERE session=?1 AND first<=?2)
	SELECT l.first < start.at, l.first, l.events, l.hash FROM start CROSS JOIN log l WHERE l.session=?1 AND l.first >=
	coalesce((SELECT max(first) FROM log WHERE session=?1 AND first < start.at), 0) ORDER BY l.first`

// stored yields the records of rows of [recordsQuery].
func stored(rows *sql.Rows, err error) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		var before bool
		var r session.StoredRecord
		var events, hash sql.RawBytes
		for err := range scan(rows, err).into(&before, &r.First, &events, &hash) {
			if r.Prev = r.Hash; err == nil {
				copy(r.Hash[:], hash)
				if before {
					continue
				}
				r.Events, err = unpacked(nil, events, r.First)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// unpacked returns the events of a record that is stored, in memory of their own or in buffer's.
func unpacked(buffer, stored []byte, first int64) ([]byte, error) {
	events, err := pack.Unpack(buffer, stored)
	switch {
	case err != nil:
		return nil, &session.CorruptError{What: fmt.Sprintf("the record at event %d", first), Problem: err.Error()}
	case len(events) > 0 && &events[0] == &stored[0]: // which is the driver's
		events = append(buffer[:0], events...)
	}
	return events, nil
}

// Records implements [session.SessionStore].
func (s *SQLite) Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		row, err := s.rowOf(ctx, id)
		if err != nil {
			yield(session.StoredRecord{}, err)
			return
		}
		s.reader().logRows(ctx, row, from)(yield)
	}
}

// rowOf returns the row of a session.
func (s *SQLite) rowOf(ctx context.Context, id specialist.SessionID) (row int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT id FROM sessions WHERE session_id=?`, id.String()).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, s.reader().elsewhere(ctx, id)
	}
	return row, translate(err)
}

// Log implements [session.HistoryStore].
func (s *SQLite) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		var id, events sql.RawBytes
		var e session.LogEntry
		var buffer []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT l.id, s.session_id, m.machine_name, l.first, l.events FROM log l CROSS JOIN sessions s ON s.id=l.session
			CROSS JOIN machines m ON m.id=s.machine WHERE l.id>?2 AND (?1='' OR m.machine_name=?1) ORDER BY l.id`, machineName, after)).
			into(&e.Place, &id, &e.MachineName, &e.First, &events) {
			if err == nil {
				if e.Session, err = session.ParseID(string(id)); err == nil {
					e.Events, err = unpacked(buffer, events, e.First)
					buffer = e.Events
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Place implements [session.HistoryStore].
func (s *SQLite) Place(ctx context.Context) (place int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM log").Scan(&place)
	return place, translate(err)
}

// RosterLog implements [session.HistoryStore].
func (s *SQLite) RosterLog(ctx context.Context, machineName string, after int64) iter.Seq2[session.RosterEntry, error] {
	return func(yield func(session.RosterEntry, error) bool) {
		var events, prev, hash []byte
		var e session.RosterEntry
		for err := range scan(s.read.QueryContext(ctx, `SELECT r.id, m.machine_name, r.first, r.events, r.prev, r.hash FROM roster_log r CROSS JOIN machines m ON m.id=r.machine
			WHERE r.id>?2 AND (?1='' OR m.machine_name=?1) ORDER BY r.id`, machineName, after)).into(&e.Place, &e.MachineName, &e.First, &events, &prev, &hash) {
			if err == nil {
				e.Events = events
				copy(e.Prev[:], prev)
				copy(e.Hash[:], hash)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// RosterPlace implements [session.HistoryStore].
func (s *SQLite) RosterPlace(ctx context.Context) (place int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM roster_log").Scan(&place)
	return place, translate(err)
}

// Epoch implements [session.HistoryStore].
func (s *SQLite) Epoch(ctx context.Context) (string, error) {
	var from []byte // what a restored store was given anew, before what it was made with
	err := s.read.QueryRowContext(ctx, `SELECT value FROM secrets WHERE name IN ('store', ?1) ORDER BY name=?1 DESC LIMIT 1`, secretEpoch).Scan(&from)
	return projection.Epoch(from), translate(err)
}

// Definitions implements [session.SessionStore].
func (s *SQLite) Definitions(ctx context.Context, machineName string) (list [][]byte, err error) {
	var d []byte
	err = each(scan(s.read.QueryContext(ctx, `SELECT d.definition FROM definitions d JOIN machines m ON m.id=d.machine
		WHERE ?1='' OR m.machine_name=?1 ORDER BY d.id DESC`, machineName)).into(&d), func() error {
		list = append(list, d)
		return nil
	})
	return list, err
}
