package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// What a machine says about the data and the people of its sessions, and by when, in words.
// A transition may have a condition, write into the data, take approvals and be a timer's; a
// state may name its deciders and be due; the machine names groups of humans. Each is a note: one or two lines
// below the name that it belongs to, or an entry of the legend. Notes are broken and cut at
// the same width in Mermaid, DOT and SVG, so that no expression makes a drawing wider than
// its names do; what was cut is in full where a pointer rests, but for Mermaid. People are
// named as the file names them, a group by its name and not by its humans. A machine
// without any of it has no notes.

// A note is a fact about a state or a transition.
type note struct {
	text string // in full
	many string // instead of a text that is too long; "" for its beginning
}

// The room of a note.
const (
	noteWidth = 150 // in pixels, of smallFont
	noteMost  = 2   // lines
)

// lines returns the note as it is drawn, and whether that is less than its text.
func (n note) lines() (lines []string, cut bool) {
	lines = smallFont.wrap(n.text, noteWidth, noteMost)
	cut = len(smallFont.wrap(n.text, noteWidth, noteMost+1)) > noteMost
	if cut && n.many != "" {
		lines = []string{n.many}
	}
	return lines, cut
}

// noteLines returns the lines of notes as they are drawn.
func noteLines(notes []note) (lines []string) {
	for _, n := range notes {
		own, _ := n.lines()
		lines = append(lines, own...)
	}
	return lines
}

// stepNotes returns the condition of a transition, the approvals that it takes, when a timer
// executes it and what it writes.
func (s *scene) stepNotes(t *machine.Transition) (notes []note) {
	if t.When != "" {
		notes = append(notes, note{text: "when " + flat(strings.TrimPrefix(t.When, "="))})
	}
	if t.Approvals != nil {
		declared := s.m.Definition().States[t.From.Index].Transitions[t.Index].Approvals
		notes = append(notes, note{text: "takes " + approvalText(declared)})
	}
	if t.From.Timer == t {
		notes = append(notes, note{text: "timer: " + dueText(t.From.Due)})
	}
	if len(t.Set) > 0 {
		members := make([]string, len(t.Set))
		for i, a := range t.Set {
			members[i] = clean(a.Member)
		}
		notes = append(notes, note{text: "sets " + strings.Join(members, ", "), many: "sets " + plural(len(members), "member")})
	}
	return notes
}

// stateNotes returns who may rule in a state and by when it is to be left, if it says so.
func (s *scene) stateNotes(i int) (notes []note) {
	if deciders := s.m.Definition().States[i].Deciders; deciders != nil {
		notes = append(notes, note{text: "deciders: " + people(deciders, ", ")})
	}
	if due := s.m.Definition().States[i].Due; due != nil {
		notes = append(notes, note{text: "due " + dueText(due)})
	}
	return notes
}

// dueText says by when a state is to be left.
func dueText(d *machine.Due) string {
	if d.In != 0 {
		return "in " + short(d.In)
	}
	return "at " + flat(strings.TrimPrefix(d.At, "="))
}

// short writes a duration without the units of which it has none.
func short(d machine.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// approvalText says how many humans have to choose a transition, of whom, and who may not.
func approvalText(a *machine.Approvals) string {
	text := plural(a.Needed(), "approval")
	each, one := people(a.Each, " + "), len(a.Each) == 1 && a.Needed() == 1
	switch {
	case a.From != nil:
		text = fmt.Sprintf("%d of %s", a.Needed(), people(a.From, " or "))
	case one:
		text, each = "1 of "+each, ""
	case len(a.Each) > 0 && a.Needed() == len(a.Each):
		text, each = each, ""
	}
	if each != "" {
		text += ", with " + each
	}
	for _, what := range a.Exclude {
		if what != machine.ExcludeStarter && what != machine.ExcludePrevious {
			what = "who ruled in " + clean(what)
		}
		text += ", not " + what
	}
	return text
}

// people returns a list of humans and groups as text.
func people(list []string, between string) string {
	names := make([]string, len(list))
	for i, name := range list {
		names[i] = clean(strings.TrimPrefix(name, "group:"))
	}
	return strings.Join(names, between)
}

// The room of the groups.
const (
	groupMost  = 12
	groupWidth = leastWidth - 2*pad - glyphRoom // in pixels, of smallFont
)

// groups says who is in each group of the machine, in as many lines as there is room for,
// cut and in full.
func (s *scene) groups() (lines, full []string) {
	list := s.m.Definition().Groups
	for i, g := range list {
		text := clean(g.Name) + ": " + people(g.Humans, ", ")
		if i == groupMost {
			text = "and " + plural(len(list)-i, "more group")
		}
		lines, full = append(lines, smallFont.cut(text, groupWidth)), append(full, text)
		if i == groupMost {
			break
		}
	}
	return lines, full
}

// noted reports whether anything has a note.
func (s *scene) noted() bool {
	for i := range s.m.States() {
		if s.stateNotes(i) != nil || slices.ContainsFunc(s.m.States()[i].Transitions, func(t *machine.Transition) bool { return s.stepNotes(t) != nil }) {
			return true
		}
	}
	return false
}

// inFull returns the title of something and its notes, uncut, a line each.
func inFull(title string, notes []note) string {
	for _, n := range notes {
		title += "\n" + n.text
	}
	return title
}
