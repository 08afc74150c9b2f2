package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A process is one runner with a clock, caches and an owner's name of its own. When
// it crashes, nothing of it has any effect any more; started again, it knows nothing.
type process struct {
	w      *world
	name   string
	lives  int // how often it was started
	r      *runner.Runner
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	paused bool
	offset time.Duration // of its clock
	failIn int           // operations until its disk fails; 0 for never
	disk   *disk
	active []*activity
	flying int // requests that are out
}

// An activity is one call of a runner.
type activity struct {
	p    *process
	name string
	what string
	s    *session
	err  error
}

// errDead is what a process that has crashed gets to see of the world: nobody does.
var errDead = errors.New("the process is dead")

func (p *process) now() time.Time { return time.Now().Add(p.offset) }

// start starts the process, again if it has crashed.
func (p *process) start() {
	p.lives++
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.dead, p.paused, p.active, p.flying = false, false, nil, 0
	p.disk = &disk{Store: p.w.base, p: p, seen: map[specialist.SessionID]*runner.Session{}}
	random := p.w.hash("random", p.name, p.lives)
	r, err := runner.New(runner.Config{
		Store: p.disk, Registry: p.w.registry(), Remote: remote{p}, ModelProposers: models{p}, Now: p.now, NewID: p.w.newID,
		Arrivals: arrivals{p}, PublicURL: "http://" + p.name, Random: rand.NewChaCha8(random), Quota: p.w.quota,
	})
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.r = r
}

// kill crashes the process. Its goroutines come to their end, but nothing they do
// counts: the store and the services do not hear them.
func (p *process) kill() {
	p.w.mu.Lock()
	p.dead = true
	p.w.mu.Unlock()
	p.cancel()
	synctest.Wait()
	for more := true; more; {
		more = false
		for _, pt := range p.w.points() {
			if pt.p == p {
				p.w.release(pt, gone)
				more = true
			}
		}
	}
	p.active = nil
}

// key is the activity in a context.
type key struct{}

// run begins an activity.
func (p *process) run(what string, s *session, do func(context.Context, *session) error) *activity {
	a := &activity{p: p, what: what, s: s, name: fmt.Sprintf("%s %s %s", p.name, what, s)}
	p.active = append(p.active, a)
	ctx := context.WithValue(p.ctx, key{}, a)
	go func() {
		a.err = do(ctx, s)
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		if !p.dead {
			p.w.landed = append(p.w.landed, a)
		}
	}()
	synctest.Wait()
	return a
}

// activityOf names the activity in a context.
func (p *process) activityOf(ctx context.Context) string {
	if a, ok := ctx.Value(key{}).(*activity); ok {
		return a.name
	}
	return p.name
}

func (p *process) step(ctx context.Context, s *session) error {
	_, err := p.r.Step(ctx, s.id)
	return err
}

// choices returns what may happen in the process.
func (p *process) choices() (list []choice) {
	add := func(weight int, fault bool, label string, do func()) {
		list = append(list, choice{p.name + " " + label, weight, fault, do})
	}
	switch {
	case p.dead:
		add(8, false, "starts again", p.start)
		return list
	case p.paused:
		add(6, false, "goes on (SIGCONT)", func() { p.paused = false })
		return list
	}
	if len(p.active) < 2 {
		for _, s := range p.w.sessions {
			add(8, false, "steps "+s.String(), func() { p.run("step", s, p.step) })
			add(1, false, "resumes "+s.String(), func() { p.run("resume", s, p.resume) })
			add(1, false, "lets the arbiter decide "+s.String(), func() { p.run("arbitrate", s, p.arbitrate) })
		}
	}
	add(2, true, "stands still (SIGSTOP)", func() { p.paused = true })
	add(2, true, "crashes", p.kill)
	for _, d := range []time.Duration{72 * time.Hour, -72 * time.Hour, 90 * time.Second, -90 * time.Second} {
		add(1, true, fmt.Sprintf("clock jumps by %s", d), func() { p.offset += d })
	}
	for _, k := range []int{1, 3, 6} {
		add(1, true, fmt.Sprintf("disk fails at operation %d from now", k), func() { p.failIn = k })
	}
	if p == p.w.procs[0] {
		list = append(list, choice{"the owner table is lost", 1, true, func() { clear(p.w.owners) }})
	}
	return list
}

func (p *process) resume(ctx context.Context, s *session) error {
	_, err := p.r.Resume(ctx, s.id, runner.ResumeOptions{Actor: "operator", Note: "go on", RetryFailed: true})
	return err
}

func (p *process) arbitrate(ctx context.Context, s *session) error {
	now, err := p.w.base.Load(ctx, runner.NewPrograms(), s.id)
	if err != nil {
		return err
	}
	_, err = p.r.Decide(ctx, runner.Ruling{SessionID: s.id, RoundID: now.Key().ID(), SpecialistID: "arb"})
	return err
}

// registry has the functions of the program.
func (w *world) registry() strategies.Registry {
	return strategies.Registry{}.WithProposer("fn", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return w.answer(q, "fn"), nil
	}))
}

// answer is what somebody says in a round, whenever it is asked.
func (w *world) answer(q specialist.Question, id string) specialist.Answer {
	legal := q.Transitions()
	n := 0
	if w.draw(4, "differs", id, q.Key) == 0 { // mostly they agree
		n = 1
	}
	t := legal[(w.draw(len(legal), "answer", q.Key.Round)+n)%len(legal)]
	return q.Choose(t, fmt.Sprintf("%s says so in round %d", id, q.Key.Round))
}

// A disk is the store as one process sees it, with a cache of its own.
type disk struct {
	runner.Store
	p    *process
	seen map[specialist.SessionID]*runner.Session
}

var errDisk = errors.New("injected: the disk has failed")

// spoiled reports whether this operation of the disk is the one that fails.
func (d *disk) spoiled() error {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	if d.p.dead {
		return errDead
	}
	if d.p.failIn > 0 {
		if d.p.failIn--; d.p.failIn == 0 {
			return errDisk
		}
	}
	return nil
}

// Ways of a commit.
const (
	done        = "done"
	failed      = "fails"
	unsure      = "is done, but the disk reports an error"
	crashBefore = "crash before it"
	crashAfter  = "is done, and the process crashes"
)

// Commit implements [runner.SessionStore].
func (d *disk) Commit(ctx context.Context, c *runner.Change) error {
	if err := d.spoiled(); err != nil {
		return err
	}
	p, w := d.p, d.p.w
	how := w.park(p, p.activityOf(ctx)+" commits "+inShort(c), func() []way {
		return []way{{done, 40, false}, {failed, 1, true}, {unsure, 1, true}, {crashBefore, 1, true}, {crashAfter, 2, true}}
	})
	switch how {
	case gone:
		return errDead
	case failed:
		return errDisk
	case crashBefore:
		d.crash()
		return errDead
	}
	c, there := w.mutated(d, c)
	var err error
	if there {
		err = d.Store.Commit(ctx, c)
	}
	if err == nil {
		w.mu.Lock()
		w.news = append(w.news, commit{p, c.After, c.First, c.Before})
		w.mu.Unlock()
		d.seen[c.After.ID] = c.After
	}
	switch how {
	case crashAfter:
		d.crash()
		return errDead
	case unsure:
		delete(d.seen, c.After.ID)
		return errors.Join(errDisk, err)
	}
	return err
}

// mutated returns what is stored in place of a change, and whether anything is.
func (w *world) mutated(d *disk, c *runner.Change) (*runner.Change, bool) {
	if w.mutation == nil || w.mutation.commit == nil {
		return c, true
	}
	return w.mutation.commit(d, c)
}

// crash marks the process as dead from within; the scheduler sees to the rest.
func (d *disk) crash() {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	d.p.dead = true
}

// inShort says which kinds of events a change holds.
func inShort(c *runner.Change) string {
	var kinds []string
	for _, e := range c.Events {
		kinds = append(kinds, e.Data.Kind())
	}
	return fmt.Sprintf("%d %s", c.First, strings.Join(slices.Compact(kinds), "+"))
}

// Load implements [runner.SessionStore]. Each process folds the log for itself.
func (d *disk) Load(ctx context.Context, programs *runner.Programs, id specialist.SessionID) (*runner.Session, error) {
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	if d.p.w.park(d.p, d.p.activityOf(ctx)+" loads", func() []way { return []way{{done, 40, false}} }) == gone {
		return nil, errDead
	}
	s, err := d.Store.Load(ctx, programs, id)
	if err != nil {
		return nil, err
	}
	if known := d.seen[id]; known != nil && known.Sequence == s.Sequence {
		return known, nil
	}
	f, err := d.p.w.fold(ctx, programs, id)
	if err != nil {
		return nil, err
	}
	d.seen[id] = f.Session()
	return d.seen[id], nil
}

// fold reads a session's log.
func (w *world) fold(ctx context.Context, programs *runner.Programs, id specialist.SessionID) (*runner.Folder, error) {
	if _, err := programs.Of(w.machine); err != nil {
		return nil, err
	}
	f := &runner.Folder{Programs: programs}
	for rec, err := range w.base.Records(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := f.Add(bytes.Clone(rec.Events)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Recent implements [runner.SessionStore]: what this process saw last, however long
// ago.
func (d *disk) Recent(id specialist.SessionID) *runner.Session { return d.seen[id] }

// Roster implements [runner.RosterStore]. It is read whenever a step looks at its
// session: while requests are being sent, that waits until they are on their way, or a
// race would decide which are.
func (d *disk) Roster(ctx context.Context, name string) (*runner.Roster, error) {
	d.p.w.mu.Lock()
	flying := d.p.flying
	d.p.w.mu.Unlock()
	if flying > 0 && d.p.w.park(d.p, d.p.activityOf(ctx)+" looks", func() []way { return []way{{done, 60, false}} }) == gone {
		return nil, errDead
	}
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	return d.Store.Roster(ctx, name)
}

// Claim implements [runner.OwnerStore].
func (d *disk) Claim(context.Context) (runner.Owner, error) {
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	d.p.w.ids++
	o := owner{d.p.w, fmt.Sprintf("%s-%d-%d", d.p.name, d.p.lives, d.p.w.ids)}
	d.p.w.owners[o.name] = d.p
	return o, nil
}

// Alive implements [runner.OwnerStore]: the owner's process has not crashed since,
// and the table still has it.
func (d *disk) Alive(_ context.Context, name string) (bool, error) {
	if err := d.spoiled(); err != nil {
		return false, err
	}
	return d.p.w.alive(name) && !d.p.w.mutation.is("owners are taken for lost"), nil
}

func (w *world) alive(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.owners[name]
	return p != nil && !p.dead && strings.HasPrefix(name, fmt.Sprintf("%s-%d-", p.name, p.lives))
}

type owner struct {
	w    *world
	name string
}

func (o owner) Name() string { return o.name }

func (o owner) Release() error {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	delete(o.w.owners, o.name)
	return nil
}

// incarnation names this life of the process.
func (p *process) incarnation() string { return fmt.Sprintf("%s-%d", p.name, p.lives) }
