package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What a commit writes to the row of its session in work (work.go), hung on the row of the session in the
// same statement. By the holder of the lease it writes nothing, but to clear what has failed before.
// Whether it holds the lease still the statement sees.
//
// The row of a session that has ended is taken away by a statement of its own behind that, in the same transaction: it
// sees also a row that a process that joins made (missingWork) while the first one waited for the row of the session.

// endWork takes the row of a session that has ended away; of one that lives, for the commit came too late, it leaves it.
const endWork = `DELETE FROM work USING sessions s WHERE work.session=$1 AND s.id=$1 AND s.status>=2`

// enter begins a commit under the lease of a session; nil if it is not leased here.
func (h *held) enter(id specialist.SessionID) *lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.leases[id]
	if l != nil {
		l.commits++
	}
	return l
}

// leave ends it. c is the change that was committed; nil if none was.
func (h *held) leave(l *lease, c *session.Change) {
	if l == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c != nil {
		l.last, l.counts = max(l.last, c.After.Sequence), l.counts && onlyAsks(c.Events)
		if !c.After.Status.Live() && h.leases[c.After.ID] == l {
			delete(h.leases, c.After.ID) // and so has the statement
		}
	}
	if l.commits--; l.commits == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// wakes returns how many milliseconds after a commit a step does something; nil if none does before
// somebody commits.
func wakeAfter(s *session.Session) *int64 {
	var ms int64
	if s.Status == session.Running && !s.Waits() {
		return &ms
	}
	at := s.WakeAt()
	if at == 0 {
		return nil
	}
	ms = max(0, int64(at-s.UpdatedAt))
	return &ms
}

// queueWork adds what is written to work.
func (p *pending) queueWork(b *strings.Builder, c *session.Change) {
	is, was := c.After.Status.Live(), c.Before != nil && c.Before.Status.Live()
	switch {
	case !is && !was:
		return
	case !is:
		p.ends = true // endWork follows
		return
	}
	lane := &p.machine
	if c.After.Options().Driver != session.DriverPool {
		lane = nil
	}
	if was && c.Before.Options().Driver != c.After.Options().Driver { // ready, so that who has leased it is not believed that it is for others
		p.ready = lane != nil
		fmt.Fprintf(b, `, w AS (UPDATE work SET lane=%s::int, ready_at=now(), failures=0, crashes=0, quarantined=NULL FROM u WHERE work.session=u.id)`, p.arg(lane))
		return
	}
	after := wakeAfter(c.After)
	readyAt := `now()+` + p.arg(after) + `::bigint*interval '1 ms'`
	if !was {
		p.ready = after != nil && *after == 0 && lane != nil
		fmt.Fprintf(b, `, w AS (INSERT INTO work (session, lane, ready_at) SELECT id, %s::int, %s FROM u
			ON CONFLICT (session) DO UPDATE SET lane=excluded.lane, ready_at=excluded.ready_at, failures=0, crashes=0, quarantined=NULL)`, p.arg(lane), readyAt)
		return
	}
	cleared, human := "", byHuman(c.Events)
	if !onlyAsks(c.Events) {
		cleared = ", failures=0, crashes=0"
	}
	if human {
		cleared += ", quarantined=NULL"
	}
	if p.lease == nil {
		p.ready = after != nil && *after == 0 && lane != nil
		fmt.Fprintf(b, `, w AS (UPDATE work SET ready_at=CASE WHEN owner IS NULL THEN %s ELSE least(ready_at, %[1]s) END%s FROM u WHERE work.session=u.id)`, readyAt, cleared)
		return
	}
	owner, fence := p.arg(p.lease.by.id), p.arg(p.lease.fence)
	ours := fmt.Sprintf(`(work.owner=%s::bigint AND work.fence=%s::bigint) IS TRUE`, owner, fence)
	fmt.Fprintf(b, `, w AS (UPDATE work SET ready_at=CASE WHEN %s THEN ready_at WHEN owner IS NULL THEN %s ELSE least(ready_at, %[2]s) END%s
		FROM u WHERE work.session=u.id`, ours, readyAt, cleared)
	if !human && (!p.counts || cleared == "") {
		b.WriteString(` AND NOT (` + ours + `)`)
	}
	b.WriteString(`)`)
}

// onlyAsks reports whether a commit does no more than ask. That is not yet what comes of the work on a session: a process that
// dies of an answer has committed the ask, and so does each that repeats it.
func onlyAsks(events []session.Event) bool {
	return !slices.ContainsFunc(events, func(e session.Event) bool { _, ok := e.Data.(*session.Asked); return !ok })
}

// byHuman reports whether events say that a human has dealt with the session: then it is tried again.
func byHuman(events []session.Event) bool {
	for i := range events {
		switch d := events[i].Data.(type) {
		case *session.Resumed, *session.Ruled, *session.Moved:
			return true
		case *session.Executed:
			if d.IsHuman {
				return true
			}
		}
	}
	return false
}
