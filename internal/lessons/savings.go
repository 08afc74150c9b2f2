package lessons

import (
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// A look is the ledger as it was when the outcomes of a machine last reached a
// multiple of trust.SavingsEvery. What asking in waves saves is replayed on that,
// so every process, and whoever replays the log, comes to the same.
type look struct {
	outcomes int64
	ledger   *trust.Ledger // of the machine alone; never changed

	mu    sync.Mutex
	known map[lookKey]trust.Savings
}

func newLook(outcomes int64, l *trust.Ledger) *look {
	return &look{outcomes: outcomes, ledger: l, known: map[lookKey]trust.Savings{}}
}

// A lookKey is what savings depend on besides the ledger.
type lookKey struct {
	machine    string
	experts    trust.Experts
	noStacking bool
	rounds     bool
	tau        exact.Billionths
}

// Savings returns what asking in waves would have saved, and of how many outcomes of the
// machine that was replayed: 0 as long as there were too few.
func (f *Follower) Savings(q *trust.Question, tau exact.Billionths) (s trust.Savings, outcomes int64) {
	f.mu.Lock()
	var k *look
	if f.now != nil {
		k = f.now.looks[q.Machine]
	}
	f.mu.Unlock()
	if k == nil {
		return s, 0
	}
	key := lookKey{q.Machine, q.Policy.Experts, q.Policy.NoStacking, q.Policy.Rounds, tau}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.known[key]
	if !known {
		s = k.ledger.Savings(q.Machine, q.Policy, tau)
		k.known[key] = s
	}
	return s, k.outcomes
}

// Worth reports whether asking in waves is worth it: until savings show otherwise it is.
func (f *Follower) Worth(q *trust.Question, tau exact.Billionths) bool {
	s, outcomes := f.Savings(q, tau)
	return outcomes == 0 || s.Worth()
}
