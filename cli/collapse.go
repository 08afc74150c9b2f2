package cli

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/trust"
)

func (a *app) collapseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "collapse",
		Short: "Show how far states do without humans, and stop that",
		Long: `A state that declares a collapse goes from humans (calibrating) to the panel
(consensus) to one specialist that decides alone (champion), as evidence grows, and
back at once when it fails. Here is where each state stands, what is missing, and
how a human sends one back.`,
		Example: `  dialai collapse status triage
  dialai collapse plan triage pending
  dialai collapse demote triage pending --as carol`,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(a.collapseStatusCommand(), a.collapsePlanCommand(), a.collapseDemoteCommand(), a.collapseFreezeCommand())
	return cmd
}

// collapsed runs a command that looks at the states of a machine.
func (a *app) collapsed(name, short, long, example string, show func(io.Writer, []runner.StateCollapse) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " <machine> [<state>]", Short: short, Long: long, Example: example,
		Args: arguments, ValidArgsFunction: a.completeMachineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				list, err := e.CollapseOf(cmd.Context(), args[0], append(args, "")[1])
				switch {
				case err != nil:
					return err
				case a.flags.json:
					return printLines(out, list)
				case len(list) == 0:
					_, err := fmt.Fprintln(out, "No state declares a collapse under bayes: every state ends at consensus.")
					return err
				}
				return show(out, list)
			})
		},
	}
}

func (a *app) collapseStatusCommand() *cobra.Command {
	return a.collapsed("status", "Show the stage of each state",
		"Show the stage of each state that declares a collapse, since when, why, and its\nchampion.", "  dialai collapse status triage",
		func(out io.Writer, list []runner.StateCollapse) error {
			rows := [][]string{{"STATE", "STAGE", "SINCE", "WHY", "CHAMPION", "HUMAN DECISIONS"}}
			for _, s := range list {
				rows = append(rows, []string{s.State, stageText(s), sinceText(s), s.Reason, championText(s), fmt.Sprint(s.Outcomes)})
			}
			return table(out, rows)
		})
}

func stageText(s runner.StateCollapse) string {
	text := string(s.Stage)
	if s.Frozen {
		text += ", frozen"
	}
	if s.Held {
		text += ", held by " + s.By
	}
	return text
}

func sinceText(s runner.StateCollapse) string {
	if s.Since == 0 {
		return "the beginning"
	}
	return s.Since.String()
}

func championText(s runner.StateCollapse) string {
	if s.Champion == nil {
		return "none"
	}
	return fmt.Sprintf("%s until %s", s.Champion.Certificate.SpecialistID, s.Champion.Certificate.ExpiresAt)
}

func (a *app) collapsePlanCommand() *cobra.Command {
	return a.collapsed("plan", "Show what is missing for the next stage",
		"Show, for each state that declares a collapse, what the next stage waits for: the\nevidence of each candidate, and whom it does not pay to ask.", "  dialai collapse plan triage pending",
		func(out io.Writer, list []runner.StateCollapse) error {
			for i, s := range list {
				if i > 0 {
					fmt.Fprintln(out)
				}
				if err := printPlan(out, s); err != nil {
					return err
				}
			}
			return nil
		})
}

func printPlan(out io.Writer, s runner.StateCollapse) error {
	fmt.Fprintf(out, "State %s: %s\n", clean(s.State), clean(stageText(s)))
	fmt.Fprintf(out, "  Next: %s\n", nextText(s))
	if len(s.Candidates) > 0 {
		rows := [][]string{{"  CANDIDATE", "AGREED", "AT LEAST", "EVIDENCE", "NEEDED"}}
		for _, c := range s.Candidates {
			rows = append(rows, []string{"  " + c.SpecialistID, agreed(c.K, c.N), c.LowerBound.Text2(), short(c.E), short(c.Bar)})
		}
		if err := table(out, rows); err != nil {
			return err
		}
	}
	for _, id := range s.Pruned {
		fmt.Fprintf(out, "  %s costs money and tells next to nothing: it could be left out\n", clean(id))
	}
	if v := s.Saving; v.Rounds >= worthSaying && !v.Worth() {
		fmt.Fprintf(out, "  Asking one after the other saves nothing here: the panel is weak or correlated (%s)\n", plural(int(v.Rounds), "round"))
	}
	return nil
}

// worthSaying is the number of rounds from which savings say something.
const worthSaying = 50

func nextText(s runner.StateCollapse) string {
	switch {
	case s.Next != "":
		return s.Next + ", at the next step"
	case s.Held:
		return "consensus, after its cool-down"
	case s.Frozen && s.Stage == trust.Consensus:
		return "nothing: it is frozen"
	case s.Stage == trust.Championed:
		return "it goes on until the evidence, the certificate or a human ends it"
	case s.Stage == trust.Consensus:
		return "champion, when a candidate's evidence reaches what is needed"
	case s.Stage == trust.Demoted:
		return "consensus, after its cool-down"
	}
	return "consensus, when its promise is established: dialai risk shows how far that is"
}

func (a *app) collapseDemoteCommand() *cobra.Command {
	f := &orderFlags{}
	cmd := &cobra.Command{
		Use:   "demote <machine> <state>",
		Short: "Send a state back, at once",
		Long: `Have everybody asked again in a state. From consensus it goes back to humans, who
decide until its cool-down is over.`,
		Example: "  dialai collapse demote triage pending --as carol",
		Args:    arguments,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.demote(cmd, args, f) },
	}
	f.add(cmd)
	return cmd
}

func (a *app) collapseFreezeCommand() *cobra.Command {
	f := &orderFlags{}
	var release bool
	cmd := &cobra.Command{
		Use:   "freeze <machine> <state>",
		Short: "Keep anybody from becoming champion of a state",
		Long: `Keep a state from going further: nobody is promoted any more. Who is champion stays
it; dialai collapse demote ends that. --release lets the state go on.`,
		Example: "  dialai collapse freeze triage pending --as carol\n  dialai collapse freeze triage pending --release",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			done := "State %s is frozen."
			if release {
				done = "State %s may go on."
			}
			return a.order(cmd, args[0], args[1], f, func(e *engine, o runner.Order) error { return e.Freeze(cmd.Context(), o, !release) }, done, clean(args[1]))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&release, "release", false, "let it go on")
	return cmd
}
