package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Which sessions are listed, and from where on. There may be millions, so a list is read
// page by page: a query says how many it wants (Limit), and Next gives the cursor by which
// the same query goes on.
//
// Sessions are listed in the order in which they were created, which never changes, so a
// cursor is the last session of a page: what is created, ends or changes meanwhile moves
// nothing. By another Order a cursor has its moment as well, as it was when the page was
// listed, so that nothing else is left out if that session has gone on. It also holds a sum over itself and what the query filters by, so that one that
// was altered, or is used with another query, is refused instead of leaving sessions out.
// It is no secret, and opens nothing that the query itself does not.
//
// Who may decide in a state is not in a session but in its definition and in the roster of
// its machine. The runner turns a Decider into Places; stores know those only.

// A ListQuery says which sessions to list. The zero query lists all, the oldest first.
type ListQuery struct {
	ID          string   // only those whose id begins like this
	MachineName string   // only this machine's
	Statuses    []Status // only those with one of these statuses; empty means any
	State       string   // only those in the state of this name
	// Code leaves only those that stand still for the reason of this code. Stores go by
	// the code in the log; the runner by that of who may rule now (see OutcomeBy).
	Code         string
	Subject      string          // only those whose subject begins like this
	StartedBy    string          // only those that this subject has started: Options.Actor
	CreatedAfter specialist.Time // only those that were started after this moment; 0 means any
	UpdatedAfter specialist.Time // only those that have changed after this moment; 0 means any
	Reviews      bool            // only those with closed rounds that a human is to look at
	// Overdue leaves only those that were due at this moment or before, and Timely only
	// those that were not; 0 means any.
	Overdue, Timely specialist.Time
	// Wake leaves only those with a timer or a reminder that comes at this moment or before
	// (Session.TimerAt), and Awake leaves out those that wait for a timer which comes after
	// this moment; 0 means any. No others are looked at.
	Wake, Awake specialist.Time
	// Decider leaves only those in whose state this human may rule, as the definition and
	// the roster have it: whatever approvals exclude or somebody has ruled already. Stores
	// go by Places alone; the runner finds them.
	Decider machine.SpecialistID
	Places  []Place // only those in one of these, if it is not nil
	// WaitingAfter leaves only those that have begun to wait for a human after this moment; 0
	// means any.
	WaitingAfter specialist.Time
	Order        Order  // by what they are listed
	After        Cursor // only those that come after a page; "" means from the beginning
	Limit        int    // so many at most; 0 means all
	Desc         bool   // the newest first
}

// An Order is what sessions are listed by; those that are alike in it are listed by creation.
type Order uint8

// The orders of lists.
const (
	ByCreation Order = iota
	BySince          // since when they wait for a human: only those that do ([Summary].Since)
	ByDue            // by when they are to leave their state: only those of which that is known
)

// A Place is a state of a definition.
type Place struct{ MachineDigest, State string }

// A Cursor is a place in what one query lists: [ListQuery.Next] makes it.
type Cursor string

// ErrCursor is wrapped where a cursor is not one of the query, or was altered.
var ErrCursor = errors.New("the cursor is not one of this list: begin without one, with the same filters as for the page before")

// LiveStatuses returns the statuses of sessions that Step may move.
func LiveStatuses() []Status { return []Status{Running, NeedsHuman} }

// cursorSum is how much of the sum over a cursor and its query is kept, in bytes.
const cursorSum = 8

// Next returns the cursor of what follows a page that the query has listed; "" if the
// page is not full, so that nothing does.
func (q *ListQuery) Next(page []Summary) Cursor {
	if q.Limit <= 0 || len(page) < q.Limit {
		return ""
	}
	last := &page[len(page)-1]
	return q.CursorAfter(last.SessionID, q.Order.Moment(last.Since, last.DueAt))
}

// Moment returns by which of its moments a session has its place in a list: 0 by creation.
func (o Order) Moment(since, due specialist.Time) specialist.Time {
	switch o {
	case BySince:
		return since
	case ByDue:
		return due
	default:
		return 0
	}
}

// CursorAfter returns the cursor of what the query lists after a session that has its place
// by a moment ([Order.Moment]).
func (q *ListQuery) CursorAfter(id specialist.SessionID, at specialist.Time) Cursor {
	data := slices.Clone(id[:])
	if q.Order != ByCreation {
		data = binary.BigEndian.AppendUint64(data, uint64(at)) //nolint:gosec // there and back
	}
	return Cursor(base64.RawURLEncoding.EncodeToString(append(data, q.sum(data)...)))
}

// Begin returns the session after which the query begins to list, the zero id for none, and
// by which moment that has its place. It returns ErrCursor if After is not one of its cursors.
func (q *ListQuery) Begin() (id specialist.SessionID, at specialist.Time, err error) {
	if q.After == "" {
		return id, 0, nil
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(string(q.After))
	if err != nil || len(data) < len(id) {
		return id, 0, ErrCursor
	}
	if n := copy(id[:], data); q.Order != ByCreation && len(data) >= n+8 {
		at = specialist.Time(binary.BigEndian.Uint64(data[n:])) //nolint:gosec // there and back
	}
	if q.CursorAfter(id, at) != q.After {
		return specialist.SessionID{}, 0, ErrCursor
	}
	return id, at, nil
}

// sum returns the sum over a place in the list and what the query filters by.
func (q *ListQuery) sum(place []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%x %q %q %q %q %q %d %t %q %t", place, q.ID, q.MachineName, q.State, q.Code, q.Subject, q.UpdatedAfter, q.Reviews, q.Decider, q.Desc)
	if q.Overdue != 0 || q.Timely != 0 || q.Wake != 0 || q.Awake != 0 {
		fmt.Fprintf(h, " %d %d %d %d", q.Overdue, q.Timely, q.Wake, q.Awake)
	}
	if q.StartedBy != "" || q.CreatedAfter != 0 {
		fmt.Fprintf(h, " %q %d", q.StartedBy, q.CreatedAfter)
	}
	if q.Order != ByCreation || q.WaitingAfter != 0 {
		fmt.Fprintf(h, " %d %d", q.Order, q.WaitingAfter)
	}
	for s := Running; int(s) < len(statusNames); s++ {
		fmt.Fprintf(h, " %t", q.wants(s))
	}
	return h.Sum(nil)[:cursorSum]
}

func (q *ListQuery) wants(s Status) bool {
	return len(q.Statuses) == 0 || slices.Contains(q.Statuses, s)
}

// listPage is how many sessions Each looks up at a time.
const listPage = 256

// Each yields what a query lists, page by page: all that it selects, or as many as its
// Limit says. It ends with the first error.
func Each(ctx context.Context, list func(context.Context, ListQuery) ([]Summary, error), q ListQuery) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		for left := q.Limit; ; {
			q.Limit = listPage
			if left > 0 {
				q.Limit = min(left, listPage)
			}
			page, err := list(ctx, q)
			if err != nil {
				yield(Summary{}, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			q.After = q.Next(page)
			if left -= len(page); q.After == "" || left == 0 {
				return
			}
		}
	}
}

// A Summary is one session in a list.
type Summary struct {
	SessionID     specialist.SessionID `json:"sessionId"`
	MachineName   string               `json:"machineName"`
	MachineDigest string               `json:"machineDigest"`
	Subject       string               `json:"subject,omitempty"` // what it is about; "" if the machine does not say
	Status        Status               `json:"status"`
	CurrentState  string               `json:"currentState"`
	Round         int32                `json:"round"`
	Sequence      int64                `json:"sequence"`
	CreatedAt     specialist.Time      `json:"createdAt"`
	UpdatedAt     specialist.Time      `json:"updatedAt"`
	Code          string               `json:"code,omitempty"`
	Reason        string               `json:"reason,omitempty"`
	Reviews       int                  `json:"reviews,omitempty"`                     // closed rounds that a human is to look at
	CostUSD       exact.Money          `json:"costUSD"`                               // what everybody's answers have cost
	DueAt         specialist.Time      `json:"due,omitempty"`                         // by when it is to leave its state; 0 if it may take as long as it likes
	Since         specialist.Time      `json:"since,omitempty"`                       // when it began to wait for a human; 0 if it does not
	Driver        Driver               `json:"driver,omitempty" enum:"temporal,none"` // who carries it on by itself; left out for any process that does so for its store
}

// A LiveCount says how many sessions of a machine's name have a status, and when anything
// happened last to the one to which it happened first.
type LiveCount struct {
	MachineName string
	Status      Status
	Sessions    int
	Oldest      specialist.Time
}

// A StoreStatus says what a store is, and how much there is in it. What is not known of a kind of store is zero.
type StoreStatus struct {
	Kind       string      `json:"kind" doc:"memory, sqlite or postgres"`
	Place      int64       `json:"place" doc:"of the newest record"`
	Schema     int64       `json:"schema,omitempty" doc:"the version of its tables"`
	SizeBytes  int64       `json:"sizeBytes,omitempty" doc:"of the file, or of its tables and indexes in the database"`
	Epoch      string      `json:"epoch,omitempty" doc:"a store that was set back to a backup has another one"`
	Running    int         `json:"running" doc:"sessions that are carried on"`
	NeedsHuman int         `json:"needsHuman" doc:"sessions that wait for a human"`
	Work       *WorkStatus `json:"work,omitempty" doc:"of a database: what is handed out to processes"`
}

// A WorkStatus says how a store in a database is carried on.
type WorkStatus struct {
	Partitions         int     `json:"partitions" doc:"parts of the log, each of 1,048,576 sessions"`
	Workers            int     `json:"workers" doc:"processes that carry sessions on"`
	Leased             int     `json:"leased" doc:"sessions that one of them has"`
	Ready              int     `json:"ready" doc:"sessions in which a step would do something, and that nobody has"`
	Lanes              int     `json:"lanes" doc:"machines of which there are such"`
	OldestReadySeconds float64 `json:"oldestReadySeconds" doc:"how long the first of them has been waiting"`
	Quarantined        int     `json:"quarantined" doc:"sessions that are handed out to nobody"`
	WritingSeconds     float64 `json:"writingSeconds" doc:"age of the oldest transaction that writes to the database, by whomever: followers of the log wait for it"`
}

// CountLive adds up counts of live sessions.
func (s *StoreStatus) CountLive(counts []LiveCount) {
	for _, c := range counts {
		if c.Status == Running {
			s.Running += c.Sessions
		} else {
			s.NeedsHuman += c.Sessions
		}
	}
}

// Summarize returns the summary of a session.
func Summarize(s *Session) Summary {
	o := s.Standing()
	return Summary{
		SessionID: s.ID, MachineName: s.Machine().Name(), MachineDigest: s.Machine().Digest(), Subject: s.Subject(),
		Status: s.Status, CurrentState: s.State.Name, Round: s.Round, Sequence: s.Sequence,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Code: o.Code, Reason: o.Reason, Reviews: len(s.reviews), CostUSD: s.Spent().Money, DueAt: s.DueAt(), Since: s.WaitingSince(), Driver: s.Options().Driver,
	}
}

// Matches reports whether a session belongs to a query, cursor and limit aside.
func (q *ListQuery) Matches(s *Session) bool {
	return q.wants(s.Status) && (q.State == "" || q.State == s.State.Name) && (q.MachineName == "" || q.MachineName == s.Machine().Name()) &&
		(q.Code == "" || q.Code == s.Standing().Code) && strings.HasPrefix(s.Subject(), q.Subject) && (!q.Reviews || len(s.reviews) > 0) &&
		q.matchesTime(s) && q.matchesStart(s) &&
		(q.UpdatedAfter == 0 || s.UpdatedAt > q.UpdatedAfter) && (q.ID == "" || strings.HasPrefix(s.ID.String(), q.ID)) &&
		(q.Places == nil || slices.Contains(q.Places, Place{s.Machine().Digest(), s.State.Name}))
}

// matchesStart reports whether a session belongs to a query as far as its start goes.
func (q *ListQuery) matchesStart(s *Session) bool {
	by := s.Options().Actor
	return (q.CreatedAfter == 0 || s.CreatedAt > q.CreatedAfter) && (q.StartedBy == "" || by != nil && by.Subject == q.StartedBy)
}

// matchesTime reports whether a session belongs to a query as far as its due goes.
func (q *ListQuery) matchesTime(s *Session) bool {
	due, timer := s.DueAt(), s.TimerAt()
	return (q.WaitingAfter == 0 || s.WaitingSince() > q.WaitingAfter) && (q.Order != BySince || s.Status == NeedsHuman) && (q.Order != ByDue || due != 0) &&
		(q.Overdue == 0 || due != 0 && due <= q.Overdue) && (q.Timely == 0 || due == 0 || due > q.Timely) &&
		(q.Wake == 0 || timer != 0 && timer <= q.Wake) && (q.Awake == 0 || !s.Waits() || timer <= q.Awake)
}
