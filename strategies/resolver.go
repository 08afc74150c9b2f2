package strategies

import (
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A machine file says who proposes, decides and checks by a name, an address or a
// model. What answers to that differs from program to program, so the engine asks a
// Resolver, and everybody who can find somebody is one: the Registry finds what is
// built in, expressions and a program's own functions; a webhook.Client finds
// services; an llm.Client finds models. Resolvers puts them one after another.

// A program's own model of a truth gate is a [Completer]. The names are those of the
// package that asks it.
type (
	// A Completer answers what a truth gate asks.
	Completer = truth.Completer
	// A CompletionRequest is what it is asked.
	CompletionRequest = truth.CompletionRequest
	// A Completion is its answer.
	Completion = truth.Completion
)

// A Resolver finds who is behind what a machine file names. Each method returns nil
// and no error for what the Resolver does not know, so that another one is asked, and
// an error for what it knows and cannot use: everything that can be checked before the
// first ask is checked here. It may be used concurrently.
type Resolver interface {
	// Proposer returns who proposes for s, who is no human. context gathers what the
	// model of s is shown; it is nil where s names none. A proposer that is a
	// [specialist.Estimator] is believed where the machine does not say what an ask
	// costs.
	Proposer(m *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error)
	// Arbiter returns who decides for s.
	Arbiter(m *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error)
	// Context returns what gathers the text that the model of s is shown.
	Context(m *machine.Machine, s *machine.Specialist) (specialist.Context, error)
	// Classifier returns who classifies for a section of guards.
	Classifier(c *guard.ClassifierConfig) (guard.Classifier, error)
	// Completer returns the model that a truth gate names.
	Completer(model string) (Completer, error)
}

// Resolvers are asked in their order; the first that knows counts. A nil among them
// knows nobody.
type Resolvers []Resolver

// Proposer implements [Resolver].
func (rs Resolvers) Proposer(m *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error) {
	return first(rs, func(r Resolver) (specialist.Proposer, error) { return r.Proposer(m, s, context) })
}

// Arbiter implements [Resolver].
func (rs Resolvers) Arbiter(m *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error) {
	return first(rs, func(r Resolver) (arbiter.Arbiter, error) { return r.Arbiter(m, s) })
}

// Context implements [Resolver].
func (rs Resolvers) Context(m *machine.Machine, s *machine.Specialist) (specialist.Context, error) {
	return first(rs, func(r Resolver) (specialist.Context, error) { return r.Context(m, s) })
}

// Classifier implements [Resolver].
func (rs Resolvers) Classifier(c *guard.ClassifierConfig) (guard.Classifier, error) {
	return first(rs, func(r Resolver) (guard.Classifier, error) { return r.Classifier(c) })
}

// Completer implements [Resolver].
func (rs Resolvers) Completer(model string) (Completer, error) {
	return first(rs, func(r Resolver) (Completer, error) { return r.Completer(model) })
}

func first[T any](rs Resolvers, find func(Resolver) (T, error)) (found T, err error) {
	for _, r := range rs {
		if r == nil {
			continue
		}
		if found, err = find(r); err != nil || any(found) != nil {
			break
		}
	}
	return found, err
}

// Proposer implements [Resolver]: a built-in strategy, an expression, or what a
// strategyFn means in r.
func (r Registry) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	switch {
	case s.StrategyFnName != "":
		return builtinProposers[s.StrategyFnName], nil
	case strings.HasPrefix(s.StrategyFn, "="):
		return newProposerExpression(s.StrategyFn)
	}
	return r.proposers[s.StrategyFn], nil
}

// Arbiter implements [Resolver], as [Registry.Proposer] does.
func (r Registry) Arbiter(_ *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error) {
	switch {
	case s.StrategyFnName != "":
		return builtinArbiters[s.StrategyFnName], nil
	case strings.HasPrefix(s.StrategyFn, "="):
		return newArbiterExpression(s.StrategyFn)
	}
	return r.arbiters[s.StrategyFn], nil
}

// Context implements [Resolver]: what a contextFn means in r, else the built-in
// sessionContext.
func (r Registry) Context(_ *machine.Machine, s *machine.Specialist) (specialist.Context, error) {
	if c := r.contexts[s.ContextFn]; c != nil || s.ContextFn != "sessionContext" {
		return c, nil
	}
	return SessionContext, nil
}

// Classifier implements [Resolver]: what a classifier's function means in r.
func (r Registry) Classifier(c *guard.ClassifierConfig) (guard.Classifier, error) {
	return r.classifiers[c.Function], nil
}

// Completer implements [Resolver]: what the name of a model means in r.
func (r Registry) Completer(model string) (Completer, error) { return r.models[model], nil }
