package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dialai/dialai/machine"
)

// The drawing of a terminal is that of the SVG in cells of characters. What is written is measured
// in columns, the layout places boxes and lines in pixels of which a cell has 8 by 11, the least
// that two lines are apart, and each place becomes that of its cell. Lines turn at right angles
// where the SVG has curves; turns of different lines between the same two layers take columns (or
// rows) of their own as long as there are some. Boxes and labels lie over the lines. Where no
// labels fit there is a list instead.

const (
	columnWidth, rowHeight = 8, 11 // in pixels of the layout
	lineMost               = 26    // columns of a name before it is broken
)

// Columns is how wide a drawing in characters is at most where nothing says how wide the terminal is.
const Columns = 160

// Terminal draws m and v in characters, for a terminal of some columns, without colours; 0 is
// [Columns]. What is wider is a list: each state, and below it where its transitions lead.
func Terminal(m *machine.Machine, v View, columns int) string {
	s := newScene(m, v)
	names, labels := make([]nameBox, len(s.marks)), make([]labelBox, len(s.edges))
	words := make([][]string, len(s.marks)+len(s.edges))
	for i := range names {
		words[i] = broken(s.stateText(i)...)
		names[i].size = cellsOf(words[i], 4)
	}
	for i := range labels {
		var rows []string
		for _, t := range s.edges[i].rows {
			rows = append(rows, s.stepText(t)...)
		}
		words[len(names)+i] = broken(rows...)
		labels[i].size = cellsOf(words[len(names)+i], 2)
		labels[i].h -= 2 * rowHeight // it has no border
	}
	p := s.layOut(names, labels)
	if p.plain || p.w/columnWidth+2 > cmp.Or(columns, Columns) {
		return s.list()
	}
	sh := &page{w: p.w/columnWidth + 2, h: p.h/rowHeight + 2, down: p.down, turns: map[int][][2]int{}}
	sh.lines, sh.text = make([]ways, sh.w*sh.h), make([]string, sh.w*sh.h)
	sh.start(p.start)
	ends := map[side]int{}
	for i, r := range p.routes {
		ends[sh.side(s.edges[i].from, r.Line[0])]++
		ends[sh.side(s.edges[i].to, r.Head[:])]++
	}
	for i, r := range p.routes {
		e := s.edges[i]
		from := end{cellOf(p.states[e.from]), ends[sh.side(e.from, r.Line[0])] == 1}
		to := end{cellOf(p.states[e.to]), ends[sh.side(e.to, r.Head[:])] == 1}
		if e.from == e.to {
			sh.loop(from.Box)
		} else {
			sh.route(r.Route, from, to)
		}
	}
	for i, r := range p.routes {
		sh.write(words[len(names)+i], cellOf(r.label))
	}
	for i, at := range p.states {
		sh.box(words[i], cellOf(at), s.border(i))
	}
	return sh.String() + s.forms()
}

// broken breaks lines at the width of a name.
func broken(lines ...string) (list []string) {
	for _, l := range lines {
		list = append(list, strings.Split(ansi.Wrap(l, lineMost, " -_/"), "\n")...)
	}
	return list
}

// cellsOf returns the pixels of lines with some columns and two rows more.
func cellsOf(lines []string, more int) size {
	widest := 0
	for _, l := range lines {
		widest = max(widest, ansi.StringWidth(l))
	}
	return size{(widest + more) * columnWidth, (len(lines) + 2) * rowHeight}
}

// cellOf returns a box in cells.
func cellOf(b Box) Box {
	return Box{b.X / columnWidth, b.Y / rowHeight, b.W / columnWidth, b.H / rowHeight}
}

// border returns the six characters around a state: corners from the upper left, then a line along
// and one down.
func (s *scene) border(i int) string {
	switch st := &s.m.States()[i]; {
	case s.marks[i].current:
		return "┏┓┗┛━┃"
	case st.Terminal():
		return "╔╗╚╝═║"
	}
	return "┌┐└┘─│"
}

// forms says below the drawing what its forms mean, and who is in a group.
func (s *scene) forms() string {
	var b strings.Builder
	b.WriteString("\n● start   ╔═╗ intended end")
	if slices.ContainsFunc(s.marks, func(m marks) bool { return m.current }) {
		b.WriteString("   ┏━┓ here")
	}
	b.WriteByte('\n')
	groups, _ := s.groups()
	for _, g := range groups {
		b.WriteString(g + "\n")
	}
	return b.String()
}

// list says in lines what is too large to be drawn in cells.
func (s *scene) list() string {
	var b strings.Builder
	for i := range s.marks {
		b.WriteString(strings.Join(s.stateText(i), "; "))
		for _, fact := range []struct {
			holds bool
			words string
		}{
			{s.m.Initial().Index == i, "start"}, {s.m.States()[i].Terminal(), "intended end"}, {s.marks[i].current, "here"},
		} {
			if fact.holds {
				b.WriteString(" [" + fact.words + "]")
			}
		}
		b.WriteByte('\n')
		for _, e := range s.edges {
			if e.from != i {
				continue
			}
			for _, t := range e.rows {
				b.WriteString("  " + strings.Join(s.stepText(t), "; ") + " → " + clean(s.m.States()[e.to].Name) + "\n")
			}
		}
	}
	return b.String()
}

// ways are the sides of a cell that a line leaves it by.
type ways uint8

const (
	north ways = 1 << iota
	east
	south
	west
)

// lineRunes has the character for each set of ways.
var lineRunes = [16]string{" ", "│", "─", "└", "│", "│", "┌", "├", "─", "┘", "─", "┴", "┐", "┤", "┬", "┼"}

// A page is a drawing in cells.
type page struct {
	w, h  int
	down  bool
	lines []ways
	text  []string         // of a cell, over its lines; hidden where a wide character takes it, too
	turns map[int][][2]int // by column (or row, downwards): from where to where a line turns there
}

const hidden = "\x00"

func (s *page) put(x, y int, text string) {
	if x >= 0 && y >= 0 && x < s.w && y < s.h {
		s.text[y*s.w+x] = text
	}
}

// draw draws a straight line from cell to cell.
func (s *page) draw(a, b point) {
	dx, dy := sign(b.x-a.x), sign(b.y-a.y)
	out, in := east, west
	switch {
	case dx < 0:
		out, in = west, east
	case dy < 0:
		out, in = north, south
	case dy > 0:
		out, in = south, north
	}
	for at := a; at != b; {
		s.way(at, out)
		at = point{at.x + dx, at.y + dy}
		s.way(at, in)
	}
}

func (s *page) way(at point, w ways) {
	if at.x >= 0 && at.y >= 0 && at.x < s.w && at.y < s.h {
		s.lines[at.y*s.w+at.x] |= w
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

// along turns places of a drawing downwards so that it goes on to the right, and back.
func (s *page) along(p point) point {
	if s.down {
		return point{p.y, p.x}
	}
	return p
}

// A side of a state is where along lines end there.
type side struct{ state, along int }

func (s *page) side(state int, at []int) side {
	return side{state, s.along(point{at[0], at[1]}).x}
}

// An end is the box beside which a line ends, and whether no other does on that side.
type end struct {
	Box
	alone bool
}

// route draws the line of an edge, and its head outside the box that it leads to. Both ends are beside
// their boxes, also where a cell begins before the pixel does; the line comes there straight.
func (s *page) route(r Route, from, to end) {
	stops := make([]point, len(r.Line))
	for i, seg := range r.Line {
		stops[i] = point{seg[len(seg)-2] / columnWidth, seg[len(seg)-1] / rowHeight}
	}
	last := len(stops) - 1
	stops[last] = point{r.Head[0] / columnWidth, r.Head[1] / rowHeight}
	across := s.along(stops[last]).y
	want := s.along(s.beside(stops[last], to)).y
	for i := last; i > 0 && s.along(stops[i]).y == across; i-- {
		stops[i] = s.along(point{s.along(stops[i]).x, want})
	}
	stops[0] = s.beside(stops[0], from)
	for i := range last {
		s.turn(stops[i], stops[i+1])
	}
	s.head(stops[last], r.Head, to.Box)
}

// beside moves an end across until it is within the side of its box, and off its corners if it is
// alone there, or there are enough columns.
func (s *page) beside(p point, of end) point {
	if s.down {
		return point{min(max(p.x, of.X+1), of.X+of.W-2), p.y}
	}
	off := 0
	if of.alone {
		off = 1
	}
	return point{p.x, min(max(p.y, of.Y+off), of.Y+of.H-1-off)}
}

// turn draws a line that changes its place across, where no other line does.
func (s *page) turn(from, to point) {
	a, b := s.along(from), s.along(to)
	if a.y == b.y {
		s.draw(from, to)
		return
	}
	low, high := min(a.x, b.x)+1, max(a.x, b.x)-1
	own := [2]int{min(a.y, b.y), max(a.y, b.y)}
	mid := (a.x + b.x) / 2
	at := mid
	for off := 0; off <= high-low; off++ {
		for _, c := range []int{mid - off, mid + off} {
			free := c >= low && c <= high && !slices.ContainsFunc(s.turns[c], func(o [2]int) bool { return o[0] <= own[1] && own[0] <= o[1] })
			if free {
				at, off = c, high
				break
			}
		}
	}
	s.turns[at] = append(s.turns[at], own)
	s.draw(from, s.along(point{at, a.y}))
	s.draw(s.along(point{at, a.y}), s.along(point{at, b.y}))
	s.draw(s.along(point{at, b.y}), to)
}

// head puts the head of an arrow where its line meets a box.
func (s *page) head(tip point, head [6]int, box Box) {
	dx, dy := sign(head[0]-(head[2]+head[4])/2), sign(head[1]-(head[3]+head[5])/2)
	for tip.x >= box.X && tip.x < box.X+box.W && tip.y >= box.Y && tip.y < box.Y+box.H {
		tip = point{tip.x - dx, tip.y - dy}
	}
	s.put(tip.x, tip.y, map[point]string{{1, 0}: "▶", {-1, 0}: "◀", {0, 1}: "▼", {0, -1}: "▲"}[point{dx, dy}])
}

func (s *page) start(r Route) {
	from, to := point{r.Line[0][0] / columnWidth, r.Line[0][1] / rowHeight}, point{r.Head[0] / columnWidth, r.Head[1] / rowHeight}
	s.draw(from, to)
	s.put(from.x, from.y, "●")
	tip := s.along(to)
	tip.x--
	tip = s.along(tip)
	s.put(tip.x, tip.y, map[bool]string{false: "▶", true: "▼"}[s.down])
}

// loop draws the line from a state to itself: above its box, or to the right of it downwards.
func (s *page) loop(at Box) {
	corners := []point{{at.X + at.W/2 - 2, at.Y}, {at.X + at.W/2 - 2, at.Y - 2}, {at.X + at.W/2 + 2, at.Y - 2}, {at.X + at.W/2 + 2, at.Y}}
	tip, head := point{corners[3].x, at.Y - 1}, "▼"
	if s.down {
		mid, right := at.Y+at.H/2, at.X+at.W
		corners = []point{{right - 1, mid - 1}, {right + 2, mid - 1}, {right + 2, mid + 1}, {right - 1, mid + 1}}
		tip, head = point{right, mid + 1}, "◀"
	}
	for i := 1; i < len(corners); i++ {
		s.draw(corners[i-1], corners[i])
	}
	s.put(tip.x, tip.y, head)
}

// write writes lines into a box of cells, each in its middle.
func (s *page) write(lines []string, at Box) {
	y := at.Y + (at.H-len(lines))/2
	for i, l := range lines {
		x := at.X + (at.W-ansi.StringWidth(l))/2
		s.put(x-1, y+i, " ")
		for _, c := range clusters(l) {
			w := ansi.StringWidth(c)
			if w == 0 {
				continue
			}
			s.put(x, y+i, c)
			for k := 1; k < w; k++ {
				s.put(x+k, y+i, hidden)
			}
			x += w
		}
		s.put(x, y+i, " ")
	}
}

// box draws the box of a state over whatever is there.
func (s *page) box(lines []string, at Box, border string) {
	b := strings.Split(border, "")
	right, bottom := at.X+at.W-1, at.Y+at.H-1
	for y := at.Y; y <= bottom; y++ {
		for x := at.X; x <= right; x++ {
			s.put(x, y, " ")
		}
		s.put(at.X, y, b[5])
		s.put(right, y, b[5])
	}
	for x := at.X; x <= right; x++ {
		s.put(x, at.Y, b[4])
		s.put(x, bottom, b[4])
	}
	for i, c := range []point{{at.X, at.Y}, {right, at.Y}, {at.X, bottom}, {right, bottom}} {
		s.put(c.x, c.y, b[i])
	}
	s.write(lines, at)
}

// String returns the drawing, without what is empty above, below and to the right.
func (s *page) String() string {
	rows := make([]string, s.h)
	for y := range rows {
		var b strings.Builder
		for x := range s.w {
			switch text := s.text[y*s.w+x]; text {
			case "":
				b.WriteString(lineRunes[s.lines[y*s.w+x]])
			case hidden:
			default:
				b.WriteString(text)
			}
		}
		rows[y] = strings.TrimRight(b.String(), " ")
	}
	for len(rows) > 0 && rows[0] == "" {
		rows = rows[1:]
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return strings.Join(rows, "\n") + "\n"
}
