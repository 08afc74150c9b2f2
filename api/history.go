package api

import (
	"encoding/json"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A ModelCall is an attempt at asking a model.
type ModelCall struct {
	specialist.AuditEntry
	Withheld bool `json:"withheld,omitempty"` // the rest of it
}

// ModelCallOf returns an attempt as it is shown: of one in a round that is withheld no more than
// that there was one, since what was asked, what came back and what failed tell what was proposed.
func ModelCallOf(e specialist.AuditEntry, withheld bool) ModelCall {
	if withheld {
		e = specialist.AuditEntry{AuditEntryID: e.AuditEntryID, SessionID: e.SessionID, MachineName: e.MachineName, Timestamp: e.Timestamp, Round: e.Round}
	}
	return ModelCall{e, withheld}
}

// A Decision is an executed transition, with what it was decided on.
type Decision struct {
	session.DecisionRecord
	Withheld bool `json:"withheld,omitempty"` // what was proposed, and made of it, waits for a review
}

// DecisionOf returns a decision as it is shown. Of one that waits for a review no more is shown
// than what was executed and who has ruled; without payload, no texts.
func DecisionOf(d session.DecisionRecord, withheld, payload bool) Decision {
	if withheld {
		d.AlignmentSnapshot, d.ConsensusMargin, d.Scores, d.WinningProposalID = map[string]exact.Billionths{}, nil, nil, ""
		d.ArbiterReasoning, d.Guard, d.Asked, d.Cancelled = "", session.GuardNote{Codes: []string{}}, []string{}, []string{}
	}
	if withheld || !payload {
		d.Proposals = []json.RawMessage{}
	}
	if withheld && !d.IsHuman {
		d.SpecialistID, d.Reasoning = "", ""
	}
	if !payload {
		d.Reasoning, d.Note, d.ArbiterReasoning, d.MetaJSON, d.Data = "", "", "", nil, nil
	}
	return Decision{d, withheld}
}

// An Exemplar is a human decision that is kept as an example.
type Exemplar struct {
	specialist.Exemplar
	Withheld bool `json:"withheld,omitempty"` // what was proposed waits for a review
}

// ExemplarOf returns an exemplar as it is shown: of one that waits for a review, not what was
// proposed.
func ExemplarOf(e specialist.Exemplar, withheld bool) Exemplar {
	if withheld {
		e.Proposals = json.RawMessage("[]")
	}
	return Exemplar{e, withheld}
}

// A Driven says how it goes with a session that a server carries on.
type Driven struct {
	Mode        string           `json:"mode" doc:"driving, standby (another process drives), stalled, off, none: the session is left to step and run, or temporal: a workflow of Temporal carries it on"`
	Known       bool             `json:"known" doc:"this process has to do with the session: its turn comes, or a time"`
	NextAttempt *specialist.Time `json:"nextAttempt,omitempty" doc:"absent if its turn comes"`
	Tries       int              `json:"tries,omitempty" doc:"how often a step has failed in a row"`
	LastError   string           `json:"lastError,omitempty"`
}
