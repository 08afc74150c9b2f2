package tenants

import (
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestUnsentAsks: an ask that was given up before it went out has used no call, one that may
// have gone out has.
func TestUnsentAsks(t *testing.T) {
	priced, unpriced := &session.RemoteAsk{Estimate: 5}, &session.RemoteAsk{}
	cancelled := session.AskFailed{Ask: 1, Code: session.CodeCancelled}
	charged := cancelled
	charged.Usage = specialist.Usage{}.WithCost(5)
	timeout := session.AskFailed{Ask: 1, Code: session.CodeTimeout}
	nothing := timeout
	nothing.Usage = specialist.Usage{}.WithCalls(0, 0)
	unknown := cancelled
	unknown.Ask = 2
	for _, c := range []struct {
		what   string
		remote *session.RemoteAsk
		failed session.AskFailed
		unsent bool
	}{
		{"cancelled, and not charged what it was estimated at", priced, cancelled, true},
		{"cancelled, and nobody knows what it would have cost", unpriced, cancelled, false},
		{"cancelled, with the estimate charged", priced, charged, false},
		{"timed out", priced, timeout, false},
		{"said to have made no call", unpriced, nothing, true},
		{"of another round", priced, unknown, false},
	} {
		a := accounting{folder: &session.Folder{Round: session.OpenRound{Asks: []session.AskState{{Ask: &session.Ask{Index: 1, Remote: c.remote}}}}}}
		if got := a.unsent(&c.failed); got != c.unsent {
			t.Errorf("an ask that was %s: unsent %t, want %t", c.what, got, c.unsent)
		}
	}
}
