package guards

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// budgetTripped is the exit code of budget when a hard limit was crossed.
const budgetTripped = 2

// BudgetCommand returns dialai budget.
func BudgetCommand(call *command.App) *cobra.Command {
	a := &app{call}
	var guards, trace string
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Replay what was used against a budget, and find where it is exceeded",
		Long: `Charge a trace of calls to a budget, one after the other, and print the first call
that crosses a hard limit. The file, JSON or YAML, holds {"config": …, "trace": […]},
and "prices" if dollars are to be computed; with --trace it may be the budget alone,
and the calls come from a file of one JSON object a line ("-" is stdin).

A call is {"input": n, "output": n} or {"tokens": {…}}, and may have "id" (one that
came before is not charged again), "model", "usd" and "ts". Of an event log of
guards the lines of type record count, but not corrections of earlier ones; a limit
that a human raised in that course (type raised) is as high from there on.

In mode observe nothing trips: crossings are printed, and the exit code is 0.

Exit codes: 0 within the budget, 2 tripped, 3 wrong usage or file.`,
		Example: `  dialai budget --guards budget.json
  dialai log 0b9c1d3e --guard | dialai budget --guards limits.yaml --trace - --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if guards == "" && len(args) > 0 { // as the file was named before --guards
				guards, args = args[0], args[1:]
			}
			return command.Arguments(cmd, args)
		},
		RunE: func(*cobra.Command, []string) error { return a.budget(guards, trace) },
	}
	GuardsFlag(cmd, &guards, "the `file` of the budget, JSON or YAML")
	cmd.Flags().StringVar(&trace, "trace", "", "the `file` of calls, one a line")
	return a.guardUsage(cmd)
}

// A budgetFile is what budget reads.
type budgetFile struct {
	budget *spend.Budget
	prices *spend.PriceTable
	trace  []json.RawMessage // nil if the file has none
}

func (a *app) budget(path, trace string) error {
	switch {
	case path == "":
		return command.Fail(CheckInvalid, command.Hinted(errors.New("--guards is missing"), "dialai budget --guards budget.json"))
	case path == "-" && trace == "-":
		return command.Fail(CheckInvalid, errors.New("the budget and the trace cannot both be read from stdin"))
	}
	f, err := a.readBudget(path)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	run, err := guardlog.NewBudgetRun(f.budget, f.prices)
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	switch {
	case trace != "" && f.trace != nil:
		err = command.Hinted(errors.New("the file has a trace already, and --trace names another"), "leave one of them out")
	case trace != "":
		err = a.chargeFile(run, trace)
	case f.trace == nil:
		err = command.Hinted(errors.New("there is no trace"), "write {\"config\": …, \"trace\": […]} into the file, or name calls with --trace FILE")
	default:
		err = chargeAll(run, f.trace)
	}
	if err != nil {
		return command.Fail(CheckInvalid, err)
	}
	report := run.Report()
	if err := a.Budget(a.Out, report); err != nil {
		return err
	}
	if report.Tripped != nil {
		return command.Exit(budgetTripped)
	}
	return nil
}

// readBudget reads {config, prices, trace}, or a budget alone.
func (a *app) readBudget(path string) (f budgetFile, err error) {
	data, err := a.ReadFile(path, files.Guards)
	if err != nil {
		return f, err
	}
	err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) []machine.Problem {
		members := map[string]json.RawMessage{}
		if json.Unmarshal(section, &members) != nil {
			return []machine.Problem{{Code: "wrong-type", Message: "a budget file must hold an object"}}
		}
		config, wrapped := members["config"]
		if !wrapped {
			var problems []machine.Problem
			f.budget, problems = spend.ParseBudget(section)
			return problems
		}
		return f.read(config, members)
	})
	return f, err
}

// read reads the members of a budget file that has more than the budget.
func (f *budgetFile) read(config []byte, members map[string]json.RawMessage) (problems []machine.Problem) {
	below := func(member string, found []machine.Problem) {
		for _, p := range found {
			p.Path = "/" + member + p.Path
			problems = append(problems, p)
		}
	}
	var found []machine.Problem
	f.budget, found = spend.ParseBudget(config)
	below("config", found)
	for name, value := range members {
		switch name {
		case "config":
		case "prices":
			f.prices, found = spend.ParsePrices(value)
			below(name, found)
		case "trace":
			if json.Unmarshal(value, &f.trace) != nil || f.trace == nil {
				below(name, []machine.Problem{{Code: "wrong-type", Message: "trace must be a list"}})
			}
		default:
			below(name, []machine.Problem{{Code: "unknown-field", Message: fmt.Sprintf("a budget file has no field %q", name), Hint: machine.DidYouMean(name, []string{"config", "prices", "trace"})}})
		}
	}
	return problems
}

func (a *app) chargeFile(r *guardlog.BudgetRun, path string) error {
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	err = guardlog.EachLine(in, func(n int, line []byte, err error) error {
		var done bool
		if err == nil {
			done, err = r.Charge(line)
		}
		switch {
		case err != nil:
			return command.Hinted(fmt.Errorf("%s: line %d: %w", path, n, err), aCall)
		case done:
			return errTripped
		}
		return nil
	})
	if errors.Is(err, errTripped) {
		return nil
	}
	return err
}

// aCall says what a line of a trace is.
const aCall = `a call is one JSON object such as {"input": 120, "output": 30, "model": "…", "usd": 0.01}, or a line of dialai log SESSION --guard`

// chargeAll charges the calls of a trace until the budget trips.
func chargeAll(r *guardlog.BudgetRun, trace []json.RawMessage) error {
	for i, raw := range trace {
		done, err := r.Charge(raw)
		if err != nil {
			return command.Hinted(fmt.Errorf("call %d of the trace: %w", i+1, err), aCall)
		}
		if done {
			return nil
		}
	}
	return nil
}

// errTripped ends reading a trace.
var errTripped = errors.New("tripped")
