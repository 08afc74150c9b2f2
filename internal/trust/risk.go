package trust

import (
	"maps"
	"math"

	"github.com/dialai/dialai/exact"
)

// This file tests promises while they are in force. A promise says that at most a share
// maxError of automatic decisions are wrong, and it is kept by deciding automatically only
// where the probability of the pick is at least tau. Which tau will do is found on pairs of
// a probability, stated before, and whether a human then chose the same:
//
//  1. The first 50 pairs choose where to begin: the highest of the thresholds
//     tau_j = 1 - j maxError/2, j = 1..8, that enough of them reach. Only the
//     probabilities are looked at, so the choice says nothing of who was right.
//  2. From there on each threshold has a test martingale of its own, E_j = [EValue](k, n,
//     1 - maxError) over the pairs that reach it. If more than maxError of them are
//     wrong, E_j ever reaches 1/delta with a probability of at most delta (Ville 1939).
//  3. A threshold is established when E_j and those of all higher ones have reached
//     1/delta: a fixed sequence of tests, which needs no correction for their number
//     (Maurer, Hothorn, Lehmacher 1995). delta is divided among policies that were tried.
//  4. Automatic decisions that humans look at feed a [Detector]; its alarm ends the epoch
//     and everything begins anew, as it does when the policy changes.

// EligibleFrom is the number of outcomes of a machine from which a probability counts
// toward the test of a promise.
const EligibleFrom = 10

// Parameters of the live test of a promise.
const (
	ladder       = 8   // thresholds
	lookFirst    = 50  // pairs that choose the first of them
	lookShare    = .05 // of which must reach it,
	lookReach    = 3   // that is so many
	hopelessFrom = 200 // pairs after which a promise may turn out hopeless
)

// A riskEpoch tests one promise while arbiter, experts, roster and prompts stay
// the same.
type riskEpoch struct {
	promise  Promise
	digest   string
	number   int64
	eligible int64
	reach    [ladder]int64 // of the first pairs, how many reached each threshold
	start    int           // index of that threshold in rungs; -1 none yet, ladder if none can be
	rungs    [ladder]rung
	reached  int64 // pairs since the choice
	audits   map[exact.Billionths]counts
	overrule int64 // automatic decisions a human overruled unasked
	detector Detector
	alarmed  bool  // the epoch before ended by an alarm
	tried    int64 // policies among which delta is divided; 0 is one
	adopted  int64 // pairs from a back-test that it began with
	pairs    []Pair
	frozen   frozen
}

// A rung tests the threshold 1 - j*maxError/2.
type rung struct {
	counts
	own   int64   // of n, those that the threshold before would have left to a human
	best  float64 // greatest log evidence so far
	borne float64 // the same, while enough of the pairs were its own
}

func newEpoch(p Promise, digest string, number int64) *riskEpoch {
	return &riskEpoch{promise: p, digest: digest, number: number, start: -1, audits: map[exact.Billionths]counts{}}
}

// tauAt returns the threshold of rung j, from 0.
func (p Promise) tauAt(j int) exact.Billionths {
	return max(0, exact.One-exact.Billionths(j+1)*p.MaxError/2)
}

// scope returns the key of the promise's epoch.
func (p Promise) scope(state string) string {
	if p.PerState {
		return state
	}
	return ""
}

// test counts an outcome toward the promise in force. A late look at a decision
// that was made under another policy says nothing of this one.
func (m *pool) test(o *Outcome) {
	if o.Promise == nil {
		return
	}
	scope := o.Promise.scope(o.State)
	was := m.risk[scope]
	next := m.following(*o.Promise, scope, o.PolicyDigest)
	switch {
	case was.of(*o.Promise, o.PolicyDigest):
		next = was.clone()
	case next != nil:
		delete(m.adopted, scope)
	case was == nil:
		next = newEpoch(*o.Promise, o.PolicyDigest, 1)
	case o.Automatic:
		return
	default:
		next = newEpoch(*o.Promise, o.PolicyDigest, was.number+1)
	}
	next.add(o)
	if next.detector.Alarm() {
		next = newEpoch(next.promise, next.digest, next.number+1)
		next.alarmed = true
	}
	m.risk[scope] = next
}

func (e *riskEpoch) clone() *riskEpoch {
	c := *e
	c.audits = maps.Clone(e.audits)
	return &c
}

func (e *riskEpoch) add(o *Outcome) {
	if o.Pick == "" {
		return
	}
	if o.Automatic {
		e.watch(o)
	}
	if o.pairs() {
		e.pair(o)
	}
}

// watch counts what a human thought of an automatic decision.
func (e *riskEpoch) watch(o *Outcome) {
	right := o.Pick == o.Truth
	e.detector = e.detector.Add(right, 1-e.promise.MaxError.Float())
	if o.Unasked {
		e.overrule++
		return
	}
	e.audits[o.samplingProb()] = e.audits[o.samplingProb()].plus(compared(right))
}

// pair enters a probability and whether the pick was right, for each threshold at
// the vote where asking would have stopped.
func (e *riskEpoch) pair(o *Outcome) {
	e.eligible++
	if e.promise.ClopperPearson {
		e.look(Pair{P: o.P, Right: o.Pick == o.Truth})
		return
	}
	if e.start < 0 {
		e.choose(o)
		return
	}
	e.reached++
	for j := e.start; j < ladder; j++ {
		tau := e.promise.tauAt(j)
		if p, pick := o.at(tau); p >= tau {
			r := &e.rungs[j]
			r.counts = r.counts.plus(compared(pick == o.Truth))
			if j == e.start || !o.reaches(e.promise.tauAt(j-1)) {
				r.own++
			}
			now := logEValue(r.k, r.n, 1-e.promise.MaxError.Float(), &evenStakes)
			r.best = max(r.best, now)
			if r.stands() {
				r.borne = max(r.borne, now)
			}
		}
	}
}

// stands reports whether enough of the pairs of a threshold say what it would add to
// the one before. What is found with fewer says nothing of decisions that come to lie
// between the two later, when probabilities have grown.
func (r *rung) stands() bool {
	return r.own == r.n || r.own >= lookReach && float64(r.own) >= float64(lookShare*float64(r.n))
}

// choose picks the first threshold that enough of the first pairs reach, as soon
// as the pairs to come cannot change which one that is. It looks at nothing but P.
func (e *riskEpoch) choose(o *Outcome) {
	for j := range ladder {
		if o.reaches(e.promise.tauAt(j)) {
			e.reach[j]++
		}
	}
	left := lookFirst - e.eligible
	for j := range ladder {
		if e.reach[j] >= lookReach {
			e.start = j
			return
		}
		if e.reach[j]+left >= lookReach {
			return
		}
	}
	e.start = ladder
}

// tau returns the threshold above which the promise holds, 0 as long as none is
// established.
func (e *riskEpoch) tau() exact.Billionths {
	if e.promise.ClopperPearson {
		return e.frozen.tau
	}
	var tau exact.Billionths
	for j := max(0, e.start); j < ladder && e.start >= 0 && e.rungs[j].best >= e.bar(); j++ {
		if e.rungs[j].borne >= e.bar() {
			tau = max(1, e.promise.tauAt(j))
		}
	}
	return tau
}

// bar returns the log evidence that establishes a threshold.
func (e *riskEpoch) bar() float64 { return -math.Log(e.delta()) }

// delta returns the probability with which the promise may be broken by chance.
func (e *riskEpoch) delta() float64 { return e.promise.Delta() / float64(max(1, e.tried)) }

func (e *riskEpoch) state() RiskState {
	switch {
	case e.tau() > 0:
		return Met
	case e.hopeless():
		return Unattainable
	case e.alarmed:
		return Lost
	}
	return Collecting
}

// hopeless reports whether the promise cannot be kept in this epoch.
func (e *riskEpoch) hopeless() bool {
	switch {
	case e.promise.ClopperPearson:
		return false
	case e.start == ladder:
		return true
	}
	if e.start < 0 || e.eligible < hopelessFrom {
		return false
	}
	r := e.rungs[e.start]
	return float64(r.n) < float64(lookShare*float64(e.reached)) ||
		ErrorBelow(r.n-r.k, r.n, .95) > e.promise.MaxError.Float()
}

// riskOf returns the epoch of a promise, nil if its test has not begun or was of
// another policy.
func (m *pool) riskOf(p Promise, state, digest string) *riskEpoch {
	if m == nil {
		return nil
	}
	scope := p.scope(state)
	if e := m.risk[scope]; e.of(p, digest) {
		return e
	}
	return m.following(p, scope, digest)
}

// view returns where the test of a promise stands.
func (m *pool) view(p Promise, state, digest string) *RiskView {
	v := &RiskView{Promise: p, State: Collecting}
	if e := m.riskOf(p, state, digest); e != nil {
		v.Tau, v.State = e.tau(), e.state()
	}
	return v
}
