package postgres_test

import (
	"os"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerStore) != "" {
		os.Exit(work())
	}
	if os.Getenv(committerStore) != "" {
		os.Exit(committing())
	}
	if os.Getenv(storetest.KilledDoes) != "" {
		os.Exit(killed())
	}
	os.Exit(pgtest.Main(m))
}

func TestPostgres(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Maker {
		address := pgtest.Database(t)
		return storetest.Maker{Durable: true, Snapshot: snapshotAt, Open: func(t *testing.T) session.Store { return open(t, address, postgres.Options{}) }}
	})
}

// snapshotAt returns up to which event a snapshot is kept of a session.
func snapshotAt(t testing.TB, s session.Store, id specialist.SessionID) int64 {
	t.Helper()
	at, err := s.(*postgres.Store).SnapshotAt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// open opens a store until the test ends.
func open(t testing.TB, address string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
