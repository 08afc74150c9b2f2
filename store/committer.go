package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/session"
)

// All writing goes through one goroutine and one connection, since SQLite has one
// writer. It takes what is waiting, begins a transaction, sees whether another process
// has written, has each job write, sees that the files are still those that it opened,
// and commits; only then does anybody who waits learn what became of their job.
//
// A job that is refused (skipError: it lost a race, say) leaves the others of its batch
// alone. If anything else fails the transaction is rolled back and each job is tried
// again by itself, so that a broken one harms only itself. A job that was handed in is
// finished, whatever becomes of its context. Once the files were replaced nothing is
// committed any more.

// A committer owns the one connection that writes. Everybody who wants to
// commit hands it a job and waits; jobs that wait together share a transaction
// and so an fsync. It commits as soon as its queue stops growing, so a lone job
// is never delayed.
type committer struct {
	conn  *sql.Conn
	jobs  chan *job
	done  chan struct{}
	begin *sql.Stmt
	end   *sql.Stmt
	all   []*sql.Stmt // of conn

	dataVersion *sql.Stmt
	seen        int64 // last data_version: it changes when another connection writes

	observe func(commits int, took time.Duration, err error) // nil is told nothing

	watch watch
	wrote bool  // something was committed
	gone  error // what watch found; nothing is committed any more

	mu     sync.RWMutex
	closed bool
}

// A job is one commit.
type job struct {
	ctx     context.Context
	write   func(ctx context.Context) error                 // with statements that were prepared for it
	alone   func(ctx context.Context, conn *sql.Conn) error // in place of write: with no transaction under way
	err     error                                           // what became of it
	foreign bool                                            // somebody outside this process has written since the last batch
	ready   chan struct{}
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
	c := &committer{conn: conn, observe: observe, jobs: make(chan *job, maxBatch), done: make(chan struct{})}
	if err := c.prepare(ctx, prepare); err != nil {
		c.release()
		return nil, err
	}
	if path != "" {
		c.watch = watchFiles(path)
	}
	go c.run()
	return c, nil
}

func (c *committer) prepare(ctx context.Context, prepare func(*preparer)) error {
	p := preparer{ctx: ctx, conn: c.conn}
	p.prepare(&c.begin, `BEGIN IMMEDIATE`)
	p.prepare(&c.end, `COMMIT`)
	p.prepare(&c.dataVersion, `PRAGMA data_version`)
	prepare(&p)
	c.all = p.all
	if p.err != nil {
		return p.err
	}
	return c.dataVersion.QueryRowContext(ctx).Scan(&c.seen)
}

// A preparer prepares statements and keeps the first error.
type preparer struct {
	ctx  context.Context
	conn *sql.Conn
	all  []*sql.Stmt
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
	j.ready = make(chan struct{})
	c.mu.RLock()
	if c.closed {
		c.mu.RUnlock()
		return errClosed
	}
	c.jobs <- j
	c.mu.RUnlock()
	<-j.ready
	return j.err
}

// close waits for the jobs handed in and ends the committer. It returns an error that
// wraps ErrReplaced if what was committed is gone.
func (c *committer) close() error {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	if already {
		return nil
	}
	close(c.jobs)
	<-c.done
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

func (c *committer) run() {
	defer close(c.done)
	batch := make([]*job, 0, maxBatch)
	for first := range c.jobs {
		batch = append(batch[:0], first)
		batch = c.gather(batch)
		c.commit(batch)
		for _, j := range batch {
			close(j.ready)
		}
	}
}

// gather takes what else is waiting, until yielding brings no more.
func (c *committer) gather(batch []*job) []*job {
	for yielded := false; len(batch) < maxBatch; {
		select {
		case j, open := <-c.jobs:
			if !open {
				return batch
			}
			batch, yielded = append(batch, j), false
			continue
		default:
		}
		if yielded {
			return batch
		}
		runtime.Gosched()
		yielded = true
	}
	return batch
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
	if _, err := c.begin.ExecContext(ctx); err != nil {
		return translate(err)
	}
	defer func() {
		if err != nil {
			c.conn.ExecContext(ctx, `ROLLBACK`)
			err = translate(err)
		}
	}()
	var version int64
	if err := c.dataVersion.QueryRowContext(ctx).Scan(&version); err != nil {
		return err
	}
	foreign := version != c.seen
	c.seen = version
	for _, j := range batch {
		j.foreign, j.err = foreign, nil
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
	if _, err = c.end.ExecContext(ctx); err != nil {
		return err
	}
	c.wrote = true
	if !c.here() {
		return c.gone
	}
	return nil
}
