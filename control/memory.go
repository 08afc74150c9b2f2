package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dialai/dialai/specialist"
)

// Memory is a Store in this process that loses everything with it: for tests, and for
// servers that need no durability. Nothing in it fails but what its callers do wrong.
type Memory struct {
	process string
	*shared
}

// shared is what the processes of a test have in common. A commit is checked as a whole,
// then made, under mu.
type shared struct {
	mu       sync.Mutex
	live     map[string]bool // processes
	started  int             // how many there have been
	receipts map[Hash]*StoredReceipt
	lost     map[Hash]bool // receipts whose process failed to end them
	born     []Hash        // of receipts, by the order in which they were begun
	keys     []Key         // Place is the index and one
	byID     map[string]int
	names    []machineName // in the order in which they were published first
	machines map[machineName][]Machine
	claims   map[question]Claim
	stepped  map[question]StepTime
	bindings map[string]Binding // by variable
	signed   signIns
	hooks    hooks
	jobs     jobs
	audit    []Record          // Place is the index and one
	ends     map[string]Record // the newest of each process
}

type (
	machineName struct{ tenant, name string }
	question    struct{ tenant, id string }
)

var _ Store = (*Memory)(nil)

// NewMemory returns an empty Store.
func NewMemory() *Memory {
	s := &shared{live: map[string]bool{}, receipts: map[Hash]*StoredReceipt{}, lost: map[Hash]bool{}, byID: map[string]int{}, machines: map[machineName][]Machine{}, claims: map[question]Claim{}, stepped: map[question]StepTime{}, bindings: map[string]Binding{}, signed: signIns{}, ends: map[string]Record{}}
	return s.process()
}

// process returns the Store of one more process.
func (s *shared) process() *Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	name := fmt.Sprint(s.started)
	s.live[name] = true
	return &Memory{name, s}
}

// Begin implements [Store].
func (m *Memory) Begin(ctx context.Context, r Receipt, e Entry) (Begun, error) {
	if err := ctx.Err(); err != nil {
		return Begun{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	hash := r.Key.Hash()
	stored := m.receipts[hash]
	begun, err := stored.Repeat(r, stored != nil && (!m.live[stored.Process] || m.lost[hash]))
	if err != nil {
		return Begun{}, err
	}
	if begun.Answer != nil {
		kept := begun.Answer.Kept()
		return Begun{Answer: &kept}, nil
	}
	if err := m.append(e); err != nil {
		return Begun{}, err
	}
	m.receipts[hash] = &StoredReceipt{r.Body, r.At, m.process, nil}
	delete(m.lost, hash)
	m.born = append(m.born, hash)
	m.forget(r.At)
	return begun, nil
}

// forget forgets answers that have expired, two at a time, which is more than come.
func (m *Memory) forget(now specialist.Time) {
	for range 2 {
		hash := m.born[0]
		s := m.receipts[hash]
		if s != nil && !s.Expired(now) {
			return
		}
		m.born = m.born[1:]
		if s != nil && s.Answer == nil {
			m.born = append(m.born, hash) // it has not ended yet
		} else {
			delete(m.receipts, hash)
		}
	}
}

// append appends an entry to the audit log.
func (m *Memory) append(e Entry) error {
	last, known := m.ends[m.process]
	if n := len(m.audit); !known && n > 0 {
		last.Hash = m.audit[n-1].Hash
	}
	r, err := e.Record(last.Hash, m.process, last.Sequence+1)
	if err != nil {
		return err
	}
	r.Place = int64(len(m.audit)) + 1
	m.audit = append(m.audit, r)
	m.ends[m.process] = r
	return nil
}

// Commit implements [Store].
func (m *Memory) Commit(ctx context.Context, c Changes) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		if c.End != nil && m.mayEnd(c.End) {
			m.lost[c.End.Key.Hash()] = true
		}
		return err
	}
	if err := m.refuse(&c); err != nil {
		return err
	}
	for _, e := range c.Entries {
		if err := m.append(e); err != nil {
			return err
		}
	}
	m.end(c.End)
	m.putKeys(&c)
	if c.Publish != nil {
		m.publish(*c.Publish)
	}
	m.putClaims(&c)
	if c.Stepped != nil {
		m.stepped[question{c.Stepped.Tenant, c.Stepped.SessionID}] = *c.Stepped
	}
	if c.Bind != nil {
		m.bindings[c.Bind.Variable] = *c.Bind
	}
	m.signed.change(&c)
	m.hooks.change(&c)
	m.jobs.change(&c, m.process)
	return nil
}

// refuse returns why changes cannot be made.
func (m *Memory) refuse(c *Changes) error {
	if c.End != nil && !m.mayEnd(c.End) {
		return fmt.Errorf("receipt: %w", ErrStale)
	}
	added := map[string]bool{}
	for _, k := range c.Keys {
		if _, known := m.byID[k.ID]; known || added[k.ID] {
			return fmt.Errorf("key %s: %w", k.ID, ErrExists)
		}
		added[k.ID] = true
	}
	for _, r := range c.Revoked {
		if _, known := m.byID[r.ID]; !known && !added[r.ID] {
			return fmt.Errorf("key %s: %w", r.ID, ErrNotFound)
		}
	}
	if p := c.Publish; p != nil {
		if newest := int64(len(m.machines[machineName{p.Tenant, p.Name}])); p.Version != newest+1 {
			return fmt.Errorf("machine %s: %w: version %d does not follow %d", p.Name, ErrStale, p.Version, newest)
		}
	}
	if c.Claim != nil {
		held, is := m.claims[question{c.Claim.Tenant, c.Claim.QuestionID}]
		if is && !held.GivesWay(c.Claim) {
			return &ClaimedError{held}
		}
	}
	if err := m.jobs.refuse(c); err != nil {
		return err
	}
	if c.Bind != nil {
		if _, bound := m.bindings[c.Bind.Variable]; bound {
			return fmt.Errorf("variable %s: %w", c.Bind.Variable, ErrExists)
		}
	}
	if err := m.signed.refuse(c); err != nil {
		return err
	}
	return m.hooks.refuse(c)
}

// mayEnd reports whether this process has begun what is to end.
func (m *Memory) mayEnd(e *End) bool {
	s := m.receipts[e.Key.Hash()]
	return s != nil && s.Answer == nil && s.Process == m.process
}

func (m *Memory) end(e *End) {
	if e == nil {
		return
	}
	hash := e.Key.Hash()
	delete(m.lost, hash)
	if e.Answer == nil {
		delete(m.receipts, hash)
		return
	}
	kept := e.Answer.Kept()
	m.receipts[hash].Answer = &kept
}

func (m *Memory) putKeys(c *Changes) {
	for _, k := range c.Keys {
		k = k.clone()
		k.Place = int64(len(m.keys)) + 1
		m.byID[k.ID] = len(m.keys)
		m.keys = append(m.keys, k)
	}
	for _, r := range c.Revoked {
		if k := &m.keys[m.byID[r.ID]]; k.RevokedAt == 0 || r.At < k.RevokedAt {
			k.RevokedAt = r.At
		}
	}
	for _, u := range c.Used {
		if i, known := m.byID[u.ID]; known {
			m.keys[i].LastUsed = max(m.keys[i].LastUsed, u.Hour())
		}
	}
}

func (m *Memory) publish(p Machine) {
	name := machineName{p.Tenant, p.Name}
	if p.Version == 1 {
		m.names = append(m.names, name)
	}
	p.Definition = slices.Clone(p.Definition)
	p.Place = p.Version
	m.machines[name] = append(m.machines[name], p)
}

func (m *Memory) putClaims(c *Changes) {
	if c.Claim != nil {
		maps.DeleteFunc(m.claims, func(_ question, held Claim) bool { return held.ExpiresAt <= c.Claim.At })
		kept := *c.Claim
		kept.As = ""
		m.claims[question{kept.Tenant, kept.QuestionID}] = kept
	}
	if u := c.Unclaim; u != nil {
		q := question{u.Tenant, u.QuestionID}
		if u.Subject == "" || m.claims[q].Subject == u.Subject {
			delete(m.claims, q)
		}
	}
}

// page returns the part of a list that a query asks for. The list is in order of place.
func page[T any](list []T, q Query, of func(*T) (tenant string, place int64)) (out []T) {
	for i := range list {
		if q.Desc {
			i = len(list) - 1 - i
		}
		tenant, place := of(&list[i])
		switch behind := (place > q.After) != q.Desc; {
		case q.Limit != 0 && len(out) == q.Limit:
			return out
		case q.Tenant != "" && tenant != q.Tenant, q.After != 0 && (place == q.After || !behind):
		default:
			out = append(out, list[i])
		}
	}
	return out
}

// Key implements [Store].
func (m *Memory) Key(_ context.Context, id string) (Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := m.byID[id]
	if !known {
		return Key{}, fmt.Errorf("key %s: %w", id, ErrNotFound)
	}
	return m.keys[i].clone(), nil
}

// Keys implements [Store].
func (m *Memory) Keys(_ context.Context, q Query) ([]Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := page(m.keys, q, func(k *Key) (string, int64) { return k.Tenant, k.Place })
	for i := range list {
		list[i] = list[i].clone()
	}
	return list, nil
}

// Machine implements [Store].
func (m *Memory) Machine(_ context.Context, tenant, name string) (Machine, error) {
	return m.newest(tenant, name, func(*Machine) bool { return true })
}

// MachineOf implements [Store].
func (m *Memory) MachineOf(_ context.Context, tenant, name, digest string) (Machine, error) {
	return m.newest(tenant, name, func(v *Machine) bool { return v.Digest == digest })
}

// newest returns the newest version of a machine that is wanted.
func (m *Memory) newest(tenant, name string, wanted func(*Machine) bool) (Machine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	versions := m.machines[machineName{tenant, name}]
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; wanted(&v) {
			v.Definition = slices.Clone(v.Definition)
			return v, nil
		}
	}
	return Machine{}, fmt.Errorf("machine %s: %w", name, ErrNotFound)
}

// Machines implements [Store].
func (m *Memory) Machines(_ context.Context, q Query) ([]Machine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Machine, len(m.names))
	for i, name := range m.names {
		versions := m.machines[name]
		list[i] = versions[len(versions)-1]
		list[i].Definition, list[i].Place = nil, int64(i)+1
	}
	return page(list, q, placeOf), nil
}

// Versions implements [Store].
func (m *Memory) Versions(_ context.Context, name string, q Query) ([]Machine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.machines[machineName{q.Tenant, name}])
	for i := range list {
		list[i].Definition = nil
	}
	return page(list, q, placeOf), nil
}

func placeOf(v *Machine) (tenant string, place int64) { return v.Tenant, v.Place }

// Claims implements [Store].
func (m *Memory) Claims(_ context.Context, tenant string, questionIDs []string, now specialist.Time) (list []Claim, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range questionIDs {
		if c, is := m.claims[question{tenant, id}]; is && now < c.ExpiresAt {
			list = append(list, c)
		}
	}
	return list, nil
}

// ClaimsOf implements [Store].
func (m *Memory) ClaimsOf(_ context.Context, tenant, subject string, humans []string, now specialist.Time, limit int) (list []Claim, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.claims {
		if c.Tenant == tenant && now < c.ExpiresAt && (c.Subject == subject && !c.Assigned || slices.Contains(humans, c.SpecialistID)) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.QuestionID, b.QuestionID))
	})
	return list[:min(limit, len(list))], nil
}

// StepTime implements [Store].
func (m *Memory) StepTime(_ context.Context, tenant, sessionID string) (StepTime, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stepped[question{tenant, sessionID}], nil
}

// Binding implements [Store].
func (m *Memory) Binding(_ context.Context, variable string) (Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, bound := m.bindings[variable]
	if !bound {
		return b, ErrNotFound
	}
	return b, nil
}

// SignIn implements [Store].
func (m *Memory) SignIn(_ context.Context, id Hash) (SignIn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.signed[id]
	if !known {
		return at, ErrNotFound
	}
	return at, nil
}

// Audit implements [Store].
func (m *Memory) Audit(_ context.Context, q Query) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := page(m.audit, q, func(r *Record) (string, int64) { return r.Tenant, r.Place })
	for i := range list {
		list[i].Data = slices.Clone(list[i].Data)
	}
	return list, nil
}

// Close ends the process: what it has begun may be taken up by others.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, m.process)
	return nil
}
