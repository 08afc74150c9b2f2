package machine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestSecrets: what looks like a secret is refused where a name or a prompt stands,
// at every level, and shown in no problem. Without a check nothing is.
func TestSecrets(t *testing.T) {
	text := `{"machineName":"m","initialState":"a","goalState":"b","states":{
		"a":{"prompt":"KEY","transitions":{"x":"b"},"specialists":[{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://x.example/?KEY","webhookTokenName":"W","webhookSecretName":"KEY"}]},
		"b":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"KEY"},{"role":"proposer","specialistId":"q","contextFn":"KEY","modelId":"m"},
			{"role":"arbiter","specialistId":"r","strategyFnName":"KEY"}]}`
	holds := func(s string) bool { return strings.Contains(s, "KEY") }
	strategies := func(machine.Role) []string { return []string{"first"} }
	_, err := machine.Parse("m.json", []byte(text), machine.Checks{Secret: holds, Strategies: strategies})
	if err == nil {
		t.Fatal("nothing is found")
	}
	said := err.Error()
	for _, want := range []string{"webhookSecretName holds", `the prompt of state "a" holds`, "strategyFn holds", "contextFn holds", "strategyFnName holds"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if holds(said) || strings.Contains(said, "strategyWebhookUrl") {
		t.Errorf("it says\n%s", said)
	}
	if _, err := machine.Parse("m.json", []byte(text), machine.Checks{}); err != nil {
		t.Errorf("without a check: %v", err)
	}
}

// TestSecretsAnywhere: what looks like a secret is found as a name and in texts that
// nobody reads, whatever the names around it are, and nothing else is said, which might
// show it. Patterns, schemas and addresses may hold some.
func TestSecretsAnywhere(t *testing.T) {
	holds := func(s string) bool { return strings.Contains(s, "KEY") }
	file := func(inState, inFile string) string {
		return `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"x":"b"}},"b":{}` + inState + `}` + inFile + `}`
	}
	for text, want := range map[string]string{
		file(`,"schema":{"transitions":{"parameters":"KEY"}}`, ``):                        "/states/schema/transitions/parameters: parameters holds",
		file(`,"prices":{"transitions":{"url":"KEY"}}`, ``):                               "/states/prices/transitions/url: url holds",
		file(`,"KEY":{"prompt":"KEY"}`, ``):                                               "/states: a name in states holds",
		file(`,"c":{"transitions":{"KEY":"nowhere"}}`, ``):                                "/states/c/transitions: a name in transitions holds",
		file(``, `,"x-a":[[{"url":"KEY"}],"b"]`):                                          "/x-a/0/0/url: url holds",
		file(``, `,"x-a":{"prompt":{"schema":"KEY"}}`):                                    "/x-a/prompt/schema: schema holds",
		file(``, `,"x-a":{"b":{"KEY":1}}`):                                                "/x-a/b: a name in b holds",
		file(``, `,"threshold":"KEY","unknown":1`):                                        "/threshold: threshold holds",
		file(``, `,"KEY":1`):                                                              ": a name in the file holds",
		file(``, `,"guards":{"cost":{"prices":{"schema":{"aliases":["KEY"]},"KEY":{}}}}`): "/guards/cost/prices/schema/aliases/0: aliases holds|/guards/cost/prices: a name in prices holds",
		file(``, `,"guards":{"cost":{"prices":{"url":"KEY"}}}`):                           "/guards/cost/prices/url: url holds",
		file(``, `,"guards":{"cost":{"x-note":"KEY"},"tool_calls":{"KEY":1}}`):            "/guards/cost/x-note: x-note holds|/guards/tool_calls: a name in tool_calls holds",
		file(``, `,"guards":{"forbidden_patterns":["KEY"],"schema":{"KEY":{"const":"KEY"}},"classifier":{"url":"https://x.example/KEY"}}`): "",
	} {
		_, err := machine.Parse("m.json", []byte(text), machine.Checks{Secret: holds})
		var said []string
		if e, ok := errors.AsType[*machine.Error](err); ok {
			for _, p := range e.Problems {
				said = append(said, p.Path+": "+strings.TrimSuffix(p.Message, " what looks like a key"))
			}
		}
		slices.Sort(said)
		if got := strings.Join(said, "|"); got != want || err != nil && holds(err.Error()) {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
	secret := func([]byte) []machine.Problem { t.Error("it is checked"); return nil }
	if err := machine.ParseSection("g.yaml", []byte("{a: {b: [c, KEY]}}"), holds, secret); err == nil || !strings.Contains(err.Error(), "g.yaml:1:13: error[bad-value]: b holds") {
		t.Errorf("a section: %v", err)
	}
}

// TestSecretsInProblems: where a secret may stand, since it is a pattern, a schema or a
// mistake in writing, what is wrong there is said without showing it.
func TestSecretsInProblems(t *testing.T) {
	holds := func(s string) bool { return strings.Contains(s, "KEY") }
	checks := machine.Checks{Secret: holds, Guards: func([]byte, bool) []machine.Problem {
		return []machine.Problem{{Path: "/tool_calls/arg_schemas/KEY/type", Code: "bad-schema", Message: "it is wrong", Hint: "write KEY"}, {Path: "/schema", Code: "bad-schema", Message: "KEY is no type"}}
	}}
	file := func(transition string) string {
		return `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"x":` + transition + `}},"b":{}},"guards":{"schema":true,"tool_calls":{"arg_schemas":{"KEY":{"type":1}}}}}`
	}
	for name, text := range map[string]string{
		"guards.json": file(`"b"`), "parameters.json": file(`{"target":"b","parameters":{"type":"KEY"}}`),
		"alias.yaml": "a: *KEY", "tag.yaml": "a: !" + strings.Repeat("x", 40) + "KEY b", "include.yaml": "machineName: m\nguards: g.yaml",
	} {
		checks.Include = func(string) ([]byte, error) { return []byte("a: *KEY"), nil }
		says := "holds what looks like a key"
		if name == "include.yaml" {
			says = "nothing of a file that a machine file names is shown"
		}
		if _, err := machine.Parse(name, []byte(text), checks); err == nil || holds(err.Error()) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range machineProblems(machine.Parse(name, []byte(text), checks)) {
			if holds(p.Path + p.Message + p.Hint) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	wrong := func([]byte) []machine.Problem {
		return []machine.Problem{{Path: "/schema", Code: "bad-schema", Message: "KEY is no type"}}
	}
	for _, text := range []string{"schema: true", "schema: *KEY"} {
		if err := machine.ParseSection("g.yaml", []byte(text), holds, wrong); err == nil || holds(err.Error()) {
			t.Errorf("a section: %v", err)
		}
	}
}

func machineProblems(_ *machine.Machine, err error) []machine.Problem {
	e, _ := errors.AsType[*machine.Error](err)
	if e == nil {
		return nil
	}
	return e.Problems
}

// TestIncludedFilesShowNoDuplicates: of a file that a machine file names, and that has a
// name twice, nothing is shown: it may be another file than the writer meant.
func TestIncludedFilesShowNoDuplicates(t *testing.T) {
	for _, content := range []string{"KEY: 1\nKEY: 2\n", `{"KEY":1,"KEY":2}`, "limits:\n  KEY: 1\n  KEY: 2\n", "KEY:\n  a: 1\n  a: 2\n"} {
		checks := machine.Checks{Include: func(string) ([]byte, error) { return []byte(content), nil }}
		problems := machineProblems(machine.Parse("m.yaml", []byte("machineName: m\ninitialState: a\ngoalState: b\nstates: {a: {transitions: {x: b}}, b: {}}\nguards: g.yaml\n"), checks))
		found := false
		for _, p := range problems {
			found = found || p.Code == "duplicate-key" && p.File == "g.yaml"
			if strings.Contains(p.Path+p.Message+p.Hint, "KEY") {
				t.Errorf("%q: %+v", content, p)
			}
		}
		if !found {
			t.Errorf("%q: %+v", content, problems)
		}
	}
}
