package guard

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dialai/dialai/verdict"
)

// State returns what is counted of a task. An unknown task has the zero State.
func (g *Guard) State(name string) State {
	g.mu.RLock()
	t := g.tasks[name]
	g.mu.RUnlock()
	if t == nil {
		return State{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.memory = t.memory.clone()
	return s
}

// Reset forgets a task's progress: its steps, tools and loops. What was spent
// stays spent. An open token does nothing any more.
func (g *Guard) Reset(name string) {
	t := g.lock(name)
	defer t.mu.Unlock()
	t.state, t.memory, t.open = State{Spent: t.state.Spent}, memory{}, nil
	t.resets++
	t.began, t.turns = time.Time{}, nil
}

// Clear lets a task go on after a human has looked at it: what loop detection
// remembers is dropped, so that the next step is judged afresh; counters, tools
// and spending stay. Who said so and why reaches the observer.
func (g *Guard) Clear(name, code, actor, note string) error {
	if actor == "" {
		return fmt.Errorf("%w: who clears the task is missing", verdict.ErrInput)
	}
	t := g.lock(name)
	defer t.mu.Unlock()
	t.memory.clear()
	if g.observe != nil && !g.told(Observation{Task: name, At: g.now(), Cleared: &Clearing{code, actor, note}}) {
		return fmt.Errorf("task %q is cleared, but the observer that was told of it panicked", name)
	}
	return nil
}

// GC evicts the tasks that have committed nothing for at least ttl, or else for
// store.ttl_ms, and returns how many. A task with an open token stays. An
// evicted task that comes back is a new one: nothing else makes a budget whole
// again.
func (g *Guard) GC(ttl ...time.Duration) (evicted int) {
	limit := g.config.Store.TTL
	if len(ttl) > 0 {
		limit = ttl[0]
	}
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, t := range g.tasks {
		t.mu.Lock()
		if !t.busy(g) && now.Sub(cmp.Or(t.moved, t.began)) >= limit {
			t.evicted = true
			delete(g.tasks, name)
			evicted++
		}
		t.mu.Unlock()
	}
	return evicted
}
