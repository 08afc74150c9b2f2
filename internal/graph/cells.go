package graph

import (
	"cmp"
	"slices"
)

// The layered layout works along two axes: along, in which a process goes on,
// and across. Drawn to the right, along is x; drawn downwards, along is y.
//
// States stand in the even layers. Every edge passes all layers between its
// ends, and its label stands in one of the odd ones, so that whatever needs
// room has a cell of its own and nothing can overlap.

// A cell is a state, the label of an edge or the room of an edge that passes a
// layer.
type cell struct {
	layer, edge   int // the edge is -1 for a state
	label         bool
	along         int  // its size along
	before, after int  // the room it needs across, to either side of at
	box           size // of the state or label itself
	at            int  // its place across, in sixteenths of a pixel until fixed
	prev, next    []link
	part          int // of the drawing: cells of different parts are not connected
	pos           int // in its layer
}

func (c *cell) isState() bool { return c.edge < 0 }

// rigid is the weight of what is to be straight whatever the rest looks like.
const rigid = 1 << 18

// A link connects a cell with one in the layer before or after; the higher its
// weight, the straighter it is drawn.
type link struct{ cell, weight int }

// A size is that of a box, in pixels.
type size struct{ w, h int }

// A layout places the cells of a machine.
type layout struct {
	*digraph
	down   bool   // whether along is y
	labels []size // by edge
	back   []bool
	rank   []int
	cells  []cell  // those of states first
	layers [][]int // cells in their order
	chains [][]int // by edge: its cells from the lower rank to the higher; nil for a self-loop
	spine  []bool  // by edge: on the shortest way from the initial state to the goal
}

// Room that is kept free across, in pixels.
const (
	lane      = 14 // an edge that passes
	stateGap  = 30
	labelGap  = 10
	loopReach = 30 // how far a self-loop stands out

	portStep   = 11 // between the ends of two edges at one side of a state
	portLeast  = 8  // the same where room is scarce
	portCorner = 8  // from a corner to the first end
	maxPorts   = 24 // a state does not grow beyond this many
)

// build makes the cells of the states, with the given boxes, and of the edges.
func (l *layout) build(states []size) {
	l.cells = make([]cell, l.n)
	for v := range l.n {
		along, across := l.turn(states[v])
		l.cells[v] = cell{layer: 2 * l.rank[v], edge: -1, along: along, before: across / 2, after: across - across/2, box: states[v]}
	}
	l.chains = make([][]int, len(l.edges))
	for i := range l.edges {
		l.chain(i, l.labels[i])
	}
	for i := range l.cells {
		for c := &l.cells[i]; c.layer >= len(l.layers); {
			l.layers = append(l.layers, nil)
		}
		l.layers[l.cells[i].layer] = append(l.layers[l.cells[i].layer], i)
	}
}

// turn returns a size along and across.
func (l *layout) turn(s size) (along, across int) {
	if l.down {
		return s.h, s.w
	}
	return s.w, s.h
}

// sized is the inverse of turn.
func (l *layout) sized(along, across int) size {
	if l.down {
		return size{across, along}
	}
	return size{along, across}
}

// chain makes the cells of an edge between two states.
func (l *layout) chain(i int, label size) {
	e := l.edges[i]
	from, to := e.from, e.to
	if l.back[i] {
		from, to = to, from
	}
	if from == to {
		return
	}
	last, first := 2*l.rank[to]-1, 2*l.rank[from]+1
	named := first
	if l.back[i] {
		named = last
	}
	if last-first > 2 {
		named = first + (last-first)/4*2
	}
	chain := []int{from}
	for layer := first; layer <= last; layer++ {
		c := cell{layer: layer, edge: i, before: lane / 2, after: lane / 2}
		if layer == named {
			along, across := l.turn(label)
			c.label, c.along, c.before, c.after, c.box = true, along, across/2, across-across/2, label
		}
		chain = append(chain, len(l.cells))
		l.cells = append(l.cells, c)
	}
	chain = append(chain, to)
	for j := 1; j < len(chain); j++ {
		l.join(chain[j-1], chain[j], l.spine[i])
	}
	l.chains[i] = chain
}

// join links two cells of a chain. What passes between two layers is to be
// straight above all.
func (l *layout) join(a, b int, spine bool) {
	weight := 2
	if !l.cells[a].isState() && !l.cells[b].isState() {
		weight = 8
	}
	if spine {
		weight = rigid
	}
	l.cells[a].next = append(l.cells[a].next, link{b, weight})
	l.cells[b].prev = append(l.cells[b].prev, link{a, weight})
}

// grow makes states large enough for the ends of their edges, and for what
// stands beside them.
func (l *layout) grow() {
	for v := range l.n {
		c := &l.cells[v]
		if need := max(l.sideRoom(c.prev), l.sideRoom(c.next)); need > c.before+c.after {
			c.before, c.after = need/2, need-need/2
			c.box = l.sized(c.along, need)
		}
	}
	for i, e := range l.edges {
		if e.from == e.to {
			l.loop(e.from, l.labels[i])
		}
	}
}

// sideRoom returns how long the side of a state must be at which links end. A
// rigid one is to end in the middle, unless that makes the state too large.
func (l *layout) sideRoom(links []link) int {
	n, middle := len(links), -1
	for i, k := range l.ordered(links) {
		if k.weight == rigid {
			middle = i
		}
	}
	room := min(n, maxPorts)*portStep + 2*portCorner - portStep
	if side := max(middle, n-1-middle); middle >= 0 && side <= 5 {
		room = max(room, 2*(side*portLeast+portCorner))
	}
	return room
}

// ordered returns links in the order in which their cells stand.
func (l *layout) ordered(links []link) []link {
	links = slices.Clone(links)
	slices.SortFunc(links, func(a, b link) int { return cmp.Compare(l.cells[a.cell].pos, l.cells[b.cell].pos) })
	return links
}

// loop makes room for a self-loop and its label beside a state: above it, or to
// its right if ranks go down.
func (l *layout) loop(v int, label size) {
	c := &l.cells[v]
	if l.down {
		c.after += loopReach + label.w
		c.along = max(c.along, label.h)
	} else {
		c.before += loopReach + label.h
		c.along = max(c.along, label.w)
	}
}

// gap returns how far two cells of a layer must be apart.
func gap(a, b *cell) int {
	switch {
	case a.isState() && b.isState():
		return stateGap
	case a.isState() || b.isState():
		return stateGap / 2
	}
	return labelGap
}
