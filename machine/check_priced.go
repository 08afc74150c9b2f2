package machine

import "fmt"

// checkPriced checks who is asked, under the budget of the machine, in states in which
// something is decided. What is wrong with somebody is said once, where that one is
// declared: there an estimate is written.
func (c *checker) checkPriced() {
	if c.Priced == nil || c.Stored || c.def.Guards == nil {
		return
	}
	check, told := c.Priced(c.def.Guards), map[string]bool{}
	if check == nil {
		return
	}
	for i := range c.def.States {
		if !c.decides(&c.def.States[i]) {
			continue
		}
		c.eachAsked(i, func(path string, d *Specialist) {
			if p := check(d); p != nil && !told[path] {
				told[path] = true
				c.report(path, false, *p)
			}
		})
	}
}

// decides reports whether anything is decided in a state.
func (c *checker) decides(s *StateDefinition) bool {
	return len(s.Transitions) > 0 && !s.Final && s.Name != c.def.GoalState
}

// eachAsked calls f with the declaration, and the path of it, of each specialist of the
// file who takes part in a state: of its own list and, without an arbiter there, the
// arbiters of the machine; without a list, of everybody.
func (c *checker) eachAsked(state int, f func(path string, d *Specialist)) {
	s, judged := &c.def.States[state], false
	for j := range s.Specialists {
		own := &s.Specialists[j]
		switch at := c.declared(own.SpecialistID); {
		case own.Off():
		case !own.Reference():
			judged = judged || own.Role == Arbiter
			f(fmt.Sprintf("%s/specialists/%d", c.statePath(state), j), own)
		case at >= 0:
			d := &c.def.Specialists[at]
			judged = judged || d.Role == Arbiter && !d.Off()
			f(fmt.Sprintf("/specialists/%d", at), d)
		}
	}
	for j := range c.def.Specialists {
		if d := &c.def.Specialists[j]; s.Specialists == nil || d.Role == Arbiter && !judged {
			f(fmt.Sprintf("/specialists/%d", j), d)
		}
	}
}

// declared returns the index of a specialist in the list of the machine, or -1.
func (c *checker) declared(id string) int {
	for i := range c.def.Specialists {
		if c.def.Specialists[i].SpecialistID == id {
			return i
		}
	}
	return -1
}
