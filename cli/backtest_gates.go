package cli

import (
	"context"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// gateChange is one recorded step on which other guards decide otherwise.
type gateChange struct {
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

// gatesAgain is what other guards make of the recorded steps.
type gatesAgain struct {
	Steps       int          `json:"steps"`
	Allowed     int          `json:"newlyAllowed"`
	Refused     int          `json:"newlyRefused"`
	Undecidable int          `json:"undecidable"` // the log holds too little
	changes     []gateChange // in the order of sessions
}

// gates judges every step of the sessions of a machine by the guards of a file;
// nil without one. The course stays as it was: a step that was executed counts as
// executed.
func (a *app) gates(ctx context.Context, e *engine, machineName, path string) (*gatesAgain, error) {
	if path == "" {
		return nil, nil
	}
	c, states, err := a.loadAnyGuards(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	sessions, err := e.store.List(ctx, session.ListQuery{MachineName: machineName})
	if err != nil {
		return nil, err
	}
	g := &gatesAgain{}
	for i := range sessions {
		s, err := e.Session(ctx, sessions[i].SessionID)
		if err != nil {
			return nil, err
		}
		if err := g.session(ctx, e, s, guard.NewReplayer(c, states)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// session judges the steps of one session.
func (g *gatesAgain) session(ctx context.Context, e *engine, s *session.Session, replayer *guard.Replayer) error {
	w := &guardLog{session: s, take: func(rec *guard.LogRecord) error {
		result, isCheck := replayer.Next(*rec)
		if isCheck {
			g.step(s, rec, result)
		}
		return nil
	}}
	return w.fold(ctx, e, s.ID)
}

func (g *gatesAgain) step(s *session.Session, rec *guard.LogRecord, r guard.ReplayResult) {
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
	g.changes = append(g.changes, gateChange{
		Kind: "gate", Machine: s.Machine().Name(), SessionID: s.ID.String(), Seq: rec.Seq, State: rec.Input.FromState, TransitionName: rec.Input.Transition,
		Allowed: now, Recorded: r.Recorded.String(), Now: r.Verdict.Status.String(), NowCodes: r.Verdict.Codes(),
	})
}
