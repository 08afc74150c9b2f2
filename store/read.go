package store

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
)

// Reading a SQLite file. What is cached was folded from the log or committed here; a
// row tells whether that is still so: the sequence number for a session, the versions
// of trust and roster for a machine name (versions.go). If not, the session is folded from its log
// again (store/internal/fold).
//
// A fold keeps to one connection, that of a statement which is prepared once. Each row that is
// read goes through scan, which gives errors their names.

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
	log := fold.Log{ID: id, Sequence: sequence, Head: head,
		Records: func(from int64) iter.Seq2[session.StoredRecord, error] {
			return stored(s.records.QueryContext(ctx, row, from))
		},
		Definition: func(digest string) ([]byte, error) { return s.reader().definition(ctx, digest) }}
	if log.Kept, err = s.kept(ctx, id, row); err != nil {
		return nil, err
	}
	session, err := log.Session(programs)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.put(id, cached{row, session, log.Progress()})
	return session, nil
}

// Recent implements [session.SessionStore].
func (s *SQLite) Recent(id specialist.SessionID) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.cache.sessions.Get(id)
	return v.session
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
				r.Events, err = fold.Unpack(nil, events, r.First)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
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

// rowAt is rowOf, also for a session that was archived: a list goes on behind it.
func (s *SQLite) rowAt(ctx context.Context, id specialist.SessionID) (row int64, err error) {
	row, err = s.rowOf(ctx, id)
	if _, archived := errors.AsType[*session.ArchivedError](err); archived {
		err = translate(s.read.QueryRowContext(ctx, `SELECT row FROM archived WHERE session_id=?`, id.String()).Scan(&row))
	}
	return row, err
}

// Log implements [session.HistoryStore].
func (s *SQLite) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		var id, events, hash sql.RawBytes
		var e session.LogEntry
		var buffer []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT l.id, s.session_id, m.machine_name, l.first, l.events, l.hash FROM log l CROSS JOIN sessions s ON s.id=l.session
			CROSS JOIN machines m ON m.id=s.machine WHERE l.id>?2 AND (?1='' OR m.machine_name=?1) ORDER BY l.id`, machineName, after)).
			into(&e.Place, &id, &e.MachineName, &e.First, &events, &hash) {
			if copy(e.Hash[:], hash); err == nil {
				if e.Session, err = session.ParseID(string(id)); err == nil {
					e.Events, err = fold.Unpack(buffer, events, e.First)
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
