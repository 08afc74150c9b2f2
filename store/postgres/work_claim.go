package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How sessions are claimed: one statement takes some of each machine, another one of those that may end
// the process, if none such is held. What was claimed is noted before anybody hears of it, so that commits
// to it are known to be by who holds it.

const (
	// ready is which rows may be claimed, and is the condition of the index work_ready.
	ready = `owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes<2`
	// leased is how rows are claimed that are locked as due.
	leased = `, c AS (UPDATE work w SET owner=$1, fence=w.fence+1, ready_at=NULL FROM due WHERE w.session=due.session AND EXISTS (SELECT FROM owners WHERE id=$1 AND until>now())
			RETURNING w.session, w.fence, w.lane, w.failures, w.crashes)
		SELECT c.*, s.session_id, s.sequence, m.machine_name FROM c JOIN sessions s ON s.id=c.session JOIN machines m ON m.id=s.machine`

	// claim takes n ready sessions, of as many machines as there are, which the index is skipped through
	// for. $3 is how many of a machine there may be, $4 and $5 how many there are, $6 and $7 the
	// sessions and machines that are left to others.
	claim = `WITH RECURSIVE lanes AS (
		(SELECT lane FROM work WHERE lane IS NOT NULL AND ` + ready + ` ORDER BY lane LIMIT 1)
		UNION ALL
		SELECT (SELECT w.lane FROM work w WHERE w.lane>l.lane AND ` + ready + ` ORDER BY w.lane LIMIT 1) FROM lanes l WHERE l.lane IS NOT NULL
	), rooms AS (
		SELECT l.lane, $3-coalesce(h.n, 0) AS room FROM lanes l
		LEFT JOIN (SELECT m.id, x.n FROM unnest($4::text[], $5::int[]) x(name, n) JOIN machines m ON m.machine_name=x.name) h ON h.id=l.lane WHERE l.lane IS NOT NULL AND l.lane<>ALL($7::bigint[])
	), picked AS MATERIALIZED (
		SELECT lane, room, count(*) OVER () AS n FROM rooms WHERE room>0 ORDER BY random() LIMIT $2
	), due AS MATERIALIZED (
		SELECT d.session FROM picked, LATERAL (
			SELECT session FROM work WHERE lane=picked.lane AND ready_at<=now() AND ` + ready + ` AND session<>ALL($6::bigint[])
			ORDER BY ready_at LIMIT least(picked.room, ceil($2::float8/least(picked.n, $2)))::int FOR UPDATE SKIP LOCKED) d
		LIMIT $2
	)` + leased

	// suspect takes one that has ended two processes, if that is what has.
	suspect = `WITH due AS MATERIALIZED (
		SELECT session FROM work WHERE lane IS NOT NULL AND ready_at<=now() AND owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes>=2 AND session<>ALL($2::bigint[]) AND lane<>ALL($3::bigint[])
		ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED
	)` + leased
)

// Claim implements [session.Worker].
func (w *worker) Claim(ctx context.Context, want session.Wanted) (list []session.Lease, err error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	room := want.PerMachine
	sessions, machines := w.left.now()
	if room <= 0 {
		room = want.Sessions
	}
	holds := map[string]int{}
	if want.PerMachine > 0 {
		for name, n := range want.Held {
			holds[name] = n
		}
	}
	for before := -1; len(list) < want.Sessions && len(list) > before; { // machines of which there were few leave room for others
		before = len(list)
		var names []string
		var numbers []int32
		for name, n := range holds {
			names, numbers = append(names, name), append(numbers, int32(n))
		}
		got, err := w.claim(ctx, claim, w.id, want.Sessions-len(list), room, names, numbers, sessions, machines)
		if err != nil {
			return list, err
		}
		list = append(list, got...)
		for i := range got {
			if want.PerMachine > 0 {
				holds[got[i].MachineName]++
			}
		}
	}
	if len(list) < want.Sessions && !w.suspects() {
		got, err := w.claim(ctx, suspect, w.id, sessions, machines)
		if err != nil {
			return list, err
		}
		list = append(list, got...)
	}
	return list, nil
}

// claim runs a claim and notes what came of it. w.sending is held.
func (w *worker) claim(ctx context.Context, text string, args ...any) (list []session.Lease, err error) {
	if !w.s.owners.lives(w.owner.Name()) {
		return nil, session.ErrOwnerLost
	}
	if err := w.s.tooOld(); err != nil {
		return nil, err
	}
	var leases []*lease
	err = w.send(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		list, leases = nil, nil
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			l, is := session.Lease{}, &lease{by: w}
			if err := rows.Scan(&is.row, &is.fence, &is.machine, &l.Failures, &l.Crashes, (*[16]byte)(&l.Session), &l.Sequence, &l.MachineName); err != nil {
				return err
			}
			is.counts, is.suspect = l.Failures+l.Crashes > 0, l.Crashes >= mostCrashes-1
			list, leases = append(list, l), append(leases, is)
		}
		return rows.Err()
	})
	switch {
	case w.alive.Err() != nil:
		return nil, session.ErrOwnerLost
	case err != nil:
		return nil, err
	}
	h := &w.s.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == nil {
		h.leases = map[specialist.SessionID]*lease{}
	}
	for i, l := range leases {
		h.leases[list[i].Session] = l
	}
	return list, nil
}

// suspects reports whether a session is held that may end this process.
func (w *worker) suspects() bool {
	h := &w.s.held
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.leases {
		if l.by == w && l.suspect {
			return true
		}
	}
	return false
}
