package trust

import "math"

// Automatic returns how many automatic decisions of the present epoch of a promise
// its audits stand for, each for as many as its probability says: 0 if the test of
// the promise has not begun, or was of another policy.
func (l *Ledger) Automatic(machine, state string, p Promise, policyDigest string) int64 {
	e := l.pools[machine].riskOf(p, state, policyDigest)
	if e == nil {
		return 0
	}
	all := 0.
	for a, c := range e.audits {
		all += float64(c.n) / a.Float()
	}
	return int64(math.Round(all))
}
