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
	"github.com/dialai/dialai/specialist"
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

// request returns a receipt and the entry that belongs to it.
func request(key, body string, at specialist.Time) (control.Receipt, control.Entry) {
	r := control.Receipt{Key: control.ReceiptKey{Tenant: "acme", Subject: "key:abc", Method: "POST", Path: "/v1/sessions", Key: key}, Body: control.HashOf(body), At: at}
	return r, control.Entry{At: at, RequestID: fmt.Sprintf("%s at %d", key, at), Tenant: "acme", Operation: "startSession"}
}

// begin begins a request and says in a word what became of that.
func (b *controlBench) begin(s control.Store, key, body string, at specialist.Time) string {
	b.Helper()
	r, e := request(key, body, at)
	begun, err := s.Begin(b.Context(), r, e)
	return wordOf(begun, err)
}

func wordOf(begun control.Begun, err error) string {
	switch {
	case errors.Is(err, control.ErrInProgress):
		return "in progress"
	case errors.Is(err, control.ErrKeyReused):
		return "reused"
	case err != nil:
		return err.Error()
	case begun.Answer != nil:
		return fmt.Sprintf("answer %d %s", begun.Answer.Status, begun.Answer.Body)
	case begun.Resumed:
		return "taken up"
	}
	return "new"
}

func (b *controlBench) want(got, want string) {
	b.Helper()
	if got != want {
		b.Fatalf("it is %q, want %q", got, want)
	}
}

// end returns the changes that end a request with a status; 0 forgets it.
func end(key string, status int) control.Changes {
	r, e := request(key, "", 0)
	e.Result = fmt.Sprint(status)
	c := control.Changes{Entries: []control.Entry{e}, End: &control.End{Key: r.Key}}
	if status != 0 {
		c.End.Answer = &control.Answer{Status: status, Body: []byte(key)}
	}
	return c
}

// entries returns the audit log, each entry as "requestId result".
func (b *controlBench) entries(s control.Store, q control.Query) (list []string) {
	b.Helper()
	records, err := s.Audit(b.Context(), q)
	b.ok(err)
	for _, r := range records {
		e, err := r.Entry()
		b.ok(err)
		list = append(list, strings.TrimSpace(e.RequestID+" "+e.Result))
	}
	return list
}

func (b *controlBench) verify(s control.Store) control.Verified {
	b.Helper()
	v, err := control.Verify(b.Context(), s)
	b.ok(err)
	if v.Difference != nil {
		b.Fatal(v.Difference)
	}
	return v
}

func testAnsweredOnce(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	b.want(b.begin(one, "k", "body", 1), "new")
	b.want(b.begin(one, "k", "body", 2), "in progress")
	b.want(b.begin(two, "k", "body", 3), "in progress")
	b.want(b.begin(two, "k", "other", 4), "reused")
	b.commit(one, end("k", 201))
	for _, s := range []control.Store{one, two} {
		b.want(b.begin(s, "k", "body", 5), "answer 201 k")
		b.want(b.begin(s, "k", "other", 6), "reused")
	}
	if got := b.entries(two, control.Query{}); !slices.Equal(got, []string{"k at 1", "k at 0 201"}) {
		b.Errorf("the audit log has %q", got)
	}
	r, e := request("k", "body", 7)
	for _, other := range []control.ReceiptKey{
		{Tenant: "other", Subject: r.Key.Subject, Method: r.Key.Method, Path: r.Key.Path, Key: "k"},
		{Tenant: r.Key.Tenant, Subject: "key:abd", Method: r.Key.Method, Path: r.Key.Path, Key: "k"},
		{Tenant: r.Key.Tenant, Subject: r.Key.Subject, Method: "DELETE", Path: r.Key.Path, Key: "k"},
		{Tenant: r.Key.Tenant, Subject: r.Key.Subject, Method: r.Key.Method, Path: "/v1/jobs", Key: "k"},
	} {
		r.Key = other
		begun, err := one.Begin(b.Context(), r, e)
		b.want(wordOf(begun, err), "new")
	}
}

func testForgotten(b *controlBench) {
	s := b.open()
	defer b.close(s)
	b.want(b.begin(s, "k", "body", 1), "new")
	b.commit(s, end("k", 0))
	b.want(b.begin(s, "k", "other", 2), "new")
	b.commit(s, end("k", 200))
	b.want(b.begin(s, "k", "other", 3), "answer 200 k")
}

func testTakenUp(b *controlBench) {
	one, two, three := b.open(), b.open(), b.open()
	defer b.close(two)
	defer b.close(three)
	b.want(b.begin(one, "k", "body", 1), "new")
	b.want(b.begin(one, "answered", "body", 1), "new")
	b.commit(one, end("answered", 200))
	b.close(one)
	b.want(b.begin(two, "answered", "body", 2), "answer 200 answered")
	b.want(b.begin(two, "k", "other", 2), "reused")
	b.want(b.begin(two, "k", "body", 3), "taken up")
	b.want(b.begin(three, "k", "body", 4), "in progress")
	b.is(three.Commit(b.Context(), end("k", 500)), control.ErrStale)
	b.commit(two, end("k", 202))
	b.want(b.begin(three, "k", "body", 5), "answer 202 k")
	if got := b.entries(two, control.Query{}); !slices.Equal(got, []string{"k at 1", "answered at 1", "answered at 0 200", "k at 3", "k at 0 202"}) {
		b.Errorf("the audit log has %q", got)
	}
}

func testExpire(b *controlBench) {
	s := b.open()
	defer b.close(s)
	const day = control.ReceiptLifetime
	b.want(b.begin(s, "open", "body", 0), "new")
	for i := range 10 {
		key := fmt.Sprint(i)
		b.want(b.begin(s, key, "body", 0), "new")
		b.commit(s, end(key, 200))
	}
	b.want(b.begin(s, "3", "body", day-1), "answer 200 3")
	b.want(b.begin(s, "3", "other", day), "new")
	b.want(b.begin(s, "3", "other", day+1), "in progress")
	b.want(b.begin(s, "open", "body", 2*day), "in progress") // whoever is at it may still act
	for i := range 10 {
		b.want(b.begin(s, fmt.Sprint("later", i), "body", 2*day), "new")
	}
	b.commit(s, end("open", 200))
	b.want(b.begin(s, "5", "body", 2*day), "new")
}

func testWhoseReceipt(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	b.is(one.Commit(b.Context(), end("k", 200)), control.ErrStale)
	b.want(b.begin(one, "k", "body", 1), "new")
	b.is(two.Commit(b.Context(), end("k", 200)), control.ErrStale)
	b.is(two.Commit(b.Context(), end("k", 0)), control.ErrStale)
	b.commit(one, end("k", 200))
	b.is(one.Commit(b.Context(), end("k", 404)), control.ErrStale)
	b.is(one.Commit(b.Context(), end("k", 0)), control.ErrStale)
	b.want(b.begin(one, "k", "body", 2), "answer 200 k")
}

// testOneTurn lets many send the same requests to two processes at once: each has its turn
// once, and who comes later is told to wait or answered.
func testOneTurn(b *controlBench) {
	stores := []ControlStore{b.open(), b.open()}
	const requests, senders = 20, 8
	var turns [requests]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			s := stores[sender%len(stores)]
			for i := range requests {
				switch word := b.begin(s, fmt.Sprint(i), "body", 1); word {
				case "new":
					mu.Lock()
					turns[i]++
					mu.Unlock()
					if err := s.Commit(b.Context(), end(fmt.Sprint(i), 200)); err != nil {
						b.Error(err)
					}
				case "in progress", fmt.Sprintf("answer 200 %d", i):
				default:
					b.Errorf("request %d: %s", i, word)
				}
			}
		})
	}
	wg.Wait()
	for i, n := range turns {
		if n != 1 {
			b.Errorf("request %d had %d turns", i, n)
		}
	}
	if v := b.verify(stores[0]); v.Records != 2*requests {
		b.Errorf("the audit log has %d records, want %d", v.Records, 2*requests)
	}
	for _, s := range stores {
		b.close(s)
	}
}

func testAnswers(b *controlBench) {
	s := b.open()
	for i, a := range []control.Answer{
		{Status: 204},
		{Status: 200, Body: []byte{}},
		{Status: 201, Location: "/v1/sessions/é%2F", ETag: `"17"`, Body: []byte("{\"x\":\"\x00\xff \U0001f600\"}")},
		{Status: 200, Body: []byte(strings.Repeat("x", control.MaxAnswer))},
		{Status: 200, Location: "/there", Body: []byte(strings.Repeat("x", control.MaxAnswer+1))},
	} {
		r, e := request(fmt.Sprint(i), "body", 1)
		if _, err := s.Begin(b.Context(), r, e); err != nil {
			b.Fatal(err)
		}
		b.commit(s, control.Changes{End: &control.End{Key: r.Key, Answer: &a}})
		b.close(s)
		s = b.open()
		begun, err := s.Begin(b.Context(), r, e)
		b.ok(err)
		want, got := a.Kept(), begun.Answer
		if got == nil || got.Status != want.Status || got.Location != want.Location || got.ETag != want.ETag || got.Omitted != want.Omitted || string(got.Body) != string(want.Body) {
			b.Errorf("answer %d is %+v, want %+v", i, got, want)
		}
	}
	b.close(s)
}

func testKeys(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	list, err := one.Keys(ctx, control.Query{})
	b.ok(err)
	if len(list) != 0 {
		b.Fatalf("a new store has %d keys", len(list))
	}
	_, err = one.Key(ctx, "a")
	b.is(err, control.ErrNotFound)
	key := control.Key{ID: "a", Name: "Größe \x00", Hash: control.HashOf("a"), Tenant: "acme", CreatedBy: "local", CreatedAt: 7, ExpiresAt: 1 << 50,
		Grants: []control.Grant{{Role: control.Human, Machines: []string{"a*", "b"}, Humans: []string{"carol"}}, {Role: control.Viewer, Machines: []string{"*"}}}}
	b.commit(one, control.Changes{Keys: []control.Key{key, {ID: "b", Tenant: "other"}}})
	b.is(one.Commit(ctx, control.Changes{Keys: []control.Key{{ID: "c"}, {ID: "b"}}}), control.ErrExists)
	b.is(one.Commit(ctx, control.Changes{Keys: []control.Key{{ID: "c"}, {ID: "c"}}}), control.ErrExists)
	_, err = one.Key(ctx, "c")
	b.is(err, control.ErrNotFound)
	b.is(two.Commit(ctx, control.Changes{Revoked: []control.KeyTime{{ID: "b", At: 1}, {ID: "c", At: 1}}}), control.ErrNotFound)
	const hour = 3_600_000
	b.commit(two, control.Changes{Used: []control.KeyTime{{ID: "a", At: 2*hour + 5}, {ID: "unknown", At: 1}}})
	b.commit(two, control.Changes{Used: []control.KeyTime{{ID: "a", At: hour}}})
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 100}}})
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 200}}})
	key.LastUsed, key.RevokedAt, key.Place = 2*hour, 100, 1
	got, err := one.Key(ctx, "a")
	b.ok(err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", key) {
		b.Errorf("the key is %+v, want %+v", got, key)
	}
	b.commit(two, control.Changes{Revoked: []control.KeyTime{{ID: "a", At: 50}}})
	list, err = one.Keys(ctx, control.Query{})
	b.ok(err)
	if len(list) != 2 || list[0].ID != "a" || list[0].RevokedAt != 50 || len(list[0].Grants) != 2 || list[1].RevokedAt != 0 || list[1].LastUsed != 0 {
		b.Errorf("the keys are %+v", list)
	}
	b.commit(two, control.Changes{Keys: []control.Key{{ID: "c"}}, Revoked: []control.KeyTime{{ID: "c", At: 9}}, Used: []control.KeyTime{{ID: "c", At: hour}}})
	if got, err = two.Key(ctx, "c"); err != nil || got.RevokedAt != 9 || got.LastUsed != hour {
		b.Errorf("a key that was revoked as it was made is %+v (%v)", got, err)
	}
}

func testMachines(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	version := func(tenant, name string, n int64, digest string) control.Machine {
		return control.Machine{Tenant: tenant, Name: name, Version: n, Digest: digest, Definition: []byte(`{"is":"` + digest + `"}`), By: "key:abc", At: specialist.Time(n)}
	}
	publish := func(s control.Store, m control.Machine) error {
		return s.Commit(ctx, control.Changes{Publish: &m})
	}
	_, err := one.Machine(ctx, "acme", "m")
	b.is(err, control.ErrNotFound)
	b.is(publish(one, version("acme", "m", 2, "x")), control.ErrStale)
	b.ok(publish(one, version("acme", "m", 1, "x")))
	b.is(publish(two, version("acme", "m", 1, "y")), control.ErrStale)
	b.ok(publish(two, version("acme", "m", 2, "y")))
	b.ok(publish(two, version("acme", "team/n", 1, "z")))
	b.ok(publish(one, version("other", "m", 1, "w")))
	b.ok(publish(one, version("acme", "m", 3, "x"))) // back to the first
	b.is(publish(one, version("acme", "m", 3, "y")), control.ErrStale)
	b.is(publish(one, version("acme", "m", 5, "y")), control.ErrStale)
	show := func(list []control.Machine, err error) (text string) {
		b.Helper()
		b.ok(err)
		for _, m := range list {
			text += fmt.Sprintf("%s/%s %d %s %s;", m.Tenant, m.Name, m.Version, m.Digest, m.Definition)
		}
		return text
	}
	single := func(m control.Machine, err error) ([]control.Machine, error) { return []control.Machine{m}, err }
	b.want(show(single(two.Machine(ctx, "acme", "m"))), `acme/m 3 x {"is":"x"};`)
	b.want(show(single(two.MachineOf(ctx, "acme", "m", "y"))), `acme/m 2 y {"is":"y"};`)
	b.want(show(single(two.MachineOf(ctx, "acme", "m", "x"))), `acme/m 3 x {"is":"x"};`)
	for _, c := range [][3]string{{"acme", "m", "w"}, {"other", "m", "x"}, {"acme", "n", "x"}} {
		_, err = two.MachineOf(ctx, c[0], c[1], c[2])
		b.is(err, control.ErrNotFound)
	}
	b.want(show(two.Machines(ctx, control.Query{Tenant: "acme"})), "acme/m 3 x ;acme/team/n 1 z ;")
	b.want(show(two.Machines(ctx, control.Query{Tenant: "nobody"})), "")
	b.want(show(two.Machines(ctx, control.Query{Desc: true})), "other/m 1 w ;acme/team/n 1 z ;acme/m 3 x ;")
	b.want(show(one.Versions(ctx, "m", control.Query{Tenant: "acme"})), "acme/m 1 x ;acme/m 2 y ;acme/m 3 x ;")
	b.want(show(one.Versions(ctx, "unknown", control.Query{Tenant: "acme"})), "")
	m, err := one.MachineOf(ctx, "acme", "m", "y")
	b.ok(err)
	if m.By != "key:abc" || m.At != 2 {
		b.Errorf("version 2 is %+v", m)
	}
}

func testClaims(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	claim := func(question, subject string, at specialist.Time) *control.Claim {
		return &control.Claim{Tenant: "acme", QuestionID: question, Subject: subject, SpecialistID: subject + "-human", At: at, ExpiresAt: at + control.ClaimLifetime}
	}
	claims := func(now specialist.Time, ids ...string) (text string) {
		b.Helper()
		list, err := two.Claims(b.Context(), "acme", ids, now)
		b.ok(err)
		for _, c := range list {
			text += fmt.Sprintf("%s %s %s %d;", c.QuestionID, c.Subject, c.SpecialistID, c.At)
		}
		return text
	}
	b.commit(one, control.Changes{Claim: claim("q", "ann", 10)})
	err := two.Commit(b.Context(), control.Changes{Claim: claim("q", "bob", 20)})
	if held, is := errors.AsType[*control.ClaimedError](err); !is || held.Claim.Subject != "ann" || held.Claim.ExpiresAt != 10+control.ClaimLifetime {
		b.Errorf("a second claim is %v", err)
	}
	b.want(claims(20, "q", "r"), "q ann ann-human 10;")
	b.commit(one, control.Changes{Claim: claim("q", "ann", 30)}) // for longer
	b.want(claims(29+control.ClaimLifetime, "q"), "q ann ann-human 30;")
	b.want(claims(30+control.ClaimLifetime, "q"), "")
	b.commit(two, control.Changes{Claim: claim("q", "bob", 30+control.ClaimLifetime)})
	b.commit(two, control.Changes{Unclaim: claim("q", "ann", 0)}) // it is not hers any more
	b.commit(two, control.Changes{Claim: claim("r", "bob", 40)})
	b.want(claims(40, "r", "q"), "r bob bob-human 40;q bob bob-human 1800030;")
	b.want(claims(40), "")
	of := func(tenant, subject string, now specialist.Time, limit int, humans ...string) (text string) {
		b.Helper()
		list, err := two.ClaimsOf(b.Context(), tenant, subject, humans, now, limit)
		b.ok(err)
		for _, c := range list {
			text += c.QuestionID + ";"
		}
		return text
	}
	b.want(of("acme", "bob", 40, 9), "r;q;")
	b.want(of("acme", "bob", 40, 1), "r;")
	b.want(of("acme", "", 40, 9, "bob-human", "ann-human"), "r;q;")
	b.want(of("acme", "ann", 40, 9, "ann-human"), "")
	b.want(of("other", "bob", 40, 9, "bob-human"), "")
	b.want(of("acme", "bob", 40+control.ClaimLifetime, 9), "q;")
	if list, err := one.Claims(b.Context(), "other", []string{"q"}, 40); err != nil || len(list) != 0 {
		b.Errorf("another tenant's claims are %v (%v)", list, err)
	}
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.commit(one, control.Changes{Unclaim: claim("r", "", 0)})
	b.commit(one, control.Changes{Unclaim: claim("unknown", "", 0)})
	b.want(claims(40, "q", "r"), "")

	assign := func(subject, human, as string, at specialist.Time) *control.Claim {
		return &control.Claim{Tenant: "acme", QuestionID: "q", Subject: subject, SpecialistID: human, At: at, ExpiresAt: at + control.AssignmentLifetime, Note: "see " + human, Assigned: true, As: as}
	}
	refused := func(store control.Store, c *control.Claim) {
		b.Helper()
		err := store.Commit(b.Context(), control.Changes{Claim: c})
		if held, is := errors.AsType[*control.ClaimedError](err); !is || !held.Claim.Assigned || held.Claim.Note == "" {
			b.Errorf("%+v beside an assignment: %v", c, err)
		}
	}
	b.commit(one, control.Changes{Claim: claim("q", "lead", 40)})
	b.commit(two, control.Changes{Claim: assign("lead", "bob-human", "", 50)}) // who is at it gives it to another
	list, err := one.Claims(b.Context(), "acme", []string{"q"}, 49+control.AssignmentLifetime)
	b.ok(err)
	if want := assign("lead", "bob-human", "", 50); len(list) != 1 || list[0] != *want {
		b.Errorf("the assignment is %+v", list)
	}
	b.want(of("acme", "lead", 60, 9), "") // it is not its own
	b.want(of("acme", "", 60, 9, "bob-human"), "q;")
	refused(one, claim("q", "lead", 60)) // looking at it undoes nothing
	refused(one, claim("q", "bob", 60))
	refused(one, assign("ann", "ann-human", "ann-human", 60))
	refused(one, assign("ann", "ann-human", "", 60))
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.want(claims(60, "q"), "q lead bob-human 50;")
	b.commit(two, control.Changes{Claim: assign("bob", "ann-human", "bob-human", 60)}) // who has got it passes it on
	b.want(claims(60, "q"), "q bob ann-human 60;")
	b.commit(one, control.Changes{Claim: assign("bob", "eve-human", "", 70)}) // and says otherwise
	b.commit(one, control.Changes{Unclaim: claim("q", "bob", 0)})
	b.want(claims(70, "q"), "")
	b.commit(one, control.Changes{Claim: assign("lead", "bob-human", "", 80)})
	b.commit(one, control.Changes{Claim: claim("q", "ann", 80+control.AssignmentLifetime)}) // it is over
	b.want(claims(80+control.AssignmentLifetime, "q"), "q ann ann-human 604800080;")
}

func testStepTimes(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	stepped := func(tenant, session string) control.StepTime {
		b.Helper()
		t, err := two.StepTime(b.Context(), tenant, session)
		b.ok(err)
		return t
	}
	for _, want := range []control.StepTime{{Tenant: "acme", SessionID: "s", Msec: 60_000}, {Tenant: "acme", SessionID: "s", Msec: 120_000}, {Tenant: "acme", SessionID: "s", Resumes: 1, Msec: 5}, {Tenant: "other", SessionID: "s", Resumes: 2, Msec: 1 << 40}} {
		b.commit(one, control.Changes{Stepped: &want})
		if got := stepped(want.Tenant, want.SessionID); got != want {
			b.Errorf("of %+v is kept %+v", want, got)
		}
	}
	if got := stepped("acme", "s"); got.Msec != 5 {
		b.Errorf("after that of another tenant it is %+v", got)
	}
	if got := stepped("acme", "none"); got != (control.StepTime{}) {
		b.Errorf("of a session of which nothing was kept: %+v", got)
	}
}

func testBindings(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	if _, err := two.Binding(b.Context(), "A_TOKEN"); !errors.Is(err, control.ErrNotFound) {
		b.Errorf("what nobody has bound is %v", err)
	}
	first := control.Binding{Variable: "A_TOKEN", Host: "a.example.com", At: 7}
	b.commit(one, control.Changes{Bind: &first})
	for _, by := range []control.Store{one, two} { // whoever comes second
		err := by.Commit(b.Context(), control.Changes{Bind: &control.Binding{Variable: "A_TOKEN", Host: "b.example.com", At: 8}})
		if !errors.Is(err, control.ErrExists) {
			b.Errorf("another binding is %v", err)
		}
		if got, err := by.Binding(b.Context(), "A_TOKEN"); err != nil || got != first {
			b.Errorf("the token is bound as %+v (%v)", got, err)
		}
	}
	b.commit(two, control.Changes{Bind: &control.Binding{Variable: "a_token", Host: "b.example.com", At: 9}})
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

func testAuditLog(b *controlBench) {
	s := b.open()
	if v := b.verify(s); v != (control.Verified{}) {
		b.Errorf("an empty log verifies as %+v", v)
	}
	e := control.Entry{At: 1767225600123, RequestID: "r1", Tenant: "acme", Subject: "oidc:https://issuer#é\x00\"", KeyID: "k", Method: "key", Address: "127.0.0.1",
		Operation: "decide", Target: "5f", RoundID: "6f", Digest: "7f", Count: 3, Result: "200"}
	b.commit(s, control.Changes{Entries: []control.Entry{e, {Tenant: "other"}}})
	list, err := s.Audit(b.Context(), control.Query{Tenant: "acme"})
	b.ok(err)
	if len(list) != 1 || list[0].Place != 1 || list[0].Sequence != 1 || list[0].Tenant != "acme" {
		b.Fatalf("the log is %+v", list)
	}
	if got, err := list[0].Entry(); err != nil || got != e {
		b.Errorf("the entry is %+v, want %+v (%v)", got, e, err)
	}
	first := b.verify(s)
	b.close(s)
	s = b.open()
	defer b.close(s)
	b.commit(s, control.Changes{Entries: []control.Entry{{}}})
	if v := b.verify(s); first.Records != 2 || first.Processes != 1 || v.Records != 3 || v.Processes != 2 || v.Head == first.Head {
		b.Errorf("the log verifies as %+v and then %+v", first, v)
	}
}

// testAuditChains lets processes append at once, and new ones begin meanwhile.
func testAuditChains(b *controlBench) {
	const processes, each = 4, 30
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			s := b.open()
			for i := range each {
				if err := s.Commit(b.Context(), control.Changes{Entries: []control.Entry{{RequestID: fmt.Sprint(p, " ", i)}}}); err != nil {
					b.Error(err)
				}
				if i == each/2 {
					if err := s.Close(); err != nil {
						b.Error(err)
					}
					s = b.open()
				}
			}
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	s := b.open()
	defer b.close(s)
	if v := b.verify(s); v.Records != processes*each || v.Processes != 2*processes {
		b.Errorf("the log verifies as %+v", v)
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
