package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// A wrongClock is a process whose clock is up to ten minutes off, and jumps.
type wrongClock struct {
	*spender
	off atomic.Int64
}

// wrongClocks returns processes that count what one tenant uses.
func wrongClocks(t *testing.T, address string, n int, q *spend.Quota) (list []*wrongClock) {
	t.Helper()
	for range n {
		p := &wrongClock{}
		s := open(t, address, postgres.Timed(postgres.Options{}, func() time.Time { return time.Now().Add(time.Duration(p.off.Load())) }))
		p.spender = &spender{t, s, spend.Scope{Tenant: "acme", Session: specialist.SessionID{1}.String()}}
		p.ok(s.RecallQuota(t.Context(), "acme", q, func(context.Context) (spend.Past, error) { return spend.Past{}, nil }))
		list = append(list, p)
	}
	return list
}

// jump sets the clock of a process.
func (p *wrongClock) jump(rng *rand.Rand) {
	p.off.Store(rng.Int64N(int64(20*time.Minute)) - int64(10*time.Minute))
}

// A usage is what a tenant uses, as who has done all of it knows.
type usage struct {
	*testing.T
	clock   *pgx.Conn // of the database
	quota   *spend.Quota
	held    []usageHold
	charges []charge
}

type usageHold struct {
	by     *wrongClock
	hold   session.QuotaHold
	tokens int64
}

// A charge is what a call took, at some time between two moments, in ms by the clock of the database.
type charge struct{ tokens, from, to int64 }

func (u *usage) now() (ms int64) {
	u.Helper()
	if err := u.clock.QueryRow(u.Context(), `SELECT floor(extract(epoch FROM clock_timestamp())*1000)::bigint`).Scan(&ms); err != nil {
		u.Fatal(err)
	}
	return ms
}

// charged returns how many tokens count in a window at least and at most at some time between two moments.
func (u *usage) charged(w spend.Span, from, to int64) (least, most int64) {
	for _, c := range u.charges {
		if to/w.Step-c.from/w.Step < w.Parts {
			least += c.tokens
		}
		if from/w.Step-c.to/w.Step < w.Parts {
			most += c.tokens
		}
	}
	return least, most
}

func (u *usage) reserved() (tokens int64) {
	for _, h := range u.held {
		tokens += h.tokens
	}
	return tokens
}

// reserve has a process reserve a call, and reports whether it was given.
func (u *usage) reserve(p *wrongClock, need, limit int64) bool {
	u.Helper()
	from := u.now()
	holds, err := p.ReserveQuota(u.Context(), p.scope, u.quota, session.QuotaCall{Need: spend.Book{Calls: 1, TokensOut: need}})
	to := u.now()
	if err != nil && !errors.As(err, new(*spend.BudgetError)) {
		u.Fatal(err)
	}
	full, reserved := false, u.reserved()
	for i, w := range u.quota.Spans() {
		least, most := u.charged(w, from, to)
		full = full || most+reserved+need > limit
		if err == nil && least+reserved+need > limit {
			u.Fatalf("window %d has %d, of which %d are charged at least and %d held, and a call that needs %d is given", i, limit, least, reserved, need)
		}
	}
	if err != nil {
		if !full {
			u.Fatalf("there is room for a call that needs %d, and it is refused: %v", need, err)
		}
		return false
	}
	holds[0].Start()
	u.held = append(u.held, usageHold{p, holds[0], need})
	return true
}

// looks has a process say how much counts in a window.
func (u *usage) looks(p *wrongClock, i int) {
	u.Helper()
	only := &spend.Quota{Windows: u.quota.Windows[i : i+1]}
	from := u.now()
	_, err := p.ReserveQuota(u.Context(), p.scope, only, session.QuotaCall{Need: spend.Book{Calls: 1, TokensOut: 1 << 40}})
	least, most := u.charged(u.quota.Spans()[i], from, u.now())
	if over, ok := errors.AsType[*spend.BudgetError](err); !ok || over.Spent < least || over.Spent > most || over.Reserved != u.reserved() {
		u.Fatalf("window %d: %v, want %d to %d charged and %d held", i, err, least, most, u.reserved())
	}
}

// end has the process that holds something say what that call took.
func (u *usage) end(n int, tokens int64) {
	h := u.held[n]
	u.held = slices.Delete(u.held, n, n+1)
	from := u.now()
	h.by.EndQuota(u.Context(), h.by.scope, session.QuotaEnd{Hold: h.hold, Settled: true, Used: took(tokens)})
	u.charges = append(u.charges, charge{tokens, from, u.now()})
}

// TestQuotaByClocksThatJump has four processes whose clocks are up to ten minutes off and jump count what a tenant uses, in a window
// that slides and in one that does not, so short that both pass meanwhile. Whatever time it is to a process, what is
// charged counts from when it was, and as long as the window is, by the clock of the database; what is held counts until
// it ends; nobody is given more than there is, or refused what there is.
func TestQuotaByClocksThatJump(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	address := pgtest.Database(t)
	const limit, slides, fixed = 40, 600, 400 // tokens, and ms
	u := &usage{T: t, clock: connect(t, address), quota: &spend.Quota{Windows: []spend.Window{{Msec: slides, Sliding: true, Tokens: new(int64(limit))}, {Msec: fixed, Tokens: new(int64(limit))}}}}
	processes := wrongClocks(t, address, 4, u.quota)
	given, refused := 0, 0
	for began := u.now(); u.now()-began < int64(faults(3*slides)); {
		p := processes[rng.IntN(len(processes))]
		p.jump(rng)
		switch some := 1 + rng.Int64N(15); {
		case rng.IntN(4) == 0:
			u.looks(p, rng.IntN(2))
		case len(u.held) > 0 && rng.IntN(2) == 0:
			u.held[0].by.jump(rng)
			u.end(rng.IntN(len(u.held)), some)
		case u.reserve(p, some, limit):
			given++
		default:
			refused++
		}
	}
	if least, _ := u.charged(u.quota.Spans()[0], u.now(), u.now()); given < 5 || refused < 1 || least == u.total() {
		t.Errorf("%d calls were given, %d refused, and %d tokens of %d still count: the test shows nothing", given, refused, least, u.total())
	}
}

func (u *usage) total() (tokens int64) {
	for _, c := range u.charges {
		tokens += c.tokens
	}
	return tokens
}

// TestQuotaHoldByClocksThatJump: what a process holds that is not heard of any more counts as held until its name has run out by
// the clock of the database, and as charged from then on, whatever time it is to those who look.
func TestQuotaHoldByClocksThatJump(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	address := pgtest.Database(t)
	proxy, through := between(t, address, seed)
	gone := spends(t, open(t, through, postgres.Hurried(postgres.Options{}, 20)))
	looking := wrongClocks(t, address, 2, thousand)
	h := gone.call("gone", 10)
	proxy.silent.Store(true)
	until := func() bool {
		return ask[bool](t, address, `SELECT until>clock_timestamp() FROM owners WHERE name=(SELECT owner FROM quota_holds WHERE call='gone')`)
	}
	lived := 0
	for alive := true; alive; {
		p := looking[rng.IntN(2)]
		p.jump(rng)
		_, err := p.ReserveQuota(t.Context(), p.scope, thousand, session.QuotaCall{Need: spend.Book{Calls: 1, TokensOut: 1 << 40}})
		over, ok := errors.AsType[*spend.BudgetError](err)
		if alive = until(); !ok || alive && (over.Spent != 0 || over.Reserved != 10) {
			t.Fatalf("while it may live: %v, want 10 held", err)
		}
		lived++
	}
	looking[0].has(fmt.Sprint("after ", lived, " looks"), 10, 0)
	proxy.silent.Store(false)
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`)
	gone.settle(h, 15)
	looking[1].has("after it was heard of again", 15, 0)
	if lived < 3 {
		t.Error("nobody has looked before: the test shows nothing")
	}
}
