package postgres_test

import (
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// TestTidyLeavesUsed: an empty partition that somebody reads is left to the next run of an archive, which does not fail for
// it; into which somebody has just written, it is not dropped.
func TestTidyLeavesUsed(t *testing.T) {
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
	archive := func() error {
		_, err := s.Archive(t.Context(), store.ArchiveOptions{Before: specialist.Time(1) << 50, Statuses: []session.Status{session.Stopped}, To: filepath.Join(t.TempDir(), "archive.db"), At: 7, Programs: session.NewPrograms()})
		return err
	}
	there := func(want bool, when string) {
		t.Helper()
		if is := ask[bool](t, address, `SELECT to_regclass('dialai.log_0') IS NOT NULL`); is != want {
			t.Errorf("%s the partition is there: %v", when, is)
		}
	}
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			exec(t, address, statement)
		}
	}
	end()
	run(`CREATE TABLE dialai.log_1 PARTITION OF dialai.log FOR VALUES FROM (1048576) TO (2097152)`, `SELECT setval(pg_get_serial_sequence('dialai.sessions', 'id'), 1048576)`)
	end()

	other := connect(t, address)
	in := func(statement string) {
		t.Helper()
		if _, err := other.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	in(`BEGIN; SELECT FROM dialai.log_0 LIMIT 1`)
	if err := archive(); err != nil {
		t.Errorf("while somebody reads it: %v", err)
	}
	there(true, "while somebody reads it")
	in(`ROLLBACK`)

	in(`BEGIN; INSERT INTO dialai.log (session, first, at, events, hash) VALUES (1, 1, 1, '[]', '')`)
	done := make(chan error, 1)
	go func() { done <- archive() }()
	wait(t, "the archive to wait for who writes, or to give up", func() bool {
		return len(done) > 0 || ask[bool](t, address, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname=current_database() AND wait_event_type='Lock')`)
	})
	in(`COMMIT`)
	if err := <-done; err != nil {
		t.Errorf("while somebody writes to it: %v", err)
	}
	there(true, "with what was written")
	if n := ask[int](t, address, `SELECT count(*) FROM log_0`); n != 1 {
		t.Errorf("there are %d records, want what was written", n)
	}
	run(`DELETE FROM dialai.log_0`)
	if err := archive(); err != nil {
		t.Error(err)
	}
	there(false, "once it is empty and nobody uses it,")
}
