package guards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// dialai check: steps of any agent, judged by a guards file, in the form and with the
// exit codes of the published step guard. Without --stateful one step comes on stdin
// and nothing is remembered. With it each line is a step, judged with what was
// committed before and answered at once, since whoever sends a step waits for its
// verdict; a line that cannot be read is answered with an error, and the stream goes
// on. Lines may also be operations (forget a task, drop old ones, move a faked clock):
// guardlog.Operation.
//
// With a stream the exit code stands for the worst that came. Members that nothing
// reads are named on stderr, each once, and change no verdict.

// Exit codes of check: those of the published step guard.
const (
	checkOK       = 0
	checkRetry    = 1
	checkAbort    = 2
	CheckInvalid  = 3
	checkEscalate = 4
)

// checkFlags are those of check.
type checkFlags struct {
	guards    string
	named     string // guards of a server
	stateful  bool
	fakeClock bool
}

// A Judge judges steps at the server that --server names.
type Judge func(ctx context.Context, in api.Checking) (api.Checked, error)

// CheckCommand returns dialai check. far judges with --server.
func CheckCommand(call *command.App, far Judge) *cobra.Command {
	a := &app{call}
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Judge one step of an agent, or a stream of steps, by a guards file",
		Long: `Read one step as JSON from stdin, judge it by a guards file, and print the
verdict. Nothing is remembered between two calls. With --stateful each line is a
step, and steps of one task_id are judged with what was committed before; lines
may also be {"op":"reset","task_id":…} or {"op":"gc","ttl_ms":…}.

Files without a profile are judged as the published step guard judges them
(profile compat). With --guard, at a server, one step is judged by guards that the
server knows by a name (dialai serve --guards).

Exit codes: 0 ok or warn, 1 retry, 2 abort, 3 wrong usage, file or input, 4
escalate; with --stateful the worst of 3, 2, 4, 1, 0.`,
		Example: `  echo '{"task_id":"t1","output":"done"}' | dialai check --guards guards.json
  agent | dialai check --guards guards.json --stateful
  dialai check --guard strict --server https://decisions.example.com < step.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.named != "" || a.Flags.Server != "" {
				return a.checkAt(cmd.Context(), f, far)
			}
			return a.check(f)
		},
	}
	GuardsFlag(cmd, &f.guards, "the guards `file`, JSON or YAML", "config")
	cmd.Flags().StringVar(&f.named, "guard", "", "the `name` of guards that the server of --server knows")
	cmd.Flags().BoolVar(&f.stateful, "stateful", false, "read a step a line, and remember them")
	cmd.Flags().BoolVar(&f.fakeClock, "fake-clock", false, `let {"op":"advance_clock","ms":…} move the clock, for tests`)
	return a.guardUsage(cmd)
}

// GuardsFlag adds --guards, which names a guards file in every command that takes
// one. Under the names it had before it still works, and is listed nowhere.
func GuardsFlag(cmd *cobra.Command, path *string, text string, before ...string) {
	cmd.Flags().StringVar(path, "guards", "", text)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if slices.Contains(before, name) {
			name = "guards"
		}
		return pflag.NormalizedName(name)
	})
}

// guardUsage makes wrong usage of a command about guards end with the exit code
// that the published step guard has for it, and so does whatever else goes wrong: 1
// is a verdict there.
func (a *app) guardUsage(cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return command.Fail(CheckInvalid, a.FlagError(cmd, err))
	})
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check == nil {
			check = command.Arguments
		}
		if err := check(cmd, args); err != nil {
			return command.Fail(CheckInvalid, err)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err != nil && command.ExitCode(cmd.Context(), err) == command.ExitFailure && !decided(err) {
			err = command.Fail(CheckInvalid, err)
		}
		return err
	}
	return cmd
}

// decided reports whether a command ended with a code of its choice.
func decided(err error) bool {
	_, ok := errors.AsType[*command.ExitError](err)
	return ok
}

func (a *app) check(f *checkFlags) error {
	if f.guards == "" {
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--guards is missing"), "dialai check --guards guards.json"))
	}
	config, err := a.loadGuards(f.guards)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	if config.Classifier != nil {
		return command.Fail(CheckInvalid, command.Hinted(errors.New("the guards have a classifier, which this command does not ask"), "remove it: the other checks do no I/O"))
	}
	clock := &guardlog.Clock{Now: time.Now()}
	var options []guard.Option
	if f.fakeClock {
		options = append(options, guard.WithClock(clock.Time))
	}
	g, err := guard.New(config, options...)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	if f.stateful {
		return a.checkStream(g, config.Profile, clock, f.fakeClock)
	}
	return a.checkOne(g, config.Profile)
}

// loadGuards reads a guards file. Without a profile it has compat.
func (a *app) loadGuards(path string) (*guard.Config, error) {
	data, err := a.ReadFile(path, files.Guards)
	if err != nil {
		return nil, err
	}
	return ParseGuards(path, data)
}

// checkAt judges a step at a server.
func (a *app) checkAt(ctx context.Context, f *checkFlags, far Judge) error {
	switch {
	case f.named == "":
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--guard is missing"), "it names guards that the server knows; without --server, --guards names a file"))
	case a.Flags.Server == "":
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--guard names guards of a server: --server is missing"), "--guards names a file"))
	case f.stateful:
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--stateful and --guard: a server remembers no steps"), "--guards judges a stream here"))
	}
	step, err := a.readStep()
	if err != nil {
		return err
	}
	if _, err := guard.ParseCheckInput(step); err != nil { // which no request may hold
		return command.Fail(CheckInvalid, err)
	}
	out, err := far(ctx, api.Checking{Guard: f.named, Steps: []json.RawMessage{step}})
	if err == nil && len(out.Verdicts) != 1 {
		err = fmt.Errorf("the server has given %d verdicts on one step", len(out.Verdicts))
	}
	var said struct{ Status string }
	if err == nil {
		err = json.Unmarshal(out.Verdicts[0], &said)
	}
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	if _, err := a.Out.Write(append(text.Escaped(out.Verdicts[0]), '\n')); err != nil {
		return err
	}
	for status, code := range checkCodes {
		if status.String() == said.Status {
			return command.Exit(code)
		}
	}
	return nil
}

// readStep reads one step.
func (a *app) readStep() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.In, guardlog.MaxStep+1))
	if err == nil && len(data) > guardlog.MaxStep {
		err = fmt.Errorf("the step is larger than %d bytes", guardlog.MaxStep)
	}
	if err != nil {
		return nil, command.Fail(CheckInvalid, err)
	}
	a.warnUnknown("stdin", data, map[string]bool{})
	return data, nil
}

func (a *app) checkOne(g *guard.Guard, profile guard.Profile) error {
	data, err := a.readStep()
	if err != nil {
		return err
	}
	in, err := guard.ParseCheckInput(data)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	v, metrics, err := g.Check(in)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	if _, err := a.Out.Write(append(text.Escaped(guard.AppendResult(nil, v, metrics, profile)), '\n')); err != nil {
		return err
	}
	return command.Exit(checkCodes[v.Status])
}

// mostTold is how many members that nothing reads are named.
const mostTold = 1000

// warnUnknown says on stderr which members of a step nothing reads, each name once:
// the verdict is that of a step without them, as the published guard's is.
func (a *app) warnUnknown(place string, step []byte, told map[string]bool) {
	for _, p := range guard.UnknownMembers(step) {
		if name := p.Path[strings.LastIndex(p.Path, "/"):]; !told[name] && len(told) < mostTold {
			told[name], p.File = true, place
			fmt.Fprintln(a.Err, render.Problem(p, machine.Problem.Warning))
		}
	}
}

// checkCodes is the exit code of a verdict; [checkOK] of those that let the step pass.
var checkCodes = map[verdict.Status]int{verdict.Retry: checkRetry, verdict.Escalate: checkEscalate, verdict.Abort: checkAbort}

// worse returns the worse of two exit codes.
func worse(a, b int) int {
	for _, c := range []int{CheckInvalid, checkAbort, checkEscalate, checkRetry} {
		if a == c || b == c {
			return c
		}
	}
	return checkOK
}

// checkStream judges a step a line and goes on after bad ones.
func (a *app) checkStream(g *guard.Guard, profile guard.Profile, clock *guardlog.Clock, fake bool) error {
	code, told := checkOK, map[string]bool{}
	err := guardlog.EachLine(a.In, func(n int, line []byte, err error) error {
		if !guardlog.IsOperation(line) {
			a.warnUnknown(fmt.Sprintf("line %d", n), line, told)
		}
		answer, one := a.checkLine(g, profile, clock, fake, line, err)
		code = worse(code, one)
		_, err = a.Out.Write(append(text.Escaped(answer), '\n')) // at once: whoever sends a step waits for its verdict
		return err
	})
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	return command.Exit(code)
}

func (a *app) checkLine(g *guard.Guard, profile guard.Profile, clock *guardlog.Clock, fake bool, line []byte, err error) ([]byte, int) {
	if err != nil {
		return errorAnswer(err), CheckInvalid
	}
	if answer, ok, err := guardlog.Operation(g, clock, fake, line); err != nil {
		return errorAnswer(err), CheckInvalid
	} else if ok {
		return answer, checkOK
	}
	in, err := guard.ParseCheckInput(line)
	if err != nil {
		return errorAnswer(err), CheckInvalid
	}
	v, metrics, err := g.Check(in)
	if err != nil {
		return errorAnswer(err), CheckInvalid
	}
	return guard.AppendResult(nil, v, metrics, profile), checkCodes[v.Status]
}

func errorAnswer(err error) []byte {
	return append(jsontext.AppendString([]byte(`{"status":"error","message":`), err.Error()), '}')
}
