package driver_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// twoSteps is a machine of two steps, each by the Go function of the name.
const twoSteps = `{"machineName":"%s","initialState":"a","goalState":"c",
	"states":{"a":{"transitions":{"go":"b"}},"b":{"transitions":{"go":"c"}},"c":{}},
	"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"%s"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// forever never ends.
const forever = `{"machineName":"forever","initialState":"a","goalState":"z",
	"states":{"a":{"transitions":{"again":"a","end":"z"}},"z":{}},
	"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"first"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// asks needs a human first.
const asks = `{"machineName":"asks","initialState":"a","goalState":"c",
	"states":{"a":{"transitions":{"go":"b"},"specialists":[{"role":"proposer","specialistId":"carol"}]},"b":{"transitions":{"go":"c"},"specialists":[{"role":"proposer","specialistId":"p"}]},"c":{}},
	"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"first"},{"role":"proposer","specialistId":"carol","isHuman":true},
		{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// timed is left by a timer.
const timed = `{"machineName":"timed","initialState":"a","goalState":"z",
	"states":{"a":{"due":{"in":"90s","then":"late"},"specialists":[],"transitions":{"late":"z"}},"z":{}},
	"specialists":[{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// A rig is a Driver with one tenant, whose functions the test gives.
type rig struct {
	*testing.T
	driver *driver.Driver
	runner *runner.Runner
	stop   func() // ends the Driver, and waits for that

	onCommit func(session.Change) // nil does nothing

	mu    sync.Mutex
	ended map[specialist.SessionID]session.Status
	steps []string // the machine of each transition
}

func newRig(t *testing.T, c driver.Config, s session.Store, functions map[string]specialist.ProposerFunc) *rig {
	t.Helper()
	g := &rig{T: t, driver: driver.New(c), ended: map[specialist.SessionID]session.Status{}}
	registry := strategies.Registry{}.WithProposer("first", specialist.ProposerFunc(first))
	for name, f := range functions {
		registry = registry.WithProposer(name, f)
	}
	tell := g.driver.Observer("main")
	r, err := runner.New(runner.Config{Store: s, Resolver: services{registry, functions["service"]}, Observer: func(c session.Change) {
		tell(c)
		if g.onCommit != nil {
			g.onCommit(c)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if c.After.Status != session.Running {
			g.ended[c.After.ID] = c.After.Status
		}
		if c.Before != nil && c.After.Executed > c.Before.Executed {
			g.steps = append(g.steps, c.After.Machine().Name())
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.runner = r
	return g
}

// services answers for every webhook with one function.
type services struct {
	strategies.Registry
	answer specialist.ProposerFunc
}

func (r services) Proposer(m *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL != "" {
		return r.answer, nil
	}
	return r.Registry.Proposer(m, s, context)
}

// drive runs the Driver until the test has ended, or stop is called.
func (g *rig) drive(shared bool) *rig { return g.driveWith(driver.Tenant{Shared: shared}) }

// driveWith is drive, with what a tenant has beside its Runner.
func (g *rig) driveWith(t driver.Tenant) *rig {
	t.Name, t.Runner = "main", g.runner
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.driver.Run(ctx, t) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			g.Error(err)
		}
	})
	g.Cleanup(g.stop)
	return g
}

func first(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	return q.Choose(q.Transitions()[0], "the first"), nil
}

func parsed(t *testing.T, text string, a ...any) *machine.Machine {
	t.Helper()
	if len(a) > 0 {
		text = fmt.Sprintf(text, a...)
	}
	m, err := machine.Parse("m.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (g *rig) start(m *machine.Machine) specialist.SessionID {
	g.Helper()
	s, err := g.runner.Start(context.Background(), m, runner.StartOptions{})
	if err != nil {
		g.Fatal(err)
	}
	return s.ID
}

// is checks where a session stands.
func (g *rig) is(id specialist.SessionID, want session.Status, code string) *session.Session {
	g.Helper()
	s, err := g.runner.Session(context.Background(), id)
	if err != nil {
		g.Fatal(err)
	}
	if o := s.Outcome(); s.Status != want || o.Code != code {
		g.Errorf("session of %s is %s (%s: %s), want %s (%s)", s.Machine().Name(), s.Status, o.Code, o.Reason, want, code)
	}
	return s
}

// TestCarriesOn: what was there when the Driver began and what is started later are both
// carried on to the end, and then nothing is left to do.
func TestCarriesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{Workers: 3}, store.NewMemory(), nil)
		m := parsed(t, twoSteps, "two", "first")
		var ids []specialist.SessionID
		for range 600 { // more than a page of a list
			ids = append(ids, g.start(m))
		}
		g.drive(false)
		synctest.Wait()
		for range 10 {
			ids = append(ids, g.start(m))
		}
		synctest.Wait()
		for _, id := range ids {
			g.is(id, session.Completed, session.CodeGoal)
			if a, known := g.driver.Attempt("main", id); known {
				t.Fatalf("with a session that has ended there is %+v to do", a)
			}
		}
		if s := g.driver.Status(); s != (driver.Status{Mode: driver.Driving, Steps: 2 * 610}) {
			t.Errorf("the driver is %+v", s)
		}
	})
}

// TestGoesOnAfterRuling: a session that waits for a human costs no step, and goes on by
// itself after the ruling.
func TestGoesOnAfterRuling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{}, store.NewMemory(), nil).drive(false)
		id := g.start(parsed(t, asks))
		synctest.Wait()
		s := g.is(id, session.NeedsHuman, session.CodeNoProposals)
		steps := g.driver.Status().Steps
		other := g.start(parsed(t, asks))
		synctest.Wait()
		if _, err := g.runner.Stop(t.Context(), other, runner.Stopping{Actor: session.Actor{Subject: "local:test", Method: "local"}, Note: "no more"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, known := g.driver.Attempt("main", id); known || g.driver.Status().Steps != steps+1 {
			t.Errorf("while sessions wait for a human or were cancelled, %d steps were taken", g.driver.Status().Steps-steps-1)
		}
		a, err := g.runner.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "go"})
		if err != nil || !a.Executed {
			t.Fatal(err, a)
		}
		synctest.Wait()
		g.is(id, session.Completed, session.CodeGoal)
	})
}

// TestTimers: a timer is executed within a second of its moment.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{}, store.NewMemory(), nil)
		before := g.start(parsed(t, timed))
		g.drive(false)
		synctest.Wait()
		after := g.start(parsed(t, timed))
		time.Sleep(89 * time.Second)
		g.is(before, session.Running, "")
		g.is(after, session.Running, "")
		if n := g.driver.Status().Steps; n != 1 { // when it was started
			t.Errorf("%d steps were taken while they wait", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.is(before, session.Completed, session.CodeGoal)
		g.is(after, session.Completed, session.CodeGoal)
	})
}

// TestUndriven: a session that is for who steps it by name is left alone, whichever way the
// driver hears of it, and its timer too.
func TestUndriven(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kept := store.NewMemory()
			g := newRig(t, driver.Config{}, kept, nil)
			ids := []specialist.SessionID{}
			start := func(r *runner.Runner, text string, a ...any) {
				s, err := r.Start(t.Context(), parsed(t, text, a...), runner.StartOptions{Driver: session.DriverNone})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, s.ID)
			}
			start(g.runner, twoSteps, "before", "first")
			start(g.runner, timed)
			g.drive(shared)
			synctest.Wait()
			start(g.runner, twoSteps, "after", "first")
			start(g.runner, timed)
			other := newRig(t, driver.Config{}, kept, nil) // of another process
			start(other.runner, twoSteps, "elsewhere", "first")
			driven := g.start(parsed(t, twoSteps, "driven", "first"))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			g.is(driven, session.Completed, session.CodeGoal)
			for _, id := range ids {
				if s := g.is(id, session.Running, ""); s.Executed != 0 || s.Options().Driver != session.DriverNone {
					t.Errorf("session of %s was carried on", s.Machine().Name())
				}
			}
			for range 2 { // one step of its own
				if _, err := g.runner.StepApart(t.Context(), ids[0]); err != nil {
					t.Fatal(err)
				}
			}
			g.is(ids[0], session.Completed, session.CodeGoal)
		})
	}
}

// TestDriverChanged: a session that another driver takes over is left alone from its next step on, and carried on again
// when it is given back, whichever process says so.
func TestDriverChanged(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kept := store.NewMemory()
			g := newRig(t, driver.Config{}, kept, nil)
			other := newRig(t, driver.Config{}, kept, nil) // of another process
			var ids []specialist.SessionID
			to := func(at specialist.SessionID, r *runner.Runner, d session.Driver) {
				t.Helper()
				if s, err := r.SetDriver(t.Context(), at, d, nil); err != nil || s.Options().Driver != d {
					t.Fatalf("the driver is %v, %v", s, err)
				}
			}
			for range 2 {
				s, err := g.runner.Start(t.Context(), parsed(t, timed), runner.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, s.ID)
			}
			g.drive(shared)
			synctest.Wait()
			to(ids[0], g.runner, session.DriverTemporal)
			to(ids[1], other.runner, session.DriverTemporal)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			for _, id := range ids {
				if s := g.is(id, session.Running, ""); s.Executed != 0 {
					t.Errorf("session %s was carried on", id)
				}
			}
			to(ids[0], g.runner, session.DriverPool)
			to(ids[1], other.runner, session.DriverPool)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			for _, id := range ids {
				g.is(id, session.Completed, session.CodeGoal)
			}
		})
	}
}

// TestDriverChangedInStep: one that steps without end, taken over in a step, takes no further one.
func TestDriverChangedInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{MaxSteps: 1000}, store.NewMemory(), nil)
		s := g.start(parsed(t, forever))
		g.onCommit = func(c session.Change) {
			if c.After.Executed == 3 && c.After.Executed > c.Before.Executed {
				if _, err := g.runner.SetDriver(context.Background(), s, session.DriverTemporal, nil); err != nil {
					t.Error(err)
				}
			}
		}
		g.drive(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := g.is(s, session.Running, ""); s.Executed != 4 && s.Executed != 3 {
			t.Errorf("it has taken %d steps", s.Executed)
		}
	})
}

// TestFair: ten thousand sessions of one machine do not keep one of another waiting.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{Workers: 1}, store.NewMemory(), nil)
		many, one := parsed(t, twoSteps, "many", "first"), parsed(t, twoSteps, "one", "first")
		for range 10_000 {
			g.start(many)
		}
		g.start(one)
		g.drive(false)
		synctest.Wait()
		if at := slices.Index(g.steps, "one"); at > 600 { // those that were listed before, and no more
			t.Errorf("its first step was that after %d others", at)
		}
		last := len(g.steps) - 1 - slices.Index(reversed(g.steps), "one")
		if gap := last - slices.Index(g.steps, "one"); gap > 3 {
			t.Errorf("its second step was %d after the first", gap)
		}
		if len(g.steps) != 2*10_001 {
			t.Errorf("there were %d steps", len(g.steps))
		}
	})
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// TestHangs: a machine whose functions hang keeps as many workers as it may have, and
// the others go on.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		hanging, most := 0, 0
		hang := func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			mu.Lock()
			hanging++
			most = max(most, hanging)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			hanging--
			mu.Unlock()
			return specialist.Answer{}, ctx.Err()
		}
		g := newRig(t, driver.Config{Workers: 4, PerMachine: 3, Grace: time.Second}, store.NewMemory(), map[string]specialist.ProposerFunc{"hang": hang})
		for range 20 {
			g.start(parsed(t, twoSteps, "hangs", "hang"))
		}
		g.drive(false)
		synctest.Wait()
		var ids []specialist.SessionID
		for range 20 {
			ids = append(ids, g.start(parsed(t, twoSteps, "goes", "first")))
		}
		synctest.Wait()
		for _, id := range ids {
			g.is(id, session.Completed, session.CodeGoal)
		}
		if most != 3 {
			t.Errorf("%d hung at a time, want 3", most)
		}
		if s := g.driver.Status(); s.Busy != 3 || s.Ready != 17 || s.Mode != driver.Driving {
			t.Errorf("the driver is %+v", s)
		}
		began := time.Now()
		g.stop() // interrupts those that hang
		if took := time.Since(began); took != time.Second {
			t.Errorf("it ended after %s, want the grace of a second", took)
		}
	})
}

// TestSlowMachine: a machine whose steps take long does not keep workers from one whose
// steps are short.
func TestSlowMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{Workers: 4}, store.NewMemory(), map[string]specialist.ProposerFunc{"slow": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return first(ctx, q)
		}})
		slow, quick := parsed(t, twoSteps, "slow", "slow"), parsed(t, twoSteps, "quick", "first")
		var ids []specialist.SessionID
		for range 50 {
			g.start(slow)
			ids = append(ids, g.start(quick))
		}
		g.drive(false)
		synctest.Wait()
		for _, id := range ids {
			g.is(id, session.Completed, session.CodeGoal)
		}
	})
}

// TestTurns: machines whose steps take as long take turns.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{Workers: 1}, store.NewMemory(), nil)
		for _, name := range []string{"one", "two", "three"} {
			m := parsed(t, twoSteps, name, "first")
			for range 30 {
				g.start(m)
			}
		}
		g.drive(false)
		synctest.Wait()
		for i := 3; i < len(g.steps); i++ {
			if g.steps[i] != g.steps[i-3] || g.steps[i] == g.steps[i-1] {
				t.Fatalf("the turns are %q", g.steps)
			}
		}
	})
}

// TestRulingDuringStep: a ruling that comes before the step which asked for it has returned
// is taken up.
func TestRulingDuringStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{}, store.NewMemory(), nil)
		g.onCommit = func(c session.Change) {
			if c.After.Status != session.NeedsHuman {
				return
			}
			ruled := make(chan error)
			go func() {
				_, err := g.runner.Decide(context.Background(), runner.Ruling{SessionID: c.After.ID, RoundID: c.After.Key().ID(), SpecialistID: "carol", TransitionName: "go"})
				ruled <- err
			}()
			if err := <-ruled; err != nil {
				t.Error(err)
			}
		}
		g.drive(false)
		id := g.start(parsed(t, asks))
		synctest.Wait()
		g.is(id, session.Completed, session.CodeGoal)
	})
}

// TestLostRaces: a step that lost a race is taken again at once, and one that found the
// store busy soon.
func TestLostRaces(t *testing.T) {
	for _, c := range []struct {
		err   error
		times int
		took  time.Duration
	}{{session.ErrStale, 150, 0}, {session.ErrBusy, 5, 4 * time.Second}} {
		t.Run(c.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &failingStore{Memory: store.NewMemory()}
				g := newRig(t, driver.Config{}, s, nil)
				id := g.start(parsed(t, twoSteps, "two", "first"))
				s.fail(c.err, c.times)
				g.drive(false)
				time.Sleep(c.took)
				synctest.Wait()
				g.is(id, session.Completed, session.CodeGoal)
			})
		})
	}
}

// A failingStore fails the next commits.
type failingStore struct {
	*store.Memory
	mu   sync.Mutex
	err  error
	left int
}

func (s *failingStore) fail(err error, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.left = err, times
}

func (s *failingStore) Commit(ctx context.Context, c *session.Change) error {
	s.mu.Lock()
	s.left--
	failed := s.left >= 0
	s.mu.Unlock()
	if failed {
		return s.err
	}
	return s.Memory.Commit(ctx, c)
}

// TestAnswerOutElsewhere: a session whose answer another process waits for is looked at
// now and then, since that process may be lost.
func TestAnswerOutElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answer := store.NewMemory(), make(chan bool)
		there := newRig(t, driver.Config{}, s, map[string]specialist.ProposerFunc{"service": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			<-answer
			return first(ctx, q)
		}})
		id := there.start(parsed(t, strings.Replace(twoSteps, `"strategyFn"`, `"timeout":"10m","webhookTokenName":"T","strategyWebhookUrl"`, 1), "two", "https://example.com/"))
		go there.runner.Step(context.Background(), id)
		synctest.Wait()
		g := newRig(t, driver.Config{}, s, map[string]specialist.ProposerFunc{"service": first}).drive(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if a, known := g.driver.Attempt("main", id); !known || a.Error != "" || a.Next == 0 || g.driver.Status().Steps > 7 {
			t.Errorf("of the attempt is known: %t %+v; %d steps were taken", known, a, g.driver.Status().Steps)
		}
		close(answer)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		g.is(id, session.Completed, session.CodeGoal)
	})
}

// TestStalled: sessions are ready and no step ends.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
			<-ctx.Done()
			return specialist.Answer{}, ctx.Err()
		}
		g := newRig(t, driver.Config{Workers: 1}, store.NewMemory(), map[string]specialist.ProposerFunc{"hang": hang})
		m := parsed(t, strings.Replace(twoSteps, `"strategyFn"`, `"timeout":"10m","strategyFn"`, 1), "hangs", "hang")
		g.start(m)
		g.start(m)
		g.drive(false)
		time.Sleep(59 * time.Second)
		if s := g.driver.Status(); s.Mode != driver.Driving || s.Ready != 1 || s.Busy != 1 {
			t.Errorf("after 59 s the driver is %+v", s)
		}
		time.Sleep(2 * time.Second)
		if s := g.driver.Status(); s.Mode != driver.Stalled {
			t.Errorf("after a minute the driver is %+v", s)
		}
	})
}

// TestFailingStep: a step that fails is tried again, later each time, harms no other
// session, and goes on once what was missing is there.
func TestFailingStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		whole := newRig(t, driver.Config{}, s, map[string]specialist.ProposerFunc{"missing": first})
		id := whole.start(parsed(t, twoSteps, "lacks", "missing"))
		g := newRig(t, driver.Config{}, s, nil).drive(false)
		other := g.start(parsed(t, twoSteps, "two", "first"))
		synctest.Wait()
		g.is(other, session.Completed, session.CodeGoal)
		var waits []time.Duration
		for range 11 {
			a, known := g.driver.Attempt("main", id)
			if !known || a.Error == "" || a.Next == 0 {
				t.Fatalf("of the attempt is known: %+v", a)
			}
			wait := time.Until(a.Next.Time())
			waits = append(waits, (wait + time.Second - 1).Truncate(time.Second))
			time.Sleep(wait + 500*time.Millisecond) // it is looked at twice a second
			synctest.Wait()
		}
		if got := fmt.Sprint(waits); got != "[1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s]" {
			t.Errorf("it was tried again after %s", got)
		}
		g.is(id, session.Running, "")
		steps := g.driver.Status().Steps
		if _, err := g.runner.Stop(t.Context(), id, runner.Stopping{Actor: session.Actor{Subject: "local:test", Method: "local"}, Note: "no more"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, known := g.driver.Attempt("main", id); known || g.driver.Status().Steps != steps {
			t.Error("a session that was cancelled is tried again")
		}
	})
}

// TestFailingTimer: a step that fails is not tried each time that the index of timers is
// asked.
func TestFailingTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failingStore{Memory: store.NewMemory()}
		g := newRig(t, driver.Config{}, s, nil)
		id := g.start(parsed(t, timed))
		s.fail(errors.New("the disk is full"), 1<<30)
		g.drive(false)
		time.Sleep(150 * time.Second)
		if n := g.driver.Status().Steps; n > 8 {
			t.Errorf("%d steps were taken in a minute", n)
		}
		s.fail(nil, 0)
		time.Sleep(65 * time.Second)
		g.is(id, session.Completed, session.CodeGoal)
	})
}

// TestEndless: a session that never ends is stopped at the limit of transitions, and
// counts anew when it is resumed.
func TestEndless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{MaxSteps: 25}, store.NewMemory(), nil).drive(false)
		id := g.start(parsed(t, forever))
		for n := int32(25); n <= 75; n += 25 {
			synctest.Wait()
			if s := g.is(id, session.Stopped, session.CodeStepLimit); s.Executed != n {
				t.Errorf("it was stopped after %d transitions, want %d", s.Executed, n)
			}
			if _, err := g.runner.Resume(t.Context(), id, runner.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestEndsWhileItBegins: a Driver that ends before it knows what there is to do has not failed.
func TestEndsWhileItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := newRig(t, driver.Config{}, &ending{store.NewMemory(), cancel}, nil)
	if err := g.driver.Run(ctx, driver.Tenant{Name: "main", Runner: g.runner}); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// ending is a store in which a Driver is ended while it lists sessions.
type ending struct {
	session.Store
	end func()
}

// List ends the Driver.
func (s *ending) List(ctx context.Context, _ session.ListQuery) ([]session.Summary, error) {
	s.end()
	return nil, ctx.Err()
}

// TestTooLong: a session whose steps take an hour in all is stopped, over any number of
// restarts, in peace or not; what it waits for a human is no step, and resumed it has an hour
// again. One that takes less is left alone.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, times := store.NewMemory(), control.NewMemory()
		slow := map[string]specialist.ProposerFunc{"slow": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			select {
			case <-ctx.Done():
				return specialist.Answer{}, ctx.Err()
			case <-time.After(24 * time.Second):
				return first(ctx, q)
			}
		}}
		drive := func(times driver.Times) *rig { return newRig(t, driver.Config{Times: times}, kept, slow).drive(false) }
		m := parsed(t, strings.ReplaceAll(forever, `"first"`, `"slow"`))
		g := drive(times)
		id := g.start(m)
		time.Sleep(20*time.Minute + 31*time.Second)
		g.stop() // and the time that was not kept yet is
		if at, err := times.StepTime(t.Context(), "main", id.String()); err != nil || at.Msec < 20*60_000+30_000 || at.Msec > 21*60_000 {
			t.Errorf("of 20 minutes and a half is kept %+v %v", at, err)
		}
		time.Sleep(5 * time.Hour)
		g = drive(&killed{Times: times, after: 8})
		time.Sleep(14*time.Minute + 50*time.Second) // of which ten minutes are kept
		g.stop()
		g = drive(times)
		time.Sleep(28 * time.Minute)
		g.is(id, session.Running, "")
		time.Sleep(4 * time.Minute)
		s := g.is(id, session.Stopped, session.CodeTimeLimit)
		if o := s.Outcome(); o.Reason != "the steps took longer than their limit of 1h0m0s" {
			t.Errorf("it was stopped because %s", o.Reason)
		}
		if _, err := g.runner.Resume(t.Context(), id, runner.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(58 * time.Minute)
		g.is(id, session.Running, "")
		time.Sleep(4 * time.Minute)
		g.is(id, session.Stopped, session.CodeTimeLimit)
	})
}

// killed is where the time of steps is kept by a process that is killed after so many times.
type killed struct {
	driver.Times
	after int
}

// Commit commits until the process is killed.
func (k *killed) Commit(ctx context.Context, c control.Changes) error {
	if k.after--; k.after < 0 {
		return errors.New("nobody is there any more")
	}
	return k.Times.Commit(ctx, c)
}

// TestBrokenFunctions: a function that panics or ends its goroutine fails its own session.
func TestBrokenFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, driver.Config{Workers: 1}, store.NewMemory(), map[string]specialist.ProposerFunc{
			"panics": func(context.Context, specialist.Question) (specialist.Answer, error) { panic("no") },
			"leaves": func(context.Context, specialist.Question) (specialist.Answer, error) {
				runtime.Goexit()
				return specialist.Answer{}, nil
			},
		}).drive(false)
		panics, leaves := g.start(parsed(t, twoSteps, "panics", "panics")), g.start(parsed(t, twoSteps, "leaves", "leaves"))
		goes := g.start(parsed(t, twoSteps, "two", "first"))
		synctest.Wait()
		g.is(goes, session.Completed, session.CodeGoal)
		g.is(panics, session.NeedsHuman, session.CodeNoProposals)
		g.is(leaves, session.Failed, session.CodePanic)
	})
}

// TestDamagedSession: a session that cannot be read is left alone until something is
// committed to it.
func TestDamagedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := &damagedStore{Memory: store.NewMemory(), err: &session.CorruptError{What: "session", Problem: "a hash does not fit"}}
		g := newRig(t, driver.Config{}, damaged, nil)
		damaged.id = g.start(parsed(t, twoSteps, "two", "first"))
		damaged.on.Store(true)
		g.drive(false)
		other := g.start(parsed(t, twoSteps, "two", "first"))
		time.Sleep(time.Hour)
		synctest.Wait()
		g.is(other, session.Completed, session.CodeGoal)
		if damaged.reads.Load() != 1 {
			t.Errorf("it was read %d times", damaged.reads.Load())
		}
	})
}

// TestNewerSession: a session that a newer version has written to is left to it, and looked at again once a minute; the
// others go on. It is a failure of no step.
func TestNewerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer := &damagedStore{Memory: store.NewMemory(), err: &session.NewerError{What: "session", Has: "an event"}}
		g := newRig(t, driver.Config{}, newer, nil)
		newer.id = g.start(parsed(t, twoSteps, "two", "first"))
		newer.on.Store(true)
		g.drive(false)
		other := g.start(parsed(t, twoSteps, "two", "first"))
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		g.is(other, session.Completed, session.CodeGoal)
		if newer.reads.Load() != 11 {
			t.Errorf("in ten minutes it was read %d times", newer.reads.Load())
		}
		if a, _ := g.driver.Attempt("main", newer.id); a.Tries != 0 || a.Error == "" {
			t.Errorf("said of it is %+v", a)
		}
		newer.on.Store(false) // the process was updated
		time.Sleep(time.Minute)
		synctest.Wait()
		g.is(newer.id, session.Completed, session.CodeGoal)
	})
}

type damagedStore struct {
	*store.Memory
	id    specialist.SessionID
	on    atomic.Bool
	reads atomic.Int64
	err   error
}

func (s *damagedStore) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if s.on.Load() && id == s.id {
		s.reads.Add(1)
		return nil, s.err
	}
	return s.Memory.Load(ctx, p, id)
}

func (s *damagedStore) Recent(id specialist.SessionID) *session.Session {
	if s.on.Load() && id == s.id {
		return nil
	}
	return s.Memory.Recent(id)
}

// TestOthersCommits: what another process starts or rules on is carried on, too.
func TestOthersCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	open := func() session.Store {
		s, err := store.OpenSQLite(context.Background(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ended := make(chan session.Status, 8)
	g := newRig(t, driver.Config{}, tellingStore{open(), ended}, nil)
	there := newRig(t, driver.Config{}, open(), nil)
	there.start(parsed(t, twoSteps, "two", "first"))
	g.drive(true)
	if got := <-ended; got != session.Completed {
		t.Errorf("the session that was there is %s", got)
	}
	there.start(parsed(t, twoSteps, "two", "first"))
	if got := <-ended; got != session.Completed {
		t.Errorf("the session of another process is %s", got)
	}
	id := there.start(parsed(t, asks))
	if got := <-ended; got != session.NeedsHuman {
		t.Errorf("the session of another process is %s", got)
	}
	s, err := there.runner.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := there.runner.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "go"}); err != nil || !a.Executed {
		t.Fatal(err, a)
	}
	if got := <-ended; got != session.Completed {
		t.Errorf("after the ruling in another process the session is %s", got)
	}
}

// tellingStore tells of the sessions that stand still.
type tellingStore struct {
	session.Store
	ended chan session.Status
}

func (s tellingStore) Commit(ctx context.Context, c *session.Change) error {
	err := s.Store.Commit(ctx, c)
	if err == nil && c.After.Status != session.Running {
		s.ended <- c.After.Status
	}
	return err
}

// TestOneDrives: of two drivers with a lock one drives, and the other goes on after it.
func TestOneDrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		lock := &memoryLock{}
		one := newRig(t, driver.Config{}, s, nil).driveWith(driver.Tenant{Lock: lock})
		synctest.Wait()
		two := newRig(t, driver.Config{}, s, nil).driveWith(driver.Tenant{Lock: lock})
		synctest.Wait()
		if a, b := one.driver.Status().Mode, two.driver.Status().Mode; a != driver.Driving || b != driver.Standby {
			t.Fatalf("they are %s and %s", a, b)
		}
		one.stop()
		if a := one.driver.Status().Mode; a != driver.Standby {
			t.Errorf("after its end it is %s", a)
		}
		id := one.start(parsed(t, twoSteps, "two", "first"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		two.is(id, session.Completed, session.CodeGoal)
	})
}

type memoryLock struct {
	mu   sync.Mutex
	held bool
}

func (l *memoryLock) TryLock() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := !l.held
	l.held = true
	return got, nil
}

func (l *memoryLock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	return nil
}
