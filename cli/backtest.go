package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/session"
)

func (a *app) backtestCommand() *cobra.Command {
	f := &backtestFlags{}
	cmd := &cobra.Command{
		Use:   "backtest [<machine>]",
		Short: "Decide the recorded rounds again under another policy",
		Long: `Decide every recorded round of a machine again, from its stored proposals, under
another arbiter, threshold, promise, roster or other guards, and show what would
have come out otherwise. Nobody is asked and nothing is executed. Without a machine
all machines of the store are back-tested.

Rounds are decided in the order in which they were recorded; what a human said of a
round is learned only after it was decided. Without changes every recorded verdict
comes out as it was. A round is "unknown" if the policy would have asked somebody
whose answer is not recorded, or if the arbiter is somebody's own code, which is not
run; figures then have a best and a worst case. Rounds after a flip in the same
session are decided as recorded: the test is one step deep.

--adopt lets the test of a promise of bayes begin with what the back-test found, once
the policy is in the machine's file; a human has to say so. Every policy that is tried
is recorded, and the confidence of the promise is divided among those that were tried
on the same rounds: the best of many is partly luck.

Exit codes: 0 done, 1 --max-flips or --max-error is exceeded, by the worst case,
2 wrong usage or file.`,
		Example: `  dialai backtest document-review
  dialai backtest document-review --arbiter bayes --risk 0.05,0.9
  dialai backtest document-review --threshold 0.8 --max-flips 10 --max-error 0.05
  dialai backtest --drop cheap-model --since 30d --json
  dialai backtest document-review --guards stricter.json
  dialai backtest document-review --arbiter bayes --risk 0.05,0.9 --adopt --as carol`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.machineNamed(args, f.machine)
			if err != nil {
				return err
			}
			return a.backtest(cmd, name, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.machine, "machine", "", "the `name` of the machine, as the argument")
	flags.StringVar(&f.arbiter, "arbiter", "", "who decides: a built-in `strategy`, an expression that begins with =, or a file with one arbiter")
	flags.Float64Var(&f.threshold, "threshold", 0, "the threshold everywhere, instead of every threshold and risk")
	flags.StringVar(&f.risk, "risk", "", "the promise everywhere, as `maxError,confidence`, instead of every threshold and risk")
	flags.StringVar(&f.roster, "roster", "", "a `file` with the list of those who alone propose")
	flags.StringSliceVar(&f.drop, "drop", nil, "`ids` of proposers who are left out")
	flags.StringVar(&f.guards, "guards", "", "the guards or machine `file` to judge the steps by")
	flags.StringVar(&f.since, "since", "", "only rounds since then: a date, or a `time` before the newest record such as 30d")
	flags.BoolVar(&f.cold, "cold", false, "begin with nothing learned")
	flags.BoolVar(&f.adopt, "adopt", false, "let the live test of the policy's promise begin with what was found, unless a --max is exceeded")
	flags.StringVar(&f.order.as, "as", "", "the `human` who adopts (default: the machine's only human)")
	flags.StringVar(&f.order.reason, "reasoning", "", "the `reason` why it is adopted")
	flags.Float64Var(&f.minutes, "human-minutes", backtest.DefaultHumanMinutes, "how long a human decision takes, in `minutes`")
	flags.IntVar(&f.maxFlips, "max-flips", 0, "the largest `number` of flips")
	flags.Float64Var(&f.maxError, "max-error", 0, "the largest `share` of automatic decisions that a human contradicts; none is exceeded where no human looked")
	return cmd
}

func (a *app) backtest(cmd *cobra.Command, machineName string, f *backtestFlags) error {
	f.given = cmd.Flags().Changed
	if err := f.check(); err != nil {
		return err
	}
	policy, err := a.policy(f)
	if err != nil {
		return err
	}
	if err := f.mayAdopt(machineName, policy.Changed() || f.cold); err != nil {
		return err
	}
	work := jobs.Backtest{MachineName: machineName, Policy: policy, Since: f.since, Cold: f.cold, HumanMinutes: f.minutes}
	var sent json.RawMessage
	if work.Guards, sent, err = a.readGuards(f.guards); err != nil {
		return err
	}
	return a.with(cmd.Context(), command.AccessFor(f.adopt), func(e *engine, out *bufio.Writer) error {
		b := &render.Backtest{Style: a.Style, Out: out, Machine: machineName, Policy: f.text(), Changed: work.Changed()}
		m := render.NewMeter(a.Screen(), "deciding again", "records")
		work.Flip, work.Progress = b.Flip, m.At
		var r *backtest.Report
		job := ""
		if e.far == nil {
			r, b.Gates, err = work.Run(cmd.Context(), e.Runner)
		} else {
			r, job, err = backtestAt(cmd.Context(), e.far, b, &work, sent, f.limits())
		}
		m.Stop()
		if err != nil {
			return backtestError(err)
		}
		if err := b.Print(r); err != nil {
			return err
		}
		switch err := f.exceeded(&r.Total); {
		case e.far != nil && (err != nil || !f.adopt): // the server has recorded what was tried
			return err
		case e.far != nil:
			return a.adoptAt(cmd.Context(), e.far, out, machineName, api.Adopting{JobID: job, Reasoning: f.order.reason, SpecialistID: f.order.as})
		case err != nil || !f.adopt:
			return errors.Join(err, jobs.RecordTrials(cmd.Context(), e.Runner, r, command.LocalActor()))
		}
		return a.adopt(cmd.Context(), e, out, f, r)
	})
}

// backtestAt has a server do a back-test, and returns what it has found and the id of the job.
func backtestAt(ctx context.Context, far *remote.Server, b *render.Backtest, work *jobs.Backtest, guards json.RawMessage, most jobs.Limits) (r *backtest.Report, job string, err error) {
	in, err := request(work, guards, most)
	if err != nil {
		return nil, "", err
	}
	job, result, err := far.Work(ctx, in, work.Progress)
	if err != nil {
		return nil, "", err
	}
	r, b.Gates, err = jobs.ReadBacktest(result, work.Flip)
	return r, job, err
}

// machineNamed returns the name of the machine to look at, "" for all. A machine
// file stands for its name.
func (a *app) machineNamed(args []string, flag string) (string, error) {
	if len(args) == 0 {
		return flag, nil
	}
	if flag != "" {
		return "", command.Usage("the machine is named twice: %q and --machine %q", args[0], flag)
	}
	if _, err := os.Stat(args[0]); err != nil {
		return args[0], nil
	}
	m, err := a.LoadMachine(args[0])
	if err != nil {
		return "", err
	}
	return m.Name(), nil
}

// check refuses values that make no sense.
func (f *backtestFlags) check() error {
	switch {
	case f.given("max-flips") && f.maxFlips < 0:
		return command.Usage("--max-flips is %d: it cannot be negative", f.maxFlips)
	case f.given("max-error") && !(f.maxError >= 0 && f.maxError <= 1):
		return command.Hinted(command.Usage("--max-error is %v", f.maxError), "it is a share between 0 and 1, such as 0.05")
	}
	if f.since != "" {
		if _, _, err := jobs.ParseSince(f.since); err != nil {
			return command.Hinted(command.Usage("--since is %q", f.since), "it is a date such as 2026-01-31, or a time before the newest record such as 30d or 12h")
		}
	}
	return checkMinutes(f.minutes)
}

// checkMinutes checks --human-minutes.
func checkMinutes(minutes float64) error {
	if !(minutes > 0 && minutes <= 1e6) {
		return command.Usage("--human-minutes is %v: it has to be above 0", minutes)
	}
	return nil
}

// exceeded compares with --max-flips and --max-error.
func (f *backtestFlags) exceeded(total *backtest.Result) error {
	if err := f.limits().Exceeded(total); err != nil {
		return command.Fail(command.ExitFailure, err)
	}
	return nil
}

// backtestError gives errors of bad input their exit code.
func backtestError(err error) error {
	switch {
	case errors.Is(err, backtest.ErrPolicy):
		return command.Fail(command.ExitUsage, err)
	case errors.Is(err, session.ErrNotFound):
		return command.Hinted(command.Fail(command.ExitUsage, err), "dialai sessions lists what was run")
	}
	return err
}
