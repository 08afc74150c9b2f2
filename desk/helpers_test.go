package desk_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// decided fails the test unless a session was decided so.
func decided(t *testing.T, s *desktest.Server, id, transition string) {
	t.Helper()
	v := s.Session(id)
	if len(v.History) != 1 || v.History[0].TransitionName != transition {
		t.Errorf("%s is %s after %+v, and not decided: %s", v.Subject, v.Status, v.History, transition)
	}
}

// open fails the test unless a session still asks.
func open(t *testing.T, s *desktest.Server, id string) {
	t.Helper()
	if v := s.Session(id); v.Status != "needs_human" || len(v.History) != 0 {
		t.Errorf("%s is %s after %+v: somebody has decided", v.Subject, v.Status, v.History)
	}
}
