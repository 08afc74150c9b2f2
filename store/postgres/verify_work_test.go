package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// audited returns what a check of a store finds.
func audited(t testing.TB, s *postgres.Store) (store.Report, string) {
	t.Helper()
	report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference == nil {
		return report, ""
	}
	return report, report.Difference.Error()
}

// TestVerifyWork: a row of work by which a session would be carried on by nobody is found, and made anew by a
// rebuild; one that costs a step in vain at most is no difference.
func TestVerifyWork(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	running, undriven, waiting := begin(t, m, s), (*session.Session)(nil), begin(t, m, s)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if undriven, err = r.Start(t.Context(), m, runner.StartOptions{Undriven: true}); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Propose(t.Context(), runner.Submission{SessionID: waiting.last.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
	if err != nil {
		t.Fatal(err)
	}
	ended := begin(t, m, s)
	if err := ended.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found := audited(t, s); found != "" {
		t.Fatalf("in a store that nobody has touched there is %s", found)
	}
	row := func(id specialist.SessionID) string {
		return fmt.Sprintf(`WHERE session=(SELECT id FROM sessions WHERE session_id='%s')`, id)
	}
	for _, c := range []struct{ alter, want string }{
		{`UPDATE work SET ready_at=NULL ` + row(running.last.ID), "never ready"},
		{`UPDATE work SET ready_at=now()+interval '2 hours' ` + row(running.last.ID), "later than its log says"},
		{`UPDATE work SET lane=NULL ` + row(running.last.ID), "has no lane"},
		{`UPDATE work SET lane=lane+1 ` + row(running.last.ID), "not its machine"},
		{`UPDATE work SET failures=-1 ` + row(running.last.ID), "negative"},
		{`INSERT INTO work (session, lane) SELECT id, machine FROM sessions WHERE session_id='` + ended.last.ID.String() + `'`, "1 rows are of sessions that have ended"},
		{`INSERT INTO work (session) VALUES (4711)`, "1 rows are of sessions"},
		{`UPDATE work SET owner=4711, ready_at=NULL ` + row(running.last.ID), ""},
		{`UPDATE work SET ready_at=now()-interval '1 year', failures=3, crashes=2`, ""},
		{`UPDATE work SET quarantined='because' ` + row(waiting.last.ID), ""},
		{`UPDATE work SET owner=1, quarantined='x' ` + row(running.last.ID), "leased and quarantined"},
		{`DELETE FROM work ` + row(running.last.ID), ""}, // for nobody carries sessions on: who does first makes it
	} {
		exec(t, address, `SET search_path=dialai; `+c.alter)
		_, found := audited(t, s)
		if (found == "") != (c.want == "") || !strings.Contains(found, c.want) || found != "" && !strings.HasSuffix(found, "dialai store rebuild repairs it") {
			t.Errorf("%s: found is %q, want %q", c.alter, found, c.want)
		}
		if _, err := s.Rebuild(t.Context(), session.NewPrograms(), nil); err != nil {
			t.Fatalf("%s: %v", c.alter, err)
		}
		if _, found := audited(t, s); found != "" {
			t.Errorf("%s: after a rebuild there is %s", c.alter, found)
		}
	}
	if reason := ask[string](t, address, `SELECT coalesce(convert_from(quarantined, 'UTF8'), '') FROM work `+row(waiting.last.ID)); reason != "because" {
		t.Errorf("after a rebuild what was quarantined is quarantined for %q", reason)
	}
	if lanes := ask[int](t, address, `SELECT count(lane) FROM work `+row(undriven.ID)); lanes != 0 {
		t.Error("a rebuild has a session carried on that nobody is to carry on")
	}
	join(t, s)
	exec(t, address, `SET search_path=dialai; DELETE FROM work `+row(running.last.ID))
	if _, found := audited(t, s); !strings.Contains(found, "has no row") {
		t.Errorf("while a process carries sessions on and one has no row, found is %q", found)
	}
}

// timed is a store whose clock is another one.
type timed struct {
	*postgres.Store
	now func() time.Time
}

func (s timed) Now() time.Time { return s.now() }

// TestVerifyQuotasBefore: what sessions have spent that ended before a quota was read first counts in it, and a check
// of the store sums it up, too, in the windows that it is in; so it does with a window that is read later.
func TestVerifyQuotasBefore(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	m, without, _ := company(t, nil)
	quota := func(windows ...spend.Window) *runner.Runner {
		_, process, _ := company(t, &spend.Quota{Windows: windows})
		return process(s)
	}
	ago := timed{s, func() time.Time { return time.Now().Add(-2 * time.Hour) }}
	spends := func(r *runner.Runner, ends bool) {
		t.Helper()
		started, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err == nil {
			_, err = r.Step(t.Context(), started.ID)
		}
		if err == nil && ends {
			err = read(t, m, s, started.ID).commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	counted := func(want string) {
		t.Helper()
		if report, found := audited(t, s); found != "" || len(report.Quotas) > 0 {
			t.Errorf("found is %q, and quotas %+v", found, report.Quotas)
		}
		if is := ask[string](t, address, `SELECT string_agg(n::text, ' ' ORDER BY len) FROM (SELECT len, sum(calls) AS n FROM quota GROUP BY len) x`); is != want {
			t.Errorf("counted are %s calls, want %s", is, want)
		}
	}
	spends(without(ago), true)
	spends(without(s), true)
	hour, days := spend.Window{Msec: 3_600_000, Sliding: true, USD: new(100 * exact.Dollar)}, spend.Window{Msec: 1 << 45, USD: new(100 * exact.Dollar)}
	spends(quota(hour), false)
	counted("2")
	spends(without(s), true)
	spends(quota(hour, days), false)
	counted("4 5")
}

// TestVerifyQuotas: what quotas have counted is what the logs say, and where it is not, both are told; that
// is no damage.
func TestVerifyQuotas(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	m, process, _ := company(t, &spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Sliding: true, USD: new(100 * exact.Dollar)}, {Msec: 1 << 45, USD: new(100 * exact.Dollar)}}})
	r := process(s)
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	for range 3 {
		if err == nil {
			_, err = r.Step(t.Context(), started.ID)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if report, found := audited(t, s); found != "" || len(report.Quotas) > 0 {
		t.Fatalf("found is %q, and quotas %+v", found, report.Quotas)
	}
	exec(t, address, `UPDATE dialai.quota SET calls=calls-2, tokens=tokens+7, pico=pico-1000000000000 WHERE len=3600000`)
	report, found := audited(t, s)
	want := store.QuotaCount{WindowMsec: 3_600_000,
		Counted: store.QuotaUse{Calls: 1, Tokens: 7, CostUSD: 2 * exact.Dollar}, Logged: store.QuotaUse{Calls: 3, CostUSD: 3 * exact.Dollar}}
	if found != "" || len(report.Quotas) != 1 || report.Quotas[0] != want {
		t.Errorf("found is %q, and quotas %+v, want %+v", found, report.Quotas, want)
	}
	exec(t, address, `DELETE FROM dialai.quota`)
	if report, _ := audited(t, s); len(report.Quotas) != 2 || report.Quotas[1].Logged.Calls != 3 || report.Quotas[1].Counted.Calls != 0 {
		t.Errorf("without counts, quotas are %+v", report.Quotas)
	}
}
