package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// All that a guard remembers, as JSON. Outputs, states and results are in it as hashes
// and fingerprints, arguments as a sketch of their words; only those of each task's
// newest call stand there as they are. Hashes are sixteen hexadecimal digits, since
// many readers of JSON round such large numbers. Open tokens are left out: their steps
// were not committed.
//
// Restore checks the whole snapshot before it changes anything, and refuses while a
// step is open: that step would be committed into a task that is no longer there.

// A Snapshot is all that a Guard remembers, fit to be written as JSON and
// restored, by the same version or a later one. Outputs, states and results are
// hashes in it, arguments a sketch of the words in them, except those of each task's
// newest call. Open tokens are no part of it: their steps were not committed.
type Snapshot struct {
	Version int            `json:"version"` // 1
	Tasks   []taskSnapshot `json:"tasks"`   // by name
}

type taskSnapshot struct {
	Task      string           `json:"task"`
	Steps     int64            `json:"steps"`
	TokensIn  int64            `json:"tokensIn"`
	TokensOut int64            `json:"tokensOut"`
	Money     exact.Money      `json:"money"`
	Spent     spend.Book       `json:"spent"`
	Warned    bool             `json:"warned,omitempty"`
	Unpriced  string           `json:"unpricedModel,omitempty"`
	Began     int64            `json:"began"` // in ms since 1970; 0 if it has no step
	Moved     int64            `json:"moved"`
	Visits    []visit          `json:"visits,omitempty"`
	Outputs   []outputSnapshot `json:"outputs,omitempty"` // in mode overlap
	Ngrams    [][]hash         `json:"ngrams,omitempty"`  // of each output, in mode any_ngram
	Calls     []callMark       `json:"calls,omitempty"`
	Facts     []fact           `json:"facts,omitempty"`
	Tools     []toolCount      `json:"tools,omitempty"`
	Last      []byte           `json:"last,omitempty"`
	Streak    int64            `json:"streak,omitempty"`
	Alike     int64            `json:"alike,omitempty"` // calls in a row
	Output    hash             `json:"output,omitempty"`
	Context   hash             `json:"context,omitempty"`
	Batch     batch.State      `json:"batch"`
}

// An outputSnapshot is a [printMark].
type outputSnapshot struct {
	Context hash     `json:"context,omitempty"`
	Marks   []uint32 `json:"marks,omitempty"`
}

// A hash is written as text, since JSON numbers of that size are rounded by many
// readers.
type hash uint64

// MarshalText writes sixteen hexadecimal digits.
func (h hash) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText reads them.
func (h *hash) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%x", (*uint64)(h))
	return err
}

// Snapshot returns what the Guard remembers of every task.
func (g *Guard) Snapshot() Snapshot {
	g.mu.RLock()
	defer g.mu.RUnlock()
	s := Snapshot{Version: 1, Tasks: []taskSnapshot{}}
	for _, name := range slices.Sorted(maps.Keys(g.tasks)) {
		t := g.tasks[name]
		t.mu.Lock()
		s.Tasks = append(s.Tasks, t.snapshot(name))
		t.mu.Unlock()
	}
	return s
}

// Restore puts the tasks of a snapshot in the place of those the Guard has. It
// returns an error, and changes nothing, if the snapshot is of a later version,
// contradicts itself, or a task of the Guard has an open token.
func (g *Guard) Restore(s Snapshot) error {
	if s.Version != 1 {
		return fmt.Errorf("%w: the snapshot has version %d, this program knows 1", verdict.ErrInput, s.Version)
	}
	tasks := make(map[string]*task, len(s.Tasks))
	for i := range s.Tasks {
		t, err := s.Tasks[i].task()
		if err != nil {
			return fmt.Errorf("%w: task %q: %w", verdict.ErrInput, s.Tasks[i].Task, err)
		}
		if tasks[s.Tasks[i].Task] != nil {
			return fmt.Errorf("%w: task %q is there twice", verdict.ErrInput, s.Tasks[i].Task)
		}
		tasks[s.Tasks[i].Task] = t
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, t := range g.tasks {
		t.mu.Lock()
		open := t.busy(g)
		t.mu.Unlock()
		if open {
			return fmt.Errorf("%w: %q", ErrBusy, name)
		}
	}
	for _, t := range g.tasks {
		t.mu.Lock()
		t.evicted = true
		t.mu.Unlock()
	}
	g.tasks = tasks
	return nil
}

func (t *task) snapshot(name string) taskSnapshot {
	m := &t.memory
	s := taskSnapshot{
		Task: name, Steps: t.state.Steps, TokensIn: t.state.TokensIn, TokensOut: t.state.TokensOut, Money: t.state.Money,
		Spent: t.state.Spent, Warned: t.state.warned, Unpriced: t.state.unpriced, Began: millis(t.began), Moved: millis(t.moved),
		Visits: m.visits.list(), Calls: m.calls.list(), Facts: slices.Clone(m.facts), Tools: slices.Clone(m.tools),
		Last: slices.Clone(m.last), Streak: m.streak, Alike: m.run, Output: m.output, Context: m.context, Batch: m.batches(),
	}
	for i := range m.prints.len() {
		p := m.prints.at(i)
		s.Outputs = append(s.Outputs, outputSnapshot{p.context, slices.Clone(p.Marks)})
	}
	for i := range m.grams.len() {
		s.Ngrams = append(s.Ngrams, mapped(*m.grams.at(i), func(g uint64) hash { return hash(g) }))
	}
	return s
}

// task returns the task a snapshot is of.
func (s *taskSnapshot) task() (*task, error) {
	if s.Task == "" || s.Steps < 0 || s.TokensIn < 0 || s.TokensOut < 0 || s.Streak < 0 || s.Alike < 0 || s.Began < 0 || s.Moved < 0 {
		return nil, fmt.Errorf("a name is empty or a number negative")
	}
	t := &task{began: fromMillis(s.Began), moved: fromMillis(s.Moved)}
	t.state = State{Steps: s.Steps, TokensIn: s.TokensIn, TokensOut: s.TokensOut, Money: s.Money, Spent: s.Spent, warned: s.Warned, unpriced: s.Unpriced}
	m := &t.memory
	m.last, m.streak, m.run, m.batch = slices.Clone(s.Last), s.Streak, s.Alike, &s.Batch
	m.output, m.context, m.facts, m.tools = s.Output, s.Context, slices.Clone(s.Facts), slices.Clone(s.Tools)
	m.visits.items, m.calls.items = slices.Clone(s.Visits), slices.Clone(s.Calls)
	for _, o := range s.Outputs {
		mark := printMark{o.Context, text.Print{Marks: slices.Clone(o.Marks)}}
		mark.Index()
		m.prints.items = append(m.prints.items, mark)
	}
	for _, grams := range s.Ngrams {
		m.grams.items = append(m.grams.items, mapped(grams, func(g hash) uint64 { return uint64(g) }))
	}
	for _, c := range s.Tools {
		if c.Calls < 0 {
			return nil, fmt.Errorf("tool %q has a negative number of calls", c.Name)
		}
	}
	m.indexTools()
	for _, c := range s.Calls {
		if c.Tool < 0 || int(c.Tool) >= len(m.tools) {
			return nil, fmt.Errorf("a call is of tool %d, there are %d", c.Tool, len(m.tools))
		}
	}
	return t, nil
}

// mapped returns f of each item.
func mapped[T, U any](items []T, f func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
