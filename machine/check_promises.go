package machine

import "fmt"

// The built-in strategies of arbiters, as machine files name them.
const (
	// AlignmentMargin weighs votes by how often their authors agreed with humans.
	AlignmentMargin = "alignmentMargin"
	// FirstProposal lets arrival decide.
	FirstProposal = "firstProposal"
	// Bayes weighs votes by what is known of their authors. It is the only one whose
	// probabilities a promise can be kept with.
	Bayes = "bayes"
)

// checkPromises refuses a risk or a collapse where another strategy than bayes
// decides: nobody would keep it.
func (c *checker) checkPromises() {
	said := map[string]bool{} // the machine's own are refused once
	for i := range c.def.States {
		s := &c.def.States[i]
		if len(s.Transitions) == 0 || s.Final || s.Name == c.def.GoalState {
			continue // nothing is decided here
		}
		by := c.arbiterOf(s)
		if by != nil && by.StrategyFnName == Bayes {
			continue
		}
		for _, p := range []struct {
			name       string
			own, whole bool
		}{{"risk", s.Risk != nil, c.def.Risk != nil}, {"collapse", s.Collapse != nil, c.def.Collapse != nil}} {
			path := "/" + p.name
			if p.own {
				path = c.statePath(i) + path
			}
			if (p.own || p.whole) && !said[path] {
				said[path] = true
				c.report(path, true, promiseProblem(p.name, s.Name, by))
			}
		}
	}
}

func promiseProblem(what, state string, by *Specialist) Problem {
	p := Problem{Code: "bad-strategy", Hint: `let an arbiter with "strategyFnName": "bayes" decide it`}
	if by == nil {
		p.Message = fmt.Sprintf("%s needs the strategy bayes, and no arbiter is declared for state %q", what, clip(state, maxNameRunes))
		return p
	}
	p.Message = fmt.Sprintf("%s needs the strategy bayes, and state %q is decided by %q, which has another", what, clip(state, maxNameRunes), clip(by.SpecialistID, maxNameRunes))
	return p
}

// arbiterOf returns the declaration of who decides a state, or nil.
func (c *checker) arbiterOf(s *StateDefinition) *Specialist {
	for _, list := range [][]Specialist{s.Specialists, c.def.Specialists} {
		for i := range list {
			if a := &list[i]; a.Role == Arbiter && !a.Off() {
				return c.resolve(a)
			}
		}
	}
	return nil
}

// resolve returns the declaration of the machine that a reference names.
func (c *checker) resolve(s *Specialist) *Specialist {
	if s.Reference() {
		if i := c.declared(s.SpecialistID); i >= 0 {
			return &c.def.Specialists[i]
		}
	}
	return s
}
