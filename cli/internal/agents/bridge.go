package agents

import (
	"cmp"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/bridge"
	"github.com/dialai/dialai/cli/internal/command"
)

// BridgeCommand returns dialai bridge.
func BridgeCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "bridge",
		Short: "Drive coding agents for another program, by lines of JSON",
		Long: `Drive sessions of coding agents for a program in any language: it writes commands to
stdin, one JSON object a line, and reads events from stdout. It spawns sessions, talks to
them, serves tools to them, answers their prompts, and is told when a context gets full.
There is no store, and nothing is decided here. The end of stdin ends all sessions and the
command.

docs/bridge.md describes the commands and the events. An agent is one that dialai
undertake takes; without a name it is claude.`,
		Example: `  dialai bridge < commands.jsonl
  echo '{"cmd":"spawn","id":"one"}' | dialai bridge`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			broken := make(chan os.Signal, 1) // a host that has gone is an error of a write, not the end of us
			signal.Notify(broken, syscall.SIGPIPE)
			defer signal.Stop(broken)
			return bridge.Serve(cmd.Context(), a.In, a.Out, func(name string) (agent.Agent, error) {
				if name == "scripted:-" {
					return nil, command.Usage("stdin has the commands: a script is a file")
				}
				return agentNamed(a, cmp.Or(name, claudeName))
			})
		},
	}
}
