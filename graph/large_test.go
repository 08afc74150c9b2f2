package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/graph"
	"github.com/dialai/dialai/machine"
)

// random returns a machine of n states, each with up to most transitions.
func random(t testing.TB, rng *rand.Rand, n, most int) *machine.Machine {
	t.Helper()
	def := &machine.Definition{MachineName: "random", InitialState: "s 0", GoalState: fmt.Sprintf("s %d", rng.IntN(n))}
	for i := range n {
		s := machine.StateDefinition{Name: fmt.Sprintf("s %d", i), Final: rng.IntN(8) == 0, Irreversible: rng.IntN(8) == 0}
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
