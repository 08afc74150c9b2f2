package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
)

// No log says who carries a session on and when, but each says what a row of work (work.go) may not be: a
// live session without one, or without a lane, or one that is ready too late, is carried on by nobody, and
// nothing else would tell. That a row is early costs a step in vain, and is no difference.
//
// Moments in work are of the clock of the database and those in logs of who wrote them, so they are not
// compared: what is, is how long after its last commit a session is to be woken, and how long from now.

// wokenWithin is by how much later a session may be ready than its log says: steps that failed, and
// programs with drivers of their own, put them off.
const wokenWithin = time.Hour

// A workRow is a row of work, as of the moment of the check.
type workRow struct {
	lane, owner *int64
	readyMsec   *int64 // from now on; nil: not before a commit
	counts      bool   // what it counts can be
	quarantined bool
}

// readWork reads the rows of work of some sessions, by sessions.id.
func (a *audit) readWork(ctx context.Context, rows []sessionRow) error {
	if clear(a.work); len(rows) == 0 {
		return nil
	}
	var id int64
	var w workRow
	return a.each(ctx, `SELECT session, lane, owner, (extract(epoch FROM ready_at-now())*1000)::bigint, least(fence, failures, crashes)>=0, quarantined IS NOT NULL FROM work WHERE session BETWEEN $1 AND $2`,
		[]any{&id, &w.lane, &w.owner, &w.readyMsec, &w.counts, &w.quarantined}, func() { a.work[id], w = w, workRow{} }, rows[0].id, rows[len(rows)-1].id)
}

// checkWork finds a session that nobody would carry on though there is something to do with it.
func (a *audit) checkWork(row int64, s *session.Session) {
	w, there := a.work[row]
	what := ""
	switch late, never := wakeLate(s); {
	case !s.Status.Live():
		return // checkStrayWork
	case !there && a.workers == 0:
		return // the next process that joins makes it
	case !there:
		what = "it lives and has no row"
	case w.lane != nil && a.machines[int(*w.lane)] != s.Machine().Name():
		what = "its lane is not its machine"
	case w.lane == nil && s.Options().Driver == session.DriverPool:
		what = "it has no lane, and a driver is to carry it on"
	case w.owner != nil && w.quarantined:
		what = "it is leased and quarantined"
	case !w.counts:
		what = "a count is negative"
	case w.lane == nil || w.owner != nil || w.quarantined || never:
	case w.readyMsec == nil:
		what = "there is something to do with it, and it is never ready"
	case *w.readyMsec > late.Milliseconds():
		what = "it is ready later than its log says"
	}
	if what != "" {
		a.differs(inRows, s.ID.String(), 0, "its row in work: %s", what)
	}
}

// wakeLate returns after how long from any moment on a session has to be ready at the latest. never
// says that it need not be before somebody commits.
func wakeLate(s *session.Session) (late time.Duration, never bool) {
	at := s.WakeAt()
	if s.Status == session.Running && !s.Waits() && (len(s.OpenAsks()) == 0 || !s.OnlyLate()) {
		return wokenWithin, false
	}
	return time.Duration(max(0, at-s.UpdatedAt))*time.Millisecond + wokenWithin, at == 0
}

// countWorkers notes how many processes carry sessions on: the first of them has made the rows that were missing.
func (a *audit) countWorkers(ctx context.Context) error {
	return a.tx.QueryRow(ctx, `SELECT count(*) FROM owners WHERE works AND until>now()`).Scan(&a.workers)
}

// checkStrayWork finds rows of sessions that have ended, or are not there: steps would be made of them for ever.
func (a *audit) checkStrayWork(ctx context.Context) error {
	var stray int
	err := a.tx.QueryRow(ctx, `SELECT count(*) FROM work w WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id=w.session AND s.status<2)`).Scan(&stray)
	if stray > 0 {
		a.differs(inRows, "work", 0, "%d rows are of sessions that have ended, or are not there", stray)
	}
	return err
}

// rebuildWork makes the rows of work what they would be had every process given back all that it had. What
// is quarantined stays so. undriven are the sessions that nobody is to carry on, by sessions.id.
func rebuildWork(ctx context.Context, tx pgx.Tx, undriven []int64) error {
	for _, text := range []string{
		`DELETE FROM work w WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id=w.session AND s.status<2)`,
		missingWork,
		`UPDATE work w SET lane=s.machine, owner=NULL, ready_at=` + wakeOf + `, fence=greatest(w.fence, 0), failures=greatest(w.failures, 0), crashes=greatest(w.crashes, 0) FROM sessions s WHERE s.id=w.session`,
	} {
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE work SET lane=NULL WHERE session=ANY($1)`, undriven)
	return err
}
