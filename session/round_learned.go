package session

import (
	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Learned returns the proposals of the round, and who failed to make one, as the
// ledger counts them. Who did not say what the answer cost is taken to cost what
// its declaration says.
func (o *OpenRound) Learned(version func(id string) string, m *machine.Machine) []trust.OutcomeProposal {
	var list []trust.OutcomeProposal
	alone := o.Verdict != nil && o.Verdict.Decision.Rule == arbiter.ByChampion
	for _, p := range o.Proposals {
		cost := max(0, p.Usage.CostUSD)
		if !p.Usage.Has(specialist.CostGiven) {
			cost = EstimateOf(m, p.Transition.From, p.SpecialistID)
		}
		ask := o.Ask(p.SpecialistID, machine.Proposer)
		o := trust.OutcomeProposal{
			Shadow:       alone && ask != nil && ask.Shadow,
			SpecialistID: p.SpecialistID, Version: version(p.SpecialistID), Transition: p.Transition.Name,
			Cost: cost, LatencyMS: max(0, p.Usage.LatencyMsec), Human: p.IsHuman,
		}
		if p.Detail != nil {
			o.Model, o.OptionOrder = p.Detail.Model, trust.OrderKey(p.Detail.OptionOrder)
		}
		list = append(list, o)
	}
	return append(list, o.failures(version)...)
}

// EstimateOf returns what asking somebody is declared to cost, 0 if the definition
// does not say.
func EstimateOf(m *machine.Machine, s *machine.State, id string) exact.Money {
	for _, list := range [][]machine.Specialist{s.Roster, m.Specialists()} {
		for i := range list {
			if d := &list[i]; d.SpecialistID == id && d.EstimatedCostUSD != nil {
				return *d.EstimatedCostUSD
			}
		}
	}
	return 0
}

// failures returns who was asked in the round and gave no legal answer.
func (o *OpenRound) failures(version func(id string) string) (list []trust.OutcomeProposal) {
	seen := map[string]bool{}
	for i := range o.Asks {
		a := &o.Asks[i]
		if a.Role != machine.Proposer || !a.Status.Failed() || seen[a.SpecialistID] || o.Proposal(a.SpecialistID) != nil {
			continue
		}
		seen[a.SpecialistID] = true
		list = append(list, trust.OutcomeProposal{SpecialistID: a.SpecialistID, Version: version(a.SpecialistID), Failed: true})
	}
	return list
}
