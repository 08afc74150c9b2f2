// Package strategies holds the ready-made ways to propose and to arbitrate, the
// expressions that machine files may contain, and the [Registry] that gives
// names to a program's own.
package strategies

import (
	"maps"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A Registry is the [Resolver] of what is in this process. It maps the names that
// machine files use in strategyFn and contextFn to Go values, and those of classifiers
// and models of guards; a name that was given nil means nothing. The zero Registry knows
// only what is built in, and expressions. A Registry never changes, so it may be used
// concurrently and shared.
type Registry struct {
	proposers   map[string]specialist.Proposer
	arbiters    map[string]arbiter.Arbiter
	contexts    map[string]specialist.Context
	classifiers map[string]guard.Classifier
	models      map[string]Completer
}

// WithProposer returns a copy of r in which name means p, whatever it meant
// before.
func (r Registry) WithProposer(name string, p specialist.Proposer) Registry {
	r.proposers = with(r.proposers, name, p)
	return r
}

// WithArbiter returns a copy of r in which name means a, whatever it meant
// before.
func (r Registry) WithArbiter(name string, a arbiter.Arbiter) Registry {
	r.arbiters = with(r.arbiters, name, a)
	return r
}

// WithContext returns a copy of r in which name means c, whatever it meant
// before.
func (r Registry) WithContext(name string, c specialist.Context) Registry {
	r.contexts = with(r.contexts, name, c)
	return r
}

// WithClassifier returns a copy of r in which name, as the function of a guards
// section's classifier, means c, whatever it meant before.
func (r Registry) WithClassifier(name string, c guard.Classifier) Registry {
	r.classifiers = with(r.classifiers, name, c)
	return r
}

// WithModel returns a copy of r in which name, as the model of a truth gate, means c,
// whatever it meant before.
func (r Registry) WithModel(name string, c Completer) Registry {
	r.models = with(r.models, name, c)
	return r
}

func with[T any](m map[string]T, name string, v T) map[string]T {
	next := make(map[string]T, len(m)+1)
	maps.Copy(next, m)
	next[name] = v
	if any(v) == nil { // else the nil is called only when the session asks
		delete(next, name)
	}
	return next
}

// The built-in strategies; the names are in the order in which messages list them.
var (
	proposerNames    = []string{"firstAvailable", "lastAvailable", "random"}
	builtinProposers = map[string]specialist.Proposer{"firstAvailable": FirstAvailable, "lastAvailable": LastAvailable, "random": Random}
	arbiterNames     = []string{machine.AlignmentMargin, machine.FirstProposal, machine.Bayes}
	builtinArbiters  = map[string]arbiter.Arbiter{machine.AlignmentMargin: AlignmentMargin{}, machine.FirstProposal: FirstProposal{}, machine.Bayes: Bayes{}}
)

// Names returns the built-in strategies that strategyFnName may name in a role.
// The caller must not change it.
func Names(role machine.Role) []string {
	if role == machine.Arbiter {
		return arbiterNames
	}
	return proposerNames
}

// Checks returns the rules of a machine file that this package owns.
func Checks() machine.Checks {
	return machine.Checks{Strategies: Names, Expression: CheckExpression}
}
