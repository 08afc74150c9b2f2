package runner

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
)

// A Saving is what asking in waves would have saved in the latest rounds of a
// machine in which everyone was asked at once, and whether a state makes use of it.
type Saving struct {
	trust.Savings
	Outcomes int64            `json:"outcomes"` // of the machine when that was replayed; 0 if it has not been yet
	Tau      exact.Billionths `json:"tau"`      // at which asking stops; 0 if none is established
	// Everyone says that all are asked at once because it is not worth it, in mode
	// sequential. They are not where that costs more than a human.
	Everyone bool   `json:"everyone,omitempty"`
	Note     string `json:"note,omitempty"`
}

// noSavingNote is the Note of a Saving that is not worth it.
const noSavingNote = "no saving: panel weak or correlated"

// saving is [StateDeciding.Saving] of the state of t.
func (t *assessment) saving(l *trust.Ledger) Saving {
	if t.here.Arbiter == nil || !t.here.Arbiter.ByBayes() {
		return Saving{}
	}
	q := &t.here.Question
	s := Saving{Tau: l.Tau(*q)}
	if s.Tau == 0 {
		return s
	}
	if s.Savings, s.Outcomes = t.r.lessons.Savings(q, s.Tau); s.Outcomes > 0 && !s.Worth() {
		s.Note = noSavingNote
		s.Everyone = !t.costly() && t.here.State.Solicit.Mode == machine.Sequential
	}
	return s
}
