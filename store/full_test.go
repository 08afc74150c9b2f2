//go:build linux

package store_test

import (
	"errors"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// A disk that fills while a store is archived: nothing can be written any more from one moment on, to neither of
// the files, and everything else goes on.

// fills makes all files of SQLite stand on a disk, until the test ends.
func fills(t *testing.T, name string) *disk {
	t.Helper()
	d := newDisk(t, name)
	if rc := sqlite3.Xsqlite3_vfs_register(d.tls, d.own, 1); rc != 0 {
		t.Fatalf("registering: %d", rc)
	}
	t.Cleanup(func() { sqlite3.Xsqlite3_vfs_register(d.tls, d.unix, 1) })
	return d
}

// fill has the disk be full after so many operations from now on.
func (d *disk) fill(after int) {
	d.reset(after, false, false)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = true
}

// filled reports whether something was refused, and has there be room again.
func (d *disk) filled() bool {
	d.mu.Lock()
	failed := d.failed != ""
	d.mu.Unlock()
	d.reset(0, false, false)
	return failed
}

// TestArchiveOnAFullDisk: wherever the disk is full, it is said; every session is in one of the files as it was, both are whole
// or made so by the next run, and once there is room that finishes.
func TestArchiveOnAFullDisk(t *testing.T) {
	d, runs := fills(t, "dialai-full-archive"), 0
	share := 3
	if testing.Short() {
		share = 1
	}
	for after := 1; ; after += min(fewer, 14) + after/share { // closer to each other at the beginning
		a, _ := ended(t)
		to := filepath.Join(t.TempDir(), "archive.db")
		before, _ := a.logs(a.path)
		taught, full := a.kept(), false
		a.with(func(_ *runner.Runner, s *store.SQLite) {
			d.fill(after)
			_, err := s.Archive(a.ctx, inBatches(archiving(to), 2))
			if full = d.filled(); err != nil && (!full || !errors.Is(err, store.ErrFull)) { // what moves the log into the file may fail, and is done later
				t.Errorf("full after %d operations: %v", after, err)
			}
		})
		a.whole(a.path)
		a.with(func(_ *runner.Runner, s *store.SQLite) {
			_, err := s.Archive(a.ctx, archiving(to))
			a.ok(err)
		})
		now, in := a.logs(a.path, to)
		for id, text := range before {
			if now[id] != text {
				t.Errorf("full after %d operations: session %s is another one:\n%s", after, id, firstDifference(text, now[id]))
			}
		}
		if kept := a.kept(); kept != taught || in[a.ids[0]] != 1 {
			t.Errorf("full after %d operations: what was taught is other: %s; sessions are in %v", after, firstDifference(taught, kept), in)
		}
		a.whole(a.path)
		a.whole(to)
		if runs++; !full {
			if runs < 8 {
				t.Errorf("the disk was full at %d moments only", runs-1)
			}
			return
		}
	}
}
