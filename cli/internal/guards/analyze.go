package guards

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/guardlog"
)

// Exit codes of analyze and replay beside 0 and that of wrong usage.
const (
	analyzeMalformed = 1
	replayDiffers    = 1
)

// AnalyzeCommand returns dialai analyze.
func AnalyzeCommand(call *command.App) *cobra.Command {
	a := &app{call}
	var strict bool
	cmd := &cobra.Command{
		Use:   "analyze <log>",
		Short: "Sum up an event log of guards: verdicts, reasons, scores, tokens",
		Long: `Read an event log of guards, a line at a time, and sum it up: how often each
verdict and each reason was given, how the scores of probes are spread, and what
was spent on the way to each verdict. "-" reads stdin. Logs come from dialai log
--guard, from a truth gate's events, or from dialai check --stateful.

Lines that cannot be read are counted, and the first ones are named; a file with no
others is the wrong one.

Exit codes: 0 fine, 1 malformed lines under --strict, 3 wrong usage or file.`,
		Example: `  dialai analyze guard.jsonl
  dialai log 0b9c1d3e --guard | dialai analyze - --strict --json`,
		RunE: func(_ *cobra.Command, args []string) error { return a.analyze(args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let malformed lines fail")
	return a.guardUsage(cmd)
}

// openLog opens a log of any length; "-" is stdin. An interrupt ends the wait for it,
// whatever it is.
func (a *app) openLog(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.In), nil
	}
	f, err := command.UntilInterrupted(a.App, func() (*os.File, error) { return files.Open(path) })
	if errors.Is(err, fs.ErrNotExist) {
		//lint:ignore ST1005 these are the words for every file
		err = fmt.Errorf("Cannot find file: %s", path)
		return nil, command.Fail(CheckInvalid, command.Hinted(err, "%s", cmp.Or(a.SuggestFile(path), "dialai log SESSION --guard prints a log of guards; - reads stdin")))
	}
	if err != nil {
		return nil, command.Fail(CheckInvalid, fmt.Errorf("%s: %w", path, command.Underlying(err)))
	}
	return struct {
		io.Reader
		io.Closer
	}{command.NewInput(a.Ctx, f), f}, nil
}

func (a *app) analyze(path string, strict bool) error {
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	an := guardlog.NewAnalysis()
	if err := guardlog.EachLine(in, an.Line); err != nil {
		return command.Fail(CheckInvalid, err)
	}
	report := an.Report()
	switch err := a.Analysis(a.Out, report); {
	case err != nil:
		return err
	case report.Lines > 0 && report.Records == 0:
		return notALog(path)
	case strict && report.Malformed > 0:
		return command.Exit(analyzeMalformed)
	}
	return nil
}

// notALog is the error about a file of which no line is a record.
func notALog(path string) error {
	return command.Fail(CheckInvalid, command.Hinted(fmt.Errorf("%s: no line is a record of a log of guards", path), "dialai log SESSION --guard prints one"))
}
