package cli

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
)

func (a *app) tickCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tick",
		Short: "Carry every live session one step further",
		Long: `Step every session that has not ended once, 16 at a time. A session that fails
spoils only its own line, and the exit code is 1.`,
		Example: `  dialai tick
  watch -n 60 dialai tick --quiet`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				results, err := e.Tick(cmd.Context())
				if err != nil {
					return err
				}
				return a.printTicks(out, results)
			})
		},
	}
}

// tickLine is a TickResult as it is shown.
type tickLine struct {
	SessionID      string   `json:"sessionId"`
	MachineName    string   `json:"machineName"`
	Status         string   `json:"status"`
	CurrentState   string   `json:"currentState"`
	SpecialistID   string   `json:"specialistId,omitempty"` // if exactly one was asked
	SpecialistIDs  []string `json:"specialistIds,omitempty"`
	PreviousState  string   `json:"previousState,omitempty"`
	TransitionName string   `json:"transitionName,omitempty"`
	Reasoning      string   `json:"reasoning,omitempty"`
	Code           string   `json:"code,omitempty"`
	Error          string   `json:"error,omitempty"`
}

func lineOf(r runner.TickResult) tickLine {
	line := tickLine{SessionID: r.Summary.SessionID, MachineName: r.Summary.MachineName, CurrentState: r.Summary.CurrentState, Status: "failed"}
	if r.Err != nil {
		line.Error = r.Err.Error()
		return line
	}
	t := r.Tick
	line.Status, line.CurrentState, line.Reasoning, line.Code = string(t.Status), t.Session.State.Name, t.Reasoning(), t.Code
	if line.SpecialistIDs = t.Asked(); len(line.SpecialistIDs) == 1 {
		line.SpecialistID = line.SpecialistIDs[0]
	}
	if t.Transition != nil {
		line.PreviousState, line.TransitionName = t.Previous.Name, t.Transition.Name
	}
	return line
}

func (a *app) printTicks(out io.Writer, results []runner.TickResult) error {
	failed := 0
	rows := [][]string{{"SESSION", "MACHINE", "STEP", "STATE", "WHAT"}}
	for _, r := range results {
		line := lineOf(r)
		if r.Err != nil {
			failed++
		}
		if a.flags.json {
			if err := printJSON(out, line); err != nil {
				return err
			}
			continue
		}
		what := line.Reasoning
		if line.TransitionName != "" {
			what = line.TransitionName + ": " + what
		}
		if line.Error != "" {
			what = line.Error
		}
		rows = append(rows, []string{line.SessionID, line.MachineName, line.Status, line.CurrentState, what})
	}
	switch {
	case a.flags.json:
	case len(results) == 0:
		fmt.Fprintln(out, "No live sessions.")
	case a.flags.quiet:
		fmt.Fprintf(out, "%s stepped, %d failed\n", plural(len(results), "session"), failed)
	default:
		if err := table(out, rows); err != nil {
			return err
		}
	}
	if failed > 0 {
		return exit(exitFailure)
	}
	return nil
}
