package runner_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// TestAdoptOnce: what a request adopts, it adopts once, for each of its promises and also where
// later decisions are another session's; without an id each call adopts.
func TestAdoptOnce(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.desk(fn("a"), human("human"), half)
	b.force(b.start(m), "again")
	whole := trust.Adoption{Machine: "desk", PolicyDigest: "q", Promise: trust.Promise{MaxError: 100_000_000, Confidence: 900_000_000}, Pairs: []trust.Pair{{P: 990_000_000, Right: true}}}
	state := whole
	state.State, state.Promise.PerState = "open", true
	adopt := func(a trust.Adoption, policy, id string) (trust.Adoption, error) {
		return b.r.Adopt(b.ctx, runner.Adopting{Adoption: a, Trial: session.Trial{Policy: policy, From: 1, To: 2}, SpecialistID: "human", ID: id})
	}
	first, err := adopt(whole, "p", "once")
	b.ok(err)
	if _, err = b.r.RecordTrial(b.ctx, "desk", session.Trial{Policy: "other", From: 1, To: 2}, nil); err != nil {
		t.Fatal(err)
	}
	b.force(b.start(m), "again")
	again, err := adopt(whole, "p", "once")
	if b.ok(err); !reflect.DeepEqual(again, first) || first.Tried != 1 {
		t.Errorf("adopted again was %+v, want %+v", again, first)
	}
	other := whole
	other.PolicyDigest = "r"
	if _, err := adopt(other, "p", "once"); !errors.Is(err, session.ErrExists) {
		t.Errorf("something else by the same request: %v", err)
	}
	for _, id := range []string{"once", "once", "twice", "", ""} {
		_, err := adopt(state, "p", id)
		b.ok(err)
	}
	got := map[string]int{}
	for _, l := range b.lessons() {
		if a := l.Adoption; a != nil {
			got[a.State+":"+a.ID]++
		}
	}
	if want := map[string]int{":once": 1, "open:once": 1, "open:twice": 1, "open:": 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("adopted were %v, want %v", got, want)
	}
}
