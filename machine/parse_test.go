package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
)

// review is the machine that the acceptance case runs.
const review = `{ "machineName": "document-review", "initialState": "pending", "goalState": "approved",
  "states": {
    "pending": { "prompt": "Review the document. Approve or request changes?",
      "transitions": { "approve": "approved", "reject": "rejected" } },
    "approved": {}, "rejected": {} },
  "specialists": [
    { "role": "proposer", "specialistId": "ai-proposer", "strategyFnName": "firstAvailable" },
    { "role": "arbiter", "specialistId": "consensus-arbiter", "strategyFnName": "alignmentMargin", "threshold": 0.5 } ] }`

func TestParse(t *testing.T) {
	m := mustParse(t, "machine.json", review)
	if m.Name() != "document-review" || m.Initial().Name != "pending" || m.Goal().Name != "approved" {
		t.Errorf("machine %q runs from %q to %q", m.Name(), m.Initial().Name, m.Goal().Name)
	}
	var names []string
	for i := range m.States() {
		s := &m.States()[i]
		names = append(names, s.Name)
		if s.Index != i || m.State(s.Name) != s {
			t.Errorf("state %q has index %d, want %d", s.Name, s.Index, i)
		}
		for j, tr := range s.Transitions {
			names = append(names, tr.Name)
			if tr.Index != j || tr.From != s || tr.To != m.State(tr.Target) {
				t.Errorf("transition %q of %q leads from %v to %v", tr.Name, s.Name, tr.From, tr.To)
			}
		}
	}
	if got := strings.Join(names, " "); got != "pending approve reject approved rejected" {
		t.Errorf("states and transitions are %s", got)
	}
	if m.State("nowhere") != nil || m.Initial().Transition("nowhere") != nil {
		t.Error("there is a state or transition that is not there")
	}
	if m.Initial().Terminal() || !m.Goal().Terminal() || !m.Goal().Goal || m.State("rejected").Terminal() {
		t.Error("only the goal is terminal")
	}
	if s := m.Specialists(); len(s) != 2 || s[1].Role != machine.Arbiter || s[1].Threshold.String() != "0.5" {
		t.Errorf("specialists are %+v", s)
	}
}

// problems parses a text that must be refused, and returns why.
func problems(t *testing.T, name, text string) *machine.Error {
	t.Helper()
	_, err := machine.Parse(name, []byte(text), checks())
	var invalid *machine.Error
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
		t.Fatalf("Parse(%.300q) = %v, want an *Error with problems", text, err)
	}
	return invalid
}

// mark stands in a test's text before each place that a problem points to.
const mark = "▶"

// unmark returns text without its marks, and the places they stood at, as
// line:column from 1, columns in code points.
func unmark(text string) (clean string, places []string) {
	for i, part := range strings.Split(text, mark) {
		if i > 0 {
			line := strings.Count(clean, "\n") + 1
			column := utf8.RuneCountInString(clean[strings.LastIndexByte(clean, '\n')+1:]) + 1
			places = append(places, fmt.Sprintf("%d:%d", line, column))
		}
		clean += part
	}
	return clean, places
}

// expect parses a marked text and compares every problem with its mark and with
// what is wanted: "[code] message" and, after " | ", the hint.
func expect(t *testing.T, name, marked string, want ...string) {
	t.Helper()
	text, places := unmark(marked)
	invalid := problems(t, name, text)
	if len(places) != len(want) {
		t.Fatalf("%d marks, %d problems wanted", len(places), len(want))
	}
	var got []string
	for _, p := range invalid.Problems {
		line := fmt.Sprintf("%d:%d [%s] %s", p.Line, p.Column, p.Code, p.Message)
		if p.Hint != "" {
			line += " | " + p.Hint
		}
		got = append(got, line)
		if p.File != name {
			t.Errorf("the problem %q is in file %q, want %q", p.Message, p.File, name)
		}
	}
	for i := range want {
		want[i] = places[i] + " " + want[i]
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("problems are\n%s\nwant\n%s\nin %.300s", a, b, text)
	}
}

// TestDialChecks holds the eight checks of DIAL to their order and their texts,
// in JSON and, where the file can be written as YAML, there too.
func TestDialChecks(t *testing.T) {
	const rest = `"initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"}},"b":{}}}`
	for _, c := range []struct{ row, text, want string }{
		{"1", `[]`, `must be an object`}, {"1", `null`, `must be an object`}, {"1", `"x"`, `must be an object`}, {"1", `7`, `must be an object`}, {"1", `true`, `must be an object`},
		{"2", `{}`, `missing or invalid machineName`},
		{"2", `{` + rest, `missing or invalid machineName`},
		{"2", `{"machineName":"",` + rest, `missing or invalid machineName`},
		{"2", `{"machineName":7,` + rest, `missing or invalid machineName`},
		{"2", `{"machineName":null,` + rest, `missing or invalid machineName`},
		{"3", `{"machineName":"m"}`, `missing or invalid initialState`},
		{"3", `{"machineName":"m","initialState":"","goalState":"b","states":{"b":{}}}`, `missing or invalid initialState`},
		{"3", `{"machineName":"m","initialState":["a"],"goalState":"b","states":{"b":{}}}`, `missing or invalid initialState`},
		{"4", `{"machineName":"m","initialState":"a"}`, `missing or invalid goalState`},
		{"4", `{"machineName":"m","initialState":"a","goalState":"","states":{"a":{}}}`, `missing or invalid goalState`},
		{"4", `{"machineName":"m","initialState":"a","goalState":false,"states":{"a":{}}}`, `missing or invalid goalState`},
		{"4", `{"machineName":"m","initialState":"a","goalState":"","defaultState":"a","states":{"a":{}}}`, `missing or invalid goalState`},
		{"4", `{"machineName":"m","initialState":"a","defaultState":"","states":{"a":{}}}`, `missing or invalid goalState`},
		{"5", `{"machineName":"m","initialState":"a","goalState":"b"}`, `missing or invalid states`},
		{"5", `{"machineName":"m","initialState":"a","goalState":"b","states":null}`, `missing or invalid states`},
		{"5", `{"machineName":"m","initialState":"a","goalState":"b","states":[]}`, `missing or invalid states`},
		{"5", `{"machineName":"m","initialState":"a","goalState":"b","states":"a"}`, `missing or invalid states`},
		{"6", `{"machineName":"m","initialState":"x","goalState":"y","states":{"a":{}}}`, `initialState "x" does not exist in states`},
		{"6", `{"machineName":"m","initialState":"x","goalState":"y","states":{}}`, `initialState "x" does not exist in states`},
		{"7", `{"machineName":"m","initialState":"a","goalState":"y","states":{"a":{}}}`, `goalState "y" does not exist in states`},
		{"7", `{"machineName":"m","initialState":"a","defaultState":"y","states":{"a":{}}}`, `goalState "y" does not exist in states`},
		{"8", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":"x"}}}}`, `transition "t" in state "a" points to non-existent state "x"`},
		{"8", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":{}}}}}`, `transition "t" in state "a" has no target`},
		{"8", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":{"target":"x"},"u":"y"}}}}`, `transition "t" in state "a" points to non-existent state "x"`},
		// A later check never comes first, wherever it stands in the file.
		{"order", `{"states":{"a":{"transitions":{"t":"x"}}},"goalState":"y","initialState":"x","machineName":""}`, `missing or invalid machineName`},
		{"order", `{"states":{"a":{"transitions":{"t":"x"}}},"goalState":"y","initialState":"x","machineName":"m"}`, `initialState "x" does not exist in states`},
		{"order", `{"states":{"a":{"transitions":{"t":"x"}}},"goalState":"y","initialState":"a","machineName":"m"}`, `goalState "y" does not exist in states`},
		{"order", `{"nonsense":1,"states":{"a":{"transitions":{"t":"x"}}},"goalState":"a","initialState":"a","machineName":"m"}`, `transition "t" in state "a" points to non-existent state "x"`},
		{"none", `{"nonsense":1,"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}}}`, `the machine has no field "nonsense"`},
	} {
		for _, name := range []string{"m.json", "m.yaml"} { // this JSON is YAML, too
			invalid := problems(t, name, c.text)
			if got, want := invalid.Summary(), "Invalid machine definition: "+c.want; got != want {
				t.Errorf("row %s, %s, %s: %q, want %q", c.row, name, c.text, got, want)
			}
			if text := invalid.Error(); !strings.HasPrefix(text, invalid.Summary()+"\n"+name+":") {
				t.Errorf("row %s: the whole text is %q", c.row, text)
			}
		}
	}
}

// TestProblemText is the form of the whole text, as the command line prints it.
func TestProblemText(t *testing.T) {
	text := `{ "machineName": "m", "initialState": "a", "goalState": "approved",
  "states": {
    "a": {
      "transitions": { "ä": "a", "approve": "aproved" } }, "approved": {} } }`
	const want = `Invalid machine definition: transition "approve" in state "a" points to non-existent state "aproved"
machine.json:4:45: error[unknown-target]: transition "approve" in state "a" points to non-existent state "aproved"
    hint: did you mean "approved"?`
	invalid := problems(t, "machine.json", text)
	if got := invalid.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p := invalid.Problems[0]
	if p.Path != "/states/a/transitions/approve" {
		t.Errorf("the path is %q", p.Path)
	}
	p.Line, p.Column, p.Hint = 0, 0, ""
	if got, want := p.String(), `machine.json: error[unknown-target]: `+p.Message+` (at /states/a/transitions/approve)`; got != want {
		t.Errorf("without a place: %s, want %s", got, want)
	}
	p.File = ""
	if got, want := p.Warning(), `warning[unknown-target]: `+p.Message+` (at /states/a/transitions/approve)`; got != want {
		t.Errorf("without a file: %s, want %s", got, want)
	}
}
