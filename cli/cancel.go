package cli

import (
	"bufio"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/runner"
)

func (a *app) cancelCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "cancel <session>",
		Short: "Stop a session that is not to go on",
		Long: `Stop a session, for a reason that is recorded with who gave it. Asks that are still
out are ended and charged as estimated. Cancelling needs no specialist, variable or
function of the machine. A session that has failed can be cancelled too; one that has
completed or is stopped is left as it is, and the exit code is 1.
dialai resume takes a cancelled session up again.`,
		Example: `  dialai cancel 0b9c1d3e --note "the customer has withdrawn"
  dialai resume 0b9c1d3e`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(note) == "" {
				return command.Hinted(command.Usage("dialai cancel needs a --note"), `say why, for the record: --note "the customer has withdrawn"`)
			}
			return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
				id, err := e.id(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				actor := command.LocalActor()
				s, err := e.Stop(cmd.Context(), id, runner.Stopping{Actor: *actor, Note: note})
				switch {
				case errors.Is(err, runner.ErrNotRunning):
					return command.Hinted(err, "there is nothing to cancel: %s shows how it ended", a.Command("show", args))
				case err != nil:
					return err
				}
				return a.Cancelled(out, s, *actor)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "the `reason`, for the record")
	_ = cmd.Flags().SetAnnotation("note", command.Needed, []string{})
	return cmd
}
