package graph

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/machine"
)

// stateText returns the name of a state with the facts that Mermaid and DOT say
// in words, and below it its notes.
func (s *scene) stateText(i int) []string {
	var facts []string
	for _, fact := range []struct {
		holds bool
		words string
	}{
		{s.marks[i].human, "humans decide"},
		{s.marks[i].dead, "dead end"},
		{s.marks[i].lost, "cannot be reached"},
		{s.marks[i].visits > 1, fmt.Sprintf("%d×", s.marks[i].visits)},
	} {
		if fact.holds {
			facts = append(facts, fact.words)
		}
	}
	return append([]string{withFacts(s.m.States()[i].Name, facts)}, noteLines(s.stateNotes(i))...)
}

// stepText returns the name of a transition with the facts about it, and below it
// its notes.
func (s *scene) stepText(t *machine.Transition) []string {
	var facts []string
	if t.Irreversible {
		facts = append(facts, "irreversible")
	}
	if n := len(s.taken[t]); n > 0 {
		facts = append(facts, fmt.Sprintf("%d×", n))
	}
	return append([]string{withFacts(t.Name, facts)}, noteLines(s.stepNotes(t))...)
}

func withFacts(name string, facts []string) string {
	if len(facts) == 0 {
		return clean(name)
	}
	return clean(name) + " (" + strings.Join(facts, ", ") + ")"
}

// A look is how Mermaid and DOT show a kind of state: in colours that can be
// read on light and on dark pages.
type look struct {
	name, fill, stroke, text string
	dashed                   bool
}

// looks returns every look but the plain one, whose name is "".
func looks(status string) []look {
	current := map[string]look{
		"dg-blue":  {fill: "#4f46e5", stroke: "#312e81"},
		"dg-green": {fill: "#15803d", stroke: "#14532d"},
		"dg-amber": {fill: "#b45309", stroke: "#78350f"},
		"dg-red":   {fill: "#be123c", stroke: "#881337"},
	}[toneOf(status).class]
	current.name, current.text = "current", "#ffffff"
	return []look{
		current,
		{name: "goal", fill: "#dcfce7", stroke: "#15803d", text: "#14532d"},
		{name: "final", fill: "#e2e8f0", stroke: "#475569", text: "#0f172a"},
		{name: "deadEnd", fill: "#fff1f2", stroke: "#be123c", text: "#881337", dashed: true},
		{name: "visited", fill: "#e0e7ff", stroke: "#4f46e5", text: "#1e1b4b"},
		{name: "unreachable", fill: "#f8fafc", stroke: "#cbd5e1", text: "#64748b", dashed: true},
	}
}

// look returns the name of the look of a state.
func (s *scene) look(i int) string {
	st, mark := &s.m.States()[i], s.marks[i]
	switch {
	case mark.current:
		return "current"
	case st.Goal:
		return "goal"
	case st.Final:
		return "final"
	case mark.dead:
		return "deadEnd"
	case mark.visits > 0:
		return "visited"
	case mark.lost:
		return "unreachable"
	}
	return ""
}

// depth returns how many steps the farthest state is from the initial one.
func (s *scene) depth() int {
	g := newDigraph(len(s.marks), s.m.Initial().Index, s.edges)
	steps := make([]int, g.n)
	deepest := 0
	for _, v := range g.breadthFirst() {
		for _, i := range g.out[v] {
			if to := g.edges[i].to; to != g.initial && steps[to] == 0 && to != v {
				steps[to] = steps[v] + 1
				deepest = max(deepest, steps[to])
			}
		}
	}
	return deepest
}
