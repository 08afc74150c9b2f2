package guard_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

const seed = 20260301

// parse reads a guards section that has no problems.
func parse(t testing.TB, section string) *guard.Config {
	t.Helper()
	c, problems := guard.Parse([]byte(section), false)
	if len(problems) > 0 {
		t.Fatalf("guards %s: %v", section, problems)
	}
	return c
}

// codes returns what a verdict says, most severe first: "abort [max_steps]".
func codes(v verdict.Verdict) string {
	if len(v.Reasons) == 0 {
		return v.Status.String()
	}
	return fmt.Sprint(v.Status, " ", v.Codes())
}

// visited returns the state of a task that has been n times in a state it knows
// something about.
func visited(c *guard.Config, n int64, step verdict.Step) (s guard.State) {
	for range n {
		s = s.Advance(c, step)
	}
	return s
}

// TestLimits holds every limit to its meaning: the largest value still permitted.
func TestLimits(t *testing.T) {
	here := verdict.Step{State: "here", SessionMeta: []byte(`{"known":true}`)}
	for _, c := range []struct {
		section, code string
		limit         int64
		at            func(c *guard.Config, n int64) (guard.State, verdict.Step)
	}{
		{`{"limits":{"max_steps":3}}`, "max_steps", 3, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{Steps: n - 1}, verdict.Step{}
		}},
		{`{"limits":{"max_tokens_per_step":10}}`, "max_tokens_step", 10, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{}, verdict.Step{TokensIn: n / 3, TokensOut: n - n/3}
		}},
		{`{"limits":{"max_total_tokens":10}}`, "max_tokens_total", 10, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{Spent: spend.Book{TokensIn: n - 4, TokensOut: 4}}, verdict.Step{TokensIn: n} // booked already
		}},
		{`{"limits":{"max_total_tokens":10,"cap_basis":"progress"}}`, "max_tokens_total", 10, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{TokensIn: 3, TokensOut: 2, Spent: spend.Book{TokensIn: 1000}}, verdict.Step{TokensIn: 1, TokensOut: n - 6}
		}},
		{`{"cost":{"max_dollars_per_task":0.000000000003}}`, "cost_cap", 3, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{Spent: spend.Book{Money: exact.Money(n)}}, verdict.Step{Cost: 100, CostGiven: true} // booked already
		}},
		{`{"cost":{"max_dollars_per_task":3e-12},"limits":{"cap_basis":"progress"}}`, "cost_cap", 3, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{Money: 1, Spent: spend.Book{Money: 1000}}, verdict.Step{Cost: exact.Money(n) - 1, CostGiven: true}
		}},
		{`{"loop_detection":{"max_state_visits":4}}`, "loop_state_cycle", 4, func(c *guard.Config, n int64) (guard.State, verdict.Step) {
			return visited(c, n-1, here), here
		}},
		{`{}`, "loop_state_cycle", guard.DefaultMaxStateVisits, func(c *guard.Config, n int64) (guard.State, verdict.Step) {
			return visited(c, n-1, here), here
		}},
		{`{"retry":{"max_attempts":2}}`, "retry_exhausted", 2, func(_ *guard.Config, n int64) (guard.State, verdict.Step) {
			return guard.State{}, verdict.Step{Attempt: n}
		}},
	} {
		config := parse(t, c.section)
		for n := c.limit - 1; n <= c.limit+1; n++ {
			want := "ok"
			if n > c.limit {
				want = "abort [" + c.code + "]"
			}
			state, step := c.at(config, n)
			v := config.Check(state, step)
			if got := codes(v); got != want {
				t.Errorf("%s at %d: %s, want %s", c.section, n, got, want)
			}
			if v.Passed() != (n <= c.limit) {
				t.Errorf("%s at %d: Passed = %t", c.section, n, v.Passed())
			}
		}
	}
}

// TestLimitOfZero: nothing at all is permitted.
func TestLimitOfZero(t *testing.T) {
	for _, c := range []struct {
		section, want string
		step          verdict.Step
	}{
		{`{"limits":{"max_steps":0}}`, "abort [max_steps]", verdict.Step{}},
		{`{"limits":{"max_tokens_per_step":0}}`, "ok", verdict.Step{}},
		{`{"limits":{"max_tokens_per_step":0}}`, "abort [max_tokens_step]", verdict.Step{TokensOut: 1}},
		{`{"cost":{"max_dollars_per_task":0}}`, "ok", verdict.Step{}},
		{`{"loop_detection":{"max_state_visits":0}}`, "abort [loop_state_cycle]", verdict.Step{State: "s", SessionMeta: []byte("1")}},
		{`{"retry":{"max_attempts":0}}`, "ok", verdict.Step{}},
		{`{"retry":{"max_attempts":0}}`, "abort [retry_exhausted]", verdict.Step{Attempt: 1}},
	} {
		if got := codes(parse(t, c.section).Check(guard.State{}, c.step)); got != c.want {
			t.Errorf("%s: %s, want %s", c.section, got, c.want)
		}
	}
}

// TestReasonsSayWhatWasHeldAgainstWhat pins texts, numbers and the order: most
// severe first, then limits, cost, loop, retry.
func TestReasonsSayWhatWasHeldAgainstWhat(t *testing.T) {
	c := parse(t, `{"limits":{"max_steps":1,"max_tokens_per_step":5,"max_total_tokens":6},
		"cost":{"max_dollars_per_task":0.5},"loop_detection":{"max_state_visits":1},"retry":{"max_attempts":1}}`)
	step := verdict.Step{State: "open", TokensIn: 4, TokensOut: 4, Attempt: 2}
	s := guard.State{}.Advance(c, step).Advance(c, step)
	s.Spent = spend.Book{TokensIn: 4, TokensOut: 4, Money: 2 * exact.Dollar, Unpriced: 1}
	v := c.Check(s, step)
	var got []string
	for _, r := range v.Reasons {
		got = append(got, fmt.Sprint(r.Class, " ", r.Guard, " ", r.Text(), " ", r.Limit, " ", r.Seen, " ", r.Indices))
	}
	want := []string{
		"abort limits max_steps: the number of steps is 3, more than the limit of 1 1 3 []",
		"abort limits max_tokens_step: the number of tokens of this step is 8, more than the limit of 5 5 8 []",
		"abort limits max_tokens_total: the number of tokens of the session is 8, more than the limit of 6 6 8 []",
		"abort cost cost_cap: the session has cost $2, more than the cap of $0.5 0.5 2 []",
		"abort retry retry_exhausted: the attempt is 2, more than the limit of 1 1 2 []",
		"warn cost unpriced_model: a model without a price was used, so the dollar cap does not see its cost   []",
		`warn loop loop_state_cycle: the number of visits of state "open" without news is 3, more than the limit of 1 1 3 [0 1]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the reasons are\n%q, want\n%q", got, want)
	}
	if v.Status != verdict.Abort || v.Reasons[0].Class != v.Status {
		t.Errorf("the status is %s, the first reason %s", v.Status, v.Reasons[0].Class)
	}
}

// TestHumansAreHeldToBudgetsOnly: a ruling is not looped, retried or warned away.
func TestHumansAreHeldToBudgetsOnly(t *testing.T) {
	c := parse(t, `{"limits":{"max_steps":5},"cost":{"max_dollars_per_task":1},"loop_detection":{"max_state_visits":1},"retry":{"max_attempts":1}}`)
	step := verdict.Step{State: "open", SessionMeta: []byte("1"), Attempt: 9}
	s := visited(c, 4, step)
	if got := codes(c.Check(s, step)); got != "abort [loop_state_cycle retry_exhausted]" {
		t.Errorf("an agent's step: %s", got)
	}
	step.Human = true
	if got := codes(c.Check(s, step)); got != "ok" {
		t.Errorf("the same as a ruling: %s", got)
	}
	s.Spent.Unpriced = 1
	if got := codes(c.Check(s, step)); got != "warn [unpriced_model]" {
		t.Errorf("a ruling after an unpriced call: %s", got)
	}
	s.Spent.Money = 2 * exact.Dollar
	if got := codes(c.Check(s.Advance(c, step), step)); got != "abort [max_steps cost_cap unpriced_model]" {
		t.Errorf("a ruling past every budget: %s", got)
	}
}

func TestUnpricedModel(t *testing.T) {
	for _, c := range []struct{ section, want string }{
		{`{}`, "ok"}, // no cap, so nothing goes unseen
		{`{"cost":{"max_dollars_per_task":1}}`, "abort [unpriced_model]"},
		{`{"cost":{"max_dollars_per_task":1},"limits":{"max_steps":9}}`, "warn [unpriced_model]"},
		{`{"cost":{"max_dollars_per_task":1},"limits":{"max_total_tokens":9}}`, "warn [unpriced_model]"},
		{`{"cost":{"max_dollars_per_task":1},"limits":{"max_tokens_per_step":9}}`, "warn [unpriced_model]"},
		{`{"cost":{"max_dollars_per_task":1},"retry":{"max_attempts":9}}`, "abort [unpriced_model]"}, // bounds no spending
		{`{"cost":{"max_dollars_per_task":1,"on_unknown_model":"warn"}}`, "abort [unpriced_model]"},  // it is the only cap
		{`{"cost":{"max_dollars_per_task":1,"on_unknown_model":"abort"},"limits":{"max_steps":9}}`, "abort [unpriced_model]"},
		{`{"cost":{"max_dollars_per_task":1,"on_unknown_model":"skip"}}`, "ok"},
	} {
		for _, basis := range []string{"spend", "progress"} {
			config := parse(t, c.section)
			config.Limits.CapBasis = guard.CapBasis(basis)
			usage := specialist.Usage{NumInputTokens: 1}
			s := guard.State{}.Charge(usage, "mystery")
			if got := codes(config.Check(s, verdict.Step{Model: "mystery", TokensIn: 1})); got != c.want {
				t.Errorf("%s by %s: %s, want %s", c.section, basis, got, c.want)
			}
			// A cost that is known, and no model at all, are nobody's mystery.
			known := guard.State{}.Charge(usage.WithCost(1), "mystery").Charge(usage, "")
			if got := codes(config.Check(known, verdict.Step{Model: "mystery", CostGiven: true})); got != "ok" {
				t.Errorf("%s by %s with a known cost: %s", c.section, basis, got)
			}
		}
	}
	// A budget in dollars is blind to it in the same way, by whatever book caps go.
	for _, c := range []struct{ section, want string }{
		{`{"budget":{"hard_limit_usd":1}}`, "abort [unpriced_model]"},
		{`{"profile":"compat","budget":{"hard_limit_usd":1}}`, "ok"},
		{`{"budget":{"hard_limit_usd":1},"cost":{"on_unknown_model":"skip"}}`, "ok"},
		{`{"budget":{"hard_limit_usd":1,"mode":"observe"}}`, "ok"}, // it stops nothing anyway
		{`{"budget":{"soft_limit_usd":1}}`, "ok"},
		{`{"budget":{"hard_limit_usd":1},"limits":{"max_steps":9}}`, "warn [unpriced_model]"},
		{`{"budget":{"hard_limit_usd":1,"hard_limit_tokens":9}}`, "warn [unpriced_model]"},
		{`{"budget":{"hard_limit_usd":1,"hard_limit_calls":9}}`, "warn [unpriced_model]"},
		{`{"budget":{"hard_limit_usd":1,"hard_limit_wall_ms":9}}`, "warn [unpriced_model]"},
		{`{"budget":{"hard_limit_usd":1,"hard_limit_calls":9},"cost":{"on_unknown_model":"abort"}}`, "abort [unpriced_model]"},
		{`{"budget":{"hard_limit_calls":9},"cost":{"max_dollars_per_task":1}}`, "warn [unpriced_model]"},
	} {
		s := guard.State{}.Charge(specialist.Usage{NumInputTokens: 1}, "mystery")
		if got := codes(parse(t, c.section).Check(s, verdict.Step{Model: "mystery", TokensIn: 1})); got != c.want {
			t.Errorf("%s: %s, want %s", c.section, got, c.want)
		}
	}
	// By spend, a loser's unpriced call counts although the winner's was priced.
	c := parse(t, `{"cost":{"max_dollars_per_task":1}}`)
	s := guard.State{}.Charge(specialist.Usage{}, "mystery").Charge(specialist.Usage{}.WithCost(1), "known")
	if got := codes(c.Check(s, verdict.Step{Model: "known", CostGiven: true})); got != "abort [unpriced_model]" {
		t.Errorf("after a loser's unpriced call: %s", got)
	}
}

func TestPrice(t *testing.T) {
	c := parse(t, `{"cost":{"prices":{"small":{"input_per_1m":0.15,"output_per_1m":0.6},"free":{"input_per_1m":0,"output_per_1m":0},"fine":{"input_per_1m":1e-12,"output_per_1m":0}}}}`)
	use := func(in, out int64) specialist.Usage {
		return specialist.Usage{NumInputTokens: in, NumOutputTokens: out}
	}
	for _, tc := range []struct {
		model string
		usage specialist.Usage
		want  string
		given bool
	}{
		{"small", use(1_000_000, 1_000_000), "0.75", true},
		{"small", use(1, 0), "0.00000015", true},
		{"small", use(1000, 200), "0.00027", true},
		{"small", use(5, 5).WithCost(7), "0.000000000007", true}, // told beats computed
		{"free", use(1e9, 1e9), "0", true},
		{"fine", use(1, 0), "0.000000000001", true}, // rounds up: no use is free by rounding
		{"mystery", use(5, 5), "0", false},
		{"", use(5, 5), "0", false},
		{"small", use(math.MaxInt64, 0), "9223372.036854775807", true},
	} {
		u := c.Price(tc.usage, tc.model)
		if u.CostUSD.String() != tc.want || u.Has(specialist.CostGiven) != tc.given {
			t.Errorf("Price(%+v, %q) = $%s, known %t, want $%s", tc.usage, tc.model, u.CostUSD, u.Has(specialist.CostGiven), tc.want)
		}
	}
	if !c.Knows("free") || c.Knows("mystery") {
		t.Error("the table does not know what it has a price for")
	}
	var none *guard.Config
	if u := none.Price(use(1, 1), "small"); u.Has(specialist.CostGiven) || none.Knows("small") {
		t.Errorf("no configuration has a price: %+v", u)
	}
}

// TestMoneyIsExact: three steps of a ten-millionth of a dollar fill a cap of
// three to the last, which floating point gets wrong.
func TestMoneyIsExact(t *testing.T) {
	c := parse(t, `{"cost":{"max_dollars_per_task":3e-7,"prices":{"m":{"input_per_1m":0.1,"output_per_1m":0}}}}`)
	var s guard.State
	for i, want := range []string{"ok", "ok", "ok", "abort [cost_cap]"} {
		u := c.Price(specialist.Usage{NumInputTokens: 1}, "m")
		s = s.Charge(u, "m")
		if got := codes(c.Check(s, verdict.Step{State: fmt.Sprint(i)})); got != want {
			t.Errorf("after %d tokens: %s, want %s", i+1, got, want)
		}
	}
}

// TestSumsSaturate: whoever reports absurd numbers stays over every limit.
func TestSumsSaturate(t *testing.T) {
	c := parse(t, `{"limits":{"max_tokens_per_step":100,"max_total_tokens":100},"cost":{"max_dollars_per_task":1}}`)
	huge := specialist.Usage{NumInputTokens: math.MaxInt64, NumOutputTokens: math.MaxInt64}.WithCost(math.MaxInt64)
	s := guard.State{}.Charge(huge, "m").Charge(huge, "m")
	step := verdict.Step{TokensIn: math.MaxInt64, TokensOut: math.MaxInt64, Cost: math.MaxInt64, CostGiven: true}
	if got := codes(c.Check(s, step)); got != "abort [max_tokens_step max_tokens_total cost_cap]" {
		t.Errorf("by spend: %s", got)
	}
	c.Limits.CapBasis = guard.Progress
	if got := codes(c.Check(s.Advance(c, step), step)); got != "abort [max_tokens_step max_tokens_total cost_cap]" {
		t.Errorf("by progress: %s", got)
	}
}

// TestNoConfiguration: without a guards section there is nothing to check or to
// remember but the counts.
func TestNoConfiguration(t *testing.T) {
	var none *guard.Config
	step := verdict.Step{State: "here", TokensIn: 3, TokensOut: 4, Cost: 5, MetaJSON: []byte("1"), SessionMeta: []byte("1")}
	s := visited(none, 100, step)
	if got := codes(none.Check(s, step)); got != "ok" {
		t.Errorf("no configuration says %s", got)
	}
	if want := (guard.State{Steps: 100, TokensIn: 300, TokensOut: 400, Money: 500}); !reflect.DeepEqual(s, want) {
		t.Errorf("it remembers %+v, want %+v", s, want)
	}
}

// TestParseCheckInputWrongTypes: an error says which member is wrong and what it
// should be, in the words of JSON.
func TestParseCheckInputWrongTypes(t *testing.T) {
	for in, want := range map[string]string{
		`{"task_id":5}`:                             "task_id must be a string",
		`{"task_id":"t","output":[]}`:               "output must be a string",
		`{"task_id":"t","tool_calls":{}}`:           "tool_calls must be a list",
		`{"task_id":"t","tool_calls":[5]}`:          "each of tool_calls must be an object",
		`{"task_id":"t","tool_calls":[{"name":5}]}`: "tool_calls.name must be a string",
		`[]`:                                         "the value must be an object",
		`{"task_id":"t","tokens_in":"5"}`:            `tokens_in is "5", not a whole number from 0`,
		`{"task_id":"t","attempt":true}`:             "attempt is true, not a whole number from 0",
		`{"task_id":"t","tokens_out":1e30}`:          "tokens_out is 1e30, more than 9007199254740992",
		`{"task_id":"t","step":9223372036854775807}`: "step is 9223372036854775807, more than 9007199254740992",
	} {
		if _, err := guard.ParseCheckInput([]byte(in)); !errors.Is(err, verdict.ErrInput) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := guard.ParseCheckInput([]byte(`{"task_id":"t","tokens_in":null}`)); err != nil {
		t.Errorf("null is absent: %v", err)
	}
}

// TestBooleanSchemas: true is satisfied by everything, false by nothing, at the top
// and below.
func TestBooleanSchemas(t *testing.T) {
	for _, c := range []struct{ config, step, want string }{
		{`{"tool_calls":{"arg_schemas":{"f":true}}}`, `{"tool_calls":[{"name":"f","args":{"x":1}}]}`, "ok"},
		{`{"tool_calls":{"arg_schemas":{"f":true}}}`, `{"tool_calls":[{"name":"f"}]}`, "ok"},
		{`{"tool_calls":{"arg_schemas":{"f":false}}}`, `{"tool_calls":[{"name":"f","args":{}}]}`, "tool_args_invalid"},
		{`{"tool_calls":{"arg_schemas":{"f":false}}}`, `{"tool_calls":[{"name":"f"}]}`, "tool_args_invalid"},
		{`{"tool_calls":{"arg_schemas":{"f":false}}}`, `{"tool_calls":[{"name":"g"}]}`, "ok"},
		{`{"tool_calls":{"arg_schemas":{"f":{"properties":{"a":true,"b":false}}}}}`, `{"tool_calls":[{"name":"f","args":{"a":[],"c":1}}]}`, "ok"},
		{`{"tool_calls":{"arg_schemas":{"f":{"properties":{"a":true,"b":false}}}}}`, `{"tool_calls":[{"name":"f","args":{"b":null}}]}`, "tool_args_invalid"},
		{`{"schema":true}`, `{"output":"[1]"}`, "ok"},
		{`{"schema":true}`, `{"output":"no JSON"}`, "schema_invalid"},
		{`{"schema":false}`, `{"output":"{}"}`, "schema_invalid"},
	} {
		in, err := guard.ParseCheckInput([]byte(strings.Replace(c.step, "{", `{"task_id":"t",`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := newGuard(t, parse(t, c.config)).Check(in)
		if err != nil || c.want == "ok" && v.Status != verdict.OK || c.want != "ok" && codes(v) != "retry ["+c.want+"]" {
			t.Errorf("%s on %s: %s, %v, want %s", c.config, c.step, codes(v), err, c.want)
		}
	}
}

// TestSchemaThatTakesTooLong: what would take for ever to check does not fit, and the
// message says why.
func TestSchemaThatTakesTooLong(t *testing.T) {
	c := parse(t, `{"schema":{"type":"object","additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`)
	output := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
	v, _, err := newGuard(t, c).Check(guard.CheckInput{TaskID: "t", Output: &output})
	if err != nil || codes(v) != "retry [schema_invalid]" || !strings.Contains(v.Reasons[0].Message, "it is too long or nested too deep") {
		t.Errorf("%+v, %v", v, err)
	}
}
