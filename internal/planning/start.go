package planning

import (
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
			if known := almostHuman(m, id); known != "" {
				return nil, refusal.New(refusal.ErrIllegal, "no_human", "machine %q has no human %q: did you mean %q?", m.Name(), id, known)
			}
		}
	}
	return a.Clone(), nil
}

// almostHuman returns the human of a machine whose id an id would be, but for case and blanks
// around it; "" if there is none, or it is that id. Who starts a session need not be a human
// of the machine, but a slip of the hand must not be somebody else, whom nothing excludes.
func almostHuman(m *machine.Machine, id string) (known string) {
	look := func(list []machine.Specialist) bool {
		return slices.ContainsFunc(list, func(s machine.Specialist) bool {
			if s.IsHuman && (known == "" || s.SpecialistID == id) && strings.EqualFold(s.SpecialistID, strings.TrimSpace(id)) {
				known = s.SpecialistID
			}
			return known == id
		})
	}
	if look(m.Specialists()) || slices.ContainsFunc(m.States(), func(s machine.State) bool { return look(s.Roster) }) {
		return ""
	}
	return known
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
