package driver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// Tenants that share a driver.
type tenantsRig struct {
	*testing.T
	driver *driver.Driver
	of     map[string]*runner.Runner

	mu         sync.Mutex
	steps      []string       // the tenants of the steps that have begun, in their order
	busy, most map[string]int // steps under way, and how many there were at once
}

// newTenants returns a driver for some tenants, whose steps take a second each.
func newTenants(t *testing.T, c driver.Config, names ...string) *tenantsRig {
	t.Helper()
	g := &tenantsRig{T: t, driver: driver.New(c), of: map[string]*runner.Runner{}, busy: map[string]int{}, most: map[string]int{}}
	for _, name := range names {
		slow := specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			g.mu.Lock()
			g.steps = append(g.steps, name)
			g.busy[name]++
			g.most[name] = max(g.most[name], g.busy[name])
			g.mu.Unlock()
			time.Sleep(time.Second)
			g.mu.Lock()
			g.busy[name]--
			g.mu.Unlock()
			return first(ctx, q)
		})
		r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: strategies.Registry{}.WithProposer("slow", slow), Observer: g.driver.Observer(name)})
		if err != nil {
			t.Fatal(err)
		}
		g.of[name] = r
	}
	return g
}

// start starts sessions of a tenant, of as many machines.
func (g *tenantsRig) start(tenant string, sessions, machines int) {
	g.Helper()
	var list []*machine.Machine
	for i := range machines {
		list = append(list, parsed(g.T, twoSteps, fmt.Sprint("m", i), "slow"))
	}
	for i := range sessions {
		if _, err := g.of[tenant].Start(g.Context(), list[i%machines], runner.StartOptions{}); err != nil {
			g.Fatal(err)
		}
	}
}

// drive has the driver run until the test ends. workers bound the tenants.
func (g *tenantsRig) drive(workers map[string]int) { g.driveBehind(nil, workers) }

// driveBehind is drive where tenants have locks.
func (g *tenantsRig) driveBehind(locks map[string]driver.Lock, workers map[string]int) {
	var list []driver.Tenant
	for name, r := range g.of {
		list = append(list, driver.Tenant{Name: name, Runner: r, Workers: workers[name], Lock: locks[name]})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.driver.Run(ctx, list...) }()
	g.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			g.Error(err)
		}
	})
}

// seen returns how many steps of each tenant there were at once since it was asked before.
func (g *tenantsRig) seen() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := g.most
	g.most = map[string]int{}
	return most
}

// TestFairBetweenTenants: a tenant with ten thousand ready sessions of many machines keeps another
// waiting for one step, and has no more than half of the workers while others wait.
func TestFairBetweenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTenants(t, driver.Config{Workers: 8}, "many", "one")
		g.start("many", 10_000, 20)
		g.start("one", 1, 1)
		g.drive(nil)
		synctest.Wait()
		g.mu.Lock()
		begun := slices.Clone(g.steps)
		g.mu.Unlock()
		if len(begun) != 8 || !slices.Contains(begun, "one") {
			t.Errorf("the first steps are of %v", begun)
		}
		time.Sleep(3*time.Second + time.Second/2)
		if s, err := g.of["one"].Sessions(t.Context(), session.ListQuery{Statuses: []session.Status{session.Completed}, Limit: 2}); err != nil || len(s) != 1 {
			t.Errorf("after three steps' time it has completed %d sessions (%v)", len(s), err)
		}
		if n := g.seen()["many"]; n != 8 {
			t.Errorf("while nobody else waits it has %d workers", n)
		}
		g.start("one", 100, 20)
		time.Sleep(2 * time.Second) // what was under way has ended
		g.seen()
		time.Sleep(5 * time.Second)
		if most := g.seen(); most["many"] > 4 || most["one"] < 4 {
			t.Errorf("while both wait they have %v of 8 workers", most)
		}
		loads := g.driver.Loads()
		if len(loads) != 2 || loads[0].Ready+loads[1].Ready != g.driver.Status().Ready || loads[0].Busy+loads[1].Busy != 8 {
			t.Errorf("the loads are %+v of %+v", loads, g.driver.Status())
		}
	})
}

// TestWorkersOfATenant: a tenant has no more workers than it may, though nobody else wants them.
func TestWorkersOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTenants(t, driver.Config{Workers: 8}, "small", "other")
		g.start("small", 20, 5)
		g.drive(map[string]int{"small": 2})
		time.Sleep(5*time.Second + time.Second/2)
		if n := g.seen()["small"]; n != 2 {
			t.Errorf("it had %d workers, and may have 2", n)
		}
	})
}

// TestTenantDrivenElsewhere: a tenant that another process drives keeps no other waiting, and is
// taken over within two seconds of that one's end, with what it had to do by then.
func TestTenantDrivenElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTenants(t, driver.Config{}, "free", "taken")
		lock := &memoryLock{held: true}
		g.start("free", 1, 1)
		g.start("taken", 1, 1)
		g.driveBehind(map[string]driver.Lock{"free": &memoryLock{}, "taken": lock}, nil)
		time.Sleep(10 * time.Second)
		done := func(tenant string) int {
			list, err := g.of[tenant].Sessions(t.Context(), session.ListQuery{Statuses: []session.Status{session.Completed}, Limit: 9})
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if done("free") != 1 || done("taken") != 0 || g.seen()["taken"] != 0 {
			t.Fatalf("completed are %d and, of who is driven elsewhere, %d", done("free"), done("taken"))
		}
		if s := g.driver.Status(); s.Mode != driver.Driving || !g.driver.Drives("free") || g.driver.Drives("taken") || len(g.driver.Loads()) != 1 {
			t.Errorf("it says %+v %+v", s, g.driver.Loads())
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if g.seen()["taken"] != 1 || !g.driver.Drives("taken") {
			t.Error("two seconds after its driver has ended a tenant is not driven")
		}
		time.Sleep(3 * time.Second)
		if g.start("taken", 1, 1); done("taken") != 1 {
			t.Errorf("of the tenant that was taken over %d sessions are completed", done("taken"))
		}
		time.Sleep(5 * time.Second)
		if done("taken") != 2 {
			t.Error("what is started after that is not carried on")
		}
	})
}
