package guard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

func configOf(t *testing.T, section string) *guard.Config {
	t.Helper()
	c, problems := guard.Parse([]byte(section), false)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", section, problems)
	}
	return c
}

func raiseTo(limit, to string) []guard.Raise {
	return []guard.Raise{{Limit: limit, To: json.Number(to)}}
}

// TestRaisedLimitsFlipDecisions: what a limit refuses it lets pass once it is raised
// as far as needed, and not a step before; the code of the refusal leads to the limit.
func TestRaisedLimitsFlipDecisions(t *testing.T) {
	call := verdict.ToolCall{Name: "write", Args: []byte(`{"x":1}`)}
	usage := func(n int64) specialist.Usage {
		return specialist.Usage{NumInputTokens: n, Given: specialist.InputGiven}.WithCost(1_500_000_000_000)
	}
	for _, c := range []struct {
		section, limit, code string
		from, short, enough  string
		step                 verdict.Step
		times                int // the step is executed before
	}{
		{`{"limits":{"max_steps":1}}`, "limits.max_steps", "max_steps", "1", "2", "3", verdict.Step{}, 2},
		{`{"limits":{"max_tokens_per_step":5}}`, "limits.max_tokens_per_step", "max_tokens_step", "5", "8", "9", verdict.Step{TokensIn: 9}, 0},
		{`{"limits":{"max_total_tokens":5}}`, "limits.max_total_tokens", "max_tokens_total", "5", "13", "14", verdict.Step{}, 2},
		{`{"limits":{"output_max":2}}`, "limits.output_max", "length_max", "2", "3", "4", verdict.Step{Output: "four", HasOutput: true}, 0},
		{`{"cost":{"max_dollars_per_task":1}}`, "cost.max_dollars_per_task", "cost_cap", "1", "2.99", "3.00", verdict.Step{}, 2},
		{`{"retry":{"max_attempts":1}}`, "retry.max_attempts", "retry_exhausted", "1", "2", "3", verdict.Step{Attempt: 3}, 0},
		{`{"loop_detection":{"max_state_visits":1,"progress_aware":false}}`, "loop_detection.max_state_visits", "loop_state_cycle", "1", "2", "3", verdict.Step{State: "s"}, 2},
		{`{"loop_detection":{"max_output_repeats":1,"mode":"off"}}`, "loop_detection.max_output_repeats", "loop_repeat_output", "1", "2", "3", verdict.Step{Output: "the same", HasOutput: true}, 2},
		{`{"loop_detection":{"max_repeats":1,"mode":"any_ngram","ngram_size":1}}`, "loop_detection.max_repeats", "loop_repeat_output", "1", "2", "3", verdict.Step{Output: "word", HasOutput: true}, 2},
		{`{"tool_calls":{"blast_radius":{"write":1}},"loop_detection":{"detect_identical_tool_calls":false}}`, "tool_calls.blast_radius.write", "tool_blast_radius", "1", "2", "3", verdict.Step{ToolCalls: []verdict.ToolCall{call}}, 2},
		{`{"budget":{"hard_limit_tokens":5}}`, "budget.hard_limit_tokens", "budget_tokens", "5", "13", "14", verdict.Step{}, 2},
		{`{"budget":{"hard_limit_calls":1}}`, "budget.hard_limit_calls", "budget_calls", "1", "1.0e0", "2", verdict.Step{}, 2},
		{`{"budget":{"hard_limit_usd":1}}`, "budget.hard_limit_usd", "budget_usd", "1", "2.999999999999", "3", verdict.Step{}, 2},
		{`{"budget":{"hard_limit_wall_ms":10}}`, "budget.hard_limit_wall_ms", "budget_wall", "10", "98", "99", verdict.Step{At: 100, Began: 1, Moved: 1}, 0},
		{`{"budget":{"round_limit_wall_ms":10}}`, "budget.round_limit_wall_ms", "budget_wall", "10", "98", "99", verdict.Step{At: 100, Began: 1, Moved: 1}, 0},
		{`{"budget":{"no_progress_ms":10}}`, "budget.no_progress_ms", "budget_no_progress", "10", "98", "99", verdict.Step{At: 100, Began: 1, Moved: 1}, 0},
	} {
		config := configOf(t, c.section)
		var state guard.State
		for range c.times {
			state = state.Charge(usage(7), "").Advance(config, c.step)
		}
		refused := func(config *guard.Config) bool {
			return slices.Contains(config.Check(state, c.step).Codes(), c.code)
		}
		if !refused(config) {
			t.Errorf("%s: not refused by %s", c.limit, c.code)
		}
		named := config.LimitsOf(c.code)
		if !slices.ContainsFunc(named, func(r guard.Raise) bool { return r.Limit == c.limit && r.From.String() == c.from }) {
			t.Errorf("%s leads to %+v", c.code, named)
		}
		for _, to := range []string{c.short, c.enough} {
			raises, problems := config.Raise("s", raiseTo(c.limit, to))
			if to == "1.0e0" { // it is what applies, written in another way
				if len(problems) != 1 || problems[0].Code != "no-raise" {
					t.Errorf("%s to %s: %v", c.limit, to, problems)
				}
				continue
			}
			if len(problems) > 0 || len(raises) != 1 || raises[0].State != "s" || raises[0].From.String() != c.from {
				t.Errorf("%s to %s: %+v, %v", c.limit, to, raises, problems)
				continue
			}
			lifted, err := config.Lift(config, raises)
			if err != nil || refused(lifted) != (to == c.short) || !refused(config) {
				t.Errorf("%s raised to %s: refused %t, before it %t; %v", c.limit, to, refused(lifted), refused(config), err)
			}
		}
	}
}

// TestRaiseOfWhatIsReserved: the budget's own questions of a call see a raised limit.
func TestRaiseOfWhatIsReserved(t *testing.T) {
	config := configOf(t, `{"budget":{"hard_limit_usd":1,"probe_share_max":0.2,"soft_limit_usd":0.5,"soft_limit_tokens":5}}`)
	spent, need := spend.Book{Money: 9e11}, spend.Book{Calls: 1, Money: 2e11}
	raises, problems := config.Raise("", append(raiseTo("budget.hard_limit_usd", "1.1"), raiseTo("budget.probe_share_max", "0.25")...))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	lifted, err := config.Lift(config, raises)
	if err != nil || config.Budget.Admit(spent, spend.Book{}, need) == nil || lifted.Budget.Admit(spent, spend.Book{}, need) != nil {
		t.Errorf("the raised budget does not admit: %v", err)
	}
	need.Money = 25e10
	spent.Money = 75e10
	if e := config.Budget.AdmitProbe(spent, spend.Book{}, spend.Book{}, need); e == nil || e.Code != "budget_probe_share" || lifted.Budget.AdmitProbe(spent, spend.Book{}, spend.Book{}, need) != nil {
		t.Errorf("the share of probes: %v", e)
	}
	if named := config.LimitsOf("budget_probe_share"); len(named) != 1 || named[0].From != "0.2" {
		t.Errorf("it leads to %+v", named)
	}
	for limit, to := range map[string]string{"budget.soft_limit_usd": "0.75", "budget.soft_limit_tokens": "6"} {
		if raises, problems := config.Raise("", raiseTo(limit, to)); len(problems) > 0 || raises[0].To.String() != to {
			t.Errorf("%s: %+v, %v", limit, raises, problems)
		}
	}
}

// TestRaiseProblems: what is no raise says so, in the words of the loader where the
// value is at fault, and changes nothing.
func TestRaiseProblems(t *testing.T) {
	section := `{"limits":{"max_steps":5},"budget":{"soft_limit_usd":1,"hard_limit_usd":2},"tool_calls":{"blast_radius":{"fs.write":2}},"loop_detection":{"max_output_repeats":false}}`
	for _, c := range []struct{ limit, to, want string }{
		{"limits.max_steps", "4", `/limits/max_steps no-raise limits.max_steps is 5 already, so 4 is no raise (give more than 5)`},
		{"limits.max_steps", "5", `/limits/max_steps no-raise limits.max_steps is 5 already, so 5 is no raise (give more than 5)`},
		{"limits.max_steps", "-1", `/limits/max_steps out-of-range max_steps is -1, not a whole number from 0`},
		{"limits.max_steps", "6.5", `/limits/max_steps out-of-range max_steps is 6.5, not a whole number from 0`},
		{"limits.max_steps", "1e400", `/limits/max_steps out-of-range max_steps is 1e400, not a whole number from 0`},
		{"limits.max_steps", "0x10", `/limits/max_steps out-of-range max_steps is "0x10", not a whole number from 0`},
		{"limits.max_steps", "", `/limits/max_steps out-of-range max_steps is "", not a whole number from 0`},
		{"limits.max_steps", "null", `/limits/max_steps out-of-range max_steps is "null", not a whole number from 0`},
		{"limits.max_steps", "99999999999999999999", `/limits/max_steps out-of-range max_steps is 99999999999999999999, more than 9007199254740992`},
		{"budget.hard_limit_usd", "two", `/budget/hard_limit_usd out-of-range hard_limit_usd is "two", not an amount of US dollars from 0`},
		{"budget.probe_share_max", "2", `/budget/probe_share_max out-of-range probe_share_max is 2, not a number from 0 to 1`},
		{"budget.soft_limit_usd", "3", `/budget/soft_limit_usd contradiction soft_limit_usd is 3, more than hard_limit_usd, which is 2 (raise both)`},
		{"limits.max_total_tokens", "5", `/limits/max_total_tokens no-limit limits.max_total_tokens limits nothing here, so there is nothing to raise`},
		{"loop_detection.max_output_repeats", "9", `/loop_detection/max_output_repeats no-limit loop_detection.max_output_repeats limits nothing here, so there is nothing to raise`},
		{"tool_calls.blast_radius.read", "9", `/tool_calls/blast_radius/read no-limit tool_calls.blast_radius.read limits nothing here, so there is nothing to raise`},
		{"max_steps", "9", ` unknown-limit "max_steps" is no limit that can be raised (did you mean "limits.max_steps"?)`},
		{"guards.budget.hard_limit_usd", "9", ` unknown-limit "guards.budget.hard_limit_usd" is no limit that can be raised (did you mean "budget.hard_limit_usd"?)`},
		{"budget.hard_limit_us", "9", ` unknown-limit "budget.hard_limit_us" is no limit that can be raised (did you mean "budget.hard_limit_usd"?)`},
		{"quota.usd", "9", ` unknown-limit "quota.usd" is no limit that can be raised (what a tenant may use is the operator's to say, and is not raised for one session)`},
	} {
		config := configOf(t, section)
		raises, problems := config.Raise("s", raiseTo(c.limit, c.to))
		if got := listed(problems); got != c.want || raises != nil {
			t.Errorf("%s=%s:\n got %s\nwant %s", c.limit, c.to, got, c.want)
		}
	}
	config := configOf(t, section)
	if _, problems := config.Raise("s", raiseTo("forbidden_patterns", "1")); len(problems) != 1 || !strings.Contains(problems[0].Hint, "limits.max_steps, ") {
		t.Errorf("what can be raised is not listed: %v", problems)
	}
	if _, problems := config.Raise("s", append(raiseTo("limits.max_steps", "6"), raiseTo("limits.max_steps", "7")...)); listed(problems) != `/limits/max_steps duplicate-member limits.max_steps is given twice (keep one of them)` {
		t.Errorf("twice: %v", problems)
	}
	if _, problems := (*guard.Config)(nil).Raise("s", raiseTo("limits.max_steps", "6")); len(problems) != 1 || problems[0].Code != "no-limit" {
		t.Errorf("without guards: %v", problems)
	}
	if raises, problems := config.Raise("s", raiseTo("tool_calls.blast_radius.fs.write", "3")); len(problems) > 0 || raises[0].From != "2" {
		t.Errorf("a tool with a dot: %+v, %v", raises, problems)
	}
}

// TestRaisableLimitsAreDocumented: docs/guards.md lists what can be raised, and
// nothing else.
func TestRaisableLimitsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/guards.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(data), "These can be raised:\n")
	list, _, _ = strings.Cut(list, "\n\nA limit that")
	var documented []string
	for _, match := range regexp.MustCompile("`([a-zA-Z._]+)`").FindAllStringSubmatch(list, -1) {
		documented = append(documented, match[1])
	}
	slices.Sort(documented)
	_, problems := configOf(t, `{}`).Raise("", raiseTo("none", "1"))
	if got, want := strings.Join(documented, ", "), strings.TrimPrefix(problems[0].Hint, "there are "); got != want || got == "" {
		t.Errorf("documented are %s\nthere are %s", got, want)
	}
}

// TestLift lifts the limit of the state a task stands in, and those that are the
// same elsewhere; a limit of another height stays, and none is ever lowered.
func TestLift(t *testing.T) {
	at := configOf(t, `{"limits":{"max_steps":5}}`)
	raises := []guard.Raise{{Limit: "limits.max_steps", State: "s", From: "5", To: "9"}}
	for section, want := range map[string]string{
		`{"limits":{"max_steps":5}}`:  "9",
		`{"limits":{"max_steps":3}}`:  "3",
		`{"limits":{"max_steps":12}}`: "12",
		`{}`:                          "",
	} {
		lifted, err := configOf(t, section).Lift(at, raises)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, l := range lifted.LimitsOf("max_steps") {
			got = l.From.String()
		}
		if got != want {
			t.Errorf("%s is raised to %s, want %s", section, got, want)
		}
	}
	if lifted, err := at.Lift(at, []guard.Raise{{Limit: "limits.max_steps", To: "4"}}); err != nil || lifted != at {
		t.Errorf("lowered: %v", err)
	}
	for _, bad := range []guard.Raise{{Limit: "limits", To: "9"}, {Limit: "limits.max_steps", To: "many"}} {
		if _, err := at.Lift(at, []guard.Raise{bad}); err == nil {
			t.Errorf("%+v is no error", bad)
		}
	}
	if lifted, err := (*guard.Config)(nil).Lift(at, raises); lifted != nil || err != nil {
		t.Errorf("nothing became %v, %v", lifted, err)
	}
}

// TestReplayOfRaisedLimits: from where a log says that a human raised a limit, steps
// of that task are judged by the raised one: a log that holds a raise replays equal,
// and other guards that are stricter are raised as well.
func TestReplayOfRaisedLimits(t *testing.T) {
	for section, want := range map[string]string{
		`{"limits":{"max_steps":1}}`: "ok abort ok abort",
		`{"limits":{"max_steps":0}}`: "abort abort ok abort",
		`{"limits":{"max_steps":3}}`: "ok ok ok ok",
		`{}`:                         "ok ok ok ok",
	} {
		r := guard.NewReplayer(configOf(t, section), map[string]*guard.Config{"own": configOf(t, `{"limits":{"max_steps":0}}`)})
		var got []string
		for _, line := range []string{
			`{"type":"check","task_id":"t","verdict":"ok","payload":"full","input":{}}`,
			`{"type":"check","task_id":"t","verdict":"abort","payload":"full","input":{}}`,
			`{"type":"raised","task_id":"t","message":"n","meta":{"actor":"carol","raised":[{"limit":"limits.max_steps","state":"s","from":1,"to":2}]}}`,
			`{"type":"check","task_id":"t","verdict":"ok","payload":"full","input":{}}`,
			`{"type":"check","task_id":"t","verdict":"abort","payload":"full","input":{}}`,
		} {
			rec, err := guard.ParseLog([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if result, isCheck := r.Next(rec); isCheck {
				got = append(got, result.Verdict.Status.String())
			}
		}
		if fmt.Sprint(strings.Join(got, " ")) != want {
			t.Errorf("%s: %v, want %s", section, got, want)
		}
		other, err := guard.ParseLog([]byte(`{"type":"check","task_id":"u","verdict":"ok","payload":"full","input":{"from_state":"own"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if result, _ := r.Next(other); result.Verdict.Status != verdict.Abort {
			t.Errorf("%s: another task was raised too", section)
		}
	}
}

// TestParseLogRaised: a line about a raise that cannot be read is malformed.
func TestParseLogRaised(t *testing.T) {
	for _, meta := range []string{`null`, `{}`, `{"raised":[]}`, `{"raised":[{"limit":"limits.max_step","to":2}]}`, `{"raised":[{"limit":"limits.max_steps","to":-2}]}`, `{"raised":[{"limit":"limits.max_steps","to":"many"}]}`} {
		if _, err := guard.ParseLog([]byte(`{"type":"raised","task_id":"t","meta":` + meta + `}`)); err == nil {
			t.Errorf("%s is no error", meta)
		}
	}
}

// listed returns problems as text: path, code, message, hint.
func listed(problems []machine.Problem) string {
	var lines []string
	for _, p := range problems {
		line := fmt.Sprintf("%s %s %s", p.Path, p.Code, p.Message)
		if p.Hint != "" {
			line += " (" + p.Hint + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
