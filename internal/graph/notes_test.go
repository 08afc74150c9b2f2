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

// What a machine says about data and people is in full in the titles, whatever is cut.
func TestNotesInFull(t *testing.T) {
	svg := graph.SVG(parse(t, people), graph.View{})
	checkPicture(t, svg)
	same(t, "transitions", titles(t, svg, "dg-step"), []string{
		"requested: pay small → paid\nwhen data.amount <= 1000\nsets approvedBy",
		"requested: pay → paid (irreversible)\nwhen data.amount > 1000\ntakes 2 of finance, not starter\nsets approvedBy, approvedAt",
		"requested: contract → contract\nsets kind, reviewer, openedAt, clauses, deadline, renewal",
		"contract: sign → paid\ntakes legal + finance, not previous, not who ruled in requested",
		"contract: ask again → requested\nwhen size(data.clauses) > 0 && data.clauses.exists(c, c.risk == 'high' && !c.accepted)\ntakes 1 approval",
		"contract: board → paid\ntakes 2 approvals, with board", "contract: drop → dropped\ntakes 1 of legal",
	})
	if got := titles(t, svg, "dg-state")[0]; got != "requested\ndeciders: finance, board, dan" {
		t.Errorf("state: %q", got)
	}
}

// What takes approvals is marked as what cannot be undone is; the legend has an entry for
// each only where there is one.
func TestApprovalsAreMarked(t *testing.T) {
	const irreversible, approvals = `"irreversible": true`, `"approvals": 1`
	for _, c := range []struct {
		member string
		icons  int
		legend []string
	}{
		{`"description": "neither"`, 0, nil},
		{irreversible, 1, []string{"irreversible"}},
		{approvals, 1, []string{"takes approvals"}},
		{irreversible + "," + approvals, 2, []string{"irreversible", "takes approvals"}},
	} {
		m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "specialists": [{"role": "proposer", "specialistId": "ann", "isHuman": true}],
			"states": {"a": {"transitions": {"go": {"target": "b", `+c.member+`}}}, "b": {}}}`)
		root := read(t, graph.SVG(m, graph.View{}))
		step := root.diagram().all("dg-step")[0]
		if got := len(step.all("dg-icon")); got != c.icons {
			t.Errorf("%s: %d icons, want %d", c.member, got, c.icons)
		}
		if got, want := strings.Contains(step.attr["class"], "dg-hard"), c.icons > 0; got != want {
			t.Errorf("%s: drawn as what only humans execute: %v", c.member, got)
		}
		if got, want := strings.Contains(graph.DOT(m, graph.View{}), `fontcolor="#be123c"]`), c.icons > 0; got != want {
			t.Errorf("%s: DOT marks it: %v", c.member, got)
		}
		var legend []string
		for _, text := range root.all("dg-legend")[0].texts() {
			if text == "irreversible" || text == "takes approvals" {
				legend = append(legend, text)
			}
		}
		if !slices.Equal(legend, c.legend) {
			t.Errorf("%s: legend %q, want %q", c.member, legend, c.legend)
		}
	}
}

func TestApprovalsInWords(t *testing.T) {
	for approvals, want := range map[string]string{
		`1`:                           "takes 1 approval",
		`2`:                           "takes 2 approvals",
		`{"from": ["group:finance"]}`: "takes 1 of finance",
		`{"count": 2, "from": ["group:finance", "dan"]}`:                     "takes 2 of finance or dan",
		`{"each": ["group:finance"]}`:                                        "takes 1 of finance",
		`{"each": ["group:finance", "group:legal"]}`:                         "takes finance + legal",
		`{"count": 3, "each": ["group:finance", "group:legal"]}`:             "takes 3 approvals, with finance + legal",
		`{"count": 2, "from": ["group:finance"], "each": ["group:finance"]}`: "takes 2 of finance, with finance",
		`{"exclude": ["starter"]}`:                                           "takes 1 approval, not starter",
		`{"count": 2, "exclude": ["previous", "a"]}`:                         "takes 2 approvals, not previous, not who ruled in a",
	} {
		m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "groups": {"finance": ["ann", "bob"], "legal": ["dan"]},
			"specialists": [{"role": "proposer", "specialistId": "ann", "isHuman": true}, {"role": "proposer", "specialistId": "bob", "isHuman": true},
				{"role": "proposer", "specialistId": "dan", "isHuman": true}],
			"states": {"a": {"transitions": {"go": {"target": "b", "approvals": `+approvals+`}}}, "b": {}}}`)
		_, got, _ := strings.Cut(titles(t, graph.SVG(m, graph.View{}), "dg-step")[0], "\n")
		if got != want {
			t.Errorf("%s: %q, want %q", approvals, got, want)
		}
	}
}

// A note that has no room is cut, or counted; what was cut is where a pointer rests.
func TestLongNotes(t *testing.T) {
	long := strings.Repeat("data.amount > 1000 && ", 40) + "true"
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {
		"go": {"target": "b", "when": "=`+"\\n\\t"+long+`", "set": {"one": 1, "two": 2}}}}, "b": {}}}`)
	d := read(t, graph.SVG(m, graph.View{})).diagram()
	lines := d.all("dg-step")[0].texts()
	if len(lines) != 4 || lines[1] != "when data.amount > 1000" || !strings.HasSuffix(lines[2], "…") || lines[3] != "sets one, two" {
		t.Errorf("drawn as %q", lines)
	}
	if b := d.all("dg-behind")[0].box(); b.w > 170 || b.h > 80 {
		t.Errorf("box of %v", b)
	}
	if text := graph.DOT(m, graph.View{}); !strings.Contains(text, `", tooltip="when `+strings.ReplaceAll(long, "&", "&amp;")+`\nsets one, two"]`) {
		t.Errorf("DOT does not say what it cut:\n%s", text)
	}
	if text := graph.Mermaid(m, graph.View{}); !strings.Contains(text, ": go<br>when data#46;amount #62; 1000<br>#38;#38; data") || strings.Count(text, "data#46;amount") > 2 {
		t.Errorf("Mermaid shows the condition as\n%s", text)
	}
	_, sets, _ := strings.Cut(graph.Mermaid(parse(t, people), graph.View{}), ": contract<br>")
	if !strings.HasPrefix(sets, "sets 6 members\n") {
		t.Errorf("a long list is drawn as %q", sets)
	}
}

// The legend says who is in a group, in one line each, and ends after twelve.
func TestGroupsInLegend(t *testing.T) {
	def := *parse(t, review).Definition()
	for i := range 40 {
		def.Specialists = append(def.Specialists, machine.Specialist{Role: machine.Proposer, SpecialistID: fmt.Sprintf("human-%d", i), IsHuman: true})
	}
	def.Groups = append(def.Groups, machine.Group{Name: "all", Humans: ids(def.Specialists[2:])})
	for i := range 14 {
		def.Groups = append(def.Groups, machine.Group{Name: fmt.Sprintf("g%d", i), Humans: []string{"human-1", "human-2"}})
	}
	m, err := machine.Compile(&def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	legend := read(t, graph.SVG(m, graph.View{})).all("dg-legend")[0]
	var texts, full []string
	for _, g := range legend.all("dg-group") {
		texts, full = append(texts, g.texts()...), append(full, g.title())
	}
	if len(texts) != 13 || !strings.HasPrefix(texts[0], "all: human-0, human-1, ") || !strings.HasSuffix(texts[0], "…") || texts[1] != "g0: human-1, human-2" || texts[12] != "and 3 more groups" {
		t.Errorf("legend: %q", texts)
	}
	if !strings.HasSuffix(full[0], ", human-38, human-39") {
		t.Errorf("in full: %q", full[0])
	}
	if text := graph.DOT(m, graph.View{}); !strings.Contains(text, `\ng0: human-1, human-2\n`) || !strings.Contains(text, `\nand 3 more groups"`) {
		t.Errorf("DOT names no groups:\n%s", text)
	}
}

func ids(list []machine.Specialist) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].SpecialistID)
	}
	return ids
}

// withPeople gives the transitions and states of a random machine conditions, assignments,
// approvals and deciders.
func withPeople(t testing.TB, rng *rand.Rand, m *machine.Machine) *machine.Machine {
	t.Helper()
	def := *m.Definition()
	for _, id := range []string{"ann", "bob", "cyd"} {
		def.Specialists = append(def.Specialists, machine.Specialist{Role: machine.Proposer, SpecialistID: id, IsHuman: true})
	}
	def.Groups = append(def.Groups, machine.Group{Name: "desk", Humans: []string{"ann", "bob"}})
	for i := range def.States {
		s := &def.States[i]
		if rng.IntN(3) == 0 {
			s.Deciders = []string{"group:desk", "cyd"}
		}
		for j := range s.Transitions {
			x := &s.Transitions[j]
			if rng.IntN(2) == 0 {
				x.When = "= data.amount > 1" + strings.Repeat(" + 1", rng.IntN(20))
			}
			if rng.IntN(2) == 0 {
				x.Set = []byte(`{"one": 1` + strings.Repeat(`, "`+strings.Repeat("n", 1+rng.IntN(30))+`": 2`, rng.IntN(2)) + `}`)
			}
			if rng.IntN(2) == 0 {
				x.Approvals = &machine.Approvals{Count: 1 + rng.IntN(2), From: []string{"group:desk"}, Exclude: []string{"starter", "s 0"}[:rng.IntN(3)]}
			}
		}
	}
	m, err := machine.Compile(&def, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRandomNotes(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			m := withPeople(t, rng, random(t, rng, 1+rng.IntN(12), 1+rng.IntN(5)))
			v := randomView(rng, m)
			svg := graph.SVG(m, v)
			checkPicture(t, svg)
			checkComplete(t, m, v, svg)
			checkDrawing(t, m, graph.Layout(m))
			checkPage(t, m)
		})
	}
}

// Names and expressions that mean something in one of the formats mean nothing there.
func TestHostileNotes(t *testing.T) {
	drawn := 0
	for _, name := range hard {
		def := *parse(t, review).Definition()
		def.Specialists = []machine.Specialist{{Role: machine.Proposer, SpecialistID: "ann", IsHuman: true}}
		def.Groups = append(def.Groups, machine.Group{Name: name, Humans: []string{"ann"}})
		pending := &def.States[0]
		pending.Deciders = []string{"group:" + name}
		pending.Transitions = slices.Clone(pending.Transitions)
		pending.Transitions[0].When = fmt.Sprintf("= data.text != %q", name)
		pending.Transitions[0].Approvals = &machine.Approvals{Each: []string{"group:" + name}}
		pending.Transitions[1].Set = fmt.Appendf(nil, "{%q: 1}", name)
		m, err := machine.Compile(&def, machine.Checks{Stored: true})
		if err != nil {
			continue // no name of a group or member
		}
		drawn++
		checkPicture(t, graph.SVG(m, graph.View{}))
		if text := graph.Mermaid(m, graph.View{}); strings.ContainsAny(strings.ReplaceAll(text, "<br>", ""), "<>`$") != strings.Contains(text, "-->") {
			t.Errorf("%q is written as\n%s", name, text)
		}
		for line := range strings.Lines(graph.DOT(m, graph.View{})) {
			for rest := line; ; {
				_, text, found := strings.Cut(rest, `="`)
				if !found {
					break
				}
				_, rest = unquote(t, `"`+text)
				if !strings.HasPrefix(rest, "]") && !strings.HasPrefix(rest, ", ") && rest != "\n" {
					t.Errorf("%q: after a string: %q", name, rest)
				}
			}
		}
	}
	if drawn < len(hard)/2 {
		t.Errorf("%d of %d names drawn", drawn, len(hard))
	}
}

// By when a state is to be left, and what its timer executes, is drawn in every form.
func TestTimersAreDrawn(t *testing.T) {
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "specialists": [{"role": "proposer", "specialistId": "ann", "isHuman": true}],
		"states": {"a": {"due": {"in": "36h", "then": "late"}, "transitions": {"go": "b", "late": "c"}}, "c": {"due": {"at": "= data.deadline"}, "transitions": {"go": "b"}}, "b": {}}}`)
	same(t, "states", titles(t, graph.SVG(m, graph.View{}), "dg-state")[:2], []string{"a, humans decide\ndue in 36h", "c, humans decide\ndue at data.deadline"})
	same(t, "transitions", titles(t, graph.SVG(m, graph.View{}), "dg-step")[:2], []string{"a: go → b", "a: late → c\ntimer: in 36h"})
	plain := strings.NewReplacer("#58;", ":", "#46;", ".")
	for name, text := range map[string]string{"DOT": graph.DOT(m, graph.View{}), "Mermaid": plain.Replace(graph.Mermaid(m, graph.View{}))} {
		if !strings.Contains(text, "timer: in 36h") || !strings.Contains(text, "due in 36h") || !strings.Contains(text, "due at data.deadline") {
			t.Errorf("%s does not show the timer:\n%s", name, text)
		}
	}
}
