package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// A fullDisk is that of a database, which can be filled and made room on.
type fullDisk struct{ fill, free func() }

// TestFull: while there is no room on the disk of the database it is said of each commit, nothing that was acknowledged is lost,
// and what was committed can be read. Once there is room the same handle goes on with the same commits. It is so at a server
// that answers as a full disk makes it answer, and, where a file system can be mounted, at one whose disk is full.
func TestFull(t *testing.T) {
	t.Run("answers", func(t *testing.T) {
		address := pgtest.Database(t)
		testFull(t, address, fullDisk{
			fill: func() {
				exec(t, address, `SET search_path=dialai; CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE='disk_full'; END $$;
					CREATE TRIGGER no_room BEFORE INSERT ON log FOR EACH STATEMENT EXECUTE FUNCTION no_room()`)
			},
			free: func() { exec(t, address, `SET search_path=dialai; DROP TRIGGER no_room ON log; DROP FUNCTION no_room`) },
		})
	})
	t.Run("file system", func(t *testing.T) {
		address, folder := pgtest.Start(t, true).SmallDatabase(t, 32<<20)
		testFull(t, address, filled(t, folder))
	})
}

// filled returns the disk that is mounted at a folder.
func filled(t *testing.T, folder string) fullDisk {
	ballast := filepath.Join(folder, "ballast")
	return fullDisk{
		fill: func() {
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := io.Copy(f, zeros{}); err == nil {
				t.Fatal("the disk is never full")
			}
		},
		free: func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// TestFullLog: where there is no room for what the database logs before it writes (pg_wal), it ends itself, and does not come back before
// there is. Whoever commits meanwhile waits for it, for a minute, and goes on by itself with the same commits; nothing
// that was acknowledged is lost.
func TestFullLog(t *testing.T) {
	t.Parallel()
	server, folder := pgtest.StartSmallLog(t, 24<<20)
	address := server.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	var writers []*writer
	for range 8 {
		writers = append(writers, begin(t, m, s))
	}
	all(t, writers, 5)
	disk := filled(t, folder)
	disk.fill()
	ended, committed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(committed)
		for more := true; more; { // until there is no server, and then once more
			select {
			case <-ended:
				more = false
			default:
			}
			all(t, writers, 5)
		}
	}()
	said := server.Wait(t, func() { // it is soon full
		conn, err := pgx.Connect(t.Context(), address)
		for err == nil {
			_, err = conn.Exec(t.Context(), `SELECT pg_logical_emit_message(true, 'ballast', repeat('x', 100000))`)
		}
		if conn != nil {
			conn.Close(t.Context())
		}
	})
	if !strings.Contains(said, "PANIC") || !strings.Contains(said, "No space left on device") {
		t.Errorf("the server has ended, and said:\n%s", said)
	}
	close(ended)
	if _, err := postgres.Open(t.Context(), address, postgres.Options{}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("to open the store comes to %v", err)
	}
	select {
	case <-committed:
		t.Error("all was committed before the disk was full: the test shows nothing")
	default:
	}
	disk.free()
	server.Restart(t)
	<-committed
	for _, w := range writers {
		w.check(t, s)
	}
	proven(t, s)
}

// zeros is a reader that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func testFull(t *testing.T, address string, disk fullDisk) {
	s, m := open(t, address, postgres.Options{}), parse(t)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var writers []*writer
	for range 8 {
		writers = append(writers, begin(t, m, s))
	}
	all(t, writers, 5)
	disk.fill()
	refused := make([]*session.Change, len(writers)) // that there was no room for
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() {
			for refused[i] == nil {
				c, err := w.change(fmt.Sprintf("while the disk is full %s", strings.Repeat("!", 100)))
				if err == nil {
					err = s.Commit(t.Context(), c)
				}
				switch {
				case err == nil:
					w.last, w.n = c.After, w.n+1
				case errors.Is(err, store.ErrFull) && strings.HasPrefix(err.Error(), "the disk is full ("):
					refused[i] = c
				default:
					t.Errorf("session %s, commit %d: %v", w.last.ID, w.n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for err = nil; err == nil; {
		_, err = r.Start(t.Context(), m, runner.StartOptions{})
	}
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("to start a session comes to %v", err)
	}
	for i, w := range writers {
		w.check(t, s)
		if err := s.Commit(context.Background(), refused[i]); !errors.Is(err, store.ErrFull) && err != nil {
			t.Errorf("the same commit again comes to %v", err)
		}
	}
	disk.free()
	for i, w := range writers {
		if err := s.Commit(t.Context(), refused[i]); err != nil {
			t.Errorf("once there is room a commit comes to %v", err)
		}
		w.last, w.n = refused[i].After, w.n+1
	}
	all(t, writers, 5)
	for _, w := range writers {
		w.check(t, s)
	}
	teach(t, r, m)
	proven(t, s)
}
