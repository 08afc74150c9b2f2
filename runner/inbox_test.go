package runner_test

import (
	"errors"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestQuestionsAreReadFromASession: the inbox can be read on from any session, in any
// number of pages, also from one that waits no longer.
func TestQuestionsAreReadFromASession(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"f": "finish", "g": "again"})
	var waiting []*session.Session
	for range 300 { // more than are looked up at a time
		s := b.start(b.desk(fn("f"), fn("g"), human("ann"), half))
		b.stepTo(s, runner.TickHuman)
		waiting = append(waiting, s)
	}
	b.ok(func() error {
		_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: waiting[9].ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "finish"})
		return err
	}())
	for after, first := range map[int]int{-1: 0, 8: 10, 9: 10, 299: 300} {
		var id specialist.SessionID
		if after >= 0 {
			id = waiting[after].ID
		}
		n := first
		for q, err := range b.r.Questions(b.ctx, "", id) {
			b.ok(err)
			if n == 9 {
				n++
			}
			if q.SessionID != waiting[n].ID.String() {
				t.Fatalf("after session %d, question %d is of %s, want %s", after, n, q.SessionID, waiting[n].ID)
			}
			n++
		}
		if n != 300 {
			t.Errorf("after session %d, the questions end before %d of 300", after, n)
		}
	}
	for _, err := range b.r.Questions(b.ctx, "", specialist.SessionID{1}) {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("after a session that nobody knows: %v", err)
		}
	}
}
