package store

import (
	"container/heap"
	"math/bits"
	"slices"
	"sync"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The index of the sessions in memory: for each status, machine, reason code, and state in
// which sessions stand still, the set of sessions that have it, as one bit for each session
// in the order of creation. A list walks the words of the sets that its query names, all of
// them at once, so a word of 64 sessions that are not wanted costs as much as one. What the
// sets do not know (subject, time, id) is asked of the sessions that are left.
//
// A set changes only when one of these facts does. What a running session is doing changes
// with each commit, so states are known of those only that do not run.

// An index is that of one store. The zero index is empty.
type index struct {
	mu    sync.RWMutex
	order []*cell // by creation
	sets  map[fact]*bitset
	timers
}

// A fact is what a session has and others may have too.
type fact struct {
	kind  factKind
	value string
}

type factKind uint8

const (
	ofStatus factKind = iota
	ofMachine
	ofState // of one that does not run
	ofCode
	toReview
	toLeave // the state is due some time
)

// facts are what the index knows of a session as it stands, beside its machine.
type facts struct {
	status      session.Status
	reviews     bool
	code, state string
	due         bool
	timer       specialist.Time
}

func factsOf(s *session.Session) facts {
	f := facts{status: s.Status, reviews: len(s.Reviews()) > 0, code: s.Standing().Code, due: s.DueAt() != 0, timer: s.TimerAt()}
	if s.Status != session.Running {
		f.state = s.State.Name
	}
	return f
}

// each calls do with each fact.
func (f facts) each(do func(fact)) {
	do(fact{ofStatus, f.status.String()})
	if f.reviews {
		do(fact{kind: toReview})
	}
	if f.code != "" {
		do(fact{ofCode, f.code})
	}
	if f.status != session.Running {
		do(fact{ofState, f.state})
	}
	if f.due {
		do(fact{kind: toLeave})
	}
}

// add puts a new session behind the others.
func (x *index) add(c *cell, s *session.Session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c.index = len(x.order)
	x.order = append(x.order, c)
	x.set(fact{ofMachine, s.Machine().Name()}).add(c.index)
	is := factsOf(s)
	is.each(func(f fact) { x.set(f).add(c.index) })
	x.timers.move(c, 0, is.timer)
}

// move brings the index up to date after a session has changed.
func (x *index) move(c *cell, before, after *session.Session) {
	was, is := factsOf(before), factsOf(after)
	if was == is {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	was.each(func(f fact) { x.set(f).remove(c.index) })
	is.each(func(f fact) { x.set(f).add(c.index) })
	x.timers.move(c, was.timer, is.timer)
}

func (x *index) len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.order)
}

// set returns the set of a fact, made if need be. The lock is held.
func (x *index) set(f fact) *bitset {
	b := x.sets[f]
	if b == nil {
		if x.sets == nil {
			x.sets = map[fact]*bitset{}
		}
		b = &bitset{}
		x.sets[f] = b
	}
	return b
}

// walk calls do with each session that may match a query, in its order, from one index on,
// until do returns false.
func (x *index) walk(q *session.ListQuery, from int, do func(*cell) bool) {
	if by := max(q.Wake, q.Awake); by != 0 {
		x.mu.Lock()
		x.timers.come(by)
		x.mu.Unlock()
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := x.wanted(q)
	for i, step := from, stepOf(q.Desc); i >= 0 && i < len(x.order); i += step {
		word := all(i >> 6)
		if q.Desc {
			word &= ^uint64(0) >> (63 - i&63)
		} else {
			word &= ^uint64(0) << (i & 63)
		}
		switch {
		case word == 0 && q.Desc:
			i &^= 63 // the first of the word: the next is in the one before
			continue
		case word == 0:
			i |= 63
			continue
		case q.Desc:
			i = i&^63 + 63 - bits.LeadingZeros64(word)
		default:
			i = i&^63 + bits.TrailingZeros64(word)
		}
		if i >= len(x.order) || !do(x.order[i]) {
			return
		}
	}
}

func stepOf(desc bool) int {
	if desc {
		return -1
	}
	return 1
}

// wanted returns what gives the words of the sessions that have all facts of a query.
func (x *index) wanted(q *session.ListQuery) func(word int) uint64 {
	var every, any []*bitset
	need := func(wanted bool, f fact) {
		if wanted {
			every = append(every, x.sets[f])
		}
	}
	need(q.MachineName != "", fact{ofMachine, q.MachineName})
	need(q.Code != "", fact{ofCode, q.Code})
	need(q.Reviews, fact{kind: toReview})
	need(q.Overdue != 0, fact{kind: toLeave})
	if q.Wake != 0 {
		every = append(every, &x.timers.came)
	}
	var asleep *bitset
	if q.Awake != 0 {
		asleep = x.sets[fact{ofCode, session.CodeTimer}]
	}
	for _, s := range q.Statuses {
		any = append(any, x.sets[fact{ofStatus, s.String()}])
	}
	switch running := slices.Contains(q.Statuses, session.Running); {
	case q.State == "" || running:
	case len(q.Statuses) > 0:
		need(true, fact{ofState, q.State})
	default:
		any = append(any, x.sets[fact{ofStatus, session.Running.String()}], x.sets[fact{ofState, q.State}])
	}
	return func(word int) uint64 {
		has := ^uint64(0)
		for _, b := range every {
			has &= b.word(word)
		}
		has &^= asleep.word(word) &^ x.timers.came.word(word)
		if any == nil || has == 0 {
			return has
		}
		var one uint64
		for _, b := range any {
			one |= b.word(word)
		}
		return has & one
	}
}

// A bitset is a set of small numbers. A nil one is empty.
type bitset struct{ words []uint64 }

func (b *bitset) add(i int) {
	for len(b.words) <= i>>6 {
		b.words = append(b.words, 0)
	}
	b.words[i>>6] |= 1 << (i & 63)
}

func (b *bitset) remove(i int) {
	if i>>6 < len(b.words) {
		b.words[i>>6] &^= 1 << (i & 63)
	}
}

func (b *bitset) word(i int) uint64 {
	if b == nil || i >= len(b.words) {
		return 0
	}
	return b.words[i]
}

// timers are the sessions with a timer or a reminder to come: those that have not come by
// the latest moment that anybody asked of are a heap, the others a set. An entry whose
// session has another moment by now is dropped when its turn comes.
type timers struct {
	queue timerHeap
	came  bitset
}

type timer struct {
	at specialist.Time
	of *cell
}

type timerHeap []timer

// move notes that the moment of a session has changed; 0 is none.
func (t *timers) move(c *cell, was, is specialist.Time) {
	if was == is {
		return
	}
	t.came.remove(c.index)
	if is != 0 {
		heap.Push(&t.queue, timer{is, c})
	}
}

// come moves to the set what comes by a moment.
func (t *timers) come(by specialist.Time) {
	for len(t.queue) > 0 && t.queue[0].at <= by {
		first := heap.Pop(&t.queue).(timer)
		if first.of.session.Load().TimerAt() == first.at {
			t.came.add(first.of.index)
		}
	}
}

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
