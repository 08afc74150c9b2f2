package postgres

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
)

// Reading. What may be long is read in pages, each a query of its own that is over before anybody sees
// its rows: so nobody holds a connection while it does something with what it was given, and a query
// whose connection breaks is asked again, for it changes nothing. Records never change, so pages of them
// fit together; of a session only those are yielded that there were when the first page was read.

// page is how many rows are read at a time.
const page = 256

// based is what is kept in a database.
type based interface{ base() *database }

// query returns the rows of a query, which may be asked twice.
func query[T any](ctx context.Context, from based, row pgx.RowToFunc[T], text string, args ...any) (list []T, err error) {
	d := from.base()
	for began, pause := time.Now(), firstPause; ; pause = min(2*pause, longestPause) {
		list, err = queryOnce(ctx, d, row, text, args)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil || !lost(code(err)) && (code(err) != "" || !broken(err)) || time.Since(began) > unreachableAfter || d.closing.Err() != nil {
			return list, d.translate(err)
		}
		select {
		case <-ctx.Done():
		case <-d.closing.Done():
		case <-time.After(pause):
		}
	}
}

// queryOnce is query without another try.
func queryOnce[T any](ctx context.Context, d *database, row pgx.RowToFunc[T], text string, args []any) (list []T, err error) {
	bounded, cancel := d.answered(ctx)
	defer cancel()
	rows, err := d.readers.Query(bounded, text, args...)
	if err == nil {
		list, err = pgx.CollectRows(rows, row)
	}
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = d.silent()
	}
	return list, err
}

// one returns the only row of a query that always has one.
func one[T any](ctx context.Context, from based, text string, args ...any) (value T, err error) {
	list, err := query(ctx, from, pgx.RowTo[T], text, args...)
	if err != nil {
		return value, err
	}
	return list[0], nil
}

// pages yields the rows of a query page by page. next returns the query of the page that comes after the
// last row of the one before, nil at first.
func pages[T any](ctx context.Context, s *Store, row pgx.RowToFunc[T], next func(last *T) (text string, args []any)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		for {
			text, args := next(last)
			list, err := query(ctx, s, row, text, args...)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for i := range list {
				if !yield(list[i], nil) {
					return
				}
			}
			if len(list) < page {
				return
			}
			last = &list[len(list)-1]
		}
	}
}

// standing is what the row of a session says that decides whether what is cached of it is current.
type standing struct {
	id            specialist.SessionID
	row, sequence int64
	head          []byte
	machine       int
	name          string
}

// Load implements [session.SessionStore]. A session that was committed or loaded here before, and has not
// changed since, is not folded again.
func (s *Store) Load(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Session, error) {
	rows, err := query(ctx, s, scanStanding, standingQuery+`s.session_id=$1`, [16]byte(id))
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, s.elsewhere(ctx, id)
	}
	at := rows[0]
	if known := s.current(&at); known != nil {
		return known, nil
	}
	log := fold.Log{ID: id, Sequence: at.sequence, Head: at.head,
		Records: func(from int64) iter.Seq2[session.StoredRecord, error] {
			return s.records(ctx, at.row, from, at.sequence)
		},
		Definition: func(digest string) ([]byte, error) { return s.definition(ctx, digest) }}
	if log.Kept, err = s.kept(ctx, id, at.row); err != nil {
		return nil, err
	}
	folded, err := log.Session(programs)
	if err != nil {
		return nil, err
	}
	s.loaded(&at, folded, &log)
	return folded, nil
}

// scanStanding reads a row of [standingQuery].
func scanStanding(row pgx.CollectableRow) (at standing, err error) {
	err = row.Scan((*[16]byte)(&at.id), &at.row, &at.sequence, &at.head, &at.machine, &at.name)
	return at, err
}

const standingQuery = `SELECT s.session_id, s.id, s.sequence, s.head, m.id, m.machine_name FROM sessions s JOIN machines m ON m.id=s.machine WHERE `

// current returns the session that is cached if that is the one which stands there; nil for none.
func (s *Store) current(at *standing) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine(at.name).id = at.machine
	if v, ok := s.sessions.Get(at.id); ok && v.session.Sequence == at.sequence && v.session.Head != nil && string(v.session.Head[:]) == string(at.head) {
		return v.session
	}
	return nil
}

// loaded caches what stands there, as its log was folded.
func (s *Store) loaded(at *standing, folded *session.Session, log *fold.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.sessions.Get(at.id); ok && v.session.Sequence == at.sequence && (v.session.Head == nil || string(v.session.Head[:]) != string(at.head)) {
		s.sessions.Delete(at.id) // it is another one than the store has
	}
	s.remember(at.id, cached{at.row, folded, log.Progress()})
}

// Recent implements [session.SessionStore].
func (s *Store) Recent(id specialist.SessionID) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.sessions.Get(id)
	return v.session
}

func (s *Store) definition(ctx context.Context, digest string) ([]byte, error) {
	list, err := query(ctx, s, pgx.RowTo[[]byte], `SELECT definition FROM definitions WHERE machine_digest=$1`, digest)
	if err == nil && len(list) == 0 {
		err = &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// records yields the records of a session from the one that holds the event from, up to the one with which
// the event to begins at most.
func (s *Store) records(ctx context.Context, row, from, to int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		starts, err := query(ctx, s, func(row pgx.CollectableRow) (r session.StoredRecord, err error) { return r, scanHash(row, &r) },
			`SELECT first, '' AS events, hash FROM log WHERE session=$1 AND first<=$2 ORDER BY first DESC LIMIT 2`, row, from)
		if err != nil {
			yield(session.StoredRecord{}, err)
			return
		}
		start, prev := int64(0), session.Hash{}
		if len(starts) > 0 {
			start = starts[0].First
		}
		if len(starts) > 1 {
			prev = starts[1].Hash
		}
		rows := pages(ctx, s, func(row pgx.CollectableRow) (r session.StoredRecord, err error) { return r, scanHash(row, &r) }, func(last *session.StoredRecord) (string, []any) {
			if last != nil {
				start = last.First + 1
			}
			return `SELECT first, events, hash FROM log WHERE session=$1 AND first>=$2 AND first<=$3 ORDER BY first LIMIT $4`, []any{row, start, to, page}
		})
		for r, err := range rows {
			if err == nil {
				r.Prev, prev = prev, r.Hash
				r.Events, err = fold.Unpack(nil, r.Events, r.First)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// scanHash reads first, events and hash of a record.
func scanHash(row pgx.CollectableRow, r *session.StoredRecord) error {
	var hash []byte
	err := row.Scan(&r.First, &r.Events, &hash)
	copy(r.Hash[:], hash)
	return err
}

// Records implements [session.SessionStore].
func (s *Store) Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		row, err := s.rowOf(ctx, id)
		if err != nil {
			yield(session.StoredRecord{}, err)
			return
		}
		s.records(ctx, row, from, math.MaxInt64)(yield)
	}
}

// rowOf returns the row of a session.
func (s *Store) rowOf(ctx context.Context, id specialist.SessionID) (int64, error) {
	rows, err := query(ctx, s, pgx.RowTo[int64], `SELECT id FROM sessions WHERE session_id=$1`, [16]byte(id))
	if err == nil && len(rows) == 0 {
		err = s.elsewhere(ctx, id)
	}
	if err != nil {
		return 0, err
	}
	return rows[0], nil
}

// Definitions implements [session.SessionStore].
func (s *Store) Definitions(ctx context.Context, machineName string) ([][]byte, error) {
	return query(ctx, s, pgx.RowTo[[]byte], `SELECT d.definition FROM definitions d JOIN machines m ON m.id=d.machine
		WHERE $1='' OR m.machine_name=$1 ORDER BY d.id DESC`, machineName)
}

// Book implements [session.TrustStore].
func (s *Store) Book(ctx context.Context, machineName string) (*trust.Book, error) {
	known, is, err := s.known(machineName)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	book, version := known.book, known.trust
	s.mu.Unlock()
	if book != nil && version == is.trust {
		return book, nil
	}
	type tally struct {
		trust.Key
		trust.Tally
	}
	rows, err := query(ctx, s, func(row pgx.CollectableRow) (t tally, err error) {
		err = row.Scan(&t.SpecialistID, &t.State, &t.Matching, &t.Total, (*int64)(&t.Updated))
		return t, err
	}, `SELECT a.specialist_id, a.state, a.matching, a.total, a.updated_at FROM alignment a JOIN machines m ON m.id=a.machine WHERE m.machine_name=$1`, machineName)
	if err != nil {
		return nil, err
	}
	tallies := make(map[trust.Key]trust.Tally, len(rows))
	for _, t := range rows {
		tallies[t.Key] = t.Tally
	}
	book = trust.NewBook(tallies)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.book == nil || known.trust < is.trust {
		known.book, known.trust = book, is.trust
	}
	return book, nil
}

// Exemplars implements [session.TrustStore].
func (s *Store) Exemplars(ctx context.Context, machineName string, state machine.StateName, limit int) ([]specialist.Exemplar, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (e specialist.Exemplar, err error) {
		var text []byte
		if err = row.Scan(&text); err == nil {
			if e, err = specialist.ParseExemplar(text); err != nil {
				err = &session.CorruptError{What: string("an exemplar of state " + state), Problem: err.Error()}
			}
		}
		return e, err
	}, `SELECT exemplar FROM (SELECT e.place, e.exemplar FROM exemplars e JOIN machines m ON m.id=e.machine
		WHERE m.machine_name=$1 AND e.exemplar<>'' AND ($2='' OR e.state=$2) ORDER BY e.place DESC LIMIT $3) newest ORDER BY place`,
		machineName, string(state), projection.ExemplarLimit(state, limit))
}

// Lessons implements [session.TrustStore].
func (s *Store) Lessons(ctx context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return pages(ctx, s, func(row pgx.CollectableRow) (l trust.Lesson, err error) {
		var place, at int64
		var lesson []byte
		if err = row.Scan(&place, &at, &lesson); err == nil {
			if l, err = trust.DecodeLesson(lesson); err != nil {
				err = &session.CorruptError{What: fmt.Sprintf("lesson %d", place), Problem: err.Error()}
			}
		}
		l.Seq, l.At = place, specialist.Time(at)
		return l, err
	}, func(last *trust.Lesson) (string, []any) {
		if last != nil {
			after = last.Seq
		}
		return `SELECT place, at, lesson FROM lessons WHERE place>$1 ORDER BY place LIMIT $2`, []any{after, page}
	})
}

// DecidedSince implements [session.TrustStore].
func (s *Store) DecidedSince(ctx context.Context, machineName string, since specialist.Time, limit int) (int, error) {
	return one[int](ctx, s, `SELECT count(*) FROM (SELECT l.at FROM log l JOIN machines m ON m.id=l.decides
		WHERE m.machine_name=$1 ORDER BY l.place DESC LIMIT $2) newest WHERE at>=$3`, machineName, limit, int64(since))
}

// Decided implements [session.TrustStore].
func (s *Store) Decided(ctx context.Context, machineName string) iter.Seq2[session.DecisionRef, error] {
	type decision struct {
		place int64
		session.DecisionRef
	}
	before := int64(math.MaxInt64)
	decisions := pages(ctx, s, func(row pgx.CollectableRow) (d decision, err error) {
		err = row.Scan(&d.place, (*[16]byte)(&d.Session), &d.Seq)
		return d, err
	}, func(last *decision) (string, []any) {
		if last != nil {
			before = last.place
		}
		return `SELECT l.place, s.session_id, l.first FROM log l JOIN sessions s ON s.id=l.session
			WHERE l.decides=(SELECT id FROM machines WHERE machine_name=$1) AND l.place<$2 ORDER BY l.place DESC LIMIT $3`, []any{machineName, before, page}
	})
	return func(yield func(session.DecisionRef, error) bool) {
		for d, err := range decisions {
			if !yield(d.DecisionRef, err) {
				return
			}
		}
	}
}

// Roster implements [session.RosterStore].
func (s *Store) Roster(ctx context.Context, machineName string) (*session.Roster, error) {
	known, is, err := s.known(machineName)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	roster := known.roster
	s.mu.Unlock()
	if roster != nil && roster.Sequence >= is.roster {
		return roster, nil
	}
	if roster, err = fold.Roster(machineName, s.RosterRecords(ctx, machineName, 0)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.roster == nil || known.roster.Sequence < roster.Sequence {
		known.roster = roster
	}
	return roster, nil
}

// RosterRecords implements [session.RosterStore].
func (s *Store) RosterRecords(ctx context.Context, machineName string, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		for e, err := range s.rosterLog(ctx, machineName, 0, from) {
			if !yield(e.StoredRecord, err) {
				return
			}
		}
	}
}

// Secret implements [session.RosterStore].
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	return one[[]byte](ctx, s, `SELECT secret FROM meta`)
}

// Epoch implements [session.HistoryStore].
func (s *Store) Epoch(ctx context.Context) (string, error) {
	from, err := one[[]byte](ctx, s, `SELECT coalesce(places, convert_to(epoch::text, 'UTF8')) FROM meta`)
	return projection.Epoch(from), err
}
