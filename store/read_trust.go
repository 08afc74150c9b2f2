package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
)

// What human decisions taught, read from a SQLite file: tallies, exemplars, lessons,
// decisions, and rosters with their logs. A book or a roster that was read is used as long
// as its version is that of the file (versions.go), which is asked before it is read: it is
// never older than it says. The log of a machine name is a chain of hashes as that of a
// session, and checked when it is folded.

// Book implements [session.TrustStore].
func (s *SQLite) Book(ctx context.Context, machineName string) (*trust.Book, error) {
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
	tallies, err := s.reader().tallies(ctx, machineName)
	if err != nil {
		return nil, err
	}
	book = trust.NewBook(tallies)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.book == nil || known.trust < is.trust {
		known.book, known.trust = book, is.trust
	}
	return book, nil
}

func (r reader) tallies(ctx context.Context, machineName string) (map[trust.Key]trust.Tally, error) {
	tallies := map[trust.Key]trust.Tally{}
	var k trust.Key
	var t trust.Tally
	err := each(scan(r.q.QueryContext(ctx, `SELECT a.specialist_id, a.state, a.matching, a.total, a.updated_at
		FROM alignment a JOIN machines m ON m.id=a.machine WHERE m.machine_name=?`, machineName)).
		into(&k.SpecialistID, &k.State, &t.Matching, &t.Total, &t.Updated), func() error {
		tallies[k] = t
		return nil
	})
	return tallies, err
}

// Exemplars implements [session.TrustStore].
func (s *SQLite) Exemplars(ctx context.Context, machineName string, state machine.StateName, limit int) (list []specialist.Exemplar, err error) {
	where, args := "m.machine_name=? AND e.exemplar<>''", []any{machineName}
	if state != "" {
		where, args = where+" AND e.state=?", append(args, state)
	}
	var text []byte
	err = each(scan(s.read.QueryContext(ctx, `SELECT exemplar FROM (SELECT e.id, e.exemplar FROM exemplars e JOIN machines m ON m.id=e.machine
		WHERE `+where+` ORDER BY e.id DESC LIMIT ?) ORDER BY id`, append(args, projection.ExemplarLimit(state, limit))...)).into(&text), func() error {
		e, err := specialist.ParseExemplar(text)
		if err != nil {
			return &session.CorruptError{What: string("an exemplar of state " + state), Problem: err.Error()}
		}
		list = append(list, e)
		return nil
	})
	return list, err
}

// Lessons implements [session.TrustStore].
func (s *SQLite) Lessons(ctx context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return func(yield func(trust.Lesson, error) bool) {
		var id int64
		var lesson []byte
		var at int64
		for err := range scan(s.lessons.QueryContext(ctx, after)).into(&id, &lesson, &at) {
			var l trust.Lesson
			if err == nil {
				if l, err = trust.DecodeLesson(lesson); err != nil {
					err = &session.CorruptError{What: fmt.Sprintf("lesson %d", id), Problem: err.Error() + "; run dialai store rebuild"}
				}
			}
			l.Seq, l.At = id, specialist.Time(at)
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// DecidedSince implements [session.TrustStore].
func (s *SQLite) DecidedSince(ctx context.Context, machineName string, since specialist.Time, limit int) (n int, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT l.at FROM log l JOIN machines m ON m.id=l.decides
		WHERE m.machine_name=? ORDER BY l.id DESC LIMIT ?) WHERE at>=?`, machineName, limit, int64(since)).Scan(&n)
	return n, translate(err)
}

// Decided implements [session.TrustStore].
func (s *SQLite) Decided(ctx context.Context, machineName string) iter.Seq2[session.DecisionRef, error] {
	return func(yield func(session.DecisionRef, error) bool) {
		var id string
		var ref session.DecisionRef
		for err := range scan(s.read.QueryContext(ctx, `SELECT s.session_id, l.first FROM log l JOIN machines m ON m.id=l.decides JOIN sessions s ON s.id=l.session
			WHERE m.machine_name=? ORDER BY l.id DESC`, machineName)).into(&id, &ref.Seq) {
			if err == nil {
				ref.Session, err = session.ParseID(id)
			}
			if !yield(ref, err) || err != nil {
				return
			}
		}
	}
}

// Roster implements [session.RosterStore].
func (s *SQLite) Roster(ctx context.Context, machineName string) (*session.Roster, error) {
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
func (s *SQLite) RosterRecords(ctx context.Context, machineName string, from int64) iter.Seq2[session.StoredRecord, error] {
	return s.reader().rosterRecords(ctx, machineName, from)
}

func (r reader) rosterRecords(ctx context.Context, machineName string, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		var first int64
		var events, prev, hash []byte
		for err := range scan(r.q.QueryContext(ctx, `SELECT r.first, r.events, r.prev, r.hash FROM roster_log r JOIN machines m ON m.id=r.machine
			WHERE m.machine_name=?1 AND r.first>=coalesce((SELECT max(first) FROM roster_log WHERE machine=m.id AND first<=?2), 0) ORDER BY r.first`, machineName, from)).
			into(&first, &events, &prev, &hash) {
			r := session.StoredRecord{First: first, Events: events}
			copy(r.Prev[:], prev)
			copy(r.Hash[:], hash)
			if !yield(r, err) {
				return
			}
		}
	}
}

// Secret implements [session.RosterStore].
func (s *SQLite) Secret(ctx context.Context) (secret []byte, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT value FROM secrets WHERE name='store'`).Scan(&secret)
	return secret, translate(err)
}
