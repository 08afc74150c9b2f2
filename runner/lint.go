package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
)

// unmarked is the code of a state from which a session can end without a word on
// whether that can be undone.
const unmarked = "IRR001"

// unpayable is the code of a transition whose parameters ask for a payload that nobody
// who takes part in its state could give.
const unpayable = "PARAM001"

// Lint returns what is probably not meant in how a machine decides: voters who err
// together, promises that cannot be kept, ends of which nobody said whether they
// can be undone, payloads that nobody could give, names in the lists of states that nobody
// has, panels whose quorum nobody can reach. It goes by the definition alone, as if nothing had ever been
// decided; [Runner.Lint] goes by what was. Problems have JSON pointers into the
// definition, for [machine.LintOptions].
func Lint(m *machine.Machine) []machine.Problem { return lint(m, trust.New(), &session.Roster{}) }

// Lint is the function Lint for a machine of which the store may know outcomes and
// registered specialists.
func (r *Runner) Lint(ctx context.Context, m *machine.Machine) ([]machine.Problem, error) {
	l, err := r.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	roster, err := r.store.Roster(ctx, m.Name())
	if err != nil {
		return nil, err
	}
	return lint(m, l, roster), nil
}

func lint(m *machine.Machine, l *trust.Ledger, roster *session.Roster) []machine.Problem {
	f := &findings{told: map[[3]string]bool{}}
	p := cast(m, roster)
	level := (&planner{m: m, roster: roster}).machineLevel()
	for i := range p.states {
		s := &p.states[i]
		f.dangling(m, s.state, level)
		if s.state.Terminal() || len(s.state.Transitions) == 0 {
			continue
		}
		f.panel(m, s, l.Lint(s.panel()))
		f.quorums(m, s, level)
		f.ends(m, s)
		f.payloads(s)
	}
	return f.list
}

// cast returns who takes part in the states of a machine, whether or not this
// program could ask them.
func cast(m *machine.Machine, roster *session.Roster) *plan {
	b := planner{r: &Runner{config: Config{Resolver: strategies.Registry{}}}, m: m, roster: roster, made: map[*machine.Specialist]*member{}}
	p := &plan{roster: roster, states: make([]statePlan, len(m.States()))}
	level := b.machineLevel()
	for i := range m.States() {
		b.state(&p.states[i], &m.States()[i], level)
	}
	p.ask(m)
	return p
}

// panel returns those who can be asked in a state, humans left out.
func (p *statePlan) panel() trust.Panel {
	q := &p.question
	panel := trust.Panel{
		Machine: q.Machine, State: q.State, Options: q.Options, Policy: q.Policy,
		FixedOrder: p.state.OptionOrder == machine.DeclaredOrder, Bayes: p.arbiter != nil && p.arbiter.byBayes(),
	}
	for i := range p.members {
		m := &p.members[i]
		if m.off || m.IsHuman {
			continue
		}
		o := trust.Open{SpecialistID: m.SpecialistID, Version: m.version, Model: m.ModelID, Cost: m.estimate}
		if !panel.FixedOrder {
			o.OptionOrder = fmt.Sprint(i) // each sees its own
		}
		panel.Roster = append(panel.Roster, o)
	}
	return panel
}

// findings are the problems found so far, each told once.
type findings struct {
	list []machine.Problem
	told map[[3]string]bool // by path, code and subject
}

func (f *findings) add(subject string, p machine.Problem) {
	if key := [3]string{p.Path, p.Code, subject}; !f.told[key] {
		f.told[key] = true
		f.list = append(f.list, p)
	}
}

// panel adds what the ledger found in a state, where that is declared: a list of
// specialists, or a promise.
func (f *findings) panel(m *machine.Machine, p *statePlan, found []trust.Finding) {
	for _, x := range found {
		message, hint, _ := strings.Cut(x.Message, ": ")
		if hint == "" {
			hint = hintOf(x.Code)
		}
		f.add(x.Subject, machine.Problem{Code: x.Code, Message: message, Hint: hint, Path: placeOf(m, p, x.Code), Info: x.Code == trust.FixedOrder})
	}
}

// hintOf says what to do about findings that do not say it themselves.
func hintOf(code string) string {
	switch code {
	case trust.BelowChance:
		return "dialai specialists disable MACHINE ID switches it off; its votes count against what it proposes"
	case trust.BelowHumanFloor:
		return "promise no less than humans agree among themselves"
	case trust.TooManyNeeded:
		return "promise less, or let humans decide"
	}
	return "dialai explain and dialai metrics show what it is about"
}

// placeOf returns the pointer to what a finding is about.
func placeOf(m *machine.Machine, p *statePlan, code string) string {
	def := m.Definition()
	own := &def.States[p.state.Index]
	state := pathOf(p.state)
	switch {
	case !strings.HasPrefix(code, "RISK") && p.state.Roster != nil:
		return state + "/specialists"
	case !strings.HasPrefix(code, "RISK"):
		return "/specialists"
	case own.Risk != nil:
		return state + "/risk"
	case own.ConsensusThreshold != nil:
		return state + "/consensusThreshold"
	case def.Risk != nil:
		return "/risk"
	case def.ConsensusThreshold != nil:
		return "/consensusThreshold"
	}
	return "/specialists" // the arbiter's threshold, or the promise that bayes makes by default
}

// pathOf returns the pointer to a state.
func pathOf(s *machine.State) string {
	return "/states/" + pointerPart(s.Name)
}

func pointerPart(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// payloads adds a finding for each transition that needs a payload, if all who take
// part in the state are rules and built-in strategies.
func (f *findings) payloads(p *statePlan) {
	on := 0
	for _, list := range [][]member{p.members, p.humans} {
		for i := range list {
			switch m := &list[i]; {
			case m.off:
			case m.IsHuman || !m.source.VotesOnly():
				return
			default:
				on++
			}
		}
	}
	for _, t := range p.state.Transitions {
		if on == 0 || !t.NeedsPayload {
			continue
		}
		f.add(t.Name, machine.Problem{Code: unpayable, Path: pathOf(p.state) + "/transitions/" + pointerPart(t.Name) + "/parameters",
			Message: fmt.Sprintf("state %q: %q needs a payload (%v), and only rules and built-in strategies take part, which have none to give", p.state.Name, t.Name, t.Parameters.Validate(nil)),
			Hint:    `add a human ("isHuman": true), a model, a service or a function of yours to its specialists, or ask for less in its parameters`})
	}
}

// ends adds a finding if sessions can end from a state, decided by the engine, and
// the definition does not say whether that can be undone.
func (f *findings) ends(m *machine.Machine, p *statePlan) {
	own := &m.Definition().States[p.state.Index]
	if own.Irreversible != nil || len(p.panel().Roster) == 0 {
		return
	}
	var names []string
	for i, t := range p.state.Transitions {
		if t.To.Terminal() && own.Transitions[i].Irreversible == nil {
			names = append(names, fmt.Sprintf("%q", t.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	f.add("", machine.Problem{Code: unmarked, Info: true, Path: pathOf(p.state),
		Message: fmt.Sprintf("state %q: %s ends the session, and nothing says whether that can be undone", p.state.Name, strings.Join(names, " or ")),
		Hint:    `write "irreversible": true if only a human may decide it, false if it can be undone`})
}
