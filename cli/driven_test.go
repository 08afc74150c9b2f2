package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/store"
)

// TestRebuildWhileDriven: a store is not rebuilt while a server carries its sessions on, and is
// after that.
func TestRebuildWhileDriven(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	h.run(3, "run", "m.json", "--store", "s.db", "--quiet")
	s, err := store.OpenSQLite(t.Context(), filepath.Join(h.dir, "s.db"), store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lock, err := s.DriverLock()
	if err != nil {
		t.Fatal(err)
	}
	if free, err := lock.TryLock(); !free || err != nil {
		t.Fatalf("the lock is held: %v", err)
	}
	if _, errs := h.run(1, "store", "rebuild", "--store", "s.db"); !strings.Contains(errs, "carries the sessions of the store on") || !strings.Contains(errs, "--drive off") {
		t.Errorf("it says %s", errs)
	}
	h.run(0, "store", "verify", "--store", "s.db")
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	h.run(0, "store", "rebuild", "--store", "s.db")
	if free, err := lock.TryLock(); !free || err != nil {
		t.Errorf("the lock is held after the rebuilding: %v", err)
	}
}
