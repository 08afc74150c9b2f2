package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// reviewDefinition is the acceptance case, built in Go.
func reviewDefinition() *machine.Definition {
	half, err := machine.NewThreshold(0.5)
	if err != nil {
		panic(err)
	}
	return &machine.Definition{
		MachineName: "document-review", InitialState: "pending", GoalState: "approved",
		States: []machine.StateDefinition{
			{Name: "pending", Prompt: "Review the document. Approve or request changes?", Transitions: []machine.TransitionDefinition{
				{Name: "approve", Target: "approved"}, {Name: "reject", Target: "rejected"}}},
			{Name: "approved"}, {Name: "rejected"},
		},
		Specialists: []machine.Specialist{
			{Role: machine.Proposer, SpecialistID: "ai-proposer", StrategyFnName: "firstAvailable"},
			{Role: machine.Arbiter, SpecialistID: "consensus-arbiter", StrategyFnName: "alignmentMargin", Threshold: &half},
		},
	}
}

func TestCompileIsParse(t *testing.T) {
	m, err := machine.Compile(reviewDefinition(), checks())
	if err != nil {
		t.Fatal(err)
	}
	if want := mustParse(t, "m.json", review); m.Digest() != want.Digest() {
		t.Errorf("built in Go it is\n%s\nread from a file\n%s", m.JSON(), want.JSON())
	}
}

// TestCompileKeepsNothing: what the caller does with the definition afterwards
// does not change the machine.
func TestCompileKeepsNothing(t *testing.T) {
	yes, cost := true, exact.Dollar
	threshold := machine.Threshold{Given: 0.25} // its weight is worked out
	def := reviewDefinition()
	def.ConsensusThreshold, def.RequireTrust = &threshold, &yes
	def.Guards = json.RawMessage(` {"x-a": 1, "limits": {"max_steps": 1.0}} `)
	def.Specialists[1].StrategyFnName = machine.Bayes
	def.Risk = &machine.Risk{MaxError: 0.1} // the confidence is the default
	def.Solicit = &machine.Solicit{Champion: &yes}
	def.States[0].ConsensusThreshold, def.States[0].RequireTrust = &threshold, &yes
	def.States[0].Guards = json.RawMessage(`{}`)
	def.States[0].Transitions[0].Parameters = json.RawMessage(`{ "type" : "object" }`)
	def.Specialists[0].EstimatedCostUSD, def.Specialists[0].Disabled = &cost, &yes
	m, err := machine.Compile(def, checks())
	if err != nil {
		t.Fatal(err)
	}
	before := string(m.JSON())
	sameAgain(t, m)
	yes, cost, threshold = false, 0, machine.Threshold{}
	def.Risk.MaxError, def.MachineName = 0.9, "other"
	clear(def.Guards)
	clear(def.States[0].Transitions[0].Parameters)
	clear(def.States[0].Transitions)
	clear(def.States)
	clear(def.Specialists)
	d := m.Definition()
	again, err := machine.Compile(d, checks())
	if err != nil || string(again.JSON()) != before {
		t.Errorf("the machine changed with the definition: %v\n%s\nwas\n%s", err, again.JSON(), before)
	}
	s := m.Initial()
	if s.Threshold.Weight != exact.One/4 || !s.RequireTrust || s.Risk.MaxError != 0.1 || s.Risk.Confidence != 0.9 || !*s.Solicit.Champion || s.Transitions[0].Name != "approve" {
		t.Errorf("the state is %+v", s)
	}
	const guards = `"guards":{"limits":{"max_steps":1}},"risk":{"maxError":0.1,"confidence":0.9}`
	if !strings.Contains(before, guards) || !strings.Contains(before, `"parameters":{"type":"object"}`) {
		t.Errorf("sections are not canonical: %s", before)
	}
}

// TestCompileRefuses: without a file problems have paths, and no place.
func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(d *machine.Definition)
		want   string // path, code and message of each problem
	}{
		{func(d *machine.Definition) { *d = machine.Definition{} },
			" [missing-field] missing or invalid machineName\n [missing-field] missing or invalid initialState\n [missing-field] missing or invalid goalState\n [missing-field] missing or invalid states"},
		{func(d *machine.Definition) { d.MachineName = "" }, " [missing-field] missing or invalid machineName"},
		{func(d *machine.Definition) { d.MachineName = "a\xffb" }, `/machineName [bad-name] machineName "a\xffb" is not UTF-8`},
		{func(d *machine.Definition) { d.GoalState = "aproved" }, `/goalState [unknown-state] goalState "aproved" does not exist in states`},
		{func(d *machine.Definition) { d.InitialState = "x" }, `/initialState [unknown-state] initialState "x" does not exist in states`},
		{func(d *machine.Definition) { d.States[1].Name, d.GoalState = "pending", "pending" },
			"/states/1 [duplicate-key] state \"pending\" is defined twice\n/states/pending/transitions/approve [unknown-target] transition \"approve\" in state \"pending\" points to non-existent state \"approved\""},
		{func(d *machine.Definition) { d.States[2].Name = " "; d.States[0].Transitions[1].Target = " " }, `/states/  [bad-name] the name " " begins or ends with a blank`},
		{func(d *machine.Definition) { d.States[0].Transitions[1].Name = "approve" }, `/states/pending/transitions/approve [duplicate-key] transition "approve" of state "pending" is defined twice`},
		{func(d *machine.Definition) { d.States[0].Transitions[1].Target = "" }, `/states/pending/transitions/reject [unknown-target] transition "reject" in state "pending" has no target`},
		{func(d *machine.Definition) {
			d.States[0].Transitions[1].Name = "a/b~c"
			d.States[0].Transitions[1].Target = "x"
		}, `/states/pending/transitions/a~1b~0c [unknown-target] transition "a/b~c" in state "pending" points to non-existent state "x"`},
		{func(d *machine.Definition) {
			d.States[0].Transitions[0].Parameters = json.RawMessage(`{"type":"objekt"}`)
		},
			`/states/pending/transitions/approve/parameters/type [bad-schema] parameters of transition "approve" in state "pending": type "objekt" at # is none of null, boolean, object, array, number, string, integer`},
		{func(d *machine.Definition) { d.States[0].Transitions[0].Parameters = json.RawMessage(`{"a":1`) },
			`/states/pending/transitions/approve/parameters [wrong-type] Invalid JSON: the document ends too early`},
		{func(d *machine.Definition) { d.Guards = json.RawMessage(`{"limits":{"max_steps":-1}}`) }, `/guards/limits/max_steps [out-of-range] max_steps is -1, not a whole number from 0`},
		{func(d *machine.Definition) { d.Guards = json.RawMessage(`{"limits":{},"limits":{}}`) }, `/guards/limits [duplicate-key] "limits" is already defined at line 1, column 2`},
		{func(d *machine.Definition) { d.States[0].Guards = json.RawMessage(`[`) }, `/states/pending/guards [wrong-type] Invalid JSON: the document ends too early`},
		{func(d *machine.Definition) { d.States[0].Guards = json.RawMessage(strings.Repeat("[", 65)) }, `/states/pending/guards [too-large] values are nested deeper than 64`},
		{func(d *machine.Definition) {
			d.Risk, d.Specialists[1].StrategyFnName = &machine.Risk{MaxError: math.NaN()}, machine.Bayes
		}, `/risk/maxError [out-of-range] maxError is NaN, it must be above 0`},
		{func(d *machine.Definition) {
			d.Risk, d.Specialists[1].StrategyFnName = &machine.Risk{MaxError: 0.1, Confidence: 1}, machine.Bayes
		}, `/risk/confidence [out-of-range] confidence is 1, it must be below 1`},
		{func(d *machine.Definition) {
			d.Risk, d.Specialists[1].StrategyFnName = &machine.Risk{MaxError: 1e-12, Confidence: 1 - 1e-12}, machine.Bayes
		}, "/risk/maxError [out-of-range] maxError is 1e-12, it must be at least 0.000000001\n/risk/confidence [out-of-range] confidence is 0.999999999999, it must be at most 0.999999999"},
		{func(d *machine.Definition) { d.ConsensusThreshold = &machine.Threshold{Given: math.NaN()} }, `/consensusThreshold [bad-threshold] consensusThreshold is NaN, not a number from 0 to 1`},
		{func(d *machine.Definition) { d.States[0].ConsensusThreshold = &machine.Threshold{Given: 2, Weight: 1} }, `/states/pending/consensusThreshold [bad-threshold] consensusThreshold is 2, not a number from 0 to 1`},
		{func(d *machine.Definition) { d.Solicit = &machine.Solicit{Timeout: -1} }, `/solicit/timeout [out-of-range] timeout is -1ns, it must be at least 0`},
		{func(d *machine.Definition) { d.Specialists[0].Timeout = machine.Duration(-time.Second) }, `/specialists/0/timeout [out-of-range] timeout is -1s, it must be at least 0`},
		{func(d *machine.Definition) { d.Specialists[1].SpecialistID = "ai-proposer" }, `/specialists/1/specialistId [duplicate-id] specialist "ai-proposer" is already in this list, as entry 0`},
		{func(d *machine.Definition) { d.Specialists[0].Role = "voter" }, `/specialists/0/role [bad-role] role is "voter"`},
		{func(d *machine.Definition) { d.States[0].Prompt = strings.Repeat("p", 65537) }, `/states/pending/prompt [too-large] prompt is larger than 65536 bytes`},
	} {
		def := reviewDefinition()
		c.change(def)
		_, err := machine.Compile(def, checks())
		var invalid *machine.Error
		if !errors.As(err, &invalid) {
			t.Errorf("Compile = %v, want %s", err, c.want)
			continue
		}
		var got []string
		for _, p := range invalid.Problems {
			got = append(got, fmt.Sprintf("%s [%s] %s", p.Path, p.Code, p.Message))
			if p.Line != 0 || p.Column != 0 || p.File != "" {
				t.Errorf("a problem without a file has the place %s:%d:%d", p.File, p.Line, p.Column)
			}
		}
		if all := strings.Join(got, "\n"); all != c.want {
			t.Errorf("problems are\n%s\nwant\n%s", all, c.want)
		}
	}
}

// TestStateOverMachine: a state's values beat the machine's, those of solicit
// member by member.
func TestStateOverMachine(t *testing.T) {
	m := mustParse(t, "m.json", `{"machineName":"m","initialState":"none","goalState":"goal","consensusThreshold":0.5,"requireTrust":true,"risk":{"maxError":0.1},
		"specialists":[{"role":"arbiter","specialistId":"r","strategyFnName":"bayes"}],
		"solicit":{"mode":"eager","timeout":"10s","wave":3,"champion":true},"states":{
		"none":{"transitions":{"t":"own"}},
		"own":{"consensusThreshold":0,"requireTrust":false,"risk":{"maxError":0.2,"confidence":0.8},"solicit":{"roundTimeout":"1m","wave":4,"champion":false}},
		"mode":{"solicit":"sequential","irreversible":true,"transitions":{"t":"own","u":{"target":"none","irreversible":true}}},
		"all":{"solicit":{"mode":"all","timeout":"20s","asyncTimeout":"1h","maxParallel":2}},
		"goal":{"final":true}}}`)
	second, minute := machine.Duration(time.Second), machine.Duration(time.Minute)
	for _, c := range []struct {
		state     string
		threshold float64
		trust     bool
		risk      machine.Risk
		solicit   machine.Solicit
		champion  bool
	}{
		{"none", 0.5, true, machine.Risk{MaxError: 0.1, Confidence: 0.9}, machine.Solicit{Mode: machine.Eager, Timeout: 10 * second, RoundTimeout: 5 * minute, AsyncTimeout: 1440 * minute, MaxParallel: 16, Wave: 3}, true},
		{"own", 0, false, machine.Risk{MaxError: 0.2, Confidence: 0.8}, machine.Solicit{Mode: machine.Eager, Timeout: 10 * second, RoundTimeout: minute, AsyncTimeout: 1440 * minute, MaxParallel: 16, Wave: 4}, false},
		{"mode", 0.5, true, machine.Risk{MaxError: 0.1, Confidence: 0.9}, machine.Solicit{Mode: machine.Sequential, Timeout: 10 * second, RoundTimeout: 5 * minute, AsyncTimeout: 1440 * minute, MaxParallel: 16, Wave: 3}, true},
		{"all", 0.5, true, machine.Risk{MaxError: 0.1, Confidence: 0.9}, machine.Solicit{Mode: machine.All, Timeout: 20 * second, RoundTimeout: 5 * minute, AsyncTimeout: 60 * minute, MaxParallel: 2, Wave: 3}, true},
	} {
		s := m.State(c.state)
		champion := s.Solicit.Champion
		got := s.Solicit
		if got.HumanCost == nil || *got.HumanCost != exact.Dollar {
			t.Errorf("%s: a human costs %v", c.state, got.HumanCost)
		}
		got.Champion, got.HumanCost = nil, nil
		if s.Threshold.Given != c.threshold || s.RequireTrust != c.trust || *s.Risk != c.risk || got != c.solicit || champion == nil || *champion != c.champion {
			t.Errorf("%s: threshold %v, trust %t, risk %v, solicit %+v, champion %v", c.state, s.Threshold, s.RequireTrust, *s.Risk, got, *champion)
		}
	}
	if s := m.State("mode"); !s.Irreversible || !s.Transitions[0].Irreversible || !s.Transitions[1].Irreversible || m.Initial().Transitions[0].Irreversible {
		t.Error("a state's irreversible covers exactly its transitions")
	}
	if g := m.Goal(); !g.Goal || !g.Final || !g.Terminal() {
		t.Errorf("the goal is %+v", g)
	}
	plain := mustParse(t, "m.json", minimal).Initial()
	if plain.Threshold != nil || plain.Risk != nil || plain.RequireTrust || plain.Solicit.Mode != machine.All || plain.Solicit.Champion != nil || plain.Roster != nil || plain.Guards != nil {
		t.Errorf("without any setting the state is %+v", plain)
	}
}

// TestRosterOfAState tells a list that is left out from an empty one.
func TestRosterOfAState(t *testing.T) {
	m := mustParse(t, "m.json", `{"machineName":"m","initialState":"a","goalState":"a","guards":{"limits":{}},"states":{"a":{},"b":{"specialists":[],"guards":{}},"c":{"specialists":[{"role":"proposer","specialistId":"s"}]}},
		"specialists":[{"role":"proposer","specialistId":"s","strategyFn":"f"}]}`)
	if a, b, c := m.State("a"), m.State("b"), m.State("c"); a.Roster != nil || b.Roster == nil || len(b.Roster) != 0 || len(c.Roster) != 1 || !c.Roster[0].Reference() || a.Guards != nil || string(b.Guards) != "{}" {
		t.Errorf("rosters are %v, %v and %v", a.Roster, b.Roster, c.Roster)
	}
	if m.Specialists()[0].Reference() || !m.Specialists()[0].Local() {
		t.Error("the machine's specialist is declared in full, and local")
	}
}

func TestTimeoutOf(t *testing.T) {
	for _, c := range []struct {
		solicit string
		s       machine.Specialist
		want    time.Duration
	}{
		{`{}`, machine.Specialist{StrategyFn: "f"}, time.Minute},
		{`{}`, machine.Specialist{StrategyWebhookURL: "https://example.com"}, 55 * time.Second},
		{`{}`, machine.Specialist{ContextWebhookURL: "https://example.com"}, 55 * time.Second},
		{`{"timeout":"10s"}`, machine.Specialist{StrategyWebhookURL: "https://example.com"}, 10 * time.Second},
		{`{"timeout":"10s"}`, machine.Specialist{Timeout: machine.Duration(time.Second)}, time.Second},
		{`{"roundTimeout":"10s"}`, machine.Specialist{}, time.Minute},
	} {
		m := mustParse(t, "m.json", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"solicit":`+c.solicit+`}}}`)
		if got := m.Initial().TimeoutOf(&c.s); got != c.want {
			t.Errorf("solicit %s, %+v: %v, want %v", c.solicit, c.s, got, c.want)
		}
	}
}

// TestTransitionLookup: few are found one by one, many by a table.
func TestTransitionLookup(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 10, 256} {
		m := mustParse(t, "m.json", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"n":"a"`+members(n-1, `"a"`)+`}}}}`)
		s := m.Initial()
		for i, want := range s.Transitions {
			if got := s.Transition(want.Name); got != want || got.Index != i {
				t.Errorf("%d transitions: %q is found as %v", n, want.Name, got)
			}
		}
		for _, name := range []string{"", "n999", "N", "n0 "} {
			if got := s.Transition(name); got != nil {
				t.Errorf("%d transitions: %q is found as %v", n, name, got)
			}
		}
	}
}

func TestThresholdsAndDurations(t *testing.T) {
	type value struct {
		T machine.Threshold
		D machine.Duration
	}
	data, err := json.Marshal(value{machine.Threshold{Given: 1e-7}, machine.Duration(90 * time.Second)})
	if want := `{"T":1e-7,"D":"1m30s"}`; err != nil || string(data) != want {
		t.Errorf("Marshal = %s, %v, want %s", data, err, want)
	}
	var got value
	if err := json.Unmarshal([]byte(`{"T":0.125,"D":"1.5h"}`), &got); err != nil || got.T.Weight != 125_000_000 || time.Duration(got.D) != 90*time.Minute {
		t.Errorf("Unmarshal = %+v, %v", got, err)
	}
	for _, text := range []string{`{"T":"0.5"}`, `{"T":1e400}`, `{"D":5}`, `{"D":"5"}`} {
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
	// What billionths cannot hold is far beyond any margin, and no error.
	for f, want := range map[float64]string{1e21: "1000000000000000000000", -1e12: "-1000000000000", 2: "2"} {
		th, err := machine.NewThreshold(f)
		if err != nil || th.Given != f || (th.Weight > exact.One) != (f > 1) {
			t.Errorf("NewThreshold(%v) = %+v, %v", f, th, err)
		}
		if th.String() != want {
			t.Errorf("threshold %v is written %s", f, th)
		}
	}
	if _, err := machine.NewThreshold(math.Inf(1)); !errors.Is(err, exact.ErrRange) {
		t.Errorf("NewThreshold(+Inf): %v", err)
	}
}
