package runner

import (
	"encoding/json"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

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
	Rejects   int32 // steps a guard sent back, in a row
	Status    Status

	opened       specialist.Time // when the round or this attempt at it began; 0 before the first
	waited       specialist.Time // how long, in all, it waited for a human or stood still, as of UpdatedAt
	waitedAtMove specialist.Time // of that, before the last transition
	dormant      bool            // a proposal has ended the wait, and nobody has gone on since

	options *Options     // nil if the session was started with none
	outcome *Outcome     // nil while running
	open    *openRound   // nil if nothing happened in the round yet
	last    *Executed    // the newest of the history, which is a list
	guard   *guard.State // nil until there is something to remember
	owing   *debt        // asks of closed rounds of which nobody has said yet what they cost; a list
	reviews []*Review    // of closed rounds, the oldest first; never changed in place

	// Head is the hash of the last record, for the store that computes hashes
	// when it commits; nil otherwise.
	Head *Hash
}

// Options are what a session was started with beside its machine.
type Options struct {
	Meta            json.RawMessage // metaJson; nil if there is none
	Seed            uint64          // of random choices; 0: from the session id
	DefaultProposer bool            // nobody proposes: firstAvailable stands in
	DefaultArbiter  bool            // nobody arbitrates: firstProposal stands in
	Mode            machine.Mode    // how proposers are asked, instead of the file's; may be ""
	Prices          string          // version of the program's prices, where the machine names models; may be ""
}

// An Outcome says why a session is not running.
type Outcome struct {
	Code   string
	Reason string
	Since  specialist.Time
}

// A Status says what a session is doing.
type Status uint8

// The statuses of a session.
const (
	Running Status = iota
	NeedsHuman
	Completed
	Stopped
	Failed
)

var statusNames = [...]string{"running", "needs_human", "completed", "stopped", "failed"}

// String returns the name used in JSON and SQL.
func (s Status) String() string { return statusNames[s] }

// MarshalText writes the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *Status) UnmarshalText(text []byte) error {
	for i, n := range statusNames {
		if n == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return &DecodeError{"status", string(text)}
}

// Live reports whether Step may move the session.
func (s Status) Live() bool { return s == Running || s == NeedsHuman }

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

// Proposals returns the live proposals of the current round by arrival: one for
// each specialist at most. The caller must not change them.
func (s *Session) Proposals() []*specialist.Proposal {
	if s.open == nil {
		return nil
	}
	return s.open.proposals
}

// Notices returns what guards want the proposers of this round to know.
func (s *Session) Notices() []string {
	if s.open == nil {
		return nil
	}
	return s.open.notices
}

// Spent returns what everybody's answers have cost.
func (s *Session) Spent() guard.Book {
	if s.guard == nil {
		return guard.Book{}
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
	for e, i := s.last, len(history)-1; e != nil && i >= 0; e, i = e.previous, i-1 {
		history[i] = e
	}
	return history
}

// visits returns how often the session has entered the state, the start
// included.
func (s *Session) visits(st *machine.State) int {
	for e := s.last; e != nil; e = e.previous {
		if e.Transition.To == st {
			return int(e.visits)
		}
	}
	if st == s.Machine().Initial() {
		return 1
	}
	return 0
}

// OpenAsks returns the asks of this round that have not been answered.
func (s *Session) OpenAsks() []Ask {
	if s.open == nil {
		return nil
	}
	var open []Ask
	for _, a := range s.open.asks {
		if a.status == askOpen {
			open = append(open, *a.Ask)
		}
	}
	return open
}

// An openRound is what has happened in the current round. It never changes once
// its session is stored.
type openRound struct {
	proposals []*specialist.Proposal // live ones, by arrival
	asks      []askState
	probes    []*Probed // what the guards were told
	verdict   *Judged   // on exactly these proposals; nil if there is none yet
	notices   []string
	arrivals  int32 // proposals so far, replaced ones included
	judged    int32 // verdicts so far
	cost      exact.Money
	blocked   bool            // the arbiter failed: it is asked again on resume only
	judging   bool            // an arbiter outside this process is being asked
	wave      *Wave           // the first; nil unless the round is asked in waves that bayes chooses
	draws     *Draws          // why a human is asked, if that was drawn; nil else
	refused   error           // a charge of the event that is being applied; nil between events
	rulings   *pendingRulings // of humans; nil if none was ever recorded
	shown     bool            // a human was asked for another reason than an audit
	revealed  []string        // who has looked at what is withheld; "" for somebody who was not named
}

// An askState is one ask of the round and what became of it. The Ask never
// changes: a newer one takes its place.
type askState struct {
	*Ask
	status  askStatus
	unpaid  bool       // it has failed because a budget or a quota had no room
	failed  *AskFailed // why it has failed; nil if it has not
	account *account   // what is owed for it; nil for one that was only recorded yet, and inside this process
}

type askStatus uint8

const (
	askOpen askStatus = iota
	askAnswered
	askFailed
	askCancelled
)

// empty reports whether nothing has happened in the round.
func (o *openRound) empty() bool {
	return len(o.proposals) == 0 && len(o.asks) == 0 && len(o.notices) == 0 && o.verdict == nil && o.arrivals == 0 && o.rulings == nil
}

// proposal returns the live proposal of a specialist, or nil.
func (o *openRound) proposal(id string) *specialist.Proposal {
	for _, p := range o.proposals {
		if p.SpecialistID == id {
			return p
		}
	}
	return nil
}

// ask returns the newest ask of a specialist in a role, or nil.
func (o *openRound) ask(id string, role machine.Role) *askState {
	for i := len(o.asks) - 1; i >= 0; i-- {
		if a := &o.asks[i]; a.SpecialistID == id && a.Role == role {
			return a
		}
	}
	return nil
}

// before returns how many asks of a specialist came before one.
func (o *openRound) before(id string, role machine.Role, index int32) (n int32) {
	for i := range o.asks {
		if a := &o.asks[i]; a.SpecialistID == id && a.Role == role && a.Index < index {
			n++
		}
	}
	return n
}

// at returns the ask with that index, or nil.
func (o *openRound) at(index int32) *askState {
	if i := int(index) - 1; i >= 0 && i < len(o.asks) && o.asks[i].Index == index {
		return &o.asks[i] // they are numbered as they come
	}
	for i := range o.asks {
		if o.asks[i].Index == index {
			return &o.asks[i]
		}
	}
	return nil
}

// A finder finds proposals and asks by specialist, quickly also where there are
// many. It is good until the round changes.
type finder struct {
	o         *openRound
	proposals map[string]*specialist.Proposal
	asks      map[string]*askState
}

// many is the number of entries from which an index pays.
const many = 16

func (o *openRound) finder() finder {
	f := finder{o: o}
	if len(o.proposals)+len(o.asks) <= many {
		return f
	}
	f.proposals, f.asks = make(map[string]*specialist.Proposal, len(o.proposals)), make(map[string]*askState, len(o.asks))
	for _, p := range o.proposals {
		f.proposals[p.SpecialistID] = p
	}
	for i := range o.asks {
		if a := &o.asks[i]; a.Role == machine.Proposer {
			f.asks[a.SpecialistID] = a
		}
	}
	return f
}

func (f finder) proposal(id string) *specialist.Proposal {
	if f.proposals == nil {
		return f.o.proposal(id)
	}
	return f.proposals[id]
}

// ask returns the newest ask of a proposer, or nil.
func (f finder) ask(id string) *askState {
	if f.asks == nil {
		return f.o.ask(id, machine.Proposer)
	}
	return f.asks[id]
}
