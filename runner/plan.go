package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/refusal"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A plan is made from a program and the roster of its machine: first the specialists of
// the machine, declared before registered, then for each state who takes part, who
// arbitrates, which gates its transitions have, and whom its guards ask. It is kept by
// program, and made again when the roster has changed or something was missing.
//
// What stands in the way (a function that nobody registered, a webhook that is not
// allowed) is collected, so that one error names all of it. Whoever is going to ask
// takes plan, which fails then; whoever only rules or looks takes planPartial. A plan
// never changes once it is made, but for the alignment it caches, so sessions and
// goroutines share it.

// A cast is a program with everybody who takes part made ready: names resolved,
// expressions compiled, webhooks checked. Sessions of the same definition share
// it. It is made again when somebody is registered, disabled or enabled.
type cast struct {
	program *session.Program
	roster  *session.Roster
	states  []statePlan
	missing error          // a *StartError if somebody cannot be asked here
	absent  []string       // who that is
	cases   *cases.Program // nil if the machine says nothing of data
}

// A statePlan says who takes part in one state.
type statePlan struct {
	state       *machine.State
	scope       string       // of alignment: "" or the state's name
	members     []member     // proposers, in roster order, disabled ones included
	humans      []member     // machine-level humans that are not among members
	arbiter     *member      // nil if none is switched on
	judged      bool         // an arbiter belongs here, be it switched off
	respondents *respondents // nil unless the guards ask somebody

	question trust.Question // to the ledger, but for the votes
	audits   bool           // automatic decisions are audited

	definition string // digest of what the state is: prompt and transitions

	standing atomic.Pointer[standing]
}

// A standing is the alignment of a state's members as of one Book.
type standing struct {
	book    *trust.Book
	weights []exact.Billionths // by index of the member
}

// A member is one specialist made ready.
type member struct {
	*machine.Specialist
	rank     int32 // place in the round's order among members
	off      bool
	required bool // without its answer a human decides
	source   specialist.Source
	timeout  time.Duration
	estimate exact.Money
	proposer specialist.Proposer // nil for humans
	arbiter  arbiter.Arbiter     // of arbiters only
	strategy string              // what a decision record calls it
	version  string              // digest of what it is
}

// local reports whether the member is asked inside this process.
func (m *member) local() bool { return m.Specialist.Local() }

// custom reports whether the member is somebody's own code: what that says is
// asked for once.
func (m *member) custom() bool { return m.source == specialist.Function || !m.local() }

// weights returns the alignment of the members under a Book.
func (p *statePlan) weights(b *trust.Book) []exact.Billionths {
	if s := p.standing.Load(); s != nil && s.book == b {
		return s.weights
	}
	s := &standing{book: b, weights: make([]exact.Billionths, len(p.members))}
	for i := range p.members {
		if m := &p.members[i]; m.IsHuman {
			s.weights[i] = exact.One
		} else {
			s.weights[i] = b.Score(m.SpecialistID, p.scope)
		}
	}
	p.standing.Store(s)
	return s.weights
}

// find returns the member or machine-level human of that id, or nil.
func (p *statePlan) find(id string) *member {
	for _, list := range [][]member{p.members, p.humans} {
		for i := range list {
			if list[i].SpecialistID == id {
				return &list[i]
			}
		}
	}
	return nil
}

// A plan is a cast with the gates through which its transitions are executed.
type plan struct {
	*cast
	gates [][]gate // by index of the state and of the transition
}

func newPlan(c *cast) *plan {
	p := &plan{c, make([][]gate, len(c.states))}
	for i := range c.states {
		transitions := c.states[i].state.Transitions
		p.gates[i] = make([]gate, len(transitions))
		for j, t := range transitions {
			p.gates[i][j].init(t)
		}
	}
	return p
}

// surroundings returns what this program has for specialists.
func (r *Runner) surroundings() Surroundings { return Surroundings{r.config.Resolver, r.asker} }

// plan returns the plan of a program under the present roster. Everybody in it
// can be asked.
func (r *Runner) plan(ctx context.Context, p *session.Program) (*plan, error) {
	made, err := r.planFor(ctx, p, false)
	if err == nil {
		err = made.missing
	}
	return made, err
}

// planPartial is plan where nobody will be asked: what asking takes may be missing.
func (r *Runner) planPartial(ctx context.Context, p *session.Program) (*plan, error) {
	return r.planFor(ctx, p, true)
}

// planFor makes a plan, or returns the one that it made. Unless partial will do, it
// looks again for what was missing.
func (r *Runner) planFor(ctx context.Context, p *session.Program, partial bool) (*plan, error) {
	p = p.Base // limits that were raised for one session change nobody's part
	roster, err := r.store.Roster(ctx, p.Machine.Name())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known, _ := r.plans.Get(p)
	r.mu.Unlock()
	if known != nil && known.roster == roster && (partial || known.missing == nil) {
		return known, nil
	}
	made := newPlan(newCast(r.surroundings(), p, roster))
	r.mu.Lock()
	r.plans.Put(p, made)
	r.mu.Unlock()
	return made, nil
}

// Surroundings are what a program has for the specialists of its machines.
type Surroundings struct {
	Resolver strategies.Resolver
	Asker    func(*guard.ClassifierConfig) *guard.Asker // of this process
}

// newCast makes the plan of a program under a roster.
func newCast(in Surroundings, p *session.Program, roster *session.Roster) *cast {
	b := planner{Surroundings: in, m: p.Machine, roster: roster, made: map[*machine.Specialist]*member{}}
	return b.plan(p)
}

// resolvable returns why nobody can be asked as the only specialist of a machine, nil if it can.
func resolvable(in Surroundings, m *machine.Machine, s *machine.Specialist) error {
	b := planner{Surroundings: in, m: m}
	return b.resolve(&member{Specialist: s})
}

// A planner makes one plan and collects everything that stands in its way.
type planner struct {
	Surroundings
	m        *machine.Machine
	roster   *session.Roster
	made     map[*machine.Specialist]*member
	problems []error
	absent   []string         // who cannot be asked here
	program  *session.Program // nil where it is about a machine, and no session
	looking  bool             // nobody is asked, so nobody's code has to be there
}

func (b *planner) plan(program *session.Program) *cast {
	b.program = program
	p := &cast{program: program, roster: b.roster, states: make([]statePlan, len(b.m.States())), cases: cases.Compile(b.m)}
	level := b.machineLevel()
	for i := range b.m.States() {
		b.state(&p.states[i], &b.m.States()[i], level)
		p.states[i].respondents = b.respondents(program, &b.m.States()[i])
	}
	if len(b.problems) > 0 {
		p.missing, p.absent = &StartError{b.problems}, b.absent
	}
	p.ask(b.m)
	return p
}

// machineLevel returns the specialists of the machine: the declared ones, then
// the registered ones whose ids are not taken.
func (b *planner) machineLevel() []*machine.Specialist {
	var level []*machine.Specialist
	declared := map[string]*machine.Specialist{}
	for i := range b.m.Specialists() {
		s := &b.m.Specialists()[i]
		level = append(level, s)
		declared[s.SpecialistID] = s
	}
	for i := range b.m.States() {
		for j := range b.m.States()[i].Roster {
			if s := &b.m.States()[i].Roster[j]; declared[s.SpecialistID] == nil && !s.Reference() {
				declared[s.SpecialistID] = s
			}
		}
	}
	for i := range b.roster.Specialists {
		s := &b.roster.Specialists[i].Specialist
		switch d := declared[s.SpecialistID]; {
		case d == nil:
			level = append(level, s)
		case d.Role != s.Role:
			b.fail(fmt.Errorf("specialist %q is declared as %s but registered as %s", s.SpecialistID, d.Role, s.Role))
		}
	}
	return level
}

func (b *planner) fail(err error) {
	for _, p := range b.problems {
		if p.Error() == err.Error() {
			return
		}
	}
	b.problems = append(b.problems, err)
}

func (b *planner) state(p *statePlan, s *machine.State, level []*machine.Specialist) {
	p.state = s
	if s.Roster == nil {
		for _, sp := range level {
			b.join(p, sp, nil)
		}
	} else {
		p.scope = s.Name
		for i := range s.Roster {
			sp := &s.Roster[i]
			named := sp
			if sp.Reference() {
				if named = find(level, sp.SpecialistID); named == nil {
					b.fail(&DanglingError{dangling(b.m, s, i, level)})
					continue
				}
			}
			b.join(p, named, sp)
		}
		for _, sp := range level {
			if sp.IsHuman && p.find(sp.SpecialistID) == nil {
				p.humans = append(p.humans, b.member(p.state, sp))
			}
		}
		for _, sp := range level {
			if sp.Role == machine.Arbiter && p.arbiter == nil {
				b.join(p, sp, entryOf(s.Roster, sp.SpecialistID))
			}
		}
	}
	for i := range p.members {
		p.members[i].rank = int32(i)
	}
	for i := range p.humans {
		p.humans[i].rank = int32(len(p.members) + i)
	}
}

// entryOf returns what a state's list says of somebody, nil if it does not name them.
func entryOf(list []machine.Specialist, id string) *machine.Specialist {
	i := slices.IndexFunc(list, func(s machine.Specialist) bool { return s.SpecialistID == id })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func find(list []*machine.Specialist, id string) *machine.Specialist {
	i := slices.IndexFunc(list, func(s *machine.Specialist) bool { return s.SpecialistID == id })
	if i < 0 {
		return nil
	}
	return list[i]
}

// join adds a specialist to a state: to its members, or as its arbiter if it is
// the first one that is not switched off. entry is what the state's own list says of
// it, nil if it says nothing.
func (b *planner) join(p *statePlan, s, entry *machine.Specialist) {
	m := b.member(p.state, s)
	if m.required = s.Required; entry != nil {
		m.off, m.required = m.off || entry.Off(), m.required || entry.Required
	}
	if m.required && s.IsHuman {
		b.fail(fmt.Errorf("state %q requires %q, who is human: nobody waits for a human's proposal", p.state.Name, s.SpecialistID))
		m.required = false
	}
	p.judged = p.judged || s.Role == machine.Arbiter
	if s.Role == machine.Proposer {
		p.members = append(p.members, m)
	} else if p.arbiter == nil && !m.off {
		p.arbiter = &m
	}
}

// member makes a specialist ready; each only once, whatever the states. Of one
// that is switched off nothing needs to be there.
func (b *planner) member(st *machine.State, s *machine.Specialist) member {
	known := b.made[s]
	if known == nil {
		known = &member{Specialist: s, version: versionOf(s), off: s.Off() || b.roster.Off[s.SpecialistID] || b.program != nil && b.program.Lacks(s.SpecialistID)}
		if !known.off && !b.looking {
			if err := b.resolve(known); err != nil {
				b.fail(err)
				b.absent = append(b.absent, s.SpecialistID)
			}
		}
		if s.EstimatedCostUSD != nil {
			known.estimate = *s.EstimatedCostUSD
		}
		b.made[s] = known
	}
	m := *known
	m.timeout = st.TimeoutOf(s)
	return m
}

// modeOf returns how a specialist who is no human is asked, and what a decision record
// calls that; "" if it is not said.
func modeOf(s *machine.Specialist) (mode specialist.Source, strategy string) {
	switch {
	case s.StrategyFnName != "":
		return specialist.Builtin, s.StrategyFnName
	case strings.HasPrefix(s.StrategyFn, "="):
		return specialist.Expression, "expression"
	case s.StrategyFn != "":
		return specialist.Function, s.StrategyFn
	case s.ModelID != "":
		return specialist.Model, "model"
	case s.StrategyWebhookURL != "":
		return specialist.Webhook, "webhook"
	}
	return specialist.Submitted, ""
}

// resolve finds who is behind a specialist.
func (b *planner) resolve(m *member) (err error) {
	if m.IsHuman {
		return nil // never invoked
	}
	if m.source, m.strategy = modeOf(m.Specialist); m.strategy == "" {
		return fmt.Errorf("specialist %q: %w", m.SpecialistID, machine.ErrNoMode)
	}
	resolver, context := b.Resolver, specialist.Context(nil)
	if m.source == specialist.Model {
		if context, err = resolver.Context(b.m, m.Specialist); err == nil && context == nil {
			return noContext(m.Specialist)
		}
	}
	switch {
	case err != nil:
	case m.Role == machine.Arbiter:
		m.arbiter, err = resolver.Arbiter(b.m, m.Specialist)
	default:
		m.proposer, err = resolver.Proposer(b.m, m.Specialist, context)
	}
	if err != nil {
		return fmt.Errorf("specialist %q: %w", m.SpecialistID, err)
	}
	if m.arbiter == nil && m.proposer == nil {
		return nobodyBehind(m)
	}
	return nil
}

// noContext is the error of a model whose context nobody finds.
func noContext(s *machine.Specialist) error {
	if s.ContextWebhookURL != "" {
		return fmt.Errorf("specialist %q has a webhook as its context, and this program has no way to call one", s.SpecialistID)
	}
	return refusal.New(refusal.ErrUnknownStrategy, "missing_function", "contextFn %q of specialist %q is not in the Registry", s.ContextFn, s.SpecialistID)
}

// nobodyBehind is the error of a specialist whom nobody finds.
func nobodyBehind(m *member) error {
	switch m.source {
	case specialist.Builtin:
		return refusal.New(refusal.ErrUnknownStrategy, "unknown_strategy", "%s", machine.UnknownStrategy(m.Specialist))
	case specialist.Model:
		return fmt.Errorf("specialist %q is a model, and this program has no way to ask one", m.SpecialistID)
	case specialist.Webhook:
		return fmt.Errorf("specialist %q is a webhook, and this program has no way to call one", m.SpecialistID)
	}
	return refusal.New(refusal.ErrUnknownStrategy, "missing_function", "strategyFn %q of specialist %q is not in the Registry", m.StrategyFn, m.SpecialistID)
}

// noArbiter is the arbiter where there is none.
func noArbiter() *member { return &member{Specialist: &machine.Specialist{}} }

// defaultProposer and defaultArbiter stand in where a machine that is simply
// run has nobody.
func defaultProposer(id specialist.SessionID) member {
	return member{Specialist: &machine.Specialist{Role: machine.Proposer, SpecialistID: "__default_proposer_" + id.String(), StrategyFnName: "firstAvailable"},
		source: specialist.Builtin, timeout: machine.DefaultTimeout, proposer: strategies.FirstAvailable}
}

func defaultArbiter(id specialist.SessionID) *member {
	return &member{Specialist: &machine.Specialist{Role: machine.Arbiter, SpecialistID: "__default_arbiter_" + id.String(), StrategyFnName: machine.FirstProposal},
		source: specialist.Builtin, arbiter: strategies.FirstProposal{}, strategy: machine.FirstProposal}
}
