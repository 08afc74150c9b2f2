package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/groupcommit"
)

// All writing goes through one connection, since SQLite has one writer. Those who wait for it
// commit together (store/internal/groupcommit says how): whoever leads begins a transaction, has
// each job write, sees that the files are still those that it opened, and commits.
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
	refuses func(ctx context.Context) error                  // why nothing may be written now; nil if that is never so

	path  string // of the file; "" if it is only read
	watch watch
	wrote bool  // something was committed
	gone  error // what watch found; nothing is committed any more

	queue *groupcommit.Queue[*job]
}

// A job is one commit.
type job struct {
	ctx   context.Context
	write func(ctx context.Context) error                 // with statements that were prepared for it
	alone func(ctx context.Context, conn *sql.Conn) error // in place of write: with no transaction under way
	err   error                                           // what became of it
}

// Fail implements [groupcommit.Job].
func (j *job) Fail(err error) { j.err = err }

// errSkip wraps an error that concerns one job only: the others of its batch are
// committed.
type skipError struct{ error }

func (e skipError) Unwrap() error { return e.error }

func skip(err error) error { return skipError{err} }

func newCommitter(ctx context.Context, db *sql.DB, path string, observe func(int, time.Duration, error), prepare func(*preparer)) (*committer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &committer{conn: conn, observe: observe}
	c.queue = groupcommit.New(c.commit)
	if err := c.prepare(ctx, prepare); err != nil {
		c.release()
		return nil, err
	}
	if path != "" {
		c.path, c.watch = path, watchFiles(path)
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

// A fullError says which file there was no room for.
type fullError struct {
	path string
	err  error
}

func (e *fullError) Error() string { return fmt.Sprintf("%v, for %s", e.err, e.path) }

func (e *fullError) Unwrap() error { return e.err }

// Public says it to whoever need not know where the store is.
func (e *fullError) Public() string { return ErrFull.Error() }

// do hands in a job and waits until it is durable, or is not going to be.
func (c *committer) do(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	if err := c.queue.Do(j); err != nil {
		return err
	}
	if errors.Is(j.err, ErrFull) && c.path != "" && !errors.As(j.err, new(*fullError)) {
		return &fullError{c.path, j.err}
	}
	return j.err
}

// close waits for the jobs handed in; none is taken any more. It returns an error that
// wraps ErrReplaced if what was committed is gone.
func (c *committer) close() error {
	if !c.queue.Close() {
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
	if c.refuses != nil {
		if err := c.refuses(ctx); err != nil {
			return err
		}
	}
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
