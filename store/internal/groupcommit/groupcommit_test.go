package groupcommit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dialai/dialai/store/internal/groupcommit"
)

// A job says what became of it.
type job struct {
	n   int
	err error
}

func (j *job) Fail(err error) { j.err = err }

// TestTogether: one who finds nobody commits at once and alone; those who come meanwhile share the next
// commit, in the order in which they came, and no more of them than fit.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches []int
		hold := make(chan bool)
		next := 0
		q := groupcommit.New(func(batch []*job) {
			batches = append(batches, len(batch))
			for _, j := range batch {
				if j.n != next {
					t.Errorf("job %d comes where %d should", j.n, next)
				}
				next++
			}
			<-hold
		})
		var wg sync.WaitGroup
		for n := range groupcommit.MaxBatch + 3 {
			wg.Go(func() {
				if err := q.Do(&job{n: n}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it waits, or commits
		}
		close(hold)
		wg.Wait()
		if got := fmt.Sprint(batches); got != fmt.Sprint([]int{1, groupcommit.MaxBatch, 2}) {
			t.Errorf("the batches have %s jobs", got)
		}
	})
}

// TestPanic: a batch that panics fails, and who waits behind it is committed.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan bool)
		q := groupcommit.New(func(batch []*job) {
			<-hold
			if batch[0].n == 0 {
				panic("a bug")
			}
		})
		bad, good := &job{n: 0}, &job{n: 1}
		var wg sync.WaitGroup
		for _, j := range []*job{bad, good} {
			wg.Go(func() {
				if err := q.Do(j); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(hold)
		wg.Wait()
		if bad.err == nil || !strings.Contains(bad.err.Error(), "a bug") || good.err != nil {
			t.Errorf("the first has come to %v, the second to %v", bad.err, good.err)
		}
	})
}

// TestClose: what was handed in is committed before Close returns, and nothing is taken afterwards.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan bool)
		done := 0
		q := groupcommit.New(func(batch []*job) {
			<-hold
			done += len(batch)
		})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { q.Do(&job{}) })
			synctest.Wait()
		}
		wg.Go(func() {
			if !q.Close() || done != 2 {
				t.Errorf("it is closed once %d of 2 are committed", done)
			}
		})
		synctest.Wait()
		if err := q.Do(&job{}); !errors.Is(err, groupcommit.ErrClosed) {
			t.Errorf("a job after Close has come to %v", err)
		}
		close(hold)
		wg.Wait()
		if q.Close() {
			t.Error("it is closed twice")
		}
	})
}
