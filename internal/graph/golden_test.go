package graph_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/graph"
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
		{From: "new", Transition: "sort"}, {From: "sorting", Transition: "assign to billing"}, {From: "billing", Transition: "ask the customer"},
		{From: "waiting for customer", Transition: "customer answered"}, {From: "billing", Transition: "ask the customer"},
	}}},
	{"round", claim, graph.View{State: "assessment", Status: "needs_human",
		Path: []graph.Step{{From: "received", Transition: "documents complete"}, {From: "assessment", Transition: "ask for evidence"}, {From: "waiting", Transition: "evidence arrived"}},
		Round: &graph.Round{Number: 4, Prompt: "Is the damage covered, and is the amount plausible? Pay, refuse, or ask for more evidence.",
			Proposals: []graph.Proposal{
				{Specialist: "maria", Human: true, Transition: "", Weight: exact.One},
				{Specialist: "policy-model", Human: false, Transition: "pay", Weight: 910_000_000},
				{Specialist: "fraud-model", Human: false, Transition: "refuse", Weight: 640_000_000},
				{Specialist: "price-check", Human: false, Transition: "ask for evidence", Weight: 480_000_000},
			},
			Verdict: "Alignment-weighted margin 0.13 below threshold 0.5: a human must decide"},
	}},
	{"won", claim, graph.View{State: "assessment", Status: "running",
		Path: []graph.Step{{From: "received", Transition: "documents complete"}},
		Round: &graph.Round{Number: 2, Prompt: "Is the damage covered, and is the amount plausible?",
			Proposals: []graph.Proposal{
				{Specialist: "policy-model", Human: false, Transition: "pay", Weight: 910_000_000},
				{Specialist: "fraud-model", Human: false, Transition: "ask for evidence", Weight: 240_000_000},
				{Specialist: "price-check", Human: false, Transition: "pay", Weight: 480_000_000},
			},
			Verdict: "Alignment-weighted margin 0.71 >= threshold 0.5 (leader: pay)", Winner: "pay"},
	}},
	{"pipeline", pipeline, graph.View{State: "canary", Status: "stopped", Path: []graph.Step{
		{From: "plan", Transition: "write"}, {From: "write", Transition: "format"}, {From: "format", Transition: "compile"}, {From: "compile", Transition: "unit test"}, {From: "unit test", Transition: "fix"},
		{From: "write", Transition: "format"}, {From: "format", Transition: "compile"}, {From: "compile", Transition: "unit test"}, {From: "unit test", Transition: "integrate"}, {From: "integrate", Transition: "review"},
		{From: "review", Transition: "stage"}, {From: "stage", Transition: "canary"},
	}}},
	{"loop", loop, graph.View{State: "sign-off", Status: "needs_human",
		Path: []graph.Step{{From: "draft", Transition: "improve"}, {From: "draft", Transition: "improve"}, {From: "draft", Transition: "improve"}, {From: "draft", Transition: "improve"}, {From: "draft", Transition: "hand in"}}}},
	{"people", people, graph.View{State: "contract", Status: "needs_human", Path: []graph.Step{{From: "requested", Transition: "contract"}}}},
	{"hostile", hostile, graph.View{State: `"quoted" \ <b>&amp;`, Status: "failed", Path: []graph.Step{{From: "[*]", Transition: "-->"}}}},
}

func TestGolden(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			m := parse(t, s.machine)
			golden(t, s.name+".mmd", []byte(graph.Mermaid(m, s.view)))
			golden(t, s.name+".dot", []byte(graph.DOT(m, s.view)))
			golden(t, s.name+".svg", graph.SVG(m, s.view))
			golden(t, s.name+".txt", graph.Draw(m, s.view, "text"))
			if s.view.Round == nil {
				golden(t, s.name+".json", graph.Draw(m, s.view, "layout"))
			}
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
