package runner

import (
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
}

// Cast returns who takes part in each state of a machine, by the index of the
// state, as a session of it would find them. Nobody is asked and no code of
// theirs has to be there. The error wraps what stands in the way, such as a state
// that names somebody who is neither declared nor registered.
func Cast(m *machine.Machine, r *session.Roster) ([]StateCast, error) {
	b := planner{m: m, roster: r, made: map[*machine.Specialist]*member{}, looking: true}
	p := b.plan(nil)
	if p.missing != nil {
		return nil, p.missing
	}
	return p.casts(), nil
}

func (p *plan) casts() []StateCast {
	casts := make([]StateCast, len(p.states))
	for i := range p.states {
		s := &p.states[i]
		c := StateCast{State: s.state, Scope: s.scope, Question: s.question, Proposers: participants(s.members), Humans: participants(s.humans)}
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
		list[i] = Participant{m.Specialist, m.version, m.off, m.required, m.rank}
		if m.IsHuman {
			list[i].Rank -= humanFirst
		}
	}
	return list
}
