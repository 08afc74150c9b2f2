package session

import (
	"encoding/json"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A SessionView is a session as it is shown: DIAL's Session.
type SessionView struct {
	SessionID      string             `json:"sessionId"`
	MachineName    string             `json:"machineName"`
	CurrentState   string             `json:"currentState"`
	CurrentRoundID string             `json:"currentRoundId"`
	Machine        json.RawMessage    `json:"machine"`
	History        []TransitionRecord `json:"history"`
	CreatedAt      specialist.Time    `json:"createdAt"`
	MetaJSON       json.RawMessage    `json:"metaJson,omitempty"`
	Subject        string             `json:"subject,omitempty"`
	Data           json.RawMessage    `json:"data,omitempty"` // nil if the machine says nothing of data
	Sequence       int64              `json:"sequence"`
	Round          int32              `json:"round"`
	Attempt        int32              `json:"attempt"`
	Status         Status             `json:"status"`
	Reason         string             `json:"reason,omitempty"`
	Code           string             `json:"code,omitempty"`
	MachineDigest  string             `json:"machineDigest"`
	Driver         Driver             `json:"driver,omitempty" enum:"temporal,none"` // who carries it on by itself; left out for any process that does so for its store
	ForkedFrom     *ForkedFrom        `json:"forkedFrom,omitempty"`                  // nil unless it goes on from where another session stood
	Proposals      []json.RawMessage  `json:"proposals"`
	Notices        []string           `json:"notices,omitempty"`
	Waiting        []string           `json:"waiting,omitempty"` // whose answers are out
	Spent          SpentView          `json:"spent"`
	Raised         []guard.Raise      `json:"raised,omitempty"` // limits that humans have raised
}

// A TransitionRecord is one executed transition in full.
type TransitionRecord struct {
	specialist.TransitionRecord
	FromState    string   `json:"fromState"`
	ToState      string   `json:"toState"`
	RoundID      string   `json:"roundId"`
	IsHuman      bool     `json:"isHuman"`
	SpecialistID string   `json:"specialistId,omitempty"`
	ProposalID   string   `json:"proposalId,omitempty"`
	Authors      []string `json:"authors,omitempty"`   // the humans who agreed, if there was more than one
	Retracted    string   `json:"retracted,omitempty"` // why its author has taken it back; "" if it stands
}

// A SpentView is what a session has cost.
type SpentView struct {
	Calls           int64       `json:"calls"`
	NumInputTokens  int64       `json:"numInputTokens"`
	NumOutputTokens int64       `json:"numOutputTokens"`
	CostUSD         exact.Money `json:"costUSD"`
	Estimated       int64       `json:"estimated,omitempty"` // calls charged as estimated
	Unpriced        int64       `json:"unpriced,omitempty"`  // calls without a price
}

// View returns the session as it is shown.
func (s *Session) View() SessionView {
	o, spent := s.Outcome(), s.Spent()
	v := SessionView{
		SessionID: s.ID.String(), MachineName: s.Machine().Name(), CurrentState: s.State.Name, CurrentRoundID: s.Key().ID(),
		Machine: s.Machine().JSON(), CreatedAt: s.CreatedAt, MetaJSON: s.Options().Meta, Sequence: s.Sequence, Round: s.Round, Attempt: s.Attempt,
		Status: s.Status, Reason: o.Reason, Code: o.Code, MachineDigest: s.Machine().Digest(), Driver: s.Options().Driver, ForkedFrom: s.Options().ForkedFrom, Notices: s.Notices(),
		Proposals: []json.RawMessage{},
		Spent:     spentView(spent),
		Raised:    s.Raised(),
	}
	if s.facts != nil {
		v.Subject, v.Data = s.facts.subject, s.facts.data.JSON()
	}
	v.History = s.Records(int(s.Executed))
	for _, p := range s.Proposals() {
		v.Proposals = append(v.Proposals, specialist.AppendProposal(nil, s.Key(), p))
	}
	for _, a := range s.OpenAsks() {
		v.Waiting = append(v.Waiting, a.SpecialistID)
	}
	return v
}

// ViewFor returns the session as a viewer may see it: without the proposals that are
// withheld from them. The viewer "" is nobody in particular.
func (s *Session) ViewFor(viewer machine.SpecialistID) SessionView {
	v := s.View()
	if s.Withheld(viewer) == "" {
		return v
	}
	o := s.OutcomeFor(viewer)
	v.Proposals, v.Reason, v.Code = []json.RawMessage{}, o.Reason, o.Code
	if s.Attempt > 0 {
		v.Notices = nil
	}
	v.Waiting = nil
	for _, a := range s.OpenAsksFor(viewer) {
		if a.SpecialistID != "" {
			v.Waiting = append(v.Waiting, a.SpecialistID)
		}
	}
	return v
}

// Records returns the newest n executed transitions, the oldest first.
func (s *Session) Records(n int) []TransitionRecord {
	history := s.History()
	history = history[max(0, len(history)-n):]
	records := make([]TransitionRecord, len(history))
	for i, r := range TransitionRecords(history) {
		e := history[i]
		key := e.Key(s.ID)
		records[i] = TransitionRecord{TransitionRecord: r, FromState: e.Transition.From.Name, ToState: e.Transition.Target,
			RoundID: key.ID(), IsHuman: e.IsHuman, SpecialistID: e.SpecialistID, Authors: e.Authors}
		if d := s.Retracted(e.Round); d != nil {
			records[i].Retracted = d.Note
		}
		if e.Arrival != 0 {
			records[i].ProposalID = key.ProposalID(e.Arrival)
		}
	}
	return records
}

// MarshalJSON writes the View.
func (s *Session) MarshalJSON() ([]byte, error) { return json.Marshal(s.View()) }
