package postgres

import (
	"context"
	"errors"
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
// The parts: claiming (work_claim.go), giving back (work_release.go), leaving to others what this process cannot
// step (work_left.go), and freeing what the dead have left (work_reap.go).

const (
	mostFailures = 8 // steps in a row; then it is quarantined
	mostCrashes  = 3 // processes
	reapedAtOnce = 1000
	leftAtMost   = 1000 // sessions that this process leaves to others, one by one
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
	left    left
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
	machine    int64 // work.lane
	suspect    bool  // two processes have ended that held it

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
	if err := s.tooOld(); err != nil {
		return nil, err
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
	w := &worker{s: s, owner: owner, id: ids[0], news: make(chan struct{}, 1)}
	w.alive, w.lose = context.WithCancel(context.Background())
	s.wakes.listen(w.news)
	tending, end := context.WithCancel(s.closing)
	w.end = end
	w.tends.Go(func() { w.listens(tending) })
	w.tends.Go(func() { w.reaps(tending) })
	return w, nil
}

// missingWork makes the rows of live sessions that have none: which an older program has started, or that
// were copied here. Whether anybody is to carry them on is seen when they are looked at. One that is being
// committed to is waited for and looked at again, for it may end; one that waits for this statement takes the row
// away when it ends (endWork).
const missingWork = `INSERT INTO work (session, lane, ready_at) SELECT s.id, s.machine, ` + wakeOf + `
	FROM sessions s WHERE s.status<2 AND NOT EXISTS (SELECT FROM work w WHERE w.session=s.id)
	ORDER BY s.id FOR SHARE OF s ON CONFLICT DO NOTHING`

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
func (s *Store) Quarantined(ctx context.Context, after specialist.SessionID, limit int) ([]session.Quarantined, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (q session.Quarantined, err error) {
		var reason []byte
		err = row.Scan((*[16]byte)(&q.Session), &q.MachineName, &reason, &q.Failures, &q.Crashes)
		q.Reason = string(reason)
		return q, err
	}, `SELECT s.session_id, m.machine_name, w.quarantined, w.failures, w.crashes FROM work w JOIN sessions s ON s.id=w.session JOIN machines m ON m.id=s.machine
		WHERE w.quarantined IS NOT NULL AND ($2='00000000-0000-0000-0000-000000000000'::uuid OR w.session>(SELECT id FROM sessions WHERE session_id=$2))
		ORDER BY w.session LIMIT nullif($1, 0)`, limit, [16]byte(after))
}

// Free implements [session.WorkStore].
func (s *Store) Free(ctx context.Context, id specialist.SessionID) error {
	freed, err := query(ctx, s, pgx.RowTo[int64], `UPDATE work w SET quarantined=NULL, failures=0, crashes=0, ready_at=now() FROM sessions s WHERE s.session_id=$1 AND w.session=s.id AND w.quarantined IS NOT NULL RETURNING w.session`, [16]byte(id))
	if len(freed) > 0 {
		s.wakes.ready()
	}
	return err
}
