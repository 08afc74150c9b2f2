package runner

import (
	"context"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/trust"
)

// Risks says how the promises of a machine stand: what dialai risk shows.
type Risks struct {
	MachineName string          `json:"machineName"`
	Promises    []PromiseStatus `json:"promises"`
	Caveats     []string        `json:"caveats"` // what such a report never shows; always the same
}

// A PromiseStatus is one promise beside what came of it.
type PromiseStatus struct {
	trust.RiskReport
	States         []string `json:"states"`         // whose rounds it is about
	HumanDecisions int      `json:"humanDecisions"` // in these states, ever
	AIDecisions    int      `json:"aiDecisions"`
	Coverage       float64  `json:"coverage"`             // share of those by the engine; 0 without any
	Undeclared     bool     `json:"undeclared,omitempty"` // nobody wrote it down: bayes promises it by default
	// Ever is what audits found in these states in all epochs; nil without audits.
	// Those of the report are of its epoch alone.
	Ever *Audited `json:"ever,omitempty"`
}

// Audited is what audits found of automatic decisions: Error is the realised error
// (see [trust.Audits.Error]), and ErrorBound its upper bound, at the confidence of
// the promise.
type Audited struct {
	Audits     int64            `json:"audits"`
	Wrong      int64            `json:"wrong"`
	Error      exact.Billionths `json:"error"`
	ErrorBound exact.Billionths `json:"errorBound"`
}

// Risks returns how the promises of a machine stand, as its newest definition
// declares them. A machine that promises nothing has none. It returns ErrNotFound
// for a machine that was never run.
func (r *Runner) Risks(ctx context.Context, machineName string) (*Risks, error) {
	d, err := r.deciding(ctx, machineName)
	if err != nil {
		return nil, err
	}
	decisions, err := r.Decisions(ctx, machineName, "", 0)
	if err != nil {
		return nil, err
	}
	learned, err := r.learnedIn(ctx, machineName, "")
	if err != nil {
		return nil, err
	}
	v := &Risks{MachineName: machineName, Promises: d.promises(), Caveats: trust.Caveats()}
	for i := range v.Promises {
		v.Promises[i].count(decisions, learned)
	}
	return v, nil
}

// count enters the decisions in the promise's states, and what audits found there.
func (p *PromiseStatus) count(decisions []*session.DecisionRecord, learned learned) {
	var ever trust.Audits
	for _, state := range p.States {
		ever = ever.Plus(learned.audits[state])
	}
	if wrong, n := ever.Counts(); n > 0 {
		share, bound := ever.Error(p.Promise.Confidence)
		p.Ever = &Audited{n, wrong, share, bound}
	}
	for _, d := range decisions {
		switch {
		case !slices.Contains(p.States, d.FromState):
		case d.IsHuman:
			p.HumanDecisions++
		default:
			p.AIDecisions++
		}
	}
	p.Coverage = ratio(p.AIDecisions, p.AIDecisions+p.HumanDecisions)
}

// deciding is how a machine decides, by its newest definition and all that is
// recorded.
type deciding struct {
	machineName string
	plan        *plan
	ledger      *trust.Ledger
}

// deciding returns how a machine decides, or ErrNotFound if it was never run.
func (r *Runner) deciding(ctx context.Context, machineName string) (*deciding, error) {
	p, err := r.newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	l, err := r.Ledger(ctx)
	return &deciding{machineName, p, l}, err
}

// promises returns the promises in force, in the order in which the states first
// name them.
func (d *deciding) promises() []PromiseStatus {
	list := []PromiseStatus{}
	tested := d.ledger.Risks(d.machineName)
	for i := range d.plan.states {
		s := &d.plan.states[i]
		if len(s.state.Transitions) == 0 || s.state.Terminal() || s.arbiter == nil || !s.arbiter.byBayes() || s.question.Policy.Promise == nil {
			continue
		}
		scope := ""
		if s.question.Policy.Promise.PerState {
			scope = s.state.Name
		}
		k := slices.IndexFunc(list, func(p PromiseStatus) bool { return p.Scope == scope })
		if k < 0 {
			k = len(list)
			list = append(list, PromiseStatus{RiskReport: d.status(s, scope, tested), Undeclared: s.state.Risk == nil})
		}
		list[k].States = append(list[k].States, s.state.Name)
	}
	return list
}

// status returns the report of a promise: of its test, if that is under way for
// the policy in force, or of one that is still to begin.
func (d *deciding) status(s *statePlan, scope string, tested []trust.RiskReport) trust.RiskReport {
	q := &s.question
	fresh := d.ledger.Untested(d.machineName, *q.Policy.Promise)
	fresh.Scope, fresh.PolicyDigest = scope, q.PolicyDigest
	for _, r := range tested {
		if r.Scope != scope {
			continue
		}
		if r.Promise == fresh.Promise && r.PolicyDigest == fresh.PolicyDigest {
			return r
		}
		fresh.Epoch = r.Epoch + 1
	}
	return fresh
}

// of returns the status of the promise that a state is under; nil if it is under
// none.
func promiseOf(list []PromiseStatus, state string) *PromiseStatus {
	for i := range list {
		if slices.Contains(list[i].States, state) {
			return &list[i]
		}
	}
	return nil
}
