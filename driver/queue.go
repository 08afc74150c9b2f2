package driver

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/specialist"
)

// Who is next. The free worker goes to the tenant with the fewest steps under way, among
// those to the one that has waited longest for a turn; within it to a machine, chosen in
// the same way; and there to the session that has waited longest. So ten thousand sessions
// of one machine keep a single one of another waiting for one free worker, and a machine
// whose services hang keeps only as many workers as nobody else asks for, and never more
// than Config.PerMachine. Nothing is counted over time: who used much before is not behind.

type (
	// A tenant has a line for each machine of which sessions are ready or stepped.
	tenant struct {
		Tenant
		turn
		jobs    map[specialist.SessionID]*job
		lines   map[string]*line
		ready   turns[*line]
		waiting int   // sessions in the lines
		held    bool  // this process drives it
		learned bool  // something was, and nobody has read ahead since
		pool    *pool // nil unless the store hands the sessions out
	}

	// A line is the sessions of one machine of a tenant, in the order in which they came.
	line struct {
		turn
		machine string
		jobs    []*job
		first   int // of jobs, who is next
	}

	// A job is a session with which there is something to do.
	job struct {
		id       specialist.SessionID
		tenant   *tenant
		machine  string
		sequence int64 // of the newest event that is known
		state    jobState
		since    time.Time       // when it became ready
		at       specialist.Time // when it is looked at, while it waits
		heap     int             // its place among the wakes
		tries    int             // how often it has failed
		failure  error           // of its last step
		mine     atomic.Bool     // it is known to be for the driver
		lease    *lease          // nil unless the store has handed it out
	}

	jobState uint8

	// A queue is the tenants of which sessions are ready.
	queue struct {
		tenants turns[*tenant]
		served  int64
		ready   int // sessions
	}

	// A turn is how much somebody is given, and when for the last time.
	turn struct {
		busy   int
		served int64
		place  int // among the turns, from 1; 0 if it is not there
	}

	// turns are a heap of those who may be next.
	turns[T interface{ mine() *turn }] []T
)

const (
	queued   jobState = iota // in a line
	stepping                 // under way
	waiting                  // among the wakes
)

func (t *turn) mine() *turn { return t }

func (j *job) name() name { return name{j.tenant.Name, j.id} }

func (h turns[T]) Len() int { return len(h) }
func (h turns[T]) Less(i, j int) bool {
	a, b := h[i].mine(), h[j].mine()
	return a.busy < b.busy || a.busy == b.busy && a.served < b.served
}
func (h turns[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].mine().place, h[j].mine().place = i+1, j+1
}
func (h *turns[T]) Push(x any) {
	*h = append(*h, x.(T))
	x.(T).mine().place = len(*h)
}
func (h *turns[T]) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	last.mine().place = 0
	return last
}

// set puts one where it belongs, or takes it out.
func (h *turns[T]) set(x T, may bool) {
	switch t := x.mine(); {
	case may && t.place == 0:
		heap.Push(h, x)
	case may:
		heap.Fix(h, t.place-1)
	case t.place > 0:
		heap.Remove(h, t.place-1)
	}
}

// ready puts a session at the end of its line.
func (d *Driver) ready(j *job) {
	j.state, j.at, j.since = queued, 0, time.Now()
	l := j.tenant.lines[j.machine]
	if l == nil {
		l = &line{machine: j.machine, turn: turn{served: d.queue.served}}
		j.tenant.lines[j.machine] = l
	}
	l.jobs = append(l.jobs, j)
	j.tenant.waiting++
	d.queue.ready++
	d.settle(j.tenant, l)
}

// settle puts a line and its tenant where they belong.
func (d *Driver) settle(t *tenant, l *line) {
	waits := l.first < len(l.jobs)
	t.ready.set(l, waits && l.busy < d.config.PerMachine)
	d.queue.tenants.set(t, len(t.ready) > 0 && (t.Workers == 0 || t.busy < t.Workers))
	if !waits && l.busy == 0 {
		delete(t.lines, l.machine)
	}
}

// next takes the session whose turn it is; nil if there is none.
func (d *Driver) next() *job {
	if len(d.queue.tenants) == 0 {
		return nil
	}
	t := d.queue.tenants[0]
	l := t.ready[0]
	j := l.jobs[l.first]
	l.jobs[l.first] = nil
	if l.first++; l.first > 64 && l.first > len(l.jobs)/2 {
		l.jobs, l.first = append([]*job(nil), l.jobs[l.first:]...), 0
	}
	j.state = stepping
	t.waiting--
	d.queue.ready--
	d.queue.served++
	l.served, t.served = d.queue.served, d.queue.served
	l.busy++
	t.busy++
	d.settle(t, l)
	return j
}

// end gives back what next took.
func (d *Driver) end(j *job) {
	l := j.tenant.lines[j.machine]
	l.busy--
	j.tenant.busy--
	d.settle(j.tenant, l)
}

// rest lets a session wait until a moment.
func (d *Driver) rest(j *job, at specialist.Time) {
	j.state, j.at = waiting, at
	heap.Push(&d.wakes, j)
}

// drop forgets a session with which there is nothing to do.
func (d *Driver) drop(j *job) { delete(j.tenant.jobs, j.id) }

// wakes are the sessions that are to be looked at some time, as a heap.
type wakes []*job

func (h wakes) Len() int           { return len(h) }
func (h wakes) Less(i, j int) bool { return h[i].at < h[j].at }
func (h wakes) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heap, h[j].heap = i, j
}
func (h *wakes) Push(x any) {
	x.(*job).heap = len(*h)
	*h = append(*h, x.(*job))
}
func (h *wakes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	last.heap = -1
	return last
}
func (h *wakes) pop() *job     { return heap.Pop(h).(*job) }
func (h *wakes) remove(j *job) { heap.Remove(h, j.heap) }
