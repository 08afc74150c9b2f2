// Package lint finds what is probably not meant in how a machine decides.
package lint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// How a machine decides, held to what is known of its specialists: an empty ledger for
// a file alone, that of the store if there is one. Every state that decides anything is
// asked four things: whether its panel errs together or its promise cannot be kept
// (trust.Ledger.Lint), whether its quorum can be reached, whether the transitions that
// end a session say if they can be undone, and whether somebody can give the payload
// that a transition asks for. A finding is told once, at the place in the definition
// that would have to change.

// unmarked is the code of a state from which a session can end without a word on
// whether that can be undone.
const unmarked = "IRR001"

// unpayable is the code of a transition whose parameters ask for a payload that nobody
// who takes part in its state could give.
const unpayable = "PARAM001"

// Machine returns what is probably not meant in how a machine decides: voters who err
// together, promises that cannot be kept, ends of which nobody said whether they
// can be undone, payloads that nobody could give, names in the lists of states that nobody
// has, panels whose quorum nobody can reach. It goes by the definition alone, as if nothing
// had ever been decided; [WithStore] goes by what was. Problems have JSON pointers into the
// definition, for [machine.LintOptions].
func Machine(m *machine.Machine) []machine.Problem { return By(m, trust.New(), &session.Roster{}) }

// WithStore is Machine for a machine of which the store of an engine may know outcomes and
// registered specialists.
func WithStore(ctx context.Context, r *runner.Runner, m *machine.Machine) ([]machine.Problem, error) {
	l, err := r.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	roster, err := r.Store().Roster(ctx, m.Name())
	if err != nil {
		return nil, err
	}
	return By(m, l, roster), nil
}

// By is Machine by what a ledger and a roster know.
func By(m *machine.Machine, l *trust.Ledger, roster *session.Roster) []machine.Problem {
	f := &findings{told: map[[3]string]bool{}}
	casts, err := planning.Cast(m, roster)
	f.dangling(err)
	level := planning.MachineLevel(m, roster)
	f.learning(m, casts, l)
	for i := range casts {
		c := &casts[i]
		if c.State.Terminal() || len(c.State.Transitions) == 0 {
			continue
		}
		f.panel(m, c, l.Lint(c.Panel))
		f.quorums(m, c, level)
		f.ends(m, c)
		f.payloads(c)
	}
	return f.list
}

// learning adds what there is to say of what bayes learns from, which is a warning where it learns
// from the agreement of voters who err together.
func (f *findings) learning(m *machine.Machine, casts []planning.StateCast, l *trust.Ledger) {
	var panels []trust.Panel
	for i := range casts {
		if c := &casts[i]; !c.State.Terminal() && len(c.State.Transitions) > 0 && c.Panel.Bayes {
			panels = append(panels, c.Panel)
		}
	}
	if panels == nil {
		if m.Definition().LearnFrom != "" {
			f.add("", machine.Problem{Code: trust.NothingToLearn, Message: "learnFrom says nothing: no state has the arbiter bayes", Hint: "leave it out, or name bayes as the strategy of the arbiter", Path: "/learnFrom"})
		}
		return
	}
	found, together, any := l.Learning(m.Name(), panels)
	if !any {
		return
	}
	message, hint, _ := strings.Cut(found.Message, ": ")
	p := machine.Problem{Code: found.Code, Message: message, Hint: hint, Path: "/learnFrom", Info: !together}
	if found.Code == trust.LearnsLate {
		p.Path = ""
	}
	f.add("", p)
}

// dangling adds the names in the lists of states that nobody has, of what stands in the
// way of a start.
func (f *findings) dangling(err error) {
	if start, ok := errors.AsType[*runner.StartError](err); ok {
		for _, p := range start.Problems {
			if d, ok := errors.AsType[*runner.DanglingError](p); ok {
				f.add("", d.Problem)
			}
		}
	}
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
func (f *findings) panel(m *machine.Machine, c *planning.StateCast, found []trust.Finding) {
	for _, x := range found {
		message, hint, _ := strings.Cut(x.Message, ": ")
		if hint == "" {
			hint = hintOf(x.Code)
		}
		f.add(x.Subject, machine.Problem{Code: x.Code, Message: message, Hint: hint, Path: placeOf(m, c, x.Code), Info: x.Code == trust.FixedOrder})
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
func placeOf(m *machine.Machine, c *planning.StateCast, code string) string {
	def := m.Definition()
	own := &def.States[c.State.Index]
	state := c.State.Path()
	switch {
	case !strings.HasPrefix(code, "RISK") && c.State.Roster != nil:
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

// payloads adds a finding for each transition that needs a payload, if all who take
// part in the state are rules and built-in strategies.
func (f *findings) payloads(c *planning.StateCast) {
	on := 0
	for _, list := range [][]planning.Participant{c.Proposers, c.Humans} {
		for i := range list {
			switch m := &list[i]; {
			case m.Off:
			case m.IsHuman || !m.VotesOnly:
				return
			default:
				on++
			}
		}
	}
	for _, t := range c.State.Transitions {
		if on == 0 || !t.NeedsPayload {
			continue
		}
		f.add(t.Name, machine.Problem{Code: unpayable, Path: t.Path() + "/parameters",
			Message: fmt.Sprintf("state %q: %q needs a payload (%v), and only rules and built-in strategies take part, which have none to give", c.State.Name, t.Name, t.Parameters.Validate(nil)),
			Hint:    `add a human ("isHuman": true), a model, a service or a function of yours to its specialists, or ask for less in its parameters`})
	}
}

// ends adds a finding if sessions can end from a state, decided by the engine, and
// the definition does not say whether that can be undone.
func (f *findings) ends(m *machine.Machine, c *planning.StateCast) {
	own := &m.Definition().States[c.State.Index]
	if own.Irreversible != nil || len(c.Panel.Roster) == 0 {
		return
	}
	var names []string
	for i, t := range c.State.Transitions {
		if t.To.Terminal() && own.Transitions[i].Irreversible == nil && t.Approvals == nil {
			names = append(names, fmt.Sprintf("%q", t.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	f.add("", machine.Problem{Code: unmarked, Info: true, Path: c.State.Path(),
		Message: fmt.Sprintf("state %q: %s ends the session, and nothing says whether that can be undone", c.State.Name, strings.Join(names, " or ")),
		Hint:    `write "irreversible": true if only a human may decide it, false if it can be undone`})
}
