package session

import (
	"encoding/json"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Options are what a session was started with beside its machine.
type Options struct {
	Meta            json.RawMessage    // metaJson; nil if there is none
	Seed            uint64             // of random choices; 0: from the session id
	DefaultProposer bool               // nobody proposes: firstAvailable stands in
	DefaultArbiter  bool               // nobody arbitrates: firstProposal stands in
	Mode            machine.Mode       // how proposers are asked, instead of the file's; may be ""
	Prices          string             // version of the program's prices, where the machine names models; may be ""
	Subject         string             // what the session is about at first; may be ""
	Closed          []ClosedTransition // in the first round, by their conditions
	Due             *Due               // of the first round; nil if it may take as long as it likes
	Actor           *Actor             // who started it; nil if that is not said
	ForkedFrom      *ForkedFrom        // nil unless it goes on from where another session stood
	Missing         []string           // specialists without whom it was started; nil for most
	Driver          Driver             // who carries it on by itself now: what [DriverChanged] says, too, is here

	begun *Driver // the driver that it was started with, nil if that is still Driver
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
