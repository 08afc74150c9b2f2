package session

import (
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A Session is what a log comes to. fold.go makes a new one of an old one and each event;
// nothing else changes it, so a stored session may be read by anybody at any time. What only
// some sessions have hangs on pointers, which are shared with the session before: a round in
// which nothing happened, options, the history (a list that grows at its head) cost nothing
// to carry along.

// A Session is one run of a machine, as of one point of its log. It never
// changes once it is stored: every commit makes a new one.
type Session struct {
	ID        specialist.SessionID
	Program   *Program
	State     *machine.State
	Sequence  int64 // of the last event; the version for compare-and-swap
	CreatedAt specialist.Time
	UpdatedAt specialist.Time
	Round     int32 // from 1
	Attempt   int32 // of the round, from 0
	Executed  int32 // transitions so far
	// SinceResumed is how many transitions there were since it was started, forked or
	// resumed the last time.
	SinceResumed int32
	Resumes      int32 // how often it was resumed
	Rejects      int32 // steps a guard sent back, in a row
	Status       Status
	dormant      bool // a human's ruling was executed, or a proposal has ended the wait, and nobody has gone on since

	OpenedAt     specialist.Time // when the round or this attempt at it began; 0 before the first
	waited       specialist.Time // how long, in all, it waited for a human or stood still, as of UpdatedAt
	waitedAtMove specialist.Time // of that, before the last transition

	options *Options     // nil if the session was started with none
	outcome *Outcome     // nil while running
	Open    *OpenRound   // nil if nothing happened in the round yet
	last    *Executed    // the newest of the history, which is a list
	guard   *guard.State // nil until there is something to remember
	owing   *debt        // asks of closed rounds of which nobody has said yet what they cost; a list
	erased  bool         // payloads were taken out of it
	reviews []*Review    // of closed rounds, the oldest first; never changed in place
	facts   *caseFacts   // nil if the machine says nothing of data
	timing  *timing      // nil if the present state may take as long as it likes

	former    []*Program   // by whose definitions it ran before it was moved, the oldest first
	moves     []moveNotice // its moves; never changed in place
	renamed   []renaming   // states that have another name since, for each of its moves
	starters  []*Actor     // who had started the sessions from which this one was forked
	retracted []*Retracted // rulings that their authors have taken back; never changed in place

	// Head is the hash of the last record, for the store that computes hashes
	// when it commits; nil otherwise.
	Head *Hash
}

// Machine returns the session's machine.
func (s *Session) Machine() *machine.Machine { return s.Program.Machine }

// Key returns the key of the current round.
func (s *Session) Key() specialist.RoundKey {
	return specialist.RoundKey{Session: s.ID, Round: s.Round, Attempt: s.Attempt}
}

// Options returns what the session was started with.
func (s *Session) Options() Options {
	if s.options == nil {
		return Options{}
	}
	return *s.options
}

// Outcome returns why the session is not running; zero while it is.
func (s *Session) Outcome() Outcome {
	if s.outcome == nil {
		return Outcome{}
	}
	return *s.outcome
}

// WaitingSince returns when the session began to wait for a human; 0 if it does not.
func (s *Session) WaitingSince() specialist.Time {
	if s.Status != NeedsHuman {
		return 0
	}
	return s.Outcome().Since
}

// nothingOpen is a round in which nothing happened yet. It never changes.
var nothingOpen OpenRound

// round returns the open round, also if nothing happened in it yet.
func (s *Session) round() *OpenRound {
	if s.Open == nil {
		return &nothingOpen
	}
	return s.Open
}

// Proposals returns the live proposals of the current round by arrival: one for
// each specialist at most. The caller must not change them.
func (s *Session) Proposals() []*specialist.Proposal { return s.round().Proposals }

// Notices returns what guards want the proposers of this round to know.
func (s *Session) Notices() []string { return s.round().Notices }

// Spent returns what everybody's answers have cost.
func (s *Session) Spent() spend.Book {
	if s.guard == nil { // what else guards remember is not copied
		return spend.Book{}
	}
	return s.guard.Spent
}

// GuardState returns what the guards remember.
func (s *Session) GuardState() guard.State {
	if s.guard == nil {
		return guard.State{}
	}
	return *s.guard
}

// Last returns the transition executed last, or nil.
func (s *Session) Last() *Executed { return s.last }

// History returns the executed transitions, the oldest first.
func (s *Session) History() []*Executed {
	history := make([]*Executed, s.Executed)
	for e, i := s.last, len(history)-1; e != nil && i >= 0; e, i = e.Previous, i-1 {
		history[i] = e
	}
	return history
}

// Visits returns how often the session has entered the state, the start
// included, also under names that the state had before the session was moved.
func (s *Session) Visits(st *machine.State) int { return int(s.visits(st.Name)) }

func (s *Session) visits(name string) int32 {
	moved := int32(-1) // how many steps came before the newest move that may have given it another name
	var visits map[string]int32
	if n := len(s.renamed); n > 0 {
		moved, visits = s.renamed[n-1].steps, s.renamed[n-1].visits
	}
	for e, step := s.last, s.Executed; ; e, step = e.Previous, step-1 {
		if step <= moved {
			return visits[name]
		}
		switch {
		case e == nil && name == s.firstProgram().Machine.Initial().Name:
			return 1
		case e == nil:
			return 0
		case e.Transition.Target == name: // of whichever definition
			return e.Visits
		}
	}
}

// firstProgram is that by which the session began.
func (s *Session) firstProgram() *Program {
	if len(s.former) > 0 {
		return s.former[0]
	}
	return s.Program
}

// OpenAsks returns the asks of this round that have not been answered.
func (s *Session) OpenAsks() (open []Ask) {
	for _, a := range s.round().Asks {
		if a.Status.Pending() {
			open = append(open, *a.Ask)
		}
	}
	return open
}

// EnteredAt returns when the session came into its present round.
func (s *Session) EnteredAt() specialist.Time {
	if s.last != nil {
		return s.last.At
	}
	return s.CreatedAt
}

// Resumable reports whether a live session can go on because it is taken up again:
// not while a human's ruling waits for another's.
func (s *Session) Resumable(retry bool) bool {
	return (retry || s.round().Blocked) && !s.round().Pending()
}
