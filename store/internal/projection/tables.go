package projection

import (
	"math"
	"strconv"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The columns of the tables, each in the order in which a row gives its values. A row's
// method Fields lists where its columns are, to be scanned into, or, by [Values], to be
// written. The number of its machine's row is not part of a row, and goes where Fields is
// told; what a table has as well (its id) is the driver's.

var (
	// SessionColumns are those that never change, then those that change when a session
	// ends, waits, goes on, is reviewed, is about something else, due at another time or driven by somebody else, then, from [SessionMoving], those that every
	// commit changes.
	SessionColumns = []string{
		"session_id", "machine", "machine_digest", "created_at", "started_by",
		"status", "code", "reason", "reviews", "subject", "due_at", "driver", "since",
		"current_state", "round", "attempt", "sequence", "transitions", "updated_at", "timer_at", "calls", "input_tokens", "output_tokens", "cost_pico_usd", "head",
	}
	// LogColumns are those of a record of a session's log.
	LogColumns = []string{"session", "first", "decides", "at", "events", "hash"}
	// RosterColumns are those of a record of a machine's log.
	RosterColumns = []string{"machine", "first", "events", "prev", "hash"}
	// DefinitionColumns are those of a definition that was run.
	DefinitionColumns = []string{"machine_digest", "machine", "definition"}
	// AlignmentColumns are those of how often a specialist agreed with humans.
	AlignmentColumns = []string{"machine", "specialist_id", "state", "matching", "total", "updated_at"}
	// ExemplarColumns are those of a decision of a human that models are shown.
	ExemplarColumns = []string{"machine", "state", "exemplar"}
)

// Where in SessionColumns the columns begin that are not as they were at first, and those
// that every commit changes.
const (
	SessionStanding = 5
	SessionMoving   = 13
)

// Ordering returns the column of sessions by which they are listed before their numbers; "" for none.
func Ordering(o session.Order) string {
	switch o {
	case session.BySince:
		return "since"
	case session.ByDue:
		return "due_at"
	default:
		return ""
	}
}

// Values puts in the place of each field what is in it, and returns the list. database/sql
// would do the same, at the price of two allocations for each.
func Values(fields []any) []any {
	for i, f := range fields {
		switch f := f.(type) {
		case *int64:
			fields[i] = *f
		case *string:
			fields[i] = *f
		case *[]byte:
			fields[i] = *f
		}
	}
	return fields
}

// A Session is a row of sessions.
type Session struct {
	ID, Machine, Digest                 string
	CreatedAt                           int64
	StartedBy                           string
	Status, Code, Reason                string
	Reviews                             int64
	Subject                             string
	DueAt                               int64
	Driver                              string // "" for any process that carries on the sessions of its store
	Since                               int64  // when it began to wait for a human; 0 if it does not
	State                               string
	Round, Attempt, Sequence, Executed  int64
	UpdatedAt, TimerAt                  int64
	Calls, TokensIn, TokensOut, PicoUSD int64
}

// SessionOf returns the row of a session.
func SessionOf(s *session.Session) Session {
	o, spent := s.Standing(), s.Spent()
	return Session{
		s.ID.String(), s.Machine().Name(), s.Machine().Digest(), int64(s.CreatedAt), startedBy(s),
		s.Status.String(), o.Code, o.Reason, int64(len(s.Reviews())), s.Subject(), int64(s.DueAt()), string(s.Options().Driver), int64(s.WaitingSince()),
		s.State.Name, int64(s.Round), int64(s.Attempt), s.Sequence, int64(s.Executed), int64(s.UpdatedAt), int64(s.TimerAt()),
		spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money),
	}
}

// startedBy returns the subject that has started a session, "" if that is not said.
func startedBy(s *session.Session) string {
	if by := s.Options().Actor; by != nil {
		return by.Subject
	}
	return ""
}

// Fields appends where the columns are. head is the hash of the last record.
func (s *Session) Fields(dst []any, machine *int64, head *[]byte) []any {
	return append(dst,
		&s.ID, machine, &s.Digest, &s.CreatedAt, &s.StartedBy,
		&s.Status, &s.Code, &s.Reason, &s.Reviews, &s.Subject, &s.DueAt, &s.Driver, &s.Since,
		&s.State, &s.Round, &s.Attempt, &s.Sequence, &s.Executed, &s.UpdatedAt, &s.TimerAt, &s.Calls, &s.TokensIn, &s.TokensOut, &s.PicoUSD, head)
}

// An Alignment is a row of alignment: a tally, or what a comparison adds to one.
type Alignment struct {
	Machine, Specialist, State string // State is "" for the machine
	Matching, Total, Updated   int64
}

// Fields appends where the columns are.
func (a *Alignment) Fields(dst []any, machine *int64) []any {
	return append(dst, machine, &a.Specialist, &a.State, &a.Matching, &a.Total, &a.Updated)
}

func compared(machine string, c *trust.Comparison) Alignment {
	one := c.Tally()
	return Alignment{machine, c.SpecialistID, c.State, int64(one.Matching), int64(one.Total), int64(one.Updated)}
}

// AlignmentOf returns the rows of a machine's book, in order.
func AlignmentOf(machine string, b *trust.Book) (list []Alignment) {
	for _, r := range b.Records(machine) {
		list = append(list, Alignment{machine, r.SpecialistID, r.State, int64(r.MatchingChoices), int64(r.TotalComparisons), int64(r.LastUpdated)})
	}
	return list
}

// An Exemplar is a row of exemplars. Its text is empty if the ruling was taken back that it
// is made of, or erased.
type Exemplar struct{ Machine, State, Text string }

// ExemplarOf returns the row of an exemplar.
func ExemplarOf(machine string, e *specialist.Exemplar) Exemplar {
	if session.IsErased(e.Context) {
		return Exemplar{machine, e.State, ""}
	}
	return Exemplar{machine, e.State, string(e.Append(nil))}
}

// ExemplarPrefix returns how the text of an exemplar begins; "" for no id.
func ExemplarPrefix(id string) string {
	if id == "" {
		return ""
	}
	return `{"exemplarId":` + strconv.Quote(id) + `,`
}

// Fields appends where the columns are.
func (e *Exemplar) Fields(dst []any, machine *int64) []any {
	return append(dst, machine, &e.State, &e.Text)
}

// ExemplarLimit returns how many exemplars [session.TrustStore] Exemplars is to return at most.
func ExemplarLimit(state machine.StateName, limit int) int {
	switch {
	case state == "" && limit <= 0:
		return math.MaxInt
	case state != "" && (limit <= 0 || limit > session.MaxExemplars):
		return session.MaxExemplars
	}
	return limit
}
