package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// StatusCommand returns dialai status.
func StatusCommand(a *command.App) *cobra.Command {
	var dump bool
	cmd := &cobra.Command{
		Use:   "status [session]",
		Short: "Show where an undertaking stands",
		Long: `Show where an undertaking stands: whose move it is and whether somebody is at it, what it
has cost, what its agents ask for and nobody has answered, its workers with how full
their contexts are, and the list of tasks. What is parked is asked, and its agent does
other work meanwhile; gone is what no process drives any more. Without a session, all
that are unfinished. --dump prints what the file beside the store has.`,
		Example: `  dialai status
  dialai status 0b9c1d3e --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWork(cmd.Context(), a, command.Reads, func(w *work) error { return w.status(cmd.Context(), args, dump) })
		},
	}
	cmd.Flags().BoolVar(&dump, "dump", false, "print the dump")
	return cmd
}

// withWork runs f with the engine of the store.
func withWork(ctx context.Context, a *command.App, does command.Access, f func(*work) error) error {
	e, err := a.EngineFor(ctx, does, nil, true)
	if err != nil {
		return err
	}
	defer e.Close()
	return f(&work{App: a, flags: &undertakeFlags{}, engine: e})
}

func (w *work) status(ctx context.Context, args []string, dump bool) error {
	var list []*session.Session
	var err error
	if len(args) == 0 {
		if list, err = w.open(ctx, ""); err != nil {
			return err
		}
	} else {
		id, err := command.FindID(ctx, w.engine.Sessions, args[0])
		if err != nil {
			return err
		}
		s, err := w.engine.Session(ctx, id)
		if err != nil {
			return err
		}
		if !isUndertaking(s) {
			return command.Hinted(fmt.Errorf("session %s is no undertaking", id), "%s shows it", w.Command("show", args))
		}
		list = append(list, s)
	}
	if len(list) == 0 && !w.JSON {
		fmt.Fprintln(w.Out, "no undertaking is unfinished")
		return nil
	}
	all := []any{}
	for _, s := range list {
		u, err := undertaking.Load(ctx, w.engine.Store, s.ID, undertaking.State{})
		if err != nil {
			return err
		}
		w.id = s.ID
		beside, err := w.beside(ctx, u)
		if err != nil {
			return err
		}
		switch of := undertaking.StatusOf(s, u, beside, command.Now().Time()); {
		case dump:
			all = append(all, undertaking.DumpOf(ctx, s, u, command.Now()))
		case w.JSON:
			all = append(all, of)
		default:
			of.Cwd = near(of.Cwd)
			fmt.Fprint(w.Out, clean(of.Text()))
		}
	}
	if !dump && !w.JSON {
		return nil
	}
	out := json.NewEncoder(w.Out)
	out.SetEscapeHTML(false)
	if !w.JSON {
		out.SetIndent("", "  ")
	}
	if len(args) == 1 {
		return out.Encode(all[0])
	}
	return out.Encode(all)
}

// beside returns what the status of this undertaking depends on beside its logs.
func (w *work) beside(ctx context.Context, u undertaking.State) (b undertaking.Beside, err error) {
	if b.Gone, err = undertaking.Gone(ctx, w.engine.Store, u); err != nil {
		return b, err
	}
	prompts, err := w.waitingPrompts(ctx)
	for _, p := range prompts {
		b.Permissions = append(b.Permissions, p.Permission())
	}
	return b, err
}

// clean takes from each line what a terminal would obey.
func clean(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(render.Clean(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// SayCommand returns dialai say.
func SayCommand(a *command.App) *cobra.Command {
	var steer, after, now bool
	cmd := &cobra.Command{
		Use:   "say <session> <text>",
		Short: "Say something to an undertaking",
		Long: `Say something to an undertaking. Where your move is waited for, it is your reply, and so
a ruling; where a worker is at work, it gets the words: in its turn (--steer), after it
(--after), or at once, which ends its turn (--now). Words never accept anything: that
takes dialai decide. What is said is kept, whether somebody is there to hear it or not.`,
		Example: `  dialai say 0b9c1d3e "use the existing CSV writer"
  dialai say 0b9c1d3e "stop, the schema has changed" --now`,
		RunE: func(cmd *cobra.Command, args []string) error {
			deliver := agent.Steer
			switch {
			case after:
				deliver = agent.After
			case now:
				deliver = agent.Now
			}
			return withWork(cmd.Context(), a, command.Writes, func(w *work) error {
				id, err := command.FindID(cmd.Context(), w.engine.Sessions, args[0])
				if err != nil {
					return err
				}
				told, err := undertaking.Say(cmd.Context(), w.engine.Runner, id, args[1], deliver, command.LocalActor(), command.Now().Time())
				if err == nil {
					fmt.Fprintln(a.Out, told)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&steer, "steer", false, "in the running turn, at its next safe point (default)")
	cmd.Flags().BoolVar(&after, "after", false, "after the running turn")
	cmd.Flags().BoolVar(&now, "now", false, "at once: the running turn ends")
	cmd.MarkFlagsMutuallyExclusive("steer", "after", "now")
	return cmd
}
