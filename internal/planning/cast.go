package planning

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
	b := planner{m: m, roster: r, made: map[*machine.Specialist]*Member{}, looking: true}
	p := b.make(nil)
	return p.Casts(), p.Missing
}

// MachineLevel returns the specialists of a machine who are not of one state alone: the
// declared ones, then the registered ones whose ids are not taken.
func MachineLevel(m *machine.Machine, r *session.Roster) []*machine.Specialist {
	return (&planner{m: m, roster: r}).machineLevel()
}

// Casts returns who takes part in each state, by the index of the state.
func (p *Plan) Casts() []StateCast {
	casts := make([]StateCast, len(p.States))
	for i := range p.States {
		s := &p.States[i]
		c := StateCast{State: s.State, Scope: s.Scope, Question: s.Question, Proposers: participants(s.Members), Humans: participants(s.Humans), Panel: s.Panel()}
		if s.Arbiter != nil {
			c.Arbiter = s.Arbiter.Specialist
		}
		casts[i] = c
	}
	return casts
}

func participants(members []Member) []Participant {
	list := make([]Participant, len(members))
	for i := range members {
		m := &members[i]
		source, _ := modeOf(m.Specialist)
		list[i] = Participant{m.Specialist, m.Version, m.Off, m.Required, m.Rank, source.VotesOnly()}
		if m.IsHuman {
			list[i].Rank -= HumanFirst
		}
	}
	return list
}

// Panel returns those who can be asked in a state, humans left out.
func (p *State) Panel() trust.Panel {
	q := &p.Question
	panel := trust.Panel{
		Machine: q.Machine, State: q.State, Options: q.Options, Policy: q.Policy,
		FixedOrder: p.State.OptionOrder == machine.DeclaredOrder, Bayes: p.Arbiter != nil && p.Arbiter.ByBayes(),
	}
	for i := range p.Members {
		m := &p.Members[i]
		if m.Off || m.IsHuman {
			continue
		}
		o := trust.Open{SpecialistID: m.SpecialistID, Version: m.Version, Model: m.ModelID, Cost: m.Estimate}
		if !panel.FixedOrder {
			o.OptionOrder = fmt.Sprint(i) // each sees its own
		}
		panel.Roster = append(panel.Roster, o)
	}
	return panel
}

// HumanFirst is subtracted from the rank of humans.
const HumanFirst = 1 << 20
