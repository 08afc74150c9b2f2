package cli

import (
	"bufio"
	"encoding/json"
	"errors"
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
				items, unread := e.Inbox(cmd.Context())
				if unread != nil && len(items) == 0 {
					return unread
				}
				return errors.Join(a.printInbox(cmd, e, out, items), unread)
			})
		},
	}
	showProposals(cmd)
	return cmd
}

// withhold takes out the proposals that are kept from whoever is to rule.
func withhold(cmd *cobra.Command, e *engine, items []runner.Question) error {
	for i := range items {
		s, err := e.Session(cmd.Context(), items[i].SessionID)
		if err != nil {
			return err
		}
		if hides(cmd, s) {
			items[i].Proposals = []json.RawMessage{}
		}
	}
	return nil
}

func (a *app) printInbox(cmd *cobra.Command, e *engine, out io.Writer, items []runner.Question) error {
	if a.flags.json {
		if err := withhold(cmd, e, items); err != nil {
			return err
		}
		for i := range items {
			items[i].Humans = append([]string{}, items[i].Humans...) // [], not null
		}
		return printLines(out, items)
	}
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
		if err := a.printItem(cmd, e, out, item); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printItem(cmd *cobra.Command, e *engine, out io.Writer, item runner.Question) error {
	fmt.Fprintf(out, "%s: %s in state %s, since %s\n", clean(item.MachineName), item.SessionID, clean(item.State), item.Since)
	if item.Prompt != "" {
		fmt.Fprintf(out, "  %s\n", clean(item.Prompt))
	}
	fmt.Fprintf(out, "  Why: %s\n", clean(item.Reason))
	s, err := e.Session(cmd.Context(), item.SessionID)
	if err != nil {
		return err
	}
	if err := printProposals(out, s, hides(cmd, s)); err != nil {
		return err
	}
	a.printChoices(out, item)
	return nil
}
