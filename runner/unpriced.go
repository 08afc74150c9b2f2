package runner

import (
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
)

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
			problems = append(problems, planning.Unpriced(m, s, who, why))
		}
	}
	if len(problems) > 0 {
		return &planning.StartError{Problems: problems}
	}
	return nil
}
