package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/strategies"
)

// From a panel to a machine that can be run. MachineOf writes one from nothing: the
// states of the panel in a row, with a transition for each class, and then the goal.
// adapt takes a real machine and puts made-up voters in the place of its proposers. It
// leaves out guards, which judge texts and money that are not there, and parameters: where
// a transition has some, everybody gives the same example as a payload. Everything else
// stays, so it is the real machine whose decisions are simulated.
//
// Whatever contradicts the machine is refused (ErrPanel): somebody who is not in it, a
// class that is no transition, an arbiter that this program does not have.

// ErrPanel is wrapped by every error about a panel that does not fit its machine,
// or a machine that cannot be simulated.
var ErrPanel = errors.New("this cannot be simulated")

func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrPanel}, args...)...)
}

// voterFn is the Registry name of everybody who is made up.
const voterFn = "__simulated"

// human and second are the humans of a machine that is made of a panel.
const (
	human  = "human"
	second = "second-human"
)

// MachineOf makes a machine of a panel: its states one after the other, each with a
// transition for every class, and then the goal.
func MachineOf(p *Panel) (*machine.Machine, error) {
	const goal = "done"
	text := map[string]json.RawMessage{}
	maps.Copy(text, p.Machine)
	who := []any{map[string]any{"role": "proposer", "specialistId": human, "isHuman": true}}
	if p.Machine["secondHuman"] != nil {
		who = append(who, map[string]any{"role": "proposer", "specialistId": second, "isHuman": true})
	}
	for i := range p.Voters {
		who = append(who, map[string]any{"role": "proposer", "specialistId": p.Voters[i].ID, "strategyFn": voterFn, "estimatedCostUSD": p.Voters[i].Cost})
	}
	by := p.Arbiter
	if by == nil {
		by = &machine.Specialist{Role: machine.Arbiter, SpecialistID: "arbiter", StrategyFnName: machine.Bayes}
	}
	states := []byte{'{'}
	for i, s := range p.States {
		next := goal
		if i+1 < len(p.States) {
			next = p.States[i+1].Name
		}
		states = append(states, encode(s.Name)...)
		states = append(states, `:{"transitions":{`...)
		for j, class := range s.Classes {
			if j > 0 {
				states = append(states, ',')
			}
			states = append(append(append(states, encode(class)...), ':'), encode(next)...)
		}
		states = append(states, "}},"...)
	}
	for name, value := range map[string]any{
		"machineName": "simulation", "initialState": p.States[0].Name, "goalState": goal,
		"states": json.RawMessage(append(states, `"done":{}}`...)), "specialists": append(who, by),
	} {
		text[name] = encode(value)
	}
	m, err := machine.Parse("simulation.json", encode(text), runner.Checks())
	if err != nil {
		return nil, unfit("the panel makes no machine: %s", machine.FirstProblem(err))
	}
	return m, nil
}

// encode returns the JSON of a value that has some.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("simulate: " + err.Error()) // never: it is made of texts, numbers and what was read as JSON
	}
	return text
}

// DefaultPanel returns a panel for the proposers of a machine: of falling
// reliability, those of one model copying each other.
func DefaultPanel(m *machine.Machine) Panel {
	p := Panel{Human: Human{Error: .02, Minutes: defaultMinutes}}
	for _, s := range proposers(m) {
		v := Voter{ID: s.SpecialistID, P: []float64{.92, .86, .8, .74, .68}[len(p.Voters)%5], Latency: 1000, Failure: .01}
		if s.EstimatedCostUSD != nil {
			v.Cost = *s.EstimatedCostUSD
		}
		if s.ModelID != "" {
			v.Group, v.Copy = s.ModelID, .5
		}
		p.Voters = append(p.Voters, v)
	}
	return p
}

// proposers returns everybody but humans who proposes anywhere in a machine.
func proposers(m *machine.Machine) (list []machine.Specialist) {
	add := func(from []machine.Specialist) {
		for _, s := range from {
			known := slices.ContainsFunc(list, func(o machine.Specialist) bool { return o.SpecialistID == s.SpecialistID })
			if s.Role == machine.Proposer && !s.IsHuman && !s.Off() && !s.Reference() && !known {
				list = append(list, s)
			}
		}
	}
	add(m.Specialists())
	for i := range m.States() {
		add(m.States()[i].Roster)
	}
	return list
}

// adapt returns the machine with made-up voters in the place of its proposers, and
// completes the panel by its states. Guards are left out: they judge texts and
// money, and here are none. So are parameters: nobody here has a payload.
func adapt(m *machine.Machine, p *Panel, r strategies.Registry) (*machine.Machine, error) {
	p.complete(m)
	if err := p.fit(m); err != nil {
		return nil, err
	}
	def := *m.Definition()
	def.Guards = nil
	def.Specialists = p.cast(def.Specialists)
	switch {
	case p.Arbiter != nil:
		def.Specialists = append(def.Specialists, *p.Arbiter)
	case !slices.ContainsFunc(def.Specialists, func(s machine.Specialist) bool { return s.Role == machine.Arbiter && !s.Off() }):
		def.Specialists = append(def.Specialists, machine.Specialist{Role: machine.Arbiter, SpecialistID: "arbiter", StrategyFnName: machine.Bayes})
	}
	def.States = slices.Clone(def.States)
	for i := range def.States {
		s := &def.States[i]
		s.Guards = nil
		s.Transitions = slices.Clone(s.Transitions)
		for j := range s.Transitions {
			s.Transitions[j].Parameters = nil
		}
		if s.Specialists != nil {
			s.Specialists = p.cast(s.Specialists)
		}
	}
	for _, s := range def.Specialists {
		if s.Role == machine.Arbiter && !s.Off() && !here(&s, r) {
			return nil, unfit(`arbiter %q is not in this program; name another in the panel: "arbiter": "bayes"`, s.SpecialistID)
		}
	}
	made, err := machine.Compile(&def, runner.Checks())
	if err != nil {
		return nil, unfit("with made-up voters the machine would not load: %s", machine.FirstProblem(err))
	}
	return made, nil
}

// here reports whether this program has the arbiter.
func here(s *machine.Specialist, r strategies.Registry) bool {
	if s.StrategyFn == "" || s.StrategyFn[0] == '=' {
		return s.Local()
	}
	by, err := r.Arbiter(nil, s)
	return by != nil && err == nil
}

// cast returns a list of specialists with made-up voters.
func (p *Panel) cast(list []machine.Specialist) []machine.Specialist {
	next := make([]machine.Specialist, 0, len(list))
	for _, s := range list {
		switch {
		case s.Role == machine.Arbiter && p.Arbiter != nil:
			continue
		case s.Role == machine.Proposer && !s.IsHuman && !s.Reference():
			made := machine.Specialist{Role: s.Role, SpecialistID: s.SpecialistID, StrategyFn: voterFn, Enabled: s.Enabled, Disabled: s.Disabled, EstimatedCostUSD: s.EstimatedCostUSD}
			if v := p.voter(s.SpecialistID); v != nil {
				cost := v.Cost
				made.EstimatedCostUSD = &cost
			}
			s = made
		}
		next = append(next, s)
	}
	return next
}

// voter returns the voter of that id, or nil.
func (p *Panel) voter(id string) *Voter {
	for i := range p.Voters {
		if p.Voters[i].ID == id {
			return &p.Voters[i]
		}
	}
	return nil
}

// fit completes the panel by what the machine says, and refuses what contradicts
// it.
func (p *Panel) fit(m *machine.Machine) error {
	var ids []string
	for _, s := range proposers(m) {
		if ids = append(ids, s.SpecialistID); p.voter(s.SpecialistID) == nil {
			return unfit("specialist %q of machine %q is not in the panel: add it to specialists", s.SpecialistID, m.Name())
		}
	}
	if len(ids) == 0 {
		return unfit("machine %q has no proposers but humans: nobody is there to be made up", m.Name())
	}
	for i := range p.Voters {
		if !slices.Contains(ids, p.Voters[i].ID) {
			return unfit("specialist %q of the panel is no proposer of machine %q; it has %q", p.Voters[i].ID, m.Name(), ids)
		}
	}
	for i := range p.States {
		if err := p.States[i].fit(m); err != nil {
			return err
		}
	}
	return nil
}

// complete adds the states of a machine that the panel does not have, and to those
// that it has without classes, theirs.
func (p *Panel) complete(m *machine.Machine) {
	for i := range m.States() {
		st := &m.States()[i]
		if st.Terminal() || len(st.Transitions) == 0 || p.state(st.Name) != nil {
			continue
		}
		s := State{Name: st.Name}
		for _, t := range st.Transitions {
			s.Classes = append(s.Classes, t.Name)
		}
		s.Priors = even(len(s.Classes))
		p.States = append(p.States, s)
	}
}

// fit refuses a state that contradicts the machine.
func (s *State) fit(m *machine.Machine) error {
	st := m.State(s.Name)
	if st == nil || st.Terminal() || len(st.Transitions) == 0 {
		return unfit("state %q of the panel is none of machine %q in which anything is decided", s.Name, m.Name())
	}
	for _, c := range s.Classes {
		if st.Transition(c) == nil {
			return unfit("class %q of state %q is no transition of it", c, s.Name)
		}
	}
	return nil
}
