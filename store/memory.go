package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// A whole store in memory, by the same contract as the one on disk (storetest).
// Sessions are spread over shards, each with a mutex, so that commits of different
// sessions do not wait for each other; what belongs to a machine name has a lock of its
// own, and so have lists that all share. A session is read without a lock: a commit
// replaces it as a whole.
//
// A log is a list of records, the newest first, that keeps events as they are; bytes
// and hashes are made when somebody reads them. The opening is not kept at all, since
// it follows from the session. Every commit draws a place, by which the log of all
// sessions and the lessons are ordered.

// Memory keeps sessions in this process and loses them with it. It is a whole
// store: for tests, simulations, and programs that need no durability. Hashes
// are computed when somebody reads them.
type Memory struct {
	shards [shardCount]shard

	place   atomic.Int64 // of the newest commit; lessons draw theirs under mu
	index   index
	rosters rosterLog

	mu        sync.RWMutex
	lessons   []trust.Lesson
	ledgers   map[string][]session.LedgerSnapshot // by scope, the newest first
	machines  map[string]*memoryMachine
	owners    map[string]bool
	lastOwner int
	secret    [32]byte
	audit     map[string][]specialist.AuditEntry // by session
	agents    map[specialist.SessionID][]session.AgentEvent
}

const shardCount = 64

type shard struct {
	mu    sync.Mutex
	cells map[specialist.SessionID]*cell
}

// A cell is one session. Its shard's mutex guards it; session may be read
// without.
type cell struct {
	session atomic.Pointer[session.Session]
	last    *memoryRecord // the newest, nil while only the opening was committed
	machine *memoryMachine
	place   int64 // of the opening
	index   int   // among all, by creation
}

// A memoryRecord is one record of a session's log, which is a list.
type memoryRecord struct {
	previous *memoryRecord
	place    int64               // among all commits
	before   specialist.RoundKey // key of the round in which it begins
	first    int64
	events   []session.Event
}

// A memoryMachine is what belongs to a machine name.
type memoryMachine struct {
	name    string
	rosters *rosterLog // of all names

	mu          sync.RWMutex
	book        *trust.Book
	exemplars   []specialist.Exemplar // in commit order
	decided     []decided
	definitions [][]byte
	digests     map[string]bool
	roster      *session.Roster
	log         []session.StoredRecord
}

type decided struct {
	session.DecisionRef
	at specialist.Time
}

var (
	_ session.Store        = (*Memory)(nil)
	_ session.LedgerKeeper = (*Memory)(nil)
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	return NewSeededMemory(secret)
}

// NewSeededMemory returns an empty store with a known secret: for simulations, in
// which the same has to be drawn again.
func NewSeededMemory(secret [32]byte) *Memory {
	m := &Memory{ledgers: map[string][]session.LedgerSnapshot{}, machines: map[string]*memoryMachine{}, owners: map[string]bool{}, secret: secret}
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
		mm = &memoryMachine{name: name, rosters: &m.rosters, book: &trust.Book{}, digests: map[string]bool{}, roster: &session.Roster{}}
		m.machines[name] = mm
	}
	return mm
}

// Commit implements [session.SessionStore].
func (m *Memory) Commit(_ context.Context, c *session.Change) error {
	sh := m.shard(c.After.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	known := sh.cells[c.After.ID]
	if c.Before == nil {
		if known != nil {
			return fmt.Errorf("session %s: %w", c.After.ID, session.ErrExists)
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
		return &session.NotFoundError{What: "Session", ID: c.After.ID.String()}
	}
	before := known.session.Load()
	if before.Sequence != c.Before.Sequence {
		return session.ErrStale
	}
	follows := projection.Follow(c.Events)
	known.last = record(known.last, c, m.learn(follows.Lesson, c))
	known.session.Store(c.After)
	m.index.move(known, before, c.After)
	if c.Before.Machine() != c.After.Machine() {
		known.machine.define(c.After)
	}
	return known.machine.follow(c, follows)
}

// opening reports whether c is what Start commits: it can be derived from the
// session, so it need not be kept.
func opening(c *session.Change) bool {
	if len(c.Events) < 2 || len(c.Events) > 3 {
		return false
	}
	_, created := c.Events[0].Data.(*session.Created)
	_, opened := c.Events[1].Data.(*session.RoundOpened)
	return created && opened && c.After.Round == 1 && c.After.Sequence == int64(len(c.Events))
}

func record(previous *memoryRecord, c *session.Change, place int64) *memoryRecord {
	// Record and events are one allocation, if the commit is of usual size.
	type roomy struct {
		memoryRecord
		room [10]session.Event
	}
	r := &roomy{memoryRecord: memoryRecord{previous: previous, place: place, first: c.First}}
	r.events = append(r.room[:0], c.Events...)
	r.before.Session = c.After.ID
	if c.Before != nil {
		r.before = c.Before.Key()
	}
	return &r.memoryRecord
}

func (m *Memory) created(c *cell, s *session.Session) {
	m.index.add(c, s)
	c.machine.define(s)
}

// define keeps the definition of a session, if it is new.
func (mm *memoryMachine) define(s *session.Session) {
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
func (mm *memoryMachine) follow(c *session.Change, follows projection.Following) error {
	if !follows.Teaches() && !follows.Decides && c.Roster == nil {
		return nil
	}
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if follows.Decides {
		mm.decided = append(mm.decided, decided{session.DecisionRef{Session: c.After.ID, Seq: c.First}, c.After.UpdatedAt})
	}
	if follows.Teaches() {
		mm.book = mm.book.With(follows.Comparisons()...)
	}
	if learned := follows.Learned; learned != nil && learned.Exemplar != nil {
		mm.exemplars = append(mm.exemplars, *learned.Exemplar)
	}
	if d := follows.Retracted; d != nil {
		mm.exemplars = slices.DeleteFunc(mm.exemplars, func(e specialist.Exemplar) bool { return e.ExemplarID == d.ExemplarID })
	}
	for _, e := range c.Roster {
		if err := mm.register(e); err != nil {
			return err
		}
	}
	return nil
}

// learn appends a lesson, if there is one, and returns the place of its commit.
func (m *Memory) learn(l *trust.Lesson, c *session.Change) int64 {
	if l == nil {
		return m.place.Add(1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	learned := *l
	learned.Seq, learned.At = m.place.Add(1), c.Events[len(c.Events)-1].At
	m.lessons = append(m.lessons, learned)
	return learned.Seq
}

// Close implements io.Closer. There is nothing to close.
func (m *Memory) Close() error { return nil }
