package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestNoAnswer: who is parted from the database without a word, while what stands between takes all that is sent, waits for no
// answer for ever: a read says that the database does not answer, and once it does, reads are answered, and what others tell is
// heard by a new connection. Both waited until the process ended.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	p, through := between(t, address, 1)
	s := open(t, through+"&connect_timeout=1", postgres.Hurried(postgres.Options{}, 100))
	w := begin(t, parse(t), s)
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx, w.last.ID, w.last.Sequence) }()
	const listener = `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname=current_database() AND query LIKE 'LISTEN%'`
	before := 0
	wait(t, "the channel to be listened to", func() bool { before = ask[int](t, address, listener); return before > 0 })
	p.silent.Store(true)
	if _, err := s.List(t.Context(), session.ListQuery{}); !errors.Is(err, session.ErrBusy) || !strings.Contains(err.Error(), "no answer in 400ms") && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a read comes to %v", err)
	}
	p.silent.Store(false)
	wait(t, "a read to be answered", func() bool { _, err := s.List(t.Context(), session.ListQuery{}); return err == nil })
	wait(t, "the channel to be listened to anew", func() bool {
		return ask[int](t, address, `SELECT count(*) FROM pg_stat_activity WHERE datname=current_database() AND query LIKE 'LISTEN%' AND pid<>$1`, before) > 0
	})
	stop()
	if err := <-watched; !errors.Is(err, context.Canceled) && !errors.Is(err, session.ErrBusy) {
		t.Errorf("watching comes to %v", err)
	}
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // as the server does some day; the library waits 15 s for it
}
