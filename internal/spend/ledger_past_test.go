package spend_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// TestRecallCountsEachPartAtItsTime: what a tenant did before is in its windows as
// if the ledger had been there, in whatever order it is told.
func TestRecallCountsEachPartAtItsTime(t *testing.T) {
	const minute = 60_000
	book := spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Money: 200}
	for _, c := range []struct {
		name   string
		window spend.Window
		ago    []int64 // in milliseconds
		want   string
	}{
		{"within", spend.Window{Msec: minute, Sliding: true, Tokens: new(int64(300))}, []int64{30_000}, "ok"},
		{"full", spend.Window{Msec: minute, Sliding: true, Tokens: new(int64(299))}, []int64{30_000}, "quota_exceeded"},
		{"long ago", spend.Window{Msec: minute, Sliding: true, Tokens: new(int64(150))}, []int64{minute + 1000, 10 * minute}, "ok"},
		{"newest first", spend.Window{Msec: minute, Sliding: true, Calls: new(int64(3))}, []int64{0, 20_000, 50_000}, "quota_exceeded"},
		{"newest first, with room", spend.Window{Msec: minute, Sliding: true, Calls: new(int64(4))}, []int64{0, 20_000, 50_000}, "ok"},
		{"dollars", spend.Window{Msec: minute, Sliding: true, USD: new(exact.Money(200_000_199))}, []int64{1}, "quota_exceeded"},
		{"the fixed window before", spend.Window{Msec: minute, Calls: new(int64(1))}, []int64{1}, "ok"},
		{"this fixed window", spend.Window{Msec: minute, Calls: new(int64(1))}, []int64{0}, "quota_exceeded"},
		{"still to come", spend.Window{Msec: minute, Calls: new(int64(1))}, []int64{-10 * minute}, "quota_exceeded"},
		{"before 1970", spend.Window{Msec: minute, Sliding: true, Calls: new(int64(1))}, []int64{1 << 60}, "ok"},
	} {
		l, now := newLedger(t, quota(spend.Quota{Windows: []spend.Window{c.window}}))
		var past spend.Past
		for _, ago := range c.ago {
			past.Spent = append(past.Spent, spend.Spending{At: specialist.TimeOf(now.read()) - specialist.Time(ago), Book: book})
		}
		if err := l.Recall("acme", past); err != nil {
			t.Fatal(err)
		}
		if got := code(refused(t, l, proposer, need(100, 50))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRecallAfterTheFirstCall: a window that has moved on already takes the past in
// where it belongs.
func TestRecallAfterTheFirstCall(t *testing.T) {
	l, now := newLedger(t, quota(spend.Quota{Windows: []spend.Window{{Msec: 60_000, Sliding: true, Calls: new(int64(3))}}}))
	reserve(t, l, proposer, need(1, 1)).Settle(used(1, 1))
	ago := func(msec specialist.Time) spend.Spending {
		return spend.Spending{At: specialist.TimeOf(now.read()) - msec, Book: spend.Book{Calls: 1}}
	}
	if err := l.Recall("acme", spend.Past{Spent: []spend.Spending{ago(30_000), ago(300_000), ago(59_000)}}); err != nil {
		t.Fatal(err)
	}
	if got := code(refused(t, l, proposer, need(1, 1))); got != "quota_exceeded" {
		t.Errorf("three calls in the window: %s", got)
	}
	now.pass(3 * time.Second) // the oldest leaves
	if got := code(refused(t, l, proposer, need(1, 1))); got != "ok" {
		t.Errorf("two calls in the window: %s", got)
	}
}

// TestRecallOpensSessionsAndCalls: open sessions count although there are more than
// the quota lets be opened, and open calls are charged once.
func TestRecallOpensSessionsAndCalls(t *testing.T) {
	l, _ := newLedger(t, quota(spend.Quota{MaxSessions: new(int64(2)), Windows: []spend.Window{{Msec: 1 << 40, Tokens: new(int64(300))}}}))
	call := spend.CallState{Scope: spend.Scope{Tenant: "acme", Session: "c", Round: "r", Proposer: "p"}, ID: "x", Entry: spend.Book{Calls: 1, TokensIn: 100}, Started: true}
	if err := l.Recall("acme", spend.Past{Sessions: []string{"a", "b", "a", ""}, Calls: []spend.CallState{call, {Scope: call.Scope, Entry: call.Entry}}}); err != nil {
		t.Fatal(err)
	}
	if got := code(refused(t, l, spend.Scope{Tenant: "acme", Session: "d"}, need(1, 1))); got != "quota_exceeded" {
		t.Errorf("a fourth session: %s", got)
	}
	if err := l.Close(spend.Scope{Tenant: "acme", Session: "a"}); err != nil {
		t.Fatal(err)
	}
	left := func(tokens int64) bool {
		return code(refused(t, l, spend.Scope{Tenant: "acme", Session: "b"}, spend.Estimate{Input: tokens})) == "ok"
	}
	if !left(200) || left(201) {
		t.Error("the open call does not hold 100 of 300 tokens")
	}
	h := l.Find(spend.Scope{Tenant: "acme", Session: "c"}, "x")
	if h == nil || h.Start() == nil {
		t.Fatal("the open call is not there, or it can be started again")
	}
	h.Settle(used(150, 0))
	if !left(150) || left(151) {
		t.Error("the answer has not corrected the estimate")
	}
}

func TestRecallRefuses(t *testing.T) {
	for _, c := range []spend.CallState{
		{Scope: spend.Scope{Tenant: "another", Session: "s"}},
		{Scope: spend.Scope{Tenant: "acme"}},
		{Scope: spend.Scope{Tenant: "acme", Session: "s"}, Entry: spend.Book{Calls: -1}},
	} {
		l, _ := newLedger(t, quota(spend.Quota{MaxSessions: new(int64(1))}))
		c.Started = true
		if err := l.Recall("acme", spend.Past{Sessions: []string{"a"}, Calls: []spend.CallState{c}}); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := l.Open(spend.Scope{Tenant: "acme", Session: "b"}, spend.Opening{}); err != nil {
			t.Errorf("%+v changed something: %v", c, err)
		}
	}
}
