package session

import (
	"sync"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// An Opening is the first record of a session on its way to the store, in buffers
// that are used again.
type Opening struct {
	// Change is what to commit. It holds until Release.
	Change Change

	session Session
	round   OpenRound
	room    [3]Event
	created Created
	opened  RoundOpened
	ended   Ended
}

var openings sync.Pool

// New returns a session that nobody has stored yet: a name for its first record
// ([NewOpening]) to be made of.
func New(id specialist.SessionID, p *Program, o Options, at specialist.Time) *Session {
	s := &Session{ID: id, Program: p, CreatedAt: at}
	if o.IsSet() { // so that plain sessions allocate none
		s.options = &o
	}
	return s
}

// NewOpening returns the first record of a session, as it follows from its id, program,
// options and time of creation.
func NewOpening(s *Session) *Opening {
	o, _ := openings.Get().(*Opening)
	if o == nil {
		o = &Opening{}
	}
	events := o.fill(s)
	o.session = Session{ID: s.ID}
	for i := range events {
		_ = Apply(&o.session, &o.round, &events[i])
	}
	o.Change = Change{After: Freeze(&o.session, &o.round), First: 1, Events: events}
	return o
}

// Release gives the buffers back.
func (o *Opening) Release() {
	*o = Opening{}
	openings.Put(o)
}

func (o *Opening) fill(s *Session) []Event {
	program := s.firstProgram()
	initial := program.Machine.Initial()
	o.created, o.opened = Created{Program: program, Options: s.Options().started()}, RoundOpened{Round: 1, State: initial, Closed: s.Options().Closed, Due: s.Options().Due}
	events := append(o.room[:0], Event{s.CreatedAt, &o.created}, Event{s.CreatedAt, &o.opened})
	if initial.Terminal() {
		o.ended = Ends(initial)
		events = append(events, Event{s.CreatedAt, &o.ended})
	}
	return events
}

// Ends says how a session ends that has entered a terminal state.
func Ends(s *machine.State) Ended {
	if s.Goal {
		return Ended{Status: Completed, Code: CodeGoal}
	}
	return Ended{Status: Completed, Code: codeFinal}
}

// OpeningEvents returns the events of a session's first record. They follow from its
// id, program, options and time of creation alone, so a store need not keep them.
func OpeningEvents(s *Session) []Event { return new(Opening).fill(s) }
