package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/session"
)

// All writing goes through one connection, since SQLite has one writer. There is no
// goroutine that does it: whoever hands in a job while nobody commits takes the lead. It
// takes what is waiting, begins a transaction, has each job write, sees that the files are
// still those that it opened, and commits. Then it hands the lead to the first who came meanwhile, and only then does
// anybody of its batch learn what became of their job. So a lone commit costs no change of
// goroutines, and those who wait share one sync.
//
// A job that is refused (skipError: it lost a race, say) leaves the others of its batch
// alone. If anything else fails the transaction is rolled back and each job is tried
// again by itself, so that a broken one harms only itself. A job that was handed in is
// finished, whatever becomes of its context. Once the files were replaced nothing is
// committed any more.

// A committer owns the one connection that writes. Everybody who wants to
// commit hands it a job and waits; jobs that wait together share a transaction
// and so an fsync. A lone job is never delayed.
type committer struct {
	conn  *sql.Conn
	begin hot
	end   hot
	undo  hot
	all   []io.Closer // statements of conn

	observe func(commits int, took time.Duration, err error) // nil is told nothing

	watch watch
	wrote bool  // something was committed
	gone  error // what watch found; nothing is committed any more

	mu      sync.Mutex
	waiting []*job // handed in, and in no batch yet
	batch   []*job // of whoever leads
	leading bool   // somebody commits; else nobody waits
	led     sync.Cond
	closed  bool
}

// A job is one commit.
type job struct {
	ctx   context.Context
	write func(ctx context.Context) error                 // with statements that were prepared for it
	alone func(ctx context.Context, conn *sql.Conn) error // in place of write: with no transaction under way
	err   error                                           // what became of it
	lead  chan bool                                       // true to lead, false when it is done
}

// errSkip wraps an error that concerns one job only: the others of its batch are
// committed.
type skipError struct{ error }

func (e skipError) Unwrap() error { return e.error }

func skip(err error) error { return skipError{err} }

// maxBatch bounds how many jobs share a transaction.
const maxBatch = 256

func newCommitter(ctx context.Context, db *sql.DB, path string, observe func(int, time.Duration, error), prepare func(*preparer)) (*committer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &committer{conn: conn, observe: observe, batch: make([]*job, 0, maxBatch)}
	c.led.L = &c.mu
	if err := c.prepare(ctx, prepare); err != nil {
		c.release()
		return nil, err
	}
	if path != "" {
		c.watch = watchFiles(path)
	}
	return c, nil
}

func (c *committer) prepare(ctx context.Context, prepare func(*preparer)) error {
	p := preparer{ctx: ctx, conn: c.conn}
	p.hot(&c.begin, `BEGIN IMMEDIATE`)
	p.hot(&c.end, `COMMIT`)
	p.hot(&c.undo, `ROLLBACK`)
	prepare(&p)
	c.all = p.all
	return p.err
}

// A preparer prepares statements and keeps the first error.
type preparer struct {
	ctx  context.Context
	conn *sql.Conn
	all  []io.Closer
	err  error
}

func (p *preparer) prepare(into **sql.Stmt, query string) {
	if p.err != nil {
		return
	}
	if *into, p.err = p.conn.PrepareContext(p.ctx, query); p.err == nil {
		p.all = append(p.all, *into)
	}
}

// errClosed is returned after Close.
var errClosed = errors.New("the store is closed")

// do hands in a job and waits until it is durable, or is not going to be.
func (c *committer) do(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosed
	}
	c.waiting = append(c.waiting, j)
	lead := !c.leading
	if lead {
		c.leading = true
	} else {
		j.lead = make(chan bool, 1)
	}
	c.mu.Unlock()
	if lead || <-j.lead {
		c.lead()
	}
	return j.err
}

// lead commits the jobs that wait, the first of which is the caller's own, and passes the lead on.
func (c *committer) lead() {
	batch := c.gather()
	defer c.pass(batch) // whatever becomes of this goroutine
	c.commitSafely(batch)
}

// pass hands the lead on, and wakes the jobs of a batch.
func (c *committer) pass(batch []*job) {
	c.mu.Lock()
	done := slices.Clone(batch[1:])
	clear(batch)
	if len(c.waiting) > 0 {
		c.waiting[0].lead <- true
	} else {
		c.leading = false
		c.led.Broadcast()
	}
	c.mu.Unlock()
	for _, j := range done {
		j.lead <- false
	}
}

// close waits for the jobs handed in; none is taken any more. It returns an error that
// wraps ErrReplaced if what was committed is gone.
func (c *committer) close() error {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	for c.leading {
		c.led.Wait()
	}
	c.mu.Unlock()
	if already {
		return nil
	}
	if !c.here() {
		leaveLog(c.conn)
	}
	c.release()
	if !c.wrote {
		return nil
	}
	return c.gone
}

// here reports whether the store's files are still those that were opened.
func (c *committer) here() bool {
	if c.gone == nil {
		c.gone = c.watch.check()
	}
	return c.gone == nil
}

// release closes the statements, then the connection: SQLite keeps a connection
// with open statements, and with it the write-ahead log.
func (c *committer) release() {
	for _, s := range c.all {
		s.Close()
	}
	c.conn.Close()
}

// gather takes what waits; while that is more than one job, until yielding brings no more.
func (c *committer) gather() []*job {
	batch := c.batch[:0]
	for {
		c.mu.Lock()
		n := min(len(c.waiting), maxBatch-len(batch))
		batch = append(batch, c.waiting[:n]...)
		c.waiting = slices.Delete(c.waiting, 0, n)
		c.mu.Unlock()
		if n == 0 || len(batch) == 1 || len(batch) == maxBatch {
			return batch
		}
		runtime.Gosched()
	}
}

// commitSafely commits a batch; if that panics, or ends the goroutine, the batch fails.
func (c *committer) commitSafely(batch []*job) {
	returned := false
	defer func() {
		if v := recover(); !returned {
			for _, j := range batch {
				j.err = fmt.Errorf("panic while committing, so it may be stored or not: %v", v)
			}
		}
	}()
	c.commit(batch)
	returned = true
}

// commit writes a batch in one transaction. If that fails for a reason that may
// lie in one of its jobs, each is tried alone.
func (c *committer) commit(batch []*job) {
	if i := slices.IndexFunc(batch, func(j *job) bool { return j.alone != nil }); i >= 0 {
		c.commit(batch[:i])
		batch[i].err = c.alone(batch[i])
		c.commit(batch[i+1:])
		return
	}
	if len(batch) == 0 {
		return
	}
	err := c.observed(batch)
	if err == nil {
		return
	}
	if len(batch) == 1 || errors.Is(err, session.ErrBusy) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) || c.gone != nil {
		for _, j := range batch {
			j.err = err
		}
		return
	}
	for i := range batch {
		if err := c.observed(batch[i : i+1]); err != nil {
			batch[i].err = err
		}
	}
}

// alone does a job that has a transaction of its own.
func (c *committer) alone(j *job) error {
	if !c.here() {
		return c.gone
	}
	if err := j.alone(context.Background(), c.conn); err != nil {
		return translate(err)
	}
	if !c.here() {
		return c.gone
	}
	return nil
}

// writeSafely writes, and makes an error of a panic: the transaction is rolled back, and
// the jobs of other sessions are written without this one.
func (j *job) writeSafely(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic while writing: %v", v)
		}
	}()
	return j.write(ctx)
}

// observed is transaction, told to whoever wants to know.
func (c *committer) observed(batch []*job) error {
	if c.observe == nil {
		return c.transaction(batch)
	}
	began := time.Now()
	err := c.transaction(batch)
	c.observe(len(batch), time.Since(began), err)
	return err
}

func (c *committer) transaction(batch []*job) (err error) {
	ctx := context.Background() // a job that was handed in is finished
	if c.gone != nil {
		return c.gone
	}
	if _, err := c.begin.exec(); err != nil {
		return translate(err)
	}
	committed := false
	defer func() {
		if !committed { // it failed, or panics
			c.undo.exec()
			err = translate(err)
		}
	}()
	for _, j := range batch {
		j.err = nil
		err := j.writeSafely(ctx)
		var skipped skipError
		switch {
		case errors.As(err, &skipped):
			j.err = skipped.error
		case err != nil:
			return err
		}
	}
	if !c.here() {
		return c.gone
	}
	if _, err = c.end.exec(); err != nil {
		return err
	}
	c.wrote, committed = true, true
	if !c.here() {
		return c.gone
	}
	return nil
}
