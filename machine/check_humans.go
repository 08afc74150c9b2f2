package machine

import (
	"fmt"
	"slices"
)

// checkSecondHumans refuses to have a second human decide before anything is executed
// where there is none: nobody would ever be waited for.
func (c *checker) checkSecondHumans() {
	c.eachSecondHuman(func(path string, s *StateDefinition, humans []string) {
		c.report(path+"/when", false, Problem{Code: tooFewHumans,
			Message: fmt.Sprintf("secondHuman waits for a second human in state %q, and %s", clip(s.Name, maxNameRunes), howMany(humans)),
			Hint:    `declare another one ("role": "proposer", "isHuman": true), or write "when": "after"`})
	}, Before)
}

// secondHumans warns where a second human is to look at what another decided, and
// there is none.
func (l *linter) secondHumans() {
	l.eachSecondHuman(func(path string, s *StateDefinition, humans []string) {
		l.report(path, true, Problem{Code: tooFewHumans,
			Message: fmt.Sprintf("no second human ever looks at what is decided in state %q: %s", s.Name, howMany(humans)),
			Hint:    `declare another one ("role": "proposer", "isHuman": true), or remove secondHuman`})
	}, After)
}

const tooFewHumans = "too-few-humans"

func howMany(humans []string) string {
	if len(humans) == 0 {
		return "no human may rule there"
	}
	return fmt.Sprintf("only %q may rule there", clip(humans[0], maxNameRunes))
}

// eachSecondHuman calls f for each secondHuman of that moment and the first state in
// which fewer than two humans may rule, with those.
func (c *checker) eachSecondHuman(f func(path string, s *StateDefinition, humans []string), when string) {
	said := map[string]bool{}
	for i := range c.def.States {
		s, path, second := &c.def.States[i], "/secondHuman", c.def.SecondHuman
		if !c.decides(s) {
			continue
		}
		if s.SecondHuman != nil {
			path, second = c.statePath(i)+path, s.SecondHuman
		}
		if second == nil || second.When != when || said[path] {
			continue
		}
		if humans, unknown := c.humansOf(s); len(humans)+unknown < 2 {
			said[path] = true
			f(path, s, humans)
		}
	}
}

// humansOf returns the ids of the humans who are declared and may rule in a state, and
// how many of its list are declared nowhere: those may be registered.
func (c *checker) humansOf(s *StateDefinition) (ids []string, unknown int) {
	if ids, unknown = c.humansIn(s); s.Deciders == nil {
		return ids, unknown
	}
	deciders := c.def.humansNamed(s.Deciders)
	return slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(deciders, id) }), 0
}

// humansIn is humansOf without regard to who decides.
func (c *checker) humansIn(s *StateDefinition) (ids []string, unknown int) {
	named := map[string]bool{}
	for i := range s.Specialists {
		own := &s.Specialists[i]
		d := c.resolve(own)
		switch named[own.SpecialistID] = true; {
		case own.Off() || d.Off() || own.Role != Proposer:
		case d.IsHuman:
			ids = append(ids, own.SpecialistID)
		case d.Reference():
			unknown++
		}
	}
	for i := range c.def.Specialists {
		if d := &c.def.Specialists[i]; d.IsHuman && !d.Off() && !named[d.SpecialistID] {
			ids = append(ids, d.SpecialistID)
		}
	}
	return ids, unknown
}
