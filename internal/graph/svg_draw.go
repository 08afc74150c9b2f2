package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// The states and edges of the picture, drawn where the Drawing has them. A state's class says
// how far the session has come, an edge's what its transition is: taken, proposed, open, what
// only a human may choose.

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
	case s.idle(t):
		class = "dg-idle"
	}
	if t.OnlyHumans() && class != "dg-won" {
		class += " dg-hard"
	}
	return strings.TrimSpace(class)
}

// idle reports whether no session takes t: none comes to where it begins, or goes on there.
func (s *scene) idle(t *machine.Transition) bool {
	return t.From.Terminal() || s.marks[t.From.Index].lost
}

// edgeClasses ranks the classes of transitions that stand out: the first one
// present is that of their edge.
var edgeClasses = []string{"dg-won", "dg-open", "dg-taken"}

// edgeClass returns the classes of the line of an edge.
func (s *scene) edgeClass(i int) string {
	var classes []string
	for _, t := range s.edges[i].rows {
		classes = append(classes, s.rowClass(t))
	}
	for _, class := range edgeClasses {
		if slices.ContainsFunc(classes, func(c string) bool { return strings.HasPrefix(c, class) }) {
			return class
		}
	}
	if len(slices.Compact(classes)) > 1 {
		return ""
	}
	return classes[0]
}

// edges draws lines first, those that matter last, and then their labels, so
// that no line crosses a label.
func (d *card) edges(c *canvas) {
	for i, mark := range d.marks {
		if at := d.States[i]; mark.current {
			c.open(d.tone.class, "")
			c.rect("halo", Box{at.X - 4, at.Y - 4, at.W + 8, at.H + 8}, 14)
			c.close()
		}
	}
	c.arrow(&d.Start)
	c.add(`<circle class="dg-dot" cx="%d" cy="%d" r="5"/>`, d.Start.Line[0][0], d.Start.Line[0][1])
	for pass := range 2 {
		for i := range d.Edges {
			class := d.edgeClass(i)
			marked := slices.Contains(edgeClasses, class)
			if marked == (pass == 1) {
				d.line(c, strings.TrimSpace("dg-edge "+class), i)
			}
		}
	}
	for i := range d.Edges {
		d.label(c, i)
	}
}

// line draws the line of an edge and, where there are no labels, says what its
// label would.
func (d *card) line(c *canvas, class string, i int) {
	var titles []string
	for _, t := range d.scene.edges[i].rows {
		if d.Plain {
			titles = append(titles, d.stepTitle(t))
		}
	}
	c.open(class, strings.Join(titles, "\n"))
	c.arrow(&d.Edges[i].Route)
	c.close()
}

// label draws the label of an edge, over its line.
func (d *card) label(c *canvas, i int) {
	if d.Plain {
		return
	}
	c.rect("behind", d.Edges[i].Label, 5)
	for n, t := range d.scene.edges[i].rows {
		row := &d.Edges[i].Transitions[n]
		c.open(strings.TrimSpace("dg-step "+d.rowClass(t)), d.stepTitle(t))
		c.name("label", row.Icons, row.Lines)
		x, y := row.Lines[0].X, row.Y+(labelLine*len(row.Lines)+4)/2
		for _, l := range row.Lines {
			x = max(x, l.X+labelFont.width(l.Text))
		}
		for _, text := range d.pills(t) {
			x += pillGap + c.pill(x+pillGap, y, text)
		}
		c.notes(row.Notes)
		c.close()
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

func (d *card) states(c *canvas) {
	for i := range d.States {
		d.state(c, i)
	}
}

func (d *card) state(c *canvas, i int) {
	st, mark, at := &d.m.States()[i], d.marks[i], &d.States[i]
	c.open(d.stateClass(i), inFull(stateTitle(st, mark), d.stateNotes(i)))
	c.rect("box", at.Box, 10)
	if st.Terminal() {
		c.rect("ring", Box{at.X + 3, at.Y + 3, at.W - 6, at.H - 6}, 7)
	}
	c.name("name", at.Icons, at.Lines)
	c.notes(at.Notes)
	if mark.visits > 1 {
		text := fmt.Sprintf("%d×", mark.visits)
		if d.Down {
			c.pill(at.X-pillWidth(text)+8, at.Y+at.H/2, text)
		} else {
			c.pill(at.X+at.W/2-pillWidth(text)/2, at.Y+at.H, text)
		}
	}
	c.close()
}

func (d *card) stateClass(i int) string {
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
