package undertaking

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/session"
)

// What a human is told when it is their move, a line each: what is asked, and all that they need
// for an answer, as far as it is not kept from them.

// asked tells people once that a human is asked, and what.
func (l *Loop) asked() {
	if l.s.Status != session.NeedsHuman || l.waiting {
		return
	}
	l.waiting = true
	reason := l.s.ReasonFor(owner)
	if !isOwners(l.s.State.Name) {
		l.tell(who{}, "your move: %s", reason)
		for _, line := range verdictsOf(l.s) {
			l.tell(who{}, "%s", line)
		}
		return
	}
	if l.tell(who{}, "your move: %s", l.s.State.Prompt); len(l.s.Proposals()) > 0 {
		l.tell(who{}, "%s", reason)
	}
	for _, line := range asking(l.s) {
		l.tell(who{}, "%s", line)
	}
}

// verdictsOf says what was proposed, as far as the human may know it, with what it rests on.
func verdictsOf(s *session.Session) (lines []string) {
	if s.Withheld(owner) != "" {
		return nil
	}
	for _, p := range s.Proposals() {
		lines = append(lines, fmt.Sprintf("%s proposes %s: %s", p.SpecialistID, p.Transition.Name, messageIn(p.MetaJSON)))
		for _, f := range read[struct {
			Findings []struct{ Text, Evidence string }
		}](p.MetaJSON).Findings {
			lines = append(lines, fmt.Sprintf("%s finds: %s (%s)", p.SpecialistID, f.Text, f.Evidence))
		}
	}
	return lines
}

// asking says what a human has to know for a move of theirs, a line each: the questions, or the
// plan.
func asking(s *session.Session) (lines []string) {
	for i, q := range read[[]struct {
		Text    string
		Options []string
	}](s.Data().Get("questions")) {
		line := fmt.Sprintf("question %d: %s", i+1, q.Text)
		if len(q.Options) > 0 {
			line += " (" + strings.Join(q.Options, ", ") + ")"
		}
		lines = append(lines, line)
	}
	if s.State.Name != "awaiting_assent" {
		return lines
	}
	plan := read[struct {
		Understanding, Check string
		Deliverables         []string
		Done                 []string `json:"done_when"`
		Out                  []string `json:"out_of_scope"`
	}](s.Data().Get("plan"))
	lines = append(lines, "understood: "+plan.Understanding)
	for _, part := range []struct {
		name string
		list []string
	}{{"delivers", plan.Deliverables}, {"out of scope", plan.Out}, {"done when", plan.Done}, {"check", []string{plan.Check}}} {
		for _, text := range part.list {
			if text != "" {
				lines = append(lines, part.name+": "+text)
			}
		}
	}
	return lines
}
