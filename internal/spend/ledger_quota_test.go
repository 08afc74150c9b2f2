package spend_test

import (
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

func quota(q spend.Quota) spend.LedgerConfig {
	return spend.LedgerConfig{Quota: func(tenant string) *spend.Quota {
		if tenant == "acme" {
			return &q
		}
		return nil
	}}
}

func TestWindows(t *testing.T) {
	const minute = 60_000
	for _, c := range []struct {
		name   string
		window spend.Window
		after  time.Duration // since a call of 100 tokens in and 50 out, which cost 0.0002
		want   string
	}{
		{"exactly full", spend.Window{Msec: minute, Tokens: new(int64(300))}, 0, "ok"},
		{"one too many", spend.Window{Msec: minute, Tokens: new(int64(299))}, 0, "quota_exceeded"},
		{"calls", spend.Window{Msec: minute, Calls: new(int64(1))}, 0, "quota_exceeded"},
		{"dollars", spend.Window{Msec: minute, USD: new(exact.Money(399_999_999))}, 0, "quota_exceeded"},
		{"a fixed window just before it ends", spend.Window{Msec: minute, Calls: new(int64(1))}, minute*time.Millisecond - time.Millisecond, "quota_exceeded"},
		{"the next fixed window", spend.Window{Msec: minute, Calls: new(int64(1))}, minute * time.Millisecond, "ok"},
		{"a sliding window still sees it", spend.Window{Msec: minute, Calls: new(int64(1)), Sliding: true}, minute * time.Millisecond, "quota_exceeded"},
		{"a sliding window has moved on", spend.Window{Msec: minute, Calls: new(int64(1)), Sliding: true}, 61 * time.Second, "ok"},
		{"a window shorter than its parts", spend.Window{Msec: 7, Calls: new(int64(1)), Sliding: true}, 8 * time.Millisecond, "ok"},
		{"much later", spend.Window{Msec: minute, Calls: new(int64(1)), Sliding: true}, 1000 * time.Hour, "ok"},
		{"a clock that goes back", spend.Window{Msec: minute, Calls: new(int64(1))}, -time.Hour, "quota_exceeded"},
		{"no window", spend.Window{Calls: new(int64(0))}, 0, "ok"},
	} {
		l, now := newLedger(t, quota(spend.Quota{Windows: []spend.Window{c.window}}))
		if c.want != "ok" || c.window.Msec > 0 {
			reserve(t, l, proposer, need(100, 50)).Settle(used(100, 50))
		}
		now.pass(c.after)
		e := refused(t, l, spend.Scope{Tenant: "acme", Session: "another"}, need(100, 50))
		if code(e) != c.want || e != nil && e.Class() != verdict.Abort {
			t.Errorf("%s: %v, want %s", c.name, e, c.want)
		}
		if got := code(refused(t, l, spend.Scope{Tenant: "another", Session: "s"}, need(100, 50))); got != "ok" {
			t.Errorf("%s: another tenant: %s", c.name, got)
		}
	}
}

func TestVelocity(t *testing.T) {
	l, now := newLedger(t, quota(spend.Quota{USDPerMinute: new(exact.Money(400_000_000))}))
	h := reserve(t, l, proposer, need(100, 50))
	reserve(t, l, proposer, need(100, 50)).Settle(used(100, 50))
	if e := refused(t, l, proposer, need(1, 1)); code(e) != "budget_contended" {
		t.Errorf("while a call is open: %v", e)
	}
	h.Settle(used(100, 50))
	if e := refused(t, l, proposer, need(1, 1)); code(e) != "quota_velocity" || e.Class() != verdict.Retry {
		t.Errorf("too fast: %v", e)
	}
	if got := code(refused(t, l, proposer, spend.Estimate{Model: "free"})); got != "ok" {
		t.Errorf("a free model: %s", got)
	}
	now.pass(61 * time.Second)
	if got := code(refused(t, l, proposer, need(1, 1))); got != "ok" {
		t.Errorf("a minute later: %s", got)
	}
}

// TestWindowsGiveNothingBack: a correction downwards does not refill a window, a
// correction upwards counts.
func TestWindowsGiveNothingBack(t *testing.T) {
	l, _ := newLedger(t, quota(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Tokens: new(int64(300))}}}))
	h := start(t, reserve(t, l, proposer, need(100, 50)))
	h.Release()
	h.Settle(used(1, 1))
	if got := code(refused(t, l, proposer, need(100, 51))); got != "quota_exceeded" {
		t.Errorf("after a correction down: %s", got)
	}
	h = start(t, reserve(t, l, proposer, need(50, 50)))
	h.Release()
	h.Settle(used(100, 50))
	if got := code(refused(t, l, proposer, need(1, 1))); got != "quota_exceeded" {
		t.Errorf("after a correction up: %s", got)
	}
}

func TestSessionsOfATenant(t *testing.T) {
	l, _ := newLedger(t, quota(spend.Quota{MaxSessions: new(int64(4)), MaxFanOut: new(int64(2)), MaxDepth: new(int64(1))}))
	scope := func(session string) spend.Scope { return spend.Scope{Tenant: "acme", Session: session} }
	expect := func(session, parent, want string, unit spend.Unit) {
		t.Helper()
		err := l.Open(scope(session), spend.Opening{Parent: parent})
		e, _ := err.(*spend.BudgetError)
		if want == "ok" && err == nil {
			return
		}
		if e == nil || e.Code != want || e.Unit != unit || e.Error() == "" {
			t.Errorf("%s of %q: %v, want %s", session, parent, err, want)
		}
	}
	expect("a", "", "ok", "")
	expect("b", "a", "ok", "")
	expect("c", "a", "ok", "")
	expect("d", "a", "quota_exceeded", spend.UnitChildren)
	expect("d", "b", "quota_exceeded", spend.UnitLevels)
	expect("d", "", "ok", "")
	expect("e", "", "quota_exceeded", spend.UnitSessions)
	if e := refused(t, l, scope("e"), need(1, 1)); code(e) != "quota_exceeded" {
		t.Errorf("opened by a call: %v", e)
	}
	if err := l.Close(scope("c")); err != nil {
		t.Fatal(err)
	}
	expect("e", "a", "ok", "")
	if err := l.Open(scope("f"), spend.Opening{Parent: "nobody"}); err == nil {
		t.Error("spawned by nobody")
	}
}
