package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

func (a *app) explainCommand() *cobra.Command {
	v := &viewFlags{}
	cmd := &cobra.Command{
		Use:   "explain <session> [<round>]",
		Short: "Say why a round was decided as it was",
		Long: `Say why a round was decided as it was: the votes and where the standing of their
authors comes from, what the arbiter made of them, the guards, the human who ruled
and what the engine had made of the same votes, and what would have changed it.
The last is computed, by deciding the recorded round again with one thing
different; nobody is asked, and an arbiter of a program's own is not called.

A round that a human is still to decide or to review without having seen what was
proposed is explained with --show-proposals only.

A round is named by its number, by a number and an attempt such as 3.1, or by its
id. Without one it is the last that was judged. --json prints the data from which
the text is made.`,
		Example: `  dialai explain 0b9c1d3e-…
  dialai explain 0b9c1d3e-… 3
  dialai explain 0b9c1d3e-… --json | jq .changes`,
		Args:              arguments,
		ValidArgsFunction: a.completeSessions,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			id, err := session.ParseID(args[0])
			if err != nil {
				return err
			}
			why, err := explain.Round(ctx, e.Runner, id, append(args, "")[1])
			switch {
			case err != nil:
				return err
			case why.Withheld && !v.show:
				return hinted(errors.New("a human is to look at this round without having seen what was proposed"), "--show-proposals shows it all the same")
			}
			if err := v.revealRound(ctx, e, id, why); err != nil {
				return err
			}
			return a.Explanation(out, why)
		}),
	}
	v.add(cmd)
	return cmd
}

// revealRound records that somebody looks at a round that is withheld, open or under
// review.
func (f *viewFlags) revealRound(ctx context.Context, e *engine, id specialist.SessionID, why *explain.Explanation) error {
	if !why.Withheld {
		return nil
	}
	s, err := e.RevealReview(ctx, id, why.RoundID, machine.SpecialistID(f.as))
	if err != nil || why.Round != s.Round || s.Withheld(machine.SpecialistID(f.as)) == "" {
		return err
	}
	_, _, err = e.Reveal(ctx, id, machine.SpecialistID(f.as))
	return err
}
