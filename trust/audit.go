package trust

// Audited returns how many automatic decisions were audited in the present epoch
// of a promise, and the value of the detector that watches it: above 10 something
// may have changed, at [AlarmAt] the epoch ends. Both are 0 if the test of the
// promise has not begun, or was of another policy.
func (l *Ledger) Audited(machine, state string, p Promise, policyDigest string) (audits int64, drift float64) {
	e := l.pools[machine].riskOf(p, state, policyDigest)
	if e == nil {
		return 0, 0
	}
	for _, c := range e.audits {
		audits += c.n
	}
	return audits, e.detector.Value()
}
