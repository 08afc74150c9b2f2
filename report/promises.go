package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
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

// RisksOf returns how the promises of a machine stand, as its newest definition
// declares them. A machine that promises nothing has none. It returns ErrNotFound
// for a machine that was never run.
func RisksOf(ctx context.Context, r *runner.Runner, machineName string) (*Risks, error) {
	d, err := deciding(ctx, r, machineName)
	if err != nil {
		return nil, err
	}
	tally, err := r.Tally(ctx, machineName)
	if err != nil {
		return nil, err
	}
	v := &Risks{MachineName: machineName, Promises: promises(d), Caveats: trust.Caveats()}
	for i := range v.Promises {
		v.Promises[i].count(tally)
	}
	return v, nil
}

// count enters the decisions in the promise's states, and what audits found there.
func (p *PromiseStatus) count(tally *stats.Tally) {
	var ever trust.Audits
	for _, state := range p.States {
		sum := tally.Of(state)
		ever = ever.Plus(sum.Audits)
		p.HumanDecisions, p.AIDecisions = p.HumanDecisions+int(sum.Human), p.AIDecisions+int(sum.Automatic)
	}
	if wrong, n := ever.Counts(); n > 0 {
		share, bound := ever.Error(p.Promise.Confidence)
		p.Ever = &Audited{n, wrong, share, bound}
	}
	p.Coverage = ratio(p.AIDecisions, p.AIDecisions+p.HumanDecisions)
}

// deciding returns how a machine decides by its newest definition, or ErrNotFound if it
// was never run.
func deciding(ctx context.Context, r *runner.Runner, machineName string) (*runner.Deciding, error) {
	program, err := r.Newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	return r.Deciding(ctx, program)
}

// known returns ErrNotFound, with the states that there are, for a state that a definition
// lacks; "" is no state, and asks for all.
func known(m *machine.Machine, state machine.StateName) error {
	if state == "" || m.State(string(state)) != nil {
		return nil
	}
	var names []string
	for _, s := range m.States() {
		names = append(names, s.Name)
	}
	return fmt.Errorf("%w: machine %s has %s", &session.NotFoundError{What: "State", ID: string(state)}, m.Name(), strings.Join(names, ", "))
}

// promises returns the promises in force, in the order in which the states first
// name them.
func promises(d *runner.Deciding) []PromiseStatus {
	list, panels := []PromiseStatus{}, []trust.Panel(nil)
	tested := d.Ledger.Risks(d.Machine.Name())
	for i := range d.States {
		s := &d.States[i]
		if len(s.State.Transitions) == 0 || s.State.Terminal() || !s.Panel.Bayes || s.Question.Policy.Promise == nil {
			continue
		}
		panels = append(panels, s.Panel)
		scope := ""
		if s.Question.Policy.Promise.PerState {
			scope = s.State.Name
		}
		k := slices.IndexFunc(list, func(p PromiseStatus) bool { return p.Scope == scope })
		if k < 0 {
			k = len(list)
			list = append(list, PromiseStatus{RiskReport: report(d, s, scope, tested), Undeclared: s.State.Risk == nil})
		}
		list[k].States = append(list[k].States, s.State.Name)
	}
	if len(list) > 0 {
		if f, _, any := d.Ledger.Learning(d.Machine.Name(), panels); any {
			list[0].Notices = append(list[0].Notices, f.Message)
		}
	}
	return list
}

// report returns the report of a promise: of its test, if that is under way for
// the policy in force, or of one that is still to begin.
func report(d *runner.Deciding, s *runner.StateDeciding, scope string, tested []trust.RiskReport) trust.RiskReport {
	q := &s.Question
	fresh := d.Ledger.Untested(d.Machine.Name(), *q.Policy.Promise)
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

// A Succession says what becomes of the test of a promise if another definition of its machine
// takes the place of the one in force.
type Succession struct {
	Scope   string   `json:"scope,omitempty"` // the state whose promise it is; "" of the machine's
	States  []string `json:"states"`          // whose rounds it is about
	Becomes string   `json:"becomes" enum:"same,anew,first,gone" doc:"same: the test goes on; anew: another policy or promise, of which nothing is known yet; first: there was no promise; gone: there is none any more"`
	Audits  int64    `json:"audits"` // of the test that is under way
}

// Succeeding returns what becomes of each promise of a machine if is takes the place of was: those
// that is makes, then those that only was has made.
func Succeeding(ctx context.Context, r *runner.Runner, was, is *session.Program) ([]Succession, error) {
	now, err := r.Deciding(ctx, was)
	if err != nil {
		return nil, err
	}
	then, err := r.Deciding(ctx, is)
	if err != nil {
		return nil, err
	}
	list, old := []Succession{}, promises(now)
	for _, p := range promises(then) {
		next := Succession{Scope: p.Scope, States: p.States, Becomes: "first"}
		if k := slices.IndexFunc(old, func(o PromiseStatus) bool { return o.Scope == p.Scope }); k >= 0 {
			if next.Becomes, next.Audits = "anew", old[k].Audits; old[k].Promise == p.Promise && old[k].PolicyDigest == p.PolicyDigest {
				next.Becomes = "same"
			}
			old = slices.Delete(old, k, k+1)
		}
		list = append(list, next)
	}
	for _, p := range old {
		list = append(list, Succession{p.Scope, p.States, "gone", p.Audits})
	}
	return list, nil
}

// promiseOf returns the status of the promise that a state is under; nil if it is under
// none.
func promiseOf(list []PromiseStatus, state string) *PromiseStatus {
	for i := range list {
		if slices.Contains(list[i].States, state) {
			return &list[i]
		}
	}
	return nil
}
