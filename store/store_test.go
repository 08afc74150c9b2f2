package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Maker {
		s := store.NewMemory()
		return storetest.Maker{Open: func(*testing.T) session.Store { return s }}
	})
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Maker {
		path := filepath.Join(t.TempDir(), "dialai.db")
		return storetest.Maker{Durable: true, Snapshot: snapshotAt, Open: func(t *testing.T) session.Store { return openSQLite(t, path) }}
	})
}

// snapshotAt returns up to which event a snapshot is kept of a session.
func snapshotAt(t testing.TB, s session.Store, id specialist.SessionID) int64 {
	t.Helper()
	at, err := s.(*store.SQLite).SnapshotAt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func openSQLite(t testing.TB, path string) *store.SQLite {
	t.Helper()
	s, err := store.OpenSQLite(context.Background(), path, store.SQLiteOptions{})
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

// TestReadingFailsHalfway: whoever reads rows is told where a query fails, at its first
// row, between two, or at one that makes no sense.
func TestReadingFailsHalfway(t *testing.T) {
	s, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for query, want := range map[string]struct {
		rows int
		err  string
	}{
		`SELECT 1 UNION ALL SELECT 2`:                             {2, ""},
		`SELECT 1 UNION ALL SELECT abs(-9223372036854775807 - 1)`: {1, "integer overflow"},
		`SELECT 1 UNION ALL SELECT 'two'`:                         {1, "the file is damaged"},
		`SELECT missing`:                                          {0, "no such column"},
	} {
		got, err := s.Ints(query)
		if len(got) != want.rows || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s yields %v and %v, want %d rows and %q", query, got, err, want.rows, want.err)
		}
	}
}
