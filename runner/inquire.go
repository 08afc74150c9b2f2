package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// Some guards have to ask somebody: the classifier a service, the truth gate a
// model. That takes time and money, so it happens before the transition's event
// and not inside it, and each question is an ask of the round: recorded with what
// it is expected to cost before it is sent, and with its answer and its cost
// after. What the log has an answer to is not asked again. The gate wants to see
// the inquiry: without one about exactly this step it asks a human.

// An inquiry is what came of asking about one decision.
type inquiry struct {
	step    verdict.Step
	verdict verdict.Verdict
}

// on returns what came of it, if it was about this step.
func (q *inquiry) on(s *verdict.Step) verdict.Verdict {
	if q == nil || q.step.Transition != s.Transition || q.step.Output != s.Output || string(q.step.MetaJSON) != string(s.MetaJSON) {
		return verdict.Verdict{Status: verdict.Escalate, Reasons: []verdict.Reason{{
			Code: truth.CodeInternalError, Guard: "truth", Class: verdict.Escalate, Message: "nobody was asked about this step, as its guards want"}}}
	}
	return q.verdict
}

// Why an inquiry ends without a verdict though nothing failed.
var (
	errElsewhere = errors.New("another process is asking")
	errMeanwhile = errors.New("the round went on meanwhile")
)

// inquire asks about the decision that the round's verdict leads to, if its
// guards want that and nothing else stops it. What is asked is durable before it is sent,
// so the commit is another one afterwards. It is nil if nobody was asked. The error is
// errElsewhere or errMeanwhile if the step cannot go on now.
func (w *engine) inquire(ctx context.Context, of func(*session.Judged) decision) (*inquiry, error) {
	c := w.now.Program.Guards(w.now.State)
	if c == nil || c.Classifier == nil && c.Truth == nil {
		return nil, nil
	}
	d := of(w.open.Verdict)
	if !c.Asks(d.transition.Name) {
		return nil, nil
	}
	if held, err := w.waitsForAudit(ctx, w.by); held || err != nil {
		return nil, err // a human decides first: there is nothing to ask yet
	}
	step := w.guardStep(&d)
	if j := (judgement{ctx: ctx, step: step}); !j.alone(&w.assessment).Passed() {
		return nil, nil // the gate says why
	}
	asking := &inquirer{w: w, config: c, respondents: w.here.Respondents, about: w.open.Verdict.Order[w.open.Verdict.Decision.Winner]}
	v := asking.ask(ctx, d, step)
	if asking.err != nil {
		return nil, asking.err
	}
	return &inquiry{step, v}, nil
}

// An inquirer asks about one decision.
type inquirer struct {
	w           *engine
	config      *guard.Config
	respondents *planning.Respondents
	about       int32              // the arrival of the winner
	refused     *spend.BudgetError // by the budget; nil if it was not
	err         error              // why there is no verdict; nil if there is one
}

// ask asks the classifier and, if that lets the step pass, the truth gate.
func (q *inquirer) ask(ctx context.Context, d decision, step verdict.Step) (v verdict.Verdict) {
	if q.config.Classifier != nil {
		judge := q.respondents.Asker.Judge
		if q.w.open.Lost(session.ClassifierID) {
			judge = q.respondents.Asker.JudgeAnew
		}
		v = judge(ctx, step, q.turns(), q.classify)
	}
	if q.err == nil && q.refused == nil && v.Passed() && q.config.Truth != nil && q.config.Truth.Needs(d.transition.Name) {
		v = v.Join(q.truth(ctx, d))
	}
	if q.refused != nil { // that is the reason, whatever it has led to
		v = verdict.Verdict{Status: q.refused.Class(), Reasons: []verdict.Reason{q.refused.Reason()}}
	}
	return v
}

// turns returns the newest outputs of the session, the oldest first.
func (q *inquirer) turns() (turns []string) {
	history := q.w.now.History()
	for _, e := range history[max(0, len(history)-int(q.config.Classifier.ContextTurns)):] {
		turns = append(turns, e.Reasoning)
	}
	return turns
}

// stillAsked reports whether the round has the same winner as at the beginning.
func (q *inquirer) stillAsked() bool {
	v := q.w.open.Verdict
	return !q.w.over() && v != nil && v.Decision.Consensus() && v.Order[v.Decision.Winner] == q.about
}

// asker returns what this process knows of a classifier's answers and failures.
func (r *Runner) asker(c *guard.ClassifierConfig) *guard.Asker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.askers.GetOr(*c, func() *guard.Asker { return guard.NewAsker(c, r.config.Now) })
}
