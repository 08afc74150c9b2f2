package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// TestCallsInTheBooks: an ask that took several calls counts as so many, those that a
// provider refused have no price to miss, and what each call costs is paid for those
// that are charged.
func TestCallsInTheBooks(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 10, Given: specialist.InputGiven | specialist.OutputGiven}
	for name, c := range map[string]struct {
		usage           specialist.Usage
		calls, unpriced int64
		paid            exact.Money // at a dollar a call
	}{
		"one":             {tokens, 1, 1, exact.Dollar},
		"three":           {tokens.WithCalls(3, 0), 3, 3, 3 * exact.Dollar},
		"two refused":     {tokens.WithCalls(3, 2), 3, 1, exact.Dollar},
		"refused":         {specialist.Usage{}.WithCalls(1, 1), 1, 0, 0},
		"none":            {specialist.Usage{}.WithCalls(0, 0), 0, 0, 0},
		"more than there": {specialist.Usage{}.WithCalls(1, 5), 1, 0, 0},
		"without end":     {tokens.WithCalls(1<<62, 0), 1 << 62, 1 << 62, 1<<63 - 1},
	} {
		if spent := (guard.State{}).Charge(c.usage, "m").Spent; spent.Calls != c.calls || spent.Unpriced != c.unpriced {
			t.Errorf("%s: %+v", name, spent)
		}
		if paid := (spend.Price{PerCall: exact.Dollar}).Cost(c.usage); paid != c.paid {
			t.Errorf("%s: costs $%s, want $%s", name, paid, c.paid)
		}
		l, err := spend.NewLedger(spend.LedgerConfig{Now: func() time.Time { return time.UnixMilli(1) }})
		if err != nil {
			t.Fatal(err)
		}
		h, err := l.Reserve(t.Context(), spend.Scope{Session: "s"}, spend.Estimate{Model: "nobody knows"})
		if err != nil {
			t.Fatal(err)
		}
		if charged := h.Settle(spend.Usage{Usage: c.usage}).Charged; charged.Calls != c.calls || charged.Unpriced != c.unpriced {
			t.Errorf("%s: the ledger charges %+v", name, charged)
		}
	}
	was := guard.State{}.Charge(tokens.WithCost(5), "m")
	if is := was.Correct(tokens, tokens.WithCalls(3, 0)); is.Spent.Calls != 3 {
		t.Errorf("corrected: %+v", is.Spent)
	}
}

// TestUnpricedIsNamed: the verdict names the model that has no price, and the one
// that was asked for it.
func TestUnpricedIsNamed(t *testing.T) {
	c, problems := guard.Parse([]byte(`{"cost":{"max_dollars_per_task":1}}`), false)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	called := spend.CalledOf("openai/gpt-5", "gpt-5-pro").String()
	s := guard.State{}.Charge(specialist.Usage{NumInputTokens: 5, Given: specialist.InputGiven}, called)
	v := c.Check(s, verdict.Step{Transition: "go", FromState: "a", State: "b"})
	if len(v.Reasons) != 1 || v.Reasons[0].Code != "unpriced_model" || !strings.Contains(v.Reasons[0].Message, `"gpt-5-pro (which answered for openai/gpt-5)" has no price`) {
		t.Errorf("%+v", v)
	}
}
