package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// budgetTripped is the exit code of budget when a hard limit was crossed.
const budgetTripped = 2

func (a *app) budgetCommand() *cobra.Command {
	var trace string
	cmd := &cobra.Command{
		Use:   "budget <file>",
		Short: "Replay what was used against a budget, and find where it trips",
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
		Example: `  dialai budget budget.json
  dialai log 0b9c1d3e-… --guard | dialai budget limits.yaml --trace - --json`,
		Args: arguments,
		RunE: func(_ *cobra.Command, args []string) error { return a.budget(args[0], trace) },
	}
	cmd.Flags().StringVar(&trace, "trace", "", "the `file` of calls, one a line")
	return a.guardUsage(cmd)
}

// A budgetFile is what budget reads.
type budgetFile struct {
	budget *guard.Budget
	prices *guard.PriceTable
	trace  []json.RawMessage // nil if the file has none
}

func (a *app) budget(path, trace string) error {
	if path == "-" && trace == "-" {
		return &exitError{checkInvalid, errors.New("the budget and the trace cannot both be read from stdin")}
	}
	f, err := a.readBudget(path)
	if err != nil {
		return &exitError{checkInvalid, err}
	}
	run, err := newBudgetRun(f)
	if err != nil {
		return &exitError{checkInvalid, err}
	}
	switch {
	case trace != "" && f.trace != nil:
		err = hinted(errors.New("the file has a trace already, and --trace names another"), "leave one of them out")
	case trace != "":
		err = a.chargeFile(run, trace)
	case f.trace == nil:
		err = hinted(errors.New("there is no trace"), "write {\"config\": …, \"trace\": […]} into the file, or name calls with --trace FILE")
	default:
		err = run.chargeAll(f.trace)
	}
	if err != nil {
		return &exitError{checkInvalid, err}
	}
	if err := a.printBudget(run.report()); err != nil {
		return err
	}
	if run.tripped != nil {
		return exit(budgetTripped)
	}
	return nil
}

// readBudget reads {config, prices, trace}, or a budget alone.
func (a *app) readBudget(path string) (f budgetFile, err error) {
	data, err := a.readFile(path)
	if err != nil {
		return f, err
	}
	err = machine.ParseSection(path, data, guard.HoldsSecret, func(section []byte) []machine.Problem {
		members := map[string]json.RawMessage{}
		if json.Unmarshal(section, &members) != nil {
			return []machine.Problem{{Code: "wrong-type", Message: "a budget file must hold an object"}}
		}
		config, wrapped := members["config"]
		if !wrapped {
			var problems []machine.Problem
			f.budget, problems = guard.ParseBudget(section)
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
	f.budget, found = guard.ParseBudget(config)
	below("config", found)
	for name, value := range members {
		switch name {
		case "config":
		case "prices":
			f.prices, found = guard.ParsePrices(value)
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

// A budgetRun charges calls to a budget.
type budgetRun struct {
	mode    guard.BudgetMode
	budget  *guard.Budget // as it is now
	ledger  *guard.Ledger
	now     time.Time
	offset  time.Duration // of the trace's times; the clock begins at 0
	timed   bool          // a time was seen
	records int
	soft    *budgetMark
	crossed *budgetMark // in mode observe
	tripped *budgetMark
}

// budgetMark is the call at which a limit was crossed.
type budgetMark struct {
	Record  int         `json:"record"` // from 1
	ID      string      `json:"id,omitempty"`
	Code    string      `json:"code"`
	Limit   json.Number `json:"limit"`
	Seen    json.Number `json:"seen"`
	Message string      `json:"message"`
}

// budgetLine is what budget finds as --json shows it.
type budgetLine struct {
	Records int              `json:"records"`
	Mode    guard.BudgetMode `json:"mode"`
	spentCount
	Calls    int64       `json:"calls"`
	Unpriced int64       `json:"unpriced"`
	Soft     *budgetMark `json:"soft,omitempty"`
	Crossed  *budgetMark `json:"crossed,omitempty"`
	Tripped  *budgetMark `json:"tripped,omitempty"`
}

// traceScope is where all calls of a trace belong.
var traceScope = guard.Scope{Tenant: "trace", Session: "trace"}

func newBudgetRun(f budgetFile) (*budgetRun, error) {
	run := &budgetRun{mode: f.budget.Mode, budget: f.budget, now: time.UnixMilli(0)}
	ledger, err := guard.NewLedger(guard.LedgerConfig{Now: func() time.Time { return run.now }, Budget: f.budget, Prices: f.prices})
	run.ledger = ledger
	return run, err
}

// A traceCall is one call of a trace, however it is written.
type traceCall struct {
	ID        string       `json:"id"`
	Model     string       `json:"model"`
	Input     *int64       `json:"input"`
	Output    *int64       `json:"output"`
	TokensIn  *int64       `json:"tokens_in"`
	TokensOut *int64       `json:"tokens_out"`
	USD       *exact.Money `json:"usd"`
	Tokens    *struct {
		ID     string `json:"id"`
		Input  int64  `json:"input"`
		Output int64  `json:"output"`
	} `json:"tokens"`
	Meta *guard.LogMeta `json:"meta"`
}

// aCall says what a line of a trace is.
const aCall = `a call is one JSON object such as {"input": 120, "output": 30, "model": "…", "usd": 0.01}, or a line of dialai log SESSION --guard`

// mostCalls is how many calls one line of a trace may stand for.
const mostCalls = 10_000

// calls returns how many calls the line stands for; 0 corrects earlier ones.
func (c *traceCall) calls() (n int64, err error) {
	if c.Meta == nil || c.Meta.Calls == nil {
		return 1, nil
	}
	if n = *c.Meta.Calls; n < 0 || n > mostCalls {
		return 0, fmt.Errorf("meta.calls is %d, not a number from 0 to %d", n, mostCalls)
	}
	return n, nil
}

// usage returns what the call used.
func (c *traceCall) usage() (u guard.Usage, err error) {
	u.ID, u.Model = c.ID, c.Model
	if c.Tokens != nil {
		u.NumInputTokens, u.NumOutputTokens = c.Tokens.Input, c.Tokens.Output
		if u.ID == "" {
			u.ID = c.Tokens.ID
		}
	}
	for _, n := range []struct{ from, into *int64 }{
		{c.Input, &u.NumInputTokens}, {c.TokensIn, &u.NumInputTokens}, {c.Output, &u.NumOutputTokens}, {c.TokensOut, &u.NumOutputTokens},
	} {
		if n.from != nil {
			*n.into = *n.from
		}
	}
	if u.Model == "" && c.Meta != nil {
		u.Model = c.Meta.Model
	}
	u.Given = specialist.InputGiven | specialist.OutputGiven
	if c.USD != nil {
		u.Usage = u.WithCost(*c.USD)
	}
	if u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < 0 {
		return u, errors.New("a negative number of tokens or dollars")
	}
	return u, nil
}

// charge charges one line of the trace; done says that the budget tripped.
func (r *budgetRun) charge(raw []byte) (done bool, err error) {
	tidy, err := exact.Tidy(raw)
	if err != nil {
		return false, fmt.Errorf("it is not one JSON object: %w", err)
	}
	if !bytes.HasPrefix(tidy, []byte("{")) {
		return false, errors.New("a call must be one JSON object")
	}
	var line struct {
		Type    string          `json:"type"`
		TS      json.RawMessage `json:"ts"`
		Verdict string          `json:"verdict"`
	}
	if err := exact.Unmarshal(tidy, &line); err != nil {
		return false, err
	}
	r.moveTo(&guard.LogRecord{TS: line.TS})
	switch line.Type {
	case "", string(guard.LogSpend):
		return r.chargeCall(tidy)
	case string(guard.LogCheck), string(guard.LogVerdict):
		if line.Verdict == "ok" || line.Verdict == "warn" || line.Verdict == "pass" {
			r.ledger.Progress(traceScope)
		}
	case string(guard.LogRaised):
		return false, r.raise(tidy)
	}
	return false, nil
}

// raise lifts the limits that a human raised in the course of the trace, where they
// are lower now.
func (r *budgetRun) raise(line []byte) error {
	rec, err := guard.ParseLog(line)
	if err != nil {
		return err
	}
	now := &guard.Config{Budget: r.budget}
	if now, err = now.Lift(now, rec.Meta.Raised); err != nil {
		return err
	}
	r.budget = now.Budget
	if r.ledger.SetBudget(traceScope, r.budget) == nil {
		return nil
	}
	return r.ledger.Open(traceScope, guard.Opening{Budget: r.budget}) // nothing was charged yet
}

func (r *budgetRun) chargeCall(raw []byte) (done bool, err error) {
	var c traceCall
	if err := exact.Unmarshal(raw, &c); err != nil {
		return false, err
	}
	calls, err := c.calls()
	if err != nil || calls == 0 { // a budget was crossed by what was known then
		return false, err
	}
	u, err := c.usage()
	if err != nil {
		return false, err
	}
	r.records++
	for range calls { // the first has what all of them used
		receipt, err := r.ledger.Charge(traceScope, guard.Estimate{Model: u.Model}, u)
		if err != nil {
			return false, err
		}
		r.note(append(receipt.Reasons, r.ledger.Check(traceScope).Reasons...), u.ID)
		u = guard.Usage{Model: u.Model, Usage: specialist.Usage{Given: specialist.InputGiven | specialist.OutputGiven}}
	}
	return r.tripped != nil, nil
}

// moveTo moves the clock to when a record happened; it never goes back.
func (r *budgetRun) moveTo(rec *guard.LogRecord) {
	at, ok := rec.Time()
	if !ok {
		return
	}
	if !r.timed {
		r.offset, r.timed = at.Sub(r.now), true
	}
	if at = at.Add(-r.offset); at.After(r.now) {
		r.now = at
	}
}

// note notes the first crossing of each kind.
func (r *budgetRun) note(reasons []guard.Reason, id string) {
	for _, reason := range reasons {
		mark := &r.tripped
		switch {
		case reason.Code == "budget_soft":
			mark = &r.soft
		case reason.Class < guard.Abort:
			mark = &r.crossed
		}
		if *mark != nil {
			continue
		}
		*mark = &budgetMark{
			Record: r.records, ID: id, Code: reason.Code, Limit: json.Number(reason.Limit), Seen: json.Number(reason.Seen),
			Message: fmt.Sprintf("%s is more than the limit of %s", reason.Seen, reason.Limit),
		}
	}
}

func (r *budgetRun) chargeAll(trace []json.RawMessage) error {
	for i, raw := range trace {
		done, err := r.charge(raw)
		if err != nil {
			return hinted(fmt.Errorf("call %d of the trace: %w", i+1, err), aCall)
		}
		if done {
			return nil
		}
	}
	return nil
}

// errTripped ends reading a trace.
var errTripped = errors.New("tripped")

func (a *app) chargeFile(r *budgetRun, path string) error {
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	err = eachLine(in, func(n int, line []byte, err error) error {
		var done bool
		if err == nil {
			done, err = r.charge(line)
		}
		switch {
		case err != nil:
			return hinted(fmt.Errorf("%s: line %d: %w", path, n, err), aCall)
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

func (r *budgetRun) report() budgetLine {
	spent := r.ledger.Balance(traceScope).Spent
	return budgetLine{
		Records: r.records, Mode: r.mode, spentCount: spentCount{spent.TokensIn, spent.TokensOut, spent.Money},
		Calls: spent.Calls, Unpriced: spent.Unpriced, Soft: r.soft, Crossed: r.crossed, Tripped: r.tripped,
	}
}

func (a *app) printBudget(r budgetLine) error {
	if a.flags.json {
		return printJSON(a.out, r)
	}
	out := bufio.NewWriter(a.out)
	if !a.flags.quiet {
		fmt.Fprintf(out, "Charged:  %s\n", plural(r.Records, "record"))
		fmt.Fprintf(out, "Spent:    %d tokens read, %d written, $%s in %s\n", r.InputTokens, r.OutputTokens, r.USD, plural(int(r.Calls), "call"))
		if r.Unpriced > 0 {
			fmt.Fprintf(out, "Unpriced: %s, whose dollars are not known\n", plural(int(r.Unpriced), "call"))
		}
		printMark(out, "Soft:    ", r.Soft)
	}
	printMark(out, "Crossed: ", r.Crossed)
	printMark(out, "Tripped: ", r.Tripped)
	if r.Tripped == nil && r.Crossed == nil {
		fmt.Fprintln(out, "The budget was not crossed.")
	}
	return out.Flush()
}

func printMark(out io.Writer, label string, m *budgetMark) {
	if m == nil {
		return
	}
	id := ""
	if m.ID != "" {
		id = " (" + clean(m.ID) + ")"
	}
	fmt.Fprintf(out, "%s record %d%s: %s: %s\n", label, m.Record, id, m.Code, m.Message)
}
