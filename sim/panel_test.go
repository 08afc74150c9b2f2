package sim_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The slow, obvious model of a panel: who was asked to propose in a round, and who has.

// A panel is who has a part in one round.
type panel struct {
	asked, answered map[string]bool // without humans
}

func (s *observed) panel(key specialist.RoundKey) *panel {
	if s.panels[key] == nil {
		s.panels[key] = &panel{map[string]bool{}, map[string]bool{}}
	}
	return s.panels[key]
}

// heard enters who was asked and who has answered.
func (s *observed) heard(key specialist.RoundKey, d session.Data) {
	switch d := d.(type) {
	case *session.Asked:
		for _, a := range d.Asks {
			if a.Role == machine.Proposer {
				s.panel(key).asked[a.SpecialistID] = true
			}
		}
	case *session.Resumed:
		// Who failed is to be asked again, and counts; but not a newcomer whom somebody may have switched off.
		maps.DeleteFunc(s.panel(key).asked, func(id string, _ bool) bool {
			return d.RetryFailed && !s.panel(key).answered[id] && !slices.Contains(s.w.quorum.everyone, id)
		})
	case *session.Proposed:
		if !d.IsHuman {
			s.panel(key).answered[d.SpecialistID] = true
		}
	}
}

// A rule is how many must answer, and who, as the generator has written it.
type quorum struct {
	rule     machine.Quorum
	required []string
	everyone []string // who is declared to propose, and no human
	waves    bool     // who is not asked any more does not count
}

// reached reports whether as many have answered as must, and all who are required.
func (q *quorum) reached(p *panel) error {
	counted := map[string]bool{}
	for id := range p.asked {
		counted[id] = true
	}
	for id := range p.answered {
		counted[id] = true
	}
	if !q.waves || len(p.asked) == 0 {
		for _, id := range q.everyone {
			counted[id] = true
		}
	}
	for _, id := range q.required {
		if !p.answered[id] {
			return fmt.Errorf("%s is required and has not answered", id)
		}
	}
	need := q.rule.Count
	switch n := len(counted); q.rule.Rule {
	case machine.AnyQuorum:
		need = 1
	case machine.MajorityQuorum:
		need = n/2 + 1
	case machine.AllQuorum:
		need = n
	}
	if len(p.answered) < need {
		return fmt.Errorf("%d of %v have answered, %s (%d) are needed", len(p.answered), sorted(counted), q.rule, need)
	}
	return nil
}

// panels looks at what is executed without a human's word.
func (c *check) panels() error { return c.few }

// decided compares what the engine decides with the panel. What a human proposed needs
// no quorum.
func (c *check) decided(key specialist.RoundKey, d *session.Executed) {
	if d.How != session.ByConsensus || slices.ContainsFunc(c.w.humans, func(h *human) bool { return h.id == d.SpecialistID }) {
		return
	}
	c.w.count("decided by panels")
	if err := c.w.quorum.reached(c.s.panel(key)); err != nil {
		c.few = fmt.Errorf("%s is executed in round %d.%d: %w", d.Transition.Name, d.Round, d.Attempt, err)
	}
}
