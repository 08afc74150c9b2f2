package graph

import "slices"

// From places to lines. Along the flow each layer begins where the one before ends,
// with more room where edges climb much; across, cells stand where place.go has put
// them. An edge leaves its state at a port, as near to the way it goes as the other
// edges there allow, goes straight through every layer and in a Bezier curve between
// two, and ends in an arrow head. "along" and "across" are used until a point is made,
// which turns them into x and y for a drawing to the right or downwards.

// A picture is where everything of a machine is drawn, in pixels from 0, 0.
type picture struct {
	size
	states []Box
	routes []route // by edge
	start  Route   // the arrow to the initial state
	down   bool    // whether a process goes on downwards
	plain  bool    // drawn without labels, as too large for them
}

// A point is a place in the picture.
type point struct{ x, y int }

// A route is the way of an edge and the box of its label.
type route struct {
	Route
	label Box
}

// Sizes along, in pixels.
const (
	headLength = 8
	startRoom  = 40 // before the initial state, for the start marker
	leastGap   = 24 // between layers
	mostGap    = 70
)

// picture draws the placed cells.
func (l *layout) picture() *picture {
	low, high := l.allPorts(true), l.allPorts(false)
	from := l.layerStarts(low, high)
	p := &picture{states: make([]Box, l.n), routes: make([]route, len(l.edges)), down: l.down}
	for v := range l.n {
		p.states[v] = l.boxAt(v, from)
	}
	for i, e := range l.edges {
		if e.from == e.to {
			p.routes[i] = l.loopRoute(p.states[e.from], l.labels[i])
		} else {
			p.routes[i] = l.route(i, from, low[i], high[i])
		}
	}
	p.start = l.startRoute()
	p.size = l.extent(from)
	return p
}

func (l *layout) layerSize(layer int) int {
	most := 0
	for _, c := range l.layers[layer] {
		most = max(most, l.cells[c].along)
	}
	return most
}

// layerStarts returns where the layers begin along. Layers between which edges
// climb much stand further apart.
func (l *layout) layerStarts(low, high []int) []int {
	climb := make([]int, len(l.layers))
	for i, chain := range l.chains {
		for j := 1; j < len(chain); j++ {
			a, b := l.cells[chain[j-1]], l.cells[chain[j]]
			if j == 1 {
				a.at = low[i]
			}
			if j == len(chain)-1 {
				b.at = high[i]
			}
			climb[a.layer] = max(climb[a.layer], a.at-b.at, b.at-a.at)
		}
	}
	starts := make([]int, len(l.layers))
	at := startRoom
	for i := range l.layers {
		starts[i] = at
		at += l.layerSize(i) + min(leastGap+climb[i]/5, mostGap)
	}
	return starts
}

// allPorts returns by edge where across it ends at its state of lower, or
// higher, rank: as near to the way it comes as the other edges there allow.
func (l *layout) allPorts(lower bool) []int {
	ports := make([]int, len(l.edges))
	for v := range l.n {
		c := &l.cells[v]
		links := c.prev
		if lower {
			links = c.next
		}
		links = l.ordered(links)
		want, weight := make([]int, len(links)), make([]int, len(links))
		for i, k := range links {
			want[i], weight[i] = l.cells[k.cell].at, k.weight
		}
		_, across := l.turn(c.box)
		for i, at := range portPlaces(want, weight, c.at-across/2, across) {
			ports[l.cells[links[i].cell].edge] = at
		}
	}
	return ports
}

// portPlaces spreads the ends of edges over the side of a state that begins at
// from. What comes from far aside ends some way off the corner, or in the
// middle if it is alone.
func portPlaces(want, weight []int, from, length int) []int {
	n := len(want)
	step := portStep
	if n > 1 {
		step = min(step, (length-2*portCorner)/(n-1))
	}
	if s := slices.Index(weight, rigid); s >= 0 && n > 1 { // keep the middle for it
		if side := (length/2 - portCorner) / max(s, n-1-s); side >= portLeast {
			step = min(portStep, side)
		}
	}
	low, high := from+portCorner, from+length-portCorner
	off := max(0, high-low-(n-1)*step) / 2
	if n > 1 {
		off = min(off, 2*portCorner)
	}
	apart := make([]int, n)
	for i := range want {
		apart[i] = step
		if want[i] < low {
			want[i] = low + off
		} else if want[i] > high {
			want[i] = high - off
		}
	}
	places := spread(want, weight, apart)
	for i := range places {
		places[i] = max(places[i], low+i*step)
		places[i] = min(places[i], high-(n-1-i)*step)
	}
	return places
}

// boxAt returns the box of a state or label.
func (l *layout) boxAt(c int, from []int) Box {
	cell := &l.cells[c]
	along, across := l.turn(cell.box)
	p := l.point(from[cell.layer]+(l.layerSize(cell.layer)-along)/2, cell.at-across/2)
	return Box{p.x, p.y, cell.box.w, cell.box.h}
}

// point returns the point at a place along and across.
func (l *layout) point(along, across int) point {
	if l.down {
		return point{across, along}
	}
	return point{along, across}
}

// route draws an edge through its cells: straight through every layer, curved
// in between.
func (l *layout) route(i int, from []int, low, high int) route {
	chain := l.chains[i]
	var r route
	var stops []point // x along, y across
	for j, c := range chain {
		cell := &l.cells[c]
		begin, end, at := from[cell.layer], from[cell.layer]+l.layerSize(cell.layer), cell.at
		along, _ := l.turn(cell.box)
		switch {
		case j == 0:
			begin, at = begin+(end-begin-along)/2+along, low
		case j == len(chain)-1:
			end, at = begin+(end-begin-along)/2, high
		case cell.label:
			r.label = l.boxAt(c, from)
		}
		stops = append(stops, point{begin, at}, point{end, at})
	}
	if l.back[i] {
		slices.Reverse(stops)
	}
	l.draw(&r.Route, stops)
	return r
}

// draw draws the line through stops and the arrow head at its end.
func (l *layout) draw(r *Route, stops []point) {
	last := len(stops) - 1
	tip := stops[last]
	way := 1
	if stops[0].x > tip.x {
		way = -1
	}
	stops[last].x -= way * (headLength - 1)
	r.Line.to(l.point(stops[0].x, stops[0].y))
	for j := 1; j <= last; j++ {
		a, b := stops[j-1], stops[j]
		if a.y == b.y {
			for j < last && stops[j+1].y == b.y {
				j++
				b = stops[j]
			}
			r.Line.to(l.point(b.x, b.y))
		} else {
			mid := (a.x + b.x) / 2
			r.Line.to(l.point(mid, a.y), l.point(mid, b.y), l.point(b.x, b.y))
		}
	}
	base := tip.x - way*headLength
	r.Head = headOf(l.point(tip.x, tip.y), l.point(base, tip.y-4), l.point(base, tip.y+4))
}

func (l *layout) startRoute() (r Route) {
	c := &l.cells[l.initial]
	along, _ := l.turn(c.box)
	end := startRoom + (l.layerSize(c.layer)-along)/2
	l.draw(&r, []point{{end - 30, c.at}, {end, c.at}})
	return r
}

// loopRoute draws a self-loop beside the box of its state.
func (l *layout) loopRoute(box Box, label size) route {
	const half, bulge = 12, 34
	x, y := box.X+box.W/2, box.Y
	at := func(reach, side int) point { return point{x + side, y - reach} }
	r := route{label: Box{x - label.w/2, y - loopReach + 2 - label.h, label.w, label.h}}
	if l.down {
		x, y = box.X+box.W, box.Y+box.H/2
		at = func(reach, side int) point { return point{x + reach, y + side} }
		r.label = Box{x + loopReach - 2, y - label.h/2, label.w, label.h}
	}
	r.Line.to(at(0, -half))
	r.Line.to(at(bulge, -half-8), at(bulge, half+8), at(headLength-1, half))
	r.Head = headOf(at(0, half), at(headLength, half-4), at(headLength, half+4))
	return r
}

// extent returns the size of the picture.
func (l *layout) extent(from []int) size {
	across := 0
	for i := range l.cells {
		across = max(across, l.cells[i].at+l.cells[i].after)
	}
	last := len(l.layers) - 1
	return l.sized(from[last]+l.layerSize(last), across)
}

// to adds a segment with its points.
func (p *Path) to(points ...point) {
	var s []int
	for _, at := range points {
		s = append(s, at.x, at.y)
	}
	*p = append(*p, s)
}

func headOf(tip, left, right point) [6]int {
	return [6]int{tip.x, tip.y, left.x, left.y, right.x, right.y}
}
