package graph

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/machine"
)

// DOT returns a digraph of m for Graphviz. States have the ids s0, s1 and so on
// in written order, so that any name can be a label. A round is not drawn.
func DOT(m *machine.Machine, v View) string {
	s := newScene(m, v)
	var b strings.Builder
	b.WriteString("digraph {\n")
	direction := "TB"
	if s.depth() <= 5 {
		direction = "LR"
	}
	groups, _ := s.groups()
	fmt.Fprintf(&b, "    rankdir=%s\n    label=%s\n    labelloc=t\n    fontname=\"Helvetica\"\n    bgcolor=\"white\"\n", direction, quoteDOT(append([]string{clean(m.Name())}, groups...)...))
	b.WriteString("    node [shape=box, style=\"rounded,filled\", fillcolor=\"#f8fafc\", color=\"#94a3b8\", fontcolor=\"#0f172a\", fontname=\"Helvetica\"]\n")
	b.WriteString("    edge [color=\"#8a99ae\", fontcolor=\"#0f172a\", fontname=\"Helvetica\", fontsize=11, arrowsize=0.7]\n")
	fmt.Fprintf(&b, "    start [shape=circle, label=\"\", width=0.14, fixedsize=true, style=filled, fillcolor=\"#8a99ae\"]\n")
	for i := range s.marks {
		fmt.Fprintf(&b, "    s%d [%s]\n", i, s.dotState(i))
	}
	fmt.Fprintf(&b, "    start -> s%d\n", m.Initial().Index)
	for i := range s.marks {
		for _, t := range m.States()[i].Transitions {
			fmt.Fprintf(&b, "    s%d -> s%d [%s]\n", i, t.To.Index, s.dotStep(t))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotState returns the attributes of a state.
func (s *scene) dotState(i int) string {
	text := "label=" + quoteDOT(s.stateText(i)...)
	for _, look := range looks(s.view.Status) {
		if look.name != s.look(i) {
			continue
		}
		text += fmt.Sprintf(", fillcolor=%q, color=%q, fontcolor=%q", look.fill, look.stroke, look.text)
		if look.dashed {
			text += `, style="rounded,filled,dashed"`
		}
	}
	if s.m.States()[i].Terminal() {
		text += ", peripheries=2"
	}
	return text + dotTooltip(s.stateNotes(i))
}

// dotStep returns the attributes of a transition.
func (s *scene) dotStep(t *machine.Transition) string {
	text := "label=" + quoteDOT(s.stepText(t)...)
	switch {
	case len(s.taken[t]) > 0:
		text += fmt.Sprintf(`, color="#4f46e5", penwidth=%d`, min(1+len(s.taken[t]), 5))
	case t.From.Terminal() || s.marks[t.From.Index].lost:
		text += `, style=dotted`
	case t.OnlyHumans():
		text += `, color="#be123c", fontcolor="#be123c"`
	}
	return text + dotTooltip(s.stepNotes(t))
}

// dotTooltip returns the attribute that shows notes in full where a pointer rests; ""
// if no note is cut.
func dotTooltip(notes []note) string {
	var full []string
	some := false
	for _, n := range notes {
		_, cut := n.lines()
		full, some = append(full, n.text), some || cut
	}
	if !some {
		return ""
	}
	return ", tooltip=" + quoteDOT(full...)
}

// quoteDOT returns lines as a quoted string: no escape sequence of Graphviz but the ends
// of lines and no character reference of HTML is left in it.
func quoteDOT(lines ...string) string {
	escapes := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
	text := ""
	for i, line := range lines {
		text += [2]string{"", `\n`}[min(i, 1)] + escapes.Replace(line)
	}
	return `"` + text + `"`
}
