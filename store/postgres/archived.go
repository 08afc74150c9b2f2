package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/scratch"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Sessions whose logs are in another file. A file moves them there; a database that was copied from one keeps
// where they are, that their ids stay taken, and what they taught, which is verified and rebuilt from that.

// rowAt is rowOf, also for a session that was archived: a list goes on behind it.
func (s *Store) rowAt(ctx context.Context, id specialist.SessionID) (int64, error) {
	row, err := s.rowOf(ctx, id)
	if _, archived := errors.AsType[*session.ArchivedError](err); archived {
		return one[int64](ctx, s, `SELECT row FROM archived WHERE session_id=$1`, [16]byte(id))
	}
	return row, err
}

// elsewhere returns the error for a session that is not here: where it is, if it was archived.
func (s *Store) elsewhere(ctx context.Context, id specialist.SessionID) error {
	return cmp.Or(s.Archived(ctx, id.String()), error(&session.NotFoundError{What: "Session", ID: id.String()}))
}

// Archived returns a [session.ArchivedError] if the id of a session that was archived begins so, and nil if there is none.
// Sessions are archived in files; a store that is copied from one keeps where they are.
func (s *Store) Archived(ctx context.Context, prefix string) error {
	from, to, ok := between(prefix)
	if !ok {
		return nil
	}
	list, err := query(ctx, s, func(row pgx.CollectableRow) (is session.ArchivedError, err error) {
		err = row.Scan(&is.ID, &is.MachineName, &is.Archive)
		return is, err
	}, `SELECT a.session_id::text, m.machine_name, a.archive FROM archived a JOIN machines m ON m.id=a.machine WHERE a.session_id BETWEEN $1 AND $2 LIMIT 1`, from, to)
	if err != nil || len(list) == 0 {
		return err
	}
	return &list[0]
}

// ArchivedTallies implements [stats.Archiver].
func (s *Store) ArchivedTallies(ctx context.Context, machineName string) iter.Seq2[stats.Added, error] {
	var last string
	packed := pages(ctx, s, func(row pgx.CollectableRow) (taught []byte, err error) {
		return taught, row.Scan(&last, &taught)
	}, func(*[]byte) (string, []any) {
		return `SELECT a.session_id::text, a.taught FROM archived a JOIN machines m ON m.id=a.machine WHERE m.machine_name=$1 AND ($2='' OR a.session_id>nullif($2, '')::uuid) ORDER BY a.session_id LIMIT $3`, []any{machineName, last, page}
	})
	return func(yield func(stats.Added, error) bool) {
		for taught, err := range packed {
			var list []projection.Taught
			if err == nil {
				list, err = projection.UnpackTaught(taught)
			}
			for i := range list {
				if list[i].Stats == nil || err != nil {
					continue
				}
				var added stats.Added
				if added, err = snapshots.ReadAdded(list[i].Place, list[i].Stats); err == nil && !yield(added, nil) {
					return
				}
			}
			if err != nil {
				yield(stats.Added{}, err)
				return
			}
		}
	}
}

// checkArchived takes what followed from the logs of sessions that are in another file.
func (a *audit) checkArchived(ctx context.Context) error {
	var id string
	if err := a.each(ctx, `SELECT a.session_id::text FROM archived a JOIN sessions s ON s.session_id=a.session_id LIMIT 1`, []any{&id}, func() {
		a.differs(inArchived, id, 0, "it was archived, and its log is here")
	}); err != nil {
		return err
	}
	for last, more := "", true; more; {
		more = false
		failed, err := a.archivedAfter(ctx, last, func(id, machine string, row int64, list []projection.Taught) {
			last, more = id, true
			for i := range list {
				t := &list[i]
				a.teach(machine, id, row, t)
				a.erasedAudit[id] = append(a.erasedAudit[id], t.Erased...)
				if t.Stats == nil {
					continue
				}
				added, err := snapshots.ReadAdded(t.Place, t.Stats)
				if err != nil {
					a.differs(inArchived, id, 0, "%v", err)
					continue
				}
				a.proof.Archived(machine, &added, t.Lesson != nil)
			}
		})
		if err != nil {
			return err
		}
		if failed != nil {
			a.differs(inArchived, failed.Stream, 0, "%s", failed.What)
			return nil
		}
	}
	return nil
}

// teach keeps what follows from a record of a session of a machine beside the session.
func (a *audit) teach(machine, of string, row int64, t *projection.Taught) {
	if t.Lesson != nil {
		a.read.PutLesson(scratch.Lesson{Place: t.Place, Text: string(t.Lesson), At: int64(t.At), Of: row, Machine: machine})
	}
	if t.Counts {
		a.learned[machine]++
		a.tallies[machine] = a.tallies[machine].With(t.Comparisons...)
	}
	if t.State != "" { // its text is empty if it was erased
		a.read.PutExemplar(t.Place, of, projection.Exemplar{Machine: machine, State: t.State, Text: t.Exemplar})
	}
	if t.Retracted != "" {
		a.read.Retract(of, t.Retracted)
	}
}

// archivedAfter reads what is kept of the archived sessions whose ids come after one, some of them. A
// difference says that one cannot be read.
func (a *audit) archivedAfter(ctx context.Context, after string, do func(id, machine string, row int64, list []projection.Taught)) (failed *store.Difference, err error) {
	var id, machine string
	var row int64
	var packed []byte
	err = a.each(ctx, `SELECT a.session_id::text, a.row, coalesce(m.machine_name, ''), a.taught FROM archived a LEFT JOIN machines m ON m.id=a.machine
		WHERE $1='' OR a.session_id>nullif($1, '')::uuid ORDER BY a.session_id LIMIT $2`, []any{&id, &row, &machine, &packed}, func() {
		list, err := projection.UnpackTaught(packed)
		if err != nil && failed == nil {
			failed = &store.Difference{Stream: id, Kind: inArchived, What: "what followed from its log cannot be read: " + err.Error()}
		}
		do(id, machine, row, list)
	}, after, page)
	return failed, err
}
