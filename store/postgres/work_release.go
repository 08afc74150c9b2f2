package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How sessions are given back: ready again at once, or after a while, or not before somebody commits.
//
// A session that fails again and again is handed out later each time, then not at all. So is one whose
// process ended three times while it was held. A process that holds one of which that is so twice holds
// no second one, so that who is innocent gets a process of its own, and a commit of it clears it.

// Release implements [session.Worker].
func (w *worker) Release(ctx context.Context, releases ...session.Release) error {
	type release struct {
		session.Release
		*lease
	}
	var list []release
	for _, r := range releases {
		if l := w.s.held.release(w, r.Session); l != nil {
			list = append(list, release{r, l})
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b release) int { return int(min(1, max(-1, a.row-b.row))) }) // as commits lock them
	n := len(list)
	rows, fences, after, failed, undriven := make([]int64, n), make([]int64, n), make([]*int64, n), make([][]byte, n), make([]bool, n)
	anyReady := false
	w.sending.Lock()
	defer w.sending.Unlock()
	for i, r := range list {
		rows[i], fences[i], undriven[i] = r.row, r.fence, r.Undriven
		if r.Failed != "" {
			failed[i] = []byte(r.Failed)
		}
		if r.After < 0 && r.last <= r.Sequence {
			continue // never
		}
		ms := max(0, r.After.Milliseconds())
		if r.last > r.Sequence {
			ms = 0 // somebody here has committed meanwhile
		}
		if r.Elsewhere > 0 {
			w.left.leave(r.lease, time.Now().Add(r.Elsewhere))
		}
		after[i], anyReady = &ms, anyReady || ms == 0
	}
	err := w.send(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, released, w.id, rows, fences, after, failed, undriven, w.s.options.hurried(time.Second), mostFailures)
		return err
	})
	if errors.Is(err, session.ErrOwnerLost) {
		return nil // they are leased no more
	}
	if anyReady && err == nil {
		w.s.wakes.ready()
	}
	return err
}

// released gives sessions back. One that is for others, as its holder saw it, keeps its lane if somebody has committed
// since, who may have said otherwise. They are locked in the order in which commits lock them.
const released = `WITH r AS MATERIALIZED (
		SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bool[]) r(session, fence, ms, failed, undriven)
	), l AS MATERIALIZED (
		SELECT w.session FROM r JOIN work w ON w.session=r.session WHERE w.owner=$1 AND w.fence=r.fence ORDER BY w.session FOR UPDATE OF w
	)
	UPDATE work w SET owner=NULL,
		lane=CASE WHEN NOT r.undriven OR w.ready_at IS NOT NULL THEN w.lane END,
		ready_at=CASE WHEN r.failed IS NOT NULL THEN least(w.ready_at, now()+least($7::interval*power(2, least(w.failures, 20)), $7::interval*300)*(0.8+0.4*random()))
			ELSE least(w.ready_at, now()+r.ms*interval '1 ms') END,
		failures=w.failures+(r.failed IS NOT NULL)::int,
		quarantined=CASE WHEN w.failures+1>=$8::int THEN r.failed END
	FROM l JOIN r ON r.session=l.session WHERE w.session=l.session`

// release takes a lease from those that are held, and returns it once no commit to its session that was
// begun under it is under way; nil if it is not held. What is committed from now on is as by anybody.
func (h *held) release(w *worker, id specialist.SessionID) *lease {
	h.mu.Lock()
	l := h.leases[id]
	if l == nil || l.by != w {
		h.mu.Unlock()
		return nil
	}
	delete(h.leases, id)
	if l.commits > 0 {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	h.mu.Unlock()
	if idle != nil {
		<-idle
	}
	return l
}
