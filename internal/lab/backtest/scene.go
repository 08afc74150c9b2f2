package backtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
)

// A definition with everybody who takes part in each of its states, twice: as recorded
// and as the policy makes it. Scenes are made once for each digest. They are cast from
// the roster of today with nobody switched off, because when somebody was off is not
// asked: whose answers were recorded says that.
//
// The arbiter that gave a verdict is found by its id: the state's, the one that stood
// in because there was none, or another one that had its turn. What no longer exists is
// taken as recorded.

// A scene is one definition with everybody who takes part, as it was and as the
// policy that is tried makes it.
type scene struct {
	m     *machine.Machine
	parts []part
}

// A part is one state of a scene.
type part struct {
	state    *machine.State
	declared []machine.Specialist // of the machine
	was, now planning.StateCast
	old, new rule
	others   map[string]*rule // that have decided here, by id
	report   *tally
}

// scenes finds the scenes of a store by digest.
type scenes struct {
	source  Source
	policy  *Policy
	known   map[string]*scene // by digest
	rosters map[string]*session.Roster
	texts   map[string][][]byte // definitions by machine name
	tally   func(machineName, state string) *tally
}

func newScenes(f *fold) scenes {
	return scenes{source: f.Source, policy: &f.Policy, known: map[string]*scene{}, rosters: map[string]*session.Roster{}, texts: map[string][][]byte{}, tally: f.tally}
}

// of returns the scene of a digest.
func (ss *scenes) of(ctx context.Context, machineName, digest string) (*scene, error) {
	if s := ss.known[digest]; s != nil {
		return s, nil
	}
	m, err := ss.definition(ctx, machineName, digest)
	if err != nil {
		return nil, err
	}
	roster := ss.rosters[machineName]
	if roster == nil {
		if roster, err = ss.source.Roster(ctx, machineName); err != nil {
			return nil, err
		}
		ss.rosters[machineName] = roster
	}
	s, err := ss.make(m, roster)
	if err != nil {
		return nil, err
	}
	ss.known[digest] = s
	return s, nil
}

// definition finds a stored definition; with digest "" the newest.
func (ss *scenes) definition(ctx context.Context, machineName, digest string) (*machine.Machine, error) {
	if ss.texts[machineName] == nil {
		texts, err := ss.source.Definitions(ctx, machineName)
		if err != nil {
			return nil, err
		}
		ss.texts[machineName] = texts
	}
	for _, text := range ss.texts[machineName] {
		m, err := machine.Parse(machineName+".json", text, session.StoredChecks())
		if err != nil {
			return nil, &session.CorruptError{What: "a definition of machine " + machineName, Problem: err.Error()}
		}
		if digest == "" || m.Digest() == digest {
			return m, nil
		}
	}
	return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
}

func (ss *scenes) make(m *machine.Machine, roster *session.Roster) (*scene, error) {
	changed, err := ss.policy.apply(m)
	if err != nil {
		return nil, err
	}
	present := *roster
	present.Off = nil // who was switched off when is not asked: what was recorded says whose answers came
	was, err := planning.Cast(m, &present)
	if err != nil {
		return nil, err
	}
	now, err := planning.Cast(changed, ss.cast(&present))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	s := &scene{m: m, parts: make([]part, len(was))}
	for i := range s.parts {
		p := &s.parts[i]
		*p = part{state: was[i].State, declared: m.Specialists(), was: was[i], now: now[i], report: ss.tally(m.Name(), was[i].State.Name)}
		if p.old, err = ruleOf(p.was.Arbiter); err == nil {
			p.new, err = ruleOf(p.now.Arbiter)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// find returns the proposer or human of that id, or nil.
func find(c *planning.StateCast, id string) *planning.Participant {
	for _, list := range [][]planning.Participant{c.Proposers, c.Humans} {
		for i := range list {
			if list[i].SpecialistID == id {
				return &list[i]
			}
		}
	}
	return nil
}

// have reports whether somebody proposes in any of the scenes.
func (ss *scenes) have(id string) bool {
	for _, s := range ss.known {
		for i := range s.parts {
			if find(&s.parts[i].was, id) != nil {
				return true
			}
		}
	}
	return false
}

// version returns the version of somebody who takes part in the state.
func (p *part) version(id string) string {
	if m := find(&p.was, id); m != nil {
		return m.Version
	}
	return ""
}

// rank returns the place of somebody in the round's order.
func (p *part) rank(id string, human bool) int32 {
	m := find(&p.was, id)
	switch {
	case m != nil:
		return m.Rank
	case human:
		return -1
	}
	return int32(len(p.was.Proposers))
}

// standIn is the arbiter of sessions that were run without one.
func standIn() *rule {
	return &rule{by: &machine.Specialist{Role: machine.Arbiter, StrategyFnName: machine.FirstProposal}, made: strategies.FirstProposal{}, arrive: true}
}

// recorded returns the rule of the arbiter that gave a verdict.
func (p *part) recorded(j *session.Judged) (*rule, error) {
	if r := p.others[j.ArbiterID]; r != nil {
		return r, nil
	}
	r := &p.old
	switch {
	case strings.HasPrefix(j.ArbiterID, "__default_arbiter_"):
		r = standIn()
	case r.by == nil || r.by.SpecialistID != j.ArbiterID:
		made, err := p.ruleNamed(j)
		if err != nil {
			return nil, err
		}
		r = made
	}
	if p.others == nil {
		p.others = map[string]*rule{}
	}
	p.others[j.ArbiterID] = r
	return r, nil
}

// ruleNamed returns the rule of an arbiter that is not the first of the state: it
// was another's turn then. What cannot be found is taken as recorded.
func (p *part) ruleNamed(j *session.Judged) (*rule, error) {
	by := &machine.Specialist{Role: machine.Arbiter, SpecialistID: j.ArbiterID, StrategyFnName: j.Strategy}
	if !slices.Contains(strategies.Names(machine.Arbiter), j.Strategy) {
		by.StrategyFnName, by.StrategyFn = "", j.Strategy
	}
	for _, list := range [][]machine.Specialist{p.state.Roster, p.declared} {
		for i := range list {
			if s := &list[i]; s.SpecialistID == j.ArbiterID && !s.Reference() {
				by = s
			}
		}
	}
	r, err := ruleOf(by)
	return &r, err
}

// threshold returns the one in force under the policy, nil if there is none.
func (p *part) threshold(r *rule) *machine.Threshold {
	if t := p.now.State.Threshold; t != nil || r.by == nil {
		return t
	}
	return r.by.Threshold
}

// question returns the question that a bayes verdict was the answer to.
func (p *part) question(j *session.Judged) trust.Question {
	q := p.was.Question
	q.PolicyDigest, q.Partial, q.Stop = j.Evidence.PolicyDigest, j.Evidence.Partial, j.Evidence.Stop
	switch said := j.Decision.Judgement; {
	case said == nil:
	case said.Risk != nil:
		q.Policy.Promise, q.Policy.Threshold = &said.Risk.Promise, nil
	case said.Threshold != nil:
		q.Policy.Promise, q.Policy.Threshold = nil, said.Threshold
	}
	return q
}
