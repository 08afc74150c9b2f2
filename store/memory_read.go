package store

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// Reading a store in memory. Lists that only grow are cut off at their length under the
// lock and read without it: what is appended meanwhile is behind the cut. The records
// of a session are a chain from the newest to the oldest, turned round before it is
// read, and hashed on the way. The log of all sessions is collected while every shard
// is locked, so no place is missing that a commit has drawn.

// Lessons implements [session.TrustStore].
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

// Load implements [session.SessionStore].
func (m *Memory) Load(_ context.Context, _ *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if s := m.Recent(id); s != nil {
		return s, nil // never changes
	}
	return nil, &session.NotFoundError{What: "Session", ID: id.String()}
}

// Recent implements [session.SessionStore].
func (m *Memory) Recent(id specialist.SessionID) *session.Session {
	sh := m.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.cells[id]; c != nil {
		return c.session.Load()
	}
	return nil
}

// List implements [session.SessionStore].
func (m *Memory) List(_ context.Context, q session.ListQuery) ([]session.Summary, error) {
	after, at, err := q.Begin()
	if err != nil {
		return nil, err
	}
	from, err := m.begin(after, q.Desc)
	if err != nil {
		return nil, err
	}
	if q.Order != session.ByCreation {
		return m.listBy(&q, after != (specialist.SessionID{}), at, from), nil
	}
	list := []session.Summary{}
	m.index.walk(&q, from, func(c *cell) bool {
		if s := c.session.Load(); q.Matches(s) {
			list = append(list, session.Summarize(s))
		}
		return q.Limit <= 0 || len(list) < q.Limit
	})
	return list, nil
}

// listBy lists sessions in another order than that of creation: of all that a query selects those that come first,
// behind the session before from that has its place by a moment, if there is one.
func (m *Memory) listBy(q *session.ListQuery, behind bool, at specialist.Time, from int) []session.Summary {
	var found placed
	step := stepOf(q.Desc)
	start := 0
	if q.Desc {
		start = m.index.len() - 1
	}
	m.index.walk(q, start, func(c *cell) bool {
		s := c.session.Load()
		if !q.Matches(s) {
			return true
		}
		p := place{step, q.Order.Moment(s.WaitingSince(), s.DueAt()), c.index, s}
		if behind && !(&place{step: step, at: at, index: from - step}).before(&p) {
			return true
		}
		if heap.Push(&found, p); q.Limit > 0 && len(found) > q.Limit {
			heap.Pop(&found)
		}
		return true
	})
	list := make([]session.Summary, len(found))
	for i := len(found) - 1; i >= 0; i-- {
		list[i] = session.Summarize(heap.Pop(&found).(place).session)
	}
	return list
}

// A place is where a session stands in a list that goes up (step 1) or down (-1).
type place struct {
	step    int
	at      specialist.Time
	index   int
	session *session.Session
}

func (p *place) before(o *place) bool {
	return cmp.Or(cmp.Compare(p.at, o.at), cmp.Compare(p.index, o.index))*p.step < 0
}

// placed are those that are found so far, the last of them on top.
type placed []place

func (h placed) Len() int           { return len(h) }
func (h placed) Less(i, j int) bool { return h[j].before(&h[i]) }
func (h placed) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *placed) Push(x any)        { *h = append(*h, x.(place)) }
func (h *placed) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// begin returns the index of the session from which a list goes on after another one.
func (m *Memory) begin(after specialist.SessionID, desc bool) (int, error) {
	if after == (specialist.SessionID{}) {
		if desc {
			return m.index.len() - 1, nil
		}
		return 0, nil
	}
	sh := m.shard(after)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	c := sh.cells[after]
	if c == nil {
		return 0, &session.NotFoundError{What: "Session", ID: after.String()}
	}
	return c.index + stepOf(desc), nil
}

// Records implements [session.SessionStore].
func (m *Memory) Records(_ context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		chain := m.chain(id)
		if chain == nil {
			yield(session.StoredRecord{}, &session.NotFoundError{What: "Session", ID: id.String()})
			return
		}
		var prev session.Hash
		for _, r := range chain {
			events := session.AppendEvents(nil, r.before, r.first, r.events)
			stored := session.StoredRecord{First: r.first, Events: events, Prev: prev, Hash: session.Chain(prev, id.String(), events)}
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
	if c := sh.cells[id]; c != nil {
		chain = c.after(0)
		slices.Reverse(chain)
	}
	return chain
}

// after returns the records of a session after a place, the newest first.
func (c *cell) after(place int64) (chain []*memoryRecord) {
	r := c.last
	for ; r != nil && r.place > place; r = r.previous {
		chain = append(chain, r)
	}
	if r == nil && c.place > place && (len(chain) == 0 || chain[len(chain)-1].first != 1) {
		s := c.session.Load()
		chain = append(chain, &memoryRecord{place: c.place, before: specialist.RoundKey{Session: s.ID}, first: 1, events: session.OpeningEvents(s)})
	}
	return chain
}

// Log implements [session.HistoryStore].
func (m *Memory) Log(_ context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		var events []byte
		for _, r := range m.placed(machineName, after) {
			events = session.AppendEvents(events[:0], r.before, r.first, r.events)
			if !yield(session.LogEntry{Place: r.place, Session: r.before.Session, MachineName: r.machine, First: r.first, Events: events}, nil) {
				return
			}
		}
	}
}

// Place implements [session.HistoryStore].
func (m *Memory) Place(context.Context) (int64, error) {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		defer m.shards[i].mu.Unlock()
	}
	return m.place.Load(), nil
}

// A placedRecord is a record among those of all sessions.
type placedRecord struct {
	*memoryRecord
	machine string
}

// placed returns the records after a place, in commit order. No commit is under way
// meanwhile, so every place that was drawn has its record.
func (m *Memory) placed(machineName string, after int64) (all []placedRecord) {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		defer m.shards[i].mu.Unlock()
	}
	for i := range m.shards {
		for _, c := range m.shards[i].cells {
			if machineName != "" && c.machine.name != machineName {
				continue
			}
			for _, r := range c.after(after) {
				all = append(all, placedRecord{r, c.machine.name})
			}
		}
	}
	slices.SortFunc(all, func(a, b placedRecord) int { return cmp.Compare(a.place, b.place) })
	return all
}

// Definitions implements [session.SessionStore].
func (m *Memory) Definitions(_ context.Context, machineName string) ([][]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var newest [][]byte
	for name, mm := range m.machines {
		if machineName != "" && name != machineName {
			continue
		}
		mm.mu.RLock()
		newest = append(newest, mm.definitions...)
		mm.mu.RUnlock()
	}
	slices.Reverse(newest)
	return newest, nil
}

// Staleness implements [session.TrustStore]: there is one process.
func (m *Memory) Staleness() time.Duration { return 0 }

// Book implements [session.TrustStore].
func (m *Memory) Book(_ context.Context, machineName string) (*trust.Book, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	return mm.book, nil
}

// Exemplars implements [session.TrustStore].
func (m *Memory) Exemplars(_ context.Context, machineName string, state machine.StateName, limit int) ([]specialist.Exemplar, error) {
	mm := m.machine(machineName)
	mm.mu.RLock()
	defer mm.mu.RUnlock()
	limit = projection.ExemplarLimit(state, limit)
	var newest []specialist.Exemplar
	for i := len(mm.exemplars) - 1; i >= 0 && len(newest) < limit; i-- {
		if state == "" || mm.exemplars[i].State == string(state) {
			newest = append(newest, mm.exemplars[i])
		}
	}
	slices.Reverse(newest)
	return newest, nil
}

// DecidedSince implements [session.TrustStore].
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

// Decided implements [session.TrustStore].
func (m *Memory) Decided(_ context.Context, machineName string) iter.Seq2[session.DecisionRef, error] {
	return func(yield func(session.DecisionRef, error) bool) {
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

// Live implements [session.SessionStore].
func (m *Memory) Live(context.Context) ([]session.LiveCount, error) {
	type of struct {
		machine string
		status  session.Status
	}
	counts := map[of]session.LiveCount{}
	m.index.mu.RLock()
	defer m.index.mu.RUnlock()
	for _, c := range m.index.order {
		s := c.session.Load()
		if !s.Status.Live() {
			continue
		}
		key := of{s.Machine().Name(), s.Status}
		n, known := counts[key]
		if !known || s.UpdatedAt < n.Oldest {
			n.Oldest = s.UpdatedAt
		}
		n.MachineName, n.Status = key.machine, key.status
		n.Sessions++
		counts[key] = n
	}
	return slices.Collect(maps.Values(counts)), nil
}
