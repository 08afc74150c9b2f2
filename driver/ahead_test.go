package driver_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// ruled is a machine of one state, in which a human decides.
const ruled = `{"machineName":"ruled","initialState":"a","goalState":"c",
	"states":{"a":{"transitions":{"go":"c","leave":"d"}},"c":{},"d":{}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// lessons is a store that notes which lessons are read.
type lessons struct {
	session.Store
	hold chan struct{} // nil, or what every reader waits for

	mu      sync.Mutex
	read    int
	readers int // now
	most    int // of readers at a time
}

func (l *lessons) Lessons(ctx context.Context, after int64) iter.Seq2[session.Lesson, error] {
	return func(yield func(session.Lesson, error) bool) {
		l.mu.Lock()
		hold := l.hold
		l.readers++
		l.most = max(l.most, l.readers)
		l.mu.Unlock()
		if hold != nil {
			<-hold
		}
		for x, err := range l.Store.Lessons(ctx, after) {
			l.mu.Lock()
			l.read++
			l.mu.Unlock()
			if !yield(x, err) {
				break
			}
		}
		l.mu.Lock()
		l.readers--
		l.mu.Unlock()
	}
}

// counted checks how many lessons were read, and that no two readers were at it at a time.
func (l *lessons) counted(t *testing.T, when string, want int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read != want || l.most > 1 {
		t.Errorf("%s, %d lessons are read by %d at a time, want %d", when, l.read, l.most, want)
	}
}

// rule has a human decide in a session of ruled.
func (g *rig) rule(id specialist.SessionID) {
	g.Helper()
	s, err := g.runner.Session(g.Context(), id)
	if err != nil {
		g.Fatal(err)
	}
	if a, err := g.runner.Decide(g.Context(), runner.Ruling{SessionID: id, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "go"}); err != nil || !a.Executed {
		g.Fatal(err, a)
	}
}

// TestReadsAhead: once decisions are made by what was learned, what a ruling teaches is read at once, by one at
// a time however many there are, and by a worker that is free; and the Driver ends when that has ended.
func TestReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &lessons{Store: store.NewMemory()}
		busy := make(chan struct{})
		g := newRig(t, driver.Config{Workers: 1}, kept, map[string]specialist.ProposerFunc{"slow": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			<-busy
			return first(ctx, q)
		}}).drive(false)
		m := parsed(t, ruled)
		var ids []specialist.SessionID
		for range 41 {
			ids = append(ids, g.start(m))
		}
		synctest.Wait()
		next := func() { g.rule(ids[0]); ids = ids[1:] }
		if _, err := g.runner.Ledger(t.Context()); err != nil {
			t.Fatal(err)
		}
		next()
		synctest.Wait()
		kept.counted(t, "after a ruling", 1)

		kept.hold = make(chan struct{})
		for range 20 {
			next()
		}
		synctest.Wait()
		kept.counted(t, "while the store is slow", 1)
		close(kept.hold)
		synctest.Wait()
		kept.counted(t, "after twenty more", 21)

		slow := g.start(parsed(t, twoSteps, "slow", "slow"))
		synctest.Wait()
		next()
		synctest.Wait()
		kept.counted(t, "while no worker is free", 21)
		close(busy)
		synctest.Wait()
		kept.counted(t, "when one is free", 22)
		g.is(slow, session.Completed, session.CodeGoal)

		kept.hold = make(chan struct{})
		next()
		synctest.Wait()
		ended := make(chan struct{})
		go func() { g.stop(); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the driver has ended, and still reads ahead")
		default:
		}
		close(kept.hold)
		<-ended
		kept.counted(t, "at the end", 23)
		kept.hold = nil
		next()
		synctest.Wait()
		kept.counted(t, "after the end", 23)
	})
}

// TestReadsAheadForEachTenant: a tenant in which something is learned all the time keeps no other waiting.
func TestReadsAheadForEachTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := driver.New(driver.Config{})
		stores, rigs := map[string]*lessons{}, map[string]*rig{}
		var tenants []driver.Tenant
		for _, name := range []string{"one", "two", "three"} {
			kept := &lessons{Store: store.NewMemory(), hold: make(chan struct{})}
			g := newRig(t, driver.Config{}, kept, nil)
			r, err := runner.New(runner.Config{Store: kept, Observer: d.Observer(name)})
			if err != nil {
				t.Fatal(err)
			}
			g.runner, stores[name], rigs[name] = r, kept, g
			tenants = append(tenants, driver.Tenant{Name: name, Runner: r})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, tenants...) }()
		learn := func(name string) {
			g := rigs[name]
			id := g.start(parsed(t, ruled))
			synctest.Wait()
			g.rule(id)
			synctest.Wait()
		}
		for name, kept := range stores {
			hold := kept.hold
			kept.hold = nil
			if _, err := rigs[name].runner.Ledger(t.Context()); err != nil {
				t.Fatal(err)
			}
			kept.hold = hold
		}
		for _, name := range []string{"one", "two", "three", "one", "one"} { // the first is read, and held
			learn(name)
		}
		var order []string
		for range 4 {
			for name, kept := range stores {
				kept.mu.Lock()
				reads := kept.readers > 0
				kept.mu.Unlock()
				if !reads {
					continue
				}
				order = append(order, name)
				kept.hold <- struct{}{} // and the next is held
				synctest.Wait()
				break
			}
		}
		if len(order) != 4 || order[0] != "one" || order[3] != "one" {
			t.Errorf("they are read in the order %q, want each of the others before the first again", order)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
