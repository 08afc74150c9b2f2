package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// testControlModel lets three processes, which end and begin again, do random things, and
// compares what each is told with what a model says: maps and slices that forget nothing and
// know which process lives. Names are few, so that all meet each other.
func testControlModel(b *controlBench) {
	seeds := 30
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		m := &controlModel{b: b, rng: rand.New(rand.NewPCG(uint64(seed), 3)), receipts: map[string]*modelReceipt{}, versions: map[string][]string{}, claims: map[string]control.Claim{}, stepped: map[string]control.StepTime{}, prefix: fmt.Sprintf("%d-", seed)}
		if seed > 0 {
			m.before = b.begun
		}
		for i := range m.stores {
			m.stores[i] = b.open()
		}
		for range 150 {
			m.step()
		}
		m.compare()
		for _, s := range m.stores {
			b.close(s)
		}
		b.begun = m.entries
		if b.Failed() {
			b.Fatalf("seed %d", seed)
		}
	}
}

type controlModel struct {
	b      *controlBench
	rng    *rand.Rand
	prefix string // of all names: what another seed did is out of the way
	now    specialist.Time
	stores [3]ControlStore

	before   int // entries of the seeds before
	entries  int
	receipts map[string]*modelReceipt
	keys     []control.Key
	versions map[string][]string // digests
	claims   map[string]control.Claim
	stepped  map[string]control.StepTime
}

type modelReceipt struct {
	body    string
	at      specialist.Time
	process ControlStore // nil once it is gone
	answer  string
}

func (m *controlModel) name(of int) string { return m.prefix + fmt.Sprint(m.rng.IntN(of)) }

func (m *controlModel) step() {
	m.now += specialist.Time(m.rng.IntN(int(control.ReceiptLifetime / 40)))
	at := m.rng.IntN(len(m.stores))
	switch m.rng.IntN(12) {
	case 0:
		for _, r := range m.receipts {
			if r.process == m.stores[at] {
				r.process = nil
			}
		}
		m.b.close(m.stores[at])
		m.stores[at] = m.b.open()
	case 1, 2, 3, 4:
		m.begin(m.stores[at])
	case 5, 6:
		m.end(m.stores[at])
	default:
		m.change(m.stores[at])
	}
}

func (m *controlModel) begin(s ControlStore) {
	key, body := m.name(4), []string{"body", "body", "other"}[m.rng.IntN(3)]
	r, want := m.receipts[key], "new"
	switch {
	case r == nil, m.now >= r.at+control.ReceiptLifetime && (r.answer != "" || r.process == nil):
	case r.body != body:
		want = "reused"
	case r.answer != "":
		want = r.answer
	case r.process != nil:
		want = "in progress"
	default:
		want = "taken up"
	}
	m.b.want(m.b.begin(s, key, body, m.now), want)
	if want == "new" || want == "taken up" {
		m.receipts[key] = &modelReceipt{body: body, at: m.now, process: s}
		m.entries++
	}
}

func (m *controlModel) end(s ControlStore) {
	key, status := m.name(4), []int{0, 200, 201}[m.rng.IntN(3)]
	r := m.receipts[key]
	err := s.Commit(m.b.Context(), end(key, status))
	if r == nil || r.answer != "" || r.process != s {
		m.b.is(err, control.ErrStale)
		return
	}
	m.b.ok(err)
	m.entries++
	if r.answer = fmt.Sprintf("answer %d %s", status, key); status == 0 {
		delete(m.receipts, key)
	}
}

// change commits random changes of all kinds together.
func (m *controlModel) change(s ControlStore) {
	c := control.Changes{Entries: make([]control.Entry, m.rng.IntN(3))}
	fits := m.changeKeys(&c)
	if m.rng.IntN(3) == 0 {
		name := m.name(3)
		version := len(m.versions[name]) + m.rng.IntN(4)/3*m.rng.IntN(3) // mostly the newest
		c.Publish = &control.Machine{Tenant: "acme", Name: name, Version: int64(version) + 1, Digest: fmt.Sprint(m.rng.IntN(3))}
		fits = fits && version == len(m.versions[name])
	}
	if m.rng.IntN(3) == 0 {
		c.Claim = &control.Claim{Tenant: "acme", QuestionID: m.name(3), Subject: fmt.Sprint(m.rng.IntN(2)), At: m.now, ExpiresAt: m.now + control.ClaimLifetime}
		held, is := m.claims[c.Claim.QuestionID]
		fits = fits && (!is || held.Subject == c.Claim.Subject || m.now >= held.ExpiresAt)
	}
	if m.rng.IntN(4) == 0 {
		c.Unclaim = &control.Claim{Tenant: "acme", QuestionID: m.name(3), Subject: []string{"", "0", "1"}[m.rng.IntN(3)]}
	}
	if m.rng.IntN(4) == 0 {
		c.Stepped = &control.StepTime{Tenant: "acme", SessionID: m.name(3), Resumes: m.rng.Int32N(3), Msec: m.rng.Int64N(1e6)}
	}
	if err := s.Commit(m.b.Context(), c); (err == nil) != fits {
		m.b.Fatalf("%+v is committed with %v, which should be so: %t", c, err, fits)
	}
	if fits {
		m.apply(&c)
	}
}

// changeKeys adds changes of keys and reports whether they are possible.
func (m *controlModel) changeKeys(c *control.Changes) bool {
	known := func(id string) bool {
		return slices.ContainsFunc(m.keys, func(k control.Key) bool { return k.ID == id })
	}
	fits := true
	if m.rng.IntN(4) == 0 {
		id := m.name(20)
		c.Keys = []control.Key{{ID: id, Tenant: m.prefix}}
		fits = !known(id)
	}
	if m.rng.IntN(4) == 0 {
		c.Revoked = []control.KeyTime{{ID: m.name(20), At: specialist.Time(m.rng.IntN(100)) + 1}}
		fits = fits && (known(c.Revoked[0].ID) || len(c.Keys) > 0 && c.Keys[0].ID == c.Revoked[0].ID)
	}
	if m.rng.IntN(4) == 0 {
		c.Used = []control.KeyTime{{ID: m.name(20), At: m.now}}
	}
	return fits
}

func (m *controlModel) apply(c *control.Changes) {
	m.entries += len(c.Entries)
	m.keys = append(m.keys, c.Keys...)
	for i := range m.keys {
		k := &m.keys[i]
		for _, r := range c.Revoked {
			if r.ID == k.ID && (k.RevokedAt == 0 || r.At < k.RevokedAt) {
				k.RevokedAt = r.At
			}
		}
		for _, u := range c.Used {
			if u.ID == k.ID {
				k.LastUsed = max(k.LastUsed, u.At/3_600_000*3_600_000)
			}
		}
	}
	if p := c.Publish; p != nil {
		m.versions[p.Name] = append(m.versions[p.Name], p.Digest)
	}
	if c.Stepped != nil {
		m.stepped[c.Stepped.SessionID] = *c.Stepped
	}
	if c.Claim != nil {
		m.claims[c.Claim.QuestionID] = *c.Claim
	}
	if u := c.Unclaim; u != nil && (u.Subject == "" || m.claims[u.QuestionID].Subject == u.Subject) {
		delete(m.claims, u.QuestionID)
	}
}

// compare reads all there is, in one process, and compares it with the model.
func (m *controlModel) compare() {
	b, s := m.b, m.stores[m.rng.IntN(len(m.stores))]
	if v := b.verify(s); v.Records != int64(m.before+m.entries) {
		b.Errorf("the audit log has %d records, want %d", v.Records, m.before+m.entries)
	}
	m.entries += m.before
	keys, err := s.Keys(b.Context(), control.Query{Tenant: m.prefix})
	b.ok(err)
	for i := range keys {
		keys[i].Place = 0
	}
	if got, want := fmt.Sprintf("%+v", keys), fmt.Sprintf("%+v", m.keys); got != want {
		b.Errorf("the keys are\n%s, want\n%s", got, want)
	}
	var questions []string
	var held []control.Claim
	for i := range 3 {
		name := m.prefix + fmt.Sprint(i)
		m.compareVersions(s, name)
		questions = append(questions, name)
		if c, is := m.claims[name]; is && m.now < c.ExpiresAt {
			held = append(held, c)
		}
	}
	claims, err := s.Claims(b.Context(), "acme", questions, m.now)
	b.ok(err)
	slices.SortFunc(claims, func(x, y control.Claim) int { return cmp.Compare(x.QuestionID, y.QuestionID) })
	if !slices.Equal(claims, held) {
		b.Errorf("the claims are\n%+v, want\n%+v", claims, held)
	}
	for id, want := range m.stepped {
		got, err := s.StepTime(b.Context(), "acme", id)
		if b.ok(err); got != want {
			b.Errorf("the time of steps is %+v, want %+v", got, want)
		}
	}
}

func (m *controlModel) compareVersions(s ControlStore, name string) {
	b, want := m.b, m.versions[name]
	list, err := s.Versions(b.Context(), name, control.Query{Tenant: "acme"})
	b.ok(err)
	var digests []string
	for i, v := range list {
		if digests = append(digests, v.Digest); v.Version != int64(i)+1 {
			b.Errorf("version %d of %s is in place %d", v.Version, name, i)
		}
	}
	if !slices.Equal(digests, want) {
		b.Errorf("the versions of %s are %v, want %v", name, digests, want)
	}
	newest, err := s.Machine(b.Context(), "acme", name)
	if len(want) == 0 {
		b.is(err, control.ErrNotFound)
	} else if err != nil || newest.Digest != want[len(want)-1] || newest.Version != int64(len(want)) {
		b.Errorf("the newest version of %s is %+v (%v)", name, newest, err)
	}
	for digest := range 3 {
		v, err := s.MachineOf(b.Context(), "acme", name, fmt.Sprint(digest))
		last := len(want) - 1
		for last >= 0 && want[last] != fmt.Sprint(digest) {
			last--
		}
		if last < 0 != errors.Is(err, control.ErrNotFound) || err == nil && v.Version != int64(last)+1 {
			b.Errorf("of digest %d the newest version of %s is %+v (%v)", digest, name, v, err)
		}
	}
}
