package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) inboxCommand() *cobra.Command {
	v := &viewFlags{}
	q := session.ListQuery{Limit: newestShown}
	var all bool
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the questions that wait for a human",
		Long: `List the sessions that wait for a human: what is asked, why, what was proposed,
and each choice as a command to copy. What is overdue comes first,
then what has waited longest: 50 are shown, and with --all or --json every one. That
sessions are quarantined is said on stderr.`,
		Example: `  dialai inbox
  dialai inbox --as carol --decider carol
  dialai inbox --json`,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, _ []string) error {
			return a.inbox(ctx, e, out, v, q, all || a.Flags.JSON)
		}),
	}
	v.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all questions")
	cmd.Flags().StringVar((*string)(&q.Decider), "decider", "", "only questions in whose state this `human` may rule, whatever approvals exclude")
	return cmd
}

// inbox prints the questions that wait, page by page, or only the first page.
func (a *app) inbox(ctx context.Context, e *engine, out *bufio.Writer, v *viewFlags, q session.ListQuery, all bool) error {
	var unread []error
	var names []string // of those who may rule, or have
	shown := 0
	if err := a.remarkQuarantined(ctx, e); err != nil {
		return err
	}
	for {
		items, next, err := e.Inbox(ctx, q, machine.SpecialistID(v.as))
		if ctx.Err() != nil {
			return err
		}
		unread = append(unread, err)
		if err := v.reveal(ctx, e, items); err != nil {
			return err
		}
		if shown > 0 && len(items) > 0 && !a.Flags.JSON && !a.Flags.Quiet {
			fmt.Fprintln(out)
		}
		if err := a.printInbox(out, items); err != nil {
			return err
		}
		names = append(names, namesIn(items)...)
		if shown += len(items); next == "" || !all {
			a.remarkName(v.as, names)
			return a.inboxEnd(ctx, e, out, shown, next != "", q, errors.Join(unread...))
		}
		q.After = next
	}
}

// namesIn returns who may rule on questions, or has.
func namesIn(items []runner.Question) (names []string) {
	for i := range items {
		names = append(names, items[i].Humans...)
		for _, r := range items[i].Rulings {
			names = append(names, r.SpecialistID)
		}
	}
	return names
}

// remarkName says on stderr of somebody who looks at questions that they rule on none.
func (a *app) remarkName(name string, names []string) {
	if name == "" || name == runner.Operator || a.Flags.Quiet || len(names) == 0 || slices.Contains(names, name) {
		return
	}
	fmt.Fprintf(a.Err, "warning: %s may rule on none of these questions\n", render.Clean(strconv.Quote(name)))
	if hint := machine.DidYouMean(name, names); hint != "" {
		fmt.Fprintf(a.Err, "    hint: %s\n", render.Clean(hint))
	}
}

// inboxEnd says that there is more, or nothing at all.
func (a *app) inboxEnd(ctx context.Context, e *engine, out io.Writer, shown int, more bool, q session.ListQuery, unread error) error {
	switch {
	case shown == 0 && unread == nil && !more && q.Decider != "":
		return a.nothingFor(ctx, e, out, string(q.Decider))
	case a.Flags.JSON:
	case shown == 0 && unread == nil && !more:
		return a.nothingWaits(ctx, e, out)
	case more && !a.Flags.Quiet:
		flags := []string{"--all"}
		if q.Decider != "" {
			flags = append(flags, "--decider", string(q.Decider))
		}
		fmt.Fprintf(out, "\nMore may wait; to see all of them:\n  %s\n", a.Command("inbox", nil, flags...))
	}
	return unread
}

// nothingFor says that no question waits for a human, who may be misspelt.
func (a *app) nothingFor(ctx context.Context, e *engine, out io.Writer, who string) error {
	others, _, err := e.Inbox(ctx, session.ListQuery{Limit: newestShown}, "")
	if err != nil {
		return err
	}
	if !a.Flags.JSON {
		fmt.Fprintf(out, "Nothing waits for %s.\n", render.Clean(who))
	}
	a.remarkName(who, namesIn(others))
	return nil
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
		if items[i], _, err = e.Reveal(ctx, id, machine.SpecialistID(f.as), command.LocalActor()); err != nil {
			return err
		}
	}
	return nil
}

// nothingWaits says so, and how sessions come on that somebody has to carry.
func (a *app) nothingWaits(ctx context.Context, e *engine, out io.Writer) error {
	live, err := e.Sessions(ctx, session.ListQuery{Statuses: session.LiveStatuses(), Limit: 1})
	if err != nil {
		return err
	}
	reviews, err := e.Sessions(ctx, session.ListQuery{Reviews: true, Limit: 1})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Nothing waits for a human.")
	if len(reviews) > 0 && !a.Flags.Quiet {
		fmt.Fprintf(out, "Closed rounds wait for a review, which holds nothing up:\n  %s\n", a.Command("trust audit", nil))
	}
	if len(live) > 0 && !a.Flags.Quiet {
		fmt.Fprintf(out, "Not all sessions have ended; to carry those on that no process runs:\n  %s\n", a.Command("tick", nil))
	}
	return nil
}

func (a *app) printInbox(out io.Writer, items []runner.Question) error {
	if a.Flags.JSON {
		return render.Lines(out, items)
	}
	for i, item := range items {
		if a.Flags.Quiet {
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
	fmt.Fprintf(out, "%s: %s in state %s, since %s\n", render.Clean(item.MachineName), a.ID(item.SessionID), render.Clean(item.State), item.Since)
	render.About(out, item.Subject)
	render.Prompt(out, "  ", item.Prompt)
	render.Due(out, "  Due: ", item)
	fmt.Fprintf(out, "  Why: %s\n", render.Clean(item.Reason))
	if err := a.Question(out, item); err != nil {
		return err
	}
	a.printChoices(out, item)
	return nil
}
