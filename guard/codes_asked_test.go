package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// askedCases has the codes of what asks and pays: a configuration and a situation
// in words, and what comes of it. They stand in docs/guards.md too.
var askedCases = []struct {
	code, config, situation string
	verdict                 func(t *testing.T, config string) verdict.Verdict
}{
	{"high_uncertainty", `{"truth":{"model":"m"}}`, "an answer whose uncertainty is 0.61", gated(0.61, 1, 1)},
	{"low_sensitivity", `{"truth":{"model":"m"}}`, "an answer whose sensitivity is 0.49", gated(0, 0.49, 1)},
	{"low_adherence", `{"truth":{"model":"m"}}`, "an answer whose adherence is 0.49", gated(0, 1, 0.49)},
	{"internal_error", `{"truth":{"model":"m"}}`, "a model that fails", func(t *testing.T, config string) verdict.Verdict {
		c := truthOf(t, config)
		c.Completer = truth.CompleterFunc(func(context.Context, truth.CompletionRequest) (truth.Completion, error) {
			return truth.Completion{}, errors.New("no power")
		})
		return truth.Gate(context.Background(), truth.Candidate{Prompt: "p", Answer: "a"}, c).Verdict()
	}},
	{"classifier_flagged", `{"classifier":{"function":"f","on_error":"closed"}}`, "an answer `{\"verdict\":\"retry\"}`", asked(guard.ClassifierAnswer{Verdict: verdict.Retry}, nil)},
	{"classifier_error", `{"classifier":{"function":"f","on_error":"closed"}}`, "no answer", asked(guard.ClassifierAnswer{}, errors.New("no power"))},
	{"budget_wall", `{"budget":{"hard_limit_wall_ms":1000}}`, "a step 1001 ms after the task began", later(verdict.Step{Began: 1, At: 1002})},
	{"budget_no_progress", `{"budget":{"no_progress_ms":1000}}`, "a step 1001 ms after the one before it", later(verdict.Step{Moved: 1, At: 1002})},
	{"budget_contended", `{"budget":{"hard_limit_calls":1}}`, "a call while another one is open", spending(spend.Usage{}, spend.Estimate{Model: "m"})},
	{"budget_probe_share", `{"budget":{"probe_share_max":0.2}}`, "a question of the guards of 21 tokens, where 79 were spent", spending(used(70, 9), spend.Estimate{Model: "free", Input: 20, MaxOutput: 1, Probe: true})},
	{"unpriced_ask", `{"budget":{"hard_limit_usd":1}}`, "an ask of a service that has no estimate", func(t *testing.T, config string) verdict.Verdict {
		c, problems := guard.Parse([]byte(config), false)
		if problems != nil {
			t.Fatal(problems)
		}
		return verdictOf(c.Unpriced())
	}},
	{"quota_exceeded", "", "the second call in an hour of a tenant with `Windows: {Msec: 3_600_000, Calls: 1}`", overQuota(spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Calls: new(int64(1))}}})},
	{"quota_velocity", "", "a call of $1 in the minute of another of $1, of a tenant with `USDPerMinute: 1`", overQuota(spend.Quota{USDPerMinute: new(exact.Dollar)})},
}

func truthOf(t *testing.T, config string) truth.Config {
	t.Helper()
	c, problems := guard.Parse([]byte(config), false)
	if problems != nil {
		t.Fatal(problems)
	}
	return c.Truth.Config()
}

func gated(u, s, a float64) func(*testing.T, string) verdict.Verdict {
	score := func(f float64) truth.Probe {
		return truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) { return f, nil })
	}
	return func(t *testing.T, config string) verdict.Verdict {
		c := truthOf(t, config)
		c.Completer, c.Uncertainty, c.Sensitivity, c.Adherence = truth.NewScript(), score(u), score(s), score(a)
		return truth.Gate(context.Background(), truth.Candidate{Prompt: "p", Answer: "a"}, c).Verdict()
	}
}

func asked(a guard.ClassifierAnswer, err error) func(*testing.T, string) verdict.Verdict {
	return func(t *testing.T, config string) verdict.Verdict {
		c, problems := guard.Parse([]byte(config), false)
		if problems != nil {
			t.Fatal(problems)
		}
		return guard.NewAsker(c.Classifier, time.Now).Judge(context.Background(), verdict.Step{Output: "o", HasOutput: true}, nil,
			func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) { return a, err })
	}
}

func later(s verdict.Step) func(*testing.T, string) verdict.Verdict {
	return func(t *testing.T, config string) verdict.Verdict {
		c, problems := guard.Parse([]byte(config), false)
		if problems != nil {
			t.Fatal(problems)
		}
		return c.Check(guard.State{}, s)
	}
}

// spending refuses a call in a ledger with the budget of a configuration, where another
// one has used so much, or is still open.
func spending(u spend.Usage, e spend.Estimate) func(*testing.T, string) verdict.Verdict {
	return func(t *testing.T, config string) verdict.Verdict {
		c, problems := guard.Parse([]byte(config), false)
		if problems != nil {
			t.Fatal(problems)
		}
		return refusal(t, spend.LedgerConfig{Budget: c.Budget}, spend.Estimate{Model: "free"}, u, e)
	}
}

func overQuota(q spend.Quota) func(*testing.T, string) verdict.Verdict {
	return func(t *testing.T, _ string) verdict.Verdict {
		dollar := spend.Estimate{Model: "m", Input: 999_998, MaxOutput: 1}
		return refusal(t, spend.LedgerConfig{Quota: func(string) *spend.Quota { return &q }}, dollar, used(999_998, 1), dollar)
	}
}

func used(in, out int64) spend.Usage {
	return spend.Usage{Usage: specialist.Usage{NumInputTokens: in, NumOutputTokens: out, Given: specialist.InputGiven | specialist.OutputGiven}}
}

// refusal returns how a ledger refuses a second call, where the first one has used so
// much, or is still open.
func refusal(t *testing.T, c spend.LedgerConfig, first spend.Estimate, u spend.Usage, second spend.Estimate) verdict.Verdict {
	t.Helper()
	c.Now = func() time.Time { return time.UnixMilli(1_767_225_600_000) }
	c.Prices = &spend.PriceTable{Prices: map[string]spend.Price{"m": {InputPer1M: exact.Dollar, OutputPer1M: 2 * exact.Dollar}, "free": {}}}
	l, err := spend.NewLedger(c)
	if err != nil {
		t.Fatal(err)
	}
	scope := spend.Scope{Tenant: "acme", Session: "s", Round: "1"}
	h, err := l.Reserve(t.Context(), scope, first)
	if err != nil {
		t.Fatal(err)
	}
	if u != (spend.Usage{}) {
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		h.Settle(u)
	}
	_, err = l.Reserve(t.Context(), scope, second)
	e, _ := errors.AsType[*spend.BudgetError](err)
	return verdictOf(e)
}

func verdictOf(e *spend.BudgetError) verdict.Verdict {
	if e == nil {
		return verdict.Verdict{}
	}
	return verdict.Verdict{Status: e.Class(), Reasons: []verdict.Reason{e.Reason()}}
}

// askedRows runs the cases and returns their part of the table.
func askedRows(t *testing.T) []byte {
	var table bytes.Buffer
	for _, c := range askedCases {
		v := c.verdict(t, c.config)
		if len(v.Reasons) != 1 || v.Reasons[0].Code != c.code || v.Reasons[0].Message == "" || v.Status != v.Reasons[0].Class {
			t.Errorf("%s: the verdict is %+v", c.code, v)
		}
		on := c.situation
		if c.config != "" {
			on = "`" + c.config + "` on " + on
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", c.code, v.Status, on)
	}
	return table.Bytes()
}

// TestEveryCodeHasACase: codes are written in the sources as "snake_case" texts
// beside what gives them; each of those must have a case, so that none is new
// without being documented.
func TestEveryCodeHasACase(t *testing.T) {
	known := map[string]bool{"unexplained": true} // of a program's own guard that gives no reason
	for _, c := range codeCases {
		known[c.code] = true
	}
	for _, c := range askedCases {
		known[c.code] = true
	}
	var files []string
	for _, rooms := range []string{"*.go", "../internal/truth/*.go", "../internal/batch/*.go", "../internal/packs/*.go", "../internal/spend/*.go"} {
		list, err := filepath.Glob(rooms)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	pattern := regexp.MustCompile(`(?m)(?:\bCode: |^\s+[cC]ode\w+ += |\.over\(|\.loop\(|\.near\()"([a-z]+(?:_[a-z]+)+)"`)
	seen := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			seen[m[1]] = true
		}
	}
	for code := range seen {
		if !known[code] {
			t.Errorf("%s has no case, and so no row in docs/guards.md", code)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d codes found: the test does not see them", len(seen))
	}
}
