package session

import (
	"slices"
)

// Revealed records that somebody deliberately looked at what was withheld in a
// round, open or under review: rulings and reviews of theirs are from there on no
// evidence of their own.
type Revealed struct {
	RoundID      string
	SpecialistID string // who looked; "" if nobody said, which may have been anybody
	Actor        *Actor // who that was, by how they are known; nil if that is not said
}

func applyRevealed(s *Session, o *OpenRound, d *Revealed) {
	if i := s.reviewByID(d.RoundID); i >= 0 {
		v := *s.reviews[i]
		v.revealed = append(slices.Clip(v.revealed), d.SpecialistID)
		s.reviews = slices.Clone(s.reviews)
		s.reviews[i] = &v
		return
	}
	if d.RoundID == s.Key().ID() && !slices.Contains(o.revealed, d.SpecialistID) {
		o.revealed = append(slices.Clip(o.revealed), d.SpecialistID)
	}
}
