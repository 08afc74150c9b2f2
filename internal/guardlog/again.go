package guardlog

import (
	"iter"
	"math"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// GateChange is one recorded step on which other guards decide otherwise.
type GateChange struct {
	Kind           string   `json:"kind"` // gate
	Machine        string   `json:"machine"`
	SessionID      string   `json:"sessionId"`
	Seq            int64    `json:"seq"`
	State          string   `json:"state"`
	TransitionName string   `json:"transitionName"`
	Allowed        bool     `json:"allowed"` // newly; else newly refused
	Recorded       string   `json:"recorded"`
	Now            string   `json:"now"`
	NowCodes       []string `json:"nowCodes"`
}

// GatesAgain is what other guards make of the recorded steps.
type GatesAgain struct {
	Steps       int `json:"steps"`
	Allowed     int `json:"newlyAllowed"`
	Refused     int `json:"newlyRefused"`
	Undecidable int `json:"undecidable"` // the log holds too little
	// Changes are the steps on which the guards decide otherwise, in the order of sessions.
	Changes []GateChange `json:"-"`
}

// Judge judges the steps of one session, which its records hold.
func (g *GatesAgain) Judge(s *session.Session, records iter.Seq2[session.StoredRecord, error], replayer *guard.Replayer) error {
	w := New(s, Options{}, func(rec *guard.LogRecord) error {
		result, isCheck := replayer.Next(*rec)
		if isCheck {
			g.step(s, rec, result)
		}
		return nil
	})
	return w.Fold(records, math.MaxInt64)
}

func (g *GatesAgain) step(s *session.Session, rec *guard.LogRecord, r guard.ReplayResult) {
	g.Steps++
	if r.Undecidable != "" {
		g.Undecidable++
		return
	}
	was, now := r.Recorded <= verdict.Warn, r.Verdict.Passed()
	if was == now {
		return
	}
	if now {
		g.Allowed++
	} else {
		g.Refused++
	}
	g.Changes = append(g.Changes, GateChange{
		Kind: "gate", Machine: s.Machine().Name(), SessionID: s.ID.String(), Seq: rec.Seq, State: rec.Input.FromState, TransitionName: rec.Input.Transition,
		Allowed: now, Recorded: r.Recorded.String(), Now: r.Verdict.Status.String(), NowCodes: r.Verdict.Codes(),
	})
}
