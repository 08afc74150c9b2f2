package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// lint compares every warning about a marked file with its mark and with what
// is wanted: "[code] message".
func lint(t *testing.T, name, marked string, o machine.LintOptions, want ...string) {
	t.Helper()
	text, places := unmark(marked)
	if len(places) != len(want) {
		t.Fatalf("%d marks, %d warnings wanted in %s", len(places), len(want), marked)
	}
	var got []string
	for _, p := range mustParse(t, name, text).Lint(o) {
		got = append(got, fmt.Sprintf("%d:%d [%s] %s", p.Line, p.Column, p.Code, p.Message))
		if p.Hint == "" || p.File != name || !strings.HasPrefix(p.Warning(), fmt.Sprintf("%s:%d:%d: warning[%s]: ", name, p.Line, p.Column, p.Code)) {
			t.Errorf("the warning is %q", p.Warning())
		}
	}
	for i := range want {
		want[i] = places[i] + " " + want[i]
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("warnings are\n%s\nwant\n%s\nin %s", a, b, text)
	}
}

const (
	asks    = `"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"f"}]`
	someone = `,` + asks + `}`
)

func all(string) bool { return true }

func TestLintFindsNothingInASoundMachine(t *testing.T) {
	for _, text := range []string{
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","back":"a"}},"b":{}}` + someone,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","stop":"c","d":"d"}},"b":{},"c":{"final":true},"d":{"transitions":{"stop":"c"}}}` + someone,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"h","isHuman":true}]},"b":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","solicit":{"champion":false},"states":{"a":{"transitions":{"t":"b"}},"b":{}},"specialists":[
			{"role":"proposer","specialistId":"p","contextFn":"f","modelId":"m","provider":"o","timeout":"5s","estimatedCostUSD":1},
			{"role":"proposer","specialistId":"w","strategyWebhookUrl":"https://example.com","webhookTokenName":"T","webhookSecretName":"S"},
			{"role":"arbiter","specialistId":"off","disabled":true},{"role":"arbiter","specialistId":"r","threshold":0.5}]}`,
		// A wait asks nobody.
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"due":{"in":"24h","then":"t"},"transitions":{"t":{"target":"b","irreversible":false}}},"b":{}}}`,
		// The machine's humans take part everywhere; a reference may be registered later.
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"},"specialists":[]},"b":{}},"specialists":[{"role":"proposer","specialistId":"h","isHuman":true}]}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"later"}]},"b":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","secondHuman":{"when":"before"},"states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"later"}]},"b":{}},"specialists":[{"role":"proposer","specialistId":"h","isHuman":true}]}`,
		`{"machineName":"m","initialState":"a","goalState":"b","secondHuman":{"when":"after"},"states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"g"}]},"b":{}},"specialists":[
			{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"g","isHuman":true}]}`,
	} {
		lint(t, "m.json", text, machine.LintOptions{Priced: all})
	}
}

func TestLint(t *testing.T) {
	const head = `{"machineName":"é","initialState":"a","goalState":"b","states":{`
	const ab = `"a":{"transitions":{"t":"b"}},"b":{}`
	list := func(entries string) string { return head + ab + `},"specialists":[` + entries + `]}` }
	const proposer = `{"role":"proposer","specialistId":"p","strategyFn":"f"}`
	for _, c := range []struct {
		text string
		want []string
	}{
		// The machine of the acceptance case has one dead end.
		{strings.Replace(review, `"rejected": {}`, `▶"rejected": {}`, 1), []string{`[dead-end] state "rejected" has no transitions and is neither the goal nor final: a session that enters it fails`}},
		{head + ab + `,▶"c":{"final":true},▶"d":{"transitions":{"t":"b"}}}` + someone, []string{
			`[unreachable-state] state "c" cannot be reached from the initial state "a"`, `[unreachable-state] state "d" cannot be reached from the initial state "a"`}},
		{head + `"a":{"transitions":{"t":"b"}},"b":{▶"transitions":{"t":"c"}},▶▶"c":{}}` + someone, []string{
			`[never-taken] the transitions of state "b" are never taken: it is the goal`,
			`[unreachable-state] state "c" cannot be reached from the initial state "a"`,
			`[dead-end] state "c" has no transitions and is neither the goal nor final: a session that enters it fails`}},
		{head + `"a":{"transitions":{"t":"b","u":"c"}},"b":{},"c":{"final":true,▶"transitions":{"t":"a"}}}` + someone, []string{`[never-taken] the transitions of state "c" are never taken: it is final`}},
		{head + `"a":{"transitions":{"t":"b","u":"c"}},"b":{},▶"c":{"transitions":{"t":"d"}},▶"d":{"transitions":{"t":"c"}}}` + someone, []string{
			`[no-path-to-goal] no path leads from state "c" to the goal "b" or to a final state`, `[no-path-to-goal] no path leads from state "d" to the goal "b" or to a final state`}},
		{head + `▶"a":{"transitions":{"t":"c"}},▶"b":{},▶"c":{}}` + someone, []string{
			`[no-path-to-goal] no path leads from state "a" to the goal "b" or to a final state`,
			`[unreachable-state] state "b" cannot be reached from the initial state "a"`,
			`[dead-end] state "c" has no transitions and is neither the goal nor final: a session that enters it fails`}},

		{head + `▶"a":{"transitions":{"t":"b"}},"b":{}}}`, []string{`[no-proposer] nobody is declared to propose in state "a": running the file adds a proposer that takes the first transition`}},
		{head + `▶"a":{"transitions":{"t":"b","u":"c"}},"c":{"transitions":{"t":"b"},"specialists":[` + `{"role":"proposer","specialistId":"p","strategyFn":"f"}]},"b":{}}}`, []string{`[no-proposer] state "a" has no enabled proposer`}},
		{strings.Replace(list(`{"role":"proposer","specialistId":"p","strategyFn":"f","disabled":true},{"role":"arbiter","specialistId":"r"}`), `"a":{`, `▶"a":{`, 1), []string{`[no-proposer] state "a" has no enabled proposer`}},
		{head + `"a":{"transitions":{"t":"b"},▶"specialists":[]},"b":{}}` + someone, []string{`[no-proposer] state "a" has no enabled proposer`}},
		{head + `"a":{"transitions":{"t":"b"},▶"specialists":[{"role":"proposer","specialistId":"p","enabled":false}]},"b":{}}` + someone, []string{`[no-proposer] state "a" has no enabled proposer`}},
		{head + `"a":{"transitions":{"t":"b"},▶"specialists":[{"role":"proposer","specialistId":"p"}]},"b":{}},"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"f","disabled":true}]}`,
			[]string{`[no-proposer] state "a" has no enabled proposer`}},

		// A switch in a reference only switches off.
		{head + `"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"q"},{"role":"proposer","specialistId":"p",▶"enabled":true},{"role":"proposer","specialistId":"o",▶"disabled":false}]},"b":{}},"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"f","disabled":true},{"role":"proposer","specialistId":"o","strategyFn":"f","enabled":false},{"role":"proposer","specialistId":"q","strategyFn":"f"}]}`,
			[]string{`[still-disabled] enabled does not switch "p" on in this state: it is switched off where it is declared`, `[still-disabled] disabled does not switch "o" on in this state: it is switched off where it is declared`}},

		{list(proposer + `,{"role":"arbiter","specialistId":"r"},▶{"role":"arbiter","specialistId":"s"},{"role":"arbiter","specialistId":"u","disabled":true}`), []string{`[second-arbiter] arbiter "s" never decides: "r" comes first in the list`}},
		{head + `"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"p"},{"role":"arbiter","specialistId":"r"},▶{"role":"arbiter","specialistId":"s"}]},"b":{}}` + someone,
			[]string{`[second-arbiter] arbiter "s" never decides: "r" comes first in the list`}},

		{list(`{"role":"proposer","specialistId":"p","strategyFn":"f",▶"threshold":0.5,▶"webhookTokenName":"T",▶"webhookSecretName":"S",▶"provider":"o"}`), []string{
			`[unused-member] threshold of specialist "p" is never used: only an arbiter has a threshold`,
			`[unused-member] webhookTokenName of specialist "p" is never used: there is no webhook`,
			`[unused-member] webhookSecretName of specialist "p" is never used: there is no webhook`,
			`[unused-member] provider of specialist "p" is never used: there is no modelId`}},
		{list(`{"role":"proposer","specialistId":"h","isHuman":true,▶"strategyFn":"f",▶"timeout":"5s",▶"estimatedCostUSD":0,▶"provider":"o",▶"threshold":1}`), []string{
			`[unused-member] strategyFn of specialist "h" is never used: a human is never invoked`,
			`[unused-member] timeout of specialist "h" is never used: a human is never invoked`,
			`[unused-member] estimatedCostUSD of specialist "h" is never used: a human is never invoked`,
			`[unused-member] provider of specialist "h" is never used: a human is never invoked`,
			`[unused-member] threshold of specialist "h" is never used: only an arbiter has a threshold`}},
		{list(`{"role":"proposer","specialistId":"h","isHuman":true,▶"contextWebhookUrl":"https://example.com",▶"modelId":"x",▶"webhookTokenName":"T"}`), []string{
			`[unused-member] contextWebhookUrl of specialist "h" is never used: a human is never invoked`,
			`[unused-member] modelId of specialist "h" is never used: a human is never invoked`,
			`[unused-member] webhookTokenName of specialist "h" is never used: a human is never invoked`}},
		{list(proposer + `,{"role":"arbiter","specialistId":"r",▶"provider":"o",▶"webhookTokenName":"T"}`), []string{
			`[unused-member] provider of specialist "r" is never used: there is no modelId`,
			`[unused-member] webhookTokenName of specialist "r" is never used: there is no webhook`}},

		{head + ab + `},"solicit":{▶"champion":true}` + someone, []string{`[CHAMP001] solicit.champion asks one proposer alone: when it becomes worse, only an audit notices`}},
		{head + `"a":{"solicit":{▶"champion":true},"transitions":{"t":"b"}},"b":{}},"solicit":{"champion":false}` + someone, []string{`[CHAMP001] solicit.champion asks one proposer alone: when it becomes worse, only an audit notices`}},

		{head + ab + `},▶"secondHuman":{}` + someone, []string{`[too-few-humans] no second human ever looks at what is decided in state "a": no human may rule there`}},
		{head + `"a":{"transitions":{"t":"b"},▶"secondHuman":{}},"b":{}},"specialists":[{"role":"proposer","specialistId":"h","isHuman":true}]}`, []string{`[too-few-humans] no second human ever looks at what is decided in state "a": only "h" may rule there`}},
	} {
		lint(t, "m.json", c.text, machine.LintOptions{Priced: all}, slices.Clone(c.want)...)
		lint(t, "m.yaml", c.text, machine.LintOptions{Priced: all}, slices.Clone(c.want)...)
	}
}

// TestLintOfGroups: deciders and each list of approvals name groups; a group that has the id
// of a human, or whose human is named, is named by neither.
func TestLintOfGroups(t *testing.T) {
	m := mustParse(t, "m.json", `{"machineName":"m","initialState":"a","goalState":"b",
"groups":{"deciding":["h"],"from":["h"],"each":["h"],
"h":["h"]},"states":{"b":{},
"a":{"deciders":["group:deciding","h"],"transitions":{"t":{"target":"b","approvals":{"from":["group:from","h"],"each":["group:each"]}},"u":"b"}}},
"specialists":[{"role":"proposer","specialistId":"h","isHuman":true}]}`)
	var got []string
	for _, p := range m.Lint(machine.LintOptions{}) {
		got = append(got, p.Warning())
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], `m.json:3:1: info[unused-group]: nothing names group "h"`) || !strings.Contains(got[0], `as "group:h", or remove it`) {
		t.Errorf("findings are %q", got)
	}
}

// TestLintOfSimilarHumans: one person under two ids that are hardly told apart would count as
// two.
func TestLintOfSimilarHumans(t *testing.T) {
	const ids = `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":▶"car ol","isHuman":true}]},"b":{}},"specialists":[
		{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"Caro","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"caro","isHuman":true},{"role":"proposer","specialistId":▶"Carol","isHuman":true}]}`
	lint(t, "m.json", ids, machine.LintOptions{Priced: all},
		`[similar-humans] humans "carol" and "car ol" differ in case or blanks only, and count as two`, `[similar-humans] humans "carol" and "Carol" differ in case or blanks only, and count as two`)
}

// TestLintOfExclusions: approvals that exclude somebody, without whom too few are left whoever
// that is, can never be given; where somebody else may be excluded, they can.
func TestLintOfExclusions(t *testing.T) {
	const two = `{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"k","isHuman":true}`
	never := func(who string, needed, of int) string {
		return fmt.Sprintf(`[too-few-humans] approvals of transition "t" can never be given where a human of the machine %s: they need %d of %d`, who, needed, of)
	}
	for _, c := range []struct {
		deciders, approvals, who string
		want                     []string
	}{
		{``, `{"exclude":[▶"starter"]}`, `{"role":"proposer","specialistId":"h","isHuman":true}`, []string{never("has started the session", 1, 1)}},
		{``, `{"count":2,"exclude":[▶"starter",▶"previous",▶"a",▶"o"]}`, two, []string{
			never("has started the session", 2, 2), never("has ruled on the step before", 2, 2), never(`has ruled in state "a"`, 2, 2), never(`has ruled in state "o"`, 2, 2)}},
		{``, `{"each":["group:g","group:k"],"exclude":[▶"starter"]}`, two, []string{never("has started the session", 2, 2)}},
		{``, `{"exclude":["starter","previous","a","o"]}`, two, nil},
		{`"deciders":["h"],`, `{"exclude":["starter","previous","o",▶"a"]}`, two, []string{never(`has ruled in state "a"`, 1, 1)}},
		{`"deciders":["h"],`, `{"exclude":["starter"]}`, `{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"j","isHuman":true}`, nil},
	} {
		groups := ""
		if strings.Contains(c.approvals, "group:") {
			groups = `"groups":{"g":["h"],"k":["h","k"]},`
		}
		lint(t, "m.json", `{"machineName":"m","initialState":"o","goalState":"b",`+groups+`"states":{"o":{"transitions":{"on":"a","off":"b"}},"a":{`+c.deciders+
			`"transitions":{"t":{"target":"b","approvals":`+c.approvals+`},"u":"a","v":"b"}},"b":{}},"specialists":[`+c.who+`]}`, machine.LintOptions{Priced: all}, c.want...)
	}
}

func TestLintPrices(t *testing.T) {
	const text = `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"}},"b":{}},"specialists":[
		{"role":"proposer","specialistId":"p","contextFn":"f","modelId":%s"known"},{"role":"proposer","specialistId":"q","contextFn":"f","modelId":%s"other[tools=no]"}]}`
	const known, other = `[unpriced-model] the price of model "known" is not known: a budget in dollars sees no more of it than its default_estimate_usd`, `[unpriced-model] the price of model "other[tools=no]" is not known: a budget in dollars sees no more of it than its default_estimate_usd`
	lint(t, "m.json", fmt.Sprintf(text, mark, mark), machine.LintOptions{}, known, other)
	lint(t, "m.json", fmt.Sprintf(text, "", mark), machine.LintOptions{Priced: func(m string) bool { return m == "known" }}, other)
	lint(t, "m.json", fmt.Sprintf(text, "", ""), machine.LintOptions{Priced: all})
}

// TestLintOfACompiledDefinition: without a file a warning has a path only.
func TestLintOfACompiledDefinition(t *testing.T) {
	def := reviewDefinition()
	def.Specialists[0].Provider = "o"
	m, err := machine.Compile(def, checks())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range m.Lint(machine.LintOptions{}) {
		got = append(got, p.Code+" "+p.Path)
		if p.Line != 0 || p.Column != 0 || p.File != "" {
			t.Errorf("%v has a place", p)
		}
	}
	if want := "dead-end /states/rejected, unused-member /specialists/0/provider"; strings.Join(got, ", ") != want {
		t.Errorf("warnings are %s, want %s", strings.Join(got, ", "), want)
	}
	if m.Digest() != mustDigest(t, def) {
		t.Error("Lint changed the machine")
	}
}

func mustDigest(t *testing.T, def *machine.Definition) string {
	m, err := machine.Compile(def, checks())
	if err != nil {
		t.Fatal(err)
	}
	return m.Digest()
}

// TestLintOfPathsAgainstWalking compares the graph findings with plain walks
// from every state, on random graphs.
func TestLintOfPathsAgainstWalking(t *testing.T) {
	const seed = 20260104
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 500 {
		def := randomGraph(rng)
		m, err := machine.Compile(def, checks())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, p := range m.Lint(machine.LintOptions{}) {
			got[p.Code+" "+p.Path] = true
		}
		from := walk(m, m.Initial(), map[string]bool{})
		for i := range m.States() {
			s := &m.States()[i]
			ends := false
			for name := range walk(m, s, map[string]bool{}) {
				ends = ends || m.State(name).Terminal()
			}
			stuck := !s.Terminal() && len(s.Transitions) == 0
			for code, want := range map[string]bool{
				"unreachable-state": !from[s.Name], "dead-end": stuck,
				"no-path-to-goal": !s.Terminal() && !stuck && !ends,
			} {
				if got[code+" /states/"+s.Name] != want {
					t.Errorf("seed %d, round %d: %s of %q is %t, want %t in %s", seed, round, code, s.Name, !want, want, m.JSON())
				}
			}
		}
	}
}

func randomGraph(rng *rand.Rand) *machine.Definition {
	def := &machine.Definition{MachineName: "m", InitialState: "s0", GoalState: "s1"}
	n := 2 + rng.IntN(7)
	for i := range n {
		s := machine.StateDefinition{Name: fmt.Sprint("s", i), Final: rng.IntN(6) == 0}
		for j := range rng.IntN(3) {
			s.Transitions = append(s.Transitions, machine.TransitionDefinition{Name: fmt.Sprint("t", j), Target: fmt.Sprint("s", rng.IntN(n))})
		}
		def.States = append(def.States, s)
	}
	return def
}

// walk returns the names of all states that a session in s can be in.
func walk(m *machine.Machine, s *machine.State, seen map[string]bool) map[string]bool {
	if seen[s.Name] {
		return seen
	}
	seen[s.Name] = true
	if !s.Terminal() {
		for _, tr := range s.Transitions {
			walk(m, tr.To, seen)
		}
	}
	return seen
}
