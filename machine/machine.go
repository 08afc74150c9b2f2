// Package machine says which states exist and which steps are legal.
//
// [Parse] reads a machine file, JSON or YAML, into a [Definition], checks it
// and compiles it into a [Machine]: immutable tables of states and transitions
// in written order, shared by every session that runs it. The package does no
// I/O and keeps no state; what it needs from other packages (strategies,
// expressions, guards) is passed in as [Checks].
package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
)

// A Machine is a checked and compiled definition. It never changes and may be
// used concurrently; states and transitions are compared by pointer.
type Machine struct {
	def     *Definition
	json    []byte
	digest  string
	states  []State
	byName  map[string]*State
	initial *State
	goal    *State
	origin  origin
	input   *Schema

	defaults            []jsontext.Member // of input, for members that a session's metaJson lacks
	usesData, keepsData bool
	starters            bool // see Starters
	timed               bool // see Timed
	stored              bool
}

// origin remembers the text of a machine for messages about it.
type origin struct {
	file string
	tree *node
}

// A State is one state of a Machine.
type State struct {
	Name        string
	Index       int // in written order, from 0
	Prompt      string
	Transitions []*Transition // in written order

	// Threshold is the state's consensus threshold or else the machine's; nil
	// if neither has one.
	Threshold    *Threshold
	RequireTrust bool
	Irreversible bool
	Final        bool // an intended end other than the goal
	Goal         bool
	Solicit      Solicit      // with every default filled in
	Risk         *Risk        // the state's or else the machine's; may be nil
	Collapse     *Collapse    // the same; nil if the state ends at consensus
	Audit        Audit        // with every default filled in
	SecondHuman  *SecondHuman // nil if no second human is asked
	OptionOrder  OptionOrder  // RandomOrder unless declared otherwise
	Quorum       *Quorum      // the state's or else the machine's; nil if neither has one

	// Deciders are the ids of the humans who alone may rule; nil means every human who
	// takes part.
	Deciders []string

	Due   *Due        // by when the state is to be left; nil if it may take as long as it likes
	Timer *Transition // what is executed when it is due (Due.Then); nil if nothing is
	// Wait says that nothing but the timer ends the state: no proposer and no human is
	// listed for it, nobody is named who decides.
	Wait bool

	// Roster lists the state's own specialists. It is nil if the state has no
	// list of its own; an empty one means that nobody is asked.
	Roster []Specialist
	// Guards is the state's own guards section; nil if it has none.
	Guards []byte

	byName map[string]*Transition // nil while there are few
}

// A Transition is one legal step out of a State.
type Transition struct {
	Name         string
	Target       string
	Description  string
	Irreversible bool // its own or its state's
	Parameters   *Schema
	// NeedsPayload says that Parameters are not satisfied by {}: whoever chooses the
	// transition has to say more than its name.
	NeedsPayload bool
	Index        int // within its state, from 0
	From, To     *State
	When         string // an expression that begins with "="; "" if it may always be chosen
	Set          []Assignment
	Approvals    *ApprovalRule // nil if one human's word is enough, or a consensus
}

// OnlyHumans reports whether no consensus ever executes the transition: it cannot be
// undone, or takes approvals.
func (t *Transition) OnlyHumans() bool { return t.Irreversible || t.Approvals != nil }

// Terminal reports whether a session that enters s has ended.
func (s *State) Terminal() bool { return s.Goal || s.Final }

// Without returns a copy of s that has none of the transitions for which closed is true.
func (s *State) Without(closed func(*Transition) bool) *State {
	left := *s
	left.Transitions = slices.DeleteFunc(slices.Clone(s.Transitions), closed)
	if left.byName != nil {
		left.byName = make(map[string]*Transition, len(left.Transitions))
		for _, t := range left.Transitions {
			left.byName[t.Name] = t
		}
	}
	return &left
}

// few is the number of transitions that are found faster one by one.
const few = 8

// Path returns the JSON pointer to the state in a definition.
func (s *State) Path() string { return "/states/" + pointerEscape.Replace(s.Name) }

// Path returns the JSON pointer to the transition in a definition.
func (t *Transition) Path() string {
	return t.From.Path() + "/transitions/" + pointerEscape.Replace(t.Name)
}

// Transition returns the transition of that name, or nil.
func (s *State) Transition(name string) *Transition {
	if s.byName != nil {
		return s.byName[name]
	}
	for _, t := range s.Transitions {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Parse reads, checks and compiles a machine file. name is used for messages
// and, by its extension, to tell JSON from YAML; without an extension a text
// that begins with "{" is JSON. The error is a *[Error] with every problem.
func Parse(name string, data []byte, checks Checks) (*Machine, error) {
	tree, err := readTree(name, data)
	if err != nil {
		return nil, newError([]Problem{syntaxProblem(name, data, err.(*syntaxError))}, 0, checks.Secret)
	}
	d := &decoder{file: name, read: checks.Include}
	def := d.definition(tree)
	if found := secretsIn(name, tree, checks.Secret); len(found) > 0 {
		return nil, newError(found, 0, nil) // and nothing else, which might show them
	}
	if !checks.Stored {
		d.problems = append(d.problems, hiddenIn(name, tree, d.problems)...)
	}
	return build(def, checks, origin{name, tree}, d.problems)
}

func syntaxProblem(name string, data []byte, e *syntaxError) Problem {
	p := Problem{File: name, Line: e.line, Column: e.col, Code: e.code, Message: e.message, Hint: e.hint}
	if e.code == codeSyntax {
		language := "JSON"
		if isYAML(name, data) {
			language = "YAML"
		}
		p.Message = "Invalid " + language + ": " + e.message
	}
	return p
}

// build checks and compiles def, which nobody else holds.
func build(def *Definition, checks Checks, from origin, problems []Problem) (*Machine, error) {
	if checks.Stored {
		return buildStored(def, from, problems)
	}
	c := &checker{
		Checks: checks, def: def, file: from.file, tree: from.tree,
		unread: map[string]bool{}, most: 10 * maxProblems, schemas: map[*TransitionDefinition]*Schema{},
	}
	for _, p := range problems {
		c.unread[p.Path] = p.Path != "" && p.Code != "duplicate-key" && p.Code != "hidden-character"
	}
	if problems == nil || problems[0].rank != 1 { // there is an object to look into
		c.check()
	}
	if problems = append(problems, c.problems...); len(problems) > 0 {
		e := newError(problems, c.more, checks.Secret)
		e.file = from.file
		return nil, e
	}
	m := newMachine(def, from)
	if fault := oversize(m.json); fault != "" {
		c.report("", false, Problem{Code: "too-large", Message: fault})
		return nil, newError(c.problems, 0, checks.Secret)
	}
	if found := m.characters(); len(found) > 0 {
		return nil, newError(found, 0, checks.Secret)
	}
	m.compile(c.schemas, c.input)
	return m, nil
}

// newMachine returns a machine with everything but its tables.
func newMachine(def *Definition, from origin) *Machine {
	normalize(def)
	m := &Machine{def: def, json: def.canonical(), origin: from}
	sum := sha256.Sum256(m.json)
	m.digest = hex.EncodeToString(sum[:])
	return m
}

// oversize says why a normalized definition could not be read again, or
// returns "": it may be larger than the file it came from.
func oversize(data []byte) string {
	if len(data) > maxFileBytes {
		return fmt.Sprintf("the machine, normalized, has %d bytes, more than %d", len(data), maxFileBytes)
	}
	if n := values(data); n > maxNodes {
		return fmt.Sprintf("the machine, normalized, has %d values, more than %d", n, maxNodes)
	}
	return ""
}

// normalize puts def into its one normal form: switches become disabled,
// arbiters of the machine without a mode use alignmentMargin.
func normalize(def *Definition) {
	normalizeRoster(def.Specialists, true)
	for i := range def.States {
		normalizeRoster(def.States[i].Specialists, false)
	}
}

func normalizeRoster(list []Specialist, machineLevel bool) {
	for i := range list {
		s := &list[i]
		off := s.Off()
		s.Enabled, s.Disabled = nil, nil
		if off {
			s.Disabled = &off
		}
		if machineLevel && s.Role == Arbiter && !s.hasMode() {
			s.StrategyFnName = AlignmentMargin
		}
	}
}

// Defaults of asking, where neither state nor machine says otherwise.
const (
	DefaultTimeout        = 60 * time.Second
	DefaultWebhookTimeout = 55 * time.Second
	defaultRoundTimeout   = 5 * time.Minute
	defaultAsyncTimeout   = 24 * time.Hour
	defaultMaxParallel    = 16
)

// merge returns over's members where it has them, else base's.
func (s Solicit) merge(over *Solicit) Solicit {
	if over == nil {
		return s
	}
	pick := func(into *Duration, v Duration) {
		if v != 0 {
			*into = v
		}
	}
	if over.Mode != "" {
		s.Mode = over.Mode
	}
	pick(&s.Timeout, over.Timeout)
	pick(&s.RoundTimeout, over.RoundTimeout)
	pick(&s.AsyncTimeout, over.AsyncTimeout)
	if over.MaxParallel != 0 {
		s.MaxParallel = over.MaxParallel
	}
	if over.Wave != 0 {
		s.Wave = over.Wave
	}
	if over.Champion != nil {
		s.Champion = over.Champion
	}
	if over.HumanCost != nil {
		s.HumanCost = over.HumanCost
	}
	return s
}

var defaultSolicit = Solicit{
	Mode: All, RoundTimeout: Duration(defaultRoundTimeout), AsyncTimeout: Duration(defaultAsyncTimeout),
	MaxParallel: defaultMaxParallel, Wave: 1, HumanCost: new(exact.Dollar),
}

// TimeoutOf returns how long one ask of a specialist may take in a state.
func (s *State) TimeoutOf(sp *Specialist) time.Duration {
	switch {
	case sp.Timeout != 0:
		return time.Duration(sp.Timeout)
	case s.Solicit.Timeout != 0:
		return time.Duration(s.Solicit.Timeout)
	case sp.StrategyWebhookURL != "" || sp.ContextWebhookURL != "":
		return DefaultWebhookTimeout
	}
	return DefaultTimeout
}

// compile builds the tables.
func (m *Machine) compile(schemas map[*TransitionDefinition]*Schema, input *Schema) {
	m.states = make([]State, len(m.def.States))
	m.byName = make(map[string]*State, len(m.states))
	base := defaultSolicit.merge(m.def.Solicit)
	for i := range m.def.States {
		d, s := &m.def.States[i], &m.states[i]
		*s = State{
			Name: d.Name, Index: i, Prompt: d.Prompt,
			Threshold: firstSet(d.ConsensusThreshold, m.def.ConsensusThreshold),
			Risk:      firstSet(d.Risk, m.def.Risk),
			Quorum:    firstSet(d.Quorum, m.def.Quorum),
			Solicit:   base.merge(d.Solicit),
			Roster:    d.Specialists, Guards: d.Guards,
			Irreversible: isSet(d.Irreversible), Final: d.Final, Goal: d.Name == m.def.GoalState,
		}
		s.oversee(m.def, d)
		if d.Deciders != nil {
			s.Deciders = m.def.humansNamed(d.Deciders)
		}
		if trust := firstSet(d.RequireTrust, m.def.RequireTrust); trust != nil {
			s.RequireTrust = *trust
		}
		m.byName[d.Name] = s
	}
	for i := range m.states {
		m.states[i].compile(m.byName, m.def, m.def.States[i].Transitions, schemas)
		m.compileDue(&m.states[i], &m.def.States[i])
	}
	m.initial, m.goal = m.byName[m.def.InitialState], m.byName[m.def.GoalState]
	m.compileCase(input)
}

func (s *State) compile(states map[string]*State, def *Definition, defs []TransitionDefinition, schemas map[*TransitionDefinition]*Schema) {
	table := make([]Transition, len(defs))
	s.Transitions = make([]*Transition, len(defs))
	if len(defs) > few {
		s.byName = make(map[string]*Transition, len(defs))
	}
	for i := range defs {
		d := &defs[i]
		table[i] = Transition{
			Name: d.Name, Target: d.Target, Description: d.Description, Parameters: schemas[d],
			Irreversible: isSet(d.Irreversible) || s.Irreversible, Index: i, From: s, To: states[d.Target],
			When: d.When, Set: assignments(d.Set), Approvals: def.approvalRule(d.Approvals, s.Deciders),
		}
		table[i].NeedsPayload = table[i].Parameters != nil && table[i].Parameters.Validate(nil) != nil
		s.Transitions[i] = &table[i]
		if s.byName != nil {
			s.byName[d.Name] = &table[i]
		}
	}
}

func isSet(flag *bool) bool { return flag != nil && *flag }

func firstSet[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// Name returns the machine's name.
func (m *Machine) Name() string { return m.def.MachineName }

// Digest returns the machineDigest: the hex SHA-256 of [Machine.JSON].
func (m *Machine) Digest() string { return m.digest }

// JSON returns the normalized definition as canonical JSON. The caller must not
// change it.
func (m *Machine) JSON() []byte { return m.json }

// Definition returns the normalized definition. The caller must not change it.
func (m *Machine) Definition() *Definition { return m.def }

// States returns all states in written order. The caller must not change it.
func (m *Machine) States() []State { return m.states }

// State returns the state of that name, or nil.
func (m *Machine) State(name string) *State { return m.byName[name] }

// Initial returns the state in which a session begins.
func (m *Machine) Initial() *State { return m.initial }

// Goal returns the state that a session is to reach.
func (m *Machine) Goal() *State { return m.goal }

// Specialists returns those declared at machine level, in written order. The
// caller must not change it.
func (m *Machine) Specialists() []Specialist { return m.def.Specialists }
