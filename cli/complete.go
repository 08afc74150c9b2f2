package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Completion in a shell. What cannot be found out is not proposed; nothing is
// printed, and no store is made.

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion <shell>",
		Short: "Print a script that completes commands in a shell",
		Long: `Print a script that lets a shell (bash, zsh, fish or powershell) complete
commands, flags, machine files, sessions and transitions.`,
		Example: `  source <(dialai completion bash)
  dialai completion zsh > "${fpath[1]}/_dialai"
  dialai completion fish > ~/.config/fish/completions/dialai.fish
  dialai completion powershell | Out-String | Invoke-Expression`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return command.Hinted(command.Usage("there is no completion for %q", args[0]), "it may be %s", strings.Join(shells, ", "))
		},
	}
}

// completeArgument proposes what the next argument of a command may be, by the word that
// Use has for it.
func (a *app) completeArgument(cmd *cobra.Command, args []string, _ string) (found []string, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	words := append(strings.Fields(cmd.Use)[1:], "")
	switch strings.Trim(words[min(len(args), len(words)-1)], "[<>].") {
	case "machine-file", "file":
		return []string{"json", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case "log":
		return nil, cobra.ShellCompDirectiveDefault
	case "shell":
		found = shells
	case "session":
		found, how = a.sessionsNow(cmd), how|cobra.ShellCompDirectiveKeepOrder
	case "transition":
		if len(args) == 1 { // not that of an audited round, which was in another state
			found, how = a.transitionsOf(cmd, args[0]), how|cobra.ShellCompDirectiveKeepOrder
		}
	case "machine":
		found = a.machineNames(cmd)
	case "specialist":
		found = a.specialistsOf(cmd, args[0])
	}
	return found, how
}

// completeHelp proposes commands.
func completeHelp(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	parent, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range parent.Commands() {
		if !c.Hidden {
			names = append(names, c.Name()+"\t"+c.Short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// look calls f with the engine of the store that is there.
func (a *app) look(ctx context.Context, f func(*engine)) {
	if ctx == nil {
		ctx = context.Background()
	}
	e, err := a.engine(ctx, command.Reads, nil)
	if err != nil {
		return
	}
	defer e.Close()
	f(e)
}

// sessionsNow returns sessions, the newest first.
func (a *app) sessionsNow(cmd *cobra.Command) (found []string) {
	a.look(cmd.Context(), func(e *engine) {
		list, _ := e.Sessions(cmd.Context(), session.ListQuery{Limit: 50, Desc: true})
		for _, s := range list {
			found = append(found, s.SessionID.String()+"\t"+render.Clean(s.MachineName)+" "+s.Status.String()+" "+render.Clean(s.CurrentState))
		}
	})
	return found
}

// transitionsOf returns the transitions of a session's state.
func (a *app) transitionsOf(cmd *cobra.Command, id string) (found []string) {
	a.look(cmd.Context(), func(e *engine) {
		s, err := e.session(cmd.Context(), id)
		if err != nil {
			return
		}
		for _, t := range s.Offered().Transitions {
			if render.Clean(t.Name) == t.Name { // others cannot be typed
				found = append(found, t.Name+"\tto "+render.Clean(t.Target))
			}
		}
	})
	return found
}

// machineNames returns the names of machines that have sessions.
func (a *app) machineNames(cmd *cobra.Command) (found []string) {
	a.look(cmd.Context(), func(e *engine) {
		for s := range session.Each(cmd.Context(), e.Sessions, session.ListQuery{}) {
			if render.Clean(s.MachineName) == s.MachineName && !slices.Contains(found, s.MachineName) {
				found = append(found, s.MachineName)
			}
		}
	})
	return found
}

// specialistsOf returns the specialists of a machine.
func (a *app) specialistsOf(cmd *cobra.Command, name string) (found []string) {
	add := func(list []machine.Specialist) {
		for _, s := range list {
			if render.Clean(s.SpecialistID) == s.SpecialistID && !slices.Contains(found, s.SpecialistID) {
				found = append(found, s.SpecialistID)
			}
		}
	}
	a.look(cmd.Context(), func(e *engine) {
		list, err := e.Sessions(cmd.Context(), session.ListQuery{MachineName: name, Limit: 1, Desc: true})
		if err != nil || len(list) == 0 {
			return
		}
		s, err := e.Session(cmd.Context(), list[0].SessionID)
		if err != nil {
			return
		}
		add(s.Machine().Specialists())
		for _, state := range s.Machine().States() {
			add(state.Roster)
		}
	})
	return found
}
