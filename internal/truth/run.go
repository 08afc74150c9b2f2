package truth

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// One gate, step by step: open the ledger, charge what the answer has cost, check the
// configuration, see whether a hard limit is crossed, then measure the three probes in
// order, with a look at the ledger after each. stage says where the run is, so whatever
// fails is reported with the place where it did.
//
//   - The answer is charged before the configuration is checked and before any probe:
//     it has been paid for, whatever the verdict.
//   - With ShortCircuit a probe whose score decides is the last; those that did not run
//     count as 1, and the decision does not come to them.
//   - A completer that charges its calls (debited) makes none once a hard limit is
//     crossed.
//   - What the sink of events is told is what happened; a sink that fails makes the
//     gate escalate, even at the verdict.

// protect turns a panic into an error.
func protect(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

// A run is one call of Gate.
type run struct {
	cfg       Config
	candidate Candidate
	ledger    Ledger // nil: nothing is counted
	stage     string // where an error would come from
	meta      Meta
}

// ErrOverBudget says that a hard limit does not let a call be made, which is no
// failure of the gate: a [Completer] that returns it ends the gate with
// budget_exceed, and its ledger's Tripped says which limit it was.
var ErrOverBudget = errors.New("over a hard limit")

func (r *run) judge(ctx context.Context) (Decision, error) {
	if err := r.openLedger(); err != nil {
		return Decision{}, err
	}
	r.stage = StageRecord
	if err := r.record(StageRecord, r.candidate.UsageID, r.candidate.Tokens, r.candidate.Prompt, r.candidate.Answer); err != nil {
		return Decision{}, err
	}
	r.stage = StageConfig
	if err := r.cfg.Check(); err != nil {
		return Decision{}, err
	}
	r.stage = StageBudget
	if r.tripped() {
		return Decision{}, ErrOverBudget
	}
	return r.probe(ctx)
}

func (r *run) openLedger() error {
	r.ledger = r.cfg.Ledger
	if r.cfg.Budget == nil || r.ledger != nil {
		return nil
	}
	r.stage = StageBudget
	ledger, err := NewTokenLedger(r.cfg.Budget, r.cfg.OnSoft)
	if err != nil {
		return err
	}
	r.ledger = ledger
	return nil
}

// probe runs the probes in order and decides.
func (r *run) probe(ctx context.Context) (Decision, error) {
	var by Completer = r.cfg.prober()
	if r.cfg.DebitProbes && r.ledger != nil {
		by = &debited{by, r}
	}
	scores, thresholds := [len(tests)]float64{1, 1, 1}, r.cfg.thresholds().list() // whoever is not asked, since an earlier one decides, counts as perfect
	for i, p := range r.cfg.probes(by) {
		r.stage = tests[i].then.Stage
		value, err := r.measure(ctx, i, p)
		if err != nil {
			return Decision{}, err
		}
		scores[i] = value
		if r.cfg.ShortCircuit && (!isShare(value) || tests[i].fails(value, thresholds[i])) {
			break
		}
	}
	return Decide(Scores{scores[0], scores[1], scores[2]}, r.cfg.thresholds()), nil
}

// measure measures the i-th score.
func (r *run) measure(ctx context.Context, i int, p Probe) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r.meta.ProbesRun = append(r.meta.ProbesRun, r.stage)
	m, err := p.Measure(ctx, r.candidate)
	if err != nil {
		return 0, err
	}
	r.meta.StepsTotal += m.StepsTotal
	r.meta.StepsVerified += m.StepsVerified
	e := Event{Type: "probe"}
	if isShare(m.Value) {
		e.Value = &m.Value
		*r.scores()[i] = &m.Value
	}
	if err := r.emit(e); err != nil {
		return 0, err
	}
	if r.tripped() {
		return 0, ErrOverBudget
	}
	return m.Value, nil
}

// scores returns where the scores are told, in the order of the tests.
func (r *run) scores() [len(tests)]**float64 {
	return [...]**float64{&r.meta.Uncertainty, &r.meta.Sensitivity, &r.meta.Adherence}
}

// tripped reports whether the gate has to stop, and notes what was crossed.
func (r *run) tripped() bool {
	if r.ledger == nil {
		return false
	}
	trip := r.ledger.Tripped()
	r.meta.Tripped = trip.Code
	return trip.Code != "" && trip.Kill
}

// record charges one call. Tokens that are not known are estimated.
func (r *run) record(stage, id string, tokens TokenCounts, prompt, answer string) error {
	u := TokenUsage{ID: id, Estimated: tokens.Input == nil || tokens.Output == nil}
	u.Input, u.Output = knownTokens(tokens.Input, prompt), knownTokens(tokens.Output, answer)
	if u.Input < 0 || u.Output < 0 {
		return fmt.Errorf("%w: %d and %d tokens", verdict.ErrInput, u.Input, u.Output)
	}
	e := Event{Type: "record", Stage: stage, Tokens: &u}
	var soft bool
	if r.ledger != nil {
		var err error
		if soft, err = r.ledger.Record(u); err != nil {
			return err
		}
		totals := r.ledger.Totals()
		e.Ledger = &totals
	}
	if err := r.emit(e); err != nil || !soft {
		return err
	}
	r.meta.SoftWarned = true
	return r.emit(Event{Type: "soft_warn", Stage: stage, Ledger: e.Ledger})
}

func knownTokens(count *int64, text string) int64 {
	if count != nil {
		return *count
	}
	return spend.EstimateTokens(text)
}

// emit tells the sink, and names the sink as the stage if it fails.
func (r *run) emit(e Event) error {
	if r.cfg.OnEvent == nil {
		return nil
	}
	e.CandidateID = r.candidate.ID
	if e.Stage == "" {
		e.Stage = r.stage
	}
	err := protect(func() error { return r.cfg.OnEvent(e) })
	if err != nil {
		r.stage = StageEvent
	}
	return err
}

func (r *run) readLedger() error {
	if r.ledger != nil {
		totals := r.ledger.Totals()
		r.meta.Ledger = &totals
	}
	return nil
}

func (r *run) result(d Decision, err error) Result {
	if err != nil {
		d = Decision{Escalate, CodeInternalError, r.stage}
	}
	result := Result{Kind: d.Kind, Reasons: []string{}, Meta: r.meta, Err: err}
	result.Meta.Stage = d.Stage
	if i := slices.IndexFunc(tests[:], func(t test) bool { return t.then == d }); i >= 0 {
		result.Meta.Limit, result.Meta.Observed = new(r.cfg.thresholds().list()[i]), *r.scores()[i]
	}
	if d.Code != "" {
		result.Reasons = append(result.Reasons, d.Code)
	}
	if d.Code == CodeInternalError && err == nil {
		result.Err = fmt.Errorf("the score of stage %s is no number from 0 to 1", d.Stage)
	}
	return result
}

// announce tells the sink the verdict. A sink that fails even now escalates.
func (r *run) announce(result Result) Result {
	e := Event{Type: "verdict", Stage: result.Meta.Stage, Verdict: result.Kind, Ledger: result.Meta.Ledger}
	if len(result.Reasons) > 0 {
		e.Reason = result.Reasons[0]
	}
	if result.Err != nil {
		e.Type = "error"
	}
	if err := r.emit(e); err != nil && result.Err == nil {
		return r.result(Decision{}, err)
	}
	return result
}

// debited charges every call of a completer to the run's ledger, and makes none
// once a hard limit is crossed.
type debited struct {
	inner Completer
	run   *run
}

func (d *debited) Complete(ctx context.Context, q CompletionRequest) (Completion, error) {
	if d.run.tripped() {
		return Completion{}, ErrOverBudget
	}
	done, err := d.inner.Complete(ctx, q)
	if charge := d.run.record(d.run.stage, done.UsageID, done.Tokens, q.Prompt, done.Text); err == nil {
		err = charge
	}
	return done, err
}
