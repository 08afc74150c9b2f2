package graph

import "github.com/dialai/dialai/machine"

// What is written of states and transitions. Each is measured first, as a nameBox or a labelBox
// of wrapped lines, icons and pills, for the layout to make room for; once it has, place says
// where each line and icon stands.

// A nameBox is the name of a state as it stands in its box.
type nameBox struct {
	size
	lines []string
	notes []note
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
	icons []string
	name  size   // of all that stands in the lines of the name
	notes []note // the lines below
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
	b := nameBox{lines: nameFont.wrap(clean(st.Name), 150, 2), notes: s.stateNotes(state)}
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
	below := noteLines(b.notes)
	b.w, b.h = max(b.w, smallFont.lineWidth(below)+24), b.h+noteLine*len(below)
	return b
}

// place returns a state whose box is at.
func (b *nameBox) place(at Box) State {
	st := State{Box: at, Icons: []Icon{}}
	below := noteLine * len(noteLines(b.notes))
	x := at.X + at.W/2
	if b.icon != "" {
		x += iconRoom / 2
		st.Icons = []Icon{{b.icon, x - nameFont.lineWidth(b.lines)/2 - iconRoom, at.Y + (at.H-below)/2 - 7}}
	}
	y := at.Y + (at.H-nameLine*len(b.lines)-below)/2 + 13
	st.Lines = stack(b.lines, x, y, nameLine)
	st.Notes = places(b.notes, at.X+at.W/2, y+nameLine*len(b.lines)-2)
	return st
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
	r := labelRow{t: t, lines: labelFont.wrap(clean(t.Name), 132, 2), notes: s.stepNotes(t)}
	if t.Irreversible {
		r.icons = append(r.icons, lockIcon)
	}
	if t.Approvals != nil {
		r.icons = append(r.icons, signIcon)
	}
	r.name = size{labelFont.lineWidth(r.lines) + iconRoom*len(r.icons), labelLine*len(r.lines) + 4}
	for _, text := range s.pills(t) {
		r.name.w += pillGap + pillWidth(text)
	}
	below := noteLines(r.notes)
	r.w, r.h = max(r.name.w, smallFont.lineWidth(below)), r.name.h+noteLine*len(below)
	if below != nil {
		r.h += 4
	}
	return r
}

// place returns a transition whose row is at.
func (r *labelRow) place(at Box) Transition {
	t := Transition{Box: at, Icons: []Icon{}}
	x := at.X + (at.W-r.name.w)/2
	for _, icon := range r.icons {
		t.Icons = append(t.Icons, Icon{icon, x, at.Y + (r.name.h-14)/2})
		x += iconRoom
	}
	t.Lines = stack(r.lines, x, at.Y+13, labelLine)
	t.Notes = places(r.notes, at.X+at.W/2, at.Y+r.name.h+9)
	return t
}

// stack returns lines one below the other, the first at x and y.
func stack(lines []string, x, y, step int) []Text {
	list := make([]Text, len(lines))
	for i, line := range lines {
		list[i] = Text{line, x, y + i*step}
	}
	return list
}

// places returns notes one below the other, the first at x and y.
func places(notes []note, x, y int) []Note {
	list := make([]Note, len(notes))
	for i, n := range notes {
		lines, _ := n.lines()
		list[i] = Note{n.text, stack(lines, x, y, noteLine)}
		y += noteLine * len(lines)
	}
	return list
}
