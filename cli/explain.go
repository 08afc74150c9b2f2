package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/explain"
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

A round that a human is still to decide without having seen what was proposed is
explained with --show-proposals only. Of one that is closed and waits for a review, what
was executed is shown without it, as in every view; the exit code is 1 all the same.

A round is named by its number, by a number and an attempt such as 3.1, or by its
id. Without one it is the last that was judged. --verbose adds the figures behind the
words, and what their names mean; --json prints the data from which the text is made.`,
		Example: `  dialai explain 0b9c1d3e
  dialai explain 0b9c1d3e 3
  dialai explain 0b9c1d3e --json | jq .changes`,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			id, err := e.id(ctx, args[0])
			if err != nil {
				return err
			}
			why, err := v.explain(ctx, e, id, append(args, "")[1])
			if err != nil {
				return err
			}
			var withheld error
			if why.Withheld {
				withheld = command.Hinted(errors.New("a human is to look at this round without having seen what was proposed"), "--show-proposals shows it all the same")
			}
			if why.Withheld && why.Executed == "" {
				return withheld
			} else if why.Withheld {
				why.Conceal()
			}
			return cmp.Or(a.Explanation(out, why), withheld)
		}),
	}
	v.add(cmd)
	return cmd
}

// explain returns why a round went so, after the viewer has looked at it.
func (f *viewFlags) explain(ctx context.Context, e *engine, id specialist.SessionID, round string) (*explain.Explanation, error) {
	if e.far != nil {
		return e.far.Why(ctx, id, round, f.as, f.show)
	}
	why, err := explain.Round(ctx, e.Runner, id, round)
	if err == nil {
		err = f.lookAtRound(ctx, e, id, why)
	}
	return why, err
}

// lookAtRound has the explanation of a round that is withheld from somebody say whether it
// is so from the viewer, who with show looks at it, which is recorded.
func (f *viewFlags) lookAtRound(ctx context.Context, e *engine, id specialist.SessionID, why *explain.Explanation) error {
	if !why.Withheld {
		return nil
	}
	s, err := e.Session(ctx, id)
	if err != nil {
		return err
	}
	viewer := machine.SpecialistID(f.as)
	rounds, err := e.WithheldRounds(ctx, s, viewer)
	if why.Withheld = rounds[why.Round] != "" && !f.show; err != nil || why.Withheld || rounds[why.Round] == "" {
		return err
	}
	if s.Opens(why.Round) {
		_, _, err = e.Reveal(ctx, id, viewer, command.LocalActor())
	}
	for _, v := range s.Reviews() {
		if err == nil && v.Key.Round == why.Round {
			_, err = e.RevealReview(ctx, id, v.Key.ID(), viewer, command.LocalActor())
		}
	}
	return err // nothing is shown of a look that is not recorded
}
