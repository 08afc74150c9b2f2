package simulate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/lab/simulate"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// seed is that of every simulation in these tests.
const seed = 20261121

func panel(t testing.TB, text string) simulate.Panel {
	t.Helper()
	p, problems := simulate.ParsePanel([]byte(text), nil)
	for _, problem := range problems {
		t.Error(problem)
	}
	return p
}

func run(t testing.TB, c simulate.Config) *simulate.Report {
	t.Helper()
	t.Logf("seed %d", seed)
	c.Seed = seed
	r, err := simulate.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReliabilities checks that voters are as good as the panel says: within four
// standard errors, with drift, adversaries, confusion and failures.
func TestReliabilities(t *testing.T) {
	p := panel(t, `{
		"states": [{"name": "s", "classes": ["a", "b", "c"], "priors": [0.5, 0.3, 0.2]}],
		"specialists": [
			{"id": "plain", "p": 0.8}, {"id": "twin", "p": 0.8, "group": "g", "copy": 0.7}, {"id": "mute", "p": 0.9, "failure": 0.3},
			{"id": "foe", "p": 0.75, "adversary": true}, {"id": "odd", "confusion": [[0.9, 0.1, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]]},
			{"id": "tired", "p": 1}],
		"drift": [{"round": 2001, "specialist": "tired", "p": 0.5}], "arbiter": "alignmentMargin"}`)
	r := run(t, simulate.Config{Panel: p, Rounds: 4000})
	for i, want := range []float64{.8, .8, .9, .25, .5*.9 + .3*.6 + .2*.5, .75} {
		v := r.Voters[i]
		if off := math.Abs(v.Observed - want); off > 4*math.Sqrt(want*(1-want)/2800) {
			t.Errorf("%s is right in %.3f of its answers, want %.3f", v.ID, v.Observed, want)
		}
	}
	if last := r.Voters[5]; last.TrueP != .5 {
		t.Errorf("after its drift %s has p %v", last.ID, last.TrueP)
	}
}

// TestRefusesCopies has three copies of a weak voter before the default promise:
// nothing may be decided automatically.
func TestRefusesCopies(t *testing.T) {
	p := panel(t, `{"classes": ["a", "b", "c", "d"], "specialists": [
		{"id": "x", "p": 0.55, "group": "g", "copy": 0.9}, {"id": "y", "p": 0.55, "group": "g", "copy": 0.9}, {"id": "z", "p": 0.55, "group": "g", "copy": 0.9}]}`)
	r := run(t, simulate.Config{Panel: p, Rounds: 2000})
	if r.Summary.Automatic != 0 || r.Summary.Humans != 1 || r.Summary.Promise == nil {
		t.Errorf("of three copies came %+v", r.Summary)
	}
	if n := r.Summary.NEff; n <= 0 || n > 2 {
		t.Errorf("three copies count as %v voters", n)
	}
}

// TestKeepsPromise has a good panel earn a promise: fewer and fewer humans are
// asked, and the error stays below it in every run.
func TestKeepsPromise(t *testing.T) {
	p := panel(t, `{"classes": ["yes", "no"], "specialists": [{"id": "a", "p": 0.95}, {"id": "b", "p": 0.92}, {"id": "c", "p": 0.9}, {"id": "d", "p": 0.7}],
		"machine": {"risk": {"maxError": 0.1}}}`)
	r := run(t, simulate.Config{Panel: p, Rounds: 600, Runs: 5})
	s := r.Summary
	if s.Quarters[0] <= s.Quarters[3] || s.Quarters[3] > .3 || s.RunError[1] > .1 || s.Automatic < .5 {
		t.Errorf("a good panel came to %+v", s)
	}
}

// TestCollapses has a state collapse to a champion, who is demoted when it fails.
func TestCollapses(t *testing.T) {
	p := panel(t, `{"classes": ["a", "b", "c"], "specialists": [{"id": "good", "p": 0.97, "costUSD": 0.01}, {"id": "fair", "p": 0.85}, {"id": "poor", "p": 0.8}],
		"drift": [{"round": 600, "specialist": "good", "p": 0.3}],
		"machine": {"risk": {"maxError": 0.1}, "collapse": {"target": 0.8}, "audit": {"rate": 0.3}}}`)
	r := run(t, simulate.Config{Panel: p, Rounds: 1200})
	var story []string
	for _, e := range r.Events {
		if e.Specialist == "good" {
			story = append(story, e.What)
			if want := map[bool]float64{true: .97, false: .3}[e.Round < 600]; e.TrueP != want {
				t.Errorf("round %d: the true p is %v, want %v", e.Round, e.TrueP, want)
			}
		}
	}
	if len(story) < 2 || story[0] != "champion.promoted" || story[1] != "champion.demoted" || r.Summary.Promoted == 0 || r.Summary.Demoted == 0 {
		t.Errorf("the story of the champion is %v", story)
	}
}

// TestSameRounds checks that policies meet the same rounds: what a voter says does
// not depend on who else is asked, or on who decides.
func TestSameRounds(t *testing.T) {
	const text = `{"specialists": [{"id": "a", "p": 0.8, "group": "g", "copy": 0.5}, {"id": "b", "p": 0.7, "group": "g", "copy": 0.5}], "arbiter": %q}`
	var seen [2]*simulate.Report
	for i, arbiter := range []string{`"bayes"`, `"alignmentMargin"`} {
		p := panel(t, strings.Replace(text, "%q", arbiter, 1))
		p.Machine = map[string]json.RawMessage{"requireTrust": []byte("true")}
		seen[i] = run(t, simulate.Config{Panel: p, Rounds: 300})
	}
	if a, b := seen[0].Voters[0], seen[1].Voters[0]; a.Observed != b.Observed || a.Asked != b.Asked {
		t.Errorf("under two arbiters %s was right in %v and %v", a.ID, a.Observed, b.Observed)
	}
}

// TestReproducible checks that a seed gives the same report, whatever else runs.
func TestReproducible(t *testing.T) {
	p := panel(t, `{"specialists": [{"id": "a"}, {"id": "b", "p": 0.9}], "human": {"error": 0.1}, "machine": {"risk": {"maxError": 0.2}, "secondHuman": {"rate": 0.3}}}`)
	var texts [2]string
	for i := range texts {
		r := run(t, simulate.Config{Panel: p, Rounds: 200, Runs: 2})
		text, err := json.Marshal([]any{r.Curve, r.Voters, r.Events, r.Summary})
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Errorf("the same seed gave\n%s\nand\n%s", texts[0], texts[1])
	}
}

// TestSecondHumanBefore plays rounds in which two humans rule before anything is
// executed, and often differ: each comes to an end, and they are learned from.
func TestSecondHumanBefore(t *testing.T) {
	p := panel(t, `{"specialists": [{"id": "a"}, {"id": "b"}], "human": {"error": 0.3}, "machine": {"requireTrust": true, "secondHuman": {"rate": 1, "when": "before"}}, "classes": ["x", "y", "z"]}`)
	r := run(t, simulate.Config{Panel: p, Rounds: 200})
	if s := r.Summary; s.Humans == 0 || s.Accuracy < .6 || s.Accuracy > .9 {
		t.Errorf("humans who err in 3 of 10 rounds come to %+v", s)
	}
}

// TestQuorum plays voters of whom each fails in four of ten rounds, and is right in all
// others: how many rounds are decided without a human is how often a quorum answers,
// which can be worked out, and nothing is decided wrongly.
func TestQuorum(t *testing.T) {
	const two, three = 3 * .6 * .6 * .4, .6 * .6 * .6 // chances that so many of three answer
	for quorum, want := range map[string]float64{"": two + three, `"majority"`: two + three, `2`: two + three, `"all"`: three, `"any"`: 1 - .4*.4*.4, `4`: 0} {
		p := panel(t, `{"specialists": [{"id": "a", "p": 1, "failure": 0.4}, {"id": "b", "p": 1, "failure": 0.4}, {"id": "c", "p": 1, "failure": 0.4}],
			"arbiter": {"strategyFn": "= aheadBy >= 1 ? leader : none"}}`)
		if quorum != "" {
			p.Machine = map[string]json.RawMessage{"quorum": json.RawMessage(quorum)}
		}
		const rounds = 1500
		s := run(t, simulate.Config{Panel: p, Rounds: rounds}).Summary
		if off := math.Abs(s.Automatic - want); off > 4*math.Sqrt(want*(1-want)/rounds) || s.Error != 0 {
			t.Errorf("quorum %s: %.3f of the rounds are decided without a human, want %.3f; %.3f of them wrongly", quorum, s.Automatic, want, s.Error)
		}
	}
}

// TestParameters (C7.5): a machine is played whose transitions ask for payloads: made-up voters
// have none, and choose all the same.
func TestParameters(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"open","goalState":"b","states":{"open":{"transitions":{
		"pay":{"target":"b","parameters":{"type":"object","required":["amount"]}},"drop":{"target":"b","parameters":{"type":"object","required":["why"]}}}},"b":{}},
		"specialists":[{"role":"proposer","specialistId":"v","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"h","isHuman":true},{"role":"arbiter","specialistId":"j"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, simulate.Config{Machine: m, Panel: panel(t, `{"classes": ["pay", "drop"], "specialists": [{"id": "v", "p": 0.9}]}`), Rounds: 60})
	if s := r.Summary; s.Rounds != 60 || s.Automatic == 0 {
		t.Errorf("it comes to %+v", s)
	}
}

// TestCases plays a machine whose transitions have conditions, write data, need payloads and
// approvals, and exclude who has started and who ruled before: what is closed is neither the
// truth of a round nor anybody's word, and where too few may approve nothing comes of it.
func TestCases(t *testing.T) {
	const rounds = 1500
	const text = `{"machineName":"m","initialState":"open","goalState":"done","groups":{"staff":["h1","h2","h3"]},"input":{"type":"object","required":["n"]},"states":{
		"open":{"deciders":["group:staff"],"transitions":{
			"pay":{"target":"open","when":"= data.n < 3","set":{"n":"= data.n + 1.0","by":"= by","sum":"= payload.amount"},"approvals":{"count":2,"exclude":["starter"]},"parameters":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number","minimum":5}}}},
			"again":{"target":"open","when":"= data.n < 3","set":{"n":"= data.n + 1.0"}},
			"close":{"target":"done","when":"= data.n == 3","approvals":{"count":COUNT,"exclude":["open"]}}}},
		"done":{}},
		"specialists":[{"role":"proposer","specialistId":"v","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"h1","isHuman":true},{"role":"proposer","specialistId":"h2","isHuman":true},{"role":"proposer","specialistId":"h3","isHuman":true},{"role":"arbiter","specialistId":"j"}]}`
	// Of the rounds a quarter is about close, where the voter is right. Of the others half are
	// about again, where it is right half of the time and a human says so otherwise, and half
	// about pay, where it is right half of the time, which takes two humans. Two of those who
	// close must not have ruled last: with two of three gone there is one, in .4375 of the sessions.
	for count, want := range map[string]float64{"1": .8125, "2": .7031} {
		m, err := machine.Parse("m.json", []byte(strings.ReplaceAll(text, "COUNT", count)), runner.Checks())
		if err != nil {
			t.Fatal(err)
		}
		p, problems := simulate.ParsePanel([]byte(`{"states":[{"name":"open","classes":["pay","again","close"]}],"specialists":[{"id":"v","confusion":[[0.5,0.5,0],[0.5,0.5,0],[0,0,1]]}]}`), m)
		if problems != nil {
			t.Fatal(problems)
		}
		s := run(t, simulate.Config{Machine: m, Panel: p, Rounds: rounds, Meta: []byte(`{"n":0}`), Example: func([]byte) []byte { return []byte(`{"amount":5}`) }})
		if got := s.Voters[0].Observed; math.Abs(got-.625) > .05 || math.Abs(s.Summary.Accuracy-want) > .05 || s.Summary.Rounds != rounds {
			t.Errorf("count %s: the voter is right in %.3f, the decisions in %.3f, want .625 and %.3f", count, got, s.Summary.Accuracy, want)
		}
	}
}

// TestTimers plays a machine in which sessions wait for a timer before anybody decides, and
// are due sooner than the simulated humans take: rounds are those that somebody decides.
func TestTimers(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"wait","goalState":"done","states":{
		"wait":{"due":{"in":"24h","then":"go"},"transitions":{"go":"open"}},
		"open":{"due":{"in":"30s","then":"late"},"transitions":{"pay":"last","late":{"target":"done","irreversible":false}},
			"specialists":[{"role":"proposer","specialistId":"v","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"h","isHuman":true}]},
		"last":{"due":{"in":"1h","then":"done"},"transitions":{"done":{"target":"done","when":"= visits > 1","irreversible":false},"stop":"done"}},
		"done":{}},
		"specialists":[{"role":"arbiter","specialistId":"j"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	p, problems := simulate.ParsePanel([]byte(`{"states":[{"name":"open","classes":["pay","late"],"priors":[0.75,0.25]}],"specialists":[{"id":"v","p":1}]}`), m)
	if problems != nil {
		t.Fatal(problems)
	}
	// Of seven rounds four are in open, decided by v, and three in last, where a condition
	// has closed the timer, so that nobody but a human goes on.
	s := run(t, simulate.Config{Machine: m, Panel: p, Rounds: 700}).Summary
	if s.Rounds != 700 || s.Accuracy != 1 || math.Abs(s.Automatic-4./7) > .05 || math.Abs(s.Humans-3./7) > .05 {
		t.Errorf("it comes to %+v", s)
	}
}

// TestDegenerate plays panels at the edge: one voter, all wrong, one class, nobody
// ever answers, a human who is always wrong.
func TestDegenerate(t *testing.T) {
	for _, text := range []string{
		`{"specialists": [{"id": "a", "p": 1}]}`,
		`{"specialists": [{"id": "a", "p": 0}, {"id": "b", "p": 0}]}`,
		`{"classes": ["only"], "specialists": [{"id": "a", "p": 0.5}]}`,
		`{"specialists": [{"id": "a", "failure": 1}]}`,
		`{"specialists": [{"id": "a"}], "human": {"error": 1}}`,
		`{"specialists": [{"id": "a"}, {"id": "b"}], "machine": {"solicit": "eager"}}`,
	} {
		r := run(t, simulate.Config{Panel: panel(t, text), Rounds: 60})
		s := r.Summary
		for _, share := range []float64{s.Accuracy, s.Automatic, s.Humans, s.Error} {
			if !(share >= 0 && share <= 1) {
				t.Errorf("%s comes to %+v", text, s)
			}
		}
	}
}

func FuzzParsePanel(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `{"states":[{"name":"a","classes":["x","y"],"priors":[0.1,0.9]}],"specialists":[{"id":"v","p":{"a":0.5},"confusion":{"a":[[1,0],[0,1]]}}]}`,
		`{"specialists":[{"id":"v","costUSD":1e400}],"drift":[{"round":1,"specialist":"v","p":0}],"arbiter":{"strategyFn":"= leader"},"human":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, problems := simulate.ParsePanel(text, nil)
		if len(problems) > 0 || len(p.Voters) > 8 {
			return
		}
		if _, err := simulate.Run(context.Background(), simulate.Config{Panel: p, Rounds: 3}); err != nil {
			t.Skip(err) // the panel makes no machine, and says why
		}
	})
}

// TestDefaultPanel checks who is made up where no panel is given.
func TestDefaultPanel(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"go":"b","stay":"a"}},"b":{}},"specialists":[
		{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable","estimatedCostUSD":0.5},{"role":"proposer","specialistId":"off","strategyFnName":"firstAvailable","disabled":true},
		{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"q","contextFn":"f","modelId":"x/y"}]}`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	p := simulate.DefaultPanel(m)
	if len(p.Voters) != 2 || p.Voters[0].ID != "p" || p.Voters[0].Cost != 500_000_000_000 || p.Voters[1].Group != "x/y" || p.Voters[1].P >= p.Voters[0].P {
		t.Errorf("the panel is %+v", p.Voters)
	}
	if r := run(t, simulate.Config{Machine: m, Panel: p, Rounds: 30}); r.Machine != "m" || len(r.Curve) != 20 {
		t.Errorf("the report is of %q, with %d points", r.Machine, len(r.Curve))
	}
}

// TestProgress: every round of every run is told of once, in order.
func TestProgress(t *testing.T) {
	var told []int
	run(t, simulate.Config{Panel: panel(t, `{"specialists": [{"id": "a"}]}`), Rounds: 3, Runs: 2, Progress: func(done, of int) {
		if told = append(told, done); of != 6 {
			t.Errorf("of %d rounds", of)
		}
	}})
	if fmt.Sprint(told) != "[1 2 3 4 5 6]" {
		t.Errorf("told of %v", told)
	}
}

// TestPanelProblems: of a file that is no panel nothing is shown, and of a wrong value
// no more than tells it from others.
func TestPanelProblems(t *testing.T) {
	for text, want := range map[string]string{
		`{"hunter2": "a", "sesame": 1}`:                                        "foreign-file none of its fields is a field of a panel",
		`{"specialists": {"hunter2": 1}}`:                                      "bad-panel specialists: it is an object, and has to be a list",
		`{"specialists": [], "arbiter": "bayes"}`:                              "bad-panel specialists: a panel needs specialists",
		`{"specialists": [{"id": {"hunter2": 1}}]}`:                            "bad-panel specialists[0].id: it is an object, and has to be a name",
		`{"specialists": [{"id": "a", "p": "abcdefghijklmnopqrstuvwxyzöäü"}]}`: `bad-panel specialists[0].p: it is "abcdefghijklmnopqrstuvw…, and has to be a number`,
	} {
		_, problems := simulate.ParsePanel([]byte(text), nil)
		var got []string
		for _, p := range problems {
			got = append(got, p.Code+" "+p.Message)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}
