package postgres_test

import (
	"errors"
	"testing"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// TestFailover has a standby that every commit waits for take the place of its server in the midst of
// commits: nothing that was acknowledged is lost, and writers go on.
func TestFailover(t *testing.T) {
	server := pgtest.Start(t, true)
	address := server.Database(t)
	p, through := between(t, address, 1)
	s, m := open(t, through, postgres.Options{}), parse(t)
	standby := server.Standby(t, true)
	var writers []*writer
	for range 8 {
		writers = append(writers, begin(t, m, s))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all(t, writers, 40)
	}()
	wait(t, "commits", func() bool { return ask[int](t, address, `SELECT count(*) FROM log`) > 50 })
	server.Kill()
	standby.Promote(t)
	p.leads(t, standby.Of(address))
	<-done
	for _, w := range writers {
		w.check(t, s)
	}
	if n := ask[int](t, standby.Of(address), `SELECT count(*) FROM log`); n != 8*41 {
		t.Errorf("the log has %d records, want %d", n, 8*41)
	}
	proven(t, s)
}

// TestFailoverLoses has a standby take over that lacks the last commits, although they were acknowledged: nobody
// goes on from what is gone, neither with a session nor with what it has taught, and no place is given out twice.
func TestFailoverLoses(t *testing.T) {
	server := pgtest.Start(t, true)
	address := server.Database(t)
	p, through := between(t, address, 1)
	s, m := open(t, through, postgres.Options{}), parse(t)
	standby := server.Standby(t, false)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := begin(t, m, s)
	taught := teach(t, r, m)
	teach(t, r, m)
	end := ask[string](t, address, `SELECT pg_current_wal_lsn()::text`)
	wait(t, "the standby", func() bool {
		return ask[bool](t, standby.Of(address), `SELECT pg_last_wal_replay_lsn()>=$1::pg_lsn`, end)
	})
	standby.Leave(t)

	for range 40 { // more than a sequence says ahead of time
		teach(t, r, m)
	}
	again(t, r, taught)
	if err := w.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, counts := lessons.New(), stats.NewFollower(s, session.NewPrograms())
	if l, _, err := all.Read(t.Context(), s); err != nil || l.N(m.Name()) != 43 {
		t.Fatalf("%d outcomes are known (%v), want 43", l.N(m.Name()), err)
	}
	if _, _, err := all.Since(t.Context(), s, m.Name(), "open", 0, 1<<62); err != nil {
		t.Fatal(err)
	}
	counted := func() int64 {
		t.Helper()
		tally, err := counts.Of(t.Context(), m.Name())
		if err != nil {
			t.Fatal(err)
		}
		return tally.Of("").Human
	}
	if n := counted(); n != 43 {
		t.Errorf("%d human decisions are counted, want 43", n)
	}
	newest, err := s.Place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	server.Kill()
	standby.Promote(t)
	p.leads(t, standby.Of(address))

	if err := w.commit(t.Context()); !errors.Is(err, session.ErrStale) {
		t.Errorf("a commit after one that is gone: %v, want ErrStale", err)
	}
	if alive, err := s.Alive(t.Context(), o.Name()); err != nil || alive {
		t.Errorf("the owner lives: %t (%v)", alive, err)
	}
	was := w.last.Sequence - 1
	if w = read(t, m, s, w.last.ID); w.last.Sequence != was {
		t.Errorf("the session is at event %d, want %d: one is gone", w.last.Sequence, was)
	}
	if err := w.commit(t.Context()); err != nil {
		t.Error(err)
	}
	again(t, r, taught) // as if its second ruling had never been
	if l, err := s.Load(t.Context(), session.NewPrograms(), taught); err != nil || len(l.History()) != 2 {
		t.Errorf("after its second ruling the session has %d transitions (%v), want 2", len(l.History()), err)
	}
	l, place, err := all.Read(t.Context(), s)
	if err != nil || l.N(m.Name()) != 3 {
		t.Errorf("%d outcomes are known (%v), want 3", l.N(m.Name()), err)
	}
	if place <= newest {
		t.Errorf("the newest lesson is at place %d, and place %d was given to one that is gone", place, newest)
	}
	if n := counted(); n != 3 {
		t.Errorf("%d human decisions are counted, want 3", n)
	}
	since, _, err := all.Since(t.Context(), s, m.Name(), "open", 0, 1<<62)
	if err != nil || since.N(m.Name()) != 3 {
		t.Errorf("%d outcomes are known of the state (%v), want 3", since.N(m.Name()), err)
	}
	other := open(t, standby.Of(address), postgres.Options{})
	fresh, at, err := lessons.New().Read(t.Context(), other)
	if err != nil || fresh.N(m.Name()) != 3 || at != place {
		t.Errorf("to another process %d outcomes are known up to place %d (%v), want 3 up to %d", fresh.N(m.Name()), at, err, place)
	}
	teach(t, r, m)
	if next, err := s.Place(t.Context()); err != nil || next > place+100 {
		t.Errorf("the next record is at place %d (%v), behind %d: it was led nowhere else", next, err, place)
	}
	proven(t, s)
}

// teach starts a session and rules in it once.
func teach(t testing.TB, r *runner.Runner, m *machine.Machine) specialist.SessionID {
	t.Helper()
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again(t, r, started.ID)
	return started.ID
}

// again rules in a session that it is not over.
func again(t testing.TB, r *runner.Runner, id specialist.SessionID) {
	t.Helper()
	if _, err := r.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: "because"}); err != nil {
		t.Fatal(err)
	}
}

// proven fails unless all of a store follows from its log.
func proven(t testing.TB, s *postgres.Store) {
	t.Helper()
	if report, err := s.Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("verified is %+v (%v)", report, err)
	}
}
