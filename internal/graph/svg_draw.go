package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// The states and edges of the picture. Each is measured first, as a nameBox or a labelBox of
// wrapped lines, icons and pills, for the layout to make room for; once it has, the same boxes
// are drawn where it put them. A state's class says how far the session has come, an edge's
// what its transition is: taken, proposed, open, what only a human may choose.

// A nameBox is the name of a state as it stands in its box.
type nameBox struct {
	size
	lines []string
	notes []string
	icon  string
}

// A labelBox is the label of an edge: a row for every transition.
type labelBox struct {
	size
	rows []labelRow
}

// A labelRow is one transition in the label of an edge.
type labelRow struct {
	t     *machine.Transition
	lines []string
	class string
	icons []string
	pills []string
	name  size     // of all that stands in the lines of the name
	notes []string // the lines below
	w, h  int
}

const (
	nameLine  = 17
	labelLine = 15
	iconRoom  = 18
	pillGap   = 8
	noteLine  = 14
)

func (s *scene) nameBox(state int) nameBox {
	st := &s.m.States()[state]
	b := nameBox{lines: nameFont.wrap(clean(st.Name), 150, 2)}
	b.w = max(72, nameFont.lineWidth(b.lines)+32)
	b.h = 24 + nameLine*len(b.lines)
	switch {
	case s.marks[state].human:
		b.icon = personIcon
	case st.Goal:
		b.icon = checkIcon
	}
	if b.icon != "" {
		b.w += iconRoom
	}
	b.notes = noteLines(s.stateNotes(state))
	b.w, b.h = max(b.w, smallFont.lineWidth(b.notes)+24), b.h+noteLine*len(b.notes)
	return b
}

func (s *scene) labelBox(i int) labelBox {
	var b labelBox
	for _, t := range s.edges[i].rows {
		r := s.labelRow(t)
		b.w, b.h = max(b.w, r.w+10), b.h+r.h
		b.rows = append(b.rows, r)
	}
	return b
}

func (s *scene) labelRow(t *machine.Transition) labelRow {
	r := labelRow{t: t, lines: labelFont.wrap(clean(t.Name), 132, 2), class: s.rowClass(t), pills: s.pills(t), notes: noteLines(s.stepNotes(t))}
	if t.Irreversible {
		r.icons = append(r.icons, lockIcon)
	}
	if t.Approvals != nil {
		r.icons = append(r.icons, signIcon)
	}
	r.name = size{labelFont.lineWidth(r.lines) + iconRoom*len(r.icons), labelLine*len(r.lines) + 4}
	for _, text := range r.pills {
		r.name.w += pillGap + pillWidth(text)
	}
	r.w, r.h = max(r.name.w, smallFont.lineWidth(r.notes)), r.name.h+noteLine*len(r.notes)
	if r.notes != nil {
		r.h += 4
	}
	return r
}

// pills says in which steps a transition was executed, or how often, and how
// often it is proposed in this round.
func (s *scene) pills(t *machine.Transition) []string {
	var list []string
	if steps := s.taken[t]; len(steps) > 3 {
		list = append(list, fmt.Sprintf("%d×", len(steps)))
	} else if len(steps) > 0 {
		list = append(list, strings.Trim(strings.ReplaceAll(fmt.Sprint(steps), " ", ", "), "[]"))
	}
	if n := s.votes[t]; n > 0 {
		list = append(list, plural(n, "vote"))
	}
	return list
}

// rowClass returns the classes of a transition.
func (s *scene) rowClass(t *machine.Transition) string {
	class := ""
	switch {
	case t == s.won:
		class = "dg-won"
	case s.votes[t] > 0:
		class = "dg-open"
	case len(s.taken[t]) > 0:
		class = "dg-taken"
	case t.From.Terminal() || s.marks[t.From.Index].lost:
		class = "dg-idle"
	}
	if t.OnlyHumans() && class != "dg-won" {
		class += " dg-hard"
	}
	return strings.TrimSpace(class)
}

// edgeClasses ranks the classes of transitions that stand out: the first one
// present is that of their edge.
var edgeClasses = []string{"dg-won", "dg-open", "dg-taken"}

// edgeClass returns the classes of the line of an edge.
func (d *drawing) edgeClass(i int) string {
	rows := d.labels[i].rows
	for _, class := range edgeClasses {
		if slices.ContainsFunc(rows, func(r labelRow) bool { return strings.HasPrefix(r.class, class) }) {
			return class
		}
	}
	for _, r := range rows {
		if r.class != rows[0].class {
			return ""
		}
	}
	return rows[0].class
}

// edges draws lines first, those that matter last, and then their labels, so
// that no line crosses a label.
func (d *drawing) edges(c *canvas) {
	for i, mark := range d.marks {
		if at := d.picture.states[i]; mark.current {
			c.open(d.tone.class, "")
			c.rect("halo", rect{at.x - 4, at.y - 4, at.w + 8, at.h + 8}, 14)
			c.close()
		}
	}
	c.add(`<path class="dg-line" d="%s"/><path class="dg-head" d="%s"/>`, d.start.line, d.start.head)
	c.add(`<circle class="dg-dot" cx="%d" cy="%d" r="5"/>`, d.start.from.x, d.start.from.y)
	for pass := range 2 {
		for i := range d.routes {
			class := d.edgeClass(i)
			marked := slices.Contains(edgeClasses, class)
			if marked == (pass == 1) {
				d.line(c, strings.TrimSpace("dg-edge "+class), i)
			}
		}
	}
	for i := range d.routes {
		d.label(c, i)
	}
}

// line draws the line of an edge and, where there are no labels, says what its
// label would.
func (d *drawing) line(c *canvas, class string, i int) {
	var titles []string
	for _, r := range d.labels[i].rows {
		if d.plain {
			titles = append(titles, d.stepTitle(r.t))
		}
	}
	c.open(class, strings.Join(titles, "\n"))
	c.add(`<path class="dg-line" d="%s"/><path class="dg-head" d="%s"/>`, d.routes[i].line, d.routes[i].head)
	c.close()
}

// label draws the label of an edge, over its line.
func (d *drawing) label(c *canvas, i int) {
	at, box := d.routes[i].label, d.labels[i]
	if d.plain {
		return
	}
	c.rect("behind", at, 5)
	y := at.y
	for _, r := range box.rows {
		c.open(strings.TrimSpace("dg-step "+r.class), d.stepTitle(r.t))
		x := at.x + (at.w-r.name.w)/2
		for _, icon := range r.icons {
			c.icon(x, y+(r.name.h-14)/2, icon)
			x += iconRoom
		}
		for n, line := range r.lines {
			c.text("label", x, y+13+n*labelLine, line)
		}
		x += labelFont.lineWidth(r.lines)
		for _, text := range r.pills {
			x += pillGap + c.pill(x+pillGap, y+r.name.h/2, text)
		}
		for n, line := range r.notes {
			c.text("note", at.x+at.w/2, y+r.name.h+9+n*noteLine, line)
		}
		c.close()
		y += r.h
	}
}

// stepTitle names a transition in full.
func (s *scene) stepTitle(t *machine.Transition) string {
	text := clean(t.From.Name) + ": " + clean(t.Name) + " → " + clean(t.Target)
	if t.Irreversible {
		text += " (irreversible)"
	}
	return inFull(text, s.stepNotes(t))
}

func (d *drawing) states(c *canvas) {
	for i := range d.picture.states {
		d.state(c, i)
	}
}

func (d *drawing) state(c *canvas, i int) {
	st, mark, at, name := &d.m.States()[i], d.marks[i], d.picture.states[i], d.names[i]
	c.open(d.stateClass(i), inFull(stateTitle(st, mark), d.stateNotes(i)))
	c.rect("box", at, 10)
	if st.Terminal() {
		c.rect("ring", rect{at.x + 3, at.y + 3, at.w - 6, at.h - 6}, 7)
	}
	x := at.x + at.w/2
	if name.icon != "" {
		x += iconRoom / 2
		c.icon(x-nameFont.lineWidth(name.lines)/2-iconRoom, at.y+(at.h-noteLine*len(name.notes))/2-7, name.icon)
	}
	y := at.y + (at.h-nameLine*len(name.lines)-noteLine*len(name.notes))/2 + 13
	for n, line := range name.lines {
		c.text("name", x, y+n*nameLine, line)
	}
	for n, line := range name.notes {
		c.text("note", at.x+at.w/2, y+nameLine*len(name.lines)-2+n*noteLine, line)
	}
	if mark.visits > 1 {
		text := fmt.Sprintf("%d×", mark.visits)
		if d.down {
			c.pill(at.x-pillWidth(text)+8, at.y+at.h/2, text)
		} else {
			c.pill(at.x+at.w/2-pillWidth(text)/2, at.y+at.h, text)
		}
	}
	c.close()
}

func (d *drawing) stateClass(i int) string {
	st, mark := &d.m.States()[i], d.marks[i]
	class := "dg-state"
	switch {
	case mark.current:
		return class + " dg-now " + d.tone.class
	case st.Goal:
		class += " dg-goal"
	case mark.dead:
		class += " dg-dead"
	}
	if mark.visits > 0 && !st.Goal {
		class += " dg-seen"
	}
	if mark.lost {
		class += " dg-lost"
	}
	return class
}

// stateTitle names a state in full, with what its form says.
func stateTitle(st *machine.State, mark marks) string {
	text := clean(st.Name)
	for _, fact := range []struct {
		holds bool
		words string
	}{
		{mark.current, "current"}, {st.Goal, "goal"}, {st.Final && !st.Goal, "intended end"}, {mark.dead, "dead end"},
		{mark.human, "humans decide"}, {mark.lost, "cannot be reached"},
	} {
		if fact.holds {
			text += ", " + fact.words
		}
	}
	if mark.visits > 0 {
		text += ", entered " + plural(mark.visits, "time")
	}
	return text
}
