package projection_test

import (
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// TestMoved holds the row of a session that only moved on, of which a driver writes the
// moving columns alone, to sessions whose status stayed: that is no column that moves.
func TestMoved(t *testing.T) {
	m, err := machine.Parse("machine.json", []byte(`{"machineName": "m", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {"go": "b"}}, "b": {}}}`), session.StoredChecks())
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.NewProgram(m)
	if err != nil {
		t.Fatal(err)
	}
	before := &session.Session{ID: specialist.SessionID{6: 0x40, 8: 0x80, 15: 1}, Program: p, State: m.Initial(), CreatedAt: 1, UpdatedAt: 1, Round: 1, Sequence: 2}
	for status, want := range map[session.Status]bool{before.Status: true, session.NeedsHuman: false, session.Stopped: false, session.Failed: false, session.Completed: false} {
		after := *before
		after.Status, after.Sequence = status, before.Sequence+1
		rows, err := projection.Of(&session.Change{Before: before, After: &after, First: after.Sequence}, session.Hash{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Moved != want || rows.New || rows.Before != before.Sequence {
			t.Errorf("from %s to %s: moved %t, new %t, before %d; want %t, false, %d", before.Status, status, rows.Moved, rows.New, rows.Before, want, before.Sequence)
		}
	}
}
