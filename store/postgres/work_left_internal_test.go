package postgres

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLeft: sessions are left to others one by one, and where there are too many, the machine that has the most of
// them instead; each is forgotten when its time is over.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l left
		check := func(when string, wantSessions int, wantMachines ...int64) {
			t.Helper()
			if sessions, machines := l.now(); len(sessions) != wantSessions || !slices.Equal(machines, wantMachines) || sessions == nil || machines == nil {
				t.Errorf("%s left are %d sessions and the machines %v, want %d and %v", when, len(sessions), machines, wantSessions, wantMachines)
			}
		}
		check("in the beginning", 0)
		for i := range int64(leftAtMost) {
			l.leave(&lease{row: i, machine: min(i%3, 1)}, time.Now().Add(time.Minute))
		}
		check("with as many as are remembered", leftAtMost)
		l.leave(&lease{row: 5, machine: 1}, time.Now().Add(2*time.Minute))
		check("with one of them again", leftAtMost)
		l.leave(&lease{row: leftAtMost, machine: 0}, time.Now().Add(time.Minute))
		check("with one more", (leftAtMost+2)/3+1, 1)
		time.Sleep(time.Minute + 1)
		check("after the time of most", 0, 1)
		time.Sleep(time.Minute + 1)
		check("in the end", 0)
	})
}
