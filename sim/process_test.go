package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
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
	file   *store.SQLite // under the disk; nil if the store is in memory, or the process has ended
	active []*activity
	flying int // requests that are out
}

// An activity is one call of a runner.
type activity struct {
	p    *process
	name string
	s    *observed
	act  *act // of the human who wants it; nil if nobody does
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
	p.disk = &disk{Store: p.mount(), p: p, seen: map[specialist.SessionID]*session.Session{}}
	random := p.w.hash("random", p.name, p.lives)
	r, err := runner.New(runner.Config{
		Store: p.disk, Resolver: strategies.Resolvers{p.w.registry(), outside{p}}, Now: p.now, NewID: p.w.newID,
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
	p.w.closeFile(p.file)
	p.file = nil
}

// key is the activity in a context.
type key struct{}

// run begins an activity.
func (p *process) run(what string, s *observed, do func(context.Context, *observed) error) {
	p.carryOut(nil, what, s, do)
}

// carryOut begins an activity that a human wants.
func (p *process) carryOut(act *act, what string, s *observed, do func(context.Context, *observed) error) {
	a := &activity{p: p, s: s, act: act, name: fmt.Sprintf("%s %s %s", p.name, what, s)}
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
}

// activityOf names the activity in a context.
func (p *process) activityOf(ctx context.Context) string {
	if a, ok := ctx.Value(key{}).(*activity); ok {
		return a.name
	}
	return p.name
}

func (p *process) step(ctx context.Context, s *observed) error {
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
			add(p.w.eager(s), false, "resumes "+s.String(), func() { p.run("resume", s, p.resume) })
			add(1, false, "lets the arbiter decide "+s.String(), func() { p.run("arbitrate", s, p.arbitrate) })
		}
	}
	list = append(list, p.office()...)
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

func (p *process) resume(ctx context.Context, s *observed) error {
	_, err := p.r.Resume(ctx, s.id, runner.ResumeOptions{Actor: operator, Note: "go on", RetryFailed: true})
	return err
}

func (p *process) arbitrate(ctx context.Context, s *observed) error {
	now, err := p.w.base.Load(ctx, session.NewPrograms(), s.id)
	if err != nil {
		return err
	}
	_, err = p.r.Decide(ctx, runner.Ruling{SessionID: s.id, RoundID: now.Key().ID(), SpecialistID: "arb", Actor: operator})
	return err
}

// incarnation names this life of the process.
func (p *process) incarnation() string { return fmt.Sprintf("%s-%d", p.name, p.lives) }
