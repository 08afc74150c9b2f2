package trust

import (
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// What a promise has come to, and what it still costs. A report puts the test of
// risk.go beside what audits found:
//
//   - Error is Hajek's estimate, the sum of wrong/a over the sum of 1/a for audits
//     drawn with probability a, and ErrorBound the one-sided upper bound of Clopper and
//     Pearson (1934) at the promise's confidence.
//   - Needs is the price: the least number of human decisions until the promise can be
//     established if all of them are right. It is found by doubling and then halving,
//     on the same e-value that the test uses (successes), or as the next look at which
//     the bound of Clopper and Pearson can be low enough (nextLook).
//   - A notice says where errors do not become rarer as the probability grows, which
//     the choice of the threshold relies on, and where humans differ more often than is
//     promised.
//
// Reports only read. Automatic is an estimate here (each audit stands for 1/a
// decisions); the engine knows the number.

// A RiskReport shows one promise beside what came of it.
type RiskReport struct {
	Scope    string           `json:"scope"` // a state, or "" for the machine
	Promise  Promise          `json:"promise"`
	State    RiskState        `json:"state"`
	Tau      exact.Billionths `json:"tau,omitempty"`
	Epoch    int64            `json:"epoch"`    // counted from 1; a change of policy or an alarm opens another
	Eligible int64            `json:"eligible"` // rounds whose probability was known before the human's answer
	Audits   int64            `json:"audits"`
	Wrong    int64            `json:"wrong"` // of the audits
	// Overruled counts automatic decisions that a human undid unasked: no random
	// sample, so no part of Error.
	Overruled int64 `json:"overruled"`
	// Automatic is the number of automatic decisions as audits let estimate it; the
	// engine knows it exactly.
	Automatic float64 `json:"automatic"`
	// Error is the realised error of automatic decisions, each audit weighed by the
	// inverse of its probability (Hajek), and ErrorBound its one-sided upper
	// Clopper-Pearson bound at the promise's confidence; 1 without audits.
	Error      exact.Billionths `json:"error"`
	ErrorBound exact.Billionths `json:"errorBound"`
	Detector   float64          `json:"detector"` // alarm at AlarmAt
	HumanFloor exact.Billionths `json:"humanFloor"`
	HumanPairs int64            `json:"humanPairs"` // 0: the floor is unknown
	// Needs is the least number of human decisions until the promise could be
	// established, if none showed an error from now on; 0 once it is.
	Needs int64 `json:"needs,omitempty"`
	// Adopted is how many of Eligible come from a back-test that a human adopted, as
	// the best of Tried policies; both 0 if none do.
	Adopted int64 `json:"adopted,omitempty"`
	Tried   int64 `json:"tried,omitempty"`
	// PolicyDigest is of arbiter, experts, roster and prompts: a change of it opens
	// another epoch.
	PolicyDigest string   `json:"policyDigest,omitempty"`
	Notices      []string `json:"notices,omitempty"`
}

// Caveats are what every report of a promise has to say, in order.
func Caveats() []string {
	return []string{
		"An error is a disagreement with a human: no promise below the rate at which humans disagree with each other means anything.",
		"The promise is about the average over rounds, not about each round.",
		"It assumes that the mix of rounds does not change; drift is detected late, not prevented.",
		"Each promise holds with its own confidence: of S promises expect (1 - confidence) x S to fail, unless they are declared familywise.",
		"Rounds below tau are all seen, those above it only by audit, so lower thresholds are judged on harder rounds: safe as long as errors become rarer as the probability grows.",
		"A passed test shows that errors were rarer than promised on the rounds tested, not that they are now.",
	}
}

// Risks returns a report of each promise under test in a machine, the machine's
// before those of states, these in byte order; after each that of a test that was
// adopted for the same scope and waits for its policy to come into force.
func (l *Ledger) Risks(machine string) []RiskReport {
	m := l.pools[machine]
	if m == nil {
		return nil
	}
	floor, pairs := l.HumanError(machine)
	var list []RiskReport
	add := func(scope string, e *riskEpoch) {
		if e == nil {
			return
		}
		r := e.report()
		if r.Scope = scope; r.Needs > 0 && r.Needs < mostNeeded {
			r.Needs += max(0, EligibleFrom-m.n) // before these no probability counts
		}
		r.beside(floor, pairs)
		list = append(list, r)
	}
	for _, scope := range m.scopes() {
		add(scope, m.risk[scope])
		if e := m.adopted[scope]; e != nil {
			add(scope, m.following(e.promise, scope, e.digest))
		}
	}
	return list
}

// scopes returns those of all promises, in byte order.
func (m *pool) scopes() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(m.risk)), maps.Keys(m.adopted))
	slices.Sort(all)
	return slices.Compact(all)
}

// Untested returns the report of a promise of which no round has been tested.
func (l *Ledger) Untested(machine string, p Promise) RiskReport {
	r := newEpoch(p, "", 1).report()
	r.Needs += EligibleFrom
	if m := l.pools[machine]; m != nil {
		r.Needs -= min(EligibleFrom, m.n)
	}
	r.beside(l.HumanError(machine))
	return r
}

// beside enters the rate at which humans err, and says so if that is more than is
// promised.
func (r *RiskReport) beside(floor exact.Billionths, pairs int64) {
	r.HumanFloor, r.HumanPairs = floor, pairs
	if pairs > 0 && floor > r.Promise.MaxError {
		r.Notices = append(r.Notices, "humans disagree with each other more often than the promised error: "+floor.String())
	}
}

// Risk returns the tau of a promise, 0 if it is not established, and its detector,
// on which the probability of the next audit depends.
func (l *Ledger) Risk(machine, state string, p Promise, policyDigest string) (tau exact.Billionths, d Detector) {
	if e := l.pools[machine].riskOf(p, state, policyDigest); e != nil {
		return e.tau(), e.detector
	}
	return 0, Detector{}
}

func (e *riskEpoch) report() RiskReport {
	r := RiskReport{
		Promise: e.promise, State: e.state(), Tau: e.tau(), Epoch: e.number, Eligible: e.eligible,
		PolicyDigest: e.digest, Adopted: e.adopted, Tried: e.tried, Overruled: e.overrule, Detector: e.detector.Value(), ErrorBound: exact.One,
	}
	wrong, all := 0., 0.
	for _, a := range slices.Sorted(maps.Keys(e.audits)) {
		c := e.audits[a]
		r.Audits, r.Wrong = r.Audits+c.n, r.Wrong+c.n-c.k
		all += float64(c.n) / a.Float()
		wrong += float64(c.n-c.k) / a.Float()
	}
	r.Automatic = all
	if r.Audits > 0 {
		r.Error = billionths(wrong / all)
		r.ErrorBound = billionths(ErrorAbove(r.Wrong, r.Audits, e.promise.Confidence.Float()))
	}
	if r.Tau == 0 {
		r.Needs = e.needs()
	}
	if ErrorBelow(r.Wrong, r.Audits, .95) > e.promise.MaxError.Float() { // above the threshold, where they should be rarer than just below
		r.Notices = append(r.Notices, "errors do not become rarer as the probability grows: the threshold found on harder rounds may not be safe")
	}
	return r
}

// needs returns how many more right pairs above the first threshold establish it.
func (e *riskEpoch) needs() int64 {
	switch {
	case e.promise.ClopperPearson:
		return nextLook(e.promise, e.frozen.looks) - e.eligible
	case e.start == ladder:
		return math.MaxInt64
	case e.start >= 0:
		return successes(e.rungs[e.start].counts, e.promise, e.delta())
	}
	return min(lookReach-e.reach[0], lookFirst-e.eligible) + successes(counts{}, e.promise, e.delta())
}

// Needed returns the least number of human decisions that establish a promise,
// even if none shows an error: those before a probability counts, those that
// choose the threshold, and then the test.
func Needed(p Promise) int64 {
	if p.ClopperPearson {
		return EligibleFrom + nextLook(p, 0)
	}
	return EligibleFrom + lookReach + successes(counts{}, p, p.Delta())
}

// nextLook returns the number of pairs at the next look that can establish a
// promise, after so many looks.
func nextLook(p Promise, looks int64) int64 {
	for ; ; looks++ {
		n, j := int64(lookFirst)<<min(looks, 40), float64(looks+1)
		if least := math.Log(p.Delta()/(j*(j+1))) / math.Log(1-p.MaxError.Float()); float64(n) >= math.Ceil(least) || n >= mostNeeded {
			return n
		}
	}
}

// mostNeeded is more than anybody will wait for.
const mostNeeded = 1 << 40

func successes(c counts, p Promise, delta float64) int64 {
	bar, p0 := -math.Log(delta), 1-p.MaxError.Float()
	low, high := int64(0), int64(1)
	for high < mostNeeded && logEValue(c.k+high, c.n+high, p0, &evenStakes) < bar {
		low, high = high, 2*high
	}
	for low < high {
		mid := low + (high-low)/2
		if logEValue(c.k+mid, c.n+mid, p0, &evenStakes) >= bar {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
