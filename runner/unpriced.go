package runner

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// unpricedModel says how a model is given a price.
const unpricedModel = "give the model a price in guards.cost.prices or with --prices, or write budget.default_estimate_usd beside the limit"

// unpricedModels returns why a machine may not start: a model that its file names has
// no price that this program knows and no estimate, under a hard limit of dollars that
// would not see it. Webhooks are refused when the file is loaded; what was registered
// since is not asked, and the log says why.
func (r *Runner) unpricedModels(m *machine.Machine, p *plan) error {
	var problems []error
	told := map[string]bool{}
	for i := range m.States() {
		s := &m.States()[i]
		why := p.Program.Guards(s).Unpriced()
		if why == nil || len(s.Transitions) == 0 {
			continue
		}
		t := r.lookIn(p, s)
		all := p.States[i].Members
		if a := p.States[i].Arbiter; a != nil {
			all = append(all[:len(all):len(all)], *a)
		}
		for j := range all {
			who := &all[j]
			if who.Off || who.ModelID == "" || told[who.SpecialistID] || p.Roster.Registered(who.SpecialistID) != nil || !t.need(who).unpriced {
				continue
			}
			told[who.SpecialistID] = true
			problems = append(problems, unpricedError(m, s, who, why))
		}
	}
	if len(problems) > 0 {
		return &planning.StartError{Problems: problems}
	}
	return nil
}

// unpricedError says that nothing says what a model may cost that a specialist of a state asks,
// under the limit that why names.
func unpricedError(m *machine.Machine, s *machine.State, who *planning.Member, why *spend.BudgetError) error {
	return &planning.UnpricedError{Problem: m.Locate(machine.Problem{Path: specialistPath(m, s, who.SpecialistID), Code: guard.UnpricedAsk,
		Message: fmt.Sprintf("specialist %q asks the model %q, and nothing says what that may cost, so the limit budget.hard_limit_usd of $%s would not see it", who.SpecialistID, who.ModelID, exact.Money(why.Limit)),
		Hint:    unpricedModel})}
}

// specialistPath returns the pointer to a specialist: in the state's list, or the
// machine's.
func specialistPath(m *machine.Machine, s *machine.State, id string) string {
	is := func(sp machine.Specialist) bool { return sp.SpecialistID == id }
	if i := slices.IndexFunc(s.Roster, is); i >= 0 && !s.Roster[i].Reference() {
		return fmt.Sprintf("%s/specialists/%d", s.Path(), i)
	}
	return fmt.Sprintf("/specialists/%d", max(0, slices.IndexFunc(m.Specialists(), is)))
}
