package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) inboxCommand() *cobra.Command {
	v := &viewFlags{}
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the questions that wait for a human",
		Long: `List the sessions that wait for a human: what is asked, why, what was proposed,
and each choice as a command to copy.`,
		Example: `  dialai inbox
  dialai inbox --json`,
		Args: arguments,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, _ []string) error {
			items, unread := e.Inbox(ctx, machine.SpecialistID(v.as))
			if unread != nil && len(items) == 0 {
				return unread
			}
			if err := v.reveal(ctx, e, items); err != nil {
				return err
			}
			if len(items) == 0 && !a.flags.JSON {
				return a.nothingWaits(ctx, e, out)
			}
			return errors.Join(a.printInbox(out, items), unread)
		}),
	}
	v.add(cmd)
	return cmd
}

// reveal shows what is withheld, where that is asked for.
func (f *viewFlags) reveal(ctx context.Context, e *engine, items []runner.Question) error {
	for i := range items {
		if !f.show || items[i].Withheld == nil {
			continue
		}
		id, err := session.ParseID(items[i].SessionID)
		if err != nil {
			return err
		}
		if items[i], _, err = e.Reveal(ctx, id, machine.SpecialistID(f.as)); err != nil {
			return err
		}
	}
	return nil
}

// nothingWaits says so, and how sessions come on that somebody has to carry.
func (a *app) nothingWaits(ctx context.Context, e *engine, out io.Writer) error {
	live, err := e.Sessions(ctx, session.ListQuery{Live: true, Limit: 1})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Nothing waits for a human.")
	if len(live) > 0 && !a.flags.Quiet {
		fmt.Fprintf(out, "Not all sessions have ended; to carry those on that no process runs:\n  %s\n", a.Command("tick", nil))
	}
	return nil
}

func (a *app) printInbox(out io.Writer, items []runner.Question) error {
	if a.flags.JSON {
		for i := range items {
			items[i].Humans = append([]string{}, items[i].Humans...) // [], not null
		}
		return render.Lines(out, items)
	}
	for i, item := range items {
		if a.flags.Quiet {
			fmt.Fprintf(out, "%s %s\n", item.SessionID, render.Clean(item.State))
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := a.printItem(out, item); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printItem(out io.Writer, item runner.Question) error {
	fmt.Fprintf(out, "%s: %s in state %s, since %s\n", render.Clean(item.MachineName), item.SessionID, render.Clean(item.State), item.Since)
	render.Prompt(out, "  ", item.Prompt)
	fmt.Fprintf(out, "  Why: %s\n", render.Clean(item.Reason))
	if err := a.Question(out, item); err != nil {
		return err
	}
	a.printChoices(out, item)
	return nil
}
