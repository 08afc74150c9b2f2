package graph_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/dialai/dialai/graph"
	"github.com/dialai/dialai/machine"
)

func TestZZ(t *testing.T) {
	names := []string{"1. foo", "- foo", "*a* **b**", "`x`", "x __b__", "classDef a fill:#fff;", "style x fill:#f9f;", "click s0 href", "http://x.com/a?b=c#d;", "end note", "direction TB", "<<choice>>", "a\\nb<br/>", "state a {", "--", "# heading", "> quote", "$$x^2$$", "fa:fa-car", "accTitle: x", "[link](http://a.b)", "![i](x)", "&lt;b&gt;", "%%{init:{}}%%", "---", "~", "hide empty description", "a::b", "ﬂ°°35¶ß", "x;y", "#35;", "1) a", "+ plus", "=="}
	def := &machine.Definition{MachineName: "z", InitialState: names[0], GoalState: names[1]}
	for i, n := range names {
		def.States = append(def.States, machine.StateDefinition{Name: n, Transitions: []machine.TransitionDefinition{{Name: names[(i*7+3)%len(names)], Target: names[(i+1)%len(names)]}}})
	}
	m, err := machine.Compile(def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/zz.mmd", []byte(graph.Mermaid(m, graph.View{})), 0o644)
	os.WriteFile("/tmp/zz.dot", []byte(graph.DOT(m, graph.View{})), 0o644)
	os.WriteFile("/tmp/zz.svg", graph.SVG(m, graph.View{}), 0o644)
	j, _ := json.Marshal(names)
	fmt.Println(string(j))
}

func TestYY(t *testing.T) {
	for _, size := range []struct{ states, per int }{{10, 3}, {20, 3}, {60, 4}, {130, 3}, {300, 2}, {1000, 10}} {
		m := full(t, size.states, size.per)
		os.WriteFile(fmt.Sprintf("/tmp/full%d.svg", size.states), graph.SVG(m, graph.View{}), 0o644)
	}
}
