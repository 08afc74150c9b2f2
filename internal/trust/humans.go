package trust

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/dialai/dialai/exact"
)

// How far humans can be trusted, as second humans show. A human's ruling is the truth
// that all else is measured by, so nothing can be promised below the rate at which
// humans err.
//
// Two things are counted. For each machine, how often two humans who did not see each
// other's answer differed: HumanError solves that share for the error of one of them.
// For each human, how often they were right where it became known who was: both where
// they agreed, the one whom a third human confirmed where not. The latter (chance)
// begins at 19.4 of 20, so a few disagreements do not ruin anybody.
//
// A disagreement counts for the machine when it arises and for the two only when it is
// settled, so it must be added once and settled once.

// What is assumed of a human before a second one was asked: right in 19.4 of 20.
const (
	humanHits = 19.4
	humanRuns = 20.
)

// A SecondLook is a round that two humans decided, neither seeing the other's
// answer.
type SecondLook struct {
	Machine     string `json:"machine"`
	State       string `json:"state"`
	Options     int    `json:"options"` // number of legal transitions, 2 or more
	FirstHuman  string `json:"firstHuman"`
	SecondHuman string `json:"secondHuman"`
	First       string `json:"first"`  // transition that the first chose
	Second      string `json:"second"` // that the other chose
	// Settled is what a third human chose of a disagreement; "" as long as nobody
	// has. Agreement needs none.
	Settled string `json:"settled,omitempty"`
}

// ErrSecondLook is wrapped by every error about a SecondLook that cannot be
// counted.
var ErrSecondLook = errors.New("bad second look")

func (s *SecondLook) check() error {
	switch {
	case s.Machine == "" || s.FirstHuman == "" || s.SecondHuman == "":
		return fmt.Errorf("%w: machine, firstHuman and secondHuman are needed", ErrSecondLook)
	case s.FirstHuman == s.SecondHuman:
		return fmt.Errorf("%w: %q cannot be the second human after itself", ErrSecondLook, s.FirstHuman)
	case s.Options < 2:
		return fmt.Errorf("%w: %d options leave nothing to disagree about", ErrSecondLook, s.Options)
	case s.First == "" || s.Second == "":
		return fmt.Errorf("%w: both choices are needed", ErrSecondLook)
	}
	return nil
}

// AddSecondLook counts a second human's answer: toward the error of humans in the
// machine at once, toward that of the two as soon as it is known who was right.
// A disagreement is added when it arises, and given to [Ledger.Settle] later.
func (l *Ledger) AddSecondLook(s SecondLook) error {
	if err := s.check(); err != nil {
		return err
	}
	l.ownHumans()
	m := l.humans.machines[s.Machine]
	m.pairs++
	m.room += int64(math.Round(1e9 / float64(s.Options-1)))
	if s.First != s.Second {
		m.apart++
	}
	l.humans.machines[s.Machine] = m
	if s.judged() {
		l.humans.judge(&s)
	}
	return nil
}

// judged reports whether it is known who of the two was right.
func (s *SecondLook) judged() bool { return s.First == s.Second || s.Settled != "" }

// Settle counts who of the two humans of a disagreement, added before, was right
// according to s.Settled.
func (l *Ledger) Settle(s SecondLook) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Settled == "" || s.First == s.Second {
		return fmt.Errorf("%w: there is nothing to settle: give the third choice of a disagreement", ErrSecondLook)
	}
	l.ownHumans()
	l.humans.judge(&s)
	return nil
}

// HumanError returns the share of decisions in which a human of the machine errs,
// as far as second humans have shown, in 0..1, and the number of rounds it rests
// on: e of 1 - D = (1-e)^2 + e^2/(K-1) for a share D of disagreements, the
// smaller root. (Both are right with (1-e)^2; both err alike with e^2/(K-1), if errors fall
// on each of the K-1 other options equally often; compare Hui and Walter, Biometrics 36,
// 1980.) Without second humans it is unknown: pairs is 0.
func (l *Ledger) HumanError(machine string) (e exact.Billionths, pairs int64) {
	m := l.humans.machines[machine]
	if m.pairs == 0 {
		return 0, 0
	}
	d := float64(m.apart) / float64(m.pairs)
	c := 1 + float64(m.room)/1e9/float64(m.pairs)
	root := math.Sqrt(max(0, 1-float64(c*d)))
	return billionths((1 - root) / c), m.pairs
}

// Human returns how often a human was right in rounds with a second human.
func (l *Ledger) Human(id string) (k, n int64) {
	t := l.humans.tally[id]
	return t.k, t.n
}

type humanPairs struct{ pairs, apart, room int64 } // room: sum of 1/(K-1) in billionths

// humans are the people who decide.
type humans struct {
	owner    *owner
	tally    map[string]counts
	machines map[string]humanPairs
}

func (l *Ledger) ownHumans() {
	if h := l.humans; h.owner != l.own {
		l.humans = &humans{l.own, maps.Clone(h.tally), maps.Clone(h.machines)}
	}
}

func (h *humans) judge(s *SecondLook) {
	truth := s.Settled
	if s.First == s.Second {
		truth = s.First
	}
	h.count(s.FirstHuman, s.First == truth)
	h.count(s.SecondHuman, s.Second == truth)
}

func (h *humans) count(id string, right bool) {
	h.tally[id] = h.tally[id].plus(compared(right))
}

// chance returns the probability that a human is right: (k + 19.4) / (n + 20), the mean of
// the Beta posterior after k of n under the prior Beta(19.4, 0.6) (Laplace 1774, with more
// than his two assumed).
func (h *humans) chance(id string) float64 {
	t := h.tally[id]
	return (float64(t.k) + humanHits) / (float64(t.n) + humanRuns)
}

// billionths rounds a probability.
func billionths(p float64) exact.Billionths {
	return exact.Billionths(math.Round(min(1, max(0, p)) * 1e9))
}
