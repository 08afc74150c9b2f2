package session

import (
	"fmt"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// A Beside is what a view leaves out that commands tell of a session.
type Beside struct {
	UpdatedAt specialist.Time
	Due       Due
	Closed    []string // transitions that may not be chosen in the present round
	Out       []Ask    // whose answers are out
	Missing   []string // specialists without whom the session was started
}

// Shown returns a session of which a server has told what is in a view, for whoever tells it
// on: what the view leaves out it does not have, its history included, and no Runner takes it
// on. p is the program of its definition. The error says what of the view contradicts that.
func Shown(v SessionView, p *Program, b Beside) (*Session, error) {
	id, err := ParseID(v.SessionID)
	if err != nil {
		return nil, err
	}
	state := p.Machine.State(v.CurrentState)
	if state == nil {
		return nil, fmt.Errorf("session %s is in state %q, which its machine does not have", v.SessionID, v.CurrentState)
	}
	if len(v.Raised) > 0 {
		if p, err = p.Lift(state, v.Raised); err != nil {
			return nil, err
		}
	}
	s := &Session{
		ID: id, Program: p, State: state, Sequence: v.Sequence, CreatedAt: v.CreatedAt, UpdatedAt: b.UpdatedAt, Round: v.Round, Attempt: v.Attempt, Status: v.Status,
		options: &Options{Meta: v.MetaJSON, Driver: v.Driver, ForkedFrom: v.ForkedFrom, Subject: v.Subject, Missing: b.Missing}, facts: &caseFacts{data: jsontext.ReadObject(v.Data), subject: v.Subject}, Open: &OpenRound{Notices: v.Notices},
	}
	if v.Code != "" || v.Reason != "" {
		s.outcome = &Outcome{Code: v.Code, Reason: v.Reason}
	}
	for _, name := range b.Closed {
		s.facts.closed = append(s.facts.closed, ClosedTransition{TransitionName: name})
	}
	if b.Due != (Due{}) {
		s.timing = &timing{Due: b.Due}
	}
	for i := range b.Out {
		s.Open.Asks = append(s.Open.Asks, AskState{Ask: &b.Out[i]})
	}
	return s, nil
}

// Read returns what an event says that is whole, where names mean what they mean in s.
func (s *Session) Read(e Raw) (Data, error) {
	f := Folder{Current: *s, Round: OpenRound{Arrivals: -1}}
	return f.decode(&e)
}
