package store

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
)

// Roster implements [session.RosterStore].
func (m *Memory) Roster(_ context.Context, machineName string) (*session.Roster, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	return mm.roster, nil
}

// Register implements [session.RosterStore].
func (m *Memory) Register(_ context.Context, machineName string, before int64, e session.RosterEvent) error {
	mm := m.machine(machineName)
	mm.mu.Lock()
	defer mm.mu.Unlock()
	if mm.roster.Sequence != before {
		return session.ErrStale
	}
	return mm.register(e)
}

// A rosterLog is that of all machine names.
type rosterLog struct {
	mu      sync.RWMutex
	entries []session.RosterEntry
}

// add appends a record of a machine name.
func (l *rosterLog) add(name string, r session.StoredRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, session.RosterEntry{Place: int64(len(l.entries)) + 1, MachineName: name, StoredRecord: r})
}

// RosterLog implements [session.HistoryStore].
func (m *Memory) RosterLog(_ context.Context, machineName string, after int64) iter.Seq2[session.RosterEntry, error] {
	return func(yield func(session.RosterEntry, error) bool) {
		m.rosters.mu.RLock()
		entries := m.rosters.entries[min(max(after, 0), int64(len(m.rosters.entries))):]
		m.rosters.mu.RUnlock()
		for _, e := range entries {
			if (machineName == "" || e.MachineName == machineName) && !yield(e, nil) {
				return
			}
		}
	}
}

// RosterPlace implements [session.HistoryStore].
func (m *Memory) RosterPlace(context.Context) (int64, error) {
	m.rosters.mu.RLock()
	defer m.rosters.mu.RUnlock()
	return int64(len(m.rosters.entries)), nil
}

// Epoch implements [session.HistoryStore].
func (m *Memory) Epoch(context.Context) (string, error) { return projection.Epoch(m.secret[:]), nil }

func (mm *memoryMachine) register(e session.RosterEvent) error {
	var prev session.Hash
	if n := len(mm.log); n > 0 {
		prev = mm.log[n-1].Hash
	}
	r, err := projection.RosterRecord(mm.name, mm.roster.Sequence, prev, e)
	if err == nil {
		mm.log, mm.roster = append(mm.log, r), mm.roster.With(e)
		mm.rosters.add(mm.name, r)
	}
	return err
}

// RosterRecords implements [session.RosterStore].
func (m *Memory) RosterRecords(_ context.Context, machineName string, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		mm := m.machine(machineName)
		mm.mu.RLock()
		log := mm.log[:len(mm.log):len(mm.log)]
		mm.mu.RUnlock()
		for _, r := range log {
			if r.First >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// Secret implements [session.RosterStore].
func (m *Memory) Secret(context.Context) ([]byte, error) { return m.secret[:], nil }

// Claim implements [session.OwnerStore]. An owner lives until it is released:
// with the process, the store is gone too.
func (m *Memory) Claim(context.Context) (session.Owner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastOwner++
	o := &memoryOwner{m, fmt.Sprintf("memory-%d", m.lastOwner)}
	m.owners[o.name] = true
	return o, nil
}

// Alive implements [session.OwnerStore].
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
