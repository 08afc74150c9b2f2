package graph

import "github.com/dialai/dialai/machine"

// What a drawing points out, found once for Mermaid, DOT and SVG: which states no
// session can reach, which are dead ends, which only humans decide, where the session
// stands and which way it came, what was proposed. Transitions between the same two
// states become one edge with several rows. What a view names and the machine does not
// have is left out.

// A scene is a machine with everything that a drawing of it points out, found
// once for all three formats.
type scene struct {
	m     *machine.Machine
	view  View
	marks []marks // by state
	edges []edge  // in the order of their first transition
	taken map[*machine.Transition][]int
	votes map[*machine.Transition]int
	won   *machine.Transition // nil if none
	steps int                 // of the path
}

// marks are the facts about one state.
type marks struct {
	current bool
	dead    bool // nothing leads on, and it is no intended end
	human   bool // only humans are asked
	lost    bool // cannot be reached
	visits  int
}

// An edge holds all transitions from one state to another, in written order.
type edge struct {
	from, to int
	rows     []*machine.Transition
}

func newScene(m *machine.Machine, v View) *scene {
	s := &scene{m: m, view: v, marks: make([]marks, len(m.States()))}
	for i := range s.marks {
		st := &m.States()[i]
		s.marks[i].dead = len(st.Transitions) == 0 && !st.Terminal()
		s.marks[i].human = len(st.Transitions) > 0 && !st.Terminal() && onlyHumans(m, st)
		s.marks[i].lost = true
	}
	s.reach(m.Initial())
	s.join()
	s.follow()
	s.countProposals()
	return s
}

// reach marks what a session can get to; it ends in a terminal state.
func (s *scene) reach(from *machine.State) {
	s.marks[from.Index].lost = false
	for queue := []*machine.State{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0].Terminal() {
			continue
		}
		for _, t := range queue[0].Transitions {
			if s.marks[t.To.Index].lost {
				s.marks[t.To.Index].lost = false
				queue = append(queue, t.To)
			}
		}
	}
}

// join makes one edge of all transitions between the same two states.
func (s *scene) join() {
	for i := range s.m.States() {
		at := map[int]int{}
		for _, t := range s.m.States()[i].Transitions {
			to := t.To.Index
			if _, ok := at[to]; !ok {
				at[to] = len(s.edges)
				s.edges = append(s.edges, edge{from: i, to: to})
			}
			e := &s.edges[at[to]]
			e.rows = append(e.rows, t)
		}
	}
}

// follow marks the way of the session.
func (s *scene) follow() {
	s.taken = map[*machine.Transition][]int{}
	current := s.m.State(s.view.State)
	if current != nil {
		s.marks[current.Index].current = true
	}
	if current != nil || len(s.view.Path) > 0 {
		s.marks[s.m.Initial().Index].visits++
	}
	for _, step := range s.view.Path {
		if t := s.transition(step.From, step.Transition); t != nil {
			s.steps++
			s.taken[t] = append(s.taken[t], s.steps)
			s.marks[t.To.Index].visits++
		}
	}
}

// countProposals counts the proposals of the round.
func (s *scene) countProposals() {
	s.votes = map[*machine.Transition]int{}
	if s.view.Round == nil {
		return
	}
	for _, p := range s.view.Round.Proposals {
		if t := s.transition(s.view.State, p.Transition); t != nil {
			s.votes[t]++
		}
	}
	s.won = s.transition(s.view.State, s.view.Round.Winner)
}

func (s *scene) transition(state, name string) *machine.Transition {
	if from := s.m.State(state); from != nil {
		return from.Transition(name)
	}
	return nil
}

// onlyHumans reports whether somebody is asked in st, and humans only. It knows
// the specialists of the machine file, not those registered later.
func onlyHumans(m *machine.Machine, st *machine.State) bool {
	list := m.Specialists()
	if st.Roster != nil {
		list = st.Roster
	}
	humans := 0
	for i := range list {
		human, asked := asks(m, &list[i])
		if asked && !human {
			return false
		}
		if asked {
			humans++
		}
	}
	return humans > 0
}

// asks reports whether sp is a proposer that is switched on, and a human.
func asks(m *machine.Machine, sp *machine.Specialist) (human, asked bool) {
	human, off := sp.IsHuman, sp.Off()
	if sp.Reference() {
		for i := range m.Specialists() {
			if base := &m.Specialists()[i]; base.SpecialistID == sp.SpecialistID {
				human, off = base.IsHuman, off || base.Off()
			}
		}
	}
	return human, sp.Role == machine.Proposer && !off
}
