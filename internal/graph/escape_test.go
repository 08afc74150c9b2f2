package graph_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// hard lists names that mean something in one of the formats.
var hard = []string{
	"end", "note", "state", "[*]", "-->", "--", "---", "%%", "%%{init:{}}%%", ";", ":", "a::b", "s0", "as s1", "{", "}",
	"direction TB", "direction\u00a0LR", "my Direction LR", "classDef a fill:#fff;", "style x fill:#f9f;", "class s0 goal", "click s0 href",
	"accTitle: x", "end note", "<<choice>>", "[[fork]]", "hide empty description", "note right of s0", "1. list", "- list",
	"# heading", "*a* **b** _c_", "`code`", "$$x^2$$", "fa:fa-car", "[link](http://a.b)", "#35;", "&lt;b&gt;", "&amp;", "&#60;",
	"<script>alert(1)</script>", "</title></svg>", "]]>", "<!-- x -->", `"`, `\`, `ends with \`, `\"`, `\N \G \l \n`, "'", "node", "graph", "->",
	"a\u00a0b", "日本語", "👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "e\u0301", "ﷺ", strings.Repeat("W", 128), strings.Repeat("long ", 25) + "x",
}

// named returns a machine whose states and transitions have the given names.
func named(t testing.TB, names []string) *machine.Machine {
	t.Helper()
	def := &machine.Definition{MachineName: "names", InitialState: names[0], GoalState: names[len(names)-1]}
	for i, n := range names {
		def.States = append(def.States, machine.StateDefinition{Name: n,
			Transitions: []machine.TransitionDefinition{{Name: names[len(names)-1-i], Target: names[(i+1)%len(names)]}}})
	}
	m, err := machine.Compile(def, machine.Checks{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pairs returns names in lists of two, one after the other.
func pairs() [][]string {
	var list [][]string
	for i := range hard {
		list = append(list, []string{hard[i], hard[(i+1)%len(hard)]})
	}
	return list
}

var entity = regexp.MustCompile(`#(\d+);`)

func TestMermaidNames(t *testing.T) {
	safe := regexp.MustCompile(`^(?:[^\x00-\x1f"#:;<>%\\{}\[\]*_$-]|#\d+;)+$`)
	keyword := regexp.MustCompile(`(?i)direction[\s\p{Z}]`)
	for _, names := range pairs() {
		m := named(t, names)
		var labels []string
		for line := range strings.Lines(graph.Mermaid(m, graph.View{})) {
			line = strings.TrimSpace(line)
			if text, ok := strings.CutPrefix(line, `state "`); ok {
				text, _, _ = strings.Cut(text, `" as s`)
				labels = append(labels, text)
			} else if _, text, ok := strings.Cut(line, " : "); ok {
				labels = append(labels, text)
			}
		}
		want := []string{names[0], names[1], names[1], names[0]}
		if len(labels) != len(want) {
			t.Fatalf("%q: labels %q", names, labels)
		}
		for i, label := range labels {
			if !safe.MatchString(label) || keyword.MatchString(label) {
				t.Errorf("%q is written as %q", want[i], label)
			}
			back := entity.ReplaceAllStringFunc(label, func(e string) string {
				n, _ := strconv.Atoi(e[1 : len(e)-1])
				return string(rune(n))
			})
			if back != want[i] {
				t.Errorf("%q reads back as %q", want[i], back)
			}
		}
	}
}

func TestDOTNames(t *testing.T) {
	for _, names := range pairs() {
		m := named(t, names)
		var labels []string
		for line := range strings.Lines(graph.DOT(m, graph.View{})) {
			if _, text, ok := strings.Cut(line, "[label="); ok {
				label, rest := unquote(t, text)
				labels = append(labels, label)
				if !strings.HasPrefix(rest, "]") && !strings.HasPrefix(rest, ", ") {
					t.Errorf("after the label of %q: %q", names, rest)
				}
			}
		}
		same(t, "labels", labels, []string{names[0], names[1], names[1], names[0]})
	}
}

// unquote reads a quoted string of DOT as Graphviz shows it in a label, and
// returns what follows.
func unquote(t testing.TB, text string) (label, rest string) {
	t.Helper()
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return strings.ReplaceAll(label, "&amp;", "&"), text[i+1:]
		case '\\':
			i++
			if text[i] == 'n' {
				label += "\n"
				continue
			}
			if text[i] != '"' && text[i] != '\\' {
				t.Errorf("escape sequence \\%c in %s", text[i], text)
			}
		case '&':
			if !strings.HasPrefix(text[i:], "&amp;") {
				t.Errorf("character reference in %s", text)
			}
		}
		label += text[i : i+1]
	}
	t.Fatalf("no end of %s", text)
	return "", ""
}

func TestSVGNames(t *testing.T) {
	for _, names := range pairs() {
		svg := graph.SVG(named(t, names), graph.View{State: names[0], Status: names[1]})
		checkPicture(t, svg)
		d := read(t, svg).diagram()
		for i, s := range d.all("dg-state") {
			if !strings.HasPrefix(s.title(), names[i]) {
				t.Errorf("state %q has the title %q", names[i], s.title())
			}
		}
		for i, s := range d.all("dg-step") {
			if want := names[i] + ": " + names[1-i] + " → " + names[1-i]; s.title() != want {
				t.Errorf("transition has the title %q, want %q", s.title(), want)
			}
		}
	}
}

func TestSVGNeedsNothingElse(t *testing.T) {
	for _, s := range samples {
		svg := string(graph.SVG(parse(t, s.machine), s.view))
		for _, bad := range []string{"<script", "href", "url(", "@import", "<image", "<foreignObject", "$", " on"} {
			if i := strings.Index(svg[strings.Index(svg, "<style>"):strings.Index(svg, "</style>")], bad); i >= 0 {
				t.Errorf("%s: %q in the style sheet", s.name, bad)
			}
			if s.name != "hostile" && bad != " on" && strings.Contains(svg, bad) {
				t.Errorf("%s: has %q", s.name, bad)
			}
		}
	}
}

// Words that do not come from a machine file are not checked by anybody before.
func TestControlCharacters(t *testing.T) {
	m := parse(t, review)
	bad := "a\x00b\x1b[31m\u202e\ufffe\xff\u2028c"
	v := graph.View{State: "pending", Status: bad, Round: &graph.Round{Prompt: bad, Verdict: bad, Winner: bad,
		Proposals: []graph.Proposal{{Specialist: bad, Transition: bad, Weight: -exact.One}}}}
	svg := graph.SVG(m, v)
	read(t, svg)
	if i := strings.IndexFunc(string(svg), func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == '\u202e') }); i >= 0 {
		t.Errorf("control character in %q", svg[i:])
	}
}

func FuzzNames(f *testing.F) {
	for i := range hard {
		f.Add(hard[i], hard[(i+7)%len(hard)], hard[(i+13)%len(hard)])
	}
	f.Fuzz(func(t *testing.T, state, transition, other string) {
		def := &machine.Definition{MachineName: other, InitialState: state, GoalState: "goal " + state}
		def.States = []machine.StateDefinition{
			{Name: state, Transitions: []machine.TransitionDefinition{{Name: transition, Target: state}, {Name: "go", Target: def.GoalState}}},
			{Name: def.GoalState},
		}
		m, err := machine.Compile(def, machine.Checks{Stored: true})
		if err != nil {
			m = parse(t, review)
			state = "pending"
		}
		v := graph.View{State: state, Status: other, Path: []graph.Step{{From: state, Transition: transition}},
			Round: &graph.Round{Number: len(other), Prompt: other, Verdict: transition, Winner: transition,
				Proposals: []graph.Proposal{{Specialist: other, Transition: transition, Weight: exact.Billionths(len(other)) * exact.One}}}}
		checkPicture(t, graph.SVG(m, v))
		checkDrawing(t, m, graph.Layout(m))
		checkPage(t, m)
		for _, text := range []string{graph.Mermaid(m, v), graph.DOT(m, v), graph.Terminal(m, v, 0)} {
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
				t.Errorf("control character in %q", text)
			}
		}
		if got, want := strings.Count(graph.Mermaid(m, v), "\n"), 5+len(m.States())+2; err == nil && got < want {
			t.Errorf("%d lines, want at least %d", got, want)
		}
	})
}

func ExampleMermaid() {
	m, err := machine.Parse("", []byte(`{"machineName": "review", "initialState": "pending", "goalState": "approved",
		"states": {"pending": {"transitions": {"approve": "approved", "reject": "rejected"}},
			"approved": {}, "rejected": {"final": true}}}`), machine.Checks{Stored: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(graph.Mermaid(m, graph.View{}))
	// Output:
	// stateDiagram-v2
	//     direction LR
	//     state "pending" as s0
	//     state "approved" as s1
	//     state "rejected" as s2
	//     [*] --> s0
	//     s0 --> s1 : approve
	//     s0 --> s2 : reject
	//     s1 --> [*]
	//     s2 --> [*]
	//     classDef goal fill:#dcfce7,stroke:#15803d,color:#14532d
	//     class s1 goal
	//     classDef final fill:#e2e8f0,stroke:#475569,color:#0f172a
	//     class s2 final
}
