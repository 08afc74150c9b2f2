package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A lease is its owner's. With its renewal each process frees the sessions of owners that are dead, and
// those of its own that it does not know to hold: what a claim whose answer was lost has taken, and what
// a release that was lost has kept. Claims and releases are not waited for to be durable: one that a crash
// of the server takes back is found in that way.

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
