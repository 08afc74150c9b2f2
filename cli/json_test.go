package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/llm/llmtest"
)

const jsonDocs = "../docs/json.md"

// A page is docs/json.md: its sections by heading.
type page struct {
	headings []string
	text     map[string]string
}

var headingPattern = regexp.MustCompile("(?m)^##+ (.*)$")

func readPage(t *testing.T) page {
	t.Helper()
	data, err := os.ReadFile(jsonDocs)
	if err != nil {
		t.Fatal(err)
	}
	p := page{text: map[string]string{}}
	found := headingPattern.FindAllStringSubmatchIndex(string(data), -1)
	for i, m := range found {
		end := len(data)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		heading := string(data[m[2]:m[3]])
		p.headings = append(p.headings, heading)
		p.text[heading] = string(data[m[1]:end])
	}
	return p
}

var (
	linkPattern  = regexp.MustCompile(`\]\(#([a-z-]+)\)`)
	fieldPattern = regexp.MustCompile("`([A-Za-z_0-9]+)`")
	rowPattern   = regexp.MustCompile("(?m)^\\| `([A-Za-z_0-9]+)` \\|")
	fencePattern = regexp.MustCompile("(?ms)^```json\n(.*?)^```$")
)

func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading, "`", "")), " ", "-")
}

// fields returns what a section says about: what it names, and what the sections
// name that it links to.
func (p page) fields(heading string) map[string]bool {
	names := map[string]bool{}
	add := func(text string) {
		for _, m := range fieldPattern.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	}
	add(p.text[heading])
	for todo, seen := []string{heading}, map[string]bool{}; len(todo) > 0; todo = todo[1:] {
		for _, link := range linkPattern.FindAllStringSubmatch(p.text[todo[0]], -1) {
			for _, other := range p.headings {
				if anchor(other) == link[1] && !seen[other] {
					seen[other] = true
					add(p.text[other])
					todo = append(todo, other)
				}
			}
		}
	}
	return names
}

// check compares what a section documents with what can be printed.
func (p page) check(t *testing.T, heading string, can map[string]bool) {
	t.Helper()
	if _, ok := p.text[heading]; !ok {
		t.Errorf("docs/json.md has no section %q", heading)
		return
	}
	says := p.fields(heading)
	for _, name := range slices.Sorted(maps.Keys(can)) {
		if !says[name] {
			t.Errorf("docs/json.md, %s: nothing is said about %q", heading, name)
		}
	}
	for _, row := range rowPattern.FindAllStringSubmatch(p.text[heading], -1) {
		if !can[row[1]] {
			t.Errorf("docs/json.md, %s: there is no %q", heading, row[1])
		}
	}
}

// TestJSONLines holds the sections of docs/json.md that describe the lines of a
// command to the types of these lines: every member is described, and no other.
func TestJSONLines(t *testing.T) {
	p := readPage(t)
	for heading, line := range cli.JSONLines {
		can := map[string]bool{}
		members(reflect.TypeOf(line), can)
		p.check(t, heading, can)
	}
}

// members collects the names of all members of a type.
func members(typ reflect.Type, into map[string]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		members(typ.Elem(), into)
	case reflect.Struct:
		for f := range fieldsOf(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name != "" {
				into[name] = true
			}
			members(f.Type, into)
		}
	}
}

func fieldsOf(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if f := typ.Field(i); (f.IsExported() || f.Anonymous) && !yield(f) {
				return
			}
		}
	}
}

// An encoder is the source of the functions that write events.
type encoder struct {
	kinds  map[string]string // names of types by kind
	bodies map[string]string // of functions, as "name" or "Type.name"
}

var (
	constPattern   = regexp.MustCompile(`(?m)^\t(Kind\w+) += "(\w+)"$`)
	kindPattern    = regexp.MustCompile(`(?m)^func \(\*(\w+)\) Kind\(\) string +\{ return (Kind\w+) \}$`)
	funcPattern    = regexp.MustCompile(`(?ms)^func (?:\(\w+ \*?(\w+)\) )?(\w+)\([^\n]*\{(.*?)(?:^\}| \})$`)
	memberPattern  = regexp.MustCompile(`"([A-Za-z]+)":`)
	writtenPattern = regexp.MustCompile(`\b([a-z]\w*)\((?:f, )?"([A-Za-z]+)"[,)]`)
)

// calls are how the form of an event names that of its parts, and which function that is;
// TYPE is the type of the event.
var calls = map[*regexp.Regexp]string{
	regexp.MustCompile(`\(\*(\w+)\)\.form\b`):                            "$1.form",
	regexp.MustCompile(`\b(\w+Form)\b`):                                  "$1",
	regexp.MustCompile(`\b(threshold|standing)\(f`):                      "$1",
	regexp.MustCompile(`\bf\.(usage|source|role)\(`):                     "form.$1",
	regexp.MustCompile(`\bd\.(detail|replaces|winner|explanation)\(f\)`): "TYPE.$1",
	regexp.MustCompile(`\bc\.(form)\(f\)`):                               "storedCreation.$1",
	regexp.MustCompile(`\bRemote\.(form)\(f\)`):                          "RemoteAsk.$1",
	regexp.MustCompile(`\bHow\.(form)\(f\)`):                             "DecisionKind.$1",
	regexp.MustCompile(`\bManner\.(form)\(f\)`):                          "Manner.$1",
	regexp.MustCompile(`\bExemplar\.(Append)\(`):                         "Exemplar.$1",
	regexp.MustCompile(`\b((?:append|Append)[A-Z]\w*)\(`):                "$1",
}

func readEncoder(t *testing.T) encoder {
	t.Helper()
	e := encoder{map[string]string{}, map[string]string{}}
	var text strings.Builder
	for _, path := range []string{"event.go", "case.go", "due.go", "roster.go", "form.go", "form_events.go", "form_verdict.go", "retracted.go", "moved.go", "manner.go", "erase.go", "driver.go", "../specialist/proposal.go", "../specialist/context.go"} {
		data, err := os.ReadFile(filepath.Join("../session", path))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
		text.WriteByte('\n')
	}
	values := map[string]string{}
	for _, m := range constPattern.FindAllStringSubmatch(text.String(), -1) {
		values[m[1]] = m[2]
	}
	for _, m := range kindPattern.FindAllStringSubmatch(text.String(), -1) {
		e.kinds[values[m[2]]] = m[1]
	}
	for _, m := range funcPattern.FindAllStringSubmatch(text.String(), -1) {
		name := m[2]
		if m[1] != "" {
			name = m[1] + "." + name
		}
		e.bodies[name] = m[3]
	}
	for constant, value := range values {
		if _, ok := e.kinds[value]; !ok {
			e.kinds[value] = "" // of a machine's log
		}
		if value == "" {
			t.Fatalf("%s has no value", constant)
		}
	}
	return e
}

// written returns the names of all members that a function writes.
func (e encoder) written(function string, into map[string]bool) {
	body := e.bodies[function]
	for _, m := range memberPattern.FindAllStringSubmatch(body, -1) {
		into[m[1]] = true
	}
	for _, m := range writtenPattern.FindAllStringSubmatch(body, -1) {
		if m[1] != "refuse" && m[1] != "fail" {
			into[m[2]] = true
		}
	}
	typ, _, _ := strings.Cut(function, ".")
	for pattern, callee := range calls {
		for _, m := range pattern.FindAllStringSubmatch(body, -1) {
			next := strings.NewReplacer("$1", m[1], "TYPE", typ).Replace(callee)
			if next != function && e.bodies[next] != "" && next != "appendEvent" {
				e.written(next, into)
			}
		}
	}
}

// TestJSONKinds holds docs/json.md to package session: every kind of event that it
// can emit has a section, in which every member that it can write is described,
// and no other.
func TestJSONKinds(t *testing.T) {
	p, e := readPage(t), readEncoder(t)
	if len(e.kinds) < 18 {
		t.Fatalf("only %d kinds found: the test does not see them", len(e.kinds))
	}
	for kind, typ := range e.kinds {
		if typ == "" {
			if !strings.Contains(p.text["Events of a machine"], "`"+kind+"`") {
				t.Errorf("docs/json.md does not mention %s", kind)
			}
			continue
		}
		can := map[string]bool{}
		e.written(typ+".form", can)
		if len(can) == 0 {
			t.Errorf("no member of %s found: the test does not see them", kind)
		}
		p.check(t, "`"+kind+"`", can)
	}
	for _, part := range []struct{ heading, function string }{{"A proposal", "AppendProposal"}, {"Cost members", "AppendUsage"}, {"An exemplar", "Exemplar.Append"}} {
		can := map[string]bool{}
		e.written(part.function, can)
		p.check(t, part.heading, can)
	}
	can := map[string]bool{}
	for _, m := range regexp.MustCompile("`json:\"(\\w+)").FindAllStringSubmatch(readText(t, "../session/roster.go"), -1) {
		can[m[1]] = true
	}
	p.check(t, "Events of a machine", can)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestJSONExamples compares every example of docs/json.md with what the program
// prints: there must be a line of the same kind with the same members, each of the
// same type. -update writes real lines into the page.
func TestJSONExamples(t *testing.T) {
	p, real := readPage(t), realLines(t)
	data := readText(t, jsonDocs)
	checked := 0
	for _, heading := range p.headings {
		blocks := fencePattern.FindAllStringSubmatch(p.text[heading], -1)
		if len(blocks) == 0 {
			continue
		}
		lines := real[heading]
		if len(lines) == 0 {
			t.Errorf("%s: the program was not seen to print such a line", heading)
			continue
		}
		for _, b := range blocks {
			checked++
			if likeOne(b[1], lines) {
				continue
			}
			if !*update {
				t.Errorf("%s: no line that was printed is like\n%s\nbut for example\n%s", heading, b[1], richest(lines))
			}
			p.text[heading] = strings.Replace(p.text[heading], b[0], "```json\n"+exampleOf(t, richest(lines))+"```", 1)
		}
		data = strings.Replace(data, section(data, heading), p.text[heading], 1)
	}
	if checked < 20 {
		t.Errorf("only %d examples found: the test does not see them", checked)
	}
	if *update {
		if err := os.WriteFile(jsonDocs, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for heading, lines := range real { // and nothing is printed that the page does not know
		can := map[string]bool{}
		for _, line := range lines {
			names(decode(t, line), can)
		}
		says := p.fields(heading)
		for name := range can {
			if !says[name] && !p.fields("An event")[name] {
				t.Errorf("docs/json.md, %s: nothing is said about %q", heading, name)
			}
		}
	}
}

// section returns the text below a heading.
func section(page, heading string) string {
	_, text, _ := strings.Cut(page, "# "+heading+"\n")
	if m := headingPattern.FindStringIndex(text); m != nil {
		text = text[:m[0]]
	}
	return "\n" + text
}

func likeOne(example string, lines []string) bool {
	want := shape(decodeAny(example))
	return want != "invalid" && slices.ContainsFunc(lines, func(line string) bool { return shape(decodeAny(line)) == want })
}

func decodeAny(text string) any {
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	if dec.Decode(&v) != nil || dec.More() {
		return fmt.Errorf("no JSON")
	}
	return v
}

func decode(t *testing.T, text string) any {
	t.Helper()
	v := decodeAny(text)
	if _, bad := v.(error); bad {
		t.Fatalf("this is no JSON: %s", text)
	}
	return v
}

// foreign are members whose contents are not the program's own: users, machine
// files and JSON Schema say what is in them.
var foreign = []string{"machine", "metaJson", "facts", "args", "parameters", "context", "alignmentScores", "tool_counts", "guards", "requestHeaders"}

// shape describes names and types of a value, whatever it holds.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(foreign, name) {
				parts = append(parts, name+":foreign")
			} else {
				parts = append(parts, name+":"+shape(v[name]))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, shape(e))
		}
		slices.Sort(parts)
		return "[" + strings.Join(slices.Compact(parts), "|") + "]"
	case error:
		return "invalid"
	}
	return fmt.Sprintf("%T", v)
}

// names collects the names of all members.
func names(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			into[name] = true
			if !slices.Contains(foreign, name) {
				names(member, into)
			}
		}
	case []any:
		for _, e := range v {
			names(e, into)
		}
	}
}

// richest returns the line with the most members.
func richest(lines []string) string {
	return slices.MaxFunc(lines, func(a, b string) int { return len(shape(decodeAny(a))) - len(shape(decodeAny(b))) })
}

// exampleOf returns a line as the page shows it.
func exampleOf(t *testing.T, line string) string {
	t.Helper()
	line = timePattern.ReplaceAllString(line, "2026-01-02T03:04:05.000Z")
	line = hookPattern.ReplaceAllString(line, "127.0.0.1:8787")
	line = regexp.MustCompile(`"actor":"[^"]*"`).ReplaceAllString(line, `"actor":"carol"`)
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(strings.TrimSpace(line)), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

const (
	learner = `{"machineName": "review", "initialState": "draft", "goalState": "published", "states": {
	"draft": {"prompt": "Ready?", "transitions": {"publish": {"target": "published", "description": "It is ready", "parameters": {"type": "object"}}, "discard": "discarded"}}, "discarded": {"final": true}, "published": {}}, "specialists": [
	{"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
	{"role": "proposer", "specialistId": "last", "strategyFnName": "lastAvailable"},
	{"role": "proposer", "specialistId": "broken", "strategyFn": "= metaJson.nothing == 1 ? \"publish\" : \"discard\""},
	{"role": "proposer", "specialistId": "carol", "isHuman": true},
	{"role": "arbiter", "specialistId": "judge", "threshold": 0.5}]}`
	service = `{"machineName": "service", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {"on": "b", "off": "b"}}, "b": {}}, "specialists": [
	{"role": "proposer", "specialistId": "quick", "strategyWebhookUrl": "http://$HOOK/rich", "webhookTokenName": "EXAMPLE_WEBHOOK_TOKEN", "estimatedCostUSD": 0.1},
	{"role": "proposer", "specialistId": "slow", "strategyWebhookUrl": "http://$HOOK/$LAST", "webhookTokenName": "EXAMPLE_WEBHOOK_TOKEN"},
	{"role": "arbiter", "specialistId": "judge"}]}`
	circle = `{"machineName": "circle", "initialState": "a", "goalState": "b", "guards": {"limits": {"max_steps": 2}}, "states": {"a": {"transitions": {"again": "a", "on": "b"}}, "b": {}}, "specialists": [
	{"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"}]}`
)

// realLines runs every command and returns what was printed, by the heading under
// which docs/json.md describes it.
func realLines(t *testing.T) map[string][]string {
	h := newHome(t)
	hook := h.service()
	h.env = append(h.env, "DIALAI_PUBLIC_URL=https://example.com", "DATABASE_URL=sqlite:"+filepath.Join(h.dir, "other.db"))
	expand := strings.NewReplacer("$HOOK", hook.address(), "$LAST", "later")
	h.file("review.json", learner)
	h.file("circle.json", circle)
	h.file("service.json", expand.Replace(service))
	h.file("late.json", strings.NewReplacer("$HOOK/rich", hook.address()+"/wait", "$HOOK", hook.address(), "$LAST", "first").Replace(service))
	h.file("bad.json", `{"machineName": "bad"}`)
	real := map[string][]string{}
	lines := func(heading string, code int, args ...string) {
		out, _ := h.run(code, append(args, "--json")...)
		for line := range strings.Lines(out) {
			real[heading] = append(real[heading], line)
		}
	}
	log := func(id string) {
		lines("An event", 0, "log", id)
	}
	start := func(code int, args ...string) string {
		lines("run", code, append([]string{"run"}, args...)...)
		return first(t, `"sessionId":"([^"]+)"`, real["run"][len(real["run"])-1])
	}
	id := start(3, "review.json", "--meta", "pages=12", "--seed", "7", "--mode", "all")
	lines("`dialai inbox`", 0, "inbox")
	lines("`dialai tick`", 0, "tick")
	h.run(0, "propose", id, "discard", "--as", "first", "--reasoning", "it is old", "--data", `{"page":3}`, "--cost-usd", "0.5", "--input-tokens", "200", "--output-tokens", "30")
	lines("run", 0, "decide", id, "publish", "--reasoning", "it is good", "--data", `{"seen":true}`)
	log(id)
	lines("`dialai show`", 0, "show", id)
	lines("`dialai metrics`", 0, "metrics", "review", "--state", "draft")
	lines("`dialai specialists`", 0, "specialists", "disable", "review", "broken")
	lines("`dialai specialists`", 0, "specialists", "review")

	id = start(5, "service.json")
	lines("`dialai show`", 0, "show", id)
	h.run(0, "propose", id, "on", "--as", "slow")
	h.run(3, "resume", id)
	log(id)
	id = start(4, "circle.json")
	lines("run", 4, "resume", id, "--note", "once more")
	h.file("shadow.json", `{"limits": {"max_steps": 1}}`)
	start(4, "circle.json", "--guards", "shadow.json")
	log(id)
	raised := start(4, "circle.json")
	h.run(4, "resume", raised, "--raise", "limits.max_steps=3", "--note", "once more")
	log(raised)
	shown, _ := h.run(0, "show", raised, "--json")
	real["A raised limit"] = []string{first(t, `"raised":\[(\{.*?\})\]`, shown)}
	late(h, hook)
	log(first(t, `"sessionId":"([^"]+)","machineName":"service"`, h.newest()))

	guards(h, lines, id)
	for _, line := range real["replay"] {
		heading := "A verdict that differs"
		if strings.Contains(line, `"kind":"summary"`) {
			heading = "`dialai replay`"
		}
		real[heading] = append(real[heading], line)
	}
	delete(real, "replay")

	measured(h, lines)
	kinds := map[string]string{"flip": "A flip", "gate": "A step that changes", "point": "A part of the rounds", "specialist": "A made-up voter", "event": "Something that happened"}
	for _, command := range []string{"backtest", "simulate"} {
		for _, line := range real[command] {
			heading := kinds[first(t, `"kind":"(\w+)"`, line)]
			if heading == "" {
				heading = "`dialai " + command + "`"
			}
			real[heading] = append(real[heading], line)
		}
		delete(real, command)
	}
	models(h, lines)
	lines("`dialai sessions`", 0, "sessions")
	lines("`dialai lint`", 3, "lint", "bad.json")
	lines("`dialai lint`", 0, "lint", "circle.json")
	h.file("two.json", `{"machineName": "two", "initialState": "open", "goalState": "done", "states": {"open": {"transitions": {"close": {"target": "done", "irreversible": true}}}, "done": {}}, "specialists": [{"role": "proposer", "specialistId": "ann", "isHuman": true}]}`)
	lines("`dialai graph --format layout`", 0, "graph", "two.json", "--format", "layout")
	lines("`dialai init --list`", 0, "init", "--list")
	lines("`dialai init`", 0, "init", "new.yaml")
	lines("`dialai store verify`", 0, "store", "verify")
	lines("`dialai store head`", 0, "store", "head")
	copied := filepath.Join(t.TempDir(), "backup.db")
	lines("`dialai store backup`", 0, "store", "backup", copied)
	archive := filepath.Join(t.TempDir(), "archive.db")
	other := filepath.Join(filepath.Dir(copied), "copy.db")
	lines("`dialai store copy`", 0, "store", "copy", copied, other)
	for _, line := range real["`dialai sessions`"] {
		if strings.Contains(line, `"status":"completed"`) {
			erased := first(t, `"sessionId":"([^"]+)"`, line)
			lines("`dialai store erase`", 0, "store", "erase", "--session", erased, "--note", "asked to be forgotten", "--store", other)
			out, _ := h.run(0, "log", erased, "--store", other, "--json")
			list := slices.Collect(strings.Lines(out)) // the last one is not empty
			real["An event"] = append(real["An event"], list[len(list)-1])
			break
		}
	}
	lines("`dialai store archive`", 0, "store", "archive", "--before", "1ns", "--include", "stopped,failed", "--to", archive, "--store", copied)
	lines("`dialai store archive`", 0, "store", "archive", "--before", "90d", "--to", archive) // nothing is
	again := filepath.Join(t.TempDir(), "dialai.db")
	lines("`dialai store restore`", 0, "store", "restore", copied, "--store", again)
	lines("`dialai store restore`", 0, "store", "restore", copied, "--store", again) // what is there is kept
	lines("`dialai migrate`", 0, "migrate")
	lines("`dialai version`", 0, "version")
	bench(h, lines)
	for _, line := range slices.Concat(real["An event"], real["run"]) {
		kind := first(t, `"kind":"(\w+)"`, line)
		if heading := map[string]string{"result": "The result", "question": "The question", "shadow": "A shadow that differs", "shadow_summary": "What a shadow comes to"}[kind]; heading != "" {
			real[heading] = append(real[heading], line)
		} else {
			real["`"+kind+"`"] = append(real["`"+kind+"`"], dataOf(t, line))
		}
	}
	runs := slices.DeleteFunc(real["run"], func(line string) bool { return strings.Contains(line, `"kind":"result"`) })
	real["An event"] = append(real["An event"], runs...)
	delete(real, "run")
	real["An event"] = slices.DeleteFunc(real["An event"], func(line string) bool { return !strings.Contains(line, `"kind":"ended"`) })
	return real
}

// guards runs the commands about guards; id is a session that a guard stopped.
func guards(h *home, lines func(heading string, code int, args ...string), id string) {
	h.file("guards.json", `{"profile": "strict", "limits": {"max_steps": 1, "max_tokens_per_step": 10}, "forbidden_patterns": ["lorem"], "tool_calls": {"allowed": ["search"]}, "cost": {"max_dollars_per_task": 1}}`)
	h.stdin = `{"task_id": "t", "output": "lorem ipsum", "state": "a", "model": "m", "tokens_in": 11, "tool_calls": [{"name": "rm"}]}`
	lines("`dialai check`", 2, "check", "--guards", "guards.json")
	h.stdin = `{"task_id": "t", "tool_calls": [{"name": "search"}]}` + "\n{\"op\": \"gc\"}\nbad"
	lines("`dialai check`", 3, "check", "--guards", "guards.json", "--stateful")
	lines("The event log of guards", 0, "log", id, "--guard")
	log, _ := h.run(0, "log", id, "--guard")
	h.file("guard.jsonl", log+`{"session": "s", "type": "record", "candidate_id": "c", "tokens": {"input": 5, "output": 6}, "usd": 0.5}
{"session": "s", "type": "probe", "candidate_id": "c", "stage": "uncertainty", "value": 0.25}
{"session": "s", "type": "record", "tokens": {"input": 5, "output": 6}}
{"session": "s", "type": "check"}
bad
`)
	lines("`dialai analyze`", 0, "analyze", "guard.jsonl")
	lines("replay", 1, "replay", "guard.jsonl", "--guards", "guards.json")
	h.file("budget.json", `{"config": {"soft_limit_tokens": 5, "hard_limit_tokens": 10}, "trace": [{"id": "a", "input": 6}, {"id": "b", "input": 6}]}`)
	lines("`dialai budget`", 2, "budget", "budget.json")
	lines("`dialai guard demo`", 0, "guard", "demo")
	h.stdin = ""
}

// models runs the commands about models.
func models(h *home, lines func(heading string, code int, args ...string)) {
	s, err := llmtest.Start(newScripted().play)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { s.Close() })
	h.env = append(h.env, "DIALAI_LLM_BASE_URL="+s.URL, "OPENROUTER_API_TOKEN=sk-or-secret", "DIALAI_AUDIT=digest")
	h.file("model.json", `{"machineName": "model", "initialState": "a", "goalState": "b", "quorum": "any", "states": {"a": {"transitions": {"on": "b"}}, "b": {}}, "specialists": [
	{"role": "proposer", "specialistId": "reader", "contextFn": "sessionContext", "modelId": "pick-on"}, {"role": "proposer", "specialistId": "broken", "contextFn": "sessionContext", "modelId": "status-401"},
	{"role": "arbiter", "specialistId": "judge"}]}`)
	h.file("prices.json", `{"version": "mine", "replace": true, "prices": {"pick-ok": {"input_per_1m": 1, "output_per_1m": 10}, "gpt-4o": {"input_per_1m": 2.5, "output_per_1m": 10}}}`)
	h.file("check.json", `{"machineName": "check", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {"on": "b"}}, "b": {}}, "specialists": [
	{"role": "proposer", "specialistId": "one", "contextFn": "sessionContext", "modelId": "pick-ok"}, {"role": "proposer", "specialistId": "two", "contextFn": "sessionContext", "modelId": "status-401"}]}`)
	h.run(0, "model.json")
	lines("`dialai audit`", 0, "audit", first(h.T, `"sessionId":"([^"]+)"`, h.newest()))
	lines("`dialai models check`", 1, "models", "check", "check.json", "--prices", "prices.json")
	lines("`dialai prices list`", 0, "prices", "list", "--prices", "prices.json")
	lines("`dialai keys create`", 0, "keys", "create", "carol", "--role", "human", "--human", "carol", "--machine", "claims-*", "--expires", "90d")
	lines("`dialai keys list`", 0, "keys", "list")
}

// measured runs the commands that measure decisions.
func measured(h *home, lines func(heading string, code int, args ...string)) {
	h.file("tight.json", `{"limits": {"max_steps": 1}}`)
	h.file("panel.json", `{"specialists": [{"id": "a", "p": 0.95, "group": "m", "copy": 0.1, "costUSD": 0.01}, {"id": "b", "p": 0.95}], "drift": [{"round": 150, "specialist": "a", "p": 0.1}, {"round": 150, "specialist": "b", "p": 0.1}],
		"machine": {"risk": {"maxError": 0.2}, "collapse": {"target": 0.6}, "audit": {"rate": 0.5}}}`)
	lines("backtest", 0, "backtest", "circle", "--guards", "tight.json")
	lines("backtest", 0, "backtest", "review", "--arbiter", "bayes", "--threshold", "0.5")
	lines("backtest", 0, "backtest", "review", "--arbiter", "firstProposal")
	lines("backtest", 0, "backtest", "review", "--arbiter", "bayes", "--risk", "0.1")
	lines("simulate", 0, "simulate", "--spec", "panel.json", "--rounds", "300")
}

// late lets a service answer when a human has decided already.
func late(h *home, s *hook) {
	cmd := h.command("late.json")
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.awaits(s, 1)
	id := first(h.T, `"sessionId":"([^"]+)"`, h.newest())
	for out := ""; !strings.Contains(out, "said by a service"); { // or the question changes under the ruling
		out, _ = h.run(0, "show", id, "--json")
	}
	h.run(0, "decide", id, "off", "--reasoning", "no time", "--no-run")
	close(s.released)
	if code := exitOf(h.T, cmd.Wait()); code != 0 {
		h.Fatalf("the run that was overtaken ends with %d", code)
	}
}

// newest returns the newest session as a line of JSON.
func (h *home) newest() string {
	out, _ := h.run(0, "sessions", "--limit", "1", "--json")
	return out
}

// dataOf returns the data of an event.
func dataOf(t *testing.T, line string) string {
	t.Helper()
	var e struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	return string(e.Data)
}

// bench measures a few labels and marks.
func bench(h *home, lines func(heading string, code int, args ...string)) {
	truth, answers, marks := "question,truth\n", "question,worker,answer\n", "question,state,cheap\n"
	for i := range 30 {
		class := []string{"approve", "reject"}[i%2]
		truth += fmt.Sprintf("q%d,%s\n", i, class)
		answers += fmt.Sprintf("q%d,ann,%s\nq%d,bob,%s\n", i, class, i, []string{"approve", "reject"}[i/2%2])
		marks += fmt.Sprintf("q%d,easy,1\n", i)
	}
	for _, dir := range []string{"labels", "marks"} {
		if err := os.Mkdir(filepath.Join(h.dir, dir), 0o755); err != nil {
			h.Fatal(err)
		}
	}
	h.file("labels/truth.csv", truth)
	h.file("labels/answer.csv", answers)
	h.file("marks/correct.csv", marks)
	lines("`dialai bench decisions`", 0, "bench", "decisions", "--data", "labels", "--gold", "10", "--splits", "2", "--orders", "2")
	lines("`dialai bench decisions`", 0, "bench", "decisions", "--data", "marks")
}
