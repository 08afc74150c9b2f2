// Package planning works out who takes part in each state of a machine, and makes them ready
// to be asked.
//
// A [Plan] is made from a program and the roster of its machine: first the specialists of
// the machine, declared before registered, then for each state who takes part, who
// arbitrates, whom its guards ask, and what its rounds put to the ledger.
//
// What stands in the way (a function that nobody registered, a webhook that is not
// allowed) is collected, so that one error names all of it. A plan never changes once it is
// made, but for the alignment it caches, so sessions and goroutines share it. Nothing here
// asks anybody, or waits.
package planning

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

// A Plan is a program with everybody who takes part made ready: names resolved,
// expressions compiled, webhooks checked. Sessions of the same definition share
// it. It is made again when somebody is registered, disabled or enabled.
type Plan struct {
	Program *session.Program
	Roster  *session.Roster
	States  []State
	Missing error          // a *StartError if somebody cannot be asked here
	Absent  []string       // who that is
	Cases   *cases.Program // nil if the machine says nothing of data
}

// A State says who takes part in one state.
type State struct {
	State       *machine.State
	Scope       string       // of alignment: "" or the state's name
	Members     []Member     // proposers, in roster order, disabled ones included
	Humans      []Member     // machine-level humans that are not among members
	Arbiter     *Member      // nil if none is switched on
	judged      bool         // an arbiter belongs here, be it switched off
	Respondents *Respondents // nil unless the guards ask somebody

	Question trust.Question // to the ledger, but for the votes
	Audits   bool           // automatic decisions are audited

	Definition string // digest of what the state is: prompt and transitions

	standing atomic.Pointer[standing]
}

// A standing is the alignment of a state's members as of one Book.
type standing struct {
	book    *trust.Book
	weights []exact.Billionths // by index of the member
}

// A Member is one specialist made ready.
type Member struct {
	*machine.Specialist
	Rank     int32 // place in the round's order among members
	Off      bool
	Required bool // without its answer a human decides
	Source   specialist.Source
	Timeout  time.Duration
	Estimate exact.Money
	Proposer specialist.Proposer // nil for humans
	Arbiter  arbiter.Arbiter     // of arbiters only
	Strategy string              // what a decision record calls it
	Version  string              // digest of what it is
}

// Custom reports whether the member is somebody's own code: what that says is
// asked for once.
func (m *Member) Custom() bool { return m.Source == specialist.Function || !m.Local() }

// Weights returns the alignment of the members under a Book.
func (p *State) Weights(b *trust.Book) []exact.Billionths {
	if s := p.standing.Load(); s != nil && s.book == b {
		return s.weights
	}
	s := &standing{book: b, weights: make([]exact.Billionths, len(p.Members))}
	for i := range p.Members {
		if m := &p.Members[i]; m.IsHuman {
			s.weights[i] = exact.One
		} else {
			s.weights[i] = b.Score(m.SpecialistID, p.Scope)
		}
	}
	p.standing.Store(s)
	return s.weights
}

// Find returns the member or machine-level human of that id, or nil.
func (p *State) Find(id string) *Member {
	for _, list := range [][]Member{p.Members, p.Humans} {
		for i := range list {
			if list[i].SpecialistID == id {
				return &list[i]
			}
		}
	}
	return nil
}

// Surroundings are what a program has for the specialists of its machines.
type Surroundings struct {
	Resolver strategies.Resolver
	Asker    func(*guard.ClassifierConfig) *guard.Asker // of this process
}

// Make makes the plan of a program under a roster; Missing says what stands in its way.
func Make(in Surroundings, p *session.Program, roster *session.Roster) *Plan {
	b := planner{Surroundings: in, m: p.Machine, roster: roster, made: map[*machine.Specialist]*Member{}}
	return b.make(p)
}

// A planner makes one plan and collects everything that stands in its way.
type planner struct {
	Surroundings
	m        *machine.Machine
	roster   *session.Roster
	made     map[*machine.Specialist]*Member
	problems []error
	absent   []string         // who cannot be asked here
	program  *session.Program // nil where it is about a machine, and no session
	looking  bool             // nobody is asked, so nobody's code has to be there
}

func (b *planner) make(program *session.Program) *Plan {
	b.program = program
	p := &Plan{Program: program, Roster: b.roster, States: make([]State, len(b.m.States())), Cases: cases.Compile(b.m)}
	level := b.machineLevel()
	for i := range b.m.States() {
		b.state(&p.States[i], &b.m.States()[i], level)
		p.States[i].Respondents = b.respondents(program, &b.m.States()[i])
	}
	if len(b.problems) > 0 {
		p.Missing, p.Absent = &StartError{b.problems}, b.absent
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

func (b *planner) state(p *State, s *machine.State, level []*machine.Specialist) {
	p.State = s
	if s.Roster == nil {
		for _, sp := range level {
			b.join(p, sp, nil)
		}
	} else {
		p.Scope = s.Name
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
			if sp.IsHuman && p.Find(sp.SpecialistID) == nil {
				p.Humans = append(p.Humans, b.member(p.State, sp))
			}
		}
		for _, sp := range level {
			if sp.Role == machine.Arbiter && p.Arbiter == nil {
				b.join(p, sp, entryOf(s.Roster, sp.SpecialistID))
			}
		}
	}
	for i := range p.Members {
		p.Members[i].Rank = int32(i)
	}
	for i := range p.Humans {
		p.Humans[i].Rank = int32(len(p.Members) + i)
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
func (b *planner) join(p *State, s, entry *machine.Specialist) {
	m := b.member(p.State, s)
	if m.Required = s.Required; entry != nil {
		m.Off, m.Required = m.Off || entry.Off(), m.Required || entry.Required
	}
	if m.Required && s.IsHuman {
		b.fail(fmt.Errorf("state %q requires %q, who is human: nobody waits for a human's proposal", p.State.Name, s.SpecialistID))
		m.Required = false
	}
	p.judged = p.judged || s.Role == machine.Arbiter
	if s.Role == machine.Proposer {
		p.Members = append(p.Members, m)
	} else if p.Arbiter == nil && !m.Off {
		p.Arbiter = &m
	}
}

// member makes a specialist ready; each only once, whatever the states. Of one
// that is switched off nothing needs to be there.
func (b *planner) member(st *machine.State, s *machine.Specialist) Member {
	known := b.made[s]
	if known == nil {
		known = &Member{Specialist: s, Version: versionOf(s), Off: s.Off() || b.roster.Off[s.SpecialistID] || b.program != nil && b.program.Lacks(s.SpecialistID)}
		if !known.Off && !b.looking {
			if err := b.resolve(known); err != nil {
				b.fail(err)
				b.absent = append(b.absent, s.SpecialistID)
			}
		}
		if s.EstimatedCostUSD != nil {
			known.Estimate = *s.EstimatedCostUSD
		}
		b.made[s] = known
	}
	m := *known
	m.Timeout = st.TimeoutOf(s)
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
	case s.Agent != "":
		return specialist.Agent, "agent"
	}
	return specialist.Submitted, ""
}

// resolve finds who is behind a specialist.
func (b *planner) resolve(m *Member) (err error) {
	if m.IsHuman {
		return nil // never invoked
	}
	if m.Source, m.Strategy = modeOf(m.Specialist); m.Strategy == "" {
		return fmt.Errorf("specialist %q: %w", m.SpecialistID, machine.ErrNoMode)
	}
	resolver, gathers := b.Resolver, specialist.Context(nil)
	if m.Source == specialist.Model {
		if gathers, err = resolver.Context(b.m, m.Specialist); err == nil && gathers == nil {
			return noContext(m.Specialist)
		}
	}
	switch {
	case err != nil:
	case m.Source == specialist.Agent:
		m.Proposer = later{}
	case m.Role == machine.Arbiter:
		m.Arbiter, err = resolver.Arbiter(b.m, m.Specialist)
	default:
		m.Proposer, err = resolver.Proposer(b.m, m.Specialist, gathers)
	}
	if err != nil {
		return fmt.Errorf("specialist %q: %w", m.SpecialistID, err)
	}
	if m.Arbiter == nil && m.Proposer == nil {
		return nobodyBehind(m)
	}
	return nil
}

// later is a coding agent: whoever drives it reads in the log that it is asked, and proposes
// for it when its turn has ended.
type later struct{}

// Propose implements [specialist.Proposer].
func (later) Propose(context.Context, specialist.Question) (specialist.Answer, error) {
	return specialist.Answer{}, specialist.ErrAccepted
}

// noContext is the error of a model whose context nobody finds.
func noContext(s *machine.Specialist) error {
	if s.ContextWebhookURL != "" {
		return fmt.Errorf("specialist %q has a webhook as its context, and this program has no way to call one", s.SpecialistID)
	}
	return refusal.New(refusal.ErrUnknownStrategy, "missing_function", "contextFn %q of specialist %q is not in the Registry", s.ContextFn, s.SpecialistID)
}

// nobodyBehind is the error of a specialist whom nobody finds.
func nobodyBehind(m *Member) error {
	switch m.Source {
	case specialist.Builtin:
		return refusal.New(refusal.ErrUnknownStrategy, "unknown_strategy", "%s", machine.UnknownStrategy(m.Specialist))
	case specialist.Model:
		return fmt.Errorf("specialist %q is a model, and this program has no way to ask one", m.SpecialistID)
	case specialist.Webhook:
		return fmt.Errorf("specialist %q is a webhook, and this program has no way to call one", m.SpecialistID)
	}
	return refusal.New(refusal.ErrUnknownStrategy, "missing_function", "strategyFn %q of specialist %q is not in the Registry", m.StrategyFn, m.SpecialistID)
}

// NoArbiter is the arbiter where there is none.
func NoArbiter() *Member { return &Member{Specialist: &machine.Specialist{}} }

// DefaultProposer stands in where a machine that is simply run has nobody who proposes.
func DefaultProposer(id specialist.SessionID) Member {
	return Member{Specialist: &machine.Specialist{Role: machine.Proposer, SpecialistID: "__default_proposer_" + id.String(), StrategyFnName: "firstAvailable"},
		Source: specialist.Builtin, Timeout: machine.DefaultTimeout, Proposer: strategies.FirstAvailable}
}

// DefaultArbiter stands in where a machine that is simply run has nobody who arbitrates.
func DefaultArbiter(id specialist.SessionID) *Member {
	return &Member{Specialist: &machine.Specialist{Role: machine.Arbiter, SpecialistID: "__default_arbiter_" + id.String(), StrategyFnName: machine.FirstProposal},
		Source: specialist.Builtin, Arbiter: strategies.FirstProposal{}, Strategy: machine.FirstProposal}
}

// Role returns the role of a specialist that takes part in some state, or "".
func (p *Plan) Role(id string) machine.Role {
	for i := range p.States {
		if p.States[i].Find(id) != nil {
			return machine.Proposer
		}
	}
	lists := [][]machine.Specialist{p.Program.Machine.Specialists()}
	for i := range p.Program.Machine.States() {
		lists = append(lists, p.Program.Machine.States()[i].Roster)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].SpecialistID == id {
				return list[i].Role
			}
		}
	}
	if s := p.Roster.Registered(id); s != nil {
		return s.Role
	}
	return ""
}

// Knows reports whether a specialist takes part in any state.
func (p *Plan) Knows(id string) bool {
	for i := range p.States {
		if s := &p.States[i]; s.Find(id) != nil || s.Arbiter != nil && s.Arbiter.SpecialistID == id {
			return true
		}
	}
	return false
}

// Lacking reports whether nobody at all proposes, and whether nobody arbitrates.
// Who is switched off is not lacking: switching somebody off must not let
// anybody else in.
func (p *Plan) Lacking() (proposer, arbiter bool) {
	proposer, arbiter = true, true
	for i := range p.States {
		if len(p.States[i].Members) > 0 {
			proposer = false
		}
		if p.States[i].judged {
			arbiter = false
		}
	}
	return proposer, arbiter
}

// Webhook reports whether the member is asked by a webhook, or a webhook gathers
// its context: then the question is sent.
func (m *Member) Webhook() bool { return m.StrategyWebhookURL != "" || m.ContextWebhookURL != "" }

// VersionOf returns the version of somebody who takes part; "" if nobody of that
// id does.
func (p *State) VersionOf(id string) string {
	if m := p.Find(id); m != nil {
		return m.Version
	}
	return ""
}
