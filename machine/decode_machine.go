package machine

import (
	"fmt"
	"strconv"

	"github.com/dialai/dialai/exact"
)

// This file says which fields a machine file has; decode.go says how a field is
// read. The published schema (schema.json) lists the same fields, and a test
// holds the two together.

// required are the DIAL checks 1 to 5, in their order.
var required = []string{"machineName", "initialState", "goalState", "states"}

// definition reads the root of a machine file.
func (d *decoder) definition(root *node) *Definition {
	def := &Definition{}
	if root.kind != objectNode {
		d.report(root.line, root.col, Problem{Code: "wrong-type", Message: "must be an object", rank: 1})
		return def
	}
	var legacyGoal string
	d.object(root, "", "the machine", []field{
		{"machineName", d.essential(&def.MachineName)},
		{"initialState", d.essential(&def.InitialState)},
		{"goalState", d.essential(&def.GoalState)},
		{"defaultState", text(d, &legacyGoal)},
		{"states", d.states(&def.States)},
		{"specialists", d.specialists(&def.Specialists)},
		{"consensusThreshold", d.threshold(&def.ConsensusThreshold)},
		{"requireTrust", d.optionalFlag(&def.RequireTrust)},
		{"guards", d.section(&def.Guards)},
		{"risk", d.risk(&def.Risk)},
		{"solicit", d.solicit(&def.Solicit)},
		{"quorum", d.quorum(&def.Quorum)},
		{"collapse", d.collapse(&def.Collapse)},
		{"audit", d.audit(&def.Audit)},
		{"secondHuman", d.secondHuman(&def.SecondHuman)},
		{"optionOrder", choice(d, def, &def.OptionOrder)},
		{"stacking", choice(d, def, &def.Stacking)},
		{"learnFrom", choice(d, def, &def.LearnFrom)},
		{"input", d.raw((*[]byte)(&def.Input), 0)},
		{"subject", text(d, &def.Subject)},
		{"groups", d.groups(&def.Groups)},
	})
	d.legacyGoal(root, def, legacyGoal)
	for i, name := range required {
		if root.child(name) == nil && (name != "goalState" || legacyGoal == "") {
			d.report(root.line, root.col, Problem{Path: "", Code: "missing-field", Message: "missing or invalid " + name, rank: i + 2})
		}
	}
	return def
}

// legacyGoal lets defaultState stand for goalState, as old DIAL files have it.
func (d *decoder) legacyGoal(root *node, def *Definition, legacy string) {
	n := root.child("defaultState")
	switch {
	case n == nil || legacy == "":
	case def.GoalState == "":
		def.GoalState = legacy
	case def.GoalState != legacy:
		d.report(n.line, n.col, Problem{Path: "/defaultState", Code: "contradiction",
			Message: fmt.Sprintf("defaultState is %q, but goalState is %q", clip(legacy, 128), clip(def.GoalState, 128)), Hint: "remove defaultState, the old name of goalState"})
	}
}

// essential reads one of the strings without which nothing can be said.
func (d *decoder) essential(into *string) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind == stringNode && n.text != "" {
			*into = n.text
			return
		}
		rank := 0
		for i, name := range required {
			if name == what {
				rank = i + 2
			}
		}
		hint := "it must be a string that is not empty"
		if n.unquoted() {
			hint = inQuotes
		}
		d.report(n.line, n.col, Problem{Path: path, Code: "wrong-type", Message: "missing or invalid " + what, Hint: hint, rank: rank})
	}
}

func (d *decoder) states(into *stateList) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind != objectNode {
			d.report(n.line, n.col, Problem{Path: path, Code: "wrong-type", Message: "missing or invalid states", rank: 5,
				Hint: "states must be an object with one member for each state"})
			return
		}
		d.duplicates(n, path)
		*into = make([]StateDefinition, len(n.keys))
		for i, k := range n.keys {
			(*into)[i].Name = k.name
			d.state(n.items[i], pointer(path, k.name), &(*into)[i])
		}
	}
}

func (d *decoder) state(n *node, path string, s *StateDefinition) {
	d.object(n, path, fmt.Sprintf("state %q", clip(s.Name, 128)), []field{
		{"prompt", text(d, &s.Prompt)},
		{"transitions", d.transitions(s)},
		{"consensusThreshold", d.threshold(&s.ConsensusThreshold)},
		{"specialists", d.specialists(&s.Specialists)},
		{"requireTrust", d.optionalFlag(&s.RequireTrust)},
		{"guards", d.section(&s.Guards)},
		{"risk", d.risk(&s.Risk)},
		{"solicit", d.solicit(&s.Solicit)},
		{"quorum", d.quorum(&s.Quorum)},
		{"collapse", d.collapse(&s.Collapse)},
		{"audit", d.audit(&s.Audit)},
		{"secondHuman", d.secondHuman(&s.SecondHuman)},
		{"optionOrder", choice(d, s, &s.OptionOrder)},
		{"irreversible", d.optionalFlag(&s.Irreversible)},
		{"final", d.flag(&s.Final)},
		{"deciders", d.texts(&s.Deciders)},
		{"due", d.due(&s.Due)},
	})
}

func (d *decoder) transitions(s *StateDefinition) func(n *node, path, what string) {
	return d.only(objectNode, "an object", func(n *node, path, _ string) {
		d.duplicates(n, path)
		s.Transitions = make([]TransitionDefinition, len(n.keys))
		for i, k := range n.keys {
			t := &s.Transitions[i]
			t.Name = k.name
			d.transition(n.items[i], pointer(path, k.name), s.Name, t)
		}
	})
}

func (d *decoder) transition(n *node, path, state string, t *TransitionDefinition) {
	what := fmt.Sprintf("transition %q in state %q", clip(t.Name, 128), clip(state, 128))
	switch n.kind {
	case stringNode:
		t.Target = n.text
	case objectNode:
		d.object(n, path, what, []field{
			{"target", text(d, &t.Target)},
			{"description", text(d, &t.Description)},
			{"parameters", d.raw((*[]byte)(&t.Parameters), 0)},
			{"irreversible", d.optionalFlag(&t.Irreversible)},
			{"when", text(d, &t.When)},
			{"set", d.raw((*[]byte)(&t.Set), 0)},
			{"approvals", d.approvals(&t.Approvals)},
		})
	default:
		d.wrongType(n, path, what, aTarget)
	}
}

func (d *decoder) specialists(into *[]Specialist) func(n *node, path, what string) {
	return d.only(arrayNode, "an array", func(n *node, path, what string) {
		*into = make([]Specialist, len(n.items))
		for i, item := range n.items {
			d.specialist(item, pointer(path, strconv.Itoa(i)), fmt.Sprintf("%s[%d]", what, i), &(*into)[i])
		}
	})
}

func (d *decoder) specialist(n *node, path, what string, s *Specialist) {
	var cost *exact.Money
	d.object(n, path, what, []field{
		{"role", choice(d, s, &s.Role)},
		{"specialistId", text(d, &s.SpecialistID)},
		{"machineName", text(d, &s.MachineName)},
		{"isHuman", d.flag(&s.IsHuman)},
		{"enabled", d.optionalFlag(&s.Enabled)},
		{"disabled", d.optionalFlag(&s.Disabled)},
		{"strategyFn", text(d, &s.StrategyFn)},
		{"strategyFnName", text(d, &s.StrategyFnName)},
		{"strategyWebhookUrl", text(d, &s.StrategyWebhookURL)},
		{"contextFn", text(d, &s.ContextFn)},
		{"contextWebhookUrl", text(d, &s.ContextWebhookURL)},
		{"modelId", text(d, &s.ModelID)},
		{"agent", text(d, &s.Agent)},
		{"webhookTokenName", text(d, &s.WebhookTokenName)},
		{"threshold", d.threshold(&s.Threshold)},
		{"timeout", d.duration(&s.Timeout)},
		{"estimatedCostUSD", d.money(&cost)},
		{"webhookSecretName", text(d, &s.WebhookSecretName)},
		{"provider", text(d, &s.Provider)},
		{"required", d.flag(&s.Required)},
	})
	s.EstimatedCostUSD = cost
}

func (d *decoder) risk(into **Risk) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		r := &Risk{Confidence: defaultConfidence}
		if d.object(n, path, what, []field{
			{"maxError", d.float(&r.MaxError)},
			{"confidence", d.float(&r.Confidence)},
			{"test", choice(d, r, &r.Test)},
			{"familywise", d.flag(&r.Familywise)},
		}) {
			*into = r
			if n.child("maxError") == nil {
				d.report(n.line, n.col, Problem{Path: pointer(path, "maxError"), Code: "missing-field", Message: what + " has no maxError", Hint: "say which share of automatic decisions may be wrong, such as 0.05"})
			}
		}
	}
}

func (d *decoder) solicit(into **Solicit) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		s := &Solicit{}
		if n.kind == stringNode {
			s.Mode = Mode(n.text)
			*into = s
			return
		}
		if n.kind != objectNode {
			d.wrongType(n, path, what, "a mode or an object")
			return
		}
		d.object(n, path, what, []field{
			{"mode", choice(d, s, &s.Mode)},
			{"timeout", d.duration(&s.Timeout)},
			{"roundTimeout", d.duration(&s.RoundTimeout)},
			{"asyncTimeout", d.duration(&s.AsyncTimeout)},
			{"maxParallel", d.count(&s.MaxParallel)},
			{"wave", d.wave(&s.Wave)},
			{"champion", d.optionalFlag(&s.Champion)},
			{"humanCost", d.money(&s.HumanCost)},
		})
		*into = s
	}
}
