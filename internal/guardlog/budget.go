package guardlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// dialai budget: a trace of calls charged to a budget, to see where it would have
// tripped. Each line is a call, in the words of a trace or of a guards' log; the clock
// follows the times in it and never goes back. Every call is charged, then the budget
// is asked what it makes of that (spend.Ledger.Check); the first crossing of each kind
// is noted with the number of the call. Steps that passed count as progress, and limits
// that a human raised in the course of the trace are raised here too.

// A BudgetRun charges calls to a budget.
type BudgetRun struct {
	mode    spend.BudgetMode
	budget  *spend.Budget // as it is now
	ledger  *spend.Ledger
	now     time.Time
	offset  time.Duration // of the trace's times; the clock begins at 0
	timed   bool          // a time was seen
	records int
	soft    *BudgetMark
	crossed *BudgetMark // in mode observe
	tripped *BudgetMark
}

// BudgetMark is the call at which a limit was crossed.
type BudgetMark struct {
	Record  int         `json:"record"` // from 1
	ID      string      `json:"id,omitempty"`
	Code    string      `json:"code"`
	Limit   json.Number `json:"limit"`
	Seen    json.Number `json:"seen"`
	Message string      `json:"message"`
}

// BudgetLine is what budget finds as --json shows it.
type BudgetLine struct {
	Records int              `json:"records"`
	Mode    spend.BudgetMode `json:"mode"`
	SpentCount
	Calls    int64       `json:"calls"`
	Unpriced int64       `json:"unpriced"`
	Soft     *BudgetMark `json:"soft,omitempty"`
	Crossed  *BudgetMark `json:"crossed,omitempty"`
	Tripped  *BudgetMark `json:"tripped,omitempty"`
}

// traceScope is where all calls of a trace belong.
var traceScope = spend.Scope{Tenant: "trace", Session: "trace"}

// NewBudgetRun returns a run that has charged nothing yet; prices may be nil.
func NewBudgetRun(budget *spend.Budget, prices *spend.PriceTable) (*BudgetRun, error) {
	run := &BudgetRun{mode: budget.Mode, budget: budget, now: time.UnixMilli(0)}
	ledger, err := spend.NewLedger(spend.LedgerConfig{Now: func() time.Time { return run.now }, Budget: budget, Prices: prices})
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

// mostCalls is how many calls one line of a trace may stand for.
const mostCalls = 10_000

// calls returns how many calls the line stands for; 0 corrects earlier ones.
func (c *traceCall) calls() (n int64, err error) {
	switch {
	case c.Meta == nil:
		return 1, nil
	case c.Meta.Correction:
		return 0, nil
	case c.Meta.Calls == nil:
		return 1, nil
	}
	if n = *c.Meta.Calls; n < 0 || n > mostCalls {
		return 0, fmt.Errorf("meta.calls is %d, not a number from 0 to %d", n, mostCalls)
	}
	return n, nil
}

// usage returns what the call used.
func (c *traceCall) usage() (u spend.Usage, err error) {
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

// Charge charges one line of the trace; done says that the budget tripped.
func (r *BudgetRun) Charge(raw []byte) (done bool, err error) {
	tidy, err := jsontext.Tidy(raw)
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
	if err := jsontext.Unmarshal(tidy, &line); err != nil {
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
func (r *BudgetRun) raise(line []byte) error {
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
	return r.ledger.Open(traceScope, spend.Opening{Budget: r.budget}) // nothing was charged yet
}

func (r *BudgetRun) chargeCall(raw []byte) (done bool, err error) {
	var c traceCall
	if err := jsontext.Unmarshal(raw, &c); err != nil {
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
		receipt, err := r.ledger.Charge(traceScope, spend.Estimate{Model: u.Model}, u)
		if err != nil {
			return false, err
		}
		r.note(append(receipt.Reasons, r.ledger.Check(traceScope).Reasons...), u.ID)
		u = spend.Usage{Model: u.Model, Usage: specialist.Usage{Given: specialist.InputGiven | specialist.OutputGiven}}
	}
	return r.tripped != nil, nil
}

// moveTo moves the clock to when a record happened; it never goes back.
func (r *BudgetRun) moveTo(rec *guard.LogRecord) {
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
func (r *BudgetRun) note(reasons []verdict.Reason, id string) {
	for _, reason := range reasons {
		mark := &r.tripped
		switch {
		case reason.Code == "budget_soft":
			mark = &r.soft
		case reason.Class < verdict.Abort:
			mark = &r.crossed
		}
		if *mark != nil {
			continue
		}
		*mark = &BudgetMark{
			Record: r.records, ID: id, Code: reason.Code, Limit: json.Number(reason.Limit), Seen: json.Number(reason.Seen),
			Message: fmt.Sprintf("%s is more than the limit of %s", reason.Seen, reason.Limit),
		}
	}
}

// Report returns what was charged so far.
func (r *BudgetRun) Report() BudgetLine {
	spent := r.ledger.Balance(traceScope).Spent
	return BudgetLine{
		Records: r.records, Mode: r.mode, SpentCount: SpentCount{spent.TokensIn, spent.TokensOut, spent.Money},
		Calls: spent.Calls, Unpriced: spent.Unpriced, Soft: r.soft, Crossed: r.crossed, Tripped: r.tripped,
	}
}
