package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// within is how long a test waits for what is to happen.
const within = time.Minute

// all has writers commit so many times each, at once.
func all(t *testing.T, writers []*writer, times int) {
	t.Helper()
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() {
			for range times {
				if err := w.commit(t.Context()); err != nil {
					t.Errorf("session %s, commit %d: %v", w.last.ID, w.n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// faults returns how many faults a test makes: DIALAI_FAULTS times as many as it does by itself.
func faults(n int) int {
	times, _ := strconv.Atoi(os.Getenv("DIALAI_FAULTS"))
	return n * max(1, times)
}

// TestCut cuts connections anywhere in a commit: whatever was acknowledged is in the log, once, and
// nothing else is.
func TestCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	address := pgtest.Database(t)
	direct, m := open(t, address, postgres.Options{}), parse(t)
	p, through := between(t, address, seed)
	cut := open(t, through, postgres.Options{})
	var writers []*writer
	for range 8 {
		w := begin(t, m, direct)
		w.store = cut
		writers = append(writers, w)
	}
	p.mu.Lock()
	p.cut = [2]int{3000, 30000} // to connect takes some 2000
	p.mu.Unlock()
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // they were not to be cut
	var wg sync.WaitGroup
	const times = 30
	noted := writers[0].last.ID
	wg.Go(func() {
		for i := range int64(times) {
			if err := cut.Register(t.Context(), m.Name(), i, session.RosterEvent{Kind: session.KindDisabled, ID: fmt.Sprint(i)}); err != nil {
				t.Errorf("event %d of the roster: %v", i+1, err)
				return
			}
		}
	})
	wg.Go(func() {
		for i := range int64(times) {
			if err := cut.AppendAgentLog(t.Context(), noted, i, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{}`)}); err != nil {
				t.Errorf("entry %d of the agent_log: %v", i+1, err)
				return
			}
		}
	})
	all(t, writers, faults(60))
	wg.Wait()
	for _, w := range writers {
		w.check(t, direct)
	}
	if roster, err := direct.Roster(t.Context(), m.Name()); err != nil || roster.Sequence != times {
		t.Errorf("the roster is at event %d (%v), want %d", roster.Sequence, err, times)
	}
	if n := ask[int](t, address, `SELECT count(*) FROM agent_log`); n != times {
		t.Errorf("the agent_log has %d entries, want %d", n, times)
	}
	if report, err := direct.Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("verified is %+v (%v)", report, err)
	}
	if n := p.cuts.Load(); n < 10 {
		t.Errorf("only %d connections were cut", n)
	}
}

// TestCrash kills the server again and again, or restarts it, which ends all that is underway: it loses nothing that was
// acknowledged, and writers go on when it is back.
func TestCrash(t *testing.T) {
	server := pgtest.Start(t, true)
	address := server.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	var writers []*writer
	for range 8 {
		writers = append(writers, begin(t, m, s))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all(t, writers, faults(40))
	}()
	for n := range faults(4) {
		before := ask[int64](t, address, `SELECT last_value FROM place`)
		wait(t, "a commit", func() bool {
			select {
			case <-done:
				return true
			default:
				return ask[int64](t, address, `SELECT last_value FROM place`) > before+10
			}
		})
		if n%2 == 0 {
			server.Kill()
		} else {
			server.Stop(t)
		}
		server.Restart(t)
	}
	<-done
	for _, w := range writers {
		w.check(t, s)
	}
}

// TestSlowCommits: where a commit takes 200 ms, those of 64 sessions are made together.
func TestSlowCommits(t *testing.T) {
	address := pgtest.Database(t)
	direct, m := open(t, address, postgres.Options{}), parse(t)
	p, through := between(t, address, 1)
	slow := open(t, through, postgres.Options{})
	var writers []*writer
	for range 64 {
		w := begin(t, m, direct)
		w.store = slow
		writers = append(writers, w)
	}
	all(t, writers, 1) // so that nothing is looked up
	p.slow.Store(int64(200 * time.Millisecond))
	p.answers.Store(0)
	all(t, writers, 3)
	for _, w := range writers {
		w.check(t, direct)
	}
	if n := p.answers.Load(); n < 3 || n > 16 {
		t.Errorf("for 3 changes of each of 64 sessions the server was asked %d times", n)
	}
}

// wait waits until something is so.
func wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(within); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited for %s for %s", what, within)
		}
	}
}

// TestUnknown: who closes a store whose server has not answered is told that nobody knows, and finds what
// was committed when looking. The same change again is no change.
func TestUnknown(t *testing.T) {
	address := pgtest.Database(t)
	direct, m := open(t, address, postgres.Options{}), parse(t)
	p, through := between(t, address, 1)
	s := open(t, through, postgres.Options{})
	w := begin(t, m, s)
	for range 2 { // so that the statement is known by then, and is all that is sent
		if err := w.commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.change("unheard")
	if err != nil {
		t.Fatal(err)
	}
	p.silent.Store(true)
	failed := make(chan error)
	go func() { failed <- s.Commit(context.Background(), c) }()
	wait(t, "the commit", func() bool {
		return ask[int64](t, address, `SELECT sequence FROM sessions WHERE session_id=$1`, w.last.ID.String()) == c.After.Sequence
	})
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if err := <-failed; !errors.Is(err, session.ErrUnknown) {
		t.Errorf("the commit has come to %v, want ErrUnknown", err)
	}
	p.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := direct.Commit(t.Context(), c); err != nil {
		t.Errorf("the same commit again: %v", err)
	}
	w.last, w.n = c.After, w.n+1
	w.check(t, direct)
}

// TestSameAgain: the very same record is committed once, however often it is sent; one with another
// content on the same sequence number, or another head, is not.
func TestSameAgain(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	w := begin(t, m, s)
	mine, other := read(t, m, s, w.last.ID), read(t, m, s, w.last.ID)
	a, err := mine.change("mine")
	if err != nil {
		t.Fatal(err)
	}
	b, err := other.change("other")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Commit(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), b); !errors.Is(err, session.ErrStale) {
			t.Errorf("another record on the same sequence number: %v, want ErrStale", err)
		}
	}
	w.last, w.n = a.After, 1
	w.check(t, s)
	forged := *a.After
	forged.Head = &session.Hash{1}
	mine.last = &forged
	c, err := mine.change("after something else")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), c); !errors.Is(err, session.ErrStale) {
		t.Errorf("on another head: %v, want ErrStale", err)
	}
}

// TestBatch commits as many as share a transaction, of which one is stale, one is of a session that is not
// there and one is there twice: the others are committed.
func TestBatch(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	var writers []*writer
	var changes []*session.Change
	for i := range 256 {
		w := begin(t, m, s)
		if i == 7 { // somebody else was first
			if err := read(t, m, s, w.last.ID).commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		c, err := w.change("together")
		if err != nil {
			t.Fatal(err)
		}
		writers, changes = append(writers, w), append(changes, c)
	}
	changes[11] = changes[10]
	for i, err := range s.CommitTogether(t.Context(), changes...) {
		if want := map[int]error{7: session.ErrStale}[i]; !errors.Is(err, want) {
			t.Errorf("job %d has come to %v, want %v", i, err, want)
		} else if err == nil && i != 11 {
			writers[i].last, writers[i].n = changes[i].After, 1
			if i < 20 {
				writers[i].check(t, s)
			}
		}
	}
	if n := ask[int](t, address, `SELECT count(*) FROM log`); n != 256+1+254 {
		t.Errorf("the log has %d records, want %d", n, 256+1+254)
	}
}

// TestDeadlock has two processes commit to the same sessions in opposite orders, and meet in the middle:
// neither waits for the other for ever.
func TestDeadlock(t *testing.T) {
	address := pgtest.Database(t)
	m := parse(t)
	var mu sync.Mutex
	var failed []error
	observe := func(_ int, _ time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	}
	stores := []*postgres.Store{open(t, address, postgres.Options{Observe: observe}), open(t, address, postgres.Options{Observe: observe})}
	var batches [2][]*session.Change
	for range 5 {
		id := begin(t, m, stores[0]).last.ID
		for i := range stores {
			c, err := read(t, m, stores[i], id).change(fmt.Sprint("by ", i))
			if err != nil {
				t.Fatal(err)
			}
			batches[i] = append(batches[i], c)
		}
	}
	slices.Reverse(batches[1])
	middle, err := connect(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := middle.Exec(t.Context(), `SELECT FROM dialai.sessions WHERE id=3 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			for _, err := range s.CommitTogether(t.Context(), batches[i]...) {
				if err != nil && !errors.Is(err, session.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wait(t, "both to be held up", func() bool {
		return ask[int](t, address, `SELECT count(*) FROM pg_stat_activity WHERE datname=current_database() AND wait_event_type='Lock'`) == 2
	})
	if err := middle.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, err := range failed {
		t.Errorf("a transaction has failed: %v", err)
	}
}

// TestFollowers reads the log from place to place beside 16 writers in two processes: nothing is left out
// and nothing comes twice.
func TestFollowers(t *testing.T) {
	address := pgtest.Database(t)
	m := parse(t)
	stores := []*postgres.Store{open(t, address, postgres.Options{}), open(t, address, postgres.Options{})}
	var writers []*writer
	for i := range 16 {
		writers = append(writers, begin(t, m, stores[i%2]))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all(t, writers, 60)
	}()
	var seen []int64
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // and once more
		default:
		}
		last := int64(0)
		if len(seen) > 0 {
			last = seen[len(seen)-1]
		}
		for e, err := range stores[0].Log(t.Context(), "", last) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.Place)
		}
	}
	if want := ask[[]int64](t, address, `SELECT array_agg(place ORDER BY place) FROM log`); !slices.Equal(seen, want) {
		t.Errorf("seen were %d places, there are %d", len(seen), len(want))
	}
}

// TestFenced: what is behind a transaction that is still under way is not read before it has ended.
func TestFenced(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	before, err := func() (int64, error) { begin(t, m, s); return s.Place(t.Context()) }()
	if err != nil || before == 0 {
		t.Fatalf("the newest record is at %d (%v)", before, err)
	}
	conn := connect(t, address)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var drawn int64
	if err := tx.QueryRow(t.Context(), `INSERT INTO dialai.log (session, first, at, events, hash) SELECT session, 1000, at, events, hash FROM dialai.log LIMIT 1 RETURNING place`).Scan(&drawn); err != nil {
		t.Fatal(err)
	}
	begin(t, m, s)
	if place, err := s.Place(t.Context()); err != nil || place != before {
		t.Errorf("the log is read up to %d (%v), and place %d is not decided", place, err, drawn)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if place, err := s.Place(t.Context()); err != nil || place <= drawn {
		t.Errorf("the log is read up to %d (%v), and place %d will never hold anything", place, err, drawn)
	}
}

// TestHOT: nearly all commits leave the indexes of sessions alone. They come one after the other, since what a commit beside them
// still sees stays in its page, and how long that is depends on the computer.
func TestHOT(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const sessions, steps = 10, 40
	for range sessions {
		started, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range steps {
			if tick, err := r.Step(t.Context(), started.ID); err != nil || tick.Status != runner.TickAdvanced {
				t.Fatalf("a step has come to %v (%v)", tick, err)
			}
		}
	}
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // they tell at their end what they have counted
	const stats = ` FROM pg_stat_user_tables WHERE schemaname='dialai' AND relname='sessions'`
	wait(t, "the statistics", func() bool { return ask[int](t, address, `SELECT n_tup_upd`+stats) >= sessions*steps })
	if share := ask[float64](t, address, `SELECT n_tup_hot_upd::float8/n_tup_upd`+stats); share < 0.98 {
		t.Errorf("%.1f %% of updates of sessions are HOT, want 98 %%", 100*share)
	}
}

// TestZero: a model may say U+0000, and so may who stops a session.
func TestZero(t *testing.T) {
	s, m := open(t, pgtest.Database(t), postgres.Options{}), parse(t)
	w := begin(t, m, s)
	c, err := w.change("no\x00thing \xf0\x9f\x98\x80")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), session.ListQuery{})
	if err != nil || len(list) != 1 || list[0].Reason != session.Summarize(c.After).Reason || !strings.Contains(list[0].Reason, "\x00") {
		t.Errorf("listed is %+v (%v)", list, err)
	}
}

// TestPlain: events are stored packed, or as JSON where the address says so, and both are read.
func TestPlain(t *testing.T) {
	address := pgtest.Database(t)
	if _, err := postgres.Open(t.Context(), address, postgres.Options{Existing: true}); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("where there is no store: %v", err)
	}
	m := parse(t)
	w := begin(t, m, open(t, address+"&pack=off", postgres.Options{}))
	w.store = open(t, address, postgres.Options{Existing: true})
	if err := w.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.check(t, w.store.(*postgres.Store))
	if is := ask[string](t, address, `SELECT string_agg(left(encode(events, 'hex'), 2), ' ' ORDER BY place) FROM log`); is != "5b 01" {
		t.Errorf("the records begin with the bytes %s, want those of JSON and of one that is packed", is)
	}
}

// TestPartitions: the partition that follows is made before it is needed, and holds what belongs to it.
func TestPartitions(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	begin(t, m, s)
	const partitions = `SELECT count(*) FROM pg_inherits WHERE inhparent='log'::regclass`
	if n := ask[int](t, address, partitions); n != 2 {
		t.Errorf("at first there are %d partitions, want the first and the default", n)
	}
	exec(t, address, `ALTER TABLE dialai.sessions ALTER COLUMN id RESTART WITH 840000`)
	begin(t, m, s)
	if n := ask[int](t, address, partitions); n != 3 {
		t.Errorf("after four fifths of the first there are %d partitions, want 3", n)
	}
	exec(t, address, `ALTER TABLE dialai.sessions ALTER COLUMN id RESTART WITH 1048576`)
	w := begin(t, m, s)
	if err := w.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.check(t, s)
	if n := ask[int](t, address, `SELECT count(*) FROM log_1`); n != 2 {
		t.Errorf("the second partition has %d records, want 2", n)
	}
	if n := ask[int](t, address, `SELECT count(*) FROM log_default`); n != 0 {
		t.Errorf("the default partition has %d records", n)
	}
}

// TestLease: an owner lives as long as the database says, whatever the clock of anybody is.
func TestLease(t *testing.T) {
	address := pgtest.Database(t)
	mine, other := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	o, err := mine.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := func(alive bool) {
		t.Helper()
		for i, s := range []*postgres.Store{mine, other} {
			if is, err := s.Alive(t.Context(), o.Name()); err != nil || is != alive {
				t.Errorf("to store %d it is alive: %t (%v), want %t", i, is, err, alive)
			}
		}
	}
	want(true)
	left := ask[float64](t, address, `SELECT extract(epoch FROM until-now())::float8 FROM owners`)
	exec(t, address, `UPDATE dialai.owners SET until=until-interval '10 s'`)
	if err := mine.RenewOwners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if renewed := ask[float64](t, address, `SELECT extract(epoch FROM until-now())::float8 FROM owners`); left < 25 || left > 30 || renewed < left-10 || renewed > 30 || renewed < 25 {
		t.Errorf("it lives for %.1f s, and once it was renewed for %.1f", left, renewed)
	}
	exec(t, address, `UPDATE dialai.owners SET until=now()-interval '1 ms'`)
	want(false)
	if err := mine.RenewOwners(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(false) // for good
	if err := o.Release(); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, address, `SELECT count(*) FROM owners`); n != 0 {
		t.Errorf("%d owners are left", n)
	}
}

// TestEpoch: where a store is another one than it was, nothing that was cached counts.
func TestEpoch(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	w := begin(t, m, s)
	o, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Recent(w.last.ID) == nil {
		t.Fatal("nothing is cached")
	}
	exec(t, address, `UPDATE dialai.meta SET epoch=gen_random_uuid()`)
	if err := s.RenewOwners(t.Context()); err != nil { // by a new connection
		t.Fatal(err)
	}
	if s.Recent(w.last.ID) != nil {
		t.Error("the session is still cached")
	}
	if alive, err := s.Alive(t.Context(), o.Name()); err != nil || alive {
		t.Errorf("the owner lives: %t (%v)", alive, err)
	}
}

// TestErrors: errors name host and database, never the password, and say what to do.
func TestErrors(t *testing.T) {
	address := pgtest.Database(t)
	with := func(change func(u *url.URL)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ address, shows, advice string }{
		"another password": {with(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "s3cret") }), u.Host + u.Path, "password"},
		"no such database": {with(func(u *url.URL) { u.Path = "/nobody"; u.User = url.UserPassword(u.User.Username(), password(u)) }), u.Host + "/nobody", "createdb"},
		"nobody listens":   {"postgres://user:s3cret@127.0.0.1:1/db", "store postgres://127.0.0.1:1/db cannot be reached: ", "runs"},
		"a bad port":       {"postgres://user:s3cret@127.0.0.1:s3cret/db", "cannot be read", ""},
		"a bad escape":     {"postgres://user:s3cret%zz@127.0.0.1/db", "cannot be read", ""},
		"a bad setting":    {"postgres://user:s3cret@127.0.0.1/db?sslmode=s3cret", "setting", ""},
		"a second host":    {"postgres://user:s3cret@127.0.0.1:1,127.0.0.1:2/db", "store postgres://127.0.0.1:1/db cannot be reached: ", "runs"},
		"a bad pack":       {"postgres://user:s3cret@127.0.0.1/db?pack=s3cret", "pack=", ""},
		"a bad schema":     {"postgres://user:s3cret@127.0.0.1/db?schema=s3cret;--", "schema", ""},
		"another kind":     {"mysql://user:s3cret@127.0.0.1/db", "cannot be read", ""},
	} {
		_, err := postgres.Open(t.Context(), c.address, postgres.Options{})
		if err == nil || !strings.Contains(err.Error(), c.shows) {
			t.Errorf("%s: %v, which does not show %q", name, err, c.shows)
			continue
		}
		if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "s3cret") || strings.Contains(text, password(u)) {
			t.Errorf("%s: the error shows the password: %s", name, text)
		}
		opening, _ := errors.AsType[*postgres.OpenError](err)
		if c.advice != "" && (opening == nil || !strings.Contains(opening.Advice(), c.advice)) {
			t.Errorf("%s: the error does not say what to do (%q): %v", name, c.advice, err)
		}
	}
}

func password(u *url.URL) string { p, _ := u.User.Password(); return p }

// TestTextsThatCannotBe: what no text of Postgres can hold is found nowhere, as in a file.
func TestTextsThatCannotBe(t *testing.T) {
	s, err := postgres.Open(t.Context(), pgtest.Database(t), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"a\x00b", "\xff"} {
		if _, err := s.List(t.Context(), session.ListQuery{MachineName: name}); !errors.Is(err, session.ErrNotFound) || strings.Contains(err.Error(), "SQLSTATE") {
			t.Errorf("of a machine %q: %v", name, err)
		}
	}
}
