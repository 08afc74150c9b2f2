package postgres_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestPooler: through a pool in session mode a store is the one that it is without, in its own schema and with its own
// timeouts. One in transaction mode is refused, whichever connection of the server it takes next, and nothing is made or set there.
func TestPooler(t *testing.T) {
	address := pgtest.Database(t)
	for _, turns := range []string{"", "server_round_robin = 1\nmin_pool_size = 4"} {
		for _, mode := range []string{"transaction", "statement"} {
			_, err := postgres.Open(t.Context(), pgtest.Pooled(t, address, mode, turns), postgres.Options{})
			if err == nil || !strings.Contains(err.Error(), "a pooler in transaction mode is between") {
				t.Errorf("behind a pooler in %s mode (%s) Open = %v", mode, turns, err)
			}
		}
	}
	number := func(query string) (n int) {
		t.Helper()
		if err := connected(t, address).QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := number(`SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'dialai%'`); n != 0 {
		t.Errorf("%d schemas were made through a pooler that was refused", n)
	}

	s := open(t, pgtest.Pooled(t, address, "session"), postgres.Options{})
	begin(t, parse(t), s)
	direct := open(t, address, postgres.Options{})
	if list, err := direct.List(t.Context(), session.ListQuery{}); err != nil || len(list) != 1 {
		t.Errorf("directly there are %d sessions (%v)", len(list), err)
	}
	if n := number(`SELECT count(*) FROM pg_tables WHERE schemaname='public'`); n != 0 {
		t.Errorf("%d tables were made in the schema public", n)
	}
	if r, err := s.Verify(t.Context(), session.NewPrograms(), nil); err != nil || r.Difference != nil {
		t.Errorf("Verify = %v, %v", r.Difference, err)
	}
}
