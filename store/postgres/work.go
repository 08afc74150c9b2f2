package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// Who carries which session on. Each live session has a row in work, which says when a step would do
// something (ready_at) and which owner has leased it. A claim takes ready rows, SKIP LOCKED, from as many
// machines as it can, of each those that have waited longest, and gives each a new fence. A release with
// that fence says when the session is ready again; one with an older fence changes nothing.
//
// Whoever commits to a session writes to its row in the same statement (work_commit.go), but for the
// holder of its lease, who says it all when it releases. A commit makes the moment earlier and a release
// keeps the earlier one, so nothing that was committed during a step is slept over.
//
// A lease is its owner's. With its renewal each process frees the sessions of owners that are dead, and
// those of its own that it does not know to hold: what a claim whose answer was lost has taken, and what
// a release that was lost has kept. Claims and releases are not waited for to be durable: one that a crash
// of the server takes back is found in that way.
//
// A session that fails again and again is handed out later each time, then not at all. So is one whose
// process ended three times while it was held. A process that holds one of which that is so twice holds
// no second one, so that who is innocent gets a process of its own, and a commit of it clears it.

const (
	mostFailures = 8 // steps in a row; then it is quarantined
	mostCrashes  = 3 // processes
	reapedAtOnce = 1000
	shunned      = 1000 // sessions that this process leaves to others, at most
	workWithin   = 10 * time.Second
)

// A worker is this process as one that claims sessions.
type worker struct {
	s     *Store
	owner session.Owner
	id    int64 // owners.id
	news  chan struct{}
	alive context.Context // done once the leases may be others'
	lose  context.CancelFunc
	end   context.CancelFunc
	tends sync.WaitGroup

	sending sync.Mutex // held while something is sent, so that what the store has and what is held are the same
	conn    *pgx.Conn
	shun    map[int64]time.Time // until when sessions are left to others
}

// held is what this process has leased.
type held struct {
	mu     sync.Mutex
	leases map[specialist.SessionID]*lease
}

// A lease is of a session, by a worker of this process. What is below is guarded by held.mu.
type lease struct {
	by         *worker
	row, fence int64
	suspect    bool // two processes have ended that held it

	counts  bool          // something has failed since the last commit
	commits int           // under way
	last    int64         // the newest event that was committed here
	idle    chan struct{} // closed when no commit is under way any more; nil if nobody waits for it
}

// Join implements [session.WorkStore].
func (s *Store) Join(ctx context.Context) (session.Worker, error) {
	w, err := s.join(ctx)
	if newer, ok := errors.AsType[*store.NewerError](err); ok {
		err = outgrown(newer.Has)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *Store) join(ctx context.Context) (*worker, error) {
	if has := s.form.Load(); has > format {
		return nil, outgrown(has)
	}
	if _, err := query(ctx, s, pgx.RowTo[int64], missingWork); err != nil {
		return nil, err
	}
	owner, err := s.Claim(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := query(ctx, s, pgx.RowTo[int64], `UPDATE owners SET works=true, skew_msec=$2 WHERE name=$1 RETURNING id`, owner.Name(), s.Skew().Milliseconds())
	if err == nil && len(ids) == 0 {
		err = session.ErrOwnerLost
	}
	if err != nil {
		return nil, errors.Join(err, owner.Release())
	}
	w := &worker{s: s, owner: owner, id: ids[0], news: make(chan struct{}, 1), shun: map[int64]time.Time{}}
	w.alive, w.lose = context.WithCancel(context.Background())
	s.wakes.listen(w.news)
	tending, end := context.WithCancel(s.closing)
	w.end = end
	w.tends.Go(func() { w.listens(tending) })
	w.tends.Go(func() { w.reaps(tending) })
	return w, nil
}

// outgrown is the error of a process that is too old for a store since others have written to it.
func outgrown(form int64) error {
	return &session.NewerError{What: "the store", Has: fmt.Sprintf("it is of form %d", form)}
}

// missingWork makes the rows of live sessions that have none: which an older program has started, or that
// were copied here. Whether anybody is to carry them on is seen when they are looked at.
const missingWork = `INSERT INTO work (session, lane, ready_at) SELECT s.id, s.machine, ` + wakeOf + `
	FROM sessions s WHERE s.status<2 AND NOT EXISTS (SELECT FROM work w WHERE w.session=s.id) ON CONFLICT DO NOTHING`

// wakeOf is when a session s is to be woken, as far as its row says.
const wakeOf = `CASE WHEN s.status=0 AND s.code<>'timer' THEN now() WHEN s.timer_at>0 THEN to_timestamp(s.timer_at/1000.0) END`

// listens waits until ctx is done, or the leases are lost: whatever is sent by then is given up.
func (w *worker) listens(ctx context.Context) {
	tick := time.NewTicker(w.s.options.hurried(time.Second))
	defer tick.Stop()
	for ctx.Err() == nil {
		if !w.s.owners.lives(w.owner.Name()) {
			w.s.held.drop(w)
			w.s.wakes.forget(w.news)
			w.lose()
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// reaps reaps as often as owners are renewed, until ctx is done.
func (w *worker) reaps(ctx context.Context) {
	tick := time.NewTicker(w.s.options.hurried(renewEvery))
	defer tick.Stop()
	for ctx.Err() == nil && w.alive.Err() == nil {
		_ = w.reap(ctx) // or next time
		select {
		case <-ctx.Done():
		case <-w.alive.Done():
		case <-tick.C:
		}
	}
}

// drop forgets the leases of a worker.
func (h *held) drop(w *worker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, l := range h.leases {
		if l.by == w {
			delete(h.leases, id)
		}
	}
}

// News implements [session.Worker].
func (w *worker) News() <-chan struct{} { return w.news }

// Lost implements [session.Worker].
func (w *worker) Lost() <-chan struct{} { return w.alive.Done() }

// send runs f with the connection of the worker, twice if it breaks; it ends with ErrOwnerLost once the worker is
// lost. w.sending is held.
func (w *worker) send(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	defer context.AfterFunc(w.alive, cancel)()
	err := w.sendIt(ctx, f)
	if err != nil && w.alive.Err() != nil {
		return session.ErrOwnerLost
	}
	return err
}

func (w *worker) sendIt(ctx context.Context, f func(context.Context, *pgx.Conn) error) (err error) {
	for range 2 {
		if w.conn == nil || w.conn.IsClosed() {
			if w.conn, err = w.s.connect(ctx); err != nil {
				w.conn = nil
				return w.s.translate(err)
			}
			// Nothing that is lost matters, and what is sorted by is in an index whatever the statistics say.
			if _, err = w.conn.Exec(ctx, `SET synchronous_commit=off; SET enable_seqscan=off; SET enable_bitmapscan=off; SET jit=off`); err != nil {
				w.conn.Close(ctx)
				return w.s.translate(err)
			}
		}
		if err = f(ctx, w.conn); err == nil || !w.conn.IsClosed() && !deadlocked(err) {
			return w.s.translate(err)
		}
	}
	return w.s.translate(err)
}

const (
	// ready is which rows may be claimed, and is the condition of the index work_ready.
	ready = `owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes<2`
	// leased is how rows are claimed that are locked as due.
	leased = `, c AS (UPDATE work w SET owner=$1, fence=w.fence+1, ready_at=NULL FROM due WHERE w.session=due.session AND EXISTS (SELECT FROM owners WHERE id=$1 AND until>now())
			RETURNING w.session, w.fence, w.failures, w.crashes)
		SELECT c.*, s.session_id, s.sequence, m.machine_name FROM c JOIN sessions s ON s.id=c.session JOIN machines m ON m.id=s.machine`

	// claim takes n ready sessions, of as many machines as there are, which the index is skipped through
	// for. $3 is how many of a machine there may be, $4 and $5 how many there are, $6 what is shunned.
	claim = `WITH RECURSIVE lanes AS (
		(SELECT lane FROM work WHERE lane IS NOT NULL AND ` + ready + ` ORDER BY lane LIMIT 1)
		UNION ALL
		SELECT (SELECT w.lane FROM work w WHERE w.lane>l.lane AND ` + ready + ` ORDER BY w.lane LIMIT 1) FROM lanes l WHERE l.lane IS NOT NULL
	), rooms AS (
		SELECT l.lane, $3-coalesce(h.n, 0) AS room FROM lanes l
		LEFT JOIN (SELECT m.id, x.n FROM unnest($4::text[], $5::int[]) x(name, n) JOIN machines m ON m.machine_name=x.name) h ON h.id=l.lane WHERE l.lane IS NOT NULL
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
		SELECT session FROM work WHERE lane IS NOT NULL AND ready_at<=now() AND owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes>=2 AND session<>ALL($2::bigint[])
		ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED
	)` + leased
)

// Claim implements [session.Worker].
func (w *worker) Claim(ctx context.Context, want session.Wanted) (list []session.Lease, err error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	room, shun := want.PerMachine, w.shuns()
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
		got, err := w.claim(ctx, claim, w.id, want.Sessions-len(list), room, names, numbers, shun)
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
		got, err := w.claim(ctx, suspect, w.id, shun)
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
	if has := w.s.form.Load(); has > format {
		return nil, outgrown(has)
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
			if err := rows.Scan(&is.row, &is.fence, &l.Failures, &l.Crashes, (*[16]byte)(&l.Session), &l.Sequence, &l.MachineName); err != nil {
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

// shuns returns the sessions that are left to others. w.sending is held.
func (w *worker) shuns() []int64 {
	list := []int64{}
	for row, until := range w.shun {
		if time.Now().After(until) {
			delete(w.shun, row)
		} else {
			list = append(list, row)
		}
	}
	return list
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
		switch {
		case r.Elsewhere > 0 && len(w.shun) < shunned:
			w.shun[r.row] = time.Now().Add(r.Elsewhere)
		case r.Elsewhere > 0: // there are too many to remember, so nobody has it meanwhile
			ms = max(ms, r.Elsewhere.Milliseconds())
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

// released gives sessions back. They are locked in the order in which commits lock them.
const released = `WITH r AS MATERIALIZED (
		SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bool[]) r(session, fence, ms, failed, undriven)
	), l AS MATERIALIZED (
		SELECT w.session FROM r JOIN work w ON w.session=r.session WHERE w.owner=$1 AND w.fence=r.fence ORDER BY w.session FOR UPDATE OF w
	)
	UPDATE work w SET owner=NULL,
		lane=CASE WHEN NOT r.undriven THEN w.lane END,
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

// reap frees the sessions of owners that are dead, and those that this one has without knowing it.
func (w *worker) reap(ctx context.Context) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	mine := []int64{}
	h := &w.s.held
	h.mu.Lock()
	for _, l := range h.leases {
		if l.by == w {
			mine = append(mine, l.row)
		}
	}
	h.mu.Unlock()
	var freed int64
	err := w.send(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, reaped, reapedAtOnce, mostCrashes, []byte(fmt.Sprintf("%d processes have ended one after the other while they carried it on", mostCrashes)))
		if err != nil {
			return err
		}
		freed = tag.RowsAffected()
		tag, err = conn.Exec(ctx, `WITH s AS (SELECT session FROM work WHERE owner=$1 AND session<>ALL($2::bigint[]) ORDER BY session FOR UPDATE SKIP LOCKED)
			UPDATE work w SET owner=NULL, ready_at=now() FROM s WHERE w.session=s.session`, w.id, mine)
		freed += tag.RowsAffected()
		if err == nil {
			_, err = conn.Exec(ctx, `UPDATE owners SET skew_msec=$2 WHERE id=$1 AND abs(skew_msec-$2)>100`, w.id, w.s.Skew().Milliseconds())
		}
		return err
	})
	if freed > 0 {
		w.s.wakes.ready()
	}
	return err
}

const reaped = `WITH gone AS MATERIALIZED (
		SELECT w.session FROM work w WHERE w.owner IS NOT NULL AND NOT EXISTS (SELECT FROM owners o WHERE o.id=w.owner AND o.until>now())
		ORDER BY w.session LIMIT $1 FOR UPDATE OF w SKIP LOCKED
	)
	UPDATE work w SET owner=NULL, ready_at=now(), crashes=w.crashes+1, quarantined=CASE WHEN w.crashes+1>=$2 THEN $3::bytea ELSE w.quarantined END
	FROM gone WHERE w.session=gone.session`

// Close implements [session.Worker]. Of one that is lost nothing is left to give back.
func (w *worker) Close(ctx context.Context) error {
	w.end()
	w.tends.Wait()
	w.s.wakes.forget(w.news)
	defer w.hangUp(ctx)
	if w.alive.Err() != nil {
		return nil
	}
	var left []session.Release
	h := &w.s.held
	h.mu.Lock()
	for id, l := range h.leases {
		if l.by == w {
			left = append(left, session.Release{Session: id, Sequence: l.last})
		}
	}
	h.mu.Unlock()
	err := w.Release(ctx, left...)
	if err == nil {
		err = w.reap(ctx)
	}
	return errors.Join(err, w.owner.Release())
}

// hangUp closes the connection.
func (w *worker) hangUp(ctx context.Context) {
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.conn != nil {
		w.conn.Close(ctx)
	}
}

// Workers implements [session.WorkStore].
func (s *Store) Workers(ctx context.Context) ([]session.WorkerInfo, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (w session.WorkerInfo, err error) {
		var until time.Time
		err = row.Scan(&w.Name, &w.About, &until, &w.Leases, &w.SkewMsec)
		w.Until = specialist.TimeOf(until)
		return w, err
	}, `SELECT o.name, o.about, o.until, (SELECT count(*) FROM work w WHERE w.owner=o.id), o.skew_msec FROM owners o WHERE o.works AND o.until>now() ORDER BY o.id`)
}

// Quarantined implements [session.WorkStore].
func (s *Store) Quarantined(ctx context.Context, limit int) ([]session.Quarantined, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (q session.Quarantined, err error) {
		var reason []byte
		err = row.Scan((*[16]byte)(&q.Session), &q.MachineName, &reason, &q.Failures, &q.Crashes)
		q.Reason = string(reason)
		return q, err
	}, `SELECT s.session_id, m.machine_name, w.quarantined, w.failures, w.crashes FROM work w JOIN sessions s ON s.id=w.session JOIN machines m ON m.id=s.machine
		WHERE w.quarantined IS NOT NULL ORDER BY w.session LIMIT nullif($1, 0)`, limit)
}

// Free implements [session.WorkStore].
func (s *Store) Free(ctx context.Context, id specialist.SessionID) error {
	freed, err := query(ctx, s, pgx.RowTo[int64], `UPDATE work w SET quarantined=NULL, failures=0, crashes=0, ready_at=now() FROM sessions s WHERE s.session_id=$1 AND w.session=s.id AND w.quarantined IS NOT NULL RETURNING w.session`, [16]byte(id))
	if len(freed) > 0 {
		s.wakes.ready()
	}
	return err
}
