package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/groupcommit"
)

// A lane is one connection that commits. Those who wait for it commit together, one batch in one way
// to the server and back (store/internal/groupcommit says who leads): the statements are sent as a whole,
// and the server takes them for one transaction. They are in the order of the sessions' rows, so that two
// processes never wait for each other; should it happen all the same, the batch is tried again, then
// each job by itself.
//
// Where the answer does not come, for the connection broke or the server ended, nobody knows whether the
// batch was committed, and asking does not help: what was sent may still be under way. So the batch is
// sent again, byte for byte, on a new connection, until there is an answer. A record that is there
// already with the same hash was committed by the first attempt (commit.go). Only after a minute, or when
// the store is closed meanwhile, the jobs end with ErrUnknown.

const (
	unknownAfter     = time.Minute           // of sending again
	unreachableAfter = 10 * time.Second      // of trying to send at all
	closeWithin      = 2 * time.Second       // is waited for an answer once the store is closed
	firstPause       = 50 * time.Millisecond // between two attempts
	longestPause     = 5 * time.Second
)

// A lane is used by whoever leads its queue.
type lane struct {
	d       *database
	quiet   bool // nobody is told of its transactions
	ordered bool // its transactions are in the same order as their places, in all processes
	conn    *pgx.Conn
	queue   *groupcommit.Queue[*job]
}

func newLane(d *database, ordered bool) *lane {
	l := &lane{d: d, ordered: ordered}
	l.queue = groupcommit.New(l.commit)
	return l
}

// A job is one commit: of a change, or of something else in a transaction of its own.
type job struct {
	p     *pending                                               // nil for something else
	alone func(ctx context.Context, tx pgx.Tx, again bool) error // again says that it may have happened already
	err   error
}

// Fail implements [groupcommit.Job].
func (j *job) Fail(err error) { j.err = err }

// do hands in a job and waits until it is committed, or is not going to be.
func (l *lane) do(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.queue.Do(j); err != nil {
		return err
	}
	return j.err
}

// stop waits for the jobs handed in and closes the connection.
func (l *lane) stop() {
	if l.queue.Close() && l.conn != nil {
		l.conn.Close(context.Background())
	}
}

// commit commits a batch, what needs a transaction of its own apart.
func (l *lane) commit(batch []*job) {
	for len(batch) > 0 {
		n := slices.IndexFunc(batch, func(j *job) bool { return j.alone != nil })
		switch n {
		case -1:
			n = len(batch)
			l.together(batch)
		case 0:
			n = 1
			l.apart(batch[:1])
		default:
			l.together(batch[:n])
		}
		batch = batch[n:]
	}
}

// together commits changes in one transaction. If that fails for a reason that may lie in one of them,
// each is tried alone.
func (l *lane) together(batch []*job) {
	if len(batch) == 1 {
		l.apart(batch)
		return
	}
	batch = slices.Clone(batch)
	slices.SortStableFunc(batch, inOrder)
	err := l.tries(batch, 2)
	switch {
	case err == nil:
	case known(err) && !errors.Is(err, session.ErrBusy): // which may be of one
		for _, j := range batch {
			j.err = err
		}
	default:
		for i := range batch {
			l.apart(batch[i : i+1])
		}
	}
}

// apart commits a batch of one job.
func (l *lane) apart(batch []*job) {
	if err := l.tries(batch, 3); err != nil {
		batch[0].err = l.d.translate(err)
	}
}

// tries persists a batch, and tries again where it and others have waited for each other, n times in all.
func (l *lane) tries(batch []*job, n int) error {
	for {
		err := l.observed(batch)
		if n--; n == 0 || !deadlocked(err) {
			return err
		}
	}
}

// inOrder compares jobs by what they lock: rows that are there by their numbers, then those that are made.
func inOrder(a, b *job) int {
	switch {
	case a.p.New != b.p.New && b.p.New:
		return -1
	case a.p.New != b.p.New:
		return 1
	case a.p.New:
		return bytes.Compare(a.p.id[:], b.p.id[:])
	}
	return int(min(1, max(-1, a.p.row-b.p.row)))
}

func deadlocked(err error) bool { c := code(err); return (c == "40P01" || c == "40001") && !known(err) }

// observed is persist, told to whoever wants to know.
func (l *lane) observed(batch []*job) error {
	if l.d.options.Observe == nil || l.quiet {
		return l.persist(batch)
	}
	began := time.Now()
	err := l.persist(batch)
	l.d.options.Observe(len(batch), time.Since(began), err)
	return err
}

// persist sends a batch until there is an answer.
func (l *lane) persist(batch []*job) error {
	began, sent, pause := time.Now(), false, firstPause
	for {
		came, err := l.attempt(batch, sent)
		switch {
		case err == nil:
			return nil
		case came == answered && deadlocked(err) && !sent:
			return err
		case came == answered && (!sent || definite(err)):
			return l.d.translate(err)
		case came == unanswered:
			sent = true
		}
		limit := unreachableAfter
		if sent {
			limit = unknownAfter
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.d.closing.Done():
			timer.Stop()
			limit = 0
		}
		if time.Since(began) >= limit {
			if sent {
				return fmt.Errorf("%w: %s does not answer (%w)", session.ErrUnknown, l.d.address, reason(err))
			}
			return l.d.translate(err)
		}
		pause = min(2*pause, longestPause)
	}
}

// An outcome says what is known after a batch was sent.
type outcome int

const (
	unsent     outcome = iota // nothing of it has happened, and the next attempt may do better
	unanswered                // it may have happened
	answered                  // it has, or it has not, as the error says
)

// attempt sends a batch once. again says that the batch was sent before.
func (l *lane) attempt(batch []*job, again bool) (came outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.d.options.hurried(cmp.Or(l.d.answer, answerWithin))) // a job that was handed in is finished
	defer cancel()
	defer context.AfterFunc(l.d.closing, func() { time.AfterFunc(closeWithin, cancel) })()
	if l.conn == nil || l.conn.IsClosed() {
		if l.conn, err = l.d.connect(ctx); err != nil {
			l.conn = nil
			return unsent, err
		}
	}
	came = unanswered
	defer func() {
		if came != answered { // or this panics, and the connection is in the midst of something
			l.conn.Close(ctx)
		}
	}()
	err = l.send(ctx, batch, again)
	switch c := code(err); {
	case err == nil || known(err):
		came = answered
	case errors.As(err, new(*commitError)):
	case c == readOnly: // what it leads to is a standby now
		came = unsent
	case lost(c) || c == "" && (broken(err) || l.conn.IsClosed()):
		if pgconn.SafeToRetry(err) {
			came = unsent
		}
	default:
		came = answered
	}
	return came, err
}

// send sends a batch over the connection that there is.
func (l *lane) send(ctx context.Context, batch []*job, again bool) (err error) {
	if j := batch[0]; j.alone != nil {
		return l.sendAlone(ctx, j, again)
	}
	var send pgx.Batch
	if l.ordered {
		send.Queue(inTurn, l.d.lock)
	}
	queueDefinitions(&send, batch)
	for _, j := range batch {
		send.Queue(j.p.statement, j.p.args...).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&j.p.place, &j.p.row)
			if j.p.committed = err == nil; errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if j.p.ends {
			send.Queue(endWork, j.p.row)
		}
	}
	if err := l.conn.SendBatch(ctx, &send).Close(); err != nil {
		return err
	}
	for _, j := range batch {
		if j.err = nil; !j.p.committed {
			if j.err, err = j.p.refused(ctx, l.conn); err != nil {
				return err
			}
		}
	}
	return nil
}

// A commitError says that a transaction was to be committed, and no answer has come. The error of the library
// may be that it could not be asked for another thing, as if nothing had been sent.
type commitError struct{ error }

func (e *commitError) Unwrap() error { return e.error }

// sendAlone sends a job in a transaction of its own.
func (l *lane) sendAlone(ctx context.Context, j *job, again bool) error {
	tx, err := l.conn.Begin(ctx)
	if err != nil {
		return err
	}
	if l.ordered {
		_, err = tx.Exec(ctx, inTurn, l.d.lock)
	}
	if err == nil {
		err = j.alone(ctx, tx, again)
	}
	if err != nil {
		_ = tx.Rollback(ctx) // or the connection ends, and it with that
		return err
	}
	if err = tx.Commit(ctx); err != nil && code(err) == "" && !errors.Is(err, pgx.ErrTxCommitRollback) {
		err = &commitError{err}
	}
	return err
}

// inTurn waits until all transactions before it that are in order have ended.
const inTurn = `SELECT pg_advisory_xact_lock($1)`
