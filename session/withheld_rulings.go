package session

import (
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
)

// ConcealsRulings reports whether what was ruled in the present round is kept from
// everybody but its authors: also what was taken back, for the round stays one in which
// humans rule without sight of each other.
func (s *Session) ConcealsRulings() bool {
	return s.round().Rulings.Conceals()
}

// YetToRule leaves of the humans who may rule those who have not, as long as the others
// wait for them.
func (s *Session) YetToRule(humans []string) []string {
	if !s.ConcealsRulings() {
		return humans
	}
	return slices.DeleteFunc(slices.Clone(humans), func(id string) bool { return s.Open.Rulings.By(id) != nil })
}

// ruledBefore reports whether an event is a ruling of an earlier attempt at the open round, in
// which humans ruled without sight of each other: the question is open again, so the word
// stays kept from them.
func (s *Session) ruledBefore(e *Raw) bool {
	var roundID string
	_ = json.Unmarshal(jsontext.ReadObject(e.Data).Get("roundId"), &roundID) // each ruling has one
	return s.State.SecondBefore() && s.Status != Completed && roundID != s.Key().ID()
}
