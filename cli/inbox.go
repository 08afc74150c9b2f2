package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
)

func (a *app) inboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the questions that wait for a human",
		Long: `List the sessions that wait for a human: what is asked, why, what was proposed,
and each choice as a command to copy.`,
		Example: `  dialai inbox
  dialai inbox --json`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				items, err := e.Inbox(cmd.Context())
				switch {
				case err != nil:
					return err
				case a.flags.json:
					for i := range items {
						items[i].Humans = append([]string{}, items[i].Humans...) // [], not null
					}
					return printLines(out, items)
				}
				return a.printInbox(cmd.Context(), e, out, items)
			})
		},
	}
	showProposals(cmd)
	return cmd
}

func (a *app) printInbox(ctx context.Context, e *engine, out io.Writer, items []runner.InboxItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "Nothing waits for a human.")
		return err
	}
	for i, item := range items {
		if a.flags.quiet {
			fmt.Fprintf(out, "%s %s\n", item.SessionID, clean(item.State))
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := a.printItem(ctx, e, out, item); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printItem(ctx context.Context, e *engine, out io.Writer, item runner.InboxItem) error {
	fmt.Fprintf(out, "%s: %s in state %s, since %s\n", clean(item.MachineName), item.SessionID, clean(item.State), item.Since)
	if item.Prompt != "" {
		fmt.Fprintf(out, "  %s\n", clean(item.Prompt))
	}
	fmt.Fprintf(out, "  Why: %s\n", clean(item.Reason))
	s, err := e.Session(ctx, item.SessionID)
	if err != nil {
		return err
	}
	if err := printProposals(out, s); err != nil {
		return err
	}
	a.printChoices(out, item)
	return nil
}
