package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/control"
)

// A ControlStore is a [control.Store] whose process can end.
type ControlStore interface {
	control.Store
	Close() error
}

// RunControl runs the suite that every [control.Store] passes: its contract, line by line.
// maker is called for every test, and what it returns once for each process, all over the
// same data.
func RunControl(t *testing.T, maker func(t *testing.T) func(t *testing.T) ControlStore) {
	for _, c := range []struct {
		name string
		test func(b *controlBench)
	}{
		{"a request is answered once", testAnsweredOnce},
		{"requests that are forgotten", testForgotten},
		{"requests of a process that is gone", testTakenUp},
		{"answers expire", testExpire},
		{"whose receipt it is", testWhoseReceipt},
		{"one winner of many requests", testOneTurn},
		{"large and odd answers", testAnswers},
		{"keys", testKeys},
		{"machines", testMachines},
		{"claims", testClaims},
		{"step times", testStepTimes},
		{"bindings of tokens", testBindings},
		{"sign-ins", testSignIns},
		{"sign-ins are forgotten", testSignInsForgotten},
		{"webhooks", testWebhooks},
		{"walks of webhooks", testWalks},
		{"attempts of deliveries", testAttempts},
		{"deliveries in pages", testWebhookPages},
		{"jobs", testJobs},
		{"jobs of a process that is gone", testJobsLost},
		{"jobs are forgotten", testJobsForgotten},
		{"all or nothing", testAllOrNothing},
		{"lists in pages", testControlPages},
		{"audit log", testAuditLog},
		{"audit log of many processes", testAuditChains},
		{"copies of control", testControlCopies},
		{"cancelled before it began", testControlCancelled},
		{"random operations", testControlModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := maker(t)
			c.test(&controlBench{T: t, open: func() ControlStore { return open(t) }})
		})
	}
}

type controlBench struct {
	*testing.T
	open  func() ControlStore
	begun int // records of the audit log before
}

func (b *controlBench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *controlBench) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%v, want %v", err, want)
	}
}

func (b *controlBench) close(s ControlStore) { b.Helper(); b.ok(s.Close()) }

func (b *controlBench) commit(s control.Store, c control.Changes) {
	b.Helper()
	b.ok(s.Commit(b.Context(), c))
}

func (b *controlBench) want(got, want string) {
	b.Helper()
	if got != want {
		b.Fatalf("it is %q, want %q", got, want)
	}
}

// testAllOrNothing commits one of everything with one change that is refused: nothing of the
// others is there, and the same without it is.
func testAllOrNothing(b *controlBench) {
	s := b.open()
	defer b.close(s)
	ctx := b.Context()
	b.commit(s, control.Changes{Keys: []control.Key{{ID: "old"}}, Publish: &control.Machine{Tenant: "acme", Name: "old", Version: 1},
		Claim: &control.Claim{Tenant: "acme", QuestionID: "old", Subject: "ann", ExpiresAt: 100}, SignIn: &control.SignIn{ID: *signIn("old"), ExpiresAt: 100}})
	b.want(b.begin(s, "k", "body", 1), "new")
	all := func() control.Changes {
		c := end("k", 200)
		c.Keys = []control.Key{{ID: "new"}}
		c.Revoked, c.Used = []control.KeyTime{{ID: "old", At: 5}}, []control.KeyTime{{ID: "old", At: 1 << 40}}
		c.Publish = &control.Machine{Tenant: "acme", Name: "new", Version: 1}
		c.Claim = &control.Claim{Tenant: "acme", QuestionID: "new", Subject: "ann", ExpiresAt: 100}
		c.Unclaim = &control.Claim{Tenant: "acme", QuestionID: "old"}
		c.Stepped = &control.StepTime{Tenant: "acme", SessionID: "new", Msec: 1}
		c.SignOut, c.SignIn = signIn("old"), &control.SignIn{ID: *signIn("new"), SeenAt: 2, ExpiresAt: 100}
		return c
	}
	state := func() string {
		keys, err := s.Keys(ctx, control.Query{})
		b.ok(err)
		machines, err := s.Machines(ctx, control.Query{})
		b.ok(err)
		claims, err := s.Claims(ctx, "acme", []string{"old", "new"}, 2)
		b.ok(err)
		stepped, err := s.StepTime(ctx, "acme", "new")
		b.ok(err)
		_, old := s.SignIn(ctx, *signIn("old"))
		_, fresh := s.SignIn(ctx, *signIn("new"))
		return fmt.Sprint(keys, machines, claims, stepped, old, fresh, b.entries(s, control.Query{}), b.begin(s, "k", "body", 2))
	}
	before := state()
	for name, change := range map[string]func(c *control.Changes){
		"a key that there is":            func(c *control.Changes) { c.Keys = append(c.Keys, control.Key{ID: "old"}) },
		"a key that there is not":        func(c *control.Changes) { c.Revoked = append(c.Revoked, control.KeyTime{ID: "none"}) },
		"a version that does not follow": func(c *control.Changes) { c.Publish.Version = 2 },
		"a claim that another has": func(c *control.Changes) {
			c.Claim = &control.Claim{Tenant: "acme", QuestionID: "old", Subject: "bob"}
		},
		"a sign-in that there is not": func(c *control.Changes) { c.SignOut = signIn("none") },
		"a sign-in that there is":     func(c *control.Changes) { c.SignIn.ID = *signIn("old"); c.SignOut = nil },
		"a receipt that there is not": func(c *control.Changes) { c.End.Key.Key = "none" },
	} {
		c := all()
		change(&c)
		if err := s.Commit(ctx, c); err == nil {
			b.Errorf("%s is not refused", name)
		}
		if after := state(); after != before {
			b.Fatalf("%s left\n%s\nof\n%s", name, after, before)
		}
	}
	b.commit(s, all())
	if after := state(); !strings.HasSuffix(after, "answer 200 k") || !strings.Contains(after, "new") {
		b.Errorf("all is\n%s", after)
	}
}

func testControlPages(b *controlBench) {
	s := b.open()
	defer b.close(s)
	ctx := b.Context()
	var want []string
	for i := range 25 {
		tenant, id := "acme", fmt.Sprint("k", i)
		if i%3 == 0 {
			tenant = "other"
		} else {
			want = append(want, id)
		}
		b.commit(s, control.Changes{Keys: []control.Key{{ID: id, Tenant: tenant}}, Entries: []control.Entry{{RequestID: id, Tenant: tenant}},
			Publish: &control.Machine{Tenant: tenant, Name: id, Version: 1}})
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	lists := map[string]func(q control.Query) (ids []string, last int64){
		"keys": func(q control.Query) (ids []string, last int64) {
			list, err := s.Keys(ctx, q)
			b.ok(err)
			for _, k := range list {
				ids, last = append(ids, k.ID), k.Place
			}
			return ids, last
		},
		"machines": func(q control.Query) (ids []string, last int64) {
			list, err := s.Machines(ctx, q)
			b.ok(err)
			for _, m := range list {
				ids, last = append(ids, m.Name), m.Place
			}
			return ids, last
		},
		"audit": func(q control.Query) (ids []string, last int64) {
			list, err := s.Audit(ctx, q)
			b.ok(err)
			for _, r := range list {
				e, err := r.Entry()
				b.ok(err)
				ids, last = append(ids, e.RequestID), r.Place
			}
			return ids, last
		},
	}
	for name, list := range lists {
		for _, limit := range []int{1, 4, 17, 0} {
			for _, desc := range []bool{false, true} {
				var got []string
				for q := (control.Query{Tenant: "acme", Limit: limit, Desc: desc}); ; {
					ids, last := list(q)
					if got = append(got, ids...); limit == 0 || len(ids) < limit {
						break
					}
					q.After = last
				}
				expected := want
				if desc {
					expected = backwards
				}
				if !slices.Equal(got, expected) {
					b.Errorf("%s by %d, descending %t: %v, want %v", name, limit, desc, got, expected)
				}
			}
		}
		if all, _ := list(control.Query{}); len(all) != 25 {
			b.Errorf("of all tenants there are %d %s", len(all), name)
		}
		if none, _ := list(control.Query{After: 1 << 40}); len(none) != 0 {
			b.Errorf("behind the last there are %d %s", len(none), name)
		}
	}
}

func testControlCopies(b *controlBench) {
	s := b.open()
	defer b.close(s)
	r, e := request("k", "body", 1)
	_, err := s.Begin(b.Context(), r, e)
	b.ok(err)
	key := control.Key{ID: "a", Grants: []control.Grant{{Role: control.Human, Machines: []string{"m"}, Humans: []string{"carol"}}}}
	m := control.Machine{Tenant: "acme", Name: "m", Version: 1, Definition: []byte("{}")}
	a := control.Answer{Status: 200, Body: []byte("body")}
	b.commit(s, control.Changes{End: &control.End{Key: r.Key, Answer: &a}, Keys: []control.Key{key}, Publish: &m})
	for range 2 { // what was given, then what was got, is changed
		a.Body[0], key.Grants[0].Humans[0], m.Definition[0] = 'X', "mallory", 'X'
		begun, err := s.Begin(b.Context(), r, e)
		b.ok(err)
		stored, err := s.Key(b.Context(), "a")
		b.ok(err)
		machine, err := s.Machine(b.Context(), "acme", "m")
		b.ok(err)
		if string(begun.Answer.Body) != "body" || stored.Grants[0].Humans[0] != "carol" || string(machine.Definition) != "{}" {
			b.Fatalf("what callers change is changed: %s, %v, %s", begun.Answer.Body, stored.Grants, machine.Definition)
		}
		a, key, m = *begun.Answer, stored, machine
	}
}

func testControlCancelled(b *controlBench) {
	s := b.open()
	defer b.close(s)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	r, e := request("k", "body", 1)
	if _, err := s.Begin(ctx, r, e); !errors.Is(err, ctx.Err()) {
		b.Errorf("Begin = %v", err)
	}
	if err := s.Commit(ctx, control.Changes{Entries: []control.Entry{e}}); !errors.Is(err, ctx.Err()) {
		b.Errorf("Commit = %v", err)
	}
	b.want(b.begin(s, "k", "body", 1), "new")
	if err := s.Commit(ctx, end("k", 200)); !errors.Is(err, ctx.Err()) {
		b.Errorf("Commit = %v", err)
	}
	if got := b.entries(s, control.Query{}); len(got) != 1 {
		b.Errorf("the audit log has %q", got)
	}
	var wg sync.WaitGroup
	words := make([]string, 16)
	for i := range words {
		wg.Go(func() { words[i] = b.begin(s, "k", "body", 2) })
	}
	wg.Wait()
	slices.Sort(words)
	if one := words[15]; one != "taken up" || words[0] != "in progress" || words[14] != "in progress" {
		b.Errorf("what could not be ended is %q for those who come next", words)
	}
	b.commit(s, end("k", 200))
	b.want(b.begin(s, "k", "body", 3), "answer 200 k")
}
