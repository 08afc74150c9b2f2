package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

// TestArchive holds a database to the suite of archiving.
func TestArchive(t *testing.T) {
	storetest.RunArchive(t, func(t *testing.T) storetest.ArchiveMaker {
		address := pgtest.Database(t)
		return storetest.ArchiveMaker{
			Open: func(t *testing.T) storetest.ArchiveStore { return open(t, address, postgres.Options{}) },
			Verify: func(t *testing.T, s storetest.ArchiveStore) error {
				return whole(s.(*postgres.Store).Verify(t.Context(), session.NewPrograms(), nil))
			},
			Rebuild: func(t *testing.T, s storetest.ArchiveStore) error {
				return whole(s.(*postgres.Store).Rebuild(t.Context(), session.NewPrograms(), nil))
			},
			Exec: func(t *testing.T, query string) { exec(t, address, `SET search_path=dialai; `+query) },
			File: archiveFile,
		}
	})
}

var archiveFile = storetest.ArchiveFile(func(t *testing.T, path string) (session.Store, func() error, func() error) {
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() error { return whole(s.Verify(t.Context(), session.NewPrograms())) }, s.Close
})

// TestArchiveDropsPartitions: a partition all of whose sessions were moved is dropped, and no other one; the store goes on.
func TestArchiveDropsPartitions(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	end := func() {
		t.Helper()
		started, err := r.Start(t.Context(), parse(t), runner.StartOptions{})
		if err == nil {
			_, err = r.Stop(t.Context(), started.ID, runner.Stopping{Actor: session.LocalActor("ann"), Note: "enough"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	partitions := func() (names string) {
		t.Helper()
		if err := connected(t, address).QueryRow(t.Context(), `SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text) FROM pg_inherits WHERE inhparent='dialai.log'::regclass`).Scan(&names); err != nil {
			t.Fatal(err)
		}
		return names
	}
	o := store.ArchiveOptions{Before: specialist.Time(1) << 50, Statuses: []session.Status{session.Stopped}, To: filepath.Join(t.TempDir(), "archive.db"), At: 7, Programs: session.NewPrograms()}
	archive := func(want int64) {
		t.Helper()
		if done, err := s.Archive(t.Context(), o); err != nil || done.Sessions != want {
			t.Errorf("archived: %+v, %v", done, err)
		}
		if err := whole(s.Verify(t.Context(), session.NewPrograms(), nil)); err != nil {
			t.Error(err)
		}
	}
	end()
	end()
	archive(1) // the newest one stays
	if now := partitions(); now != "dialai.log_0 dialai.log_default" {
		t.Errorf("while sessions go on in it, there is %s", now)
	}
	exec(t, address, `CREATE TABLE dialai.log_1 PARTITION OF dialai.log FOR VALUES FROM (1048576) TO (2097152)`)
	exec(t, address, `SELECT setval(pg_get_serial_sequence('dialai.sessions', 'id'), 1048576)`)
	end()
	archive(1)
	if now := partitions(); now != "dialai.log_1 dialai.log_default" {
		t.Errorf("once all in it were moved, there is %s", now)
	}
	end()
	archive(1)
	if err := whole(s.Rebuild(t.Context(), session.NewPrograms(), nil)); err != nil {
		t.Error(err)
	}
}

// TestArchiveRewritesPartitions: of a partition of which next to nothing is left the room is given back, once, and what is left
// is whole; one in which sessions begin, or of which more is left, stays as it is.
func TestArchiveRewritesPartitions(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	kept := begin(t, m, s)
	const partition = `SELECT pg_relation_filenode('dialai.%s')::int`
	file := func(name string) int { t.Helper(); return ask[int](t, address, fmt.Sprintf(partition, name)) }
	fill := func(session int64, deleted string) {
		t.Helper()
		exec(t, address, fmt.Sprintf(`INSERT INTO dialai.log (session, first, at, events, hash) SELECT %d, 1000+g, 1, decode(repeat('ab', 1000), 'hex'), '' FROM generate_series(1, 3000) g; DELETE FROM dialai.log WHERE first>=1000 AND %s`, session, deleted))
	}
	archive := func() {
		t.Helper()
		o := store.ArchiveOptions{Before: specialist.Time(1) << 50, To: filepath.Join(t.TempDir(), "archive.db"), At: 7, Programs: session.NewPrograms()}
		if _, err := s.Archive(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, address, `CREATE TABLE dialai.log_1 PARTITION OF dialai.log FOR VALUES FROM (1048576) TO (2097152)`)
	fill(1, "first<1500")
	another := open(t, address, postgres.Options{})
	begin(t, m, another) // by a connection that writes behind what is deleted later: vacuuming alone gives nothing back
	before := file("log_0")
	archive()
	if file("log_0") != before {
		t.Error("a partition in which sessions begin was written anew")
	}
	exec(t, address, `SELECT setval(pg_get_serial_sequence('dialai.sessions', 'id'), 1048576)`)
	begin(t, m, s)
	fill(1048577, "session>1")
	archive()
	if file("log_0") != before {
		t.Error("a partition of which more is left was written anew")
	}
	exec(t, address, `DELETE FROM dialai.log WHERE first>=1000`)
	other := file("log_1")
	archive()
	if now := ask[int](t, address, `SELECT pg_table_size('dialai.log_0')::int`); file("log_0") == before || now > 1<<17 {
		t.Errorf("what is left of a partition takes %d bytes", now)
	}
	if file("log_1") != other {
		t.Error("the partition in which sessions begin was written anew")
	}
	before = file("log_0")
	archive()
	if file("log_0") != before {
		t.Error("a partition that was written anew is so again")
	}
	kept.check(t, s)
	if err := kept.commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := whole(s.Verify(t.Context(), session.NewPrograms(), nil)); err != nil {
		t.Error(err)
	}
}

// TestArchiveInterrupted: an archive that was interrupted before it was verified says that archiving it again finishes; whoever
// archives meanwhile is told who does and until when that counts, and goes on once nobody does.
func TestArchiveInterrupted(t *testing.T) {
	address, to := pgtest.Database(t), filepath.Join(t.TempDir(), "old.db")
	s, other := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 3 {
		started, err := r.Start(t.Context(), parse(t), runner.StartOptions{})
		if err == nil {
			_, err = r.Stop(t.Context(), started.ID, runner.Stopping{Actor: session.LocalActor("ann"), Note: "enough"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	interrupted := errors.New("interrupted")
	o := store.ArchiveOptions{Before: 1 << 60, To: to, Statuses: []session.Status{session.Stopped}, Programs: session.NewPrograms()}
	first := o
	first.After = func(step string) error {
		if step != "copied" {
			return nil
		}
		_, err := other.Archive(t.Context(), o)
		var advised interface{ Advice() string }
		if !errors.Is(err, store.ErrArchiving) || !strings.Contains(err.Error(), fmt.Sprintf("another process archives the store, or erases in it (%s, process %d)", hostname(t), os.Getpid())) ||
			!errors.As(err, &advised) || !strings.Contains(advised.Advice(), "if it was killed, or cut off from the database, it counts as dead in 30s, and to run this again finishes what it began") {
			t.Errorf("to archive meanwhile = %v (%v)", err, advised)
		}
		return interrupted
	}
	if _, err := s.Archive(t.Context(), first); !errors.Is(err, interrupted) {
		t.Fatalf("archived: %v", err)
	}
	proven(t, s)
	none := func(session.Store) {}
	if err := archiveFile(t, to, true, none); err == nil || !strings.Contains(err.Error(), "archiving to this file was interrupted, and dialai store archive finishes it") {
		t.Errorf("to verify the archive = %v", err)
	}
	if done, err := other.Archive(t.Context(), o); err != nil || done.Sessions != 2 {
		t.Errorf("archived again: %+v, %v", done, err)
	}
	if err := archiveFile(t, to, true, none); err != nil {
		t.Error(err)
	}
	proven(t, other)
}

func hostname(t testing.TB) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
