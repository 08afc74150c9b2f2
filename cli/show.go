package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) showCommand() *cobra.Command {
	v := &viewFlags{}
	cmd := &cobra.Command{
		Use:   "show <session>",
		Short: "Show a session: where it stands and how it came there",
		Long: `Show a session: the state it is in, the transitions that led there, the proposals
of the round, whose answers are missing, what it has spent, and what a human can
decide, each choice as a command to copy.`,
		Example: `  dialai show 0b9c1d3e
  dialai show 0b9c1d3e --json | jq .history`,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			s, err := e.session(ctx, args[0])
			if err != nil {
				return err
			}
			q, s, err := v.look(ctx, e, s)
			if err == nil {
				err = a.remarkViewer(ctx, e, s, v.as)
			}
			switch {
			case err != nil:
				return err
			case a.Flags.JSON:
				return render.JSON(out, e.view(s, q))
			case a.Flags.Quiet:
				_, err = fmt.Fprintf(out, "%s %s\n", s.Status, render.Clean(s.State.Name))
				return err
			}
			driver, err := a.driverOf(ctx, e, s)
			if err != nil {
				return err
			}
			return a.show(out, s, e.view(s, q).SessionView, q, driver)
		}),
	}
	v.add(cmd)
	return cmd
}

// view returns a session as it is shown to whoever is shown a question of it.
func (e *engine) view(s *session.Session, q runner.Question) api.Session {
	if e.far != nil {
		return e.far.View(q)
	}
	return api.SessionOf(s, q)
}

func (a *app) show(out io.Writer, s *session.Session, v session.SessionView, q runner.Question, driver string) error {
	spent, asks := v.Spent, s.OpenAsks()
	if q.Withheld != nil {
		asks = s.OpenAsksFor("")
	}
	fmt.Fprintf(out, "Session ID:    %s\n", s.ID)
	fmt.Fprintf(out, "Machine:       %s (%.12s)\n", render.Clean(s.Machine().Name()), s.Machine().Digest())
	if about := s.Subject(); about != "" {
		fmt.Fprintf(out, "Subject:       %s\n", render.Clean(about))
	}
	if from := s.Options().ForkedFrom; from != nil {
		fmt.Fprintf(out, "Forked from:   %s at event %d\n", from.SessionID, from.Sequence)
	}
	fmt.Fprintf(out, "Status:        %s\n", s.Status)
	if driver != "" {
		fmt.Fprintf(out, "Driver:        %s\n", driver)
	}
	fmt.Fprintf(out, "State:         %s (round %d, attempt %d)\n", render.Clean(s.State.Name), s.Round, s.Attempt)
	fmt.Fprintf(out, "Started:       %s\n", s.CreatedAt)
	fmt.Fprintf(out, "Last event:    %d at %s\n", s.Sequence, s.UpdatedAt)
	render.Due(out, "Due:           ", q)
	if s.Status == session.NeedsHuman {
		render.Prompt(out, render.QuestionHead, q.Prompt)
	}
	if q.Reason != "" {
		fmt.Fprintf(out, "Why:           %s (%s)\n", render.Clean(q.Reason), render.Clean(q.Code))
	}
	if spent.Calls > 0 {
		fmt.Fprintf(out, "Spent:         $%s in %s, %s read, %d written", spent.CostUSD, render.Plural(int(spent.Calls), "call"), render.Plural(int(spent.NumInputTokens), "token"), spent.NumOutputTokens)
		if spent.Unpriced > 0 {
			fmt.Fprintf(out, ", %d without a price", spent.Unpriced)
		}
		fmt.Fprintln(out)
	}
	for _, r := range s.Raised() {
		fmt.Fprintf(out, "Raised:        %s from %s to %s\n", render.Clean(r.Limit), r.From, r.To)
	}
	q.History = v.History // all of it
	if s.Status == session.Completed {
		q.Notices = nil
	}
	if err := a.Question(out, q); err != nil {
		return err
	}
	for _, ask := range asks {
		who := cmp.Or(render.Clean(ask.SpecialistID), "somebody who was asked again")
		if ask.OfGuards() {
			who = "what its guards asked"
		}
		fmt.Fprintf(out, "\nWaiting for %s", who)
		if ask.Remote != nil {
			fmt.Fprintf(out, " until %s", ask.Remote.Deadline)
		}
		fmt.Fprintln(out)
	}
	switch {
	case s.Waits():
		fmt.Fprintln(out, "\nNobody is asked here. Whoever decides may rule all the same:")
		a.printTransitions(out, q)
		return nil
	case s.Status == session.Running:
		fmt.Fprintf(out, "\nTo run on, if no process does:\n  %s\n", a.Command("resume", []string{q.SessionID}))
		return nil
	case q.Code == session.CodeCancelled: // no ruling takes it up
		fmt.Fprintf(out, "\nTo go on:\n  %s\n", a.Command("resume", []string{q.SessionID}))
		return nil
	case s.Status != session.NeedsHuman && s.Status != session.Stopped:
		return nil
	}
	a.printChoices(out, q)
	if raise := a.raiseHint(q.Code, s); raise != "" {
		fmt.Fprintf(out, "\nTo go on, %s\n", raise)
	}
	return nil
}

// remarkViewer says on stderr of somebody who looks that they do not decide in the state.
func (a *app) remarkViewer(ctx context.Context, e *engine, s *session.Session, viewer string) error {
	if viewer == "" || a.Flags.Quiet || !s.Status.Live() {
		return nil
	}
	humans, declared, err := e.Humans(ctx, s)
	if err != nil || slices.Contains(humans, viewer) || !declared && viewer == runner.Operator {
		return err
	}
	ids := slices.Clone(humans)
	for _, list := range append([][]machine.Specialist{s.Machine().Specialists()}, s.State.Roster) {
		for i := range list {
			ids = append(ids, list[i].SpecialistID)
		}
	}
	text, hint := fmt.Sprintf("%s does not decide in state %s", viewer, s.State.Name), ""
	if !slices.Contains(ids, viewer) {
		text, hint = fmt.Sprintf("nobody called %q takes part in state %s", viewer, s.State.Name), machine.DidYouMean(viewer, ids)
	}
	if hint == "" && len(humans) > 0 {
		hint = "those who do: " + strings.Join(humans, ", ")
	}
	fmt.Fprintf(a.Err, "warning: %s\n", render.Clean(text))
	if hint != "" {
		fmt.Fprintf(a.Err, "    hint: %s\n", render.Clean(hint))
	}
	return nil
}

// printChoices prints what a human may decide, each as a command.
func (a *app) printChoices(out io.Writer, item runner.Question) {
	title := "To decide:"
	switch {
	case item.Code == session.CodeTooFew && len(item.Humans) == 0:
		fmt.Fprintf(out, "\nNobody may decide now. To see who could:\n  %s\n", a.Command("specialists", []string{item.MachineName}))
		return
	case hasRuled(item) && item.WithheldRulings > 0: // each word stands now
		fmt.Fprintln(out, "\nYou have ruled, and so has another human: your ruling stands until they agree or everything is shown.")
		return
	case hasRuled(item):
		title = "You have ruled, and another human is to. To rule again, or to take the ruling back:"
	}
	fmt.Fprintf(out, "\n%s\n", title)
	a.printTransitions(out, item)
	if ownRuling(item) {
		fmt.Fprintf(out, "  %s\n", a.Command("decide", []string{item.SessionID}, "--as", item.Viewer, "--withdraw"))
	}
}

// printTransitions prints each choice as a command, or as what it does where no command
// would find the session, and what it means.
func (a *app) printTransitions(out io.Writer, item runner.Question) {
	open, closed := render.Choices(item)
	for _, t := range open {
		if a.Keeps() {
			fmt.Fprintf(out, "  %s\n", a.decideCommandFor(item, t))
		} else {
			fmt.Fprintf(out, "  %s → %s\n", render.Clean(t.Name), render.Clean(t.Target))
		}
		if !a.Flags.Quiet {
			render.Meaning(out, t)
		}
	}
	if !a.Flags.Quiet {
		a.Closed(out, render.PaintFor(out, a.Env), closed)
	}
}
