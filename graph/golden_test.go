package graph_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/graph"
	"github.com/dialai/dialai/machine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// parse compiles a machine that must be right.
func parse(t testing.TB, text string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("machine.json", []byte(text), machine.Checks{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A sample is one machine with one view of it.
type sample struct {
	name, machine string
	view          graph.View
}

// samples are drawn into testdata.
var samples = []sample{
	{"review", review, graph.View{}},
	{"triage", triage, graph.View{State: "waiting for customer", Status: "running", Path: []graph.Step{
		{"new", "sort"}, {"sorting", "assign to billing"}, {"billing", "ask the customer"},
		{"waiting for customer", "customer answered"}, {"billing", "ask the customer"},
	}}},
	{"round", claim, graph.View{State: "assessment", Status: "needs_human",
		Path: []graph.Step{{"received", "documents complete"}, {"assessment", "ask for evidence"}, {"waiting", "evidence arrived"}},
		Round: &graph.Round{Number: 4, Prompt: "Is the damage covered, and is the amount plausible? Pay, refuse, or ask for more evidence.",
			Proposals: []graph.Proposal{
				{"maria", true, "", exact.One},
				{"policy-model", false, "pay", 910_000_000},
				{"fraud-model", false, "refuse", 640_000_000},
				{"price-check", false, "ask for evidence", 480_000_000},
			},
			Verdict: "Alignment-weighted margin 0.13 below threshold 0.5: a human must decide"},
	}},
	{"won", claim, graph.View{State: "assessment", Status: "running",
		Path: []graph.Step{{"received", "documents complete"}},
		Round: &graph.Round{Number: 2, Prompt: "Is the damage covered, and is the amount plausible?",
			Proposals: []graph.Proposal{
				{"policy-model", false, "pay", 910_000_000},
				{"fraud-model", false, "ask for evidence", 240_000_000},
				{"price-check", false, "pay", 480_000_000},
			},
			Verdict: "Alignment-weighted margin 0.71 >= threshold 0.5 (leader: pay)", Winner: "pay"},
	}},
	{"pipeline", pipeline, graph.View{State: "canary", Status: "stopped", Path: []graph.Step{
		{"plan", "write"}, {"write", "format"}, {"format", "compile"}, {"compile", "unit test"}, {"unit test", "fix"},
		{"write", "format"}, {"format", "compile"}, {"compile", "unit test"}, {"unit test", "integrate"}, {"integrate", "review"},
		{"review", "stage"}, {"stage", "canary"},
	}}},
	{"loop", loop, graph.View{State: "sign-off", Status: "needs_human",
		Path: []graph.Step{{"draft", "improve"}, {"draft", "improve"}, {"draft", "improve"}, {"draft", "improve"}, {"draft", "hand in"}}}},
	{"hostile", hostile, graph.View{State: `"quoted" \ <b>&amp;`, Status: "failed", Path: []graph.Step{{"[*]", "-->"}}}},
}

func TestGolden(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			m := parse(t, s.machine)
			golden(t, s.name+".mmd", []byte(graph.Mermaid(m, s.view)))
			golden(t, s.name+".dot", []byte(graph.DOT(m, s.view)))
			golden(t, s.name+".svg", graph.SVG(m, s.view))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; if the new drawing is right, run go test ./graph -update\n%s", file, got)
	}
}

// viewOf returns the view of a sample.
func viewOf(name string) graph.View {
	for _, s := range samples {
		if s.name == name {
			return s.view
		}
	}
	panic("no sample " + name)
}
