package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Is a Definition right in itself? The form is checked (decode.go); here names are held
// to each other: states exist, transitions lead somewhere, schemas compile, rosters
// make sense, sections are accepted by their owners (Checks). Every problem is reported
// with its place in the file and, where a name is close to another, with a hint; none
// stops the others, but only so many are kept.
//
// DIAL's own checks come first and have ranks, since their texts and their order are
// prescribed. A definition that a store holds is held to none of the newer rules
// (stored.go): its sessions go on.

// Checks are the rules of a machine file that other packages own. Every member
// may be nil; what it would check is then checked when the machine is started.
type Checks struct {
	// Strategies returns the built-in names strategyFnName may have in a role.
	Strategies func(Role) []string
	// Expression checks an inline expression (a strategyFn that begins with
	// "=") of a specialist that serves states with these transitions.
	Expression func(role Role, source string, transitions []string) error
	// Model checks a modelId, flags and all, and the provider beside it, "" if the
	// file names none. What it returns must not show a key that stands there.
	Model func(id, provider string) error
	// Secret reports whether a text holds what looks like a secret. What specialists
	// are told and by what they are reached must hold none, and neither must prompts.
	Secret func(text string) bool
	// Guards checks a guards section, the machine's or, with state set, a
	// state's. Paths in the problems it returns are relative to the section.
	Guards func(section []byte, state bool) []Problem
	// GuardsIn checks a guards section by what is around it: with state nil the
	// machine's, else a state's own laid over the machine's, which may be nil. It
	// gets the names of the transitions that the section is about. Paths are relative
	// to the state's section, or the machine's.
	GuardsIn func(machine, state []byte, transitions []string) []Problem
	// Priced returns a check of specialists who are asked outside the program under the
	// guards section of a machine; nil if nothing is to be checked of anybody. The
	// problems have no path.
	Priced func(section []byte) func(*Specialist) *Problem
	// Include reads the file that a guards section names by its path, relative
	// to the machine file. Without it such a path is a problem.
	Include func(path string) ([]byte, error)
	// Stored says that a store holds the definition: it was valid when its sessions
	// began, and they go on. No rule is held against it, those of the other members
	// included: see stored.go.
	Stored bool
}

// Limits of one machine, beside those of its file.
const (
	maxTransitions = 10_000
	maxNameRunes   = 128
)

// thresholdHint says what to write in place of a number that is no share: as a rule it
// was meant in per cent, or to be out of reach.
func thresholdHint(n float64) string {
	if n >= 10 && n <= 100 {
		return fmt.Sprintf("it is a share: write %v for %v %%", n/100, n)
	}
	return "for a state that only humans decide, list only humans in its specialists"
}

// A checker finds what is wrong with a Definition whose form is right.
type checker struct {
	Checks
	def      *Definition
	file     string
	tree     *node           // nil for a Definition built in Go
	unread   map[string]bool // paths of values that could not be read
	problems []Problem
	most     int                               // problems to keep; 0 means all
	more     int                               // problems that were not kept
	schemas  map[*TransitionDefinition]*Schema // compiled while checking
	input    *Schema                           // likewise
}

// report adds a problem with the value at path; about the name itself if
// onName is set.
func (c *checker) report(path string, onName bool, p Problem) {
	if c.full() { // finding each place would take long
		c.more++
		return
	}
	p.File, p.Path = c.file, path
	if c.tree != nil {
		n, name := c.tree.at(path)
		p.Line, p.Column = n.line, n.col
		if own := c.tree.fileAt(path); own != "" {
			p.File = own
		}
		if onName && name != nil {
			p.Line, p.Column = name.line, name.col
		}
	}
	c.problems = append(c.problems, p)
}

func (c *checker) full() bool { return c.most > 0 && len(c.problems) >= c.most }

func (c *checker) check() {
	c.checkStart() // what DIAL checks comes first, so that it is among those kept
	c.checkTransitions()
	c.checkFields()
	c.checkCase()
	c.checkDue()
	c.checkRosters()
	c.checkQuorums()
	c.checkPrompts()
	c.checkPromises()
	c.checkPeople()
	c.checkSecondHumans()
	c.checkSections()
}

// checkStart does DIAL's checks 6 and 7, and 2 to 5 on a Definition built in Go.
func (c *checker) checkStart() {
	known := c.stateNames()
	readable := len(known) > 0
	if c.tree == nil {
		c.checkRequired()
	} else if states := c.tree.child("states"); states != nil {
		readable = states.kind == objectNode
	}
	for i, f := range []struct{ name, value string }{{"initialState", c.def.InitialState}, {"goalState", c.def.GoalState}} {
		if f.value == "" || !readable || slices.Contains(known, f.value) {
			continue
		}
		path := "/" + f.name
		if c.tree != nil && c.tree.child(f.name) == nil {
			path = "/defaultState"
		}
		c.report(path, false, Problem{Code: "unknown-state", rank: 6 + i,
			Message: fmt.Sprintf("%s %q does not exist in states", f.name, clip(f.value, maxNameRunes)), Hint: didYouMean(f.value, known)})
	}
}

// checkRequired does for a Definition built in Go what reading does for a file.
func (c *checker) checkRequired() {
	present := []bool{c.def.MachineName != "", c.def.InitialState != "", c.def.GoalState != "", len(c.def.States) > 0}
	for i, name := range required {
		if !present[i] {
			c.report("", false, Problem{Code: "missing-field", Message: "missing or invalid " + name, rank: i + 2})
		}
	}
}

func (c *checker) stateNames() []string {
	names := make([]string, len(c.def.States))
	for i := range c.def.States {
		names[i] = c.def.States[i].Name
	}
	return names
}

func (c *checker) checkTransitions() {
	known := c.stateNames()
	exists := make(map[string]bool, len(known))
	for i, name := range known {
		if exists[name] && c.tree == nil {
			c.report(fmt.Sprintf("/states/%d", i), false, Problem{Code: "duplicate-key", Message: fmt.Sprintf("state %q is defined twice", name)})
		}
		exists[name] = true
	}
	total := 0
	for i := range c.def.States {
		s := &c.def.States[i]
		total += len(s.Transitions)
		seen := map[string]bool{}
		for j := range s.Transitions {
			t := &s.Transitions[j]
			path := c.statePath(i) + pointer("/transitions", t.Name)
			if seen[t.Name] && c.tree == nil {
				c.report(path, true, Problem{Code: "duplicate-key", Message: fmt.Sprintf("transition %q of state %q is defined twice", t.Name, s.Name)})
			}
			seen[t.Name] = true
			if !exists[t.Target] && !c.unread[path] && !c.unread[path+"/target"] {
				c.unknownTarget(path, s.Name, t, known)
			}
			c.checkParameters(path, s.Name, t)
		}
	}
	if total > maxTransitions {
		c.report("/states", true, Problem{Code: "too-large", Message: fmt.Sprintf("the machine has %d transitions, more than %d", total, maxTransitions)})
	}
}

func (c *checker) unknownTarget(path, state string, t *TransitionDefinition, known []string) {
	p := Problem{Code: "unknown-target", rank: 8}
	where := fmt.Sprintf("transition %q in state %q", clip(t.Name, maxNameRunes), clip(state, maxNameRunes))
	if t.Target == "" {
		p.Message, p.Hint = where+" has no target", `name the state it leads to: {"target": "STATE"}, or just "STATE"`
	} else {
		p.Message = fmt.Sprintf("%s points to non-existent state %q", where, clip(t.Target, maxNameRunes))
		if len(c.problems) < maxProblems { // later ones are not listed
			p.Hint = didYouMean(t.Target, known)
		}
	}
	if c.tree != nil && !c.full() {
		if n, _ := c.tree.at(path); n.child("target") != nil {
			path += "/target"
		}
	}
	c.report(path, false, p)
}

func (c *checker) checkParameters(path, state string, t *TransitionDefinition) {
	if t.Parameters == nil || len(t.Parameters) > maxSchemaBytes { // the latter is reported as such
		return
	}
	c.schemas[t] = c.checkSchema(path+"/parameters", t.Parameters, fmt.Sprintf("parameters of transition %q in state %q", t.Name, state))
}

// checkSchema compiles a schema, and reports what is wrong with it.
func (c *checker) checkSchema(at string, source []byte, what string) *Schema {
	schema, err := NewSchema(source)
	if err == nil && source[0] != '{' {
		err = errors.New("a schema must be an object")
	}
	if err != nil {
		field := lastOf(at)
		if part, ok := errors.AsType[*SchemaError](err); ok {
			at += part.Path
		}
		c.report(at, false, Problem{Code: "bad-schema", Message: fmt.Sprintf("%s: %v", what, err), Hint: field + " is a JSON Schema (draft 2020-12) without remote references"})
	}
	return schema
}

func (c *checker) statePath(i int) string { return pointer("/states", c.def.States[i].Name) }

// badName says what is wrong with a name, or returns "".
func badName(name string) (fault string) {
	switch {
	case name == "":
		return "is empty"
	case utf8.RuneCountInString(name) > maxNameRunes:
		return fmt.Sprintf("is longer than %d characters", maxNameRunes)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a blank"
	case strings.HasPrefix(name, "__"):
		return `begins with "__", which is reserved`
	}
	return ""
}

// checkSections hands the guards sections to their owner and checks where risk
// may be declared.
func (c *checker) checkSections() {
	c.checkGuards("/guards", c.def.Guards, nil)
	for i := range c.def.States {
		c.checkGuards(c.statePath(i)+"/guards", c.def.States[i].Guards, &c.def.States[i])
	}
	c.checkPriced()
}

// checkGuards checks the section of a state, or with nil that of the machine.
func (c *checker) checkGuards(path string, section []byte, of *StateDefinition) {
	if section == nil {
		return
	}
	var problems []Problem
	if c.Checks.Guards != nil {
		problems = c.Checks.Guards(section, of != nil)
	}
	if c.Checks.GuardsIn != nil {
		outer, inner := section, []byte(nil)
		if of != nil {
			outer, inner = c.def.Guards, section
		}
		problems = append(problems, c.Checks.GuardsIn(outer, inner, c.transitionsOf(of))...)
	}
	for _, p := range problems {
		c.report(path+p.Path, isAboutName(p), p)
	}
}

// transitionsOf returns the names of a state's transitions, or with nil those of
// all states.
func (c *checker) transitionsOf(state *StateDefinition) (names []string) {
	for i := range c.def.States {
		if s := &c.def.States[i]; state == nil || state == s {
			for j := range s.Transitions {
				names = append(names, s.Transitions[j].Name)
			}
		}
	}
	return names
}
