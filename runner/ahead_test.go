package runner_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A lessonCount is a store that counts how often each lesson is read.
type lessonCount struct {
	session.Store
	mu   sync.Mutex
	read map[int64]int
	bug  bool // reading panics
}

func (l *lessonCount) Lessons(ctx context.Context, after int64) iter.Seq2[session.Lesson, error] {
	return func(yield func(session.Lesson, error) bool) {
		for x, err := range l.Store.Lessons(ctx, after) {
			l.mu.Lock()
			l.read[x.Seq]++
			bug := l.bug
			l.mu.Unlock()
			if bug {
				panic("a bug")
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

func (l *lessonCount) lessons() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.read)
}

func (l *lessonCount) counting(c *runner.Config) {
	l.Store, l.read = c.Store, map[int64]int{}
	c.Store = l
}

// TestReadsWhileOthersAnswer: what bayes decides by is read while services answer, where something was
// learned since, and not before there was a decision at all.
func TestReadsWhileOthersAnswer(t *testing.T) {
	for _, by := range []string{arb("bayes", threshold("0.9")), half} {
		synctest.Test(t, func(t *testing.T) {
			l := &lessonCount{}
			b := newBench(t, inBubble, l.counting)
			var early []int
			for i, name := range []string{"a", "b"} {
				b.cast.play(name, func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
					time.Sleep(time.Duration(i+1) * time.Second)
					synctest.Wait()
					early = append(early, l.lessons())
					return specialist.Answer{TransitionName: []string{"again", "park"}[i], Reasoning: "so"}, nil
				})
			}
			if by == half { // whoever looks at trust reads it, too
				_, err := b.r.Ledger(b.ctx)
				b.ok(err)
			}
			s := b.start(b.desk(web("a"), web("b", `"timeout":"9s"`), human("human"), by))
			for range 3 {
				if b.step(s).Status == runner.TickHuman {
					b.force(s, "again")
				}
			}
			want := []int{0, 0, 1, 1, 2, 2}
			if by == half {
				want = make([]int, 6)
			}
			if len(early) != 6 {
				t.Fatalf("they were asked %d times, want 6", len(early))
			}
			for i := range want {
				if early[i] != want[i] {
					t.Errorf("with %s, %v lessons were read when somebody answered, want %v", by, early, want)
					break
				}
			}
		})
	}
}

// TestReadAheadPanics: a panic there is an error, is told to the program, and leaves nothing locked.
func TestReadAheadPanics(t *testing.T) {
	l := &lessonCount{}
	var told []*runner.PanicError
	b := newBench(t, l.counting, func(c *runner.Config) { c.Panicked = func(p *runner.PanicError) { told = append(told, p) } })
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), half))
	_, err := b.r.Ledger(b.ctx)
	b.ok(err)
	b.force(s, "again")
	l.bug = true
	p, ok := errors.AsType[*runner.PanicError](b.r.ReadAhead(b.ctx))
	if !ok || p.Error() != "panic: a bug" || len(told) != 1 || told[0] != p {
		t.Errorf("it came to %v, the program was told %v", p, told)
	}
	l.bug = false
	b.ok(b.r.ReadAhead(b.ctx))
	if n := l.lessons(); n != 1 {
		t.Errorf("%d lessons are read after that, want 1", n)
	}
}
