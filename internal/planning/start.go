package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/refusal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Starter returns who starts a session of a machine.
func Starter(m *machine.Machine, a *session.Actor) (*session.Actor, error) {
	if m.Starters() && (a == nil || len(a.Humans) == 0) {
		return nil, refusal.New(refusal.ErrIllegal, "no_starter", "machine %q excludes who has started a session from approvals: say as whom it is started (run --as ID)", m.Name())
	}
	if a != nil {
		for _, id := range a.Humans {
			if why := noHuman(m, id); why != "" {
				return nil, refusal.New(refusal.ErrIllegal, "no_human", "machine %q has no human %q: %s", m.Name(), id, why)
			}
		}
	}
	return a.Clone(), nil
}

// noHuman returns why an id can be nobody's as whom a session is started; "" if it can. Who
// starts one need not be a human of the machine, but a slip of the hand must not be somebody
// else, whom nothing excludes.
func noHuman(m *machine.Machine, id string) (why string) {
	is := "" // the id is another's
	look := func(list []machine.Specialist) bool {
		return slices.ContainsFunc(list, func(s machine.Specialist) bool {
			switch {
			case s.SpecialistID == id && !s.IsHuman:
				is = "it is a specialist, and no human"
			case s.IsHuman && why == "" && s.SpecialistID != id && strings.EqualFold(s.SpecialistID, strings.TrimSpace(id)):
				why = fmt.Sprintf("did you mean %q?", s.SpecialistID)
			}
			return s.IsHuman && s.SpecialistID == id
		})
	}
	switch {
	case look(m.Specialists()) || slices.ContainsFunc(m.States(), func(s machine.State) bool { return look(s.Roster) }):
		return ""
	case strings.TrimSpace(id) == "":
		return "it is empty"
	case strings.HasPrefix(id, "__"):
		return `what begins with "__" is reserved`
	case strings.HasPrefix(id, "group:"):
		return "it is a group: name one of its humans"
	}
	return cmp.Or(is, why)
}

// Fitting checks what a session is to start with against what its machine says of its
// input, and what the data would then be.
func Fitting(m *machine.Machine, meta []byte) error {
	if !m.UsesData() {
		return nil
	}
	if input := m.Input(); input != nil {
		if found := input.Violations(meta); len(found) > 0 {
			lines := make([]string, len(found))
			for i, v := range found {
				lines[i] = v.String()
			}
			refused := refusal.New(refusal.ErrIllegal, session.CodeInvalidInput, "the input is not what machine %q wants: %s", m.Name(), strings.Join(lines, "; "))
			refused.Details = lines
			return refused
		}
	}
	data := m.FirstData(meta)
	if problem := cases.Oversize(data.Size(), data.Members()); problem != "" {
		return refusal.New(refusal.ErrIllegal, session.CodeInvalidInput, "%s", problem)
	}
	return nil
}
