package runner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lint"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// found returns findings in the form level code path message.
func found(t *testing.T, m *machine.Machine, list []machine.Problem) string {
	t.Helper()
	var lines []string
	for _, p := range m.Lint(machine.LintOptions{Priced: func(string) bool { return true }, Decisions: list}) {
		if p.Line == 0 || p.Hint == "" {
			t.Errorf("%+v has no place or no hint", p)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", p.Level(), p.Code, p.Path, p.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func ai(id, model string) string {
	return entry("proposer", id, `"modelId":"`+model+`","contextFn":"fn"`)
}

// marked are states of which everything is said.
const marked = `"open":{"irreversible":false,"transitions":{"finish":"done","again":"open"}},"done":{}`

// needy is a state with a choice that needs a payload.
const needy = `"open":{"irreversible":false,"transitions":{"fin/ish":{"target":"done","parameters":{"type":"object","required":["why"]}},"finish":{"target":"open","parameters":{"type":"object"}}}},"done":{}`

// TestLintOfTheFile finds what a definition alone shows.
func TestLintOfTheFile(t *testing.T) {
	models := []string{ai("a", "m"), ai("b", "m"), ai("c", "m")}
	for _, c := range []struct {
		d    def
		want string
	}{
		{def{states: marked, who: []string{ai("a", "m"), ai("b", "n"), ai("c", "o"), human("h"), half}}, ""},
		{def{states: marked, who: []string{ai("a", "m"), half}}, ""},
		{def{states: marked, who: models, top: `"optionOrder":"declared"`},
			`info DIV003 /specialists everyone sees the options in the same order
warning DIV001 /specialists 3 specialists, effective 1.3
warning DIV002 /specialists all 3 specialists are of the model "m"`},
		{def{states: marked, who: models}, `warning DIV002 /specialists all 3 specialists are of the model "m"`},
		{def{states: marked, who: []string{fn("a"), arb("bayes", threshold("0.9"))}}, `warning RISK001 /specialists a threshold alone promises nothing`},
		{def{states: marked, who: []string{fn("a"), arb("bayes")}, top: `"consensusThreshold":0.9`}, `warning RISK001 /consensusThreshold a threshold alone promises nothing`},
		{def{states: marked, who: []string{fn("a"), arb("bayes")}}, ""},
		{def{states: marked, who: []string{fn("a"), arb("bayes")}, top: `"risk":{"maxError":0.001}`},
			`warning RISK003 /risk maxError 0.001 with confidence 0.9 takes N human decisions or more, even without an error`},
		{def{states: `"open":{"irreversible":false,"risk":{"maxError":0.001},"transitions":{"finish":"done","again":"open"}},"done":{}`, who: []string{fn("a"), arb("bayes")}},
			`warning RISK003 /states/open/risk maxError 0.001 with confidence 0.9 takes N human decisions or more, even without an error`},
		{def{states: `"open":{"transitions":{"finish":"done","stop":"end","again":"open"}},"end":{"final":true},"done":{}`, who: []string{fn("a"), half}},
			`info IRR001 /states/open state "open": "finish" or "stop" ends the session, and nothing says whether that can be undone`},
		{def{states: `"open":{"transitions":{"finish":{"target":"done","irreversible":false},"stop":{"target":"end","irreversible":true}}},"end":{"final":true},"done":{}`, who: []string{fn("a"), half}}, ""},
		{def{states: `"open":{"transitions":{"finish":"done"}},"done":{}`, who: []string{human("h"), half}}, ""}, // nobody else decides
		{def{states: needy, who: []string{first("a"), entry("proposer", "b", `"strategyFn":"= \"finish\""`), human("off", `"disabled":true`), half}},
			`warning PARAM001 /states/open/transitions/fin~1ish/parameters state "open": "fin/ish" needs a payload (validating root: required: missing properties: ["why"]), and only rules and built-in strategies take part, which have none to give`},
		{def{states: needy, who: []string{first("a"), human("h"), half}}, ""},
		{def{states: needy, who: []string{first("a"), fn("f"), half}}, ""},
		{def{states: needy, who: []string{first("a"), web("w"), half}}, ""},
		{def{states: needy, who: []string{first("a"), ai("m", "m"), half}}, ""},
		{def{states: `"open":{"irreversible":false,"transitions":{"on":"a/b"}},"a/b":{"transitions":{"finish":"done","back":"open"},"specialists":[` + models[0] + `,` + ai("z", "m") + `]},"done":{}`, who: []string{fn("x"), half}},
			`info IRR001 /states/a~1b state "a/b": "finish" ends the session, and nothing says whether that can be undone
warning DIV002 /states/a~1b/specialists all 2 specialists are of the model "m"`},
	} {
		m := parse(t, c.d.text())
		got := found(t, m, lint.Machine(m))
		for _, word := range strings.Fields(got) {
			if len(word) > 3 && strings.Trim(word, "0123456789") == "" {
				got = strings.ReplaceAll(got, word, "N")
			}
		}
		if got != c.want {
			t.Errorf("%s: found are\n%s\nwant\n%s", c.d.text(), got, c.want)
		}
	}
}

// TestLintOfPanels (C5.1, C5.2) finds panels by which no round can be decided without a
// human: a number above the panel, somebody required who takes no part, or is off.
func TestLintOfPanels(t *testing.T) {
	two := []string{fn("a"), fn("b"), human("h"), half}
	required := []string{fn("a"), fn("b", `"required":true`), human("h"), half}
	states := func(own string) string {
		return `"open":{"irreversible":false,` + own + `"transitions":{"finish":"done","again":"open"}},"done":{}`
	}
	for _, c := range []struct {
		name string
		d    def
		want string
	}{
		{"as many as there are", def{states: states(""), who: two, top: `"quorum":2`}, ""},
		{"rules grow with the panel", def{states: states(""), who: two, top: `"quorum":"all"`}, ""},
		{"one more than there are", def{states: states(""), who: two, top: `"quorum":3`},
			`warning quorum-above-panel /quorum quorum is 3, and 2 proposers are asked in state "open": a human decides every round`},
		{"of a state", def{states: states(`"quorum":3,`), who: two, top: `"quorum":1`},
			`warning quorum-above-panel /states/open/quorum quorum is 3, and 2 proposers are asked in state "open": a human decides every round`},
		{"a state asks fewer", def{states: states(`"specialists":[{"role":"proposer","specialistId":"a"}],`), who: two, top: `"quorum":2`},
			`warning quorum-above-panel /quorum quorum is 2, and 1 proposer is asked in state "open": a human decides every round`},
		{"who is off is not asked", def{states: states(""), who: []string{fn("a"), fn("b", `"disabled":true`), human("h"), half}, top: `"quorum":2`},
			`warning quorum-above-panel /quorum quorum is 2, and 1 proposer is asked in state "open": a human decides every round`},
		{"only humans", def{states: states(`"specialists":[{"role":"proposer","specialistId":"h"}],`), who: two, top: `"quorum":2`}, ""},
		{"required everywhere", def{states: states(""), who: required}, ""},
		{"required, and left out", def{states: states(`"specialists":[{"role":"proposer","specialistId":"a"}],`), who: required},
			`warning required-elsewhere /specialists/1 specialist "b" is required, and takes no part in state "open": its own list replaces the machine's`},
		{"required where it takes part", def{states: states(`"specialists":[{"role":"proposer","specialistId":"a","required":true}],`), who: two}, ""},
		{"required and off", def{states: states(""), who: []string{fn("a"), fn("b", `"required":true,"disabled":true`), human("h"), half}},
			`warning required-off /specialists/1 specialist "b" is required and switched off: in state "open" a human decides every round`},
		{"required and off in the state's list", def{states: states(`"specialists":[{"role":"proposer","specialistId":"a"},{"role":"proposer","specialistId":"b","disabled":true}],`), who: required},
			`warning required-off /states/open/specialists/1 specialist "b" is required and switched off: in state "open" a human decides every round`},
	} {
		m := parse(t, c.d.text())
		if got := found(t, m, lint.Machine(m)); got != c.want {
			t.Errorf("%s: found are\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestLintOfRegisteredPanels: who is registered in the store is asked too, and who is
// switched off there is not.
func TestLintOfRegisteredPanels(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: marked, who: []string{fn("a"), human("human"), half}, top: `"quorum":2`})
	codes := func() (list []string) {
		found, err := lint.WithStore(b.ctx, b.r, m)
		b.ok(err)
		for _, p := range found {
			list = append(list, p.Code+" "+p.Path)
		}
		return list
	}
	if got := fmt.Sprint(codes()); got != "[quorum-above-panel /quorum]" {
		t.Errorf("of one: %s", got)
	}
	late := proposer("late")
	late.Required = true
	b.register(late)
	if got := fmt.Sprint(codes()); got != "[]" {
		t.Errorf("of two: %s", got)
	}
	b.ok(b.r.Disable(b.ctx, "desk", "late"))
	if got := fmt.Sprint(codes()); got != "[quorum-above-panel /quorum required-off /states/open]" {
		t.Errorf("of one and one who is off: %s", got)
	}
}

// TestLintOfTheRecord finds what the recorded decisions show: a voter below chance,
// copies, one who costs and tells nothing.
func TestLintOfTheRecord(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(seed, 6))
	t.Logf("seed %d", seed)
	priced := `"estimatedCostUSD":0.5`
	m := b.machine(def{states: marked, who: []string{fn("good", priced), fn("copy", priced), fn("twin", priced), fn("worse", priced), fn("noise", priced), human("human"), arb("alignmentMargin", threshold("1"))}})
	if before, err := lint.WithStore(b.ctx, b.r, m); err != nil || len(before) != 0 {
		t.Errorf("before anything was decided: %v, %v", before, err)
	}
	s := b.start(m)
	for range 80 {
		truth, other := "again", "finish"
		wrong := func(p float64) string {
			if rng.Float64() < p {
				return other
			}
			return truth
		}
		twin := wrong(.4)
		for who, say := range map[string]string{"good": twin, "copy": twin, "twin": twin, "worse": wrong(.9), "noise": []string{truth, other}[rng.IntN(2)]} {
			b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who), TransitionName: say})
		}
		b.force(s, truth)
	}
	list, err := lint.WithStore(b.ctx, b.r, m)
	b.ok(err)
	got := found(t, m, list)
	for _, want := range []string{`warning DIV001 /specialists 5 specialists, effective `, `warning DIV004 /specialists "worse" agrees with humans in `, `warning DIV005 /specialists the answers of "noise" tell next to nothing`} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, `DIV004 /specialists "good"`) {
		t.Errorf("found are\n%s", got)
	}
}

// TestLintOfHumans finds a promise that humans themselves would not keep.
func TestLintOfHumans(t *testing.T) {
	m := parse(t, def{states: marked, who: []string{fn("a"), human("h"), arb("bayes")}, top: `"risk":{"maxError":0.05}`}.text())
	l := trust.New()
	for i := range 20 {
		look := trust.SecondLook{Machine: "desk", State: "open", Options: 2, FirstHuman: "h", SecondHuman: "g", First: "again", Second: "again"}
		if i%4 == 0 {
			look.Second = "finish"
		}
		if err := l.AddSecondLook(look); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := l.HumanError("desk")
	if e < 50_000_000 || e > exact.One/2 {
		t.Fatalf("humans err in %s", e)
	}
	if got, want := found(t, m, lint.By(m, l, &session.Roster{})), "warning RISK002 /risk maxError 0.05 is below "+e.String()+", the rate at which humans err here"; got != want {
		t.Errorf("found are\n%s\nwant\n%s", got, want)
	}
}

// TestLintRegistered counts those who were registered for the machine.
func TestLintRegistered(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: marked, who: []string{ai("a", "m"), ai("b", "m"), fn("x", `"disabled":true`), half}, top: `"optionOrder":"declared"`})
	b.register(machine.Specialist{Role: machine.Proposer, SpecialistID: "c", StrategyFn: "fn"})
	list, err := lint.WithStore(b.ctx, b.r, m)
	b.ok(err)
	if got := found(t, m, list); strings.Contains(got, "DIV002") || !strings.Contains(got, "DIV003") {
		t.Errorf("found are\n%s", got)
	}
}
