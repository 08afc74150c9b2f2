package undertaking_test

import (
	"testing"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// TestStanding: what waits for the human goes before what works, a process that has gone before
// both, and what an agent does not wait for is parked, and after both.
func TestStanding(t *testing.T) {
	w := begin(t, "")
	s, err := w.runner.Session(t.Context(), w.id)
	if err != nil || s.Status != session.Running {
		t.Fatalf("it is %v, %v", s, err)
	}
	now := s.EnteredAt().Time().Add(time.Hour)
	works := undertaking.State{Workers: []undertaking.Worker{{As: "orchestrator", Number: 1, Turn: true}}}
	asks := func(parked bool, ago ...time.Duration) (b undertaking.Beside) {
		for _, d := range ago {
			b.Permissions = append(b.Permissions, undertaking.Permission{Tool: "Bash", Since: now.Add(-d), Parked: parked})
		}
		return b
	}
	both := asks(true, 30*time.Minute)
	both.Permissions = append(both.Permissions, asks(false, time.Minute).Permissions...)
	gone := asks(false, time.Minute)
	gone.Gone = true
	for _, of := range []struct {
		name   string
		u      undertaking.State
		beside undertaking.Beside
		want   string
	}{
		{"a turn", works, undertaking.Beside{}, "working"},
		{"none", undertaking.State{}, undertaking.Beside{}, "idle"},
		{"asked twice", works, asks(false, 3*time.Minute, 12*time.Minute), "waiting for you 12 m"},
		{"parked and asked", works, both, "waiting for you 1 m"},
		{"parked", undertaking.State{}, asks(true, time.Minute), "parked"},
		{"parked, and a turn", works, asks(true, time.Minute), "working"},
		{"killed as it asked", works, gone, "gone"},
	} {
		if st := undertaking.StatusOf(s, of.u, of.beside, now); st.Standing != of.want {
			t.Errorf("%s: it is %s, want %s", of.name, st.Standing, of.want)
		}
	}
}

// TestGone: whoever looks knows whether a process drives an undertaking; one that waits for a human
// and that nobody drives waits.
func TestGone(t *testing.T) {
	w := begin(t, "", claims)
	c := w.config(t.Context())
	store := w.runner.Store()
	looked := 0
	c.Changed = func(_ *session.Session, u undertaking.State) {
		if gone, err := undertaking.Gone(t.Context(), store, u); gone || err != nil {
			t.Errorf("while it is driven: gone is %t, %v", gone, err)
		}
		looked++
	}
	s, u, _ := undertaking.New(c).Run(t.Context())
	gone, err := undertaking.Gone(t.Context(), store, u)
	if !gone || err != nil || looked == 0 {
		t.Errorf("after it, and %d looks: gone is %t, %v", looked, gone, err)
	}
	if st := undertaking.StatusOf(s, u, undertaking.Beside{Gone: gone}, s.EnteredAt().Time()); st.Standing != "waiting for you 0 s" {
		t.Errorf("it is %s", st.Standing)
	}
}
