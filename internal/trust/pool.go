package trust

import (
	"maps"
	"slices"
)

// The counters of one machine, and how clones share them. A pool counts outcomes by
// state; in each state it has a cell for each member (one version of a specialist in
// this machine), with a confusion matrix: how often it proposed class l where the truth
// was y. Classes are the transitions of the state in the order in which they were first
// seen, so they never move when a machine changes.
//
// Cloning a ledger copies no counters: a pool, its states and its cells are copied when
// they are changed. Each says which ledger (owner) may change it. Whoever changes one
// must get it through ledger.pool, ownState or ownCell, which copy it if it is somebody
// else's. What is read may belong to anybody.

// Window is the number of outcomes of a machine to which the experts are fitted:
// the latest.
const Window = 2000

// A pool is what a ledger knows of one machine.
type pool struct {
	owner    *owner
	n        int64 // outcomes
	crowd    crowd // of everybody but humans
	states   []*stateCounts
	stateOf  map[string]int32
	list     []member
	members  map[int32]int32 // index into list by unit
	pairs    pairs
	window   []*past  // the latest Window outcomes
	fit      *fitting // by which the machine is judged
	outcomes *fitting // the same, before O and D were fitted anew
	unruled  unruled
	risk     map[string]*riskEpoch // by scope: a state, or "" for the machine
	adopted  map[string]*riskEpoch // by scope: of policies that are not in force yet
}

// A member is one unit in one machine.
type member struct {
	unit   int32
	tally  counts
	prior  counts // in thousandths
	failed int64
}

// stateCounts are what a pool knows of one state.
type stateCounts struct {
	owner   *owner
	name    string
	n       int64
	classes []string // names of the transitions seen, in order of appearance
	truths  []int64  // by class
	cells   []*cell  // by member; nil where there is nothing
	tested  int64    // units with evidence for promotion, ever
}

// A cell is what is known of one member in one state.
type cell struct {
	owner    *owner
	tally    counts
	prior    counts // in thousandths
	width    int32
	conf     []int32 // [truth*width + proposed]
	failed   int64
	evidence evidence
}

func newPool(o *owner) *pool {
	first := fitted(initialFit())
	return &pool{
		owner: o, stateOf: map[string]int32{}, members: map[int32]int32{}, risk: map[string]*riskEpoch{}, adopted: map[string]*riskEpoch{},
		fit: first, outcomes: first, pairs: pairs{groups: map[string]group{}},
	}
}

func (m *pool) clone(o *owner) *pool {
	c := *m
	c.owner = o
	c.states, c.stateOf = slices.Clone(m.states), maps.Clone(m.stateOf)
	c.list, c.members = slices.Clone(m.list), maps.Clone(m.members)
	c.pairs = m.pairs.clone()
	c.window, c.unruled.rounds = slices.Clone(m.window), slices.Clone(m.unruled.rounds)
	c.risk, c.adopted = maps.Clone(m.risk), maps.Clone(m.adopted)
	return &c
}

// left returns what a version leaves to the next, in thousandths.
func (c *cell) left(share float64) counts {
	return counts{
		int64(share*(1000*float64(c.tally.k)+float64(c.prior.k)) + .5),
		int64(share*(1000*float64(c.tally.n)+float64(c.prior.n)) + .5),
	}
}

// at returns how often the member proposed class l where the truth was y.
func (c *cell) at(y, l int32) int32 {
	if c == nil || y < 0 || l < 0 || y >= c.width || l >= c.width {
		return 0
	}
	return c.conf[y*c.width+l]
}

// widen makes room for classes, of which there are never fewer than before.
func (c *cell) widen(classes int32) {
	if c.width >= classes {
		return
	}
	conf := make([]int32, classes*classes)
	for y := range c.width {
		copy(conf[y*classes:], c.conf[y*c.width:(y+1)*c.width])
	}
	c.conf, c.width = conf, classes
}

// cell returns what is known of a member, nil if nothing is.
func (s *stateCounts) cell(member int32) *cell {
	if s == nil || member < 0 || int(member) >= len(s.cells) {
		return nil
	}
	return s.cells[member]
}

// class returns the index of a transition, -1 if it was never seen.
func (s *stateCounts) class(name string) int32 {
	if s == nil {
		return -1
	}
	return int32(slices.Index(s.classes, name))
}

// state returns what is known of a state, nil if nothing is.
func (m *pool) state(name string) *stateCounts {
	if m == nil {
		return nil
	}
	if i, known := m.stateOf[name]; known {
		return m.states[i]
	}
	return nil
}

// ownState returns the index of a state that may be changed.
func (m *pool) ownState(name string) int32 {
	i, known := m.stateOf[name]
	if !known {
		i = int32(len(m.states))
		m.stateOf[name] = i
		m.states = append(m.states, &stateCounts{owner: m.owner, name: name})
		return i
	}
	if s := m.states[i]; s.owner != m.owner {
		c := *s
		c.owner, c.classes, c.truths, c.cells = m.owner, slices.Clone(s.classes), slices.Clone(s.truths), slices.Clone(s.cells)
		m.states[i] = &c
	}
	return i
}

// ownCell returns the cell of a member in a state, to be changed.
func (m *pool) ownCell(state, member int32) *cell {
	s := m.states[m.ownState(m.states[state].name)]
	for int(member) >= len(s.cells) {
		s.cells = append(s.cells, nil)
	}
	c := s.cells[member]
	switch {
	case c == nil:
		c = &cell{owner: m.owner}
	case c.owner != m.owner:
		copied := *c
		copied.owner, copied.conf, copied.evidence = m.owner, slices.Clone(c.conf), c.evidence.clone()
		c = &copied
	}
	s.cells[member] = c
	return c
}

// member returns the index of a unit, which is entered when it is new.
func (m *pool) member(unit int32) int32 {
	i, known := m.members[unit]
	if !known {
		i = int32(len(m.list))
		m.list = append(m.list, member{unit: unit})
		m.members[unit] = i
	}
	return i
}

// classesOf returns the class of each option, entering those that are new.
func (s *stateCounts) classesOf(options []string) []int32 {
	classes := make([]int32, len(options))
	for i, name := range options {
		if classes[i] = s.class(name); classes[i] < 0 {
			classes[i] = int32(len(s.classes))
			s.classes, s.truths = append(s.classes, name), append(s.truths, 0)
		}
	}
	return classes
}
