package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// TestCopyFull: a copy for which there is no room says so, and cannot be opened; with room it is finished.
func TestCopyFull(t *testing.T) {
	a := newFullStore(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	a.with(func(_ *runner.Runner, from *store.SQLite) {
		full := 0
		for pages := 0; ; pages += 4 {
			into, err := store.OpenSQLite(a.ctx, to, store.SQLiteOptions{Copy: true})
			a.ok(err)
			is, err := into.Status(a.ctx)
			a.ok(err)
			a.ok(into.Limit(fmt.Sprintf(`PRAGMA max_page_count=%d`, is.SizeBytes/4096+int64(pages))))
			_, err = store.CopyStore(a.ctx, from, into, store.CopyOptions{Resume: pages > 0})
			a.ok(into.Close())
			if err == nil {
				break
			}
			if full++; !errors.Is(err, store.ErrFull) {
				t.Fatalf("with %d pages more: %v", pages, err)
			}
			if s, err := store.OpenSQLite(a.ctx, to, store.SQLiteOptions{}); err == nil && full > 1 {
				s.Close()
				t.Fatal("it is opened")
			} else if err == nil {
				s.Close()
			}
		}
		if full < 3 {
			t.Errorf("it was full %d times", full)
		}
	})
	a.whole(to)
	want := a.dump()
	a.path = to
	if got := a.dump(); got != want {
		t.Error(firstDifference(want, got))
	}
}
