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

// A Registry maps the names that machine files use in strategyFn and contextFn
// to Go values, and those of classifiers of guards; a name that was given nil means
// nothing. The zero Registry is empty. A Registry never changes, so it may be used
// concurrently and shared.
type Registry struct {
	proposers map[string]specialist.Proposer
	arbiters  map[string]arbiter.Arbiter
	contexts  map[string]specialist.Context

	classifiers map[string]guard.Classifier
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

func with[T any](m map[string]T, name string, v T) map[string]T {
	next := make(map[string]T, len(m)+1)
	maps.Copy(next, m)
	next[name] = v
	if any(v) == nil { // else the nil is called only when the session asks
		delete(next, name)
	}
	return next
}

// Proposer returns the proposer of that name.
func (r Registry) Proposer(name string) (specialist.Proposer, bool) {
	p, ok := r.proposers[name]
	return p, ok
}

// Arbiter returns the arbiter of that name.
func (r Registry) Arbiter(name string) (arbiter.Arbiter, bool) {
	a, ok := r.arbiters[name]
	return a, ok
}

// Context returns the context of that name.
func (r Registry) Context(name string) (specialist.Context, bool) {
	c, ok := r.contexts[name]
	return c, ok
}

// Classifier returns the classifier of that name.
func (r Registry) Classifier(name string) (guard.Classifier, bool) {
	c, ok := r.classifiers[name]
	return c, ok
}

// The built-in strategies, in the order in which messages list them.
var (
	builtinProposers = []string{"firstAvailable", "lastAvailable", "random"}
	builtinArbiters  = []string{machine.AlignmentMargin, machine.FirstProposal, machine.Bayes}
)

// Names returns the built-in strategies that strategyFnName may name in a role.
// The caller must not change it.
func Names(role machine.Role) []string {
	if role == machine.Arbiter {
		return builtinArbiters
	}
	return builtinProposers
}

// BuiltinProposer returns the built-in proposer of that name.
func BuiltinProposer(name string) (specialist.Proposer, bool) {
	switch name {
	case "firstAvailable":
		return FirstAvailable, true
	case "lastAvailable":
		return LastAvailable, true
	case "random":
		return Random, true
	}
	return nil, false
}

// BuiltinArbiter returns the built-in arbiter of that name.
func BuiltinArbiter(name string) (arbiter.Arbiter, bool) {
	switch name {
	case machine.AlignmentMargin:
		return AlignmentMargin{}, true
	case machine.FirstProposal:
		return FirstProposal{}, true
	case machine.Bayes:
		return Bayes{}, true
	}
	return nil, false
}

// Checks returns the rules of a machine file that this package owns.
func Checks() machine.Checks {
	return machine.Checks{Strategies: Names, Expression: CheckExpression}
}
