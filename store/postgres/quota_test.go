package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/strategies"
)

// thousand is a quota of a thousand tokens an hour, and two sessions at once.
var thousand = &spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Sliding: true, Tokens: new(int64(1000))}, {Msec: 1 << 45, Tokens: new(int64(1000))}}, MaxSessions: new(int64(2))}

// spender is a process that counts what acme uses.
type spender struct {
	testing.TB
	*postgres.Store
	scope spend.Scope
}

func spends(t testing.TB, s *postgres.Store) *spender {
	t.Helper()
	p := &spender{t, s, spend.Scope{Tenant: "acme", Session: specialist.SessionID{1}.String()}}
	p.ok(s.RecallQuota(t.Context(), "acme", thousand, func(context.Context) (spend.Past, error) { return spend.Past{}, nil }))
	return p
}

func (p *spender) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// call reserves what a call needs that is under way.
func (p *spender) call(name string, tokens int64) session.QuotaHold {
	p.Helper()
	holds, err := p.ReserveQuota(p.Context(), p.scope, thousand, session.QuotaCall{Name: name, Need: spend.Book{Calls: 1, TokensOut: tokens}})
	p.ok(err)
	holds[0].Start()
	return holds[0]
}

// settle says that a call took so many tokens.
func (p *spender) settle(h session.QuotaHold, tokens int64) {
	p.EndQuota(p.Context(), p.scope, session.QuotaEnd{Hold: h, Settled: true, Used: took(tokens)})
}

func took(tokens int64) specialist.Usage {
	return specialist.Usage{NumOutputTokens: tokens, Given: specialist.OutputGiven | specialist.InputGiven}
}

// has fails unless so many tokens are charged and held.
func (p *spender) has(why string, spent, held int64) {
	p.Helper()
	_, err := p.ReserveQuota(p.Context(), p.scope, thousand, session.QuotaCall{Need: spend.Book{Calls: 1, TokensOut: 1 << 40}})
	if over, ok := errors.AsType[*spend.BudgetError](err); !ok || over.Spent != spent || over.Reserved != held {
		p.Errorf("%s: %v, want %d charged and %d held", why, err, spent, held)
	}
}

// TestQuotaOfACrash: what a process held that has ended is charged as expected. If it was not dead after all,
// what it says that the call cost counts as far as it is more, and once.
func TestQuotaOfACrash(t *testing.T) {
	address := pgtest.Database(t)
	living := spends(t, open(t, address, postgres.Options{}))
	for name, took := range map[string]int64{"more": 30, "less": 5} {
		dead := spends(t, open(t, address, postgres.Options{}))
		h := dead.call(name, 10)
		living.has("while the process lives", dead.spent(t, address), 10)
		was := dead.spent(t, address)
		exec(t, address, `UPDATE dialai.owners SET until=now()-interval '1 s' WHERE name IN (SELECT owner FROM dialai.quota_holds WHERE NOT charged)`)
		living.has("after its end", was+10, 0)
		dead.settle(h, took)
		dead.settle(h, took)
		living.has("after it has said what the call took", was+max(10, took), 0)
	}
	dead := spends(t, open(t, address, postgres.Options{}))
	h, was := dead.call("closed", 10), living.spent(t, address)
	dead.LeaveQuotas() // as closing the store does
	living.has("after the store was closed", was+10, 0)
	found, err := living.FindQuota(t.Context(), living.scope, "closed")
	if err != nil || found == nil || h == nil {
		t.Fatalf("found is %v, %v", found, err)
	}
	living.settle(found, 11)
	living.has("after who took over has said what it cost", was+11, 0)
}

// spent returns how many tokens are charged.
func (p *spender) spent(t testing.TB, address string) int64 {
	return ask[int64](t, address, `SELECT coalesce(sum(tokens), 0)::bigint FROM quota WHERE len=3600000`)
}

// TestQuotaWhoseAnswerIsLost: what is sent again, for its answer was lost, counts once.
func TestQuotaWhoseAnswerIsLost(t *testing.T) {
	address := pgtest.Database(t)
	proxy, through := between(t, address, 1)
	far, near := spends(t, open(t, through, postgres.Options{})), spends(t, open(t, address, postgres.Options{}))
	far.settle(far.call("", 1), 1) // it is connected
	lose := func() { proxy.done.Store(1) }
	lost := func(why string) {
		t.Helper()
		if proxy.done.Load() >= 1 {
			t.Errorf("%s: no answer was lost, the test shows nothing", why)
		}
		proxy.done.Store(0)
	}
	lose()
	h := far.call("asked", 10)
	lost("reserving")
	near.has("after reserving", 1, 10)
	lose()
	far.settle(h, 20)
	lost("settling")
	near.has("after settling", 21, 0)
	lose()
	far.EndQuota(t.Context(), far.scope, session.QuotaEnd{Settled: true, Used: took(5)})
	lost("charging")
	near.has("after charging what nobody reserved", 26, 0)
	far.settle(far.call("", 1), 1)
	if rows := ask[int](t, address, `SELECT count(*) FROM quota_holds`); rows > 0 {
		t.Errorf("%d rows are left of calls that are over", rows)
	}
}

// TestQuotaThatCannotBeSaid: while the store does not take what is said, nobody reserves; then it is told what
// it was not told before.
func TestQuotaThatCannotBeSaid(t *testing.T) {
	address := pgtest.Database(t)
	p := spends(t, open(t, address, postgres.Options{}))
	h, other := p.call("", 10), p.call("", 10)
	exec(t, address, `ALTER TABLE dialai.quota_holds RENAME TO away`)
	p.settle(h, 15)
	p.EndQuota(t.Context(), p.scope, session.QuotaEnd{Hold: other})
	if _, err := p.ReserveQuota(t.Context(), p.scope, thousand, session.QuotaCall{Need: spend.Book{Calls: 1}}); err == nil || errors.As(err, new(*spend.BudgetError)) {
		t.Errorf("reserving without the store: %v", err)
	}
	exec(t, address, `ALTER TABLE dialai.away RENAME TO quota_holds`)
	p.has("once it can be said", 25, 0)
}

// TestQuotaWindowsPass: a sliding window forgets by the clock of the database, slot by slot, and slots that
// no window has any more go.
func TestQuotaWindowsPass(t *testing.T) {
	address := pgtest.Database(t)
	p := spends(t, open(t, address, postgres.Options{}))
	p.settle(p.call("", 10), 10)
	later := func(minutes int) {
		exec(t, address, fmt.Sprintf(`UPDATE dialai.quota SET slot=slot-%d WHERE len=3600000`, minutes))
	}
	used := func(window int) int64 {
		t.Helper()
		only := &spend.Quota{Windows: thousand.Windows[window : window+1]}
		_, err := p.ReserveQuota(t.Context(), p.scope, only, session.QuotaCall{Need: spend.Book{Calls: 1, TokensOut: 1 << 40}})
		over, ok := errors.AsType[*spend.BudgetError](err)
		if !ok {
			t.Fatal(err)
		}
		return over.Spent
	}
	later(59)
	if n := used(0); n != 10 {
		t.Errorf("after 59 minutes %d tokens count", n)
	}
	later(2)
	if n := used(0); n != 0 {
		t.Errorf("after 61 minutes %d tokens count", n)
	}
	if n := used(1); n != 10 {
		t.Errorf("in the window that does not slide %d tokens count", n)
	}
	p.settle(p.call("", 10), 10)
	if rows := ask[int](t, address, `SELECT count(*) FROM quota WHERE len=3600000`); rows != 1 {
		t.Errorf("%d slots are kept, want that of now", rows)
	}
}

// TestQuotaOfSessionsNobodyClosed: the room of a session that was never begun is free when who was to begin it is dead, and
// that of one that has ended, after a while; a call that is out keeps it.
func TestQuotaOfSessionsNobodyClosed(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	dead, living := spends(t, open(t, address, postgres.Options{})), spends(t, s)
	ended := begin(t, parse(t), s)
	opens := func(p *spender, id specialist.SessionID, want bool) {
		t.Helper()
		err := p.OpenQuota(t.Context(), spend.Scope{Tenant: "acme", Session: id.String()}, thousand)
		if over := (*spend.BudgetError)(nil); err != nil && !errors.As(err, &over) || (err == nil) != want {
			t.Errorf("opening %s: %v", id, err)
		}
	}
	opens(dead, specialist.SessionID{2}, true)
	opens(living, ended.last.ID, true)
	opens(living, specialist.SessionID{3}, false)
	exec(t, address, `UPDATE dialai.owners SET until=now()-interval '1 s' WHERE name IN (SELECT owner FROM dialai.quota_sessions WHERE session_id='02000000-0000-0000-0000-000000000000')`)
	opens(living, specialist.SessionID{3}, true)
	living.scope.Session = ended.last.ID.String()
	h := living.call("", 1)
	exec(t, address, `UPDATE dialai.sessions SET status=2`)
	opens(living, specialist.SessionID{4}, false)
	exec(t, address, `UPDATE dialai.quota_sessions SET at=now()-interval '61 s'`)
	opens(living, specialist.SessionID{4}, false)
	living.settle(h, 1)
	opens(living, specialist.SessionID{4}, true)
	opens(living, specialist.SessionID{5}, false)
}

// spending is a machine whose only proposer costs a dollar, and says so.
const spending = `{"machineName": "spending", "initialState": "open", "goalState": "done",
	"states": {"open": {"transitions": {"again": "open", "finish": "done"}}, "done": {}},
	"specialists": [{"role": "proposer", "specialistId": "a", "strategyFn": "costly", "estimatedCostUSD": 1},
		{"role": "proposer", "specialistId": "b", "strategyFn": "costly", "estimatedCostUSD": 1},
		{"role": "proposer", "specialistId": "human", "isHuman": true},
		{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`

// company returns a machine whose proposers cost a dollar each, and what makes runners of one tenant that
// has a quota; asked counts its calls.
func company(t testing.TB, q *spend.Quota) (m *machine.Machine, process func(session.Store) *runner.Runner, asked *atomic.Int64) {
	t.Helper()
	m, err := machine.Parse("spending.json", []byte(spending), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	registry := strategies.Registry{}.WithProposer("costly", specialist.ProposerFunc(func(context.Context, specialist.Question) (specialist.Answer, error) {
		asked.Add(1)
		return specialist.Answer{TransitionName: "again", Usage: specialist.Usage{}.WithCost(exact.Dollar)}, nil
	}))
	return m, func(s session.Store) *runner.Runner {
		r, err := runner.New(runner.Config{Store: s, Resolver: strategies.Resolvers{registry}, Quota: func(string) *spend.Quota { return q }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		return r
	}, asked
}

// TestQuotaOfRunners: two processes that run sessions of one tenant at once spend together what the quota
// has, and no more; a third one knows that without reading a log.
func TestQuotaOfRunners(t *testing.T) {
	address := pgtest.Database(t)
	const room = 13
	m, process, asked := company(t, &spend.Quota{Windows: []spend.Window{{Msec: 1 << 45, USD: new(room * exact.Dollar)}}})
	var wg sync.WaitGroup
	var last atomic.Value
	for range 2 {
		r := process(open(t, address, postgres.Options{}))
		for range 3 {
			s, err := r.Start(t.Context(), m, runner.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				for {
					tick, err := r.Step(t.Context(), s.ID)
					if err != nil && !errors.Is(err, session.ErrBusy) {
						t.Error(err)
						return
					}
					if err == nil && tick.Status != runner.TickAdvanced {
						last.Store(tick.Code)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if n := asked.Load(); n != room || last.Load() != "quota_exceeded" && last.Load() != "budget_contended" {
		t.Errorf("%d calls were made where the quota has %d; the last session ended with %v", n, room, last.Load())
	}
	if held := ask[int](t, address, `SELECT count(*) FROM quota_holds WHERE NOT charged`); held > 0 {
		t.Errorf("%d calls hold something after all steps are over", held)
	}
	third := process(unread{open(t, address, postgres.Options{}), t})
	s, err := third.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if tick, err := third.Step(t.Context(), s.ID); err != nil || tick.Code != "quota_exceeded" || asked.Load() != room {
		t.Errorf("the step of a third process came to %s, %v, after %d calls", tick.Code, err, asked.Load())
	}
}

// unread is a store whose logs nobody is to read.
type unread struct {
	*postgres.Store
	t testing.TB
}

func (u unread) Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	u.t.Errorf("the log of session %s is read", id)
	return u.Store.Records(ctx, id, from)
}

// TestQuotaFailsClosed: where the store cannot say whether there is room, nobody is asked, and the session
// is left to be tried again.
func TestQuotaFailsClosed(t *testing.T) {
	address := pgtest.Database(t)
	m, process, asked := company(t, &spend.Quota{Windows: []spend.Window{{Msec: 1 << 45, USD: new(10 * exact.Dollar)}}})
	r := process(open(t, address, postgres.Options{}))
	s, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, address, `ALTER TABLE dialai.quota RENAME TO away`)
	if tick, err := r.Step(t.Context(), s.ID); err == nil || asked.Load() > 0 {
		t.Errorf("the step came to %s, %v, after %d calls", tick.Status, err, asked.Load())
	}
	exec(t, address, `ALTER TABLE dialai.away RENAME TO quota`)
	if tick, err := r.Step(t.Context(), s.ID); err != nil || tick.Status != runner.TickAdvanced {
		t.Errorf("the next step came to %s, %v", tick.Status, err)
	}
}

// TestQuotaRebuilt: verify finds counts that cannot be; after a rebuild, the next process that meets the tenant
// counts what its logs say, once, and so does the first one that has a window that was not counted.
func TestQuotaRebuilt(t *testing.T) {
	address := pgtest.Database(t)
	quota := &spend.Quota{Windows: []spend.Window{{Msec: 1 << 45, USD: new(10 * exact.Dollar)}}, MaxSessions: new(int64(3))}
	m, process, asked := company(t, quota)
	s, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := process(s)
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Step(t.Context(), started.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	counts := func(why string) {
		t.Helper()
		is := ask[string](t, address, `SELECT coalesce(string_agg(format('%s %s %s', len, calls, pico), ', ' ORDER BY len), '') || (SELECT format('; %s open', count(*)) FROM quota_sessions WHERE open) FROM quota`)
		if want := fmt.Sprintf("%d %d %d; 1 open", int64(1)<<45, asked.Load(), asked.Load()*int64(exact.Dollar)); is != want {
			t.Errorf("%s: counted are %q, want %q", why, is, want)
		}
	}
	counts("as it was used")
	other := open(t, address, postgres.Options{})
	verify := func(want bool, why string) {
		t.Helper()
		report, err := other.Verify(t.Context(), session.NewPrograms(), nil)
		if err != nil || (report.Difference == nil) != want {
			t.Errorf("%s: verify finds %+v, %v", why, report.Difference, err)
		}
	}
	verify(true, "as it was used")
	for _, wrong := range []string{
		`UPDATE dialai.quota SET calls=-1`, `UPDATE dialai.quota SET slot=slot+2`, `DELETE FROM dialai.quota_windows WHERE len>0`, `UPDATE dialai.quota_windows SET parts=9`,
		`INSERT INTO dialai.quota_holds VALUES (gen_random_uuid(), 'acme', gen_random_uuid(), '', '', true, -1, 0, 0, 0)`,
	} {
		exec(t, address, wrong)
		verify(false, wrong)
		if _, err := other.Rebuild(t.Context(), session.NewPrograms(), nil); err != nil {
			t.Fatal(err)
		}
		verify(true, "rebuilt")
		if n := ask[int](t, address, `SELECT (SELECT count(*) FROM quota)+(SELECT count(*) FROM quota_holds)+(SELECT count(*) FROM quota_windows)+(SELECT count(*) FROM quota_sessions)`); n != 0 {
			t.Errorf("after a rebuild %d rows are left", n)
		}
		s, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := process(s)
		if _, err := r.Step(t.Context(), started.ID); err != nil {
			t.Fatal(err)
		}
		counts("after " + wrong)
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkQuota compares reserving a wave of three with the least that processes could do which share a number: a transaction
// that takes a lock, updates a row, and commits. It takes turns.
func BenchmarkQuota(b *testing.B) {
	address := pgtest.Start(b, true).Database(b)
	p := spends(b, open(b, address, postgres.Options{}))
	conn := connect(b, address)
	exec(b, address, `CREATE TABLE numbers (id int PRIMARY KEY, n bigint); INSERT INTO numbers VALUES (1, 0)`)
	wave := make([]session.QuotaCall, 3)
	for i := range wave {
		wave[i] = session.QuotaCall{Name: fmt.Sprint(i), Need: spend.Book{Calls: 1, TokensOut: 1}}
	}
	reserve := func() {
		holds, err := p.ReserveQuota(b.Context(), p.scope, thousand, wave...)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		var ends []session.QuotaEnd
		for _, h := range holds {
			ends = append(ends, session.QuotaEnd{Hold: h})
		}
		p.EndQuota(b.Context(), p.scope, ends...)
		b.StartTimer()
	}
	update := func() {
		err := pgx.BeginFunc(b.Context(), conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(b.Context(), `SELECT pg_advisory_xact_lock(1)`); err != nil {
				return err
			}
			_, err := tx.Exec(b.Context(), `UPDATE numbers SET n=n+1 WHERE id=1`)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	reserve()
	update()
	var reserving, updating time.Duration
	for b.Loop() {
		began := b.Elapsed()
		reserve()
		between := b.Elapsed()
		update()
		reserving, updating = reserving+between-began, updating+b.Elapsed()-between
	}
	b.ReportMetric(float64(reserving.Microseconds())/float64(b.N), "µs/reserve")
	b.ReportMetric(float64(updating.Microseconds())/float64(b.N), "µs/update")
	b.ReportMetric(float64(reserving)/float64(max(1, updating)), "×update")
}
