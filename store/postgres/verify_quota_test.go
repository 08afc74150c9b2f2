package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

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

// TestVerifyQuotaDamage: what quotas cannot have counted is damage that a rebuild repairs; what has left its window is none.
func TestVerifyQuotaDamage(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	m, process, _ := company(t, &spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Sliding: true, USD: new(100 * exact.Dollar)}, {Msec: 1 << 45, USD: new(100 * exact.Dollar)}}})
	r := process(s)
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err == nil {
		_, err = r.Step(t.Context(), started.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	exec(t, address, `CREATE TABLE saved_quota AS TABLE dialai.quota; CREATE TABLE saved_windows AS TABLE dialai.quota_windows`)
	const hold = `INSERT INTO dialai.quota_holds (id, tenant, session, call, owner, charged, calls, tokens_in, tokens_out, pico) VALUES (gen_random_uuid(), '', gen_random_uuid(), '', '', true, `
	for _, c := range []struct{ alter, want string }{
		{`UPDATE dialai.quota SET calls=-1`, "a negative count in the window of"},
		{`UPDATE dialai.quota SET tokens=-1 WHERE len=3600000`, "a negative count in the window of 3600000 ms"},
		{`UPDATE dialai.quota SET pico=-1 WHERE len<>3600000`, "a negative count in the window of 35184372088832 ms"},
		{hold + `-1, 0, 0, 0)`, "what a call holds is negative"},
		{hold + `0, -1, 0, 0)`, "what a call holds is negative"},
		{hold + `0, 0, -1, 0)`, "what a call holds is negative"},
		{hold + `0, 0, 0, -1)`, "what a call holds is negative"},
		{hold + `1, 1, 1, 1)`, ""},
		{`UPDATE dialai.quota SET slot=slot+3`, "a count of what is still to come"},
		{`UPDATE dialai.quota SET len=len+1`, "that is none"},
		{`UPDATE dialai.quota_windows SET parts=2 WHERE len=3600000`, "a window of 3600000 ms is divided otherwise"},
		{`UPDATE dialai.quota_windows SET step=7 WHERE len=0`, "a window of 0 ms is divided otherwise"},
		{`INSERT INTO dialai.quota SELECT tenant, len, step, slot-1000, 5, 5, 5 FROM dialai.quota`, ""},
	} {
		exec(t, address, c.alter)
		report, found := audited(t, s)
		if (found == "") != (c.want == "") || !strings.Contains(found, c.want) || found != "" && !strings.HasSuffix(found, "dialai store rebuild repairs it") {
			t.Errorf("%s: found is %q, want %q", c.alter, found, c.want)
		}
		if found == "" && len(report.Quotas) > 0 {
			t.Errorf("%s: quotas are %+v", c.alter, report.Quotas)
		}
		exec(t, address, `TRUNCATE dialai.quota, dialai.quota_windows, dialai.quota_holds; INSERT INTO dialai.quota TABLE saved_quota; INSERT INTO dialai.quota_windows TABLE saved_windows`)
	}
	if report, found := audited(t, s); found != "" || len(report.Quotas) > 0 {
		t.Errorf("in the end there is %q, and quotas %+v", found, report.Quotas)
	}
}
