package graph_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// pathText writes a path as SVG has it.
func pathText(p graph.Path) string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case i == 0 && len(s) == 2:
			b.WriteByte('M')
		case i > 0 && len(s) == 2:
			b.WriteByte('L')
		case i > 0 && len(s) == 6:
			b.WriteByte('C')
		default:
			return fmt.Sprintf("%v has a segment that is none", p)
		}
		b.WriteString(strings.Trim(fmt.Sprint(s), "[]"))
	}
	return b.String()
}

func boxOf(b graph.Box) box { return box{float64(b.X), float64(b.Y), float64(b.W), float64(b.H)} }

// touches reports whether a point lies on the edge of b.
func (b box) touches(x, y int) bool {
	p := box{x: float64(x), y: float64(y)}
	return p.inside(b) && (p.x == b.x || p.x == b.x+b.w || p.y == b.y || p.y == b.y+b.h)
}

// checkDrawing checks that a drawing has every state and transition of m once, and what must
// hold for its geometry: boxes do not overlap, lines lead from state to state and pass through
// no other box, and what is written stands in its box.
func checkDrawing(t testing.TB, m *machine.Machine, d *graph.Drawing) {
	t.Helper()
	all := box{w: float64(d.Width), h: float64(d.Height)}
	at := map[string]box{}
	var states, steps, wantStates, wantSteps []string
	var boxes []box
	for _, s := range d.States {
		at[s.Name] = boxOf(s.Box)
		states, boxes = append(states, s.Name), append(boxes, at[s.Name])
		checkTexts(t, at[s.Name], s.Lines, s.Notes, s.Icons)
	}
	labels := map[int]int{} // by edge
	for i, e := range d.Edges {
		if e.Label.H > 0 {
			labels[i] = len(boxes)
			boxes = append(boxes, boxOf(e.Label))
		}
		y := e.Label.Y
		for _, r := range e.Transitions {
			steps = append(steps, e.From+": "+r.Name+" → "+e.To)
			if r.Y != y || r.X != e.Label.X || r.W != e.Label.W {
				t.Errorf("the row of %s at %v is not in the label at %v", r.Name, r.Box, e.Label)
			}
			y += r.H
			checkTexts(t, boxOf(r.Box), r.Lines, r.Notes, r.Icons)
		}
		if y != e.Label.Y+e.Label.H {
			t.Errorf("the rows of %s do not fill its label at %v", e.Transitions[0].Name, e.Label)
		}
		first, last := e.Line[0], e.Line[len(e.Line)-1]
		if !at[e.From].touches(first[0], first[1]) || !at[e.To].touches(e.Head[0], e.Head[1]) || abs(last[len(last)-2]-e.Head[0])+abs(last[len(last)-1]-e.Head[1]) > 8 {
			t.Errorf("the line %v with the head %v does not lead from %v to %v", e.Line, e.Head, at[e.From], at[e.To])
		}
		if d.Plain {
			continue
		}
		points := trace(t, pathText(e.Line))
		for name, b := range at {
			if b.entered(points) {
				t.Errorf("the line %v passes through %s", e.Line, name)
			}
		}
		for k, other := range d.Edges {
			if k != i && boxOf(other.Label).entered(points) {
				t.Errorf("the line %v passes through the label of %s", e.Line, other.Transitions[0].Name)
			}
		}
	}
	for i, a := range boxes {
		if !a.inside(all) {
			t.Errorf("box %v leaves the drawing %v", a, all)
		}
		for _, b := range boxes[:i] {
			if a.overlaps(b) {
				t.Errorf("boxes %v and %v overlap", a, b)
			}
		}
	}
	if !at[m.Initial().Name].touches(d.Start.Head[0], d.Start.Head[1]) {
		t.Errorf("the start %v does not lead to the initial state", d.Start)
	}
	for _, s := range m.States() {
		wantStates = append(wantStates, s.Name)
		for _, tr := range s.Transitions {
			wantSteps = append(wantSteps, s.Name+": "+tr.Name+" → "+tr.Target)
		}
	}
	if !slices.Equal(states, wantStates) {
		t.Errorf("states %q, want %q", states, wantStates)
	}
	same(t, "transitions", steps, wantSteps)
}

func abs(n int) int { return max(n, -n) }

// checkTexts checks that what is written stands in its box.
func checkTexts(t testing.TB, in box, lines []graph.Text, notes []graph.Note, icons []graph.Icon) {
	t.Helper()
	for _, n := range notes {
		lines = append(slices.Clip(lines), n.Lines...)
	}
	for _, l := range lines {
		if p := (box{x: float64(l.X), y: float64(l.Y - 8), h: 8}); !p.inside(in) {
			t.Errorf("%q at %d %d is not in %v", l.Text, l.X, l.Y, in)
		}
	}
	for _, i := range icons {
		if p := (box{float64(i.X), float64(i.Y), 14, 14}); !p.inside(in) {
			t.Errorf("icon %v is not in %v", i, in)
		}
	}
}

// elements returns all that stands in a group of an SVG, with its place; rings apart, which go
// with goals and ends.
func (n *node) elements() (list []string) {
	a := n.attr
	switch {
	case a["class"] == "dg-ring":
	case n.name == "rect":
		list = append(list, fmt.Sprint("box ", a["x"], " ", a["y"], " ", a["width"], " ", a["height"]))
	case n.name == "text":
		list = append(list, fmt.Sprint("text ", a["x"], " ", a["y"], " ", n.text))
	case a["class"] == "dg-icon":
		list = append(list, "icon "+a["transform"])
	case n.name == "path":
		list = append(list, a["class"]+" "+a["d"])
	case n.name == "circle":
		list = append(list, fmt.Sprint("dot ", a["cx"], " ", a["cy"]))
	}
	for _, c := range n.child {
		list = append(list, c.elements()...)
	}
	return list
}

// elementsOf returns all that a drawing says to draw.
func elementsOf(d *graph.Drawing) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	written := func(lines []graph.Text, notes []graph.Note, icons []graph.Icon) {
		for _, n := range notes {
			lines = append(slices.Clip(lines), n.Lines...)
		}
		for _, l := range lines {
			add("text %d %d %s", l.X, l.Y, l.Text)
		}
		for _, i := range icons {
			add("icon translate(%d %d)", i.X, i.Y)
		}
	}
	route := func(r graph.Route) {
		add("dg-line %s", pathText(r.Line))
		add("dg-head M%d %dL%d %d %d %dz", r.Head[0], r.Head[1], r.Head[2], r.Head[3], r.Head[4], r.Head[5])
	}
	framed := func(b graph.Box) { add("box %d %d %d %d", b.X, b.Y, b.W, b.H) }
	route(d.Start)
	add("dot %d %d", d.Start.Line[0][0], d.Start.Line[0][1])
	for _, s := range d.States {
		framed(s.Box)
		written(s.Lines, s.Notes, s.Icons)
	}
	for _, e := range d.Edges {
		route(e.Route)
		if !d.Plain {
			framed(e.Label)
		}
		for _, r := range e.Transitions {
			written(r.Lines, r.Notes, r.Icons)
		}
	}
	return list
}

// checkPage checks that whoever draws a drawing draws what the SVG has: no less, and no more.
func checkPage(t testing.TB, m *machine.Machine) {
	t.Helper()
	root, d := read(t, graph.SVG(m, graph.View{})), graph.Layout(m)
	same(t, "what is drawn", elementsOf(d), root.diagram().elements())
	var legend []string
	for _, e := range d.Legend {
		legend = append(legend, e.Text)
	}
	if got := root.all("dg-legend")[0].texts(); !slices.Equal(got, legend) {
		t.Errorf("the legend is %q, in the SVG %q", legend, got)
	}
}

func TestRandomDrawings(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			m := random(t, rng, 1+rng.IntN(15), 1+rng.IntN(5))
			checkDrawing(t, m, graph.Layout(m))
			checkPage(t, m)
		})
	}
}

func TestSamplesAsDrawings(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			m := parse(t, s.machine)
			checkDrawing(t, m, graph.Layout(m))
			checkPage(t, m)
			if !bytes.Equal(graph.Draw(m, s.view, "layout"), graph.Draw(m, graph.View{}, "layout")) {
				t.Error("the layout shows where a session stands")
			}
		})
	}
}

// A machine that is too large for labels has all its transitions nonetheless, and no list of it
// is null.
func TestPlainDrawing(t *testing.T) {
	m := full(t, 1000, 10)
	d := graph.Layout(m)
	if !d.Plain || len(d.States) != 1000 || d.Legend[len(d.Legend)-1].Mark != "plain" {
		t.Errorf("%d states, plain %v, legend %v", len(d.States), d.Plain, d.Legend)
	}
	checkDrawing(t, m, d)
	if text := graph.Draw(m, graph.View{}, "layout"); bytes.Contains(text, []byte("null")) || len(text) > 4<<20 {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// TestMarks: each form and colour of the SVG has a mark.
func TestMarks(t *testing.T) {
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "states": {
		"a": {"transitions": {"hard": {"target": "b", "irreversible": true}, "signed": {"target": "d", "approvals": 1}, "if": {"target": "e", "when": "= data.x"}, "note": {"target": "f", "set": {"x": 1}}}},
		"b": {"transitions": {"never": "a"}}, "d": {}, "e": {"final": true}, "lost": {"transitions": {"out": "b"}},
		"f": {"due": {"in": "1h", "then": "late"}, "specialists": [], "transitions": {"late": "b"}}},
		"specialists": [{"role": "proposer", "specialistId": "ann", "isHuman": true}]}`)
	d := graph.Layout(m)
	got := map[string][]graph.Mark{}
	for _, s := range d.States {
		got[s.Name] = s.Marks
	}
	for _, e := range d.Edges {
		for _, r := range e.Transitions {
			got[r.Name] = r.Marks
		}
	}
	for name, want := range map[string]string{
		"a": "[initial human]", "b": "[goal]", "d": "[deadEnd]", "e": "[final]", "lost": "[unreachable human]", "f": "[due wait]",
		"hard": "[irreversible]", "signed": "[approvals]", "if": "[when]", "note": "[set]", "never": "[idle]", "out": "[idle]", "late": "[timer]",
	} {
		if fmt.Sprint(got[name]) != want {
			t.Errorf("%s has the marks %v, want %s", name, got[name], want)
		}
	}
	var legend []string
	for _, e := range d.Legend {
		legend = append(legend, string(e.Mark))
	}
	if want := "start goal final deadEnd unreachable human irreversible approvals"; strings.Join(legend, " ") != want {
		t.Errorf("the legend has %q, want %s", legend, want)
	}
}
