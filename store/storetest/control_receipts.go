package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// Receipts: a request is answered once, whoever sends it how often, and whichever process begins it.

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
