// Package agents is what the command line has for coding agents: it answers their permission
// prompts, and prints the settings that make them ask.
package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
)

// Settings of agents are theirs, and a person's to change: they are printed, not written.

// The wait that the printed settings ask for, and for how long the agent lets the hook run, in
// seconds: longer, so that the hook itself says that there is no answer yet.
const (
	parkAfter   = "park=30m"
	hookTimeout = 35 * 60
)

// AgentsCommand returns dialai agents.
func AgentsCommand(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "agents", Short: "Connect coding agents",
		Long:    "Look whether coding agents can be driven from here, and print the settings with which\nthey ask here.",
		Example: "  dialai agents check\n  dialai agents hooks claude",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(checkCommand(a), hooksCommand(a), relayCommand(a))
	return cmd
}

func hooksCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "hooks claude|codex", Short: "Print the settings that make an agent ask here",
		Long: `Print the settings with which an agent puts its permission prompts to dialai permit,
ready to be pasted: for claude into .claude/settings.json of a project, or into
~/.claude/settings.json for all of them; for codex into ~/.codex/hooks.json, which Codex
asks you to trust (/hooks) before it runs them. The agent waits half an hour for you, and
then asks its own user.`,
		Example: `  dialai agents hooks claude
  dialai agents hooks codex`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Hinted(command.Usage("which agent?"), "dialai agents hooks claude, or codex")
			}
			return command.OneOf("agent", args[0], claudeName, codex)
		},
		ValidArgs: []string{claudeName, codex},
		RunE: func(_ *cobra.Command, args []string) error {
			here := a.Style
			here.Program = self()
			if here.Store != "" { // the agent starts it elsewhere
				path, err := filepath.Abs(here.Store)
				if err != nil {
					return err
				}
				here.Store = path
			}
			words := []string{"--hook"}
			if args[0] != claudeName {
				words = append(words, "--agent", args[0])
			}
			hook := map[string]any{"type": "command", "command": here.Command("permit", nil, append(words, "--unanswered", parkAfter)...).String(), "timeout": hookTimeout}
			settings := map[string]any{"hooks": map[string]any{event: []any{map[string]any{"hooks": []any{hook}}}}}
			out := json.NewEncoder(a.Out)
			out.SetEscapeHTML(false)
			out.SetIndent("", "  ")
			return out.Encode(settings)
		},
	}
}

// self is how an agent starts this program: by its name where that finds it, else by its path.
func self() string {
	exe, err := os.Executable()
	if err != nil {
		return "dialai"
	}
	if found, err := exec.LookPath("dialai"); err == nil {
		if a, b := real(found), real(exe); a == b {
			return "dialai"
		}
	}
	return exe
}

func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}
