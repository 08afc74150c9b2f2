package guard_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

func TestParse(t *testing.T) {
	c := parse(t, ` {
		"profile": "strict",
		"limits": {"max_steps": 20, "max_tokens_per_step": 4e3, "max_total_tokens": 50000, "output_min": 1, "output_max": 9, "cap_basis": "progress"},
		"cost": {"prices": {"some/model": {"input_per_1m": 2.5, "output_per_1m": 10}}, "max_dollars_per_task": 0.50, "on_unknown_model": "skip"},
		"tool_calls": {"allowed": [], "mutex": [["a", "b"]], "blast_radius": {"a": 2}, "sequence": [{"tool": "a", "requires_prev": "b"}], "mutex_scope": "step",
			"tools": {"a": {"loop_key": ["x"], "volatile": ["y"], "poll": true, "exempt": true}}},
		"loop_detection": {"max_state_visits": 0, "ngram_size": 3, "max_repeats": 7, "mode": "off", "overlap_ratio": 0.5, "detect_identical_tool_calls": false,
			"visit_counting": "entries", "progress_aware": false, "max_output_repeats": null, "cycle": false, "near": {"repeats": 4}},
		"retry": {"max_attempts": 2},
		"store": {"history_limit": 1, "ttl_ms": 1500},
		"x-note": ["anything"] } `)
	number := func(n int64) *int64 { return &n }
	half := exact.Dollar / 2
	want := guard.Defaults(guard.Strict)
	want.Limits = guard.Limits{MaxSteps: number(20), MaxTokensPerStep: number(4000), MaxTotalTokens: number(50000), OutputMin: number(1), OutputMax: number(9), CapBasis: guard.Progress}
	want.Cost = guard.Cost{Prices: map[string]spend.Price{"some/model": {InputPer1M: 5 * exact.Dollar / 2, OutputPer1M: 10 * exact.Dollar}}, MaxDollars: &half, OnUnknownModel: "skip"}
	l := &want.Loop
	l.MaxStateVisits, l.NgramSize, l.MaxRepeats, l.Mode, l.OverlapRatio, l.IdenticalCalls = 0, 3, 7, "off", 500_000_000, false
	l.VisitCounting, l.ProgressAware, l.MaxOutputRepeats, l.Cycle = "entries", false, nil, nil
	l.Near.Repeats = 4
	want.Retry.MaxAttempts = number(2)
	want.Store = guard.Store{HistoryLimit: 1, TTL: 1500 * time.Millisecond}
	tools := c.Tools
	c.Tools, want.Tools = guard.Tools{}, guard.Tools{}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("the section was read as %+v, want %+v", c, want)
	}
	if tools.Allowed == nil || len(tools.Allowed) != 0 || !reflect.DeepEqual(tools.Mutex, [][]string{{"a", "b"}}) || tools.MutexScope != "step" ||
		tools.BlastRadius["a"] != 2 || tools.Sequence[0] != (guard.Sequence{Tool: "a", RequiresPrev: "b"}) ||
		!reflect.DeepEqual(tools.PerTool["a"], guard.ToolRule{LoopKey: []string{"x"}, Volatile: []string{"y"}, Poll: true, Exempt: true}) {
		t.Errorf("the rules for tools were read as %+v", tools)
	}
}

// TestParseNothing: an empty section is valid, and has loop detection on.
func TestParseNothing(t *testing.T) {
	for _, p := range []guard.Profile{guard.Strict, guard.Compat} {
		c, problems := guard.ParseAs([]byte("{}"), p)
		if want := guard.Defaults(p); !reflect.DeepEqual(c, want) || problems != nil || c.Loop.MaxStateVisits != 3 {
			t.Errorf("{} was read as %+v, want %+v", c, want)
		}
		if c, _ := guard.ParseAs([]byte(`{"profile":"compat"}`), p); c.Loop.Mode != "any_ngram" || c.Profile != guard.Compat {
			t.Errorf("a section of profile compat has mode %s", c.Loop.Mode)
		}
	}
}

func TestParseProblems(t *testing.T) {
	for _, c := range []struct {
		section string
		want    []string
	}{
		{``, []string{"error[bad-json]: guards is not one JSON value: EOF"}},
		{`{`, []string{"error[bad-json]: guards is not one JSON value: unexpected EOF"}},
		{`{} {}`, []string{"error[bad-json]: guards is not one JSON value: unexpected data after the value"}},
		{`{"limits":{"max_steps":1,"max_steps":900}}`, []string{`error[bad-json]: guards is not one JSON value: duplicate member "max_steps"`}},
		{`null`, []string{"error[wrong-type]: guards must be an object"}},
		{`[]`, []string{"error[wrong-type]: guards must be an object"}},
		{`"guards.json"`, []string{"error[wrong-type]: guards must be an object"}},
		{`{"limits":null}`, []string{"error[wrong-type]: limits must be an object (at /limits)"}},
		{`{"limit":{}}`, []string{"error[unknown-field]: guards has no field \"limit\" (at /limit)\n    hint: did you mean \"limits\"?"}},
		{`{"zzzzz":1}`, []string{"error[foreign-file]: none of its fields is a field of guards\n    hint: is it the right file? Nothing else of it is shown"}},
		{`{"hunter2":1,"root":2}`, []string{"error[foreign-file]: none of its fields is a field of guards\n    hint: is it the right file? Nothing else of it is shown",
			"error[unknown-field]: guards has no field \"root\" (at /root)\n    hint: did you mean \"cost\"?"}},
		{`{"limits":{},"zzzzz":1}`, []string{`error[unknown-field]: guards has no field "zzzzz" (at /zzzzz)`}},
		{`{"limits":{"max_step":1}}`, []string{"error[unknown-field]: limits has no field \"max_step\" (at /limits/max_step)\n    hint: did you mean \"max_steps\"?"}},
		{`{"cost":{"prices":{"a/b":{"input_per_1k":1}}}}`, []string{"error[unknown-field]: a~1b has no field \"input_per_1k\" (at /cost/prices/a~1b/input_per_1k)\n    hint: did you mean \"input_per_1m\"?"}},
		{`{"limits":{"max_steps":-1}}`, []string{"error[out-of-range]: max_steps is -1, not a whole number from 0 (at /limits/max_steps)"}},
		{`{"limits":{"max_steps":1.5}}`, []string{"error[out-of-range]: max_steps is 1.5, not a whole number from 0 (at /limits/max_steps)"}},
		{`{"limits":{"max_steps":"3"}}`, []string{`error[out-of-range]: max_steps is "3", not a whole number from 0 (at /limits/max_steps)`}},
		{`{"limits":{"max_steps":null}}`, []string{"error[out-of-range]: max_steps is null, not a whole number from 0 (at /limits/max_steps)"}},
		{`{"limits":{"max_steps":1e300}}`, []string{"error[out-of-range]: max_steps is 1e300, more than 9007199254740992 (at /limits/max_steps)"}},
		{`{"limits":{"max_steps":1e999}}`, []string{"error[out-of-range]: max_steps is 1e999, not a whole number from 0 (at /limits/max_steps)"}},
		{`{"store":{"history_limit":0}}`, []string{"error[out-of-range]: history_limit is 0, not a whole number from 1 (at /store/history_limit)"}},
		{`{"cost":{"max_dollars_per_task":-0.1}}`, []string{"error[out-of-range]: max_dollars_per_task is -0.1, not an amount of US dollars from 0 (at /cost/max_dollars_per_task)"}},
		{`{"cost":{"max_dollars_per_task":1e99}}`, []string{"error[out-of-range]: max_dollars_per_task is 1e99, not an amount of US dollars from 0 (at /cost/max_dollars_per_task)"}},
		{`{"cost":{"prices":{"m":{"input_per_1m":"cheap"}}}}`, []string{`error[out-of-range]: input_per_1m is "cheap", not an amount of US dollars from 0 (at /cost/prices/m/input_per_1m)`}},
		{`{"cost":{"prices":null}}`, []string{"error[wrong-type]: prices must be an object of models (at /cost/prices)"}},
		{`{"cost":{"prices":{"m":3}}}`, []string{"error[wrong-type]: m must be an object (at /cost/prices/m)"}},
		{`{"cost":{"on_unknown_model":"ignore"}}`, []string{"error[bad-value]: on_unknown_model is \"ignore\" (at /cost/on_unknown_model)\n    hint: it may be [\"skip\" \"warn\" \"estimate_max\" \"abort\"]"}},
		{`{"limits":{"cap_basis":7}}`, []string{"error[bad-value]: cap_basis is 7 (at /limits/cap_basis)\n    hint: it may be [\"spend\" \"progress\"]"}},
		{`{"profile":"lenient"}`, []string{"error[bad-value]: profile is \"lenient\" (at /profile)\n    hint: it may be [\"strict\" \"compat\"]"}},
		{`{"batch_loop":{"hardLimit":0,"maxRepeatedCalls":3,"onlop":"end"}}`, []string{
			"error[bad-value]: option \"hardLimit\" is 0: it must be a whole number from 1 to 50 (at /batch_loop/hardLimit)",
			"error[unknown-field]: option \"maxRepeatedCalls\" is 3: this option was removed (at /batch_loop/maxRepeatedCalls)\n    hint: leave it out",
			"error[unknown-field]: option \"onlop\" is \"end\": there is no such option (at /batch_loop/onlop)\n    hint: did you mean \"onLoop\"?"}},
		{`{"limits":{"output_min":5,"output_max":4}}`, []string{"error[contradiction]: output_min is 5, above output_max, which is 4 (at /limits/output_min)"}},
		{`{"forbidden_patterns":["ok","a("]}`, []string{"error[bad-pattern]: the pattern does not compile: missing closing ) at offset 1: `(` (at /forbidden_patterns/1)\n    hint: patterns are RE2: no look-around, no back-references"}},
		{`{"schema":{"properties":{"a":{"pattern":"x(y"}}}}`, []string{"error[bad-schema]: schema is no schema: the pattern at #/properties/a/pattern does not compile: missing closing ) at offset 1: `(y` (at /schema/properties/a/pattern)"}},
		{`{"tool_calls":{"arg_schemas":{"rm":{"patternProperties":{"[a":true}}}}}`, []string{"error[bad-schema]: rm is no schema: the pattern at #/patternProperties/[a does not compile: missing closing ] at offset 0: `[a` (at /tool_calls/arg_schemas/rm/patternProperties/[a)"}},
		{`{"schema":null}`, []string{"error[bad-schema]: schema is no schema: a schema must be an object, true or false (at /schema)"}},
		{`{"forbidden_patterns":["a\\1"]}`, []string{"error[bad-pattern]: the pattern does not compile: invalid escape sequence at offset 1: `\\1` (at /forbidden_patterns/0)\n    hint: patterns are RE2: no look-around, no back-references"}},
		{`{"forbidden_patterns":"a"}`, []string{"error[wrong-type]: forbidden_patterns must be a list (at /forbidden_patterns)"}},
		{`{"forbidden_patterns":[1]}`, []string{"error[wrong-type]: a pattern must be a string (at /forbidden_patterns/0)"}},
		{`{"schema":{},"output_schema":{}}`, []string{"error[contradiction]: both schema and output_schema are given, and they are one thing (at /output_schema)\n    hint: keep one of them"}},
		{`{"tool_calls":{"mutex":[["a","b"],["c"],[]]}}`, []string{
			"error[too-few]: group 1 has one member: a tool excludes others, not itself (at /tool_calls/mutex/1)\n    hint: name two tools or more, or remove the group; tool_calls.blast_radius limits the calls of one tool",
			"error[too-few]: group 2 has 0 members: a tool excludes others, not itself (at /tool_calls/mutex/2)\n    hint: name two tools or more, or remove the group; tool_calls.blast_radius limits the calls of one tool",
		}},
		{`{"tool_calls":{"mutex":[["a","b"],["c","a"]]}}`, []string{"error[duplicate-member]: \"a\" is in group 0 already (at /tool_calls/mutex/1)\n    hint: a tool belongs to one group; join the groups"}},
		{`{"tool_calls":{"sequence":[{"tool":"","requires_prev":"b"}]}}`, []string{`error[bad-value]: tool is "", not a name (at /tool_calls/sequence/0/tool)`}},
		{`{"tool_calls":{"sequence":[{"tool":"a"}]}}`, []string{`error[missing-field]: "requires_prev" is missing (at /tool_calls/sequence/0)`}},
		{`{"tool_calls":{"allowed":[null]}}`, []string{"error[bad-value]: 0 is null, not a name (at /tool_calls/allowed/0)"}},
		{`{"loop_detection":{"ngram_size":0}}`, []string{"error[out-of-range]: ngram_size is 0, not a whole number from 1 (at /loop_detection/ngram_size)"}},
		{`{"loop_detection":{"overlap_ratio":1.1}}`, []string{"error[out-of-range]: overlap_ratio is 1.1, not a number above 0 and at most 1 (at /loop_detection/overlap_ratio)"}},
		{`{"loop_detection":{"cycle":{"max_period":9}}}`, []string{"error[out-of-range]: max_period is 9, more than 8 (at /loop_detection/cycle/max_period)"}},
		{`{"retry":{"max_attempts":-1},"limits":{"max_steps":-1,"max_total_tokens":[]}}`, []string{ // all of them, not the first
			"error[out-of-range]: max_steps is -1, not a whole number from 0 (at /limits/max_steps)",
			"error[out-of-range]: max_total_tokens is [], not a whole number from 0 (at /limits/max_total_tokens)",
			"error[out-of-range]: max_attempts is -1, not a whole number from 0 (at /retry/max_attempts)"}},
	} {
		config, problems := guard.Parse([]byte(c.section), false)
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if !reflect.DeepEqual(got, c.want) || config != nil {
			t.Errorf("%s:\n%q, want\n%q", c.section, got, c.want)
		}
	}
}

// TestTruthOutsideOfMachines: whoever judges the steps of others does not know
// what they were asked.
func TestTruthOutsideOfMachines(t *testing.T) {
	_, problems := guard.ParseAs([]byte(`{"truth":{"model":"m"}}`), guard.Compat)
	if len(problems) != 1 || problems[0].Code != "unsupported" || problems[0].Path != "/truth" || !strings.Contains(problems[0].Hint, "truth.Gate") {
		t.Errorf("%v", problems)
	}
}

// TestStateSections: profile and store are the machine's alone.
func TestStateSections(t *testing.T) {
	for _, section := range []string{`{"profile":"strict"}`, `{"store":{"history_limit":9}}`} {
		if problems := guard.Check([]byte(section), false); problems != nil {
			t.Errorf("%s of a machine: %v", section, problems)
		}
		if problems := guard.Check([]byte(section), true); len(problems) != 1 || problems[0].Code != "unknown-field" {
			t.Errorf("%s of a state: %v", section, problems)
		}
	}
	if problems := guard.Check([]byte(`{"limits":{"max_steps":3},"cost":{},"loop_detection":{},"retry":{}}`), true); problems != nil {
		t.Errorf("everything a state may have: %v", problems)
	}
}

func TestMerge(t *testing.T) {
	const none = ""
	for _, c := range []struct{ machine, state, want string }{
		{none, none, none},
		{`{"a":1}`, none, `{"a":1}`},
		{none, `{"a":1}`, `{"a":1}`},
		{`{"limits":{"max_steps":9,"max_total_tokens":5}}`, `{"limits":{"max_steps":1}}`, `{"limits":{"max_steps":1,"max_total_tokens":5}}`},
		{`{"limits":{"max_steps":9}}`, `{"retry":{"max_attempts":1}}`, `{"limits":{"max_steps":9},"retry":{"max_attempts":1}}`},
		{`{"cost":{"prices":{"a":{"input_per_1m":1}}}}`, `{"cost":{"prices":{"b":{"input_per_1m":2}}}}`, `{"cost":{"prices":{"b":{"input_per_1m":2}}}}`}, // maps whole
		{`{"list":[1,2]}`, `{"list":[3]}`, `{"list":[3]}`},
		{`{"list":[1,2]}`, `{"list":{"b":1}}`, `{"list":{"b":1}}`},
		{`{"limits":{"max_steps":9}}`, `{"limits":5}`, `{"limits":5}`},
		{`{"limits":{"max_steps":9}}`, `{}`, `{"limits":{"max_steps":9}}`},
	} {
		section := func(s string) []byte {
			if s == none {
				return nil
			}
			return []byte(s)
		}
		got, err := guard.Merge(section(c.machine), section(c.state))
		if string(got) != c.want || err != nil {
			t.Errorf("Merge(%s, %s) = %s (%v), want %s", c.machine, c.state, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{{`{`, `{}`}, {`{}`, `[]`}} {
		if got, err := guard.Merge([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("Merge%q = %s", bad, got)
		}
	}
}

// FuzzParse: whatever is accepted can be judged by, and accepted again after
// having been laid over itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"limits":{"max_steps":1}}`, `{"cost":{"max_dollars_per_task":1e-12,"prices":{"":{}}}}`, `{"store":{"history_limit":9007199254740992}}`,
		`{"loop_detection":{"max_state_visits":0}}`, `{"x-":0}`, `[`, `{"profile":"compat"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, section []byte) {
		c, problems := guard.Parse(section, false)
		if (c == nil) != (len(problems) > 0) {
			t.Fatalf("%q: %v and %v", section, c, problems)
		}
		if c == nil {
			return
		}
		if !json.Valid(section) {
			t.Fatalf("%q is no JSON and was accepted", section)
		}
		step := verdict.Step{Task: "t", State: "s", MetaJSON: []byte("[1]")}
		s := guard.State{}.Advance(c, step)
		c.Check(s, step)
		merged, err := guard.Merge(section, section)
		if err != nil {
			t.Fatalf("%q over itself: %v", section, err)
		}
		if again, problems := guard.Parse(merged, false); !reflect.DeepEqual(again, c) {
			t.Fatalf("%q over itself is %s: %v", section, merged, problems)
		}
	})
}

// TestGuardsPriceWithTheWholeTable: the prices of a guards section are a whole price
// table.
func TestGuardsPriceWithTheWholeTable(t *testing.T) {
	c := parse(t, `{"cost":{"version":"2026-03","on_unknown_model":"estimate_max","prices":{
		"plain":{"input_per_1m":3,"output_per_1m":15,"aliases":["p"]},
		"cached":{"input_per_1m":3,"output_per_1m":15,"cache_read_per_1m":0.3}}}}`)
	use := specialist.Usage{NumInputTokens: 1_000_000, Given: specialist.InputGiven | specialist.OutputGiven, Detail: &specialist.UsageDetail{CacheReadTokens: 1_000_000}}
	if u := c.Price(use, "cached"); u.CostUSD.String() != "0.3" || u.Estimated {
		t.Errorf("cached: %+v", u)
	}
	if u := c.Price(use, "nobody"); u.CostUSD.String() != "3" || !u.Estimated {
		t.Errorf("unknown: %+v", u)
	}
	if !c.Knows("p") || c.Cost.Table().Version != "2026-03" {
		t.Error("the section's table is not the whole one")
	}
}
