package graph

// Limits of the layered layout; what is larger is drawn as a grid.
const (
	mostStates = 150
	mostEdges  = 400
	mostCells  = 4000
)

// layOut finds the place of everything in the diagram. It is drawn to the right
// unless that makes it too wide for a page and downwards is narrower.
func (s *scene) layOut(names []nameBox, labels []labelBox) *picture {
	boxes, texts := make([]size, len(names)), make([]size, len(labels))
	for i := range names {
		boxes[i] = names[i].size
	}
	for i := range labels {
		texts[i] = labels[i].size
	}
	g := newDigraph(len(s.marks), s.m.Initial().Index, s.edges)
	if g.n > mostStates || len(g.edges) > mostEdges {
		return g.grid(boxes)
	}
	back := g.acyclic()
	rank := g.ranks(back)
	spine := g.spine(s.m.Goal().Index)
	var drawn [2]*picture
	for i := range drawn {
		l := &layout{digraph: g, down: i == 1, labels: texts, back: back, rank: rank, spine: spine}
		if l.room() > mostCells {
			return g.grid(boxes)
		}
		l.build(boxes)
		l.arrange()
		l.grow()
		l.place()
		drawn[i] = l.picture()
	}
	if drawn[1].shrink()*10 > drawn[0].shrink()*11 {
		return drawn[1]
	}
	return drawn[0]
}

// shrink returns by how much a picture must be made smaller, in thousandths of
// its size, to be seen at once on a page; at most 1000.
func (p *picture) shrink() int {
	const width, height = 1000, 800
	return min(1000, 1000*width/p.w, 1000*height/p.h)
}

// room returns how many cells the layout will have.
func (l *layout) room() int {
	n := l.n
	for i, e := range l.edges {
		span := l.rank[e.to] - l.rank[e.from]
		if l.back[i] {
			span = -span
		}
		n += max(2*span-1, 0)
	}
	return n
}

// spine returns the edges on the shortest way from the initial state to goal.
func (g *digraph) spine(goal int) []bool {
	by := make([]int, g.n) // the edge by which a state was first reached, -1 if by none
	for i := range by {
		by[i] = -1
	}
	for queue := []int{g.initial}; len(queue) > 0; queue = queue[1:] {
		for _, i := range g.out[queue[0]] {
			if to := g.edges[i].to; by[to] < 0 && to != g.initial {
				by[to] = i
				queue = append(queue, to)
			}
		}
	}
	on := make([]bool, len(g.edges))
	for v := goal; v != g.initial && by[v] >= 0; v = g.edges[by[v]].from {
		on[by[v]] = true
	}
	return on
}

// grid places the states of a machine that is too large for layers in rows, in
// the order in which they can be reached, with direct lines behind them.
func (g *digraph) grid(boxes []size) *picture {
	const gapX, gapY = 70, 46
	w, h := 0, 0
	for _, b := range boxes {
		w, h = max(w, b.w), max(h, b.h)
	}
	columns := 1
	for columns*columns < g.n {
		columns++
	}
	p := &picture{states: make([]Box, g.n), routes: make([]route, len(g.edges)), plain: true}
	for i, v := range g.breadthFirst() {
		x, y := i%columns*(w+gapX)+startRoom, i/columns*(h+gapY)+loopReach
		p.states[v] = Box{x + (w-boxes[v].w)/2, y + (h-boxes[v].h)/2, boxes[v].w, boxes[v].h}
	}
	for i, e := range g.edges {
		p.routes[i] = direct(p.states[e.from], p.states[e.to])
	}
	first := p.states[g.initial]
	p.start = direct(Box{first.X - 32, first.Y, 0, first.H}, first).Route
	p.size = size{columns*(w+gapX) + startRoom, (g.n+columns-1)/columns*(h+gapY) + loopReach}
	return p
}

// direct draws an edge between the facing sides of two boxes of a grid.
func direct(a, b Box) route {
	var r route
	var across, down layout
	down.down = true
	switch {
	case a == b:
		return across.loopRoute(a, size{})
	case b.X >= a.X+a.W:
		across.draw(&r.Route, []point{{a.X + a.W, a.Y + a.H/2}, {b.X, b.Y + b.H/2}})
	case b.X+b.W <= a.X:
		across.draw(&r.Route, []point{{a.X, a.Y + a.H/2}, {b.X + b.W, b.Y + b.H/2}})
	case b.Y > a.Y:
		down.draw(&r.Route, []point{{a.Y + a.H, a.X + a.W/2}, {b.Y, b.X + b.W/2}})
	default:
		down.draw(&r.Route, []point{{a.Y, a.X + a.W/2}, {b.Y + b.H, b.X + b.W/2}})
	}
	return r
}
