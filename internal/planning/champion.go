package planning

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// Able reports whether a specialist may be champion.
func Able(members []Member, weights []exact.Billionths, id string) bool {
	for i := range members {
		if m := &members[i]; m.SpecialistID == id {
			return !m.Off && !m.IsHuman && weights[i] >= trust.Trusted
		}
	}
	return false
}

// Favourite returns the enabled AI of highest alignment, the first of equals, if
// that reaches the bar.
func Favourite(members []Member, weights []exact.Billionths, bar exact.Billionths) *Member {
	best := -1
	for i := range members {
		if m := &members[i]; !m.Off && !m.IsHuman && weights[i] >= bar && (best < 0 || weights[i] > weights[best]) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &members[best]
}
