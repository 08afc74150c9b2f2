package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

func TestControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) func(*testing.T) storetest.ControlStore {
		address := pgtest.Database(t)
		return func(t *testing.T) storetest.ControlStore { return newControl(t, address) }
	})
}

func newControl(t testing.TB, address string) *postgres.Control {
	t.Helper()
	c, err := postgres.OpenControl(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openControl opens what servers remember until the test ends.
func openControl(t testing.TB, address string) *postgres.Control {
	t.Helper()
	c := newControl(t, address)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// request returns a request with an idempotency key, and the changes that answer it.
func request(key string) (control.Receipt, control.Entry, control.Changes) {
	r := control.Receipt{Key: control.ReceiptKey{Tenant: "default", Key: key}, Body: control.HashOf("body")}
	return r, control.Entry{RequestID: key}, control.Changes{
		End: &control.End{Key: r.Key, Answer: &control.Answer{Status: 200, Body: []byte(key)}}, Entries: []control.Entry{{RequestID: key, Result: "200"}}}
}

// verified returns how many records the audit log has, which is as it was written.
func verified(t testing.TB, c control.Store) int64 {
	t.Helper()
	v, err := control.Verify(t.Context(), c)
	if err != nil || v.Difference != nil {
		t.Fatalf("the audit log has %+v (%v)", v.Difference, err)
	}
	return v.Records
}

// TestControlCut cuts connections anywhere in a commit: what was begun is begun once, what was changed is
// changed once, and who is told so can rely on it.
func TestControlCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	address := pgtest.Database(t)
	direct := openControl(t, address)
	p, through := between(t, address, seed)
	cut := openControl(t, through)
	p.mu.Lock()
	p.cut = [2]int{4000, 30000} // to connect takes some 2000
	p.mu.Unlock()
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`)
	const each, senders = 30, 4
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for i := range each {
				r, e, answer := request(fmt.Sprint(sender, " ", i))
				begun, err := cut.Begin(t.Context(), r, e)
				if err == nil && (begun.Resumed || begun.Answer != nil) {
					err = fmt.Errorf("it had been begun: %+v", begun)
				}
				if err == nil {
					err = cut.Commit(t.Context(), answer)
				}
				if err != nil {
					t.Errorf("request %s: %v", r.Key.Key, err)
				}
			}
		})
	}
	wg.Go(func() { // has no entry, and is refused if it happens twice
		for v := range int64(each) {
			if err := cut.Commit(t.Context(), control.Changes{Publish: &control.Machine{Tenant: "default", Name: "m", Version: v + 1}}); err != nil {
				t.Errorf("version %d: %v", v+1, err)
			}
		}
	})
	wg.Wait()
	if n := verified(t, direct); n != 2*each*senders {
		t.Errorf("the audit log has %d records, want %d", n, 2*each*senders)
	}
	if m, err := direct.Machine(t.Context(), "default", "m"); err != nil || m.Version != each {
		t.Errorf("the machine is at version %d (%v), want %d", m.Version, err, each)
	}
	if n := p.cuts.Load(); n < 5 {
		t.Errorf("only %d connections were cut", n)
	}
}

// TestControlAnswerLost: of each kind of commit the answer is lost once after it was done. It is done once, and
// who waits is told so; what is refused when it is sent again was refused.
func TestControlAnswerLost(t *testing.T) {
	address := pgtest.Database(t)
	p, through := between(t, address, 1)
	c := openControl(t, through)
	lost := func(what string, do func() error) {
		t.Helper()
		p.done.Store(1)
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if p.done.Load() > 0 {
			t.Errorf("%s: no answer was lost", what)
		}
		p.done.Store(0)
	}
	commit := func(changes control.Changes) func() error {
		return func() error { return c.Commit(t.Context(), changes) }
	}
	if err := c.Commit(t.Context(), control.Changes{}); err != nil { // has a name from now on
		t.Fatal(err)
	}
	r, e, answer := request("k")
	lost("Begin", func() error {
		begun, err := c.Begin(t.Context(), r, e)
		if err == nil && begun != (control.Begun{}) {
			err = fmt.Errorf("it is %+v", begun)
		}
		return err
	})
	lost("an answer", commit(answer))
	lost("a key", commit(control.Changes{Keys: []control.Key{{ID: "a"}}, Entries: []control.Entry{{RequestID: "a"}}}))
	lost("a version", commit(control.Changes{Publish: &control.Machine{Name: "m", Version: 1}}))
	lost("a webhook", commit(control.Changes{Webhook: &control.Webhook{ID: "w", Version: 1}}))
	lost("a walk", commit(control.Changes{Walk: &control.Walk{WebhookID: "w", To: 5}}))
	lost("what is refused", func() error {
		p.done.Store(0) // a refusal commits nothing
		err := c.Commit(t.Context(), control.Changes{Keys: []control.Key{{ID: "a"}}})
		p.done.Store(-1)
		if errors.Is(err, control.ErrExists) {
			err = nil
		}
		return err
	})
	if n := verified(t, c); n != 3 {
		t.Errorf("the audit log has %d records, want 3", n)
	}
}

// expire has all owners of a schema be dead to others.
func expire(t testing.TB, address, schema string) {
	t.Helper()
	exec(t, address, `UPDATE `+schema+`.owners SET until=now()`)
}

// TestControlSilent: what a process has begun that is not heard of any more is taken up by another, and what
// is not goes on with it under its next name. Its job is lost to others until then.
func TestControlSilent(t *testing.T) {
	address := pgtest.Database(t)
	one, two := openControl(t, address), openControl(t, address)
	begin := func(c control.Store, key string) string {
		r, e, _ := request(key)
		begun, err := c.Begin(t.Context(), r, e)
		switch {
		case errors.Is(err, control.ErrInProgress):
			return "in progress"
		case err != nil:
			return err.Error()
		case begun.Resumed:
			return "taken up"
		case begun.Answer != nil:
			return "answered"
		}
		return "new"
	}
	is := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("it is %s, want %s", got, want)
		}
	}
	job := func(c control.Store) string {
		j, err := c.Job(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		return string(j.Status)
	}
	is(begin(one, "taken"), "new")
	is(begin(one, "kept"), "new")
	if err := one.Commit(t.Context(), control.Changes{Job: &control.Job{ID: "job"}}); err != nil {
		t.Fatal(err)
	}
	is(begin(two, "taken"), "in progress")
	is(job(two), "queued")
	expire(t, address, "dialai_control")
	is(job(two), "failed")
	is(job(one), "queued")
	if err := errors.Join(one.RenewOwners(t.Context()), two.RenewOwners(t.Context())); err != nil { // from then on both know
		t.Fatal(err)
	}
	is(begin(two, "taken"), "taken up")
	_, _, taken := request("taken")
	if err := one.Commit(t.Context(), taken); !errors.Is(err, control.ErrStale) {
		t.Errorf("who was not heard of ends what another has taken up: %v", err)
	}
	is(begin(two, "kept"), "in progress") // it has another name now
	is(job(two), "queued")
	_, _, kept := request("kept")
	if err := errors.Join(one.Commit(t.Context(), kept), two.Commit(t.Context(), taken)); err != nil {
		t.Error(err)
	}
	is(begin(two, "kept"), "answered")
	is(begin(one, "taken"), "answered")
	verified(t, two)
}

// TestLock: a lock is held by one process, freed by its end or by its silence, and who is silent knows before
// anybody else may take it.
func TestLock(t *testing.T) {
	address := pgtest.Database(t)
	var wins atomic.Int64
	var stores []*postgres.Control
	var locks []*postgres.Lock
	for range 6 {
		s := openControl(t, address)
		stores, locks = append(stores, s), append(locks, s.DeliveryLock())
	}
	var wg sync.WaitGroup
	for _, l := range locks {
		wg.Go(func() {
			for range 3 {
				taken, err := l.TryLock()
				if err != nil {
					t.Error(err)
				}
				if taken != l.Holds() {
					t.Error("who was told that it has the lock does not hold it")
				}
			}
			if l.Holds() {
				wins.Add(1)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Fatalf("%d hold the lock", wins.Load())
	}
	for locks[0].Holds() == false {
		locks, stores = append(locks[1:], locks[0]), append(stores[1:], stores[0])
	}
	expire(t, address, "dialai_control")
	if taken, err := locks[1].TryLock(); !taken || err != nil {
		t.Fatalf("the lock of who is not heard of is not free (%v)", err)
	}
	if err := stores[0].RenewOwners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if locks[0].Holds() {
		t.Error("who was not heard of holds it")
	}
	if taken, err := locks[0].TryLock(); taken || err != nil {
		t.Errorf("who was not heard of takes it from another (%v)", err)
	}
	if err := errors.Join(locks[0].Unlock(), locks[1].Unlock()); err != nil {
		t.Fatal(err)
	}
	if taken, err := locks[0].TryLock(); !taken || err != nil {
		t.Errorf("the lock is not free after Unlock (%v)", err)
	}
	if err := locks[0].Unlock(); err != nil {
		t.Fatal(err)
	}
}

// TestControlKey: servers that share what they remember share the key that seals it.
func TestControlKey(t *testing.T) {
	address := pgtest.Database(t)
	one, two := openControl(t, address), openControl(t, address)
	key := bytes.Repeat([]byte{7}, 32)
	if err := errors.Join(one.Seal(t.Context(), key), two.Seal(t.Context(), key)); err != nil {
		t.Fatal(err)
	}
	if err := two.Seal(t.Context(), make([]byte, 32)); err == nil || !strings.Contains(err.Error(), "under another key") {
		t.Errorf("another key is %v", err)
	}
	if kept := ask[string](t, address, `SELECT encode(seal, 'hex') FROM dialai_control.meta`); strings.Contains(kept, "0707070707") {
		t.Error("the key itself is kept")
	}
}

// TestControlAlone: it is in a schema of its own, which whoever only looks does not make.
func TestControlAlone(t *testing.T) {
	address := pgtest.Database(t)
	if _, err := postgres.OpenControl(t.Context(), address, postgres.Options{Existing: true}); !errors.Is(err, postgres.ErrNone) {
		t.Fatalf("it is %v", err)
	}
	openControl(t, address)
	openControl(t, address+"&schema=other")
	if schemas := ask[string](t, address, `SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname ~ 'dialai|other'`); schemas != "dialai_control other_control" {
		t.Errorf("the schemas are %s", schemas)
	}
	var wrong *postgres.AddressError
	if _, err := postgres.Open(context.Background(), address+"&schema=other_control", postgres.Options{}); !errors.As(err, &wrong) {
		t.Errorf("sessions where a server remembers: %v", err)
	}
}

// TestPlace: stores are the same that are shown as the same, whoever uses them with which password.
func TestPlace(t *testing.T) {
	one, err := postgres.Place("postgres://me:secret@db.example.com/decisions?sslmode=require")
	other, err2 := postgres.Place("postgresql://you@db.example.com:5432/decisions")
	apart, err3 := postgres.Place("postgres://me:secret@db.example.com/decisions?schema=apart")
	if err := errors.Join(err, err2, err3); err != nil || one != other || one == apart || strings.Contains(one+apart, "secret") {
		t.Errorf("they are at %q, %q and %q (%v)", one, other, apart, err)
	}
}
