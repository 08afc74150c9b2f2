package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/strategies"
)

// hurried opens a store whose leases run out ten times as fast.
func hurried(t testing.TB, address string) *postgres.Store {
	return open(t, address, postgres.Hurried(postgres.Options{}, hurry))
}

// join has a store hand sessions out until the test ends.
func join(t testing.TB, s *postgres.Store) session.Worker {
	t.Helper()
	w, err := s.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// claim claims up to n sessions.
func claim(t testing.TB, w session.Worker, n int) []session.Lease {
	t.Helper()
	leases, err := w.Claim(t.Context(), session.Wanted{Sessions: n})
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// claims waits until there is a session to claim.
func claims(t testing.TB, w session.Worker) (l session.Lease) {
	t.Helper()
	wait(t, "a session to claim", func() bool {
		leases := claim(t, w, 1)
		if len(leases) > 0 {
			l = leases[0]
		}
		return len(leases) > 0
	})
	return l
}

// dies has the database take whoever has leased sessions for dead.
func dies(t testing.TB, address string) {
	t.Helper()
	exec(t, address, `UPDATE dialai.owners SET until=now()-interval '1 s' WHERE id IN (SELECT owner FROM dialai.work)`)
}

// TestReaped: a session whose process has died is handed out again, and after three in a row to nobody, until
// a human does something with it. A commit in between shows that it was not the session, but for one that only asks:
// a process may die of the answer. What the dead one gives back later changes nothing.
func TestReaped(t *testing.T) {
	address := pgtest.Database(t)
	s, m := hurried(t, address), parse(t)
	w := begin(t, m, s)
	id := w.last.ID
	crash := func(crashes int) {
		t.Helper()
		other := hurried(t, address)
		dead := join(t, other)
		if l := claims(t, dead); l.Session != id || l.Crashes != crashes {
			t.Errorf("the lease is %+v, want that of the session after %d crashes", l, crashes)
		}
		dies(t, address)
		before := ask[string](t, address, `SELECT format('%s %s', fence, crashes) FROM work`)
		living := join(t, s)
		wait(t, "the session to be freed", func() bool {
			return ask[int](t, address, `SELECT count(*) FROM work WHERE crashes=$1`, crashes+1) == 1
		})
		if err := living.Close(t.Context()); err != nil {
			t.Error(err)
		}
		was := ask[string](t, address, `SELECT format('%s %s %s', owner, fence, ready_at) FROM work`)
		if err := dead.Release(t.Context(), session.Release{Session: id, After: -1}); err != nil {
			t.Error(err)
		}
		if is := ask[string](t, address, `SELECT format('%s %s %s', owner, fence, ready_at) FROM work`); is != was {
			t.Errorf("the dead one has made %q of %q, which was leased as %q", is, was, before)
		}
	}
	crash(0)
	crash(1)
	living := join(t, s)
	claims(t, living)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Step(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := living.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	quarantined := func(want int) {
		t.Helper()
		list, err := s.Quarantined(t.Context(), specialist.SessionID{}, 1)
		if err != nil || len(list) != want || want == 1 && (list[0].Session != id || list[0].Crashes != 3 || list[0].Reason == "") {
			t.Fatalf("quarantined are %+v (%v), want %d", list, err, want)
		}
		if want == 1 {
			w := join(t, s)
			if l := claim(t, w, 1); len(l) > 0 {
				t.Errorf("it is handed out: %+v", l)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for i := range 3 {
		living := join(t, s)
		claims(t, living)
		asking, err := writerOf(t.Context(), m, s, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := asking.ask(t.Context(), int32(i+1)); err != nil {
			t.Fatal(err)
		}
		if err := living.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		crash(i)
	}
	quarantined(1)
	if err := s.Free(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	quarantined(0)
	for _, free := range []func() error{
		func() error { return s.Free(t.Context(), id) },
		func() error {
			_, err := r.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
			return err
		},
		func() error {
			_, err := r.Resume(t.Context(), id, runner.ResumeOptions{})
			return err
		},
	} {
		for i := range 3 {
			crash(i)
		}
		quarantined(1)
		if err := free(); err != nil {
			t.Fatal(err)
		}
		quarantined(0)
	}
}

// TestSuspects: a process holds one session at a time of those that may end it, beside others, and another
// once that has come to something.
func TestSuspects(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	for range 4 {
		begin(t, m, s)
	}
	exec(t, address, `UPDATE dialai.work SET crashes=2 WHERE session<=3`)
	one, two := join(t, s), join(t, open(t, address, postgres.Options{}))
	first := claim(t, one, 10)
	if len(first) != 2 {
		t.Fatalf("claimed are %+v, want one that is harmless and one that is not", first)
	}
	if second := claim(t, two, 10); len(second) != 1 || second[0].Crashes != 2 {
		t.Fatalf("another process has claimed %+v, want one that is not harmless", second)
	}
	if more := claim(t, one, 10); len(more) != 0 {
		t.Fatalf("with one that is not harmless %+v was claimed", more)
	}
	for _, l := range first {
		if err := one.Release(t.Context(), session.Release{Session: l.Session, After: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if more := claim(t, one, 10); len(more) != 1 {
		t.Fatalf("without one %+v was claimed, want the third", more)
	}
}

// TestFailures: a session whose step fails is handed out later each time, and not at all after eight.
func TestFailures(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	begin(t, parse(t), s)
	w := join(t, s)
	const reason = "the service says\x00no"
	for i := range 8 {
		l := claims(t, w)
		if l.Failures != i {
			t.Errorf("it has failed %d times, the lease says %d", i, l.Failures)
		}
		if err := w.Release(t.Context(), session.Release{Session: l.Session, Failed: reason}); err != nil {
			t.Fatal(err)
		}
		want := min(float64(int(1)<<i), 300)
		if in := ask[float64](t, address, `SELECT extract(epoch FROM ready_at-now())::float8 FROM work`); in < 0.8*want-10 || in > 1.2*want {
			t.Errorf("after failure %d it is ready in %.1f s, want %.0f", i+1, in, want)
		}
		exec(t, address, `UPDATE dialai.work SET ready_at=now()`)
	}
	list, err := s.Quarantined(t.Context(), specialist.SessionID{}, 0)
	if err != nil || len(list) != 1 || list[0].Reason != reason || list[0].Failures != 8 {
		t.Errorf("quarantined are %+v (%v)", list, err)
	}
	if l := claim(t, w, 1); len(l) > 0 {
		t.Errorf("it is handed out: %+v", l)
	}
}

// TestQuarantinedPages: pages of quarantined sessions lead to each of them once, in the order in which they were started.
func TestQuarantinedPages(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	var want, got []specialist.SessionID
	for range 5 {
		want = append(want, begin(t, m, s).last.ID)
	}
	exec(t, address, `UPDATE dialai.work SET quarantined='because' WHERE session<>3`)
	for after := (specialist.SessionID{}); ; after = got[len(got)-1] {
		page, err := s.Quarantined(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 || len(got) > 5 {
			break
		}
		for _, q := range page {
			got = append(got, q.Session)
		}
	}
	if want = slices.Delete(want, 2, 3); !slices.Equal(got, want) {
		t.Errorf("quarantined are %v, want %v", got, want)
	}
}

// TestElsewhere: what cannot be stepped here is left to others.
func TestElsewhere(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	begin(t, parse(t), s)
	here, there := join(t, s), join(t, open(t, address, postgres.Options{}))
	l := claims(t, here)
	if err := here.Release(t.Context(), session.Release{Session: l.Session, Sequence: l.Sequence, Elsewhere: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if again := claim(t, here, 1); len(again) > 0 {
		t.Errorf("the one that cannot step it has it again: %+v", again)
	}
	if got := claim(t, there, 1); len(got) != 1 {
		t.Errorf("another one has claimed %+v", got)
	}
}

// TestElsewhereMany: a process that leaves more sessions to others than it can remember leaves them the machine that
// has the most, for as long; nobody else is kept from any of them, and it goes on with those of other machines.
func TestElsewhereMany(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	newer := begin(t, m, s).last.ID
	here, there := join(t, s), join(t, open(t, address, postgres.Options{}))
	claims(t, here)
	other, err := machine.Parse("other.json", []byte(strings.Replace(looping, `"looping"`, `"other"`, 1)), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	begin(t, m, s)
	another := begin(t, other, s).last.ID
	id := ask[int64](t, address, `SELECT machine FROM dialai.sessions WHERE session_id='`+newer.String()+`'`)
	postgres.LeaveMany(here, id, time.Hour)
	if err := here.Release(t.Context(), session.Release{Session: newer, Elsewhere: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := claim(t, here, 3); len(got) != 1 || got[0].Session != another {
		t.Errorf("who leaves too many of a machine to others has claimed %+v, want that of the other machine", got)
	}
	exec(t, address, `UPDATE dialai.work SET crashes=2 WHERE owner IS NULL`)
	if got := claim(t, here, 3); len(got) > 0 {
		t.Errorf("who leaves too many of a machine to others has claimed %+v, which have ended processes", got)
	}
	exec(t, address, `UPDATE dialai.work SET crashes=0`)
	if got := claim(t, there, 3); len(got) != 2 {
		t.Errorf("another one has claimed %+v, want the two of the machine", got)
	}
}

// TestStrays: what an owner has without knowing it, for an answer was lost, is handed out again, and what a
// store has no row of gets one.
func TestStrays(t *testing.T) {
	address := pgtest.Database(t)
	s, m := hurried(t, address), parse(t)
	w := join(t, s)
	begin(t, m, s)
	exec(t, address, `UPDATE dialai.work SET owner=(SELECT id FROM dialai.owners), ready_at=NULL, fence=7`)
	if l := claims(t, w); l.Crashes != 0 {
		t.Errorf("the lease is %+v, want one of nobody's crash", l)
	}
	begin(t, m, s)
	exec(t, address, `DELETE FROM dialai.work`)
	if got := claim(t, join(t, hurried(t, address)), 3); len(got) != 2 {
		t.Errorf("claimed are %+v, want both sessions", got)
	}
}

// TestMissingMigration: a migration that a store has not seen is applied, whatever came after it.
func TestMissingMigration(t *testing.T) {
	address := pgtest.Database(t)
	if _, err := postgres.Migrate(t.Context(), address, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	s, m := open(t, address, postgres.Options{}), parse(t)
	begin(t, m, s)
	exec(t, address, `DROP TABLE dialai.work; ALTER TABLE dialai.owners DROP COLUMN works; DELETE FROM dialai.goose_db_version WHERE version_id=3;
		INSERT INTO dialai.goose_db_version (version_id, is_applied) VALUES (1000, true)`)
	applied, err := postgres.Migrate(t.Context(), address, postgres.Options{})
	if err != nil || !slices.Equal(applied, []string{"0003_work.sql"}) {
		t.Fatalf("applied are %v (%v)", applied, err)
	}
	if got := claim(t, join(t, open(t, address, postgres.Options{})), 3); len(got) != 1 {
		t.Errorf("claimed are %+v, want the session that was there before", got)
	}
}

// TestMigratedSessions: sessions that there were before rows said who carries them on, and since when they wait, have
// what their logs say.
func TestMigratedSessions(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	begin(t, m, s)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Start(t.Context(), m, runner.StartOptions{Driver: session.DriverNone}); err != nil {
		t.Fatal(err)
	}
	for _, drivers := range [][]session.Driver{{session.DriverTemporal}, {session.DriverTemporal, session.DriverPool}, {session.DriverTemporal, session.DriverNone}} {
		one, err := r.Start(t.Context(), m, runner.StartOptions{})
		for _, d := range drivers {
			if err == nil {
				_, err = r.SetDriver(t.Context(), one.ID, d, nil)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asking, err := machine.Parse("asking.json", []byte(`{"machineName": "asking", "initialState": "open", "goalState": "done", "states": {"open": {"transitions": {"finish": "done"}}, "done": {}},
		"specialists": [{"role": "proposer", "specialistId": "human", "isHuman": true}, {"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	waits, err := r.Start(t.Context(), asking, runner.StartOptions{})
	if err == nil {
		_, err = r.Step(t.Context(), waits.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.List(t.Context(), session.ListQuery{})
	if err != nil || len(before) != 6 || before[5].Since == 0 {
		t.Fatalf("there are %d sessions (%v)", len(before), err)
	}
	exec(t, address, `ALTER TABLE dialai.sessions DROP COLUMN driver, DROP COLUMN since; DELETE FROM dialai.goose_db_version WHERE version_id IN (10, 11)`)
	var told []string
	migrating := postgres.Options{Migrating: func(part string, done, of int64) { told = append(told, fmt.Sprintf("%s: %d of %d", part, done, of)) }}
	if applied, err := postgres.Migrate(t.Context(), address, migrating); err != nil || len(applied) < 2 || applied[0] != "0010_driver.sql" || applied[1] != "0011_since.sql" {
		t.Fatalf("applied are %v (%v)", applied, err)
	}
	if want := []string{"reading the log: 12 of 12", "reading since when sessions wait: 1 of 1"}; !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
	again := open(t, address, postgres.Options{})
	if after, err := again.List(t.Context(), session.ListQuery{}); err != nil || !slices.Equal(after, before) {
		t.Errorf("listed are %+v, before it were %+v (%v)", after, before, err)
	}
	if report, err := again.Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("Verify = %v, %v", report.Difference, err)
	}
}

// TestOwnerLost: where the database is not heard of any more, the steps under way end with ErrOwnerLost before
// others may take the sessions; when it is, the process goes on under another name.
func TestOwnerLost(t *testing.T) {
	address := pgtest.Database(t)
	direct := hurried(t, address)
	p, through := between(t, address, 1)
	s := hurried(t, through)
	asked, ended := make(chan struct{}, 100), make(chan error, 100)
	var once atomic.Bool // a step has ended
	registry := strategies.Registry{}.WithProposer("slow", specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		asked <- struct{}{}
		if !p.silent.Load() && once.Load() {
			return q.Choose(q.Transitions()[0], "at last"), nil
		}
		<-ctx.Done()
		once.Store(true)
		ended <- context.Cause(ctx)
		return specialist.Answer{}, ctx.Err()
	}))
	m, err := machine.Parse("slow.json", []byte(`{"machineName": "slow", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {"go": "b"}}, "b": {}},
		"specialists": [{"role": "proposer", "specialistId": "slow", "strategyFn": "slow"}, {"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	d := driver.New(driver.Config{Workers: 2, Grace: time.Millisecond})
	r, err := runner.New(runner.Config{Store: s, Resolver: registry, Observer: d.Observer("main")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Start(t.Context(), m, runner.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx, driver.Tenant{Name: "main", Runner: r}) }()
	<-asked
	before, err := direct.Workers(t.Context())
	if err != nil || len(before) != 1 || before[0].Leases != 1 {
		t.Fatalf("the workers are %+v (%v), want one with a lease", before, err)
	}
	p.silent.Store(true)
	if err := <-ended; !errors.Is(err, session.ErrOwnerLost) {
		t.Errorf("the step has ended with %v, want ErrOwnerLost", err)
	}
	if n := ask[int](t, address, `SELECT count(*) FROM owners WHERE works AND until>now()`); n != 1 {
		t.Error("the step has ended only after others might have taken the session")
	}
	p.silent.Store(false)
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // what was kept back never comes
	wait(t, "the session to end", func() bool {
		return ask[int](t, address, `SELECT count(*) FROM sessions WHERE status=2`) == 1
	})
	after, err := direct.Workers(t.Context())
	if err != nil || len(after) == 0 || after[len(after)-1].Name == before[0].Name {
		t.Errorf("the workers are %+v (%v), was %+v", after, err, before)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNewerSession: a session that a newer version has written to is refused as that, is left to others for as long as the
// driver says, and counts no failure, however many there are of the kind.
func TestNewerSession(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	w := begin(t, m, s)
	id, events := w.last.ID, fmt.Sprintf(`[{"seq":%d,"at":"2026-11-22T00:00:00Z","kind":"foretold"}]`, w.last.Sequence+1)
	hash := session.Chain(*w.last.Head, id.String(), []byte(events))
	exec(t, address, fmt.Sprintf(`SET search_path=dialai; INSERT INTO log (session, first, at, events, hash) SELECT id, sequence+1, 1, '%s'::text::bytea, '\x%x' FROM sessions; UPDATE sessions SET sequence=sequence+1, head='\x%[2]x'`, strings.ReplaceAll(events, `\`, `\\`), hash[:]))
	later := open(t, address, postgres.Options{})
	if _, err := later.Load(t.Context(), session.NewPrograms(), id); !errors.As(err, new(*session.NewerError)) {
		t.Errorf("loading it says %v", err)
	}
	if report, found := audited(t, later); report.Difference == nil || report.Difference.Kind != "newer" || !strings.HasSuffix(found, "then look again") {
		t.Errorf("found is %q", found)
	}
	here, there := join(t, s), join(t, later)
	release := func(w session.Worker) {
		t.Helper()
		if l := claims(t, w); l.Session != id || l.Failures != 0 {
			t.Errorf("claimed is %+v", l)
		}
		if err := w.Release(t.Context(), session.Release{Session: id, Elsewhere: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	release(here)
	if again := claim(t, here, 1); len(again) > 0 {
		t.Error("who has left it to others claims it again at once")
	}
	release(there)
	if failures := ask[int](t, address, `SELECT failures+crashes+(quarantined IS NOT NULL)::int FROM work`); failures != 0 {
		t.Errorf("%d failures were counted", failures)
	}
}

// TestOutgrown: a process notices with its next renewal that the store is for newer versions only: it is handed out no session any
// more, and what it has it may bring to an end. Nor may it join again.
func TestOutgrown(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	held := begin(t, m, s)
	w := join(t, s)
	claims(t, w)
	begin(t, m, s)
	renew, err := s.Renewing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, address, `UPDATE dialai.meta SET min_writer=99`)
	renew()
	if _, err := w.Claim(t.Context(), session.Wanted{Sessions: 1}); !errors.As(err, new(*session.NewerError)) {
		t.Errorf("claiming: %v", err)
	}
	if _, err := s.Join(t.Context()); !errors.As(err, new(*session.NewerError)) {
		t.Errorf("joining: %v", err)
	}
	if err := held.commit(t.Context()); err != nil {
		t.Errorf("ending what was begun: %v", err)
	}
	exec(t, address, `UPDATE dialai.meta SET min_writer=1`) // so that it can be closed
}
