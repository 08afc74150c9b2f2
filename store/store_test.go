package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/session"
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
		return storetest.Maker{Durable: true, Open: func(t *testing.T) session.Store { return openSQLite(t, path) }}
	})
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
