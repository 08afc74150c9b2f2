package undertaking

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Status is where an undertaking stands, for people and programs that look.
type Status struct {
	Session  string       `json:"session"`
	Task     string       `json:"task"`
	State    string       `json:"state"`
	Status   string       `json:"status"`           // of the session
	Mover    string       `json:"mover,omitempty"`  // whose move it is: a specialist
	Standing string       `json:"standing"`         // working, waiting for you, parked, idle, gone, over
	Reason   string       `json:"reason,omitempty"` // why it waits, or how it ended
	Cwd      string       `json:"cwd"`
	Spent    Cost         `json:"spent"`
	Cap      *exact.Money `json:"cap,omitempty"` // in dollars; nil without one
	Workers  []Worker     `json:"workers"`       // the orchestrators
	// Others are the agent sessions of the manager and of the verifiers, by specialist.
	Others map[string][]Worker `json:"others,omitempty"`
	Tasks  []Task              `json:"tasks"`
	// Permissions are those that wait for a human, the oldest first.
	Permissions []Permission `json:"permissions,omitempty"`
}

// Beside is what the status of an undertaking depends on beside its own logs. The zero value is
// one that somebody drives and whose agents ask for nothing.
type Beside struct {
	Permissions []Permission
	Gone        bool // no living process drives it: see [Gone]
}

// A Permission is what an agent of an undertaking asks for and a human has not answered yet.
type Permission struct {
	Session string    `json:"session"`
	Tool    string    `json:"tool"`
	Since   time.Time `json:"since"`
	Parked  bool      `json:"parked,omitempty"` // the agent does other work meanwhile
}

// Gone reports whether the process that drove an undertaking has ended, by what [Load] returned of
// the undertaking.
func Gone(ctx context.Context, store session.OwnerStore, u State) (bool, error) {
	if u.Host == "" { // none has begun to
		return false, nil
	}
	alive, err := store.Alive(ctx, u.Host)
	return !alive, err
}

// StatusOf returns where an undertaking stands, by its session and what [Load] returned of it.
func StatusOf(s *session.Session, u State, beside Beside, now time.Time) Status {
	in := read[taskInput](s.Options().Meta)
	book := s.Spent()
	out := Status{
		Session: s.ID.String(), Task: in.Task, State: s.State.Name, Status: s.Status.String(), Cwd: in.Cwd, Reason: s.ReasonFor(owner),
		Spent: Cost{book.Money, book.TokensIn, book.TokensOut}.plus(u.unpaid()), Workers: u.Workers, Others: u.Others, Tasks: u.Tasks,
		Permissions: beside.Permissions,
	}
	if limit, limited := capUSD(s); limited {
		out.Cap = &limit
	}
	out.Mover, out.Standing = standing(s, u, beside, now)
	if out.Workers == nil {
		out.Workers = []Worker{}
	}
	if out.Tasks == nil {
		out.Tasks = []Task{}
	}
	return out
}

// movers has who moves in each state, of several the first.
var movers = map[string]string{
	"briefing": manager, "onboarding": manager, "counsel": manager, "debrief": manager, "accepting": manager,
	"awaiting_human": owner, "awaiting_assent": owner, "awaiting_ruling": owner,
	"aligning": orchestrator, "weaving": orchestrator, "wrapping": orchestrator, "recounting": orchestrator, "working": orchestrator,
	"summoning": engine, "checking": checks, "ruling": checks, "verifying": verifierA,
}

// standing says whose move it is, and whether somebody is at it.
func standing(s *session.Session, u State, beside Beside, now time.Time) (mover, how string) {
	asked, parked := now, false // since when an agent waits for a permission
	for _, p := range beside.Permissions {
		if parked = parked || p.Parked; !p.Parked && p.Since.Before(asked) {
			asked = p.Since
		}
	}
	mover = movers[s.State.Name]
	switch {
	case !s.Status.Live():
		return "", "over"
	case s.Status == session.NeedsHuman:
		if at := s.EnteredAt().Time(); at.Before(asked) {
			asked = at
		}
		return owner, "waiting for you " + short(now.Sub(asked))
	case beside.Gone:
		return mover, "gone"
	case asked != now:
		return mover, "waiting for you " + short(now.Sub(asked))
	case u.turn():
		return mover, "working"
	case parked:
		return mover, "parked"
	}
	return mover, "idle"
}

// turn reports whether a turn of an agent runs.
func (s *State) turn() bool {
	return slices.ContainsFunc([]string{manager, orchestrator, verifierA, verifierB}, func(as string) bool {
		return slices.ContainsFunc(s.sessions(as), func(w Worker) bool { return w.Turn })
	})
}

func short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// Text writes a status for people.
func (s Status) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  session  %s\n  state    %s", s.Task, s.Session, s.State)
	if s.Mover != "" {
		fmt.Fprintf(&b, ", the move is %s's", s.Mover)
	}
	fmt.Fprintf(&b, "\n  now      %s\n", s.Standing)
	if s.Reason != "" {
		fmt.Fprintf(&b, "  because  %s\n", firstLine(s.Reason))
	}
	for _, p := range s.Permissions {
		fmt.Fprintf(&b, "  asks     %s, in session %s%s\n", p.Tool, p.Session, map[bool]string{true: " (parked)"}[p.Parked])
	}
	fmt.Fprintf(&b, "  spent    $%s", s.Spent.USD)
	if s.Cap != nil {
		fmt.Fprintf(&b, " of $%s", *s.Cap)
	}
	fmt.Fprintf(&b, ", %d tokens\n  tree     %s\n", s.Spent.In+s.Spent.Out, s.Cwd)
	for _, list := range [][]Worker{s.Others[manager], s.Workers, s.Others[verifierA], s.Others[verifierB]} {
		for i := range list {
			s.writeWorker(&b, &list[i])
		}
	}
	for _, t := range s.Tasks {
		fmt.Fprintf(&b, "  %s %s\n", map[string]string{"pending": "○", "active": "◆"}[t.Status]+map[bool]string{true: "✓"}[t.Status == "done" || t.Status == "verified"], t.Text)
	}
	return b.String()
}

// writeWorker writes an agent session, in a line.
func (s Status) writeWorker(b *strings.Builder, w *Worker) {
	gone := w.Gone
	if gone == "" {
		gone = map[bool]string{true: "the last", false: "goes on"}[s.Standing == "over"]
	}
	pct := "--"
	if n := w.Usage.Percent(agent.Ceiling); n >= 0 {
		pct = itoa(n)
	}
	fmt.Fprintf(b, "  %-8s %s, context %s %%, %d turns, %s\n", w.id(), w.Agent, pct, w.Turns, gone)
}

// DumpOf returns what the file beside the store says of an undertaking.
func DumpOf(ctx context.Context, s *session.Session, u State, at specialist.Time) Dump {
	st := StatusOf(s, u, Beside{}, at.Time())
	d := Dump{Task: st.Task, Session: s.ID, State: st.State, Seq: u.Seq, Cwd: st.Cwd, SavedAt: at, Workers: []DumpWorker{}}
	d.Spent.USD, d.Spent.Tokens = st.Spent.USD, st.Spent.In+st.Spent.Out
	if t, err := TreeOf(ctx, st.Cwd); err == nil {
		d.GitHead = t.Head
	}
	if m := u.newest(manager); m != nil {
		d.ManagerSession = m.AgentSession
	}
	for i := range u.Workers {
		w := &u.Workers[i]
		status := "completed"
		if w.Gone == "" && w.Number == u.Bound && s.Status != session.Completed {
			status = "active"
		}
		d.Workers = append(d.Workers, DumpWorker{ID: w.id(), AgentSession: w.AgentSession, Status: status, Number: w.Number, Agent: w.Agent, Reason: w.Gone})
	}
	return d
}
