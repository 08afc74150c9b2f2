package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"modernc.org/sqlite"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/snapshots"
)

func init() {
	// What tests look at and damage is the JSON of events, however it is stored.
	sqlite.MustRegisterDeterministicScalarFunction("unpacked", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		events, err := pack.Unpack(nil, args[0].([]byte))
		return string(events), err
	})
}

// WriterExec runs a statement on the connection that writes, to make it fail as
// a full disk would.
func (s *SQLite) WriterExec(query string) error {
	return s.out.do(&job{ctx: context.Background(), write: func(ctx context.Context) error {
		_, err := s.out.conn.ExecContext(ctx, query)
		return err
	}})
}

// SnapshotAt returns up to which event a snapshot is kept of a session, once all are written that are due.
func (s *SQLite) SnapshotAt(ctx context.Context, id specialist.SessionID) (at int64, err error) {
	s.keeper.Wait()
	err = s.read.QueryRowContext(ctx, `SELECT coalesce(max(sequence), 0) FROM snapshots WHERE session=(SELECT id FROM sessions WHERE session_id=?)`, id.String()).Scan(&at)
	return at, err
}

// Kept is the snapshot of a session.
type Kept = snapshots.Session

// KeptOf returns the snapshot that is kept of a session.
func (s *SQLite) KeptOf(ctx context.Context, id specialist.SessionID) (*Kept, error) {
	s.keeper.Wait()
	row, err := s.rowOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.kept(ctx, id, row)
}

// Keep writes a snapshot as it is written in the background.
func (s *SQLite) Keep(ctx context.Context, k *Kept) error { return s.keepSnapshot(ctx, k) }

// Forget drops what is cached.
func (s *SQLite) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = newCache()
}

// Used reports whether what the cache has of a session was folded from a snapshot.
func (s *SQLite) Used(id specialist.SessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.cache.sessions.Get(id)
	return v.snapshots.Kept > 0
}

// Limit is WriterExec also for a store that nobody may write to.
func (s *SQLite) Limit(query string) error {
	return s.out.do(&job{ctx: context.Background(), alone: func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query)
		return err
	}})
}

// WriterExec runs a statement on the connection that writes.
func (c *Control) WriterExec(query string) error {
	return c.out.do(&job{ctx: context.Background(), write: func(ctx context.Context) error {
		_, err := c.out.conn.ExecContext(ctx, query)
		return err
	}})
}

// Plan returns how SQLite goes about a list.
func (s *SQLite) Plan(t testing.TB, q session.ListQuery) (text string) {
	l, err := s.listing(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	query, args := l.query(&q)
	var id, parent, unused int
	var detail string
	for err := range scan(s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)).into(&id, &parent, &unused, &detail) {
		if err != nil {
			t.Fatal(err)
		}
		text += detail + "\n"
	}
	return text
}

// Migrations returns the name and checksum of every migration, also of those that
// were replaced.
func Migrations(t *testing.T) (list []string) {
	for dir, prefix := range map[string]string{"migrations": "", "migrations/replaced": "replaced/", "migrations/control": "control/"} {
		all, err := migrations(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			list = append(list, prefix+m.name+" "+m.sum)
		}
	}
	slices.Sort(list)
	return list
}

// CommitWhile calls f inside a transaction that writes nothing else, and commits it.
func (s *SQLite) CommitWhile(f func() error) error {
	return s.out.do(&job{ctx: context.Background(), write: func(context.Context) error { return f() }})
}

// Through returns options with which SQLite goes through one of its VFSes.
func (o SQLiteOptions) Through(vfs string) SQLiteOptions {
	o.vfs = vfs
	return o
}

// Ints returns what a query of one column yields, read as every query is.
func (s *SQLite) Ints(query string) (list []int64, err error) {
	var n int64
	for err := range scan(s.read.QueryContext(context.Background(), query)).into(&n) {
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	return list, nil
}

// Plan returns how SQLite goes about a list of a table.
func (c *Control) Plan(t testing.TB, table string, q control.Query) (text string) {
	part, args := paged(q, "tenant", "id")
	return c.explain(t, "SELECT * FROM "+table+part, args)
}

// PlanDeliveries returns how SQLite goes about a list of deliveries.
func (c *Control) PlanDeliveries(t testing.TB, q control.DeliveryQuery) (text string) {
	query, args := deliveries(q)
	return c.explain(t, query, args)
}

func (c *Control) explain(t testing.TB, query string, args []any) (text string) {
	var id, parent, unused int
	var detail string
	for err := range scan(c.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)).into(&id, &parent, &unused, &detail) {
		if err != nil {
			t.Fatal(err)
		}
		text += detail + "\n"
	}
	return text
}

// CopiesAtOnce has the rows of an old log copied so many at a time, until the test ends.
func CopiesAtOnce(t *testing.T, n int) {
	before := copiedAtOnce
	copiedAtOnce = n
	t.Cleanup(func() { copiedAtOnce = before })
}

// InsertLessons writes so many lessons, from place 1 on, that no log has.
func (s *SQLite) InsertLessons(n int, lesson func(i int) trust.Lesson) error {
	return s.out.do(&job{ctx: context.Background(), write: func(context.Context) error {
		for i := range n {
			x := lesson(i)
			text, err := x.Encode()
			if err == nil {
				_, err = s.stmts.insertLesson.exec(int64(i)+1, string(text), int64(1))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}})
}
