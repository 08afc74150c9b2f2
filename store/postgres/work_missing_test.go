package postgres_test

import (
	"context"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
)

// TestMissingWork: a process that joins makes the row of a live session that has none while that ends: in the end there
// is no row of it, whoever of the two was first.
func TestMissingWork(t *testing.T) {
	for _, c := range []struct{ first, held string }{
		{"the one that joins", "work"},  // it is held up before it inserts the row
		{"the one that commits", "log"}, // it is held up once it has the row of the session
	} {
		address := pgtest.Database(t)
		s, other := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
		w := begin(t, parse(t), s)
		exec(t, address, `SET search_path=dialai; DELETE FROM work;
			CREATE FUNCTION holds() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END';
			CREATE TRIGGER holds BEFORE INSERT ON `+c.held+` FOR EACH ROW EXECUTE FUNCTION holds()`)
		conn := connect(t, address)
		if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(4711)`); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		joins := func() {
			worker, err := other.Join(t.Context())
			if err == nil {
				t.Cleanup(func() { worker.Close(context.Background()) })
			}
			done <- err
		}
		ends := func() { done <- w.commit(t.Context()) }
		waiting := func(n int) func() bool {
			return func() bool {
				return len(done)+ask[int](t, address, `SELECT count(*) FROM pg_stat_activity WHERE datname=current_database() AND wait_event_type='Lock'`) == n
			}
		}
		begins := []func(){joins, ends}
		if c.held == "log" {
			begins = []func(){ends, joins}
		}
		for i, begin := range begins {
			go begin()
			wait(t, "both to wait or be done", waiting(i+1))
		}
		if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(4711)`); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if n := ask[int](t, address, `SELECT count(*) FROM work`); n != 0 {
			t.Errorf("where %s was first, the session has ended and has a row in work", c.first)
		}
		if _, found := audited(t, s); found != "" {
			t.Errorf("where %s was first, found is %s", c.first, found)
		}
	}
}
