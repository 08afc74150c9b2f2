package session

import (
	"encoding/json"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A DecisionRecord is one executed transition with everything it was decided on.
type DecisionRecord struct {
	DecisionID        string                      `json:"decisionId"`
	SessionID         string                      `json:"sessionId"`
	MachineName       string                      `json:"machineName"`
	RoundID           string                      `json:"roundId"`
	FromState         string                      `json:"fromState"`
	ToState           string                      `json:"toState"`
	TransitionName    string                      `json:"transitionName"`
	IsHuman           bool                        `json:"isHuman"`
	Proposals         []json.RawMessage           `json:"proposals"`
	AlignmentSnapshot map[string]exact.Billionths `json:"alignmentSnapshot"`
	ConsensusMargin   *exact.Billionths           `json:"consensusMargin" nullable:"true"` // null if a human forced it
	Threshold         machine.Threshold           `json:"threshold"`
	Timestamp         specialist.Time             `json:"timestamp"`
	Kind              string                      `json:"kind"`
	ArbiterID         string                      `json:"arbiterId,omitempty"`
	Strategy          string                      `json:"strategy,omitempty"`
	WinningProposalID string                      `json:"winningProposalId,omitempty"`
	SpecialistID      string                      `json:"specialistId,omitempty"`
	Authors           []string                    `json:"authors,omitempty"`        // the humans who agreed, if there was more than one
	Actor             *Actor                      `json:"actor,omitempty"`          // who ruled, of several the last; nil if that is not said
	QuestionDigest    string                      `json:"questionDigest,omitempty"` // of the question on which the last of them ruled
	Looked            int64                       `json:"looked,omitempty"`         // for how many milliseconds the question was visible to the last of them; 0 if that is not said
	Note              string                      `json:"note,omitempty"`
	Bulk              bool                        `json:"bulk,omitempty"` // they ruled on others at once
	Reasoning         string                      `json:"reasoning"`
	ArbiterReasoning  string                      `json:"arbiterReasoning,omitempty"`
	MetaJSON          json.RawMessage             `json:"metaJson,omitempty"`
	Data              json.RawMessage             `json:"data,omitempty"` // of the session, as the round found it; nil if the machine says nothing of data
	Scores            map[string]exact.Billionths `json:"scores,omitempty"`
	Guard             GuardNote                   `json:"guard"`
	Asked             []string                    `json:"asked"`
	Cancelled         []string                    `json:"cancelled"`
	CostUSD           exact.Money                 `json:"costUSD"`
	Sequence          int64                       `json:"sequence"`

	// Votes, NoQuorum and Looks are for statistics: they are not shown.
	Votes    []RecordedVote `json:"-"`
	NoQuorum bool           `json:"-"` // a human decided where too few had answered
	Looks    []int64        `json:"-"` // for how many milliseconds humans looked who ruled, of approvals the sum, or reviewed, as far as they said
}

// A RecordedVote is one proposal of a decided round.
type RecordedVote struct {
	SpecialistID string
	Human, Won   bool
}

// A GuardNote is what the guards said of an executed step.
type GuardNote struct {
	Status string   `json:"status"`
	Codes  []string `json:"codes"`
}

// Timed reports whether a timer executed the transition, which is nobody's decision.
func (r *DecisionRecord) Timed() bool { return r.Kind == ByTimer.String() }

// newDecisionRecord describes the execution of a transition from the session and
// round as they were before it.
func newDecisionRecord(s *Session, o *OpenRound, e *Executed, v verdict.Verdict, seq int64) *DecisionRecord {
	key := s.Key()
	r := &DecisionRecord{
		DecisionID: key.DecisionID(), SessionID: s.ID.String(), MachineName: s.Machine().Name(), RoundID: key.ID(),
		FromState: e.Transition.From.Name, ToState: e.Transition.Target, TransitionName: e.Transition.Name,
		IsHuman: e.IsHuman, Timestamp: e.At, Kind: e.How.String(), SpecialistID: e.SpecialistID, Authors: e.Authors, Actor: e.Actor, QuestionDigest: e.QuestionDigest, Looked: e.Looked, Note: e.Note, Bulk: e.Bulk, Looks: looksOf(o, e), Reasoning: e.Reasoning, MetaJSON: e.MetaJSON,
		Guard: GuardNote{v.Status.String(), v.Codes()}, Asked: []string{}, Cancelled: []string{}, Proposals: []json.RawMessage{},
		AlignmentSnapshot: map[string]exact.Billionths{}, CostUSD: o.Cost, Sequence: seq,
	}
	standing := Standing{}
	if e.Standing != nil {
		standing = *e.Standing
	}
	r.NoQuorum = e.IsHuman && o.Verdict != nil && o.Verdict.Decision.Rule == arbiter.NoQuorum
	if j := o.Verdict; j != nil && e.How == ByConsensus {
		standing = Standing{j.Order, j.Weights, j.Threshold}
		margin := j.Margin
		r.ConsensusMargin, r.ArbiterID, r.Strategy, r.ArbiterReasoning = &margin, j.ArbiterID, j.Strategy, j.Decision.Reasoning()
		r.WinningProposalID = key.ProposalID(e.Arrival)
	}
	if r.Threshold = thresholdOr(standing.Threshold); s.facts != nil {
		r.Data = s.facts.data.JSON()
	}
	r.addRound(key, o, e, standing)
	return r
}

// looksOf returns how long those looked who ruled on a round.
func looksOf(o *OpenRound, e *Executed) (looks []int64) {
	words := []int64{e.Looked}
	if o.Rulings != nil {
		for _, w := range o.Rulings.List {
			if w.SpecialistID != e.SpecialistID {
				words = append(words, w.Looked)
			}
		}
	}
	for _, looked := range words {
		switch {
		case looked == 0:
		case e.Transition.Approvals != nil && len(looks) > 0:
			looks[0] += looked
		default:
			looks = append(looks, looked)
		}
	}
	return looks
}

func (r *DecisionRecord) addRound(key specialist.RoundKey, o *OpenRound, e *Executed, standing Standing) {
	r.Scores = map[string]exact.Billionths{}
	for i, arrival := range standing.Order {
		p := o.arrived(arrival)
		if p == nil {
			continue
		}
		r.Proposals = append(r.Proposals, specialist.AppendProposal(nil, key, p))
		if !o.inherited { // else the session counts it in which it was given
			r.Votes = append(r.Votes, RecordedVote{p.SpecialistID, p.IsHuman, p.Transition == e.Transition})
		}
		r.AlignmentSnapshot[p.SpecialistID] = standing.Weights[i]
		name := p.Transition.Name
		r.Scores[name] = exact.Billionths(exact.AddSat(int64(r.Scores[name]), int64(standing.Weights[i])))
	}
	for _, a := range o.Asks {
		if a.Role != machine.Proposer {
			continue
		}
		r.Asked = append(r.Asked, a.SpecialistID)
		if a.Status.Dropped() || a.Status.Pending() {
			r.Cancelled = append(r.Cancelled, a.SpecialistID)
		}
	}
}

// arrived returns the live proposal with that arrival, or nil.
func (o *OpenRound) arrived(arrival int32) *specialist.Proposal {
	for _, p := range o.Proposals {
		if p.Arrival == arrival {
			return p
		}
	}
	return nil
}
