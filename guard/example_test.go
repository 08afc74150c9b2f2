package guard_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A guards section is a JSON object. Whatever is wrong with it is said at once.
func ExampleParse() {
	_, problems := guard.Parse([]byte(`{
		"limits": { "max_steps": -1 },
		"loop_detection": { "max_state_visit": 3 } }`), false)
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// error[out-of-range]: max_steps is -1, not a whole number from 0 (at /limits/max_steps)
	// error[unknown-field]: loop_detection has no field "max_state_visit" (at /loop_detection/max_state_visit)
	//     hint: did you mean "max_state_visits"?
}

// A Guard watches any loop of calls: each step is judged before it is executed,
// and what it used is charged whether it is or not.
func ExampleGuard_Check() {
	config, _ := guard.Parse([]byte(`{ "cost": {
		"max_dollars_per_task": 0.05,
		"prices": { "some-model": { "input_per_1m": 2.5, "output_per_1m": 10 } } } }`), false)
	g, _ := guard.New(config)
	for range 4 {
		step := verdict.Step{Task: "ticket-7", State: "answering", Model: "some-model"}
		used := specialist.Usage{NumInputTokens: 4000, NumOutputTokens: 500}
		verdict, err := g.CheckStep(context.Background(), step, used)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(verdict.Status, g.State("ticket-7").Spent.Money)
		for _, r := range verdict.Reasons {
			fmt.Println("  " + r.Text())
		}
	}
	// Output:
	// ok 0.015
	// ok 0.03
	// ok 0.045
	// abort 0.06
	//   cost_cap: the session has cost $0.06, more than the cap of $0.05
	//   loop_state_cycle: the number of visits of state "answering" without news is 4, more than the limit of 3
}

// Where executing a step can fail, it is judged first and counted afterwards.
func ExampleGuard_Begin() {
	config, _ := guard.Parse([]byte(`{ "limits": { "max_steps": 1 } }`), false)
	g, _ := guard.New(config)
	deploy := func() error { return fmt.Errorf("the server is down") }

	for range 2 {
		verdict, token, err := g.BeginStep(context.Background(), verdict.Step{Task: "release", State: "deployed"}, specialist.Usage{})
		if err != nil || token == nil {
			fmt.Println(verdict.Status, verdict.Codes(), err)
			return
		}
		if err := deploy(); err != nil {
			token.Release()
			fmt.Println("not executed:", err, "- steps:", g.State("release").Steps)
			deploy = func() error { return nil }
			continue
		}
		token.Commit()
		fmt.Println("executed - steps:", g.State("release").Steps)
	}
	// Output:
	// not executed: the server is down - steps: 0
	// executed - steps: 1
}

// A program's own guards are functions.
func ExampleFunc() {
	noWeekend := guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict {
		if s.Transition == "deploy" {
			return verdict.Reject(verdict.Escalate, "weekend", "nobody deploys on a Sunday without asking")
		}
		return verdict.Verdict{}
	})
	g, _ := guard.New(nil, guard.WithCheckers(noWeekend))
	verdict, _ := g.CheckStep(context.Background(), verdict.Step{Task: "release", Transition: "deploy"}, specialist.Usage{})
	fmt.Println(verdict.Status, verdict.Reasons[0].Text())
	// Output: escalate weekend: nobody deploys on a Sunday without asking
}

// The checks are functions of values, so the past can be judged again under
// another configuration.
func ExampleConfig_Check() {
	strict, _ := guard.Parse([]byte(`{ "limits": { "max_total_tokens": 1000 } }`), false)
	var task guard.State
	task = task.Charge(specialist.Usage{NumInputTokens: 900, NumOutputTokens: 200}, "")
	verdict := strict.Check(task, verdict.Step{State: "done", Cost: 3 * exact.Dollar, CostGiven: true})
	fmt.Println(verdict.Status, verdict.Reasons[0].Text())
	// Output: abort max_tokens_total: the number of tokens of the session is 1100, more than the limit of 1000
}

// A plain agent loop: each step is judged before its tool is run. Retry asks the
// agent again, and everything more severe ends the loop.
func Example_agent() {
	config, problems := guard.ParseAs([]byte(`{
		"limits": {"max_steps": 20, "output_max": 40},
		"retry": {"max_attempts": 2},
		"tool_calls": {"sequence": [{"tool": "deploy", "requires_prev": "run_tests"}]}
	}`), guard.Compat)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	g, _ := guard.New(config)
	var attempt int64
	for _, plan := range plans { // what a model answers, one after the other
		v, _, err := g.Check(guard.CheckInput{
			TaskID: "ticket-7", Attempt: attempt, Output: &plan.says, ToolCalls: []verdict.ToolCall{{Name: plan.tool}},
		})
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case v.Passed():
			attempt = 0
			fmt.Println("run", plan.tool)
		case v.Status == verdict.Retry: // the next prompt says why
			attempt++
			fmt.Println(v.Status, v.Reasons[0].Text())
		default:
			fmt.Println(v.Status, v.Reasons[0].Text())
			return
		}
	}
	// Output:
	// run search
	// retry length_max: the length of the output is 58, more than the limit of 40
	// run read_file
	// abort tool_sequence: tool "deploy" needs "run_tests" to have been called in an earlier step
}

var plans = []struct{ says, tool string }{
	{"Let me look for the cause.", "search"},
	{"There are so many reasons why this may fail, among others…", "read_file"},
	{"It is in the scheduler.", "read_file"},
	{"Fixed. I ship it.", "deploy"},
	{"Done.", "notify"},
}
