package store_test

import (
	"reflect"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestVerifyAdoption: a store that holds what a request has adopted is verified, and rebuilt with
// the id by which the request is known again.
func TestVerifyAdoption(t *testing.T) {
	a := newStore(t)
	in := runner.Adopting{Trial: session.Trial{Policy: "tried", From: 1, To: 1}, SpecialistID: "h", ID: "once",
		Adoption: trust.Adoption{Machine: "small", Promise: trust.DefaultPromise(), PolicyDigest: "digest", Pairs: []trust.Pair{{P: 900_000_000, Right: true}}}}
	var first trust.Adoption
	adopt := func(r *runner.Runner, s *store.SQLite) {
		done, err := r.Adopt(a.ctx, in)
		if a.ok(err); first.ID == "" {
			first = done
		}
		n := 0
		for l, err := range s.Lessons(a.ctx, 0) {
			if a.ok(err); l.Adoption != nil {
				n++
			}
		}
		if n != 1 || done.ID != in.ID || !reflect.DeepEqual(done, first) {
			t.Errorf("%d adoptions are in the log, the last is %+v, want %+v", n, done, first)
		}
	}
	a.with(adopt)
	if r := a.verify(); r.Difference != nil {
		t.Errorf("verified: %v", r.Difference)
	}
	if r := a.rebuild(false); r.Difference != nil {
		t.Errorf("rebuilt: %v", r.Difference)
	}
	a.with(adopt)
	if r := a.verify(); r.Difference != nil {
		t.Errorf("verified once it is rebuilt: %v", r.Difference)
	}
}
