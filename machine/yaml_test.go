package machine_test

import (
	"fmt"
	"strings"
	"testing"
)

const reviewYAML = `# The acceptance case.
machineName: document-review
initialState: pending
goalState: approved
states:
  pending:
    prompt: Review the document. Approve or request changes?
    transitions: {approve: approved, reject: rejected}
  approved: {}
  rejected: {}
specialists:
  - {role: proposer, specialistId: ai-proposer, strategyFnName: firstAvailable}
  - role: arbiter
    specialistId: consensus-arbiter
    strategyFnName: alignmentMargin
    threshold: 0.5
`

func TestYAMLIsTheSameMachine(t *testing.T) {
	a, b := mustParse(t, "m.json", review), mustParse(t, "m.yml", reviewYAML)
	if string(a.JSON()) != string(b.JSON()) || a.Digest() != b.Digest() {
		t.Errorf("JSON gives\n%s\nYAML\n%s", a.JSON(), b.JSON())
	}
}

// TestStandardInput: without an extension the text says which language it is.
func TestStandardInput(t *testing.T) {
	want := mustParse(t, "m.json", review).Digest()
	for _, c := range []struct{ name, text string }{
		{"-", review}, {"-", reviewYAML}, {"-", "\n\t " + review}, {"-", "\xEF\xBB\xBF" + review}, {"-", "\xEF\xBB\xBF" + reviewYAML},
		{"", review}, {"machine", reviewYAML}, {"machine.txt", review}, {"a.b/machine", reviewYAML}, {"M.JSON", review}, {"M.YAML", reviewYAML}, {"m.yaml", review},
	} {
		if m := mustParse(t, c.name, c.text); m.Digest() != want {
			t.Errorf("%q, %.20q: another machine", c.name, c.text)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"-", "{", "Invalid JSON: the document ends too early"}, {"-", "\xEF\xBB\xBF{", "Invalid JSON: the document ends too early"},
		{"-", "a: [", "Invalid YAML: did not find expected node content"}, {"-", "", "Invalid machine definition: must be an object"},
		{"m.json", reviewYAML, "Invalid JSON: invalid character '#' looking for beginning of value"},
		{"m.json", "", "Invalid JSON: the document ends too early"}, {"m.yaml", "", "Invalid machine definition: must be an object"},
	} {
		if got := problems(t, c.name, c.text).Summary(); got != c.want {
			t.Errorf("%q, %.20q: %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

// TestKeyOrder: states and transitions keep the order in which they are written,
// names that look like integers too, in both languages.
func TestKeyOrder(t *testing.T) {
	const text = `{"machineName":"m","initialState":"10","goalState":"2","states":{
		"10":{"transitions":{"b":"2","10":"2","9":"a","-1":"2","a":"2","1e3":"2","00":"10"}},"2":{},"a":{},"1":{},"-":{},"~":{},"null":{},"true":{},"010":{},"1.0":{}}}`
	for _, name := range []string{"m.json", "m.yaml"} {
		m := mustParse(t, name, strings.ReplaceAll(text, "\t", ""))
		var states, transitions []string
		for _, s := range m.States() {
			states = append(states, s.Name)
		}
		for _, tr := range m.Initial().Transitions {
			transitions = append(transitions, tr.Name)
		}
		if got, want := strings.Join(states, " "), "10 2 a 1 - ~ null true 010 1.0"; got != want {
			t.Errorf("%s: states are %s, want %s", name, got, want)
		}
		if got, want := strings.Join(transitions, " "), "b 10 9 -1 a 1e3 00"; got != want {
			t.Errorf("%s: transitions are %s, want %s", name, got, want)
		}
	}
}

// TestYAMLKeysAreText: a key is the text as it is written, quoted or not.
func TestYAMLKeysAreText(t *testing.T) {
	m := mustParse(t, "m.yaml", `machineName: m
initialState: "on"
goalState: "2026-01-02"
states:
  on: {transitions: {yes: "2026-01-02", 010: "0x10", ~: "null", -: "-", -x: "--", "<<": "1.50"}}
  2026-01-02: {}
  0x10: {}
  null: {}
  "-": {}
  --: {}
  1.50: {}
`)
	var got []string
	for _, tr := range m.Initial().Transitions {
		got = append(got, tr.Name+">"+tr.Target)
	}
	if want := "yes>2026-01-02 010>0x10 ~>null ->- -x>-- <<>1.50"; strings.Join(got, " ") != want {
		t.Errorf("transitions are %s, want %s", strings.Join(got, " "), want)
	}
}

// TestYAMLNumbers: the numbers of JSON as they are written, other forms by their
// value, and none whose readers disagree.
func TestYAMLNumbers(t *testing.T) {
	const head = "machineName: m\ninitialState: a\ngoalState: a\nstates: {a: {}}\n"
	for _, c := range []struct{ text, want string }{
		{"0", "0"}, {"-0", "0"}, {"1", "1"}, {"0.5", "0.5"}, {".5", "0.5"}, {"5e-1", "0.5"}, {"+.25", "0.25"}, {"1.", "1"}, {"0x1", "1"}, {"0b1", "1"}, {"0o1", "1"}, {"+1", "1"}, {"!!float 1", "1"}, {"0.50000000000000001", "0.5"},
	} {
		m := mustParse(t, "m.yaml", head+"consensusThreshold: "+c.text)
		if got := m.Initial().Threshold.String(); got != c.want {
			t.Errorf("%s is %s, want %s", c.text, got, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{".inf", ".inf is not a finite number"}, {"-.Inf", "-.Inf is not a finite number"}, {".nan", ".nan is not a finite number"}, {"1e400", "the number 1e400 is too large"}, {"-1e999", "the number -1e999 is too large"},
		{"01", "the number 01 begins with 0"}, {"010", "the number 010 begins with 0"}, {"-01", "the number -01 begins with 0"}, {"+00", "the number +00 begins with 0"}, {"0_1", "the number 0_1 begins with 0"}, {"00.5", "the number 00.5 begins with 0"}, {"08", "the number 08 begins with 0"},
	} {
		for _, member := range []string{"solicit: {wave: %s}", "risk: {maxError: %s}", "guards: {limits: {max_steps: %s}}", "consensusThreshold: %s", "specialists: [{role: proposer, specialistId: s, strategyFn: f, estimatedCostUSD: %s}]"} {
			invalid := problems(t, "m.yaml", head+fmt.Sprintf(member, c.text))
			if n := len(invalid.Problems); n != 1 {
				t.Errorf("%s: %d problems: %v", c.text, n, invalid)
			}
		}
		if got := problems(t, "m.yaml", head+"risk: {maxError: "+c.text+"}").Problems[0].Message; got != "maxError must be a number, not this: "+c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}

// TestYAMLForms are what YAML has and JSON has not.
func TestYAMLForms(t *testing.T) {
	const head = "machineName: m\ninitialState: a\ngoalState: b\n"
	const plain = "states: {a: {transitions: {t: b, u: b}}, b: {}}\n"
	same := mustParse(t, "m.yaml", head+plain).Digest()
	for _, text := range []string{
		head + "states: {a: {transitions: {t: &x b, u: *x}}, b: {}}",
		head + "states:\n  a:\n    transitions: &t\n      t: b\n      u: b\n  b: {}\n",
		"%YAML 1.1\n---\n" + head + plain + "...\n", "---\n" + head + plain, "\n# c\n" + head + plain + "# end\n", strings.ReplaceAll(head+plain, "\n", "\r\n"),
		"!!map\n" + head + plain, "machineName: !!str m\ninitialState: 'a'\ngoalState: \"b\"\n" + plain, head + "x-a: &a [1, *b]\nx-b: 1\n" + plain,
	} {
		if strings.Contains(text, "*b") {
			text = strings.Replace(text, "x-a: &a [1, *b]\nx-b: 1\n", "x-b: &b 1\nx-a: [1, *b]\n", 1)
		}
		if got := mustParse(t, "m.yaml", text).Digest(); got != same {
			t.Errorf("%q is another machine", text)
		}
	}
	deep := mustParse(t, "m.yaml", head+"states:\n  a: {specialists: &s [{role: proposer, specialistId: p, strategyFnName: random}], transitions: {t: b}}\n  b: {specialists: *s}\n")
	if r := deep.State("b").Roster; len(r) != 1 || r[0].SpecialistID != "p" {
		t.Errorf("an alias of a list gives %+v", r)
	}
	for _, c := range []struct{ marked, want, hint string }{
		{head + "x-y: &x [▶*x]\n" + plain, "the alias *x contains itself", ""},
		{head + "x-y: &x {a: [{b: ▶*x}]}\n" + plain, "the alias *x contains itself", ""},
		{head + "x-base: &x {t: b}\nstates: {a: {transitions: {▶<<: *x}}, b: {}}", "merge keys (<<) are not supported", "repeat the members, or use an alias for the whole value"},
		{head + "states: {a: {}, b: {}, ▶[c]: {}}", "a key is not a plain text", "write the name of the member as text"},
		{head + "states: {a: {}, b: {}}\n? ▶{c: d}\n: e\n", "a key is not a plain text", "write the name of the member as text"},
		{head + "x-n: &n b\nstates: {a: {}, ▶*n : {}}", "a key is not a plain text", "write the name of the member as text"},
		{head + "x-b: ▶!!binary aGVsbG8=\n" + plain, "the tag !!binary is not supported", "remove the tag"},
		{head + "x-b: ▶!mine 5\n" + plain, "the tag !mine is not supported", "remove the tag"},
		{head + "states: ▶!!set {a, b}\n", "the tag !!set is not supported", "remove the tag"},
		{head + "x-b: ▶!!omap [a: 1]\n" + plain, "the tag !!omap is not supported", "remove the tag"},
		{head + "requireTrust: ▶!!bool maybe\n" + plain, `"maybe" is no boolean`, "write true or false"},
		{head + "states:\n  ä: {b: ▶*nowhere}\n  c: *nowhere\n", "unknown anchor 'nowhere' referenced", ""},
		{head + "# a comment\n▶x-a: b\x01c\n", "control characters are not allowed", ""},
		{head + plain + "▶x-deep: " + strings.Repeat("[", 20000) + "\n", "exceeded max depth of 10000", ""},
		{head + plain + "▶---\n" + head + plain, "the file holds a second document", "one machine, one file"},
		{head + plain + "▶---\n", "the file holds a second document", "one machine, one file"},
	} {
		want := "[syntax] Invalid YAML: " + c.want
		if c.hint != "" {
			want += " | " + c.hint
		}
		expect(t, "m.yaml", c.marked, want)
	}
}

// TestYAMLSyntax: what the library finds has at least its line.
func TestYAMLSyntax(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
	}{
		{"a: b: c", 1}, {"machineName: m\n\tstates: {}\n", 2}, {"a: 'x\n", 2}, {"a: *nowhere\n", 1}, {"a: [1, 2\nb: 3\n", 2}, {"a: \"\\q\"\n", 1}, {"{a: 1}\n}\n", 2}, {"a: 1\n---\nb: [", 3}, {"\x00", 1}, {"a: \x01", 1}, {"@", 1},
	} {
		invalid := problems(t, "m.yaml", c.text)
		p := invalid.Problems[0]
		if p.Code != "syntax" || !strings.HasPrefix(invalid.Summary(), "Invalid YAML: ") || p.Line < 1 || p.Line > c.line || p.Column < 1 {
			t.Errorf("%q: %v", c.text, p)
		}
	}
}

// TestYAMLLines: an alias is found on its line, whatever ends the lines.
func TestYAMLLines(t *testing.T) {
	p := problems(t, "m.yaml", "# of a Mac\r# of a mainframe\u0085# of Windows\r\na: *nowhere\r\n").Problems[0]
	if p.Line != 4 || p.Column != 4 {
		t.Errorf("found at %d:%d, want 4:4: %v", p.Line, p.Column, p)
	}
}

// TestExtensions: x- members and a top-level $schema are ignored, whatever they
// hold, and do not change the digest; names of states may begin with x-.
func TestExtensions(t *testing.T) {
	plain := mustParse(t, "m.json", minimal)
	for _, text := range []string{
		`{"$schema":"https://example.com/s.json","x-note":{"a":1,"a":[null,1e400]},"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"x-":1,"transitions":{"t":{"target":"b","x-y":null}}},"b":{"x-z":[]}}}`,
		`{"$schema":7,"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"}},"b":{}}}`,
	} {
		if got := mustParse(t, "m.json", text); got.Digest() != plain.Digest() {
			t.Errorf("%s is %s, want %s", text, got.JSON(), plain.JSON())
		}
	}
	sections := mustParse(t, "m.json", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}},"x-r":1,"risk":{"maxError":0.1,"x-a":1},
		"solicit":{"mode":"all","x-b":1},"guards":{"x-c":{"limits":1},"limits":{"max_steps":1}},"specialists":[{"role":"proposer","specialistId":"s","strategyFn":"f","x-d":1}]}`)
	if strings.Contains(string(sections.JSON()), "x-") {
		t.Errorf("members that are ignored are in the digest: %s", sections.JSON())
	}
	names := mustParse(t, "m.json", `{"machineName":"x-m","initialState":"x-a","goalState":"x-b","states":{"x-a":{"transitions":{"x-t":"x-b"}},"x-b":{}}}`)
	if len(names.States()) != 2 || names.Initial().Transition("x-t") == nil {
		t.Errorf("names that begin with x- are lost: %s", names.JSON())
	}
	expect(t, "m.json", `{"machineName":"m","initialState":"x-a","goalState":"x-a","states":{"x-a":▶5}}`, `[wrong-type] state "x-a" must be an object, not a number`)
}
