package session

import (
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// Retracted records that a human takes back an executed ruling of their own, as a mistake.
// What was executed stays. What the ruling has taught leaves weights and contexts: the
// comparisons, the exemplar and the outcome of its round, which stand here again, so that
// whoever follows the log need not look for them. A review that the round still waited for
// is off. The tests of promises, of promotion and of drift keep what they have counted.
type Retracted struct {
	Round, Attempt int32
	SpecialistID   string // the author who takes it back
	Note           string
	Comparisons    []trust.Comparison
	ExemplarID     string        // "" if the ruling made none
	Lesson         *trust.Lesson // with what it taught the ledger, to be taken back; nil if nothing
	Actor          *Actor        // who that was; nil if that is not said
}

// Key returns the key of the round whose ruling is taken back.
func (d *Retracted) Key(session specialist.SessionID) specialist.RoundKey {
	return specialist.RoundKey{Session: session, Round: d.Round, Attempt: d.Attempt}
}

func (d *Retracted) form(f *form) {
	if !f.reading {
		key := f.key
		key.Round, key.Attempt = d.Round, d.Attempt
		f.w.str("roundId", key.ID())
	}
	number(f, "round", &d.Round)
	number(f, "attempt", &d.Attempt)
	f.str("specialistId", &d.SpecialistID)
	f.str("note", &d.Note)
	if f.reading || d.Comparisons != nil {
		list(f, "comparisons", &d.Comparisons, comparisonForm)
	}
	f.opt("exemplarId", &d.ExemplarID)
	encoded(f, "lesson", &d.Lesson, (*trust.Lesson).Encode, trust.DecodeLesson)
	f.actor("actor", &d.Actor)
	if !f.reading {
		return
	}
	for i := range d.Comparisons {
		d.Comparisons[i].Retracted = true
	}
	if d.Lesson != nil && d.Lesson.Retracts == nil {
		f.refuse("lesson", "of nothing that is taken back")
	}
}

// Retracted returns the ruling of a closed round that was taken back; nil if it stands.
func (s *Session) Retracted(round int32) *Retracted {
	for _, d := range s.retracted {
		if d.Round == round {
			return d
		}
	}
	return nil
}

func applyRetracted(s *Session, d *Retracted) {
	s.retracted = append(slices.Clip(s.retracted), d)
	if i := s.reviewByID(d.Key(s.ID).ID()); i >= 0 {
		s.dropReview(i)
	}
}
