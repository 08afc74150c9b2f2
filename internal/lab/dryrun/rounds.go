package dryrun

import (
	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/session"
)

// What is told of a run, from the events of its log: they say all that was decided.

// round returns the round that is told of now; nil before the first.
func (p *play) round() *api.DryRound {
	if n := len(p.report.Rounds); n > 0 {
		return &p.report.Rounds[n-1]
	}
	return nil
}

func (p *play) failed(id, code, message string) {
	r := p.round()
	r.Failures = append(r.Failures, api.DryFailure{SpecialistID: id, Code: code, Message: message})
}

// observe tells of what was committed.
func (p *play) observe(c session.Change) {
	p.report.CurrentState = c.After.State.Name
	for i := range c.Events {
		if d, opens := c.Events[i].Data.(*session.RoundOpened); opens {
			now := api.DryRound{Round: d.Round, Attempt: d.Attempt, State: d.State.Name, Proposals: []api.DryProposal{}}
			for _, closed := range d.Closed {
				now.Closed = append(now.Closed, closed.TransitionName)
			}
			p.report.Rounds, p.ruled = append(p.report.Rounds, now), nil
		} else if r := p.round(); r != nil {
			p.tell(r, c.Events[i].Data)
		}
	}
}

// tell adds an event to its round.
func (p *play) tell(r *api.DryRound, data session.Data) {
	switch d := data.(type) {
	case *session.Proposed:
		p.arrived[d.Arrival] = d.Transition.Name
		r.Proposals = append(r.Proposals, api.DryProposal{SpecialistID: d.SpecialistID, TransitionName: d.Transition.Name, Reasoning: d.Reasoning, MetaJSON: d.MetaJSON})
	case *session.AskFailed:
		code := d.Code
		if d.Message == noAnswer {
			code = CodeNoAnswer
		}
		p.failed(d.SpecialistID, code, d.Message)
	case *session.Judged:
		v := api.DryVerdict{ArbiterID: d.ArbiterID, ConsensusReached: d.Decision.Consensus(), Code: d.Decision.Code(), Reasoning: d.Decision.Reasoning()}
		if v.ConsensusReached {
			v.TransitionName = p.arrived[d.Order[d.Decision.Winner]]
		}
		r.Verdicts = append(r.Verdicts, v)
	case *session.Gated:
		g := api.DryGate{TransitionName: d.Transition.Name, Status: d.Verdict.Status.String(), Reasons: []string{}}
		for _, why := range d.Verdict.Reasons {
			g.Reasons = append(g.Reasons, why.Text())
		}
		r.Gates = append(r.Gates, g)
	case *session.AwaitsHuman:
		r.Human = &api.DryHuman{Code: d.Code, Reason: d.Reason, Humans: []string{}}
	case *session.Ruled:
		if d.Transition != nil {
			r.Rulings = append(r.Rulings, api.DryProposal{SpecialistID: d.SpecialistID, TransitionName: d.Transition.Name, Reasoning: d.Reasoning, MetaJSON: d.MetaJSON})
		}
	case *session.Executed:
		r.Executed = &api.DryExecuted{TransitionName: d.Transition.Name, ToState: d.Transition.Target, Decision: d.How.String(), SpecialistID: d.SpecialistID}
	}
}
