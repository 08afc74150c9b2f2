package session

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/machine"
)

// Facts are what a session is about.
type Facts struct {
	Input json.RawMessage `json:"input,omitempty"` // its metaJson as started; nil if there is none
	Data  json.RawMessage `json:"data"`            // an object: what the transitions have made of it
}

// A QuestionRuling is a human's word on an open round that waits for the word of
// another.
type QuestionRuling struct {
	SpecialistID   string          `json:"specialistId"`
	TransitionName string          `json:"transitionName"`
	MetaJSON       json.RawMessage `json:"metaJson,omitempty"`
	Reasoning      string          `json:"reasoning,omitempty"`
}

// RulingsFor returns the pending rulings that a viewer may see, and how many others
// there are.
func (s *Session) RulingsFor(viewer machine.SpecialistID) (shown []QuestionRuling, withheld int) {
	shown = []QuestionRuling{}
	list, concealed := s.PendingRulings()
	for _, r := range list {
		if concealed && (viewer == "" || r.SpecialistID != string(viewer)) {
			withheld++
			continue
		}
		shown = append(shown, QuestionRuling{r.SpecialistID, r.Transition.Name, r.MetaJSON, r.Reasoning})
	}
	return shown, withheld
}

// Facts returns what the session is about.
func (s *Session) Facts() Facts {
	input := s.Options().Meta
	if s.facts == nil && len(input) > 0 && input[0] == '{' {
		return Facts{input, input}
	}
	return Facts{input, s.Data().JSON()}
}

// ReasonFor returns why a human is asked, with what came of asks that failed, as far as a viewer may
// know.
func (s *Session) ReasonFor(viewer machine.SpecialistID) string {
	return s.ReasonWithFailures(s.OutcomeFor(viewer), s.Withheld(viewer) != "")
}

// ReasonWithFailures returns why a human is asked, with what came of asks that
// failed.
func (s *Session) ReasonWithFailures(o Outcome, withheld bool) string {
	failures := s.failures(withheld)
	switch {
	case s.Status != NeedsHuman || failures == "" || o.Code == CodeTooFew || strings.Contains(o.Reason, " failed: ") || strings.Contains(o.Reason, " timed out"):
		return o.Reason
	case o.Code == "no_proposals":
		return o.Reason + ": " + failures
	}
	return o.Reason + "; " + failures
}
