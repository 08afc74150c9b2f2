package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <session>",
		Short: "Show a session: where it stands and how it came there",
		Long: `Show a session: the state it is in, the transitions that led there, the proposals
of the round, whose answers are missing, what it has spent, and what a human can
decide, each choice as a command to copy.`,
		Example: `  dialai show 0b9c1d3e-…
  dialai show 0b9c1d3e-… --json | jq .history`,
		Args:              arguments,
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				s, err := e.Session(cmd.Context(), args[0])
				switch {
				case err != nil:
					return err
				case a.flags.json:
					v := s.View()
					if hides(cmd, s) {
						v.Proposals = []json.RawMessage{}
					}
					return printJSON(out, v)
				case a.flags.quiet:
					_, err = fmt.Fprintf(out, "%s %s\n", s.Status, clean(s.State.Name))
					return err
				}
				return a.show(cmd.Context(), e, out, s, hides(cmd, s))
			})
		},
	}
	showProposals(cmd)
	return cmd
}

// showProposals adds the flag of the commands that show what is to be decided.
func showProposals(cmd *cobra.Command) {
	cmd.Flags().Bool("show-proposals", false, "show the proposals even where a state withholds them until the ruling, as one that declares a collapse does")
}

// hides reports whether the proposals of the present round are kept from whoever is
// to rule.
func hides(cmd *cobra.Command, s *runner.Session) bool {
	show, _ := cmd.Flags().GetBool("show-proposals")
	return s.State.Withheld() && s.Status.Live() && !show
}

func (a *app) show(ctx context.Context, e *engine, out io.Writer, s *runner.Session, hidden bool) error {
	o, spent := s.Outcome(), s.Spent()
	fmt.Fprintf(out, "Session ID:    %s\n", s.ID)
	fmt.Fprintf(out, "Machine:       %s (%.12s)\n", clean(s.Machine().Name()), s.Machine().Digest())
	fmt.Fprintf(out, "Status:        %s\n", s.Status)
	fmt.Fprintf(out, "State:         %s (round %d, attempt %d)\n", clean(s.State.Name), s.Round, s.Attempt)
	fmt.Fprintf(out, "Started:       %s\n", s.CreatedAt)
	fmt.Fprintf(out, "Last event:    %d at %s\n", s.Sequence, s.UpdatedAt)
	if o.Reason != "" {
		fmt.Fprintf(out, "Why:           %s (%s)\n", clean(o.Reason), clean(o.Code))
	}
	if spent.Calls > 0 {
		fmt.Fprintf(out, "Spent:         $%s in %s, %s read, %d written", spent.Money, plural(int(spent.Calls), "call"), plural(int(spent.TokensIn), "token"), spent.TokensOut)
		if spent.Unpriced > 0 {
			fmt.Fprintf(out, ", %d without a price", spent.Unpriced)
		}
		fmt.Fprintln(out)
	}
	for _, r := range s.Raised() {
		fmt.Fprintf(out, "Raised:        %s from %s to %s\n", clean(r.Limit), r.From, r.To)
	}
	if s.Options().Meta != nil {
		fmt.Fprintf(out, "metaJson:      %s\n", clean(string(s.Options().Meta)))
	}
	if err := printHistory(out, s); err != nil {
		return err
	}
	if err := printProposals(out, s, hidden); err != nil {
		return err
	}
	for _, ask := range s.OpenAsks() {
		who := clean(ask.SpecialistID)
		if ask.OfGuards() {
			who = "what its guards asked"
		}
		fmt.Fprintf(out, "\nWaiting for %s", who)
		if ask.Remote != nil {
			fmt.Fprintf(out, " until %s", ask.Remote.Deadline)
		}
		fmt.Fprintln(out)
	}
	if s.Status != runner.NeedsHuman && s.Status != runner.Stopped {
		return nil
	}
	item, err := e.Question(ctx, s, "")
	if err != nil {
		return err
	}
	a.printChoices(out, item)
	if raise := a.raiseHint(o.Code, s); raise != "" {
		fmt.Fprintf(out, "\nTo go on, %s\n", raise)
	}
	return nil
}

func printHistory(out io.Writer, s *runner.Session) error {
	history := s.History()
	if len(history) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nHistory:")
	rows := make([][]string, len(history))
	for i, t := range history {
		rows[i] = []string{"  " + fmt.Sprint(i+1), t.At.String(), t.Transition.From.Name + " → " + t.Transition.Target, t.Transition.Name, who(t.SpecialistID, t.IsHuman), t.Reasoning}
	}
	return table(out, rows)
}

func who(id string, human bool) string {
	if human {
		return id + " (human)"
	}
	return id
}

func printProposals(out io.Writer, s *runner.Session, hidden bool) error {
	if len(s.Proposals()) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if hidden {
		_, err := fmt.Fprintf(out, "%s of this round are withheld, so that the ruling is your own; --show-proposals shows them.\n", plural(len(s.Proposals()), "proposal"))
		return err
	}
	return proposalTable(out, s)
}

func proposalTable(out io.Writer, s *runner.Session) error {
	fmt.Fprintln(out, "Proposals of this round:")
	var rows [][]string
	for _, p := range s.Proposals() {
		rows = append(rows, []string{"  " + who(p.SpecialistID, p.IsHuman), p.Transition.Name + " → " + p.Transition.Target, p.Reasoning})
	}
	return table(out, rows)
}

// printChoices prints what a human may decide, each as a command.
func (a *app) printChoices(out io.Writer, item runner.Question) {
	fmt.Fprintln(out, "\nTo decide:")
	for _, t := range item.Transitions {
		fmt.Fprintf(out, "  %s\n", a.decideCommandFor(item, t))
	}
}
