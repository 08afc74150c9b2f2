// Package api has what programs are shown of sessions, and what they say to a server: one
// form, whether a command prints it, a server answers with it, or a stream carries it.
package api

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// A Session is a session as it is shown to whoever looks, with the question if one is open.
type Session struct {
	session.SessionView
	Question *runner.Question `json:"question,omitempty"`
}

// SessionOf returns a session as whoever is shown a question of it sees it; of one that waits
// for nothing but its timer the code and the reason say that.
func SessionOf(s *session.Session, q runner.Question) Session {
	v := s.ViewFor("")
	if q.Withheld == nil {
		v = s.View()
	}
	if s.Waits() {
		v.Code, v.Reason = s.Standing().Code, s.Standing().Reason
	}
	if s.Status != session.NeedsHuman && s.Status != session.Stopped {
		return Session{SessionView: v}
	}
	v.Code, v.Reason = q.Code, q.Reason
	return Session{v, &q}
}

// A Result is where a run has left its session.
type Result struct {
	V         int    `json:"v"`
	Kind      string `json:"kind"` // "result"
	SessionID string `json:"sessionId"`
	Subject   string `json:"subject,omitempty"`
	Status    string `json:"status"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Code      string `json:"code"`
	ExitCode  int    `json:"exitCode"`
}

// ResultOf returns a result as it is shown. code is what a command ends with that has
// brought it about.
func ResultOf(r runner.Result, code int) Result {
	return Result{1, "result", r.Session.ID.String(), r.Session.Subject(), r.Status, r.Session.State.Name, r.Reason, r.Code, code}
}

// An Event is an event of the log of a session, or of that of a machine's specialists.
type Event struct {
	V         int    `json:"v"`
	SessionID string `json:"sessionId,omitempty"`
	Machine   string `json:"machineName,omitempty"` // of an event of a machine's specialists
	session.Raw
	Hash     string `json:"hash"`               // of the record that it is part of
	Redacted bool   `json:"redacted,omitempty"` // secrets and personal data are masked
	Withheld bool   `json:"withheld,omitempty"` // it says less than the log
}

// A LogView says what of the log of a session is shown. The zero value shows all of it that
// is not withheld in the open round. It goes along with the log: it is used for one session,
// from the first event on, and not concurrently.
type LogView struct {
	Redacted bool             // mask what looks like a secret or personal data
	Hidden   map[int32]string // the rounds of which what was proposed is left out, and why
	Round    int32            // in which the first event is that is shown; 0 at the beginning of a log
}

// Events yields the events of records as they are shown of a session that is at least as
// new. The records have to begin in the round of the view, or follow the ones that were shown
// last.
func (v *LogView) Events(s *session.Session, records iter.Seq2[session.StoredRecord, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range EventsOf("", records) {
			if err == nil {
				e.SessionID = s.ID.String()
				v.show(s, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// RosterEvents yields the events of records of the log of a machine's specialists as they are
// shown.
func (v *LogView) RosterEvents(machineName string, records iter.Seq2[session.StoredRecord, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range EventsOf("the log of machine "+machineName, records) {
			e.Machine = machineName
			if v.Redacted && err == nil {
				e.Data, e.Redacted = redact(e.Data)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// AgentEvents yields the events of the agent_log of a session as they are shown. An agent is
// one of those whose word a round may withhold, so as long as any round is hidden only when
// and of what kind they are is told.
func (v *LogView) AgentEvents(id string, events iter.Seq2[session.AgentEvent, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for from, err := range events {
			e := Event{V: 1, SessionID: id, Raw: session.Raw{Seq: from.Seq, At: from.At, Kind: from.Kind, Data: from.Data}, Hash: from.Hash.String()}
			switch {
			case len(v.Hidden) > 0:
				e.Data, e.Withheld = json.RawMessage("{}"), true
			case v.Redacted && err == nil:
				e.Data, e.Redacted = redact(e.Data)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// show leaves out of an event what is not shown of it.
func (v *LogView) show(s *session.Session, e *Event) {
	in := v.roundOf(&e.Raw)
	e.Raw = e.Raw.Brief()
	switch hidden := v.Hidden[in] != ""; {
	case s.Opens(in):
		e.Raw, e.Withheld = s.Concealed(e.Raw, hidden)
	case hidden:
		e.Raw, e.Withheld = s.ConcealedReview(e.Raw)
	}
	if v.Redacted {
		e.Data, e.Redacted = redact(e.Data)
	}
}

// EventsOf yields the events of records, nothing left out, each with the hash of its
// record. log names the log in the error for a record that cannot be read; "" names the record.
func EventsOf(log string, records iter.Seq2[session.StoredRecord, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for rec, err := range records {
			if err != nil {
				yield(Event{}, err)
				return
			}
			events, err := session.DecodeRaw(rec.Events)
			if err != nil {
				if log == "" {
					log = fmt.Sprintf("the record at event %d", rec.First)
				}
				yield(Event{}, &session.CorruptError{What: log, Problem: err.Error()})
				return
			}
			for _, raw := range events {
				if !yield(Event{V: 1, Raw: raw, Hash: rec.Hash.String()}, nil) {
					return
				}
			}
		}
	}
}

// roundOf returns the number of the round that an event is about: the one that was opened
// last, of a review the one that was reviewed, and where a session is forked the one with
// which it goes on.
func (v *LogView) roundOf(e *session.Raw) int32 {
	if e.Kind == session.KindCreated {
		if _, o, err := e.Creation(); err == nil && o.ForkedFrom != nil {
			v.Round = o.ForkedFrom.Round
		}
	}
	if e.Kind != session.KindRoundOpened && e.Kind != session.KindReviewed {
		return v.Round
	}
	var d struct{ Round int32 }
	_ = json.Unmarshal(e.Data, &d) // without a number it is about no round that could be withheld
	if e.Kind == session.KindRoundOpened {
		v.Round = d.Round
	}
	return d.Round
}

// ResultFor is ResultOf for whoever looks who is nobody in particular, with the exit code
// that dialai has for it.
func ResultFor(r runner.Result) Result {
	code := ExitCode(r)
	if r.Session.Withheld("") != "" {
		o := r.Session.Conceal(session.Outcome{Code: r.Code, Reason: r.Reason})
		r.Code, r.Reason = o.Code, o.Reason
	}
	return ResultOf(r, code)
}

// Exit codes of dialai.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	ExitHuman   = 3 // a human must decide
	ExitStopped = 4 // by a guard or a limit
	ExitWaiting = 5 // for answers that come later, or for a timer
	ExitFinal   = 6 // in a final state other than the goal
)

// ExitCode returns what a run ends with.
func ExitCode(r runner.Result) int {
	switch r.Status {
	case session.Completed.String():
		if r.Session.State.Goal {
			return ExitOK
		}
		return ExitFinal
	case session.NeedsHuman.String():
		return ExitHuman
	case session.Stopped.String():
		return ExitStopped
	case runner.WaitingStatus:
		return ExitWaiting
	}
	return ExitFailure
}

// WithoutPayload returns the session without what it is about: what it was given, has
// proposed and said.
func (s Session) WithoutPayload() Session {
	s.MetaJSON, s.Data, s.Subject, s.Reason, s.Notices = nil, nil, "", "", nil
	s.Proposals, s.Question = []json.RawMessage{}, nil
	history := make([]session.TransitionRecord, len(s.History))
	for i, r := range s.History {
		r.Reasoning, r.MetaJSON, r.Retracted = "", nil, ""
		history[i] = r
	}
	s.History = history
	return s
}
