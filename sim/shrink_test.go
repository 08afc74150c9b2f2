package sim_test

import (
	"slices"
	"testing"
)

// shrink returns a run with fewer choices that fails as r does: it leaves out parts of
// the tape, the large ones first, as long as the same invariant still fails.
func shrink(t *testing.T, s settings, r result) result {
	t.Helper()
	best := r
	tries := 0
	for size := max(len(best.tape)/2, 1); size > 0; size /= 2 {
		for from := 0; from < len(best.tape) && tries < maxTries; {
			tape := slices.Concat(best.tape[:from], best.tape[min(from+size, len(best.tape)):])
			tries++
			next := s
			next.tape, next.faults = append([]string{}, tape...), len(tape)
			if again := play(t, next); again.failed != nil && again.failed.invariant == best.failed.invariant && len(again.tape) < len(best.tape) {
				best = again
			} else {
				from += size
			}
		}
	}
	return best
}

// maxTries bounds how long a failure is shrunk.
const maxTries = 400
