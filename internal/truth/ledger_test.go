package truth_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/verdict"
)

func tokenLedger(t testing.TB, b *spend.Budget, onSoft func(truth.TokenTotals) error) *truth.TokenLedger {
	t.Helper()
	l, err := truth.NewTokenLedger(b, onSoft)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTokenLedgerLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		budget   spend.Budget
		records  []int64
		wantTrip truth.Trip
		wantSoft string // one letter for each record: s if it was the first above
	}{
		{"no limits", spend.Budget{}, []int64{1 << 40}, truth.Trip{}, "-"},
		{"at the token limit", spend.Budget{HardTokens: new(int64(100))}, []int64{60, 40}, truth.Trip{}, "--"},
		{"above the token limit", spend.Budget{HardTokens: new(int64(100))}, []int64{60, 41}, truth.Trip{Code: "budget_tokens", Kill: true}, "--"},
		{"a limit of nothing", spend.Budget{HardTokens: new(int64)}, []int64{0}, truth.Trip{}, "-"},
		{"one above nothing", spend.Budget{HardTokens: new(int64)}, []int64{1}, truth.Trip{Code: "budget_tokens", Kill: true}, "-"},
		{"at the call limit", spend.Budget{HardCalls: new(int64(2))}, []int64{0, 0}, truth.Trip{}, "--"},
		{"above the call limit", spend.Budget{HardCalls: new(int64(2))}, []int64{0, 0, 0}, truth.Trip{Code: "budget_calls", Kill: true}, "---"},
		{"tokens come before calls", spend.Budget{HardCalls: new(int64), HardTokens: new(int64)}, []int64{1}, truth.Trip{Code: "budget_tokens", Kill: true}, "-"},
		{"only observed", spend.Budget{HardTokens: new(int64(1)), Mode: spend.ModeObserve}, []int64{2}, truth.Trip{Code: "budget_tokens"}, "-"},
		{"soft at the limit", spend.Budget{SoftTokens: new(int64(10))}, []int64{10, 0}, truth.Trip{}, "--"},
		{"soft once", spend.Budget{SoftTokens: new(int64(10))}, []int64{5, 6, 7}, truth.Trip{}, "-s-"},
		{"soft and hard at once", spend.Budget{SoftTokens: new(int64(10)), HardTokens: new(int64(10))}, []int64{11}, truth.Trip{Code: "budget_tokens", Kill: true}, "s"},
		{"sums do not wrap", spend.Budget{HardTokens: new(int64(100))}, []int64{math.MaxInt64, math.MaxInt64, 1}, truth.Trip{Code: "budget_tokens", Kill: true}, "---"},
	} {
		t.Run(c.name, func(t *testing.T) {
			warnings := 0
			l := tokenLedger(t, &c.budget, func(truth.TokenTotals) error { warnings++; return nil })
			var softs strings.Builder
			for _, n := range c.records {
				soft, err := l.Record(truth.TokenUsage{Input: n - n/2, Output: n / 2})
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
	l := tokenLedger(t, nil, nil)
	for _, id := range []string{"a", "a", "", "", "b"} {
		if _, err := l.Record(truth.TokenUsage{ID: id, Input: 1, Output: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Totals(); got != (truth.TokenTotals{Tokens: 12, Calls: 4}) {
		t.Errorf("Totals = %+v", got)
	}
}

func TestTokenLedgerRefuses(t *testing.T) {
	l := tokenLedger(t, nil, nil)
	for _, u := range []truth.TokenUsage{{Input: -1}, {Output: -1}} {
		if _, err := l.Record(u); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("Record(%+v): %v", u, err)
		}
	}
	if l.Totals() != (truth.TokenTotals{}) {
		t.Errorf("refused records count: %+v", l.Totals())
	}
}

func TestTokenLedgerWarnsOnceConcurrently(t *testing.T) {
	var l *truth.TokenLedger
	warnings := 0
	l = tokenLedger(t, &spend.Budget{SoftTokens: new(int64(50))}, func(truth.TokenTotals) error {
		warnings++
		_ = l.Totals() // the ledger may be asked
		return nil
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				_, _ = l.Record(truth.TokenUsage{Input: 1})
				l.Tripped()
			}
		})
	}
	wg.Wait()
	if got := l.Totals(); warnings != 1 || got != (truth.TokenTotals{Tokens: 200, Calls: 200}) {
		t.Errorf("%d warnings, totals %+v", warnings, got)
	}
}

// TestParseBudget: a gate that stands alone has a budget of tokens and calls.
func TestParseBudget(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "",
		`{"soft_limit_tokens":5,"hard_limit_tokens":5,"hard_limit_calls":0,"mode":"observe"}`: "",
		`{"soft_limit_tokens":6,"hard_limit_tokens":5}`:                                       `/budget/soft_limit_tokens contradiction soft_limit_tokens is 6`,
		`{"hard_limit_tokens":-1}`:                                                            `/budget/hard_limit_tokens out-of-range hard_limit_tokens is -1`,
		`{"hard_limit_calls":1.5}`:                                                            `hard_limit_calls is 1.5`,
		`{"soft_limit_tokens":"5"}`:                                                           `soft_limit_tokens is "5"`,
		`{"mode":"kill"}`:                                                                     `mode is "kill"`,
		`{"hard_limit_token":5}`:                                                              `did you mean "hard_limit_tokens"?`,
		`{"hard_limit_usd":5}`:                                                                `/budget/hard_limit_usd unknown-field`,
		`{"mode":null}`:                                                                       `mode is null`,
		`{"hard_limit_calls":1e300}`:                                                          `hard_limit_calls is 1e300`,
		`{"soft_limit_tokens":9`:                                                              `bad-json`,
		`{"mode":"observe","mode":"x"}`:                                                       `duplicate member "mode"`,
	} {
		_, problems := truth.Parse([]byte(`{"budget":`+config+`}`), truth.Defaults())
		if got := listed(problems); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
	for name, b := range map[string]spend.Budget{
		"negative": {HardCalls: new(int64(-1))}, "mode": {Mode: "no"}, "dollars": {HardUSD: new(exact.Dollar)}, "soft dollars": {SoftUSD: new(exact.Dollar)},
		"times": {WallMsec: new(int64(5))}, "times of a round": {RoundWallMsec: new(int64(5))}, "progress": {NoProgressMsec: new(int64(5))},
	} {
		if l, err := truth.NewTokenLedger(&b, nil); l != nil || !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
