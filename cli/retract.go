package cli

import (
	"bufio"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

func (a *app) retractCommand() *cobra.Command {
	var as, note string
	cmd := &cobra.Command{
		Use:   "retract <session> <round>",
		Short: "Take back your own ruling, as a mistake",
		Long: `Say that an executed ruling of yours was a mistake. What was executed stays. Weights
and contexts no longer include what the ruling taught: the comparisons with who proposed,
the example that models see, and what the ledger of trust learned. The tests of promises
and of promotion keep what they have counted, or they would prove nothing.

A round is named by its number or its id. Only who has ruled on it can take that back,
once, and not after another human has reviewed it.`,
		Example: `  dialai retract 0b9c1d3e-… 3 --note "I read the wrong invoice"
  dialai retract 0b9c1d3e-… 3 --as carol --note "I read the wrong invoice"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(note) == "" {
				return command.Hinted(command.Usage("dialai retract needs a --note"), `say why, for the record: --note "I read the wrong invoice"`)
			}
			return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
				s, err := e.session(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				round, state, err := e.closedRound(s, args[1])
				if err != nil {
					return err
				}
				by, err := a.orderBy(cmd.Context(), e, s.Machine().Name(), state, as)
				if err != nil {
					return err
				}
				s, err = e.Retract(cmd.Context(), runner.Retracting{SessionID: s.ID, RoundID: round, SpecialistID: machine.SpecialistID(by), Note: note, Actor: command.LocalActor()})
				if err != nil {
					return err
				}
				line, err := e.retracted(cmd.Context(), s, round)
				if err != nil {
					return err
				}
				return a.Retracted(out, line)
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the `human` who takes the own ruling back (default: the state's only human)")
	cmd.Flags().StringVar(&note, "note", "", "the `reason`, for the record")
	_ = cmd.Flags().SetAnnotation("note", command.Needed, []string{})
	return cmd
}
