package spend_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

func TestReserveSettleRelease(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	h := reserve(t, l, proposer, need(100, 50))
	for _, s := range []spend.Scope{{Tenant: "acme"}, session, round, proposer} {
		if b := l.Balance(s); b.Tokens != 150 || b.Calls != 1 || b.USD.String() != "0.0002" || b.OpenCalls != 1 || b.Spent != (spend.Book{}) {
			t.Errorf("%s holds %+v", s, b)
		}
	}
	if b := l.Balance(other); b != (spend.Balance{}) {
		t.Errorf("%s holds %+v", other, b)
	}
	r := start(t, h).Settle(used(90, 20))
	want := spend.Book{Calls: 1, TokensIn: 90, TokensOut: 20, Money: 130_000_000}
	if r.Charged != want || r.Prices != "v1" || r.Duplicate || r.Late || r.Reasons != nil {
		t.Errorf("receipt %+v", r)
	}
	allLevels(t, l, want)
	h.Release()
	h.Settle(used(90, 20))
	allLevels(t, l, want)
	if b := l.Balance(session); b.Tokens != 0 || b.Calls != 0 || b.USD != 0 || b.OpenCalls != 0 {
		t.Errorf("after settling %+v is still held", b)
	}
	if err := h.Start(); !errors.Is(err, spend.ErrClosed) {
		t.Errorf("starting a settled call: %v", err)
	}

	reserve(t, l, proposer, need(100, 50)).Release()
	allLevels(t, l, want)
	if b := l.Balance(session); b.Tokens != 0 || b.OpenCalls != 0 {
		t.Errorf("after releasing %+v is still held", b)
	}
	(*spend.Handle)(nil).Release()
}

func TestHardLimits(t *testing.T) {
	// Spent: 100 in, 50 out, one call, 0.0002 dollars. Held by another: the same.
	for _, c := range []struct {
		name   string
		budget spend.Budget
		need   spend.Estimate
		want   string
	}{
		{"nothing", spend.Budget{}, need(1<<40, 1<<40), "ok"},
		{"tokens fit exactly", spend.Budget{HardTokens: new(int64(450))}, need(100, 50), "ok"},
		{"one too many while another holds some", spend.Budget{HardTokens: new(int64(449))}, need(100, 50), "budget_contended"},
		{"they would fit alone, exactly", spend.Budget{HardTokens: new(int64(300))}, need(100, 50), "budget_contended"},
		{"one too many", spend.Budget{HardTokens: new(int64(300))}, need(100, 51), "budget_tokens"},
		{"calls fit", spend.Budget{HardCalls: new(int64(3))}, need(0, 1), "ok"},
		{"calls contended", spend.Budget{HardCalls: new(int64(2))}, need(0, 1), "budget_contended"},
		{"dollars fit exactly", spend.Budget{HardUSD: new(exact.Money(600_000_000))}, need(100, 50), "ok"},
		{"dollars contended", spend.Budget{HardUSD: new(exact.Money(599_999_999))}, need(100, 50), "budget_contended"},
		{"too dear", spend.Budget{HardUSD: new(exact.Money(400_000_000))}, need(101, 50), "budget_usd"},
		{"what does not pass comes first", spend.Budget{HardCalls: new(int64(2)), HardUSD: new(exact.Money(400_000_000))}, need(101, 50), "budget_usd"},
		{"a free model is never too dear", spend.Budget{HardUSD: new(exact.Money(0))}, spend.Estimate{Model: "free", Input: 9}, "ok"},
		{"nor is a call known to be free", spend.Budget{HardUSD: new(exact.Money(0))}, spend.Estimate{Model: "x", CostGiven: true}, "ok"},
		{"a cost that is known needs no price", spend.Budget{HardUSD: new(exact.Money(400_000_000))}, spend.Estimate{Cost: 200_000_001, CostGiven: true}, "budget_usd"},
		{"observed limits refuse nothing", spend.Budget{HardTokens: new(int64(0)), Mode: spend.ModeObserve}, need(100, 50), "ok"},
	} {
		l, _ := newLedger(t, spend.LedgerConfig{})
		reserve(t, l, proposer, need(100, 50)).Settle(used(100, 50))
		reserve(t, l, other, need(100, 50))
		if err := l.SetBudget(session, &c.budget); err != nil {
			t.Fatal(err)
		}
		before := l.Balance(session)
		if got := code(refused(t, l, proposer, c.need)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if after := l.Balance(session); after != before {
			t.Errorf("%s: a refusal changed %+v to %+v", c.name, before, after)
		}
	}
}

// TestEveryLevelLimits: a reservation needs room in all scopes.
func TestEveryLevelLimits(t *testing.T) {
	for _, s := range []spend.Scope{session, round, proposer} {
		l, _ := newLedger(t, spend.LedgerConfig{})
		if err := l.Open(s, spend.Opening{Budget: &spend.Budget{HardTokens: new(int64(10))}}); err != nil {
			t.Fatal(err)
		}
		e := refused(t, l, proposer, need(5, 6))
		if e == nil || e.Code != "budget_tokens" || e.Scope != s || e.Limit != 10 || e.Estimate != 11 || e.Unit != spend.UnitTokens {
			t.Errorf("%s: %+v", s, e)
		}
		if b := l.Balance(spend.Scope{Tenant: "acme"}); b.Tokens != 0 || b.OpenCalls != 0 {
			t.Errorf("%s: the tenant holds %+v", s, b)
		}
	}
}

func TestBudgetError(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{HardUSD: new(exact.Money(400_000_000))}})
	reserve(t, l, proposer, need(100, 50)).Settle(used(100, 50))
	h := reserve(t, l, proposer, need(48, 1))
	e := refused(t, l, other, need(100, 50))
	if want := "budget_contended: open calls hold the last usd in acme/s: $0.0002 spent, $0.00005 reserved and $0.0002 more are above the limit of $0.0004"; e == nil || e.Error() != want {
		t.Fatalf("%v, want %s", e, want)
	}
	if r := e.Reason(); r.Class != verdict.Retry || r.Code != "budget_contended" || r.Guard != "budget" || r.Limit != "0.0004" || r.Seen != "0.00045" {
		t.Errorf("reason %+v", r)
	}
	h.Settle(used(51, 0))
	e = refused(t, l, other, need(100, 50))
	if e == nil || e.Code != "budget_usd" || e.Class() != verdict.Abort || e.Spent != 251_000_000 || e.Reserved != 0 || e.Estimate != 200_000_000 || e.Limit != 400_000_000 {
		t.Errorf("%+v", e)
	}
}

// TestChargedInFull: what a call needed is charged past the limit, and the next
// one is refused.
func TestChargedInFull(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{HardTokens: new(int64(200))}})
	h := reserve(t, l, proposer, need(100, 50))
	h.Settle(used(1000, 500))
	allLevels(t, l, spend.Book{Calls: 1, TokensIn: 1000, TokensOut: 500, Money: 2_000_000_000})
	if got := code(refused(t, l, proposer, need(0, 1))); got != "budget_tokens" {
		t.Errorf("the next call: %s", got)
	}
	if v := l.Check(proposer); v.Status != verdict.Abort || codes(v) != "abort [budget_tokens]" {
		t.Errorf("the next step: %+v", v)
	}
}

func TestUsageIDsAreChargedOnce(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	a, b := reserve(t, l, proposer, need(10, 10)), reserve(t, l, proposer, need(10, 10))
	if r := a.Settle(withID(used(5, 5), "x")); r.Duplicate {
		t.Error("the first is no duplicate")
	}
	want := l.Balance(session).Spent
	for name, settle := range map[string]func() spend.Receipt{
		"the same handle": func() spend.Receipt { return a.Settle(withID(used(7, 7), "x")) },
		"another handle":  func() spend.Receipt { return b.Settle(withID(used(7, 7), "x")) },
		"no id":           func() spend.Receipt { return a.Settle(used(7, 7)) },
		"no handle": func() spend.Receipt {
			r, err := l.Charge(proposer, need(1, 1), withID(used(7, 7), "x"))
			if err != nil {
				t.Error(err)
			}
			return r
		},
	} {
		if r := settle(); !r.Duplicate || r.Charged != (spend.Book{}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if got := l.Balance(session); got.Spent != want || got.Tokens != 0 || got.OpenCalls != 0 {
		t.Errorf("spent %+v, want %+v and nothing held", got, want)
	}
	if r := a.Settle(withID(used(1, 1), "y")); r.Duplicate || l.Balance(session).Spent.Calls != 2 {
		t.Errorf("a second message of the call: %+v", r)
	}
	elsewhere := spend.Scope{Tenant: "acme", Session: "other"}
	if r := reserve(t, l, elsewhere, need(1, 1)).Settle(withID(used(1, 1), "x")); r.Duplicate {
		t.Error("another session has ids of its own")
	}
}

func TestMissingCounts(t *testing.T) {
	in, out := specialist.InputGiven, specialist.OutputGiven
	for _, c := range []struct {
		name string
		use  specialist.Usage
		want spend.Book
	}{
		{"none", specialist.Usage{}, spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Money: 200_000_000, Estimated: 1}},
		{"no output", specialist.Usage{NumInputTokens: 10, Given: in}, spend.Book{Calls: 1, TokensIn: 10, TokensOut: 50, Money: 110_000_000, Estimated: 1}},
		{"zeros that were given", specialist.Usage{Given: in | out}, spend.Book{Calls: 1}},
		{"negative", specialist.Usage{NumInputTokens: -9, NumOutputTokens: 7, Given: in | out}, spend.Book{Calls: 1, TokensIn: 100, TokensOut: 7, Money: 114_000_000, Estimated: 1}},
		{"a cost", specialist.Usage{Given: in | out}.WithCost(3), spend.Book{Calls: 1, Money: 3}},
		{"a negative cost", specialist.Usage{Given: in | out}.WithCost(-3), spend.Book{Calls: 1}},
		{"estimated elsewhere", specialist.Usage{NumInputTokens: 10, Given: in | out, Estimated: true}, spend.Book{Calls: 1, TokensIn: 10, Money: 10_000_000, Estimated: 1}},
	} {
		l, _ := newLedger(t, spend.LedgerConfig{})
		if r := reserve(t, l, proposer, need(100, 50)).Settle(spend.Usage{Usage: c.use}); r.Charged != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, r.Charged, c.want)
		}
		if r, err := l.Charge(proposer, need(100, 50), spend.Usage{Usage: c.use}); r.Charged != c.want || err != nil {
			t.Errorf("%s, without a reservation: %+v, %v", c.name, r.Charged, err)
		}
	}
}

func TestOldReservations(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{ReserveTTLMsec: 1000, HardTokens: new(int64(400))}})
	waiting, running := reserve(t, l, proposer, need(100, 50)), start(t, reserve(t, l, proposer, need(100, 50)))
	now.pass(999 * time.Millisecond)
	if got := code(refused(t, l, other, need(100, 50))); got != "budget_contended" {
		t.Errorf("just before: %s", got)
	}
	now.pass(time.Millisecond)
	if got := code(refused(t, l, other, need(100, 50))); got != "ok" {
		t.Errorf("once they are too old: %s", got)
	}
	estimated := spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Money: 200_000_000, Estimated: 1}
	allLevels(t, l, estimated)
	if b := l.Balance(session); b.OpenCalls != 0 || b.Tokens != 0 {
		t.Errorf("still held: %+v", b)
	}
	if err := waiting.Start(); !errors.Is(err, spend.ErrClosed) {
		t.Errorf("starting too late: %v", err)
	}
	running.Release()
	waiting.Release()
	allLevels(t, l, estimated)

	r := running.Settle(used(10, 5))
	want := spend.Book{Calls: 1, TokensIn: 10, TokensOut: 5, Money: 20_000_000}
	if !r.Late || r.Charged != want {
		t.Errorf("settled late: %+v", r)
	}
	allLevels(t, l, want)
	if r := running.Settle(used(10, 5)); !r.Duplicate {
		t.Errorf("settled late and again: %+v", r)
	}
	allLevels(t, l, want)
}

// TestLateCalls: a call that was cleared before it started, and made all the
// same, is charged.
func TestLateCalls(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{})
	h := reserve(t, l, proposer, need(100, 50))
	now.pass(spend.DefaultReserveTTLMsec * time.Millisecond)
	l.Expire()
	if b := l.Balance(session); b.OpenCalls != 0 || b.Spent != (spend.Book{}) {
		t.Errorf("%+v", b)
	}
	if r := h.Settle(used(1, 1)); !r.Late || r.Charged.Calls != 1 {
		t.Errorf("%+v", r)
	}
	// A duplicate of an expired call takes the estimate back.
	h = start(t, reserve(t, l, proposer, need(100, 50)))
	reserve(t, l, proposer, need(1, 1)).Settle(withID(used(2, 2), "id"))
	now.pass(spend.DefaultReserveTTLMsec * time.Millisecond)
	l.Expire()
	h.Settle(withID(used(2, 2), "id"))
	allLevels(t, l, spend.Book{Calls: 2, TokensIn: 3, TokensOut: 3, Money: 9_000_000})
}

// TestReleaseOfAStartedCall: nobody knows what it cost, so it is charged as
// estimated.
func TestReleaseOfAStartedCall(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	h := start(t, reserve(t, l, proposer, need(100, 50)))
	if got := h.Reserved(); got.TokensIn != 100 || got.TokensOut != 50 {
		t.Errorf("reserved %+v", got)
	}
	h.Release()
	h.Release()
	allLevels(t, l, spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Money: 200_000_000, Estimated: 1})
	if r := h.Settle(used(1, 0)); !r.Late {
		t.Errorf("%+v", r)
	}
	allLevels(t, l, spend.Book{Calls: 1, TokensIn: 1, Money: 1_000_000})
}

func TestOutputEstimates(t *testing.T) {
	for _, c := range []struct {
		name string
		need spend.Estimate
		want int64
	}{
		{"a model without a limit", spend.Estimate{Model: "m"}, spend.DefaultMaxOutput},
		{"no model", spend.Estimate{}, 0},
		{"the request's limit", spend.Estimate{Model: "m", MaxOutput: 20_000}, 20_000},
		{"the model's ceiling", spend.Estimate{Model: "m", Ceiling: 4096}, 4096},
		{"the lower of the two", spend.Estimate{Model: "m", MaxOutput: 100, Ceiling: 4096}, 100},
	} {
		l, _ := newLedger(t, spend.LedgerConfig{})
		if got := reserve(t, l, proposer, c.need).Reserved().TokensOut; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAdaptiveEstimates(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{ReserveMode: spend.ReserveAdaptive}})
	expect := func(name string, e spend.Estimate, want int64) {
		t.Helper()
		h := reserve(t, l, proposer, e)
		defer h.Release()
		if got := h.Reserved().TokensOut; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	settle := func(out int64) { reserve(t, l, proposer, need(1, 1000)).Settle(used(1, out)) }
	for i := range int64(7) {
		settle(100 + i)
	}
	expect("seven outputs are too few", spend.Estimate{Model: "m"}, spend.DefaultMaxOutput)
	reserve(t, l, proposer, need(1, 1000)).Settle(spend.Usage{})
	expect("an output nobody counted is none", spend.Estimate{Model: "m"}, spend.DefaultMaxOutput)
	settle(101)
	expect("five quarters of 106, rounded up", spend.Estimate{Model: "m"}, 133)
	expect("never above the request's limit", spend.Estimate{Model: "m", MaxOutput: 50}, 50)
	expect("another model", spend.Estimate{Model: "free"}, spend.DefaultMaxOutput)
	for range 64 {
		settle(8)
	}
	expect("old outputs are forgotten", spend.Estimate{Model: "m"}, 10)
	for range 3 {
		settle(800)
	}
	expect("three of 64 are above the 95th percentile", spend.Estimate{Model: "m"}, 10)
	settle(800)
	expect("four of 64 reach it", spend.Estimate{Model: "m"}, 1000)
	if err := l.SetBudget(session, &spend.Budget{}); err != nil {
		t.Fatal(err)
	}
	expect("a static budget", spend.Estimate{Model: "m"}, spend.DefaultMaxOutput)
}

func TestEstimateTokens(t *testing.T) {
	for _, c := range []struct {
		messages []string
		want     int64
	}{
		{nil, 0}, {[]string{""}, 4}, {[]string{"a"}, 5}, {[]string{"abc"}, 5}, {[]string{"abcd"}, 6},
		{[]string{"é"}, 6}, {[]string{"ab日本c"}, 9}, {[]string{"\xff\xfe"}, 8}, {[]string{"abc", "abc"}, 10}, {[]string{"👍🏽"}, 8},
	} {
		if got := spend.EstimateTokens(c.messages...); got != c.want {
			t.Errorf("EstimateTokens(%q) = %d, want %d", c.messages, got, c.want)
		}
	}
}

func TestSoftLimits(t *testing.T) {
	var told []string
	l, _ := newLedger(t, spend.LedgerConfig{
		Budget: &spend.Budget{SoftTokens: new(int64(10)), SoftUSD: new(exact.Dollar)},
		OnSoft: func(s spend.Scope, r verdict.Reason) error {
			told = append(told, s.String()+" "+r.Text())
			return nil
		},
	})
	if r := reserve(t, l, proposer, need(1, 1)).Settle(used(5, 5)); r.Reasons != nil {
		t.Errorf("at the limit: %+v", r.Reasons)
	}
	r := reserve(t, l, proposer, need(1, 1)).Settle(used(1, 0))
	if len(r.Reasons) != 1 || r.Reasons[0].Code != "budget_soft" || r.Reasons[0].Class != verdict.Warn || r.Reasons[0].Limit != "10" || r.Reasons[0].Seen != "11" {
		t.Errorf("above the limit: %+v", r.Reasons)
	}
	reserve(t, l, proposer, need(1, 1)).Settle(spend.Usage{Usage: tokens(99, 0).WithCost(2 * exact.Dollar)})
	if v := l.Check(proposer); v.Status != verdict.OK {
		t.Errorf("a second warning: %+v", v)
	}
	if len(told) != 1 || told[0] != "acme/s budget_soft: 11 tokens were used in acme/s, more than the soft limit of 10" {
		t.Errorf("told %q", told)
	}
	if err := l.SetBudget(session, &spend.Budget{SoftUSD: new(3 * exact.Dollar)}); err != nil {
		t.Fatal(err)
	}
	reserve(t, l, proposer, need(1, 1)).Settle(spend.Usage{Usage: tokens(0, 0).WithCost(2 * exact.Dollar)})
	if len(told) != 2 || !strings.Contains(told[1], "$4.0000") {
		t.Errorf("after a higher limit: %q", told)
	}
}

// TestSoftLimitOfAClearedCall: nobody was there to be told, so the next step is.
func TestSoftLimitOfAClearedCall(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{SoftTokens: new(int64(10))}})
	start(t, reserve(t, l, proposer, need(100, 1)))
	now.pass(time.Hour)
	if v := l.Check(round); codes(v) != "warn [budget_soft]" {
		t.Errorf("%+v", v)
	}
	if v := l.Check(round); v.Status != verdict.OK {
		t.Errorf("told again: %+v", v)
	}
}

func TestSoftSinkFails(t *testing.T) {
	for name, sink := range map[string]func(spend.Scope, verdict.Reason) error{
		"error": func(spend.Scope, verdict.Reason) error { return errors.New("no") },
		"panic": func(spend.Scope, verdict.Reason) error { panic("no") },
	} {
		l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{SoftTokens: new(int64(0))}, OnSoft: sink})
		r := reserve(t, l, proposer, need(1, 1)).Settle(used(1, 0))
		if len(r.Reasons) != 2 || r.Reasons[1].Code != "internal_error" || r.Reasons[1].Class != verdict.Escalate {
			t.Errorf("%s: %+v", name, r.Reasons)
		}
	}
}

func TestObserve(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{Mode: spend.ModeObserve,
		HardTokens: new(int64(1)), HardCalls: new(int64(0)), HardUSD: new(exact.Money(0)), WallMsec: new(int64(1)), NoProgressMsec: new(int64(1))}})
	now.pass(time.Second)
	reserve(t, l, proposer, need(10, 10)).Settle(used(10, 10))
	now.pass(time.Second)
	if v := l.Check(proposer); codes(v) != "warn [budget_tokens budget_calls budget_usd budget_wall]" {
		t.Errorf("%s", codes(v))
	}
}

func TestTimeLimits(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{WallMsec: new(int64(10_000)), RoundWallMsec: new(int64(2000)), NoProgressMsec: new(int64(5000))}})
	reserve(t, l, proposer, need(1, 1)).Release()
	begin := now.read()
	deadline := func(s spend.Scope) time.Duration {
		at, ok := l.Deadline(s)
		if !ok {
			t.Fatal("no deadline")
		}
		return at.Sub(begin)
	}
	if a, b := deadline(session), deadline(proposer); a != 5*time.Second || b != 2*time.Second {
		t.Errorf("deadlines %v and %v", a, b)
	}
	expect := func(s spend.Scope, want string) {
		t.Helper()
		if got := code(refused(t, l, s, need(1, 1))); got != want {
			t.Errorf("reserve in %s: %s, want %s", s, got, want)
		}
		judged := "abort [" + want + "]"
		if want == "ok" {
			judged = "ok"
		}
		if v := l.Check(s); codes(v) != judged {
			t.Errorf("Check of %s: %s, want %s", s, codes(v), judged)
		}
	}
	now.pass(2 * time.Second)
	expect(proposer, "ok")
	now.pass(time.Millisecond)
	expect(proposer, "budget_wall")
	now.pass(2999 * time.Millisecond)
	expect(session, "ok")
	now.pass(time.Millisecond)
	expect(session, "budget_no_progress")
	l.Progress(round)
	next := spend.Scope{Tenant: "acme", Session: "s", Round: "2"}
	expect(next, "ok")
	now.pass(5 * time.Second)
	l.Progress(session)
	expect(session, "budget_wall")
	if _, ok := l.Deadline(spend.Scope{Tenant: "acme"}); ok {
		t.Error("a tenant has no deadline")
	}
	now.pass(-time.Hour)
	expect(session, "ok") // a clock that goes back is no reason to stop
}

func TestProbes(t *testing.T) {
	probe := func(in int64) spend.Estimate { return spend.Estimate{Model: "m", Input: in, MaxOutput: 1, Probe: true} }
	share := exact.One / 5
	l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{DebitProbes: true, ProbeShareMax: &share}})
	reserve(t, l, proposer, need(1, 1)).Settle(used(800_000, 0))
	if got := code(refused(t, l, session, probe(199_998))); got != "ok" {
		t.Errorf("exactly a fifth: %s", got)
	}
	if e := refused(t, l, session, probe(199_999)); code(e) != "budget_probe_share" || e.Unit != spend.UnitUSD || e.Class() != verdict.Abort {
		t.Errorf("above: %+v", e)
	}
	h := reserve(t, l, session, probe(150_000))
	if got := code(refused(t, l, session, probe(150_000))); got != "budget_contended" {
		t.Errorf("beside another probe: %s", got)
	}
	h.Settle(used(100_000, 0))
	if b := l.Balance(session); b.Probes.TokensIn != 100_000 || b.Spent.TokensIn != 900_000 {
		t.Errorf("%+v", b)
	}

	l, _ = newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{HardTokens: new(int64(0))}})
	h = start(t, reserve(t, l, session, probe(1000)))
	if r := h.Settle(used(1000, 1000)); r.Charged != (spend.Book{}) || l.Balance(session).Spent != (spend.Book{}) {
		t.Errorf("a probe that is not debited: %+v", r)
	}
}

// TestProbeShareOfTokens: without dollars, tokens are the measure.
func TestProbeShareOfTokens(t *testing.T) {
	share := exact.One / 2
	l, _ := newLedger(t, spend.LedgerConfig{Budget: &spend.Budget{DebitProbes: true, ProbeShareMax: &share}})
	free := spend.Estimate{Model: "free", Input: 10, MaxOutput: 1}
	reserve(t, l, session, free).Settle(used(10, 1))
	free.Probe = true
	if got := code(refused(t, l, session, free)); got != "ok" {
		t.Errorf("half: %s", got)
	}
	free.Input++
	if e := refused(t, l, session, free); code(e) != "budget_probe_share" || e.Unit != spend.UnitTokens {
		t.Errorf("above: %+v", e)
	}
}

func TestUnpricedModels(t *testing.T) {
	dollars := spend.Budget{HardUSD: new(exact.Dollar)}
	both := spend.Budget{HardUSD: new(exact.Dollar), HardCalls: new(int64(9))}
	bounded := spend.Budget{HardUSD: new(exact.Dollar), Bounded: true}
	for _, c := range []struct {
		unknown string
		budget  spend.Budget
		want    string
	}{
		{"skip", dollars, "ok"}, {"", dollars, "ok"}, {"warn", dollars, "unpriced_model"}, {"warn", both, "ok"}, {"warn", bounded, "ok"}, {"warn", spend.Budget{}, "ok"},
		{"abort", both, "unpriced_model"}, {"abort", spend.Budget{}, "ok"}, {"estimate_max", dollars, "ok"},
	} {
		l, _ := newLedger(t, spend.LedgerConfig{Budget: &c.budget, Prices: testPrices(c.unknown)})
		e := spend.Estimate{Model: "nobody", Input: 100, MaxOutput: 50}
		if got := code(refused(t, l, proposer, e)); got != c.want {
			t.Errorf("%q, %+v: %s, want %s", c.unknown, c.budget, got, c.want)
		}
		if got := code(refused(t, l, proposer, spend.Estimate{Model: "free"})); got != "ok" {
			t.Errorf("%q: a price of 0 is a price, got %s", c.unknown, got)
		}
		if c.want != "ok" {
			continue
		}
		want := spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Unpriced: 1}
		if c.unknown == "estimate_max" {
			want.Money, want.Estimated = 200_000_000, 1
		}
		if r := reserve(t, l, proposer, e).Settle(used(100, 50)); r.Charged != want {
			t.Errorf("%q: charged %+v, want %+v", c.unknown, r.Charged, want)
		}
	}
}

// TestAnotherModelAnswered: the price is that of the model that answered.
func TestAnotherModelAnswered(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	u := used(1000, 1000)
	u.Model = "free"
	if r := reserve(t, l, proposer, need(1000, 1000)).Settle(u); r.Charged.Money != 0 || r.Charged.Unpriced != 0 {
		t.Errorf("%+v", r.Charged)
	}
}

// TestCachedInputCounts: what a provider leaves out of its count is input all
// the same.
func TestCachedInputCounts(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{Prices: prices(t, priceTable)})
	u := spend.Usage{Usage: detailed(10, 5, specialist.UsageDetail{CacheReadTokens: 100, CacheWrite5mTokens: 20}), Model: "raw"}
	if r := reserve(t, l, proposer, need(1, 1)).Settle(u); r.Charged.TokensIn != 130 {
		t.Errorf("%+v", r.Charged)
	}
}

func TestLedgerSumsSaturate(t *testing.T) {
	l, now := newLedger(t, spend.LedgerConfig{})
	huge := spend.Usage{Usage: tokens(math.MaxInt64, math.MaxInt64).WithCost(math.MaxInt64)}
	for range 3 {
		reserve(t, l, proposer, need(0, 1)).Settle(huge)
	}
	allLevels(t, l, spend.Book{Calls: 3, TokensIn: math.MaxInt64, TokensOut: math.MaxInt64, Money: math.MaxInt64})
	if err := l.SetBudget(session, &spend.Budget{HardTokens: new(int64(math.MaxInt64 - 1))}); err != nil {
		t.Fatal(err)
	}
	if got := code(refused(t, l, proposer, need(0, 1))); got != "budget_tokens" {
		t.Errorf("after saturation: %s", got)
	}
	if err := l.SetBudget(session, nil); err != nil {
		t.Fatal(err)
	}
	// A correction must not bring a sum back that was cut off.
	h := start(t, reserve(t, l, proposer, need(1000, 1000)))
	now.pass(time.Hour)
	l.Expire()
	h.Settle(used(0, 0))
	if got := l.Balance(session).Spent.TokensIn; got != math.MaxInt64 {
		t.Errorf("corrected to %d", got)
	}
	// Reservations that would wrap are refused, and can be taken back exactly.
	a := reserve(t, l, other, spend.Estimate{Input: math.MaxInt64})
	if got := code(refused(t, l, other, spend.Estimate{Input: 1})); got != "budget_contended" {
		t.Errorf("beside the largest number: %s", got)
	}
	a.Release()
	if b := l.Balance(session); b.Tokens != 0 || b.OpenCalls != 0 {
		t.Errorf("still held: %+v", b)
	}
}

func TestScopes(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	for _, s := range []spend.Scope{{Round: "1"}, {Session: "s", Proposer: "p"}, {Proposer: "p"}} {
		if _, err := l.Reserve(context.Background(), s, spend.Estimate{}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%+v: %v", s, err)
		}
		if err := l.Open(s, spend.Opening{}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("opening %+v: %v", s, err)
		}
	}
	for _, e := range []spend.Estimate{{Input: -1}, {MaxOutput: -1}, {Ceiling: -1}, {Cost: -1}} {
		if _, err := l.Reserve(context.Background(), session, e); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%+v: %v", e, err)
		}
		if _, err := l.Charge(session, e, spend.Usage{}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("charging %+v: %v", e, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Reserve(ctx, session, spend.Estimate{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
	if h, err := l.Reserve(context.Background(), spend.Scope{}, spend.Estimate{Input: 3}); err != nil {
		t.Error(err)
	} else {
		h.Settle(withID(used(3, 0), "x"))
	}
	if got := l.Balance(spend.Scope{}).Spent.TokensIn; got != 3 {
		t.Errorf("the tenant without a name has spent %d", got)
	}
	for _, b := range []*spend.Budget{{HardTokens: new(int64(-1))}, {SoftUSD: new(exact.Money(-1))}, {Mode: "x"}, {ReserveMode: "x"}, {ProbeShareMax: new(2 * exact.One)},
		{SoftTokens: new(int64(2)), HardTokens: new(int64(1))}, {ReserveTTLMsec: -1}} {
		if _, err := spend.NewLedger(spend.LedgerConfig{Now: time.Now, Budget: b}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if _, err := spend.NewLedger(spend.LedgerConfig{}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("no clock: %v", err)
	}
}

func TestOpenAndClose(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	spent := spend.Book{Calls: 2, TokensIn: 30, TokensOut: 5, Money: 7}
	if err := l.Open(session, spend.Opening{Spent: spent, Settled: []string{"x"}, Budget: &spend.Budget{HardTokens: new(int64(40))}}); err != nil {
		t.Fatal(err)
	}
	if got := l.Balance(spend.Scope{Tenant: "acme"}).Spent; got != spent {
		t.Errorf("the tenant has spent %+v", got)
	}
	if got := code(refused(t, l, proposer, need(5, 1))); got != "budget_tokens" {
		t.Errorf("a restart refilled the budget: %s", got)
	}
	h := reserve(t, l, proposer, need(4, 1))
	for _, s := range []spend.Scope{session, round, proposer} {
		if err := l.Close(s); !errors.Is(err, spend.ErrOpenCalls) {
			t.Errorf("closing %s: %v", s, err)
		}
	}
	if r := h.Settle(withID(used(5, 0), "x")); !r.Duplicate {
		t.Errorf("an id from before: %+v", r)
	}
	late := start(t, reserve(t, l, proposer, need(4, 1)))
	late.Release()
	if err := l.Close(round); err != nil {
		t.Fatal(err)
	}
	if r := late.Settle(used(1, 0)); !r.Late || l.Balance(session).Spent.TokensIn != 31 {
		t.Errorf("a late answer to a round that is over: %+v, %+v", r, l.Balance(session))
	}
	late = start(t, reserve(t, l, proposer, need(3, 1)))
	late.Release()
	if err := l.Close(session); err != nil {
		t.Fatal(err)
	}
	if r := late.Settle(withID(used(1, 0), "new")); !r.Duplicate {
		t.Errorf("a late answer to a session that is over: %+v", r)
	}
	if got := l.Balance(spend.Scope{Tenant: "acme"}).Spent.TokensIn; got != 34 {
		t.Errorf("the tenant has spent %d", got)
	}
	if err := l.Close(spend.Scope{Tenant: "acme"}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("closing a tenant: %v", err)
	}
	if err := l.Close(session); err != nil {
		t.Errorf("closing what is closed: %v", err)
	}
	reserve(t, l, proposer, need(1, 1)).Release()
	if got := l.Balance(session).Spent; got != (spend.Book{}) {
		t.Errorf("a session opened again has spent %+v", got)
	}
	if err := l.Open(session, spend.Opening{}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("opening what is open: %v", err)
	}
}
