package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// TestLint has one section for each finding, and for what is close to one and is
// none.
func TestLint(t *testing.T) {
	for _, c := range []struct {
		name, section string
		want          []string // "path code"
	}{
		{"nothing", `{}`, nil},
		{"invalid", `{"limits": 1}`, nil},
		{"requires and excludes", `{"tool_calls": {"mutex": [["deploy", "test"]], "sequence": [{"tool": "deploy", "requires_prev": "test"}]}}`, []string{"/tool_calls/sequence/0 unreachable-tool"}},
		{"excludes per step", `{"tool_calls": {"mutex_scope": "step", "mutex": [["deploy", "test"]], "sequence": [{"tool": "deploy", "requires_prev": "test"}]}}`, nil},
		{"what it needs excludes each other", `{"tool_calls": {"mutex": [["a", "b"]], "sequence": [{"tool": "x", "requires_prev": "a"}, {"tool": "x", "requires_prev": "b"}]}}`, []string{"/tool_calls/sequence/0 unreachable-tool"}},
		{"needs over two corners", `{"tool_calls": {"mutex": [["a", "c"]], "sequence": [{"tool": "a", "requires_prev": "b"}, {"tool": "b", "requires_prev": "c"}]}}`, []string{"/tool_calls/sequence/0 unreachable-tool"}},
		{"a circle", `{"tool_calls": {"sequence": [{"tool": "a", "requires_prev": "b"}, {"tool": "b", "requires_prev": "a"}, {"tool": "c", "requires_prev": "c"}]}}`,
			[]string{"/tool_calls/sequence/0 unreachable-tool", "/tool_calls/sequence/1 unreachable-tool", "/tool_calls/sequence/2 unreachable-tool"}},
		{"needs what is forbidden", `{"tool_calls": {"allowed": ["a"], "sequence": [{"tool": "a", "requires_prev": "b"}]}}`, []string{"/tool_calls/sequence/0 unreachable-tool"}},
		{"needs what has no calls", `{"tool_calls": {"blast_radius": {"b": 0}, "sequence": [{"tool": "a", "requires_prev": "b"}]}}`, []string{"/tool_calls/sequence/0 unreachable-tool"}},
		{"rules of tools that are not allowed", `{"tool_calls": {"allowed": ["a"], "blast_radius": {"b": 1}, "mutex": [["a", "c"]], "tools": {"d": {"poll": true}}, "arg_schemas": {"e/f": {}}}}`,
			[]string{"/tool_calls/mutex/0/1 tool-not-allowed", "/tool_calls/blast_radius/b tool-not-allowed", "/tool_calls/arg_schemas/e~1f tool-not-allowed", "/tool_calls/tools/d tool-not-allowed"}},
		{"cap without prices", `{"cost": {"max_dollars_per_task": 1}}`, []string{"/cost/max_dollars_per_task cap-without-prices"}},
		{"budget without prices", `{"budget": {"hard_limit_usd": 1}}`, []string{"/budget/hard_limit_usd cap-without-prices", "/budget/hard_limit_usd unpriced-ask"}},
		{"a budget that says what asks may cost", `{"budget": {"hard_limit_usd": 1, "default_estimate_usd": 0.1}, "cost": {"prices": {"m": {"input_per_1m": 1, "output_per_1m": 1}}}}`, nil},
		{"packs that read calls of no tools", `{"tool_calls": {"allowed": []}, "packs": {"secrets": {"on": ["args", "results"]}, "pii": {"on": ["output"]}}}`, []string{"/packs/secrets/on never-fires"}},
		{"packs that read calls", `{"packs": {"secrets": {"on": ["args"]}}}`, nil},
		{"a truth gate without limits", `{"truth": {"model": "m"}}`, []string{"/truth probes-without-limit"}},
		{"a truth gate with a limit", `{"truth": {"model": "m"}, "budget": {"hard_limit_calls": 100, "probe_share_max": 1}}`, nil},
		{"a truth gate with a share that stops it", `{"truth": {"model": "m"}, "budget": {"hard_limit_calls": 100, "probe_share_max": 0.9}}`, []string{"/truth small-probe-share"}},
		{"a truth gate with a share that suits answers as dear as questions", `{"truth": {"model": "m"}, "budget": {"hard_limit_calls": 100, "probe_share_max": 0.92}}`, nil},
		{"a truth gate that only observes", `{"truth": {"model": "m"}, "budget": {"hard_limit_calls": 100, "mode": "observe"}}`, nil},
		{"a truth gate with the default share", `{"truth": {"model": "m"}, "budget": {"hard_limit_tokens": 100}}`, []string{"/truth small-probe-share"}},
		{"a truth gate that is not paid", `{"truth": {"model": "m"}, "budget": {"hard_limit_tokens": 100, "debit_probes": false}}`, nil},
		{"a verifier", `{"truth": {"model": "m", "estimator": "process_reward_verifier"}, "budget": {"hard_limit_calls": 9, "probe_share_max": 1}}`, []string{"/truth/estimator default-threshold"}},
		{"a verifier with a threshold", `{"truth": {"model": "m", "estimator": "process_reward_verifier", "thresholds": {"tau_u": 0.4}}, "budget": {"hard_limit_calls": 9, "probe_share_max": 1}}`, nil},
		{"a gate without prices", `{"truth": {"model": "m", "probe_model": "p"}, "cost": {"prices": {"m": {"input_per_1m": 1, "output_per_1m": 1}}}, "budget": {"hard_limit_usd": 9, "probe_share_max": 1}}`, []string{"/budget/hard_limit_usd unpriced-ask", "/truth/probe_model unpriced-probes"}},
		{"halves of prices", `{"cost": {"prices": {"a/b": {"input_per_1m": 1}, "c": [{"input_per_1m": 1, "output_per_1m": 0}, {"effective_from": "2026-01-01", "output_per_1m": 2}], "free": {}, "call": {"per_call": 1}}}}`,
			[]string{"/cost/prices/a~1b half-price", "/cost/prices/c half-price"}},
		{"cap with prices", `{"cost": {"max_dollars_per_task": 1, "prices": {"m": {"input_per_1m": 1, "output_per_1m": 1}}}}`, nil},
		{"patterns", `{"forbidden_patterns": ["lorem", "x+", "[0-9]+", "a|b", "^$", "(abc)?"]}`,
			[]string{"/forbidden_patterns/2 slow-pattern", "/forbidden_patterns/3 slow-pattern", "/forbidden_patterns/4 pattern-matches-all", "/forbidden_patterns/5 pattern-matches-all"}},
		{"visits beyond memory", `{"loop_detection": {"max_state_visits": 51}}`, []string{"/loop_detection/max_state_visits never-fires"}},
		{"visits at the edge of memory", `{"loop_detection": {"max_state_visits": 50}}`, nil},
		{"visits beyond steps", `{"limits": {"max_steps": 4}, "loop_detection": {"max_state_visits": 4}}`, []string{"/loop_detection/max_state_visits never-fires"}},
		{"visits below steps", `{"limits": {"max_steps": 4}, "loop_detection": {"max_state_visits": 3}}`, nil},
		{"defaults are nobody's fault", `{"limits": {"max_steps": 2}}`, nil},
		{"a short memory", `{"store": {"history_limit": 2}}`, []string{"/store/history_limit never-fires"}},
		{"no room for a warning", `{"batch_loop": {"warnThreshold": 2, "hardLimit": 2}}`, []string{"/batch_loop/warnThreshold never-fires"}},
		{"a warning that is all there is", `{"batch_loop": {"warnThreshold": 2, "hardLimit": 2, "onLoop": "continue"}}`, nil},
		{"room for a warning", `{"batch_loop": {"warnThreshold": 2, "hardLimit": 3}}`, nil},
		{"a stop that is not asked for a warning", `{"batch_loop": {"hardLimit": 1}}`, nil},
		{"batches beyond steps", `{"limits": {"max_steps": 3}, "batch_loop": {"hardLimit": 4}, "loop_detection": {"max_state_visits": 2}}`, []string{"/batch_loop/hardLimit never-fires"}},
		{"a ladder", `{"limits": {"max_steps": 3}, "batch_loop": {"ladder": {"stop": 4}}}`, nil},
		{"strict", `{"profile": "strict", "store": {"history_limit": 5}, "loop_detection": {"cycle": {"repeats": 4}, "near": {"repeats": 7}, "max_repeats": 6}}`,
			[]string{"/loop_detection/max_repeats never-fires", "/loop_detection/cycle/repeats never-fires", "/loop_detection/near/repeats never-fires"}},
		{"keywords", `{"output_schema": {"x-mine": 1, "$defs": {"minimum": {"minimun": 1}}, "allOf": [{"requird": []}], "not": {"typ": 1}, "enum": [{"typo": 1}]}}`,
			[]string{"/output_schema/$defs/minimum/minimun unknown-keyword", "/output_schema/allOf/0/requird unknown-keyword", "/output_schema/not/typ unknown-keyword"}},
	} {
		var got []string
		for _, p := range guard.Lint([]byte(c.section), nil, guard.Compat) {
			got = append(got, p.Path+" "+p.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestLintOfClassifiersWithoutPrice: under a limit of dollars the service of a classifier
// is asked only if the budget says what that may cost, or the session does not pay.
func TestLintOfClassifiersWithoutPrice(t *testing.T) {
	for budget, want := range map[string]bool{
		`"hard_limit_usd":1`: true, `"hard_limit_usd":1,"default_estimate_usd":0.01`: false, `"hard_limit_usd":1,"debit_probes":false`: false,
		`"hard_limit_usd":1,"mode":"observe"`: false, `"hard_limit_calls":1`: false,
	} {
		found := guard.Lint([]byte(`{"classifier":{"url":"https://judge.example/","token_name":"A_WEBHOOK_TOKEN","on_error":"open"},"budget":{`+budget+`}}`), nil, guard.Strict)
		is := func(p machine.Problem) bool { return p.Path == "/classifier" && p.Code == guard.UnpricedAsk }
		if got := slices.ContainsFunc(found, is); got != want {
			t.Errorf("%s: found %v", budget, found)
		}
	}
}

// TestLintOfStates finds only what a state's own section adds.
func TestLintOfStates(t *testing.T) {
	base := []byte(`{"forbidden_patterns": ["[0-9]"], "tool_calls": {"mutex": [["a", "b"]]}}`)
	over := []byte(`{"tool_calls": {"sequence": [{"tool": "a", "requires_prev": "b"}]}}`)
	found := guard.Lint(base, over, guard.Strict)
	if len(found) != 1 || found[0].Code != "unreachable-tool" {
		t.Errorf("found %v, want one unreachable tool", found)
	}
}

// TestNeverFires holds the finding to what the checks do: a limit of visits that
// lint has nothing to say of is reached, one that it reports is not.
func TestNeverFires(t *testing.T) {
	for history := int64(1); history <= 6; history++ {
		for visits := int64(1); visits <= 8; visits++ {
			section := fmt.Appendf(nil, `{"store": {"history_limit": %d}, "loop_detection": {"max_state_visits": %d}}`, history, visits)
			silent := len(guard.Lint(section, nil, guard.Compat)) == 0
			c, problems := guard.ParseAs(section, guard.Compat)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			g, err := guard.New(c)
			if err != nil {
				t.Fatal(err)
			}
			fires := false
			for range 20 {
				v, _, err := g.Check(guard.CheckInput{TaskID: "t", State: "s"})
				if err != nil {
					t.Fatal(err)
				}
				fires = fires || !v.Passed()
			}
			if fires != silent {
				t.Errorf("history %d, visits %d: fires %v, lint silent %v", history, visits, fires, silent)
			}
		}
	}
}

// TestProbeShareThatWorks takes lint at its word: with the share that it recommends a
// gate asks all its questions, whatever the answer cost; with one that it warns of, not
// even where each of them costs what the answer did.
func TestProbeShareThatWorks(t *testing.T) {
	lint := func(share string) []machine.Problem {
		return guard.Lint([]byte(`{"truth": {"model": "m"}, "budget": {"hard_limit_calls": 100, "probe_share_max": `+share+`}}`), nil, guard.Strict)
	}
	asks := func(share string, answer int64) (asked int64) {
		b, problems := spend.ParseBudget([]byte(`{"hard_limit_calls": 100, "debit_probes": true, "probe_share_max": ` + share + `}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		one, spent, probes := spend.Book{Calls: 1, TokensIn: 100}, spend.Book{Calls: 1, TokensIn: answer}, spend.Book{}
		for asked < 11 && b.AdmitProbe(spent, probes, spend.Book{}, one) == nil {
			asked, spent, probes = asked+1, spent.Plus(one), probes.Plus(one)
		}
		return asked
	}
	found := lint("0.9")
	if len(found) != 1 || !strings.Contains(found[0].Message, "up to 11 questions about one answer, 11 of 12 calls") || asks("0.9", 100) == 11 {
		t.Fatalf("lint of 0.9 finds %v, and %d questions pass", found, asks("0.9", 100))
	}
	_, rest, _ := strings.Cut(found[0].Hint, "set budget.probe_share_max to ")
	share, _, _ := strings.Cut(rest, ";")
	if again := lint(share); len(again) > 0 {
		t.Errorf("lint of %s, which it recommends, finds %v", share, again)
	}
	for _, answer := range []int64{0, 1, 100, 100_000} {
		if n := asks(share, answer); n != 11 {
			t.Errorf("with %s, after an answer of %d tokens, %d of 11 questions pass", share, answer, n)
		}
	}
}
