package session

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Solicited reports whether somebody was asked to propose in the round.
func (o *OpenRound) Solicited() bool {
	return slices.ContainsFunc(o.Asks, func(a AskState) bool { return a.Role == machine.Proposer && !a.Status.Dropped() })
}

// ElectedHuman reports whether what a human proposed has won.
func (o *OpenRound) ElectedHuman(v *Judged) bool {
	p := o.arrived(v.Order[v.Decision.Winner])
	return p != nil && p.IsHuman
}

// HumanSpoke reports whether a human has proposed in the round.
func (o *OpenRound) HumanSpoke() bool {
	return slices.ContainsFunc(o.Proposals, func(p *specialist.Proposal) bool { return p.IsHuman })
}

// Failure says in words why an ask brought no proposal.
func (a *AskState) Failure() string {
	switch {
	case a.failed == nil:
		return a.SpecialistID + " has not answered"
	case a.failed.Code == CodeTimeout:
		return a.SpecialistID + " timed out"
	}
	return a.SpecialistID + " failed: " + specialist.Clip(firstLine(a.failed.Message), maxFailure)
}

// maxFailure is how much of a failure's message a reason quotes, in bytes.
const maxFailure = 200

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// RetriesOnResume reports whether a resume asks again who failed: the session waits because
// of them.
func (s *Session) RetriesOnResume() bool {
	if s.Status != NeedsHuman {
		return false
	}
	if c := s.Outcome().Code; c != CodeNoQuorum && c != CodeNoProposals {
		return false
	}
	return slices.ContainsFunc(s.round().Asks, func(a AskState) bool { return a.Role == machine.Proposer && a.Status.Failed() })
}

// A Wave says by what those were chosen who are asked together in mode sequential
// under bayes.
type Wave struct {
	Specialists []string           `json:"specialists"`           // the most worth asking first
	Information []exact.Billionths `json:"information,omitempty"` // in nats, what each is expected to tell; none where everyone is asked
	Place       int64              `json:"place"`                 // Lesson.Seq of the newest lesson in the ledger
	Tau         exact.Billionths   `json:"tau,omitempty"`         // that is to be reached; 0 if none is established
	Everyone    Everyone           `json:"everyone,omitempty"`    // why all are asked at once; "" if they are not
	Explore     bool               `json:"explore,omitempty"`     // the order was drawn
}

// An Everyone says why everyone is asked at once in mode sequential.
type Everyone string

// Waved reports whether those of the round were asked one after the other.
func (o *OpenRound) Waved() bool { return o.Wave != nil && o.Wave.Everyone == "" }

// Choices returns the transitions of the session's state, in the order of the file, those
// that are closed in this round included.
func (s *Session) Choices() []InboxTransition {
	choices := make([]InboxTransition, len(s.State.Transitions))
	for i, t := range s.State.Transitions {
		choices[i] = InboxTransition{Name: t.Name, Target: t.Target, Description: t.Description, MetaJSONRequired: t.NeedsPayload, Irreversible: t.Irreversible, Closed: s.WhyClosed(t)}
		if t.Parameters != nil {
			choices[i].Parameters = json.RawMessage(t.Parameters.String())
		}
	}
	return choices
}

// An InboxTransition is one of the choices.
type InboxTransition struct {
	Name        string          `json:"name"`
	Target      string          `json:"target"`
	Closed      string          `json:"closed,omitempty"` // why it may not be chosen in this round; "" if it may
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	// MetaJSONRequired says that Parameters are not satisfied by {}: who chooses it has to
	// give a payload.
	MetaJSONRequired bool `json:"metaJsonRequired,omitempty"`
	// MetaJSON is the payload that goes with it so far: that of a ruling which waits for
	// others, or else, if it has Parameters, of the heaviest proposal that has one. It is nil
	// while there is none, or none that the viewer may see.
	MetaJSON json.RawMessage `json:"metaJson,omitempty"`
	// Irreversible says that it cannot be undone: who rules has to name the question.
	Irreversible bool `json:"irreversible,omitempty"`
	// Approvals say how many humans have to choose it, and who has; nil if one is enough.
	Approvals *QuestionApprovals `json:"approvals,omitempty"`
}
