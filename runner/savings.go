package runner

import (
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
)

// A look is the ledger as it was when the outcomes of a machine last reached a
// multiple of trust.SavingsEvery. What asking in waves saves is replayed on that,
// so every process, and whoever replays the log, comes to the same.
type look struct {
	outcomes int64
	ledger   *trust.Ledger // never changed

	mu    sync.Mutex
	known map[lookKey]trust.Savings
}

// A lookKey is what savings depend on besides the ledger.
type lookKey struct {
	machine    string
	experts    trust.Experts
	noStacking bool
	tau        exact.Billionths
}

func (k *look) savings(q *trust.Question, tau exact.Billionths) trust.Savings {
	key := lookKey{q.Machine, q.Policy.Experts, q.Policy.NoStacking, tau}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.known[key]
	if !known {
		s = k.ledger.Savings(q.Machine, q.Policy, tau)
		k.known[key] = s
	}
	return s
}

// lookAt returns the latest look at a machine, nil if there was none.
func (l *ledger) lookAt(machineName string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks[machineName]
}

// worth reports whether asking in waves is worth it: until the first look shows
// otherwise it is.
func (l *ledger) worth(q *trust.Question, tau exact.Billionths) bool {
	k := l.lookAt(q.Machine)
	return k == nil || k.savings(q, tau).Worth()
}

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
	if t.here.arbiter == nil || !t.here.arbiter.byBayes() {
		return Saving{}
	}
	q := &t.here.question
	s := Saving{Tau: l.Tau(*q)}
	k := t.r.ledger.lookAt(q.Machine)
	if k == nil || s.Tau == 0 {
		return s
	}
	s.Savings, s.Outcomes = k.savings(q, s.Tau), k.outcomes
	if !s.Worth() {
		s.Note = noSavingNote
		s.Everyone = !t.costly() && t.here.state.Solicit.Mode == machine.Sequential
	}
	return s
}
