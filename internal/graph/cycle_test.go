package graph_test

import (
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/graph"
)

// TestACycleIsReadFromItsEntry draws a cycle that every order enters at the same state:
// its states stand side by side in the order in which a session goes through them, and
// only what leads back is drawn against that.
func TestACycleIsReadFromItsEntry(t *testing.T) {
	m := parse(t, `{"machineName": "cycle", "initialState": "open", "goalState": "done", "states": {
		"open": {"transitions": {"start": "draft"}}, "draft": {"transitions": {"submit": "review"}},
		"review": {"transitions": {"send back": "draft", "accept": "done"}}, "done": {}}}`)
	left := map[string]float64{}
	for _, s := range read(t, graph.SVG(m, graph.View{})).diagram().all("dg-state") {
		left[s.texts()[0]] = s.child[slices.IndexFunc(s.child, func(n *node) bool { return n.name == "rect" })].box().x
	}
	for _, step := range [][2]string{{"open", "draft"}, {"draft", "review"}, {"review", "done"}} {
		if left[step[0]] >= left[step[1]] {
			t.Errorf("%s does not stand to the left of %s: %v", step[0], step[1], left)
		}
	}
}
