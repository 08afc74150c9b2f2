package session_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/session"
)

// TestRosterEventsLackNothing: a record of a machine's log whose event lacks what its kind
// is about is refused, and one that lacks nothing is read as it was written.
func TestRosterEventsLackNothing(t *testing.T) {
	for _, e := range []session.RosterEvent{
		{At: 1, Kind: session.KindStage, State: "s", Stage: &session.Collapse{}},
		{At: 2, Kind: session.KindTried, Trial: &session.Trial{Policy: "p", From: 1, To: 2}},
	} {
		record, err := session.AppendRosterEvent(nil, 1, e)
		if err != nil {
			t.Fatal(err)
		}
		read, err := session.DecodeRosterEvents(record)
		if err != nil || len(read) != 1 || read[0].At != e.At || read[0].Kind != e.Kind || read[0].State != e.State || (read[0].Stage == nil) != (e.Stage == nil) || (read[0].Trial == nil) != (e.Trial == nil) {
			t.Errorf("%s was read as %+v (%v)", record, read, err)
		}
		e.Stage, e.Trial = nil, nil
		if record, err = session.AppendRosterEvent(nil, 1, e); err != nil {
			t.Fatal(err)
		}
		if _, err := session.DecodeRosterEvents(record); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s was read: %v", record, err)
		}
	}
}
