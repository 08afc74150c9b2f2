package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/acp"
	"github.com/dialai/dialai/agent/leftover"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
)

// dialai agents check looks whether agents can be driven from here: their programs are started,
// shake hands and end again, without a turn and so without a cost. What one cannot do is said as
// what that means for the work.

// acpName is how agents are named that speak the Agent Client Protocol.
const acpName = "acp"

// A checked is what came of one agent.
type checked struct {
	Agent        string              `json:"agent"`
	Works        bool                `json:"works"`
	Version      string              `json:"version,omitempty"`
	Problem      string              `json:"problem,omitempty"` // why it does not
	Capabilities *agent.Capabilities `json:"capabilities,omitempty"`
}

// A left is what a session has left running.
type left struct {
	Session   string `json:"session"`
	Processes []int  `json:"processes"`
}

// abilities are the capabilities, as people read them: what an agent can do, and what is done
// where it cannot.
var abilities = []struct {
	can    string
	of     func(agent.Capabilities) bool
	absent string
}{
	{"asks before it uses a tool", func(c agent.Capabilities) bool { return c.Permission }, "it is driven with --trust-agent only"},
	{"goes on with a session", func(c agent.Capabilities) bool { return c.Resume }, "after an interruption a new session begins from the logs"},
	{"hears notices within a turn", func(c agent.Capabilities) bool { return c.HookNotice }, "it hears them with our next answer or prompt"},
	{"asks before it compacts its context", func(c agent.Capabilities) bool { return c.BlockCompaction }, "it hands over ten points earlier, at 75 %"},
	{"tells how full its context is as it works", func(c agent.Capabilities) bool { return c.LiveUsage }, "it hands over ten points earlier, at 75 %"},
	{"says that it is there when it is silent", func(c agent.Capabilities) bool { return c.Probe }, "silence counts half as long again"},
	{"tells what it costs", func(c agent.Capabilities) bool { return c.Cost }, "its tokens are priced, if the model's price is known"},
	{"tells its subagents apart", func(c agent.Capabilities) bool { return c.SubagentIDs }, "a subagent could make a move"},
	{"asks before it starts a subagent", func(c agent.Capabilities) bool { return c.SpawnLimits }, "subagents are not limited"},
}

func checkCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "check [agent]", Short: "Look whether coding agents can be driven from here",
		Long: `Look whether coding agents can be driven from here: each program is started, shakes
hands and ends again. No turn is taken, and nothing is spent. It says what each can do,
and what is done instead where it cannot; and which processes run that sessions of agents
have started: what is left of one whose host was killed is ended by dialai undertake
--resume.

Without an agent, claude and codex are looked at, and it fails if neither works. An agent
is named as in dialai undertake --agent.`,
		Example: `  dialai agents check
  dialai agents check "acp:opencode acp" --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names := []string{claudeName, codex}
			if len(args) == 1 {
				names = args
			}
			return checkAgents(cmd.Context(), a, names)
		},
	}
}

// checkTime is how long an agent may take to shake hands.
const checkTime = time.Minute

func checkAgents(ctx context.Context, a *command.App, names []string) error {
	var list []checked
	works := false
	for _, name := range names {
		c := checkAgent(ctx, a, name)
		list, works = append(list, c), works || c.Works
	}
	lefts := []left{}
	running := leftover.Running()
	for _, of := range slices.Sorted(maps.Keys(running)) {
		lefts = append(lefts, left{of, running[of]})
	}
	if err := printChecked(a, list, lefts); err != nil || works {
		return err
	}
	if len(names) == 1 {
		return command.Fail(command.ExitFailure, fmt.Errorf("%s cannot be driven from here", names[0]))
	}
	return command.Hinted(errors.New("no agent can be driven from here"), "install Claude Code or Codex, or try scripted:FILE, which needs nothing")
}

func checkAgent(ctx context.Context, a *command.App, name string) (c checked) {
	c.Agent = name
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	of, err := agentNamed(a, name)
	if err == nil && of == nil {
		err = errors.New("it is no program: the engine answers for it")
	}
	var info agent.Info
	if err == nil {
		info, err = of.Check(ctx)
	}
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Works, c.Version, c.Capabilities = true, info.Version, &info.Capabilities
	return c
}

func printChecked(a *command.App, list []checked, lefts []left) error {
	if a.JSON {
		return render.JSON(a.Out, map[string]any{"agents": list, "left": lefts})
	}
	var b strings.Builder
	for _, c := range list {
		if !c.Works {
			fmt.Fprintf(&b, "%s: cannot be driven: %s\n", c.Agent, c.Problem)
			continue
		}
		fmt.Fprintf(&b, "%s %s: works\n", c.Agent, c.Version)
		for _, x := range abilities {
			if x.of(*c.Capabilities) {
				fmt.Fprintf(&b, "  yes  %s\n", x.can)
			} else {
				fmt.Fprintf(&b, "  no   %s: %s\n", x.can, x.absent)
			}
		}
	}
	for _, l := range lefts {
		fmt.Fprintf(&b, "running of the session %s: %v\n", l.Session, l.Processes)
	}
	_, err := fmt.Fprint(a.Out, clean(b.String()))
	return err
}

// relayCommand is what an agent of the Agent Client Protocol starts to reach the host's tools.
func relayCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "relay", Short: "Carry the tools of a session to its agent", Hidden: true, Args: cobra.NoArgs,
		Long:    "An agent that dialai drives starts this by itself.",
		Example: "  dialai agents relay",
		RunE:    func(*cobra.Command, []string) error { return acp.Relay(a.In, a.Out, a.Env) },
	}
}
