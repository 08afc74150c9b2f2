package store

import (
	"context"
	"fmt"
	"iter"

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

func (mm *memoryMachine) register(e session.RosterEvent) error {
	var prev session.Hash
	if n := len(mm.log); n > 0 {
		prev = mm.log[n-1].Hash
	}
	r, err := projection.RosterRecord(mm.name, mm.roster.Sequence, prev, e)
	if err == nil {
		mm.log, mm.roster = append(mm.log, r), mm.roster.With(e)
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
