package guard_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

func tokenLedger(t testing.TB, b guard.TokenBudget) *guard.TokenLedger {
	t.Helper()
	l, err := guard.NewTokenLedger(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTokenLedgerLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		budget   guard.TokenBudget
		records  []int64
		wantTrip guard.Trip
		wantSoft string // one letter for each record: s if it was the first above
	}{
		{"no limits", guard.TokenBudget{}, []int64{1 << 40}, guard.Trip{}, "-"},
		{"at the token limit", guard.TokenBudget{HardLimitTokens: new(int64(100))}, []int64{60, 40}, guard.Trip{}, "--"},
		{"above the token limit", guard.TokenBudget{HardLimitTokens: new(int64(100))}, []int64{60, 41}, guard.Trip{Code: "budget_tokens", Kill: true}, "--"},
		{"a limit of nothing", guard.TokenBudget{HardLimitTokens: new(int64)}, []int64{0}, guard.Trip{}, "-"},
		{"one above nothing", guard.TokenBudget{HardLimitTokens: new(int64)}, []int64{1}, guard.Trip{Code: "budget_tokens", Kill: true}, "-"},
		{"at the call limit", guard.TokenBudget{HardLimitCalls: new(int64(2))}, []int64{0, 0}, guard.Trip{}, "--"},
		{"above the call limit", guard.TokenBudget{HardLimitCalls: new(int64(2))}, []int64{0, 0, 0}, guard.Trip{Code: "budget_calls", Kill: true}, "---"},
		{"tokens come before calls", guard.TokenBudget{HardLimitCalls: new(int64), HardLimitTokens: new(int64)}, []int64{1}, guard.Trip{Code: "budget_tokens", Kill: true}, "-"},
		{"only observed", guard.TokenBudget{HardLimitTokens: new(int64(1)), Mode: guard.TripObserve}, []int64{2}, guard.Trip{Code: "budget_tokens"}, "-"},
		{"soft at the limit", guard.TokenBudget{SoftLimitTokens: new(int64(10))}, []int64{10, 0}, guard.Trip{}, "--"},
		{"soft once", guard.TokenBudget{SoftLimitTokens: new(int64(10))}, []int64{5, 6, 7}, guard.Trip{}, "-s-"},
		{"soft and hard at once", guard.TokenBudget{SoftLimitTokens: new(int64(10)), HardLimitTokens: new(int64(10))}, []int64{11}, guard.Trip{Code: "budget_tokens", Kill: true}, "s"},
		{"sums do not wrap", guard.TokenBudget{HardLimitTokens: new(int64(100))}, []int64{math.MaxInt64, math.MaxInt64, 1}, guard.Trip{Code: "budget_tokens", Kill: true}, "---"},
	} {
		t.Run(c.name, func(t *testing.T) {
			warnings := 0
			c.budget.OnSoftWarn = func(guard.TokenTotals) error { warnings++; return nil }
			l := tokenLedger(t, c.budget)
			var softs strings.Builder
			for _, n := range c.records {
				soft, err := l.Record(guard.TokenUsage{Input: n - n/2, Output: n / 2})
				if err != nil {
					t.Fatal(err)
				}
				softs.WriteByte(map[bool]byte{true: 's', false: '-'}[soft])
			}
			if got := l.Tripped(); got != c.wantTrip {
				t.Errorf("Tripped = %+v, want %+v", got, c.wantTrip)
			}
			if softs.String() != c.wantSoft || warnings != strings.Count(c.wantSoft, "s") {
				t.Errorf("soft crossings %s, want %s; %d warnings", softs.String(), c.wantSoft, warnings)
			}
			if got := l.Totals().Calls; got != int64(len(c.records)) {
				t.Errorf("%d calls", got)
			}
		})
	}
}

func TestTokenLedgerChargesAnIDOnce(t *testing.T) {
	l := tokenLedger(t, guard.TokenBudget{})
	for _, id := range []string{"a", "a", "", "", "b"} {
		if _, err := l.Record(guard.TokenUsage{ID: id, Input: 1, Output: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Totals(); got != (guard.TokenTotals{Tokens: 12, Calls: 4}) {
		t.Errorf("Totals = %+v", got)
	}
}

func TestTokenLedgerRefuses(t *testing.T) {
	l := tokenLedger(t, guard.TokenBudget{})
	for _, u := range []guard.TokenUsage{{Input: -1}, {Output: -1}} {
		if _, err := l.Record(u); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("Record(%+v): %v", u, err)
		}
	}
	if l.Totals() != (guard.TokenTotals{}) {
		t.Errorf("refused records count: %+v", l.Totals())
	}
}

func TestTokenLedgerWarnsOnceConcurrently(t *testing.T) {
	var l *guard.TokenLedger
	warnings := 0
	l = tokenLedger(t, guard.TokenBudget{SoftLimitTokens: new(int64(50)), OnSoftWarn: func(guard.TokenTotals) error {
		warnings++
		_ = l.Totals() // the ledger may be asked
		return nil
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				_, _ = l.Record(guard.TokenUsage{Input: 1})
				l.Tripped()
			}
		})
	}
	wg.Wait()
	if got := l.Totals(); warnings != 1 || got != (guard.TokenTotals{Tokens: 200, Calls: 200}) {
		t.Errorf("%d warnings, totals %+v", warnings, got)
	}
}

func TestParseTokenBudget(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "",
		`{"soft_limit_tokens":5,"hard_limit_tokens":5,"hard_limit_calls":0,"mode":"observe"}`: "",
		`{"soft_limit_tokens":6,"hard_limit_tokens":5}`:                                       `"budget.soft_limit_tokens" is 6`,
		`{"hard_limit_tokens":-1}`:                                                            `"budget.hard_limit_tokens" is -1`,
		`{"hard_limit_calls":1.5}`:                                                            `"budget.hard_limit_calls" is 1.5`,
		`{"soft_limit_tokens":"5"}`:                                                           `"budget.soft_limit_tokens" is "5"`,
		`{"mode":"kill"}`:                                                                     `"budget.mode" is "kill"`,
		`{"hard_limit_token":5}`:                                                              `did you mean "hard_limit_tokens"?`,
		`{"mode":null}`:                                                                       `"budget.mode" is null`,
		`{"hard_limit_calls":1e300}`:                                                          `"budget.hard_limit_calls"`,
		`{"soft_limit_tokens":9`:                                                              `must be a JSON object`,
		`{"mode":"observe","mode":"x"}`:                                                       `twice`,
	} {
		_, err := guard.ParseTokenBudget([]byte(config))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
	if _, err := guard.NewTokenLedger(guard.TokenBudget{HardLimitCalls: new(int64(-1)), Mode: "no"}); err == nil ||
		!strings.Contains(err.Error(), "hard_limit_calls") || !strings.Contains(err.Error(), "mode") {
		t.Errorf("the error is %v", err)
	}
}
