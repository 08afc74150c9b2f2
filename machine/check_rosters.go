package machine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Are the lists of specialists right? Each list for itself (ids, one way to be asked, a
// strategy, a model or an expression that somebody here knows), and all against each
// other: an id that is declared twice must be the same both times, or an entry of a
// state that only refers to the other. A reference to nobody is no problem, since
// specialists may be registered while the machine is in use.
//
// What could not be read looks absent, so checks that would complain of that are left
// out where it is (unread): one mistake, one problem. An entry with what looks like a
// secret is reported for that alone, so that no other message quotes it.

// checkRosters checks every list of specialists, each for itself and against
// the others.
func (c *checker) checkRosters() {
	declared := map[string]*Specialist{} // by id, the first full declaration
	c.checkRoster("/specialists", c.def.Specialists, nil, declared)
	for i := range c.def.States {
		s := &c.def.States[i]
		c.checkRoster(c.statePath(i)+"/specialists", s.Specialists, s, declared)
	}
}

func (c *checker) checkRoster(path string, list []Specialist, state *StateDefinition, declared map[string]*Specialist) {
	here := map[string]int{}
	for i := range list {
		s := &list[i]
		at := fmt.Sprintf("%s/%d", path, i)
		if c.unread[at] || c.holdsSecret(at, s) {
			continue
		}
		c.checkSpecialist(at, s)
		reference := state != nil && s.Reference() && !c.anyUnread(at, restFields)
		if !reference {
			c.checkMode(at, s, state)
		}
		first, twice := here[s.SpecialistID]
		switch {
		case s.SpecialistID == "": // reported as such
		case twice:
			c.report(at+"/specialistId", false, Problem{Code: "duplicate-id",
				Message: fmt.Sprintf("specialist %q is already in this list, as entry %d", s.SpecialistID, first), Hint: "every specialist of a list needs an id of its own"})
		default:
			here[s.SpecialistID] = i
			c.checkDeclaration(at, s, reference, declared)
		}
	}
}

// Members of a specialist that say how it is asked, and the others that make
// an entry of a state more than a reference.
var (
	modeFields = []string{"strategyFn", "strategyFnName", "strategyWebhookUrl", "contextFn", "contextWebhookUrl", "modelId", "agent", "webhookTokenName", "isHuman"}
	restFields = []string{"machineName", "threshold", "timeout", "estimatedCostUSD", "webhookSecretName", "provider"}
)

// anyUnread reports whether one of the members of an object could not be read:
// it looks absent, but it is there.
func (c *checker) anyUnread(at string, fields []string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return c.unread[at+"/"+f] })
}

// checkDeclaration compares an entry with the first of that id in other lists.
func (c *checker) checkDeclaration(at string, s *Specialist, reference bool, declared map[string]*Specialist) {
	other := declared[s.SpecialistID]
	c.checkRequiredAnswer(at, s, other)
	switch {
	case reference:
		c.checkReference(at, s, other)
	case other == nil:
		declared[s.SpecialistID] = s
	case !sameDeclaration(other, s):
		c.report(at+"/specialistId", false, Problem{Code: "duplicate-id",
			Message: fmt.Sprintf("specialist %q is declared twice with different content", s.SpecialistID),
			Hint:    "give it another id, or name only role and specialistId here to refer to the first"})
	}
}

// sameDeclaration compares two declarations but for the switch that a state's
// entry may set.
func sameDeclaration(a, b *Specialist) bool {
	x, y := *a, *b
	x.Enabled, x.Disabled, y.Enabled, y.Disabled = nil, nil, nil, nil
	return reflect.DeepEqual(x, y)
}

// checkSpecialist checks what holds for every entry of every list.
func (c *checker) checkSpecialist(at string, s *Specialist) {
	if s.Enabled != nil && s.Disabled != nil && *s.Enabled == *s.Disabled {
		c.report(at+"/disabled", false, Problem{Code: "contradiction",
			Message: fmt.Sprintf("enabled and disabled are both %t", *s.Enabled), Hint: "keep one of the two"})
	}
	if s.MachineName != "" && s.MachineName != c.def.MachineName {
		c.report(at+"/machineName", false, Problem{Code: "wrong-machine",
			Message: fmt.Sprintf("specialist %q belongs to machine %q, this is %q", s.SpecialistID, s.MachineName, c.def.MachineName), Hint: "remove machineName here"})
	}
	if s.Role == Arbiter && s.IsHuman {
		c.report(at+"/isHuman", false, Problem{Code: "bad-role",
			Message: fmt.Sprintf("arbiter %q cannot be human", s.SpecialistID), Hint: "declare the human as a proposer: a human may always decide"})
	}
	if (s.StrategyWebhookURL != "" || s.ContextWebhookURL != "") && strings.Contains(c.def.MachineName, ":") {
		c.report("/machineName", false, Problem{Code: "bad-name",
			Message: fmt.Sprintf("machineName %q contains a colon, which Basic authentication of webhooks cannot carry", c.def.MachineName), Hint: "choose a name without a colon"})
	}
}

// checkReference checks an entry of a state that names a specialist declared at
// machine level. One that is not declared may be registered when the session
// starts, so it is no problem here.
func (c *checker) checkReference(at string, s, other *Specialist) {
	if other != nil && other.Role != s.Role {
		c.report(at+"/role", false, Problem{Code: "bad-role",
			Message: fmt.Sprintf("specialist %q is no %s, it is declared as %s", s.SpecialistID, s.Role, other.Role)})
	}
}

func (c *checker) checkMode(at string, s *Specialist, state *StateDefinition) {
	if s.Role != Proposer && s.Role != Arbiter || c.anyUnread(at, modeFields) {
		return // reported already
	}
	if state == nil && s.Role == Arbiter && !s.hasMode() {
		return // alignmentMargin
	}
	if err := s.CheckMode(); err != nil {
		c.report(at, false, Problem{Code: "bad-mode", Message: err.Error()})
		return
	}
	if s.StrategyFnName != "" {
		c.checkStrategy(at, s)
	}
	if s.ModelID != "" && c.Checks.Model != nil {
		c.checkModel(at, s)
	}
	if strings.HasPrefix(s.StrategyFn, "=") && c.Checks.Expression != nil {
		if err := c.Checks.Expression(s.Role, s.StrategyFn, c.served(s, state)); err != nil {
			c.report(at+"/strategyFn", false, Problem{Code: "bad-expression", Message: err.Error()})
		}
	}
}

func (c *checker) checkModel(at string, s *Specialist) {
	err := c.Checks.Model(s.ModelID, s.Provider)
	if err == nil {
		return
	}
	at += "/modelId"
	if s.Provider != "" && c.Checks.Model(s.ModelID, "") == nil {
		at = strings.TrimSuffix(at, "modelId") + "provider"
	}
	c.report(at, false, Problem{Code: "bad-model", Message: fmt.Sprintf("specialist %q: %v", s.SpecialistID, err)})
}

func (c *checker) checkStrategy(at string, s *Specialist) {
	if c.Checks.Strategies == nil {
		return
	}
	known := c.Checks.Strategies(s.Role)
	if slices.Contains(known, s.StrategyFnName) {
		return
	}
	hint := didYouMean(s.StrategyFnName, known)
	if hint == "" {
		hint = "built in are " + strings.Join(known, ", ") + "; a Go function is named by strategyFn"
	}
	c.report(at+"/strategyFnName", false, Problem{Code: "unknown-strategy", Message: UnknownStrategy(s), Hint: hint})
}

// UnknownStrategy is DIAL's message for a strategyFnName that nobody knows.
func UnknownStrategy(s *Specialist) string {
	return fmt.Sprintf("Unknown %s strategy: %s", s.Role, s.StrategyFnName)
}

// served returns the names of all transitions, each once, of the states a specialist
// serves: its own state, or, at machine level, every state that has no list of
// its own or refers to it.
func (c *checker) served(s *Specialist, state *StateDefinition) []string {
	var names []string
	seen := map[string]bool{}
	for i := range c.def.States {
		st := &c.def.States[i]
		switch {
		case state != nil && st != state:
			continue
		case state == nil && st.Specialists != nil && !slices.ContainsFunc(st.Specialists, func(o Specialist) bool { return o.SpecialistID == s.SpecialistID }):
			if s.Role == Proposer || slices.ContainsFunc(st.Specialists, func(o Specialist) bool { return o.Role == Arbiter && !o.Off() }) {
				continue
			}
		}
		for j := range st.Transitions {
			if name := st.Transitions[j].Name; !seen[name] {
				names, seen[name] = append(names, name), true
			}
		}
	}
	return names
}
