package postgres

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/fold"
)

// The log of all sessions, as who follows it reads it. Commits pass each other: one that has drawn its
// place may become visible after one with a higher place, and who had read that would miss it. So nobody
// reads further than to a fence: the newest place is read, then an id of a transaction is drawn. Whoever
// had drawn a place up to there had an id below that one, so once no transaction with a lower id is under
// way, all of them have ended, and nothing is missing up to there. That takes a millisecond; but a
// transaction of anybody that writes for long holds followers up, though not who commits.

const (
	fencePause = time.Millisecond // between two looks at who is under way, at first
	fenceWait  = 2 * time.Second  // then followers are told what was complete before
)

// A follower finds out up to where the log is complete.
type follower struct {
	s *Store

	mu       sync.Mutex
	complete int64     // the newest place up to which it is known to be; 0 if nobody has asked yet
	asked    *fence    // not begun yet
	late     time.Time // since when others have been writing for too long; zero if they have not
}

// A fence is put up for all who asked before it was.
type fence struct {
	up    chan struct{} // closed when it is
	place int64
	err   error
}

// upTo returns the place up to which the log is complete. Everything is that was committed before the call,
// unless others write for longer than is waited for.
func (f *follower) upTo() (int64, error) {
	f.mu.Lock()
	next := f.asked
	if next == nil {
		next = &fence{up: make(chan struct{})}
		f.asked = next
		f.mu.Unlock()
		runtime.Gosched()
		f.put(next)
	} else {
		f.mu.Unlock()
		<-next.up
	}
	return next.place, next.err
}

// put puts up a fence.
func (f *follower) put(next *fence) {
	defer close(next.up)
	f.mu.Lock()
	f.asked = nil // who comes now may know of something that is committed now
	f.mu.Unlock()
	place, ended, err := f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		next.err = err
	case ended:
		f.complete, f.late = max(f.complete, place), time.Time{}
	case f.complete == 0 && place > 0:
		next.err = fmt.Errorf("%w: a transaction has been writing for longer than %s, so nobody can tell up to where the log is complete", session.ErrBusy, fenceWait)
	}
	if err == nil && !ended && f.late.IsZero() {
		f.late = time.Now().Add(-fenceWait)
	}
	next.place = f.complete
}

// Behind returns for how long whoever follows the log has been held up by a transaction that writes, as far
// as somebody has asked; 0 if nobody is.
func (s *Store) Behind() time.Duration {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.late.IsZero() {
		return 0
	}
	return time.Since(s.log.late)
}

// look reads the newest place, and reports whether all who have drawn one up to there have ended.
func (f *follower) look() (place int64, ended bool, err error) {
	ctx := f.s.closing
	if place, err = one[int64](ctx, f.s, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM place`); err != nil {
		return 0, false, err
	}
	x, err := one[string](ctx, f.s, `SELECT pg_current_xact_id()::text`)
	if code(err) == readOnly { // no transaction begins at a standby, and none there knows of those of its server that have just begun
		place, err = one[int64](ctx, f.s, `SELECT coalesce(max(place), 0) FROM log`)
		return place, err == nil, err
	}
	for began, pause := time.Now(), fencePause; err == nil && !ended; pause = min(2*pause, 50*time.Millisecond) {
		if ended, err = one[bool](ctx, f.s, `SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8`, x); ended || time.Since(began) > fenceWait {
			break
		}
		time.Sleep(pause)
	}
	return place, ended, err
}

// Log implements [session.HistoryStore].
func (s *Store) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		complete, err := s.log.upTo()
		if err != nil {
			yield(session.LogEntry{}, err)
			return
		}
		entries := pages(ctx, s, func(row pgx.CollectableRow) (e session.LogEntry, err error) {
			err = row.Scan(&e.Place, (*[16]byte)(&e.Session), &e.MachineName, &e.First, &e.Events)
			return e, err
		}, func(last *session.LogEntry) (string, []any) {
			if last != nil {
				after = last.Place
			}
			return `SELECT l.place, s.session_id, m.machine_name, l.first, l.events FROM log l JOIN sessions s ON s.id=l.session JOIN machines m ON m.id=s.machine
				WHERE l.place>$1 AND l.place<=$2 AND ($3='' OR m.machine_name=$3) ORDER BY l.place LIMIT $4`, []any{after, complete, machineName, page}
		})
		for e, err := range entries {
			if err == nil {
				e.Events, err = fold.Unpack(nil, e.Events, e.First)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Place implements [session.HistoryStore].
func (s *Store) Place(ctx context.Context) (int64, error) {
	complete, err := s.log.upTo()
	if err != nil {
		return 0, err
	}
	return one[int64](ctx, s, `SELECT coalesce(max(place), 0) FROM log WHERE place<=$1`, complete)
}

// RosterLog implements [session.HistoryStore].
func (s *Store) RosterLog(ctx context.Context, machineName string, after int64) iter.Seq2[session.RosterEntry, error] {
	return s.rosterLog(ctx, machineName, after, math.MinInt64)
}

// rosterLog yields the records of a machine name, or with "" of all, after a place and from a sequence
// number on. They become visible in the order of their places, so nothing is missing before any of them.
func (s *Store) rosterLog(ctx context.Context, machineName string, after, from int64) iter.Seq2[session.RosterEntry, error] {
	return pages(ctx, s, func(row pgx.CollectableRow) (e session.RosterEntry, err error) {
		var prev, hash []byte
		err = row.Scan(&e.Place, &e.MachineName, &e.First, &e.Events, &prev, &hash)
		copy(e.Prev[:], prev)
		copy(e.Hash[:], hash)
		return e, err
	}, func(last *session.RosterEntry) (string, []any) {
		if last != nil {
			after = last.Place
		}
		return `SELECT r.place, m.machine_name, r.first, r.events, (SELECT p.hash FROM roster_log p WHERE p.machine=r.machine AND p.first<r.first ORDER BY p.first DESC LIMIT 1), r.hash
			FROM roster_log r JOIN machines m ON m.id=r.machine WHERE r.place>$1 AND r.first>=$2 AND ($3='' OR m.machine_name=$3) ORDER BY r.place LIMIT $4`, []any{after, from, machineName, page}
	})
}

// RosterPlace implements [session.HistoryStore].
func (s *Store) RosterPlace(ctx context.Context) (int64, error) {
	return one[int64](ctx, s, `SELECT coalesce(max(place), 0) FROM roster_log`)
}
