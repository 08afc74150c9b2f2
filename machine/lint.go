package machine

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/expression"
)

// What is legal in a machine and probably not meant. The graph of states is walked
// twice: forwards from the initial state (what cannot be reached), and backwards from
// the goal and final states (what leads nowhere); then each state is looked through for
// somebody who decides there, each list of specialists for members that nothing reads, and
// the groups for those that nothing names. Guards and ways to decide have owners, who are
// asked for theirs (LintOptions). Lint changes nothing and never refuses a machine; a
// finding has the place of what it is about.

// LintOptions are what Lint needs to know from outside.
type LintOptions struct {
	// Priced reports whether the price of a modelId, as written, is known. Nil
	// means that no price is known.
	Priced func(model string) bool
	// Guards returns what is probably not meant in the machine's guards section,
	// or, if over is not nil, in that of a state, which is laid over the machine's;
	// section may be nil then. The problems have JSON pointers relative to the
	// section looked at. Nil means that sections are not looked at.
	Guards func(section, over []byte) []Problem
	// Decisions are findings about how the machine decides, with JSON pointers into
	// the definition: those of package runner.
	Decisions []Problem
}

// Lint returns what is legal in m but probably not meant, by position: states
// that cannot be reached or left, states that nobody decides, members that are
// never used. Codes are stable; [Problem.Warning] renders a finding. For a
// machine built in Go findings have only a Path.
//
// A final state is an intended end as much as the goal is: it is no dead end,
// and a path that leads to one is as good as a path to the goal. Transitions of
// goal and final states are never taken, so they lead nowhere here either.
func (m *Machine) Lint(o LintOptions) []Problem {
	l := &linter{m: m, checker: checker{def: m.def, file: m.origin.file, tree: m.origin.tree}}
	l.paths()
	for i := range m.states {
		l.deciders(&m.states[i])
	}
	l.roster("/specialists", m.def.Specialists, o)
	l.champion("", m.def.Solicit)
	l.secondHumans()
	l.cases()
	l.schemas()
	l.timers()
	l.groups()
	l.exclusions()
	l.sameHumans()
	if m.def.Guards != nil {
		l.guards("/guards", nil, o)
	}
	for i := range m.states {
		path := l.statePath(i)
		if own := m.def.States[i].Guards; own != nil {
			l.guards(path+"/guards", own, o)
		}
		l.roster(path+"/specialists", m.states[i].Roster, o)
		l.champion(path, m.def.States[i].Solicit)
	}
	for _, p := range o.Decisions {
		l.report(p.Path, true, p)
	}
	sortByPlace(l.problems)
	return l.problems
}

// Locate returns p with its place in the file that m was read from, by its Path; as it
// is if m was made in Go.
func (m *Machine) Locate(p Problem) Problem {
	c := checker{def: m.def, file: m.origin.file, tree: m.origin.tree}
	c.report(p.Path, false, p)
	return c.problems[0]
}

// A linter reports as a checker does.
type linter struct {
	checker
	m *Machine
}

// paths looks at the graph of states.
func (l *linter) paths() {
	leads := l.m.leads()
	reached, arriving := l.m.reachable(leads), l.m.arriving(leads)
	for i := range l.m.states {
		s, path := &l.m.states[i], l.statePath(i)
		if !reached[i] {
			l.report(path, true, Problem{Code: "unreachable-state",
				Message: fmt.Sprintf("state %q cannot be reached from the initial state %q", s.Name, l.m.initial.Name),
				Hint:    "add a transition that leads to it, or remove it"})
		}
		switch {
		case s.Terminal() && len(s.Transitions) > 0:
			what := "final"
			if s.Goal {
				what = "the goal"
			}
			l.report(path+"/transitions", true, Problem{Code: "never-taken",
				Message: fmt.Sprintf("the transitions of state %q are never taken: it is %s", s.Name, what),
				Hint:    "remove them, or end the session elsewhere"})
		case s.Terminal():
		case len(s.Transitions) == 0:
			l.report(path, true, Problem{Code: "dead-end",
				Message: fmt.Sprintf("state %q has no transitions and is neither the goal nor final: a session that enters it fails", s.Name),
				Hint:    `write "final": true if the session may end here`})
		case !arriving[i]:
			l.report(path, true, Problem{Code: "no-path-to-goal",
				Message: fmt.Sprintf("no path leads from state %q to the goal %q or to a final state", s.Name, l.m.goal.Name),
				Hint:    "add a transition towards the goal"})
		}
	}
}

// leads returns, by index, to which states each leads: a transition that is never open
// leads nowhere, and neither does a state in which sessions end.
func (m *Machine) leads() [][]*State {
	to := make([][]*State, len(m.states))
	for i := range m.states {
		s := &m.states[i]
		if s.Terminal() {
			continue
		}
		for _, t := range s.Transitions {
			holds, constant := expression.Constant(t.When)
			if t.When == "" || holds || !constant {
				to[i] = append(to[i], t.To)
			}
		}
	}
	return to
}

// reachable says, by index, which states a session can enter.
func (m *Machine) reachable(leads [][]*State) []bool {
	reached := make([]bool, len(m.states))
	reached[m.initial.Index] = true
	for queue := []*State{m.initial}; len(queue) > 0; queue = queue[1:] {
		for _, to := range leads[queue[0].Index] {
			if !reached[to.Index] {
				reached[to.Index] = true
				queue = append(queue, to)
			}
		}
	}
	return reached
}

// arriving says, by index, from which states a session can end as intended.
func (m *Machine) arriving(leads [][]*State) []bool {
	from := make([][]*State, len(m.states)) // the states before each
	ends := make([]bool, len(m.states))
	var queue []*State
	for i := range m.states {
		s := &m.states[i]
		if s.Terminal() {
			ends[i] = true
			queue = append(queue, s)
		}
		for _, to := range leads[i] {
			from[to.Index] = append(from[to.Index], s)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, s := range from[queue[0].Index] {
			if !ends[s.Index] {
				ends[s.Index] = true
				queue = append(queue, s)
			}
		}
	}
	return ends
}

// deciders looks for somebody who proposes in s.
func (l *linter) deciders(s *State) {
	if s.Wait || s.Terminal() || len(s.Transitions) == 0 {
		return
	}
	path, list := l.statePath(s.Index), l.m.def.Specialists
	message, hint := fmt.Sprintf("state %q has no enabled proposer", s.Name), "declare a proposer, or a human who decides"
	if l.unattended() && s.Roster == nil {
		message = fmt.Sprintf("nobody is declared to propose in state %q: running the file adds a proposer that takes the first transition", s.Name)
	}
	if s.Roster != nil {
		path, list = path+"/specialists", slices.Concat(s.Roster, l.humans())
		hint = "a state's own list replaces the machine's; name here whom it should ask"
	}
	if slices.ContainsFunc(list, func(sp Specialist) bool { return sp.Role == Proposer && !l.off(&sp) }) {
		return
	}
	l.report(path, true, Problem{Code: "no-proposer", Message: message, Hint: hint})
}

// unattended reports whether no proposer is declared anywhere, not even one that is
// switched off: running such a machine adds one.
func (l *linter) unattended() bool {
	proposes := func(s Specialist) bool { return s.Role == Proposer }
	for i := range l.m.states {
		if slices.ContainsFunc(l.m.states[i].Roster, proposes) {
			return false
		}
	}
	return !slices.ContainsFunc(l.m.def.Specialists, proposes)
}

// humans returns the machine's humans, who take part in every state.
func (l *linter) humans() (list []Specialist) {
	for _, s := range l.m.def.Specialists {
		if s.IsHuman {
			list = append(list, s)
		}
	}
	return list
}

// off reports whether s, or the specialist of the machine that it refers to, is
// switched off.
func (l *linter) off(s *Specialist) bool {
	if s.Off() || !s.Reference() {
		return s.Off()
	}
	for i := range l.m.def.Specialists {
		if d := &l.m.def.Specialists[i]; d.SpecialistID == s.SpecialistID {
			return d.Off()
		}
	}
	return false // registered, perhaps
}

// roster looks at one list of specialists.
func (l *linter) roster(path string, list []Specialist, o LintOptions) {
	var arbiter *Specialist
	for i := range list {
		s, at := &list[i], fmt.Sprintf("%s/%d", path, i)
		switch {
		case s.Role != Arbiter || l.off(s):
		case arbiter == nil:
			arbiter = s
		default:
			l.report(at, false, Problem{Code: "second-arbiter",
				Message: fmt.Sprintf("arbiter %q never decides: %q comes first in the list", s.SpecialistID, arbiter.SpecialistID),
				Hint:    "keep one enabled arbiter in a list"})
		}
		l.unused(at, s)
		if s.Reference() && l.off(s) && !s.Off() {
			l.stillOff(at, s)
		}
		if s.ModelID != "" && !s.IsHuman && (o.Priced == nil || !o.Priced(s.ModelID)) {
			l.report(at+"/modelId", false, Problem{Code: "unpriced-model",
				Message: fmt.Sprintf("the price of model %q is not known: a budget in dollars sees no more of it than its default_estimate_usd", s.ModelID),
				Hint:    "add it to guards.cost.prices"})
		}
	}
}

// stillOff looks for a switch in a reference to a specialist that is switched off where it is
// declared. A machine keeps of its switches only those that are off; its text has the others.
func (l *linter) stillOff(at string, s *Specialist) {
	if l.tree == nil {
		return
	}
	for _, member := range []string{"enabled", "disabled"} {
		if _, name := l.tree.at(at + "/" + member); name != nil && name.name == member {
			l.report(at+"/"+member, true, Problem{Code: "still-disabled",
				Message: fmt.Sprintf("%s does not switch %q on in this state: it is switched off where it is declared", member, s.SpecialistID),
				Hint:    "declare it enabled, and write \"disabled\": true in the states that are not to ask it"})
			return
		}
	}
}

// guards hands the machine's guards section, or a state's, to its owner.
func (l *linter) guards(path string, over []byte, o LintOptions) {
	if o.Guards == nil {
		return
	}
	for _, p := range o.Guards(l.m.def.Guards, over) {
		l.report(path+p.Path, isAboutName(p), p)
	}
}

// unused looks for members of s that nothing reads.
func (l *linter) unused(at string, s *Specialist) {
	webhook := s.StrategyWebhookURL != "" || s.ContextWebhookURL != ""
	for _, member := range []struct {
		name          string
		human, others string // why it is not read; "" if it is
		given         bool
	}{
		{"strategyFn", neverAsked, "", s.StrategyFn != ""},
		{"strategyFnName", neverAsked, "", s.StrategyFnName != ""},
		{"strategyWebhookUrl", neverAsked, "", s.StrategyWebhookURL != ""},
		{"contextFn", neverAsked, "", s.ContextFn != ""},
		{"contextWebhookUrl", neverAsked, "", s.ContextWebhookURL != ""},
		{"modelId", neverAsked, "", s.ModelID != ""},
		{"agent", neverAsked, "", s.Agent != ""},
		{"timeout", neverAsked, "", s.Timeout != 0},
		{"estimatedCostUSD", neverAsked, "", s.EstimatedCostUSD != nil},
		{"webhookTokenName", neverAsked, unless(webhook, "there is no webhook"), s.WebhookTokenName != ""},
		{"webhookSecretName", neverAsked, unless(webhook, "there is no webhook"), s.WebhookSecretName != ""},
		{"provider", neverAsked, unless(s.ModelID != "", "there is no modelId"), s.Provider != ""},
		{"threshold", onlyArbiters, unless(s.Role == Arbiter, onlyArbiters), s.Threshold != nil},
	} {
		why := member.others
		if s.IsHuman {
			why = member.human
		}
		if member.given && why != "" {
			l.report(at+"/"+member.name, true, Problem{Code: "unused-member",
				Message: fmt.Sprintf("%s of specialist %q is never used: %s", member.name, s.SpecialistID, why),
				Hint:    "remove it"})
		}
	}
}

const (
	neverAsked   = "a human is never invoked"
	onlyArbiters = "only an arbiter has a threshold"
)

func unless(used bool, why string) string {
	if used {
		return ""
	}
	return why
}

// groups looks for groups that neither deciders nor approvals name.
func (l *linter) groups() {
	named := map[string]bool{}
	for i := range l.m.def.States {
		s := &l.m.def.States[i]
		lists := [][]string{s.Deciders}
		for j := range s.Transitions {
			if a := s.Transitions[j].Approvals; a != nil {
				lists = append(lists, a.From, a.Each)
			}
		}
		for _, name := range slices.Concat(lists...) {
			named[name] = true
		}
	}
	for _, g := range l.m.def.Groups {
		if !named[groupPrefix+g.Name] {
			l.report(pointer("/groups", g.Name), true, Problem{Code: "unused-group", Info: true,
				Message: fmt.Sprintf("nothing names group %q", g.Name),
				Hint:    `name it in deciders or approvals, as "` + groupPrefix + g.Name + `", or remove it`})
		}
	}
}

// champion warns of a state or a machine that asks its best proposer alone.
func (l *linter) champion(path string, s *Solicit) {
	if s != nil && s.Champion != nil && *s.Champion {
		l.report(path+"/solicit/champion", true, Problem{Code: "CHAMP001",
			Message: "solicit.champion asks one proposer alone: when it becomes worse, only an audit notices",
			Hint:    "mode sequential saves calls as well and keeps asking others"})
	}
}
