package dryrun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A script is a Resolver that knows what is built in and expressions, and has an answer in the
// place of everybody else. It may be used concurrently.
type script struct {
	strategies.Registry // the empty one
	answers             []api.DryAnswer

	mu   sync.Mutex
	used []int // how often each answer was given
}

// CodeNoAnswer is the code of the failure of somebody who has no line, and noAnswer its message.
const (
	CodeNoAnswer = "no_answer"
	noAnswer     = "the script has no answer for this"
)

// newScript refuses answers of somebody, or for a state, that the machine does not have.
func newScript(c *Config) (*script, error) {
	known := []string{runner.Operator}
	for s := range everybody(c.Machine) {
		known = append(known, s.SpecialistID)
	}
	for i, a := range c.Answers {
		switch {
		case !slices.Contains(known, a.SpecialistID):
			return nil, fmt.Errorf("%w: answers/%d: the machine has no specialist %q", ErrScript, i, a.SpecialistID)
		case a.State != "" && c.Machine.State(a.State) == nil:
			return nil, fmt.Errorf("%w: answers/%d: the machine has no state %q", ErrScript, i, a.State)
		}
	}
	return &script{answers: c.Answers, used: make([]int, len(c.Answers))}, nil
}

// played is the Registry name of everybody who is played.
const played = "__scripted"

// cast returns a machine with functions in the places of those whom the script plays.
func cast(m *machine.Machine) (*machine.Machine, error) {
	def := *m.Definition()
	def.Specialists = castOf(def.Specialists)
	def.States = slices.Clone(def.States)
	for i := range def.States {
		if s := &def.States[i]; s.Specialists != nil {
			s.Specialists = castOf(s.Specialists)
		}
	}
	return machine.Compile(&def, runner.Checks())
}

func castOf(list []machine.Specialist) []machine.Specialist {
	list = slices.Clone(list)
	for i, s := range list {
		if !s.IsHuman && !s.Reference() && s.StrategyFnName == "" && !strings.HasPrefix(s.StrategyFn, "=") {
			list[i] = machine.Specialist{Role: s.Role, SpecialistID: s.SpecialistID, MachineName: s.MachineName, Enabled: s.Enabled, Disabled: s.Disabled, StrategyFn: played,
				Threshold: s.Threshold, EstimatedCostUSD: s.EstimatedCostUSD, Required: s.Required}
		}
	}
	return list
}

// everybody yields the specialists of a machine, those of its states too.
func everybody(m *machine.Machine) iter.Seq[*machine.Specialist] {
	return func(yield func(*machine.Specialist) bool) {
		lists := [][]machine.Specialist{m.Specialists()}
		for i := range m.States() {
			lists = append(lists, m.States()[i].Roster)
		}
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// answer returns what somebody says in a state when they are asked now; nil for nothing.
func (s *script) answer(id, state string) *api.DryAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range []string{state, ""} {
		last := -1
		for i := range s.answers {
			if a := &s.answers[i]; a.SpecialistID != id || a.State != of {
				continue
			}
			if last = i; s.used[i] == 0 {
				break
			}
		}
		if last >= 0 {
			s.used[last]++
			return &s.answers[last]
		}
	}
	return nil
}

// unused returns the places of answers that nobody was asked for.
func (s *script) unused() []int {
	list := []int{}
	for i, n := range s.used {
		if n == 0 {
			list = append(list, i)
		}
	}
	return list
}

// A part is somebody whom the script plays.
type part struct {
	*script
	id string
}

// said returns what the part says.
func (p part) said(state string) (*api.DryAnswer, error) {
	switch said := p.answer(p.id, state); {
	case said == nil:
		return nil, errors.New(noAnswer)
	case said.Error != "":
		return nil, errors.New(said.Error)
	default:
		return said, nil
	}
}

// Propose implements [specialist.Proposer].
func (p part) Propose(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	said, err := p.said(q.State.Name)
	if err != nil {
		return specialist.Answer{}, err
	}
	return specialist.Answer{TransitionName: said.TransitionName, Reasoning: said.Reasoning, MetaJSON: said.MetaJSON}, nil
}

// Decide implements [arbiter.Arbiter].
func (p part) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	said, err := p.said(r.State.Name)
	if err != nil {
		return arbiter.Decision{}, err
	}
	for i, v := range r.Votes {
		if v.Transition.Name == said.TransitionName {
			return arbiter.Elect(i, said.Reasoning), nil
		}
	}
	return arbiter.None(said.Reasoning), nil
}

// Proposer implements [strategies.Resolver].
func (s *script) Proposer(m *machine.Machine, who *machine.Specialist, gathers specialist.Context) (specialist.Proposer, error) {
	if found, err := s.Registry.Proposer(m, who, gathers); found != nil || err != nil {
		return found, err
	}
	return part{s, who.SpecialistID}, nil
}

// Arbiter implements [strategies.Resolver].
func (s *script) Arbiter(m *machine.Machine, who *machine.Specialist) (arbiter.Arbiter, error) {
	if found, err := s.Registry.Arbiter(m, who); found != nil || err != nil {
		return found, err
	}
	return part{s, who.SpecialistID}, nil
}

// errNotAsked is what guards get of those whom they ask.
var errNotAsked = errors.New("guards ask nobody in a dry run")

// Classifier implements [strategies.Resolver].
func (s *script) Classifier(*guard.ClassifierConfig) (guard.Classifier, error) { return silent{}, nil }

// Completer implements [strategies.Resolver].
func (s *script) Completer(string) (strategies.Completer, error) { return silent{}, nil }

// A silent one answers no guard.
type silent struct{}

// Classify implements [guard.Classifier].
func (silent) Classify(context.Context, guard.Classification) (guard.ClassifierAnswer, error) {
	return guard.ClassifierAnswer{}, errNotAsked
}

// Complete implements [strategies.Completer].
func (silent) Complete(context.Context, strategies.CompletionRequest) (strategies.Completion, error) {
	return strategies.Completion{}, errNotAsked
}
