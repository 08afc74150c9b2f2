package graph_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// randomView walks through m and returns the view of where it got to.
func randomView(rng *rand.Rand, m *machine.Machine) graph.View {
	statuses := []string{"", "running", "needs_human", "completed", "stopped", "failed", "paused <for now>"}
	v := graph.View{Status: statuses[rng.IntN(len(statuses))]}
	at := m.Initial()
	for range rng.IntN(12) {
		if len(at.Transitions) == 0 || at.Terminal() {
			break
		}
		next := at.Transitions[rng.IntN(len(at.Transitions))]
		v.Path = append(v.Path, graph.Step{From: at.Name, Transition: next.Name})
		at = next.To
	}
	v.State = at.Name
	if rng.IntN(2) == 0 {
		v.Round = &graph.Round{Number: rng.IntN(3), Prompt: strings.Repeat("why? ", rng.IntN(80))}
		for i := range rng.IntN(20) {
			p := graph.Proposal{Specialist: fmt.Sprintf("specialist %d", i), Human: rng.IntN(2) == 0}
			if len(at.Transitions) > 0 && rng.IntN(4) > 0 {
				p.Transition = at.Transitions[rng.IntN(len(at.Transitions))].Name
				v.Round.Winner = p.Transition
			}
			v.Round.Proposals = append(v.Round.Proposals, p)
		}
	}
	return v
}

func TestRandomMachines(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			m := random(t, rng, 1+rng.IntN(15), 1+rng.IntN(5))
			v := randomView(rng, m)
			svg := graph.SVG(m, v)
			checkPicture(t, svg)
			checkComplete(t, m, v, svg)
			if !bytes.Equal(svg, graph.SVG(m, v)) {
				t.Error("drawn differently the second time")
			}
		})
	}
}

// checkComplete checks that each of the three drawings shows every state and
// every transition exactly as often as the machine has it.
func checkComplete(t testing.TB, m *machine.Machine, v graph.View, svg []byte) {
	t.Helper()
	var states, steps []string
	for _, s := range m.States() {
		states = append(states, s.Name)
		for _, tr := range s.Transitions {
			steps = append(steps, fmt.Sprintf("%s: %s → %s", s.Name, tr.Name, tr.Target))
		}
	}
	same(t, "states of the SVG", svgNames(t, svg, "dg-state", ", "), states)
	same(t, "transitions of the SVG", svgNames(t, svg, "dg-step", " ("), steps)
	for language, text := range map[string]string{"Mermaid": graph.Mermaid(m, v), "DOT": graph.DOT(m, v)} {
		drawn, drawnSteps := readText(text)
		same(t, "states of "+language, drawn, states)
		same(t, "transitions of "+language, drawnSteps, steps)
	}
}

// svgNames returns the beginnings, up to end, of the titles of a class.
func svgNames(t testing.TB, svg []byte, class, end string) []string {
	var names []string
	for _, n := range read(t, svg).diagram().all(class) {
		name, _, _ := strings.Cut(n.title(), "\n")
		name, _, _ = strings.Cut(name, end)
		names = append(names, name)
	}
	return names
}

var (
	stateLine = regexp.MustCompile(`^    (?:state "(?P<a>.*)" as (?P<b>s\d+)|(?P<c>s\d+) \[label="(?P<d>[^"]*)".*\])$`)
	// factsAndNotes are what follows a name.
	factsAndNotes = regexp.MustCompile(`(?: \(|<br>|\\n).*`)
	stepLine      = regexp.MustCompile(`^    (s\d+) --?> (s\d+) (?:: (.*)|\[label="([^"]*)".*\])$`)
)

// readText reads states and transitions back from Mermaid or DOT. Names have
// letters, digits and blanks only.
func readText(text string) (states, steps []string) {
	byID := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if f := stateLine.FindStringSubmatch(line); f != nil {
			name := factsAndNotes.ReplaceAllString(f[1]+f[4], "")
			byID[f[2]+f[3]] = name
			states = append(states, name)
		}
	}
	for line := range strings.Lines(text) {
		if f := stepLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); f != nil {
			name := factsAndNotes.ReplaceAllString(f[3]+f[4], "")
			steps = append(steps, fmt.Sprintf("%s: %s → %s", byID[f[1]], name, byID[f[2]]))
		}
	}
	return states, steps
}

// same compares two lists whatever their order.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

func TestSamplesAreTidy(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) { checkPicture(t, graph.SVG(parse(t, s.machine), s.view)) })
	}
}
