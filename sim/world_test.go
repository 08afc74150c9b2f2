package sim_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// settings say which run is played.
type settings struct {
	seed     uint64
	steps    int       // choices of the scheduler before everything is healed
	faults   int       // of those, how many may be faults
	mutation *mutation // a defect that is put in; nil for none
	tape     []string  // the choices to make, in place of drawn ones; nil draws
	onDisk   bool      // the store is a SQLite file, and not in memory
}

// A result is what came of a run.
type result struct {
	tape   []string // the choices that were made
	trace  []string // what happened, for people
	hash   string   // of the trace and of all logs
	failed *violation
	stats  map[string]int
}

// A violation is an invariant that does not hold.
type violation struct {
	invariant string
	err       error
}

// A world is everything that is simulated. Only one goroutine of it goes on at a
// time: the scheduler chooses which, and waits until all are blocked again.
type world struct {
	settings
	t       *testing.T
	rng     *rand.Rand
	base    session.Store
	file    *store.SQLite  // the base, if it is one; else nil
	path    string         // of the file
	reader  *runner.Runner // of whoever looks at questions
	machine *machine.Machine
	text    string  // the machine's file
	keeper  *keeper // of whoever counts decisions; nil before the first
	commits int     // that were checked

	procs    []*process
	services map[string]*service
	humans   []*human
	sessions []*observed
	posts    []*post // answers that are to come later
	owners   map[string]*process
	clock    time.Time

	mu      sync.Mutex
	parked  map[string]*point
	landed  []*activity
	news    []commit
	trouble *violation // found elsewhere than in a check
	counts  map[string]int
	ids     uint64
	limit   exact.Money // that the machine sets on dollars; 0 is none

	haste     int               // how much rather what is under way goes on than something begins
	inquiries inquiries         // of the guards
	questions map[string]string // that guards have asked, by the id of the ask

	quorum             quorum // that the machine sets
	second, secondRate string // when a second human is asked, and how often; "" for never

	cases    *cases           // of the machine; nil if it says nothing of them
	other    *machine.Machine // the same with another prompt, to which sessions are moved
	mangled  string           // the machine's file with other expressions
	moment   int              // how many acts have begun
	switches []switched       // of humans, in order

	result result
}

// A point is where a goroutine waits for the scheduler.
type point struct {
	p      *process
	name   string
	ways   func() []way // how it may go on, the usual way first
	resume chan string
}

// A way is one way to go on from a point.
type way struct {
	name   string
	weight int
	fault  bool
}

// A choice is one thing that the scheduler may have happen next.
type choice struct {
	label  string
	weight int
	fault  bool
	do     func()
}

// A commit is a record that has become durable.
type commit struct {
	p      *process
	act    *act // for which it was made; nil for none
	after  *session.Session
	first  int64
	before *session.Session
}

// gone is how a goroutine of a process that has crashed goes on.
const gone = "gone"

// park waits until the scheduler chooses the caller, and returns the way it is to go
// on. Two goroutines of one process never wait under the same name.
func (w *world) park(p *process, name string, ways func() []way) string {
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return gone
	}
	pt := &point{p, name, ways, make(chan string)}
	for n := 2; w.parked[pt.name] != nil; n++ {
		pt.name = fmt.Sprintf("%s (%d)", name, n)
	}
	w.parked[pt.name] = pt
	w.mu.Unlock()
	return <-pt.resume
}

// release has a parked goroutine go on.
func (w *world) release(pt *point, how string) {
	w.mu.Lock()
	delete(w.parked, pt.name)
	w.mu.Unlock()
	pt.resume <- how
	synctest.Wait()
}

// points returns who waits, by name, so that no race decides who is offered first.
func (w *world) points() []*point {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]*point, 0, len(w.parked))
	for _, pt := range w.parked {
		list = append(list, pt)
	}
	slices.SortFunc(list, func(a, b *point) int { return cmp.Compare(a.name, b.name) })
	return list
}

// newSession returns the id of the next session.
func (w *world) newID() (id specialist.SessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	sum := w.hash("session", w.ids)
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// hash draws bytes by what they are for, whenever they are drawn.
func (w *world) hash(what ...any) [32]byte {
	return sha256.Sum256(fmt.Append(nil, w.seed, what))
}

// draw draws a number below n by what it is for.
func (w *world) draw(n int, what ...any) int {
	sum := w.hash(what...)
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

func (w *world) say(format string, a ...any) {
	w.result.trace = append(w.result.trace, fmt.Sprintf("%9s  ", time.Since(w.clock).Round(time.Millisecond))+fmt.Sprintf(format, a...))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// fail notes that an invariant does not hold; the first one counts.
func (w *world) fail(invariant string, format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.trouble = &violation{invariant, fmt.Errorf(format, a...)}
	}
}

// play runs one world from its seed, or from a tape.
func play(t *testing.T, s settings) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{settings: s, t: t, rng: rand.New(rand.NewPCG(s.seed, 2)), services: map[string]*service{}, owners: map[string]*process{},
			clock: time.Now(), parked: map[string]*point{}, counts: map[string]int{}, questions: map[string]string{}}
		w.open()
		defer w.close()
		w.build()
		if w.turns() && w.heal() {
			w.checkEnd()
			w.withoutExpressions()
			w.verify()
		}
		r = w.result
		r.failed, r.stats, r.hash = w.trouble, w.counts, w.sum()
	})
	return r
}

// close ends what still runs, so that nothing outlives the world.
func (w *world) close() {
	for _, p := range w.procs {
		p.kill()
	}
	synctest.Wait()
	w.closeFile(w.file)
}

// turns has the scheduler choose, until it has chosen often enough.
func (w *world) turns() bool {
	synctest.Wait()
	for turn := 0; turn < w.steps; turn++ {
		c, ok := w.next(w.choices())
		if !ok {
			return true
		}
		w.result.tape = append(w.result.tape, c.label)
		w.say("%s", c.label)
		if c.fault {
			w.faults--
			w.counts["faults"]++
		}
		c.do()
		w.bury()
		if w.check(); w.trouble != nil {
			return false
		}
	}
	return true
}

// bury ends what is left of processes that have crashed.
func (w *world) bury() {
	synctest.Wait()
	for _, p := range w.procs {
		if p.dead && len(p.active) > 0 {
			p.kill()
		}
	}
}

// next draws a choice, or takes the next one of the tape that is possible.
func (w *world) next(list []choice) (choice, bool) {
	if w.tape != nil {
		for len(w.tape) > 0 {
			label := w.tape[0]
			w.tape = w.tape[1:]
			if i := slices.IndexFunc(list, func(c choice) bool { return c.label == label }); i >= 0 {
				return list[i], true
			}
		}
		return choice{}, false
	}
	sum := 0
	for _, c := range list {
		sum += c.weight
	}
	if sum == 0 {
		return choice{}, false
	}
	n := w.rng.IntN(sum)
	for _, c := range list {
		if n -= c.weight; n < 0 {
			return c, true
		}
	}
	panic("unreachable")
}

// choices returns everything that can happen now.
func (w *world) choices() (list []choice) {
	for _, pt := range w.points() {
		if pt.p.paused {
			continue
		}
		for _, y := range pt.ways() {
			if y.fault && w.faults <= 0 {
				continue
			}
			list = append(list, choice{pt.name + ": " + y.name, y.weight * w.haste, y.fault, func() { w.release(pt, y.name) }})
		}
	}
	for _, d := range []time.Duration{20 * time.Millisecond, time.Second, 20 * time.Second, 70 * time.Second, 6 * time.Minute, 25 * time.Hour} {
		weight := 4
		if d > time.Minute {
			weight = 1
		}
		list = append(list, choice{"time: " + d.String(), weight, false, func() { time.Sleep(d) }})
	}
	for _, p := range w.procs {
		list = append(list, p.choices()...)
	}
	for _, h := range w.humans {
		list = append(list, h.choices()...)
	}
	for _, c := range w.posts {
		list = append(list, c.choices()...)
	}
	return slices.DeleteFunc(list, func(c choice) bool { return c.fault && w.faults <= 0 })
}

// heal ends all faults and lets everybody finish what is under way; then every
// session that can go on is stepped once more. It reports whether nothing failed.
func (w *world) heal() bool {
	w.say("-- no more faults; everybody may finish")
	w.faults = 0
	for _, p := range w.procs {
		p.paused, p.failIn = false, 0
		if p.dead {
			p.start()
		}
	}
	if !w.finish() {
		return false
	}
	for _, s := range w.sessions {
		w.procs[0].run("step", s, w.procs[0].step)
		if !w.finish() {
			return false
		}
	}
	return true
}

// finish lets everything that is under way come to its end.
func (w *world) finish() bool {
	for turn := 0; ; turn++ {
		synctest.Wait()
		if w.check(); w.trouble != nil {
			return false
		}
		if points := w.points(); len(points) > 0 {
			pt := points[0]
			how := pt.ways()[0].name
			w.say("%s: %s", pt.name, how)
			w.release(pt, how)
			continue
		}
		if w.busy() == 0 {
			return true
		}
		if turn > 2000 {
			w.fail("everything ends", "%d activities do not end when nothing is in their way", w.busy())
			return false
		}
		time.Sleep(time.Second)
	}
}

func (w *world) busy() (n int) {
	for _, p := range w.procs {
		n += len(p.active)
	}
	return n
}

// sum is the hash of everything that happened and was stored.
func (w *world) sum() string {
	h := sha256.New()
	for _, line := range w.result.trace {
		h.Write([]byte(line + "\n"))
	}
	for _, s := range w.sessions {
		for rec, err := range w.base.Records(context.Background(), s.id, 0) {
			if err != nil {
				h.Write([]byte(err.Error()))
				break
			}
			h.Write(rec.Events)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// text of a run for people.
func (r result) String() string { return strings.Join(r.trace, "\n") }
