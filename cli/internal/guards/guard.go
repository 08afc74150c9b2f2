// Package guards has the commands of who guards an agent that is none of ours: one verdict, a
// hook before each call, what a log says of budgets and loops, a log judged again. They need no
// store, and no engine.
package guards

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// An app is one call of the program.
type app struct{ *command.App }

// GuardCommand returns dialai guard.
func GuardCommand(call *command.App) *cobra.Command {
	a := &app{call}
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "See what guards do",
		Long: `Guards judge each step of an agent before it is executed: what it spends, which
tools it calls, what it says, and whether it goes round in circles. dialai check
judges the steps of your own agent.`,
		Example: "  dialai guard demo",
	}
	cmd.AddCommand(a.guardUsage(&cobra.Command{
		Use:   "demo",
		Short: "Watch four agents run into their guards",
		Long: `Run four scripted agents under one set of guards until each is stopped: one that
deploys without tests, one that repeats itself, one that writes too many files, and
one that is too expensive. Each verdict says why. No model is asked, and nothing is
stored. With --verbose the guards are shown first: save them and try them with
dialai check.`,
		Example: `  dialai guard demo
  dialai guard demo --json`,
		RunE: func(*cobra.Command, []string) error { return a.guardDemo() },
	}))
	return cmd
}

// demoGuards are the guards of the demo.
const demoGuards = `{
  "tool_calls": {
    "allowed": ["search", "read_file", "write_file", "run_tests", "deploy"],
    "blast_radius": {"write_file": 2},
    "sequence": [{"tool": "deploy", "requires_prev": "run_tests"}]
  },
  "cost": {
    "max_dollars_per_task": 0.05,
    "prices": {"demo-model": {"input_per_1m": 2.5, "output_per_1m": 10}}
  },
  "loop_detection": {"detect_identical_tool_calls": true}
}
`

// A demoAgent is an agent that does what is written here.
type demoAgent struct {
	task, about string
	steps       []demoStep
}

// A demoStep is what an agent wants to do next, and what thinking of it has used.
type demoStep struct {
	tool, args string
	in, out    int64
}

var demoAgents = []demoAgent{
	{"release", "an agent that deploys without running the tests first", []demoStep{
		{"read_file", `{"path":"CHANGELOG.md"}`, 900, 60},
		{"deploy", `{"to":"production"}`, 1000, 40},
		{"run_tests", `{}`, 1100, 30},
	}},
	{"research", "an agent that asks the same question again", []demoStep{
		{"search", `{"query":"flaky test","page":1}`, 800, 50},
		{"search", `{"query":"flaky test","page":2}`, 1600, 50},
		{"search", `{"page":2,"query":"flaky test"}`, 2400, 50},
		{"search", `{"page":2,"query":"flaky test"}`, 3200, 50},
	}},
	{"refactoring", "an agent that may write two files and wants more", []demoStep{
		{"write_file", `{"path":"a.go"}`, 1200, 400},
		{"write_file", `{"path":"b.go"}`, 1700, 400},
		{"write_file", `{"path":"c.go"}`, 2200, 400},
	}},
	{"summary", "an agent that reads more than it may spend", []demoStep{
		{"read_file", `{"path":"book-1.txt"}`, 7000, 300},
		{"read_file", `{"path":"book-2.txt"}`, 8000, 300},
		{"read_file", `{"path":"book-3.txt"}`, 9000, 300},
	}},
}

// DemoLine is one step of the demo as --json shows it.
type DemoLine struct {
	Task    string          `json:"task"`
	Step    int             `json:"step"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Status  string          `json:"status"`
	Reasons []demoReason    `json:"reasons"`
	USD     exact.Money     `json:"usd"` // of the task so far, this step included
}

type demoReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (a *app) guardDemo() error {
	config, problems := guard.ParseAs([]byte(demoGuards), guard.Compat)
	if len(problems) > 0 {
		return &guard.ConfigError{Path: "demo", Problems: problems}
	}
	g, err := guard.New(config)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Out)
	if a.Flags.Verbose {
		fmt.Fprintf(a.Err, "The guards:\n%s\n", demoGuards)
	}
	for i, agent := range demoAgents {
		if !a.Flags.JSON && !a.Flags.Quiet {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintf(out, "%s: %s\n", agent.task, agent.about)
		}
		if err := a.runDemo(out, g, agent); err != nil {
			return err
		}
	}
	return out.Flush()
}

// runDemo lets an agent work until a guard stops it.
func (a *app) runDemo(out io.Writer, g *guard.Guard, agent demoAgent) error {
	for i, s := range agent.steps {
		v, metrics, err := g.Check(guard.CheckInput{
			TaskID: agent.task, Model: "demo-model", TokensIn: s.in, TokensOut: s.out,
			ToolCalls: []verdict.ToolCall{{Name: s.tool, Args: json.RawMessage(s.args)}},
		})
		if err != nil {
			return err
		}
		line := DemoLine{agent.task, i + 1, s.tool, json.RawMessage(s.args), v.Status.String(), []demoReason{}, metrics.Spent.Money}
		for _, r := range v.Reasons {
			line.Reasons = append(line.Reasons, demoReason{r.Code, r.Message})
		}
		if err := a.printDemo(out, s, line); err != nil {
			return err
		}
		if !v.Passed() {
			return nil
		}
	}
	return nil
}

func (a *app) printDemo(out io.Writer, s demoStep, line DemoLine) error {
	switch {
	case a.Flags.JSON:
		return render.JSON(out, line)
	case a.Flags.Quiet:
		for _, r := range line.Reasons {
			fmt.Fprintf(out, "%s: %s\n", line.Task, r.Code)
		}
		return nil
	}
	_, err := fmt.Fprintf(out, "  %d  %-6s %-9s %s %s\n", line.Step, line.Status, "$"+line.USD.String(), s.tool, s.args)
	for _, r := range line.Reasons {
		fmt.Fprintf(out, "     %s\n", strings.TrimSpace(r.Code+": "+r.Message))
	}
	return err
}
