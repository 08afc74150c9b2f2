package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/dialai/dialai/control"
)

// The audit log of requests: whole, in pages, and a chain for each process.

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
