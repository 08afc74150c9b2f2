package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// Memory keeps sessions in this process and loses them with it. It is a whole
// store: for tests, simulations, and programs that need no durability. Hashes
// are computed when somebody reads them.
type Memory struct {
	shards [shardCount]shard

	place atomic.Int64 // of the newest commit; lessons draw theirs under mu

	mu        sync.RWMutex
	order     []*cell // by creation
	lessons   []trust.Lesson
	machines  map[string]*memoryMachine
	owners    map[string]bool
	lastOwner int
	secret    [32]byte
	audit     map[string][]specialist.AuditEntry // by session
}

const shardCount = 64

type shard struct {
	mu    sync.Mutex
	cells map[specialist.SessionID]*cell
}

// A cell is one session. Its shard's mutex guards it; session may be read
// without.
type cell struct {
	session atomic.Pointer[runner.Session]
	last    *memoryRecord // the newest, nil while only the opening was committed
	machine *memoryMachine
	place   int64 // of the opening
}

// A memoryRecord is one record of a session's log, which is a list.
type memoryRecord struct {
	previous *memoryRecord
	place    int64               // among all commits
	before   specialist.RoundKey // key of the round in which it begins
	first    int64
	events   []runner.Event
}

// A memoryMachine is what belongs to a machine name.
type memoryMachine struct {
	name string

	mu          sync.RWMutex
	book        *trust.Book
	exemplars   []specialist.Exemplar // in commit order
	decided     []decided
	definitions [][]byte
	digests     map[string]bool
	roster      *runner.Roster
	log         []runner.StoredRecord
}

type decided struct {
	runner.DecisionRef
	at specialist.Time
}

var _ runner.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	return NewSeededMemory(secret)
}

// NewSeededMemory returns an empty store with a known secret: for simulations, in
// which the same has to be drawn again.
func NewSeededMemory(secret [32]byte) *Memory {
	m := &Memory{machines: map[string]*memoryMachine{}, owners: map[string]bool{}, secret: secret}
	for i := range m.shards {
		m.shards[i].cells = map[specialist.SessionID]*cell{}
	}
	return m
}

func (m *Memory) shard(id specialist.SessionID) *shard {
	return &m.shards[binary.BigEndian.Uint16(id[14:])%shardCount]
}

// machine returns what belongs to a name, made if need be.
func (m *Memory) machine(name string) *memoryMachine {
	m.mu.RLock()
	mm := m.machines[name]
	m.mu.RUnlock()
	if mm != nil {
		return mm
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if mm = m.machines[name]; mm == nil {
		mm = &memoryMachine{name: name, book: &trust.Book{}, digests: map[string]bool{}, roster: &runner.Roster{}}
		m.machines[name] = mm
	}
	return mm
}

// Commit implements [runner.SessionStore].
func (m *Memory) Commit(_ context.Context, c *runner.Change) error {
	sh := m.shard(c.After.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	known := sh.cells[c.After.ID]
	if c.Before == nil {
		if known != nil {
			return fmt.Errorf("session %s: %w", c.After.ID, runner.ErrExists)
		}
		known = &cell{machine: m.machine(c.After.Machine().Name()), place: m.place.Add(1)}
		known.session.Store(c.After)
		if !opening(c) {
			known.last = record(nil, c, known.place)
		}
		sh.cells[c.After.ID] = known
		m.created(known, c.After)
		return nil
	}
	if known == nil {
		return &runner.NotFoundError{What: "Session", ID: c.After.ID.String()}
	}
	if known.session.Load().Sequence != c.Before.Sequence {
		return runner.ErrStale
	}
	known.last = record(known.last, c, m.learn(c.Lesson()))
	known.session.Store(c.After)
	return known.machine.follow(c)
}

// opening reports whether c is what Start commits: it can be derived from the
// session, so it need not be kept.
func opening(c *runner.Change) bool {
	if len(c.Events) < 2 || len(c.Events) > 3 {
		return false
	}
	_, created := c.Events[0].Data.(*runner.Created)
	_, opened := c.Events[1].Data.(*runner.RoundOpened)
	return created && opened && c.After.Round == 1 && c.After.Sequence == int64(len(c.Events))
}

func record(previous *memoryRecord, c *runner.Change, place int64) *memoryRecord {
	// Record and events are one allocation, if the commit is of usual size.
	type roomy struct {
		memoryRecord
		room [10]runner.Event
	}
	r := &roomy{memoryRecord: memoryRecord{previous: previous, place: place, first: c.First}}
	r.events = append(r.room[:0], c.Events...)
	r.before.Session = c.After.ID
	if c.Before != nil {
		r.before = c.Before.Key()
	}
	return &r.memoryRecord
}

func (m *Memory) created(c *cell, s *runner.Session) {
	m.mu.Lock()
	m.order = append(m.order, c)
	m.mu.Unlock()
	mm := c.machine
	mm.mu.RLock()
	known := mm.digests[s.Machine().Digest()]
	mm.mu.RUnlock()
	if known {
		return
	}
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if !mm.digests[s.Machine().Digest()] {
		mm.digests[s.Machine().Digest()] = true
		mm.definitions = append(mm.definitions, s.Machine().JSON())
	}
}

// follow brings up to date what follows from a change.
func (mm *memoryMachine) follow(c *runner.Change) error {
	learned, decides := c.Learned(), c.Decides()
	if learned == nil && !decides && c.Roster == nil {
		return nil
	}
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if decides {
		mm.decided = append(mm.decided, decided{runner.DecisionRef{Session: c.After.ID, Seq: c.First}, c.After.UpdatedAt})
	}
	if learned != nil {
		mm.book = mm.book.With(learned.Comparisons...)
		if e := learned.Exemplar; e != nil {
			mm.exemplars = append(mm.exemplars, *e)
		}
	}
	for _, e := range c.Roster {
		if err := mm.register(e); err != nil {
			return err
		}
	}
	return nil
}

// learn appends a lesson, if there is one, and returns the place of its commit.
func (m *Memory) learn(l *trust.Lesson) int64 {
	if l == nil {
		return m.place.Add(1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	learned := *l
	learned.Seq = m.place.Add(1)
	m.lessons = append(m.lessons, learned)
	return learned.Seq
}

// Lessons implements [runner.TrustStore].
func (m *Memory) Lessons(_ context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return func(yield func(trust.Lesson, error) bool) {
		m.mu.RLock()
		all := m.lessons[:len(m.lessons):len(m.lessons)]
		m.mu.RUnlock()
		first, _ := slices.BinarySearchFunc(all, after+1, func(l trust.Lesson, seq int64) int { return cmp.Compare(l.Seq, seq) })
		for i := range all[first:] {
			if !yield(all[first+i], nil) {
				return
			}
		}
	}
}

// Load implements [runner.SessionStore].
func (m *Memory) Load(_ context.Context, _ *runner.Programs, id specialist.SessionID) (*runner.Session, error) {
	sh := m.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.cells[id]; c != nil {
		return c.session.Load(), nil // never changes
	}
	return nil, &runner.NotFoundError{What: "Session", ID: id.String()}
}

// Recent implements [runner.SessionStore].
func (m *Memory) Recent(id specialist.SessionID) *runner.Session {
	sh := m.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.cells[id]; c != nil {
		return c.session.Load()
	}
	return nil
}

// List implements [runner.SessionStore].
func (m *Memory) List(_ context.Context, q runner.ListQuery) ([]runner.Summary, error) {
	m.mu.RLock()
	order := m.order[:len(m.order):len(m.order)]
	m.mu.RUnlock()
	list := []runner.Summary{}
	for _, c := range order {
		if sum := runner.Summarize(c.session.Load()); q.Matches(sum) {
			list = append(list, sum)
		}
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[len(list)-q.Limit:]
	}
	return list, nil
}

// Records implements [runner.SessionStore].
func (m *Memory) Records(_ context.Context, id specialist.SessionID, from int64) iter.Seq2[runner.StoredRecord, error] {
	return func(yield func(runner.StoredRecord, error) bool) {
		chain := m.chain(id)
		if chain == nil {
			yield(runner.StoredRecord{}, &runner.NotFoundError{What: "Session", ID: id.String()})
			return
		}
		var prev runner.Hash
		for _, r := range chain {
			events := runner.AppendEvents(nil, r.before, r.first, r.events)
			stored := runner.StoredRecord{First: r.first, Events: events, Prev: prev, Hash: runner.Chain(prev, id.String(), events)}
			prev = stored.Hash
			if r.first+int64(len(r.events))-1 >= from && !yield(stored, nil) {
				return
			}
		}
	}
}

// chain returns the records of a session, the oldest first; nil if there is no
// such session.
func (m *Memory) chain(id specialist.SessionID) (chain []*memoryRecord) {
	sh := m.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	c := sh.cells[id]
	if c == nil {
		return nil
	}
	for r := c.last; r != nil; r = r.previous {
		chain = append(chain, r)
	}
	if len(chain) == 0 || chain[len(chain)-1].first != 1 {
		opening := runner.Opening(c.session.Load())
		chain = append(chain, &memoryRecord{place: c.place, before: specialist.RoundKey{Session: id}, first: 1, events: opening})
	}
	slices.Reverse(chain)
	return chain
}

// Log implements [runner.HistoryStore].
func (m *Memory) Log(_ context.Context, machineName string) iter.Seq2[runner.LogEntry, error] {
	return func(yield func(runner.LogEntry, error) bool) {
		m.mu.RLock()
		order := m.order[:len(m.order):len(m.order)]
		m.mu.RUnlock()
		var all []*memoryRecord
		for _, c := range order {
			if machineName == "" || c.machine.name == machineName {
				all = append(all, m.chain(c.session.Load().ID)...)
			}
		}
		slices.SortFunc(all, func(a, b *memoryRecord) int { return cmp.Compare(a.place, b.place) })
		var events []byte
		for _, r := range all {
			events = runner.AppendEvents(events[:0], r.before, r.first, r.events)
			e := runner.LogEntry{Place: r.place, Session: r.before.Session, MachineName: m.nameOf(r.before.Session), First: r.first, Events: events}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// nameOf returns the machine name of a session.
func (m *Memory) nameOf(id specialist.SessionID) string {
	sh := m.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.cells[id].machine.name
}

// Definitions implements [runner.SessionStore].
func (m *Memory) Definitions(_ context.Context, machineName string) ([][]byte, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	newest := slices.Clone(mm.definitions)
	slices.Reverse(newest)
	return newest, nil
}

// Book implements [runner.TrustStore].
func (m *Memory) Book(_ context.Context, machineName string) (*trust.Book, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	return mm.book, nil
}

// Exemplars implements [runner.TrustStore].
func (m *Memory) Exemplars(_ context.Context, machineName, state string, limit int) ([]specialist.Exemplar, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	limit = exemplarLimit(state, limit)
	var newest []specialist.Exemplar
	for i := len(mm.exemplars) - 1; i >= 0 && len(newest) < limit; i-- {
		if state == "" || mm.exemplars[i].State == state {
			newest = append(newest, mm.exemplars[i])
		}
	}
	slices.Reverse(newest)
	return newest, nil
}

// exemplarLimit returns how many exemplars are wanted at most.
func exemplarLimit(state string, limit int) int {
	switch {
	case state == "" && limit <= 0:
		return math.MaxInt
	case state != "" && (limit <= 0 || limit > runner.MaxExemplars):
		return runner.MaxExemplars
	}
	return limit
}

// DecidedSince implements [runner.TrustStore].
func (m *Memory) DecidedSince(_ context.Context, machineName string, since specialist.Time, limit int) (int, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	n := 0
	for i := len(mm.decided) - 1; i >= 0 && n < limit; i-- {
		if mm.decided[i].at >= since {
			n++
		}
	}
	return n, nil
}

// Decided implements [runner.TrustStore].
func (m *Memory) Decided(_ context.Context, machineName string) iter.Seq2[runner.DecisionRef, error] {
	return func(yield func(runner.DecisionRef, error) bool) {
		mm := m.machine(machineName)
		mm.mu.RLock()
		all := mm.decided[:len(mm.decided):len(mm.decided)]
		mm.mu.RUnlock()
		for i := len(all) - 1; i >= 0; i-- {
			if !yield(all[i].DecisionRef, nil) {
				return
			}
		}
	}
}

// Roster implements [runner.RosterStore].
func (m *Memory) Roster(_ context.Context, machineName string) (*runner.Roster, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	return mm.roster, nil
}

// Register implements [runner.RosterStore].
func (m *Memory) Register(_ context.Context, machineName string, before int64, e runner.RosterEvent) error {
	mm := m.machine(machineName)
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if mm.roster.Sequence != before {
		return runner.ErrStale
	}
	return mm.register(e)
}

func (mm *memoryMachine) register(e runner.RosterEvent) error {
	next := mm.roster.With(e)
	events, err := runner.AppendRosterEvent(nil, next.Sequence, e)
	if err != nil {
		return err
	}
	var prev runner.Hash
	if n := len(mm.log); n > 0 {
		prev = mm.log[n-1].Hash
	}
	mm.log = append(mm.log, runner.StoredRecord{First: next.Sequence, Events: events, Prev: prev, Hash: runner.Chain(prev, mm.name, events)})
	mm.roster = next
	return nil
}

// RosterRecords implements [runner.RosterStore].
func (m *Memory) RosterRecords(_ context.Context, machineName string) iter.Seq2[runner.StoredRecord, error] {
	return func(yield func(runner.StoredRecord, error) bool) {
		mm := m.machine(machineName)
		mm.mu.RLock()
		log := mm.log[:len(mm.log):len(mm.log)]
		mm.mu.RUnlock()
		for _, r := range log {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Secret implements [runner.RosterStore].
func (m *Memory) Secret(context.Context) ([]byte, error) { return m.secret[:], nil }

// Claim implements [runner.OwnerStore]. An owner lives until it is released:
// with the process, the store is gone too.
func (m *Memory) Claim(context.Context) (runner.Owner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastOwner++
	o := &memoryOwner{m, fmt.Sprintf("memory-%d", m.lastOwner)}
	m.owners[o.name] = true
	return o, nil
}

// Alive implements [runner.OwnerStore].
func (m *Memory) Alive(_ context.Context, name string) (bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.owners[name], nil
}

type memoryOwner struct {
	store *Memory
	name  string
}

func (o *memoryOwner) Name() string { return o.name }

func (o *memoryOwner) Release() error {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	delete(o.store.owners, o.name)
	return nil
}

// Close implements io.Closer. There is nothing to close.
func (m *Memory) Close() error { return nil }
