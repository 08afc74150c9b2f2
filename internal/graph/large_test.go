package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// random returns a machine of n states, each with up to most transitions.
func random(t testing.TB, rng *rand.Rand, n, most int) *machine.Machine {
	t.Helper()
	def := &machine.Definition{MachineName: "random", InitialState: "s 0", GoalState: fmt.Sprintf("s %d", rng.IntN(n))}
	for i := range n {
		s := machine.StateDefinition{Name: fmt.Sprintf("s %d", i), Final: rng.IntN(8) == 0, Irreversible: new(rng.IntN(8) == 0)}
		for k := range rng.IntN(most + 1) {
			name := fmt.Sprintf("t %d", k)
			for rng.IntN(2) == 0 {
				name += " more"
			}
			s.Transitions = append(s.Transitions, machine.TransitionDefinition{Name: name, Target: fmt.Sprintf("s %d", rng.IntN(n))})
		}
		def.States = append(def.States, s)
	}
	m, err := machine.Compile(def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// full returns a machine of n states with exactly per transitions each.
func full(t testing.TB, n, per int) *machine.Machine {
	t.Helper()
	def := &machine.Definition{MachineName: "full", InitialState: "s0", GoalState: fmt.Sprintf("s%d", n-1)}
	for i := range n {
		s := machine.StateDefinition{Name: fmt.Sprintf("s%d", i)}
		for k := range per {
			s.Transitions = append(s.Transitions, machine.TransitionDefinition{Name: fmt.Sprintf("t%d", k), Target: fmt.Sprintf("s%d", (i*(k+1)+k+1)%n)})
		}
		def.States = append(def.States, s)
	}
	m, err := machine.Compile(def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func BenchmarkSVG(b *testing.B) {
	for _, size := range []struct{ states, per int }{{10, 3}, {60, 4}, {130, 3}, {1000, 1}, {1000, 10}} {
		m := full(b, size.states, size.per)
		b.Run(fmt.Sprintf("%dx%d", size.states, size.per), func(b *testing.B) {
			var n int
			for b.Loop() {
				n = len(graph.SVG(m, graph.View{}))
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

// A machine at the limits of the loader is drawn as a grid: every state has its
// place, and every transition is named where a pointer rests.
func TestLargest(t *testing.T) {
	m := full(t, 1000, 10)
	svg := graph.SVG(m, graph.View{State: "s3", Path: []graph.Step{{From: "s0", Transition: "t2"}}})
	if len(svg) > 4<<20 {
		t.Errorf("%d bytes", len(svg))
	}
	root := read(t, svg)
	var boxes []box
	for _, s := range root.diagram().all("dg-state") {
		boxes = append(boxes, s.all("dg-box")[0].box())
	}
	if len(boxes) != 1000 {
		t.Errorf("%d states", len(boxes))
	}
	for i, a := range boxes {
		for _, b := range boxes[:i] {
			if a.overlaps(b) {
				t.Fatalf("boxes %v and %v overlap", a, b)
			}
		}
	}
	checkInside(t, root, root.diagram(), boxes)
	var steps []string
	for _, e := range root.diagram().all("dg-edge") {
		steps = append(steps, strings.Split(e.title(), "\n")...)
	}
	if len(steps) != 10_000 || !slices.Contains(steps, "s7: t2 → s24") {
		t.Errorf("%d transitions", len(steps))
	}
	if n := strings.Count(graph.Mermaid(m, graph.View{}), " : t"); n != 10_000 {
		t.Errorf("%d transitions in Mermaid", n)
	}
}

// One state with as many ways out as the loader allows stays orderly.
func TestManyTransitions(t *testing.T) {
	def := &machine.Definition{MachineName: "fan", InitialState: "hub", GoalState: "x0", States: []machine.StateDefinition{{Name: "hub"}}}
	for i := range 256 {
		name := fmt.Sprintf("x%d", i%120)
		def.States[0].Transitions = append(def.States[0].Transitions, machine.TransitionDefinition{Name: fmt.Sprintf("go %d", i), Target: name})
		if i < 120 {
			def.States = append(def.States, machine.StateDefinition{Name: name, Final: true})
		}
	}
	m, err := machine.Compile(def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	checkPicture(t, graph.SVG(m, graph.View{}))
}
