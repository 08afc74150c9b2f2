package stats

import (
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Record is what one record of a session's log adds to a [Tally].
type Record struct {
	Decision *session.DecisionRecord // nil unless a transition was executed
	Looks    []Look                  // of humans who reviewed a decision
	Charges  []Charge
}

// A Charge is what was spent.
type Charge struct {
	Spending
	Book spend.Book // may be below zero
}

// A Look is how long a human looked who reviewed a decision.
type Look struct {
	State        string // that the decision has left
	Milliseconds int64
}

// Empty reports whether r adds nothing.
func (r Record) Empty() bool { return r.Decision == nil && len(r.Looks) == 0 && len(r.Charges) == 0 }

// Human reports whether a human decided by the record.
func (r Record) Human() bool { return r.Decision != nil && r.Decision.IsHuman }

// A Watch sees what each record that is added to a [session.Folder] adds to a [Tally]. It must see
// the log from its beginning.
type Watch struct {
	next   Record
	states map[string]string // that were left by decisions, by their rounds
}

// On returns a Watch of a Folder, whose Decision, Applied and Charged go on to be called.
func On(f *session.Folder) *Watch {
	w := &Watch{states: map[string]string{}}
	decision, applied, charged := f.Decision, f.Applied, f.Charged
	f.Decision = func(d *session.DecisionRecord) {
		w.next.Decision, w.states[d.RoundID] = d, d.FromState
		if decision != nil {
			decision(d)
		}
	}
	f.Applied = func(seq int64, ev session.Event, before, after spend.Book) {
		if v, ok := ev.Data.(*session.Reviewed); ok && v.Looked > 0 {
			round := specialist.RoundKey{Session: f.Current.ID, Round: v.Round, Attempt: v.Attempt}.ID()
			if state, decided := w.states[round]; decided {
				w.next.Looks = append(w.next.Looks, Look{state, v.Looked})
			}
		}
		if applied != nil {
			applied(seq, ev, before, after)
		}
	}
	f.Charged = func(at specialist.Time, c session.Charge) {
		day := specialist.TimeOf(at.Time().Truncate(24 * time.Hour))
		w.next.Charges = append(w.next.Charges, Charge{Spending{day, c.SpecialistID, c.Model, c.Guards}, c.Book})
		if charged != nil {
			charged(at, c)
		}
	}
	return w
}

// Take returns what the record adds that was added last.
func (w *Watch) Take() Record {
	r := w.next
	w.next = Record{}
	return r
}
