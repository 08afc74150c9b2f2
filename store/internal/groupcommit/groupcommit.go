// Package groupcommit has those who wait to commit do it together.
package groupcommit

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// There is no goroutine that commits: whoever hands in a job while nobody commits takes the lead. It
// takes what is waiting, commits that, hands the lead to the first who came meanwhile, and only then does
// anybody of its batch learn what became of their job. So a lone commit costs no change of goroutines,
// and those who wait share one sync, or one way to a server and back.

// MaxBatch is how many jobs share a commit at most.
const MaxBatch = 256

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the store is closed")

// A Job is one commit. It keeps what became of it.
type Job interface {
	// Fail says that the job was being committed when that ended by a panic.
	Fail(err error)
}

// A Queue owns the one way by which jobs are committed. Jobs that wait together are a batch; a lone job
// is never delayed. It is made by [New]; its methods may be called concurrently.
type Queue[J Job] struct {
	commit func(batch []J)

	mu      sync.Mutex
	waiting []waiter[J]   // handed in, and in no batch yet
	batch   []J           // of whoever leads
	wake    []chan<- bool // those of the batch, but for the leader's
	leading bool          // somebody commits; else nobody waits
	led     sync.Cond
	closed  bool
}

type waiter[J Job] struct {
	job  J
	lead chan bool // true to lead, false when the job is done; nil of who leads at once
}

// New returns a Queue whose batches commit commits, one after the other. What it is given it must not
// keep; a job that it left as it was handed in has been committed.
func New[J Job](commit func(batch []J)) *Queue[J] {
	q := &Queue[J]{commit: commit, batch: make([]J, 0, MaxBatch), wake: make([]chan<- bool, 0, MaxBatch)}
	q.led.L = &q.mu
	return q
}

// Do hands in a job and waits until it is committed, or is not going to be, as the job says. It returns
// ErrClosed, and the job was not handed in, after Close.
func (q *Queue[J]) Do(j J) error {
	w := waiter[J]{job: j}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	lead := !q.leading
	if lead {
		q.leading = true
	} else {
		w.lead = make(chan bool, 1)
	}
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	if lead || <-w.lead {
		q.lead()
	}
	return nil
}

// Close waits for the jobs handed in; none is taken any more. It reports whether it is the first.
func (q *Queue[J]) Close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.closed
	q.closed = true
	for q.leading {
		q.led.Wait()
	}
	return first
}

// lead commits the jobs that wait, the first of which is the caller's own, and passes the lead on.
func (q *Queue[J]) lead() {
	q.gather()
	defer q.pass() // whatever becomes of this goroutine
	q.commitSafely(q.batch)
}

// gather takes what waits; while that is more than one job, until yielding brings no more.
func (q *Queue[J]) gather() {
	q.batch, q.wake = q.batch[:0], q.wake[:0]
	for {
		q.mu.Lock()
		n := min(len(q.waiting), MaxBatch-len(q.batch))
		for i := range q.waiting[:n] {
			if len(q.batch) > 0 {
				q.wake = append(q.wake, q.waiting[i].lead)
			}
			q.batch = append(q.batch, q.waiting[i].job)
		}
		q.waiting = slices.Delete(q.waiting, 0, n)
		q.mu.Unlock()
		if n == 0 || len(q.batch) == 1 || len(q.batch) == MaxBatch {
			return
		}
		runtime.Gosched()
	}
}

// commitSafely commits a batch; if that panics, or ends the goroutine, the batch fails.
func (q *Queue[J]) commitSafely(batch []J) {
	returned := false
	defer func() {
		if v := recover(); !returned {
			for _, j := range batch {
				j.Fail(fmt.Errorf("panic while committing, so it may be stored or not: %v", v))
			}
		}
	}()
	q.commit(batch)
	returned = true
}

// pass hands the lead on, and wakes the jobs of the batch.
func (q *Queue[J]) pass() {
	q.mu.Lock()
	done := slices.Clone(q.wake)
	clear(q.batch)
	if len(q.waiting) > 0 {
		q.waiting[0].lead <- true
	} else {
		q.leading = false
		q.led.Broadcast()
	}
	q.mu.Unlock()
	for _, wake := range done {
		wake <- false
	}
}
