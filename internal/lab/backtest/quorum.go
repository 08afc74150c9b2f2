package backtest

import (
	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
)

// quorum returns how far the panel of a point had answered: as it was recorded, and
// nil if it was recorded before anybody counted; under another policy, as the engine
// would count now.
func (f *fold) quorum(r *round, pt *point, rule *rule, votes []arbiter.Vote) *arbiter.Quorum {
	if !f.changed {
		if pt.judged == nil {
			return nil
		}
		return pt.judged.Decision.Quorum
	}
	q, seen := &arbiter.Quorum{}, map[string]bool{}
	for _, v := range votes {
		if !v.IsHuman {
			q.Counted, q.Answered, seen[v.SpecialistID] = q.Counted+1, q.Answered+1, true
		}
	}
	for _, id := range pt.failed {
		if !seen[id] && f.Policy.keeps(id) {
			q.Counted, seen[id] = q.Counted+1, true
		}
	}
	for i := range r.part.now.Proposers {
		m := &r.part.now.Proposers[i]
		if m.Required && f.Policy.keeps(m.SpecialistID) && !answered(votes, m.SpecialistID) {
			q.Missing = append(q.Missing, m.SpecialistID)
		}
	}
	q.Needed = r.quorumRule(pt, rule).Needed(q.Counted)
	return q
}

// quorumRule returns the quorum in force at a point under the policy.
func (r *round) quorumRule(pt *point, rule *rule) machine.Quorum {
	if declared := r.part.now.State.Quorum; declared != nil {
		return *declared
	}
	strategy := ""
	if rule.by != nil {
		strategy = rule.by.StrategyFnName
	}
	return planning.DefaultQuorum(strategy, r.mode, pt.judged != nil && pt.judged.Decision.Rule == arbiter.ByChampion)
}
