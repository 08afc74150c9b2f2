package graph

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dialai/dialai/machine"
)

// Mermaid returns a stateDiagram-v2 of m. States have the ids s0, s1 and so on
// in written order, so that any name can be a label. A round is not drawn.
func Mermaid(m *machine.Machine, v View) string {
	s := newScene(m, v)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	if s.depth() <= 5 {
		b.WriteString("    direction LR\n")
	}
	for i := range s.marks {
		fmt.Fprintf(&b, "    state \"%s\" as s%d\n", mermaidLines(s.stateText(i)), i)
	}
	fmt.Fprintf(&b, "    [*] --> s%d\n", m.Initial().Index)
	for i := range s.marks {
		st := &m.States()[i]
		for _, t := range st.Transitions {
			fmt.Fprintf(&b, "    s%d --> s%d : %s\n", i, t.To.Index, mermaidLines(s.stepText(t)))
		}
		if st.Terminal() {
			fmt.Fprintf(&b, "    s%d --> [*]\n", i)
		}
	}
	s.mermaidClasses(&b)
	return b.String()
}

// mermaidClasses writes the classes that occur and the states they have.
func (s *scene) mermaidClasses(b *strings.Builder) {
	for _, look := range looks(s.view.Status) {
		var ids []string
		for i := range s.marks {
			if s.look(i) == look.name {
				ids = append(ids, fmt.Sprintf("s%d", i))
			}
		}
		if len(ids) == 0 {
			continue
		}
		dashes := ""
		if look.dashed {
			dashes = ",stroke-dasharray:5 4"
		}
		fmt.Fprintf(b, "    classDef %s fill:%s,stroke:%s,color:%s%s\n", look.name, look.fill, look.stroke, look.text, dashes)
		fmt.Fprintf(b, "    class %s %s\n", strings.Join(ids, ","), look.name)
	}
}

// mermaidLines returns a label of several lines.
func mermaidLines(lines []string) string {
	escaped := make([]string, len(lines))
	for i, line := range lines {
		escaped[i] = escapeMermaid(line)
	}
	return strings.Join(escaped, "<br>")
}

// escapeMermaid returns s as it can stand in a label: everything that could
// mean something to a reader of Mermaid, Markdown or HTML is written as a number.
func escapeMermaid(s string) string {
	const keyword = "direction" // is looked for in the middle of labels too
	var b strings.Builder
	for i, r := range s {
		start := max(0, i-len(keyword))
		switch {
		case r == ' ' && strings.EqualFold(s[start:i], keyword), !plainMermaid(r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plainMermaid reports whether r can be written as it is.
func plainMermaid(r rune) bool {
	switch {
	case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z':
		return true
	case r <= '~':
		return strings.ContainsRune(" (),", r)
	}
	return !unicode.IsSpace(r)
}
