package machine

import (
	"fmt"
	"slices"
	"strconv"
)

// exclusions looks for approvals that can never be complete, because whoever is excluded is
// one of too few. Who that is, the session says; here it is said where it does not matter.
func (l *linter) exclusions() {
	for i := range l.def.States {
		s := &l.def.States[i]
		for j := range s.Transitions {
			a := s.Transitions[j].Approvals
			if a == nil {
				continue
			}
			may, unknown := l.humansOf(s)
			if a.From != nil {
				from := l.def.humansNamed(a.From)
				may = slices.DeleteFunc(may, func(id string) bool { return !slices.Contains(from, id) })
			}
			for k, name := range a.Exclude {
				if unknown > 0 || !l.neverWithout(a, may, l.excludable(s, name)) {
					continue
				}
				l.report(l.statePath(i)+pointer("/transitions", s.Transitions[j].Name)+"/approvals/exclude/"+strconv.Itoa(k), false, Problem{Code: tooFewHumans,
					Message: fmt.Sprintf("approvals of transition %q can never be given where a human of the machine %s: they need %d of %d", clip(s.Transitions[j].Name, maxNameRunes), excludedFor(name), a.Needed(), len(may)),
					Hint:    "declare more humans, let more of them decide, or ask for fewer"})
			}
		}
	}
}

func excludedFor(name string) string {
	switch name {
	case ExcludeStarter:
		return "has started the session"
	case ExcludePrevious:
		return "has ruled on the step before"
	}
	return fmt.Sprintf("has ruled in state %q", clip(name, maxNameRunes))
}

// excludable returns whom a word of exclude may mean, one list for each state in which they
// may have become it; nil if nobody knows.
func (l *linter) excludable(s *StateDefinition, name string) (lists [][]string) {
	if name == ExcludeStarter {
		ids := l.humansOfMachine()
		for i := range l.def.States {
			ids = l.humansOfState(&l.def.States[i], ids)
		}
		return [][]string{ids}
	}
	for i := range l.def.States {
		from := &l.def.States[i]
		leads := slices.ContainsFunc(from.Transitions, func(t TransitionDefinition) bool { return t.Target == s.Name })
		if from.Name != name && (name != ExcludePrevious || !leads) {
			continue
		}
		ids, unknown := l.humansOf(from)
		if unknown > 0 {
			return nil
		}
		if len(ids) > 0 {
			lists = append(lists, ids)
		}
	}
	return lists
}

// neverWithout reports whether approvals cannot be complete without one of those who may give
// them, whoever of the lists that is.
func (l *linter) neverWithout(a *Approvals, may []string, lists [][]string) bool {
	rule := l.def.approvalRule(a, nil)
	for _, id := range slices.Concat(lists...) {
		left := slices.DeleteFunc(slices.Clone(may), func(other string) bool { return other == id })
		if len(left) >= rule.Needed && rule.Lacks(left) == nil {
			return false
		}
	}
	return len(slices.Concat(lists...)) > 0
}
