//go:build linux

package store_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dialai/dialai/store"
)

// TestMigratedMeanwhile: whoever opens a file that another process migrates meanwhile, at whichever read of it, sees its schema and
// the migrations that it records as of one moment, and takes it as migrated.
func TestMigratedMeanwhile(t *testing.T) {
	d, old := newDisk(t, "dialai-migrated"), ""
	for _, file := range oldStores(t) {
		a := &aStore{T: t, ctx: t.Context(), path: unpack(t, file)}
		if schema, err := strconv.Atoi(a.column(`SELECT max(version_id) FROM goose_db_version`)); err == nil && schema >= 5 && schema < len(store.Migrations(t)) {
			old = file
		}
	}
	if old == "" {
		t.Fatal("no old store records its migrations")
	}
	for at, itself := 1, false; !itself; at++ { // until it has begun to migrate the file itself, and others wait
		path, reads := unpack(t, old), 0
		d.reset(0, false, false)
		d.mu.Lock()
		d.before = func(op, of string) {
			if op != "read" || of != path {
				return
			}
			if reads++; reads != at {
				return
			}
			if _, err := os.Stat(filepath.Join(path+".owners", "migrating")); err == nil {
				itself = true
			} else if _, err := store.Migrate(t.Context(), path, store.SQLiteOptions{}); err != nil {
				t.Error(err)
			}
		}
		d.mu.Unlock()
		s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{}.Through(d.name))
		if err != nil {
			t.Fatalf("migrated at read %d: %v", at, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if reads < at {
			t.Fatalf("the file is read %d times only", reads)
		}
	}
}
