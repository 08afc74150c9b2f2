package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// titles returns the titles of the states or transitions of an SVG.
func titles(t testing.TB, svg []byte, class string) []string {
	var list []string
	for _, n := range read(t, svg).diagram().all(class) {
		list = append(list, n.title())
	}
	return list
}

func TestFactsOfStates(t *testing.T) {
	svg := graph.SVG(parse(t, loop), viewOf("loop"))
	want := []string{"draft, entered 5 times", "sign-off, current, humans decide, entered 1 time", "published, goal"}
	if got := titles(t, svg, "dg-state"); !slices.Equal(got, want) {
		t.Errorf("loop: %q, want %q", got, want)
	}
	svg = graph.SVG(parse(t, hostile), graph.View{})
	got := titles(t, svg, "dg-state")
	for _, want := range []string{"%%, dead end", "unreachable, cannot be reached", "end, goal"} {
		if !slices.Contains(got, want) {
			t.Errorf("hostile: %q is missing in %q", want, got)
		}
	}
}

// What leads out of the goal is never taken, so it makes nothing reachable.
func TestNothingBehindTheGoal(t *testing.T) {
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "states": {
		"a": {"transitions": {"go": "b"}}, "b": {"transitions": {"never": "c"}}, "c": {}}}`)
	svg := graph.SVG(m, graph.View{})
	if got := titles(t, svg, "dg-state"); !slices.Contains(got, "c, dead end, cannot be reached") {
		t.Errorf("states: %q", got)
	}
	if idle := read(t, svg).diagram().all("dg-idle"); len(idle) != 2 { // the line and the label
		t.Errorf("%d idle elements", len(idle))
	}
	if text := graph.DOT(m, graph.View{}); !strings.Contains(text, `[label="never", style=dotted]`) {
		t.Errorf("DOT shows the transition like any other:\n%s", text)
	}
}

func TestOnlyHumansDecide(t *testing.T) {
	const human, ai = `{"role": "proposer", "specialistId": "h", "isHuman": true}`, `{"role": "proposer", "specialistId": "ai", "strategyFnName": "x"}`
	const arbiter = `{"role": "arbiter", "specialistId": "arb"}`
	for _, c := range []struct {
		name, machine, state string
		want                 bool
	}{
		{"nobody", ``, ``, false},
		{"human", human, ``, true},
		{"both", human + "," + ai, ``, false},
		{"human and arbiter", human + "," + arbiter, ``, true},
		{"own list", ai, human, true},
		{"own empty list", human, ` `, false},
		{"reference", human + "," + ai, `{"role": "proposer", "specialistId": "h"}`, true},
		{"reference to both", human + "," + ai, `{"role": "proposer", "specialistId": "h"}, {"role": "proposer", "specialistId": "ai"}`, false},
		{"ai switched off", human + "," + strings.Replace(ai, "}", `, "disabled": true}`, 1), ``, true},
		{"ai switched off here", human + "," + ai, `{"role": "proposer", "specialistId": "h"}, {"role": "proposer", "specialistId": "ai", "enabled": false}`, true},
		{"reference to one switched off", human + "," + strings.Replace(ai, "}", `, "disabled": true}`, 1),
			`{"role": "proposer", "specialistId": "h"}, {"role": "proposer", "specialistId": "ai"}`, true},
		{"human switched off", strings.Replace(human, "}", `, "enabled": false}`, 1), ``, false},
	} {
		own := ""
		if c.state != "" {
			own = `, "specialists": [` + c.state + `]`
		}
		m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "states": {
			"a": {"transitions": {"go": "b"}`+own+`}, "b": {}}, "specialists": [`+c.machine+`]}`)
		if got := strings.Contains(graph.Mermaid(m, graph.View{}), `"a (humans decide)"`); got != c.want {
			t.Errorf("%s: humans decide = %v", c.name, got)
		}
		if strings.Contains(graph.Mermaid(m, graph.View{}), `"b (`) {
			t.Errorf("%s: somebody decides in the goal", c.name)
		}
	}
}

func TestPath(t *testing.T) {
	m := parse(t, triage)
	d := read(t, graph.SVG(m, viewOf("triage"))).diagram()
	var taken []string
	for _, n := range d.all("dg-taken") {
		if n.title() != "" {
			taken = append(taken, n.title()+" "+n.all("dg-pilltext")[0].text)
		}
	}
	want := []string{
		"new: sort → sorting 1", "sorting: assign to billing → billing 2",
		"billing: ask the customer → waiting for customer 3, 5", "waiting for customer: customer answered → billing 4",
	}
	if !slices.Equal(taken, want) {
		t.Errorf("taken: %q, want %q", taken, want)
	}
	now := d.all("dg-now")
	if len(now) != 1 || !strings.HasPrefix(now[0].title(), "waiting for customer, current") {
		t.Errorf("current: %v", now)
	}
	if text := graph.Mermaid(m, viewOf("triage")); !strings.Contains(text, ": ask the customer (2×)\n") || !strings.Contains(text, "class s4 current\n") {
		t.Errorf("Mermaid shows no path:\n%s", text)
	}
	if text := graph.DOT(m, viewOf("triage")); !strings.Contains(text, `[label="ask the customer (2×)", color="#4f46e5", penwidth=3]`) {
		t.Errorf("DOT shows no path:\n%s", text)
	}
}

// The status of a session decides the colour of its state, everywhere.
func TestStatus(t *testing.T) {
	m := parse(t, review)
	for status, class := range map[string]string{
		"": "dg-blue", "running": "dg-blue", "needs_human": "dg-amber", "completed": "dg-green", "stopped": "dg-red", "failed": "dg-red",
	} {
		v := graph.View{State: "pending", Status: status}
		svg := graph.SVG(m, v)
		now := read(t, svg).diagram().all("dg-now")
		if len(now) != 1 || !strings.Contains(now[0].attr["class"], class) {
			t.Errorf("%q: current state %v, want %s", status, now, class)
		}
		if chips := read(t, svg).all("dg-chip"); len(chips) != min(len(status), 1) {
			t.Errorf("%q: %d chips", status, len(chips))
		}
		if status == "completed" && !strings.Contains(graph.DOT(m, v), `fillcolor="#15803d"`) {
			t.Errorf("%q: DOT does not show it", status)
		}
	}
}

func TestUnknownNamesAreIgnored(t *testing.T) {
	m := parse(t, review)
	odd := graph.View{State: "nowhere", Status: "running", Path: []graph.Step{{From: "nowhere", Transition: "approve"}, {From: "pending", Transition: "nothing"}}}
	plain := graph.SVG(m, graph.View{Path: odd.Path})
	if got := graph.SVG(m, odd); string(got) != string(plain) {
		t.Errorf("a session in an unknown state is drawn:\n%s", got)
	}
	if got := titles(t, plain, "dg-taken"); len(got) != 0 {
		t.Errorf("taken: %q", got)
	}
}

func TestRound(t *testing.T) {
	m := parse(t, claim)
	won := read(t, graph.SVG(m, viewOf("won")))
	texts := strings.Join(won.texts(), "\n")
	for _, want := range []string{"Round 2", "policy-model", "weight 0.91", "2 votes", "1 vote", "won the round", "Alignment-weighted margin 0.71 >= threshold 0.5 (leader: pay)"} {
		if !strings.Contains(texts, want) {
			t.Errorf("%q is missing in:\n%s", want, texts)
		}
	}
	if n := len(won.all("dg-round")[0].all("dg-won")); n != 3 { // two proposals and the verdict
		t.Errorf("%d parts of the panel won", n)
	}
	var lines []string
	for _, e := range won.diagram().all("dg-edge") {
		lines = append(lines, e.attr["class"])
	}
	same(t, "lines", lines, []string{"dg-edge dg-taken", "dg-edge", "dg-edge dg-won", "dg-edge dg-open", "dg-edge", "dg-edge", "dg-edge"})
	open := read(t, graph.SVG(m, viewOf("round")))
	steps := open.diagram().all("dg-step")
	if got := steps[3].texts(); !slices.Equal(got, []string{"ask for evidence", "2", "1 vote"}) {
		t.Errorf("taken and proposed: %q", got)
	}
	if texts := open.texts(); !slices.Contains(texts, "not answered yet") || slices.Contains(texts, "won the round") {
		t.Errorf("round without a winner: %q", texts)
	}
}

// The bar of a proposal is as long as its weight, of the highest or of one vote.
func TestBars(t *testing.T) {
	m := parse(t, review)
	for _, c := range []struct {
		weight, other exact.Billionths
		share         float64
	}{
		{exact.One, 0, 1}, {exact.One / 2, exact.One / 4, .5}, {2 * exact.One, 4 * exact.One, .5}, {0, exact.One, 0}, {-exact.One, 0, 0}, {1 << 62, 1 << 62, 1},
	} {
		v := graph.View{State: "pending", Round: &graph.Round{Proposals: []graph.Proposal{
			{Specialist: "a", Transition: "approve", Weight: c.weight}, {Specialist: "b", Transition: "reject", Weight: c.other}}}}
		p := read(t, graph.SVG(m, v)).all("dg-proposal")[0]
		track, bars := p.all("dg-track")[0].box(), p.all("dg-bar")
		got := 0.0
		if len(bars) > 0 {
			got = bars[0].box().w / track.w
		}
		if got < c.share-.02 || got > c.share+.02 {
			t.Errorf("weight %s beside %s: bar of %v, want %v", c.weight, c.other, got, c.share)
		}
	}
}

func TestManyProposals(t *testing.T) {
	v := graph.View{State: "pending", Round: &graph.Round{}}
	for range 100 {
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: "x", Transition: "approve"})
	}
	d := read(t, graph.SVG(parse(t, review), v))
	if n := len(d.all("dg-proposal")); n != 12 || !slices.Contains(d.texts(), "Proposals, the first 12 of 100") {
		t.Errorf("%d proposals: %q", n, d.texts())
	}
	if !slices.Contains(d.texts(), "100 votes") {
		t.Errorf("votes: %q", d.texts())
	}
}

func TestLongNames(t *testing.T) {
	long := "a state whose name is much longer than what any box could hold"
	m := named(t, []string{long, strings.Repeat("W", 128)})
	d := read(t, graph.SVG(m, graph.View{})).diagram()
	for _, s := range d.all("dg-state") {
		lines := s.texts()
		if len(lines) != 2 || !strings.HasSuffix(lines[1], "…") {
			t.Errorf("%s is written as %q", s.title(), lines)
		}
	}
	for _, b := range append(d.all("dg-box"), d.all("dg-behind")...) {
		if b.box().w > 200 || b.box().h > 100 {
			t.Errorf("box of %v", b.box())
		}
	}
	if lines := d.all("dg-state")[0].texts(); lines[0] != "a state whose name" {
		t.Errorf("broken as %q", lines)
	}
}

// The shortest way to the goal is one straight line, whatever else happens.
func TestStraightWay(t *testing.T) {
	boxes := read(t, graph.SVG(parse(t, pipeline), viewOf("pipeline"))).diagram().all("dg-box")
	middle := func(b box) float64 { return b.x + b.w/2 }
	first := middle(boxes[0].box())
	for _, b := range boxes {
		if off := middle(b.box()) - first; off < -1 || off > 1 {
			t.Errorf("the state at %v stands %v aside", b.box(), off)
		}
	}
}

// A session begins on the left, even if something leads to its beginning that
// itself cannot be reached.
func TestInitialComesFirst(t *testing.T) {
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "b", "states": {
		"lost": {"transitions": {"to a": "a"}}, "a": {"transitions": {"go": "b"}}, "b": {}}}`)
	svg := graph.SVG(m, graph.View{})
	checkPicture(t, svg)
	d := read(t, svg).diagram()
	x := func(i int) float64 { return d.all("dg-box")[i].box().x }
	if x(1) > x(0) || x(1) > x(2) {
		t.Errorf("the initial state at %v, the others at %v and %v", x(1), x(0), x(2))
	}
}

func TestSmallestMachine(t *testing.T) {
	m := parse(t, `{"machineName": "m", "initialState": "a", "goalState": "a", "states": {"a": {"transitions": {"again": "a", "and again": "a"}}}}`)
	svg := graph.SVG(m, graph.View{State: "a", Status: "completed"})
	checkPicture(t, svg)
	if got := titles(t, svg, "dg-step"); !slices.Equal(got, []string{"a: again → a", "a: and again → a"}) {
		t.Errorf("transitions: %q", got)
	}
}

func TestDefinitionBuiltInGo(t *testing.T) {
	m, err := machine.Compile(&machine.Definition{MachineName: "m", InitialState: "a", GoalState: "a",
		States: []machine.StateDefinition{{Name: "a"}}}, machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	checkPicture(t, graph.SVG(m, graph.View{}))
}
