package guards

import (
	"bufio"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
)

// ReplayCommand returns dialai replay.
func ReplayCommand(call *command.App) *cobra.Command {
	a := &app{call}
	var guards string
	cmd := &cobra.Command{
		Use:   "replay <log>",
		Short: "Judge the steps of an event log again, by other guards",
		Long: `Read an event log of guards, judge every step in it again by another
configuration, and show where the verdicts differ. No model is asked. "-" reads
stdin; the configuration is a guards file, or a machine file with guards.

The course of events stays as it was: a step that was executed counts as executed,
whatever the new guards say of it. So each verdict is the one the new guards would
have given at that point. Steps of which the log holds too little, such as digests
of texts that the new guards want to read, are undecidable and are counted.

Lines that cannot be read are counted too; a file with no others is the wrong one.
Exit codes: 0 equal, 1 a verdict differs, 3 wrong usage or file.`,
		Example: `  dialai replay guard.jsonl --guards stricter.json
  dialai log 0b9c1d3e --guard | dialai replay - --guards review.yaml --json`,
		RunE: func(_ *cobra.Command, args []string) error { return a.replay(args[0], guards) },
	}
	GuardsFlag(cmd, &guards, "the guards or machine `file` to judge by", "config")
	return a.guardUsage(cmd)
}

func (a *app) replay(path, guards string) error {
	switch {
	case guards == "":
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--guards is missing"), "dialai replay guard.jsonl --guards guards.json"))
	case guards == "-" && path == "-":
		return command.Fail(CheckInvalid, errors.New("the log and the guards cannot both be read from stdin"))
	}
	loaded, err := LoadAnyGuards(a.App, guards)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out := bufio.NewWriter(a.Out)
	r := guardlog.NewReplay(guard.NewReplayer(loaded.Config, loaded.States), func(d guardlog.ReplayDifference) error { return a.Difference(out, d) })
	if err := guardlog.EachLine(in, r.Line); err != nil {
		return command.Fail(CheckInvalid, errors.Join(err, out.Flush()))
	}
	sum := r.Summary()
	if err := errors.Join(a.Replay(out, sum), out.Flush()); err != nil {
		return err
	}
	switch {
	case sum.Different > 0:
		return command.Exit(replayDiffers)
	case sum.Malformed > 0 && sum.Malformed == sum.Lines: // nothing was compared, so nothing is equal
		return notALog(path)
	}
	return nil
}
