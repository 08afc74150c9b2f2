package session

import "slices"

// ConcealsRulings reports whether what was ruled in the present round is kept from
// everybody but its authors: also what was taken back, for the round stays one in which
// humans rule without sight of each other.
func (s *Session) ConcealsRulings() bool {
	return s.round().Rulings != nil && !s.round().Rulings.contested
}

// YetToRule leaves of the humans who may rule those who have not, as long as the others
// wait for them.
func (s *Session) YetToRule(humans []string) []string {
	if !s.ConcealsRulings() {
		return humans
	}
	return slices.DeleteFunc(slices.Clone(humans), func(id string) bool { return s.Open.Rulings.By(id) != nil })
}
