package runner

import (
	"fmt"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A StateCast says who takes part in one state of a machine.
type StateCast struct {
	State     *machine.State
	Scope     string              // of alignment: "" or the state's name
	Proposers []Participant       // in roster order; switched-off ones and humans included
	Humans    []Participant       // of the machine, who may rule but are not among Proposers
	Arbiter   *machine.Specialist // nil if none is switched on
	Question  trust.Question      // that its rounds put to the ledger, but for the votes
	Panel     trust.Panel         // who can be asked, humans left out
}

// A Participant is one proposer of a StateCast.
type Participant struct {
	*machine.Specialist
	Version string // digest of what it is
	Off     bool
	// Required says that without its answer a human decides, be it because the
	// specialist is required everywhere or by the state's list.
	Required bool
	Rank     int32 // place in the round's order, humans first
	// VotesOnly says that its proposals never have a payload.
	VotesOnly bool
}

// Cast returns who takes part in each state of a machine, by the index of the
// state, as a session of it would find them. Nobody is asked and no code of
// theirs has to be there. The error wraps what stands in the way, such as a state
// that names somebody who is neither declared nor registered; the others are there beside it.
func Cast(m *machine.Machine, r *session.Roster) ([]StateCast, error) {
	b := planner{m: m, roster: r, made: map[*machine.Specialist]*member{}, looking: true}
	p := b.plan(nil)
	return p.casts(), p.missing
}

// MachineLevel returns the specialists of a machine who are not of one state alone: the
// declared ones, then the registered ones whose ids are not taken.
func MachineLevel(m *machine.Machine, r *session.Roster) []*machine.Specialist {
	return (&planner{m: m, roster: r}).machineLevel()
}

func (p *cast) casts() []StateCast {
	casts := make([]StateCast, len(p.states))
	for i := range p.states {
		s := &p.states[i]
		c := StateCast{State: s.state, Scope: s.scope, Question: s.question, Proposers: participants(s.members), Humans: participants(s.humans), Panel: s.panel()}
		if s.arbiter != nil {
			c.Arbiter = s.arbiter.Specialist
		}
		casts[i] = c
	}
	return casts
}

func participants(members []member) []Participant {
	list := make([]Participant, len(members))
	for i := range members {
		m := &members[i]
		source, _ := modeOf(m.Specialist)
		list[i] = Participant{m.Specialist, m.version, m.off, m.required, m.rank, source.VotesOnly()}
		if m.IsHuman {
			list[i].Rank -= humanFirst
		}
	}
	return list
}

// panel returns those who can be asked in a state, humans left out.
func (p *statePlan) panel() trust.Panel {
	q := &p.question
	panel := trust.Panel{
		Machine: q.Machine, State: q.State, Options: q.Options, Policy: q.Policy,
		FixedOrder: p.state.OptionOrder == machine.DeclaredOrder, Bayes: p.arbiter != nil && p.arbiter.byBayes(),
	}
	for i := range p.members {
		m := &p.members[i]
		if m.off || m.IsHuman {
			continue
		}
		o := trust.Open{SpecialistID: m.SpecialistID, Version: m.version, Model: m.ModelID, Cost: m.estimate}
		if !panel.FixedOrder {
			o.OptionOrder = fmt.Sprint(i) // each sees its own
		}
		panel.Roster = append(panel.Roster, o)
	}
	return panel
}
