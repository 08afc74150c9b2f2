package backtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
)

// What a back-test changes, and who decides under it. A policy makes another machine of
// a recorded one: an arbiter in the place of all others, a threshold or a promise in
// the place of all declared ones, proposers switched off. The result must load by
// today's rules, unless the recorded machine itself does not. Built-in strategies and
// expressions are made and asked again; somebody's own function, model or service never
// is (rule.made is nil).

// A Policy is what is changed of how rounds were decided. The zero Policy changes
// nothing: every round is decided again as it was.
type Policy struct {
	// Arbiter is who decides everywhere; nil: as recorded. Without an id it has that
	// of the machine's first arbiter, in whose place it would be written, or else
	// [TriedID].
	Arbiter   *machine.Specialist
	Threshold *machine.Threshold // in force everywhere, instead of every threshold and risk; nil: as declared
	Risk      *machine.Risk      // promised by the machine, instead of every threshold and risk; nil: as declared
	Roster    []string           // who alone proposes, besides humans; nil: as declared
	Drop      []string           // who does not propose any more
}

// ErrPolicy is wrapped by every error about a policy that cannot be tried.
var ErrPolicy = errors.New("this policy cannot be tried")

// Check returns why nothing can be decided by a policy, whatever the machine; errors wrap
// ErrPolicy.
func (p *Policy) Check() error {
	switch {
	case p.Threshold != nil && p.Risk != nil:
		return fmt.Errorf("%w: threshold and risk: give one of them, rounds are decided by one", ErrPolicy)
	case p.Risk != nil && !(inside(p.Risk.MaxError) && inside(p.Risk.Confidence)):
		return fmt.Errorf("%w: risk is a share and a confidence, both between 0 and 1", ErrPolicy)
	case p.Risk != nil && p.Arbiter != nil && p.Arbiter.StrategyFnName != machine.Bayes:
		return fmt.Errorf("%w: risk needs the strategy %s, which alone keeps promises", ErrPolicy, machine.Bayes)
	}
	return nil
}

// inside reports whether a probability is one that is neither 0 nor 1, as it is counted.
func inside(p float64) bool { return p >= 1e-9 && p <= 1-1e-9 }

// Changed reports whether p changes anything.
func (p *Policy) Changed() bool {
	return p.Arbiter != nil || p.Threshold != nil || p.Risk != nil || p.Roster != nil || len(p.Drop) > 0
}

// keeps reports whether a proposer, who is no human, still proposes.
func (p *Policy) keeps(id string) bool {
	return !slices.Contains(p.Drop, id) && (p.Roster == nil || slices.Contains(p.Roster, id))
}

// Fits returns why nothing can be decided by a policy in a machine; errors wrap ErrPolicy.
func (p *Policy) Fits(m *machine.Machine) error {
	_, err := p.apply(m)
	return err
}

// apply returns the machine that p makes of a recorded one.
func (p *Policy) apply(m *machine.Machine) (*machine.Machine, error) {
	if !p.Changed() {
		return m, nil
	}
	def := *m.Definition()
	declared := def.Specialists
	def.Specialists = p.roster(declared)
	if p.Arbiter != nil {
		def.Specialists = append(def.Specialists, p.arbiter(declared))
	}
	def.States = slices.Clone(def.States)
	for i := range def.States {
		def.States[i].Specialists = p.roster(def.States[i].Specialists)
	}
	p.thresholds(&def)
	next, err := machine.Compile(&def, checksOf(m))
	if err != nil {
		return nil, fmt.Errorf("%w: machine %q, changed so, would not load: %s", ErrPolicy, m.Name(), machine.FirstProblem(err))
	}
	return next, nil
}

// checksOf returns the rules for what is made of a recorded machine: those of today,
// unless it breaks them itself.
func checksOf(m *machine.Machine) machine.Checks {
	if _, err := machine.Compile(m.Definition(), runner.Checks()); err != nil {
		return session.StoredChecks()
	}
	return runner.Checks()
}

// TriedID is the id of an arbiter that has none and takes nobody's place.
const TriedID = "backtest-arbiter"

// arbiter returns the arbiter of p as a machine that declares these would.
func (p *Policy) arbiter(declared []machine.Specialist) machine.Specialist {
	by := *p.Arbiter
	if by.SpecialistID == "" {
		by.SpecialistID = TriedID
		if i := slices.IndexFunc(declared, func(s machine.Specialist) bool { return s.Role == machine.Arbiter }); i >= 0 {
			by.SpecialistID = declared[i].SpecialistID
		}
	}
	return by
}

// roster returns a list of specialists under p.
func (p *Policy) roster(list []machine.Specialist) []machine.Specialist {
	if list == nil {
		return nil
	}
	next := make([]machine.Specialist, 0, len(list)+1)
	for _, s := range list {
		if s.Role == machine.Arbiter && p.Arbiter != nil {
			continue
		}
		if s.Role == machine.Proposer && !s.IsHuman && !p.keeps(s.SpecialistID) {
			off := true
			s.Disabled, s.Enabled = &off, nil
		}
		next = append(next, s)
	}
	return next
}

// thresholds puts those of p in the place of the declared ones. An arbiter that
// keeps no promises takes none over.
func (p *Policy) thresholds(def *machine.Definition) {
	other := p.Arbiter != nil && p.Arbiter.StrategyFnName != machine.Bayes
	if p.Threshold != nil || p.Risk != nil || other {
		def.Risk = p.Risk
	}
	if p.Threshold != nil || p.Risk != nil {
		def.ConsensusThreshold = p.Threshold
	}
	if other {
		def.Collapse = nil
	}
	for i := range def.States {
		s := &def.States[i]
		if p.Threshold != nil || p.Risk != nil || other {
			s.Risk = nil
		}
		if p.Threshold != nil || p.Risk != nil {
			s.ConsensusThreshold = nil
		}
		if other {
			s.Collapse = nil
		}
	}
}

// A rule is how the rounds of one state are decided.
type rule struct {
	by     *machine.Specialist
	made   arbiter.Arbiter // nil for somebody's own code, which is never asked
	bayes  bool
	arrive bool // arrival decides
}

// ruleOf makes an arbiter ready to decide recorded rounds.
func ruleOf(by *machine.Specialist) (r rule, err error) {
	r.by = by
	switch {
	case by == nil:
	case by.StrategyFnName != "":
		if r.made, _ = (strategies.Registry{}).Arbiter(nil, by); r.made == nil {
			return r, fmt.Errorf("%w: %s", ErrPolicy, machine.UnknownStrategy(by))
		}
		r.bayes, r.arrive = by.StrategyFnName == machine.Bayes, by.StrategyFnName == machine.FirstProposal
	case len(by.StrategyFn) > 0 && by.StrategyFn[0] == '=':
		r.made, err = strategies.Registry{}.Arbiter(nil, by)
	}
	return r, err
}

// decide returns the decision of a rule that can be made.
func (r *rule) decide(ctx context.Context, round *arbiter.Round) (d arbiter.Decision) {
	if len(round.Votes) == 0 && r.by.StrategyFnName == "" {
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.NoProposals} // expressions are not asked about nothing
	}
	defer func() {
		if recover() != nil {
			d = arbiter.Decision{Winner: arbiter.NoWinner}
		}
	}()
	d, err := r.made.Decide(ctx, round)
	if err != nil || d.Check(round) != nil {
		return arbiter.Decision{Winner: arbiter.NoWinner} // the arbiter failed: a human had to decide
	}
	return d
}
