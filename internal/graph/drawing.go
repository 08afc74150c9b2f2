package graph

import "github.com/dialai/dialai/machine"

// A Drawing says where everything of a machine's graph stands, and what is written there: all
// that a picture needs but its colours. What it has is measured in pixels, of sans-serif
// letters of 14 pixels and bold for names of states, 12 for those of transitions and 11 for
// notes and the legend; places are counted from its upper left corner. No list of it is nil.
type Drawing struct {
	Width  int     `json:"width"`
	Height int     `json:"height"`
	Down   bool    `json:"down" doc:"a process goes on downwards, else to the right"`
	Plain  bool    `json:"plain" doc:"transitions have no labels: there are too many"`
	Start  Route   `json:"start" doc:"from a dot to the initial state"`
	States []State `json:"states" doc:"in the order of the machine file"`
	Edges  []Edge  `json:"edges"`
	Legend []Entry `json:"legend"`
}

// A State is the box of a state.
type State struct {
	Name string `json:"name"`
	Box
	Marks []Mark `json:"marks" doc:"initial, goal, final (another intended end), deadEnd, unreachable, human (only humans decide), due, wait (nothing but its timer ends it)"`
	Icons []Icon `json:"icons"`
	Lines []Text `json:"lines" doc:"of the name, each centred at its x"`
	Notes []Note `json:"notes"`
}

// An Edge holds all transitions from one state to another, in their order.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Route
	Label       Box          `json:"label" doc:"around what is written of its transitions, over its line; without size in a plain drawing"`
	Transitions []Transition `json:"transitions"`
}

// A Transition is a row in the label of an edge.
type Transition struct {
	Name string `json:"name"`
	Box
	Marks []Mark `json:"marks" doc:"irreversible, approvals, timer, when (it has a condition), set, idle (no session takes it)"`
	Icons []Icon `json:"icons"`
	Lines []Text `json:"lines" doc:"of the name, each begins at its x"`
	Notes []Note `json:"notes"`
}

// A Note is a fact below the name of a state or a transition.
type Note struct {
	Text  string `json:"text" doc:"in full"`
	Lines []Text `json:"lines" doc:"as far as there is room, each centred at its x"`
}

// An Entry of the legend explains one form that occurs.
type Entry struct {
	Mark Mark   `json:"mark" doc:"one of those of states and transitions, start, plain or group"`
	Text string `json:"text"`
	Full string `json:"full,omitempty" doc:"where the text is cut"`
}

// A Mark is something that a form or a colour shows.
type Mark string

// An Icon is 14 by 14 pixels large: person, check, lock or sign.
type Icon struct {
	Name string `json:"name"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
}

// A Text is a line of text; y is that of its baseline.
type Text struct {
	Text string `json:"text"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
}

// A Box is a rectangle.
type Box struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"width"`
	H int `json:"height"`
}

// A Route is a line with an arrow head.
type Route struct {
	Line Path   `json:"line" doc:"x and y of where it begins, then by segment: of the end of a straight one, or of both control points and the end of a cubic Bézier curve"`
	Head [6]int `json:"head" doc:"x and y of the corners, the tip first"`
}

// A Path is the way of a line: a segment of two numbers is where it begins, or goes straight
// to; one of six a curve.
type Path [][]int

// Layout lays out the graph of m as [SVG] draws it where there is no session to show.
func Layout(m *machine.Machine) *Drawing { return newScene(m, View{}).draw() }

// draw finds the place of everything. What the view adds to a label has room in it, and no
// place of its own.
func (s *scene) draw() *Drawing {
	names, labels := make([]nameBox, len(s.marks)), make([]labelBox, len(s.edges))
	for i := range names {
		names[i] = s.nameBox(i)
	}
	for i := range labels {
		labels[i] = s.labelBox(i)
	}
	p := s.layOut(names, labels)
	d := &Drawing{
		Width: p.w, Height: p.h, Down: p.down, Plain: p.plain, Start: p.start,
		States: make([]State, len(names)), Edges: make([]Edge, len(labels)), Legend: s.legend(p.plain),
	}
	for i := range names {
		d.States[i] = names[i].place(p.states[i])
		d.States[i].Name, d.States[i].Marks = s.m.States()[i].Name, s.stateMarks(i)
	}
	for i, r := range p.routes {
		e := &s.edges[i]
		d.Edges[i] = Edge{From: s.m.States()[e.from].Name, To: s.m.States()[e.to].Name, Route: r.Route, Label: r.label}
		if p.plain {
			d.Edges[i].Label = Box{}
		}
		d.Edges[i].Transitions = s.rows(&labels[i], r.label, p.plain)
	}
	return d
}

// rows returns the transitions of an edge, one below the other in its label.
func (s *scene) rows(b *labelBox, at Box, plain bool) []Transition {
	list := make([]Transition, len(b.rows))
	for i := range b.rows {
		r := &b.rows[i]
		t := r.place(Box{at.X, at.Y, at.W, r.h})
		if plain {
			t = Transition{Icons: []Icon{}, Lines: []Text{}, Notes: t.Notes}
			for n := range t.Notes {
				t.Notes[n].Lines = []Text{}
			}
		}
		t.Name, t.Marks = r.t.Name, s.stepMarks(r.t)
		list[i] = t
		at.Y += r.h
	}
	return list
}

// A shown fact has a mark if it holds.
type shown struct {
	holds bool
	mark  Mark
}

func marksOf(facts ...shown) []Mark {
	list := []Mark{}
	for _, f := range facts {
		if f.holds {
			list = append(list, f.mark)
		}
	}
	return list
}

func (s *scene) stateMarks(i int) []Mark {
	st, is := &s.m.States()[i], s.marks[i]
	return marksOf(shown{st == s.m.Initial(), "initial"}, shown{st.Goal, "goal"}, shown{st.Final && !st.Goal, "final"},
		shown{is.dead, "deadEnd"}, shown{is.lost, "unreachable"}, shown{is.human, "human"}, shown{st.Due != nil, "due"}, shown{st.Wait, "wait"})
}

func (s *scene) stepMarks(t *machine.Transition) []Mark {
	return marksOf(shown{t.Irreversible, "irreversible"}, shown{t.Approvals != nil, "approvals"}, shown{t.From.Timer == t, "timer"},
		shown{t.When != "", "when"}, shown{len(t.Set) > 0, "set"}, shown{s.idle(t), "idle"})
}
