package machine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
)

// The proof that the published schema says what the loader does. Every problem
// of the loader is one the schema must refuse too, one it cannot see, or one it
// may see. A document agrees if the schema refuses it exactly when the loader
// reports a problem of the first kind, or, with a problem of the third, either.

type sight int

const (
	must  sight = iota // the schema must refuse
	blind              // the schema cannot say this
	may                // the schema sees it in part
)

// A sightRule says which problems the schema can express, and why not the
// others. The first one that matches counts; a code without one is must.
type sightRule struct {
	code   string
	when   func(p machine.Problem, at any) bool // nil is always
	sees   sight
	reason string
}

func says(text string) func(machine.Problem, any) bool {
	return func(p machine.Problem, _ any) bool { return strings.Contains(p.Message, text) }
}

var sightRules = []sightRule{
	{"syntax", nil, blind, "a schema sees values, not the text they are written in"},
	{"too-many", nil, blind, "it is no problem of its own"},
	{"hidden-character", nil, may, "only what is hidden in the names of states, transitions and specialists"},
	{"duplicate-key", nil, blind, "a JSON value has no duplicate members"},
	{"unknown-state", func(p machine.Problem, _ any) bool {
		return p.Hint == "" && strings.Contains(p.Message, "does not exist") && p.Path != ""
	}, may, "only that there are no states at all"},
	{"unknown-state", nil, blind, "one value cannot be held to the keys of another"},
	{"unknown-target", func(p machine.Problem, _ any) bool { return strings.HasPrefix(p.Hint, "name the state it leads to") }, must, ""},
	{"unknown-target", nil, blind, "one value cannot be held to the keys of another"},
	{"duplicate-id", says("is empty"), must, ""},
	{"duplicate-id", nil, blind, "items cannot be compared by one of their members"},
	{"contradiction", func(p machine.Problem, _ any) bool { return p.Path == "/defaultState" }, blind, "two members cannot be compared"},
	{"contradiction", says("above output_max"), blind, "two members cannot be compared"},
	{"contradiction", says("more than hard_limit"), blind, "two members cannot be compared"},
	{"duplicate-member", nil, blind, "items of different lists cannot be compared"},
	{"bad-value", says("it must be at least"), blind, "two members cannot be compared"},
	{"bad-value", says("it must be more than"), blind, "two members cannot be compared"},
	{"bad-value", says("no number of repetitions gets there"), blind, "it has to be tried out"},
	{"missing-field", says("once the machine's guards are added"), blind, "two members cannot be laid over each other"},
	{"contradiction", says("once the machine's guards are added"), blind, "two members cannot be laid over each other"},
	{"contradiction", says("tau_u is 1"), blind, "only together with two other members"},
	{"unknown-transition", nil, blind, "items cannot be held to the keys of another member"},
	{"bad-strategy", nil, blind, "who decides a state is found in two lists"},
	{"bad-pattern", nil, blind, "whether a pattern compiles"},
	{"bad-include", nil, blind, "whether a file can be read"},
	{"wrong-machine", nil, blind, "two members cannot be compared"},
	{"unknown-human", nil, may, "an entry cannot be held to one of another list"},
	{"unknown-group", nil, blind, "one value cannot be held to the keys of another"},
	{"too-few-humans", nil, blind, "the humans of several lists cannot be counted"},
	{"bad-value", says("a group names humans, and no groups"), blind, "a group's name may begin like that"},
	{"bad-role", says("human"), may, "an entry cannot be held to one of another list"},
	{"bad-role", says("it is declared as"), blind, "an entry cannot be held to one of another list"},
	{"bad-expression", says("more than 1024"), must, ""},
	{"bad-expression", says("which is no expression"), must, ""},
	{"bad-expression", nil, blind, "an expression is a language of its own"},
	{"bad-schema", says("must be an object"), must, ""},
	{"bad-schema", nil, blind, "whether its references resolve and its patterns compile"},
	{"bad-url", says("has a port"), blind, "a number in a text cannot be bounded"},
	{"bad-url", says("is not a URL"), may, "the grammar of addresses is seen in part"},
	{"bad-duration", func(_ machine.Problem, at any) bool { return outOfRange(at) }, blind, "a sum of hours, minutes and seconds cannot be bounded"},
	{"too-large", func(p machine.Problem, at any) bool {
		text, _ := at.(string)
		return strings.HasSuffix(p.Message, " bytes") && utf8.RuneCountInString(text) <= 4096
	}, blind, "a schema counts characters, not bytes, and no values but its own"},
	{"too-large", says("transitions, more than 10000"), blind, "a sum over states cannot be bounded"},
}

// outOfRange reports whether a duration is written well but too long, or so
// short that it rounds to nothing.
func outOfRange(at any) bool {
	text, isString := at.(string)
	if !isString || text == "99999999999h" {
		return isString
	}
	_, err := time.ParseDuration(text)
	return err == nil && !strings.HasPrefix(text, "-") && strings.ContainsAny(text, "123456789")
}

func sightOf(p machine.Problem, doc any) sight {
	at, _ := get(doc, place(pointerParts(p.Path)))
	for _, r := range sightRules {
		if r.code == p.Code && (r.when == nil || r.when(p, at)) {
			return r.sees
		}
	}
	return must
}

func pointerParts(path string) []string {
	if path == "" {
		return nil
	}
	parts := strings.Split(path[1:], "/")
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	}
	return parts
}

// An agreement compares schema and loader, and notes the codes it met.
type agreement struct {
	schema  *machine.Schema
	checks  machine.Checks
	refused map[string]int // by code
	valid   int
}

// compact returns JSON without its blanks: a schema's size is bounded.
func compact(data []byte) []byte {
	var out bytes.Buffer
	_ = json.Compact(&out, data) // what is no JSON is no schema either
	return out.Bytes()
}

func newAgreement(t testing.TB) *agreement {
	schema, err := machine.NewSchema(compact(machine.FileSchema()))
	if err != nil {
		t.Fatal(err)
	}
	return &agreement{schema: schema, checks: checks(), refused: map[string]int{}}
}

// compare returns what schema and loader disagree about, or nil.
func (a *agreement) compare(doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	refusal := a.schema.Validate(data)
	_, err = machine.Parse("m.json", data, a.checks)
	if err == nil {
		a.valid++
		if refusal != nil {
			return fmt.Errorf("the schema refuses what the loader accepts: %w", refusal)
		}
		return nil
	}
	var invalid *machine.Error
	if !errors.As(err, &invalid) {
		return err
	}
	seen := make([]sight, len(invalid.Problems))
	for i, p := range invalid.Problems {
		seen[i] = sightOf(p, doc)
		a.refused[p.Code]++
	}
	switch {
	case slices.Contains(seen, must) && refusal == nil:
		return fmt.Errorf("the schema accepts what the loader refuses: %w", err)
	case !slices.Contains(seen, must) && !slices.Contains(seen, may) && refusal != nil:
		return fmt.Errorf("the schema refuses (%w) what it should not see: %v", refusal, err)
	}
	return nil
}

func TestFileSchemaAgreesWithTheLoader(t *testing.T) {
	t.Parallel()
	root, a := publishedSchema(t), newAgreement(t)
	total := 0
	for i, base := range bases {
		mustParse(t, "base.json", base)
		doc := parseDoc(t, base)
		for k, m := range mutations(root, doc) {
			if k%stride != 0 {
				continue
			}
			total++
			if err := a.compare(with(doc, m.at, m.value)); err != nil {
				t.Errorf("base %d, %s: %v", i, m, err)
			}
		}
	}
	t.Logf("%d of %d mutations were valid", a.valid, total)
	if stride > 1 {
		return // some codes have one mutation
	}
	for _, code := range []string{"missing-field", "wrong-type", "unknown-field", "bad-threshold", "bad-role", "duplicate-id", "contradiction",
		"bad-mode", "unknown-strategy", "bad-url", "bad-schema", "bad-duration", "bad-name", "bad-value", "out-of-range", "unknown-transition", "too-large"} {
		if a.refused[code] == 0 {
			t.Errorf("no mutation was refused with the code %q", code)
		}
	}
}

func TestFileSchemaAgreesOnRandomDocuments(t *testing.T) {
	t.Parallel()
	root, a := publishedSchema(t), newAgreement(t)
	const seed = 20260102
	rng := rand.New(rand.NewPCG(seed, 0))
	const rounds = 4000 / stride
	for n := range rounds {
		base := rng.IntN(len(bases))
		doc, done := randomly(rng, root, parseDoc(t, bases[base]))
		if err := a.compare(doc); err != nil {
			t.Errorf("seed %d, round %d, base %d, %v: %v", seed, n, base, done, err)
		}
	}
	if a.valid < rounds/20 || a.valid > rounds*19/20 {
		t.Errorf("%d of %d random documents were valid: the test looks at one side only", a.valid, rounds)
	}
	t.Logf("%d of %d random documents were valid", a.valid, rounds)
}

// TestFileSchemaAgreesOnModes tries every combination of the members that say
// how a specialist is asked, in the list of the machine and in that of a state.
func TestFileSchemaAgreesOnModes(t *testing.T) {
	t.Parallel()
	a := newAgreement(t)
	fields := []struct{ name, proposer, arbiter string }{
		{"strategyFn", "f", "f"}, {"strategyFnName", "random", "firstProposal"},
		{"strategyWebhookUrl", "https://a.example", "https://a.example"},
		{"contextFn", "f", "f"}, {"contextWebhookUrl", "https://a.example", "https://a.example"},
		{"modelId", "a/b", "a/b"}, {"agent", "claude", "claude"}, {"webhookTokenName", "T", "T"}, {"threshold", "", ""},
	}
	for bits := range 1 << (len(fields) + 2) {
		s := map[string]any{"specialistId": "s", "role": "proposer", "isHuman": bits&1 > 0}
		for i, f := range fields {
			switch given := bits>>(i+2)&1 > 0; {
			case given && f.name == "threshold":
				s[f.name] = 0.5
			case given && bits&2 > 0:
				s["role"], s[f.name] = "arbiter", f.arbiter
			case given:
				s[f.name] = f.proposer
			case i%2 == 0 && f.name != "threshold":
				s[f.name] = "" // counts as absent
			}
		}
		doc := parseDoc(t, minimal)
		for _, at := range []place{{"specialists"}, {"states", "a", "specialists"}} {
			if err := a.compare(with(doc, at, []any{s})); err != nil {
				t.Errorf("%s: %v: %v", at, s, err)
			}
		}
	}
	t.Logf("%d combinations were valid", a.valid)
}

func TestFileSchemaAgreesOnSizes(t *testing.T) {
	t.Parallel()
	doc := parseDoc(t, minimal)
	many := func(n int, v func(i int) any) map[string]any {
		all := map[string]any{"a": v(0), "b": v(0)}
		for i := len(all); i < n; i++ {
			all[fmt.Sprint("n", i)] = v(i)
		}
		return all
	}
	roster := func(n int) (list []any) {
		for i := range n {
			list = append(list, map[string]any{"role": "proposer", "specialistId": fmt.Sprint(i), "strategyFn": "f"})
		}
		return list
	}
	state := func(int) any { return map[string]any{} }
	target := func(int) any { return "a" }
	for _, c := range []struct {
		at    place
		value any
		valid bool
	}{
		{place{"states"}, many(1000, state), true},
		{place{"states"}, many(1001, state), false},
		{place{"states", "a", "transitions"}, many(256, target), true},
		{place{"states", "a", "transitions"}, many(257, target), false},
		{place{"specialists"}, roster(256), true},
		{place{"specialists"}, roster(257), false},
		{place{"states", "a", "specialists"}, roster(256), true},
		{place{"states", "a", "specialists"}, roster(257), false},
		{place{"states", "a", "prompt"}, strings.Repeat("p", 65536), true},
		{place{"states", "a", "prompt"}, strings.Repeat("p", 65537), false},
	} {
		a := newAgreement(t)
		if err := a.compare(with(doc, c.at, c.value)); err != nil {
			t.Errorf("%s: %.400v", c.at, err)
		}
		if valid := a.valid == 1; valid != c.valid {
			t.Errorf("%s: valid is %t, want %t", c.at, valid, c.valid)
		}
	}
}

// TestFileSchemaCannotSay shows, for each rule beyond the schema, a file that
// the schema accepts and the loader refuses.
func TestFileSchemaCannotSay(t *testing.T) {
	const head = `{"machineName":"m","initialState":"a","goalState":"b",`
	const states = `"states":{"a":{"transitions":{"t":"b"}},"b":{}}`
	one := func(transition string) string {
		return head + `"states":{"a":{"transitions":{"t":` + transition + `}},"b":{}}}`
	}
	two := func(first, second string) string {
		return head + states + `,"specialists":[` + first + `,` + second + `]}`
	}
	timeout := func(d string) string {
		return head + states + `,"solicit":{"timeout":"` + d + `"}}`
	}
	a := newAgreement(t)
	for _, c := range []struct{ code, text string }{
		{"unknown-state", strings.Replace(head, `"b"`, `"c"`, 1) + states + `}`},
		{"unknown-target", one(`"c"`)},
		{"duplicate-id", two(`{"role":"proposer","specialistId":"s","strategyFn":"f"}`, `{"role":"proposer","specialistId":"s","strategyFn":"f"}`)},
		{"contradiction", head + states + `,"defaultState":"a"}`},
		{"wrong-machine", two(`{"role":"proposer","specialistId":"s","strategyFn":"f","machineName":"n"}`, `{"role":"arbiter","specialistId":"r"}`)},
		{"bad-role", head + `"specialists":[{"role":"proposer","specialistId":"s","strategyFn":"f"}],"states":{"a":{"specialists":[{"role":"arbiter","specialistId":"s"}]},"b":{}}}`},
		{"bad-expression", two(`{"role":"proposer","specialistId":"s","strategyFn":"= 1 +"}`, `{"role":"arbiter","specialistId":"r"}`)},
		{"bad-schema", one(`{"target":"b","parameters":{"pattern":"("}}`)},
		{"bad-schema", one(`{"target":"b","parameters":{"$ref":"https://example.com/s.json"}}`)},
		{"bad-url", two(`{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://%zz","webhookTokenName":"T"}`, `{"role":"arbiter","specialistId":"r"}`)},
		{"bad-url", two(`{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://h:65536","webhookTokenName":"T"}`, `{"role":"arbiter","specialistId":"r"}`)},
		{"bad-duration", timeout("8761h")},
		{"bad-duration", timeout("0.1ns")},
		{"out-of-range", two(`{"role":"proposer","specialistId":"s","strategyFn":"f","estimatedCostUSD":1e-500}`, `{"role":"arbiter","specialistId":"r"}`)},
		{"too-large", head + `"states":{"a":{"prompt":"` + strings.Repeat("é", 40000) + `"},"b":{}}}`},
		{"too-large", head + states + `,"x-big":"` + strings.Repeat("b", 1<<20) + `"}`},
		{"too-large", head + states + `,"x-deep":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`},
		{"duplicate-key", head + states + `,"goalState":"b"}`},
	} {
		if err := a.schema.Validate([]byte(c.text)); err != nil {
			t.Errorf("%s: the schema can say this: %v", c.code, err)
		}
		_, err := machine.Parse("m.json", []byte(c.text), a.checks)
		var invalid *machine.Error
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Code != c.code {
			t.Errorf("%s: Parse = %v", c.code, err)
		}
	}
}
