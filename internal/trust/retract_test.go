package trust_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestRetract: an outcome that is taken back leaves the ledger as if it had never been
// added, but for the tests, which keep it; clones of before keep it too (cases.md 4.7).
func TestRetract(t *testing.T) {
	list := crowdOutcomes("retract", 60, 6, 3)
	for i := range list {
		list[i].Round = fmt.Sprint("round ", i)
		list[i].Promise, list[i].PolicyDigest = &trust.Promise{MaxError: exact.One / 10, Confidence: exact.One * 9 / 10}, "p"
	}
	q, _ := crowd(trust.NewDraw("question"), 6, 3)
	q.Policy.Threshold = new(exact.Billionths(800_000_000))
	for _, i := range []int{20, 41, 59} {
		l := add(t, trust.New(), list...)
		target := trust.Target{Share: exact.One * 8 / 10, Alpha: exact.One / 20, ClassShare: exact.One / 2, AnyRuling: true}
		kept, tested := l.Clone(), fmt.Sprintf("%+v %+v", l.Candidates("desk", list[i].State, target), l.Risks("desk"))
		before := asText(t, kept.Judge(q))
		if err := l.Retract(list[i]); err != nil {
			t.Fatal(err)
		}
		other := trust.New()
		for j := range list {
			if j != i {
				add(t, other, list[j])
			}
		}
		other.Refit("desk")
		if got, want := asText(t, l.Judge(q)), asText(t, other.Judge(q)); got != want || got == before || l.N("desk") != 59 {
			t.Errorf("without outcome %d of %d:\n%s\nwant\n%s", i, l.N("desk"), got, want)
		}
		if asText(t, kept.Judge(q)) != before {
			t.Error("a clone has forgotten it too")
		}
		for n, c := range l.Candidates("desk", list[i].State, target) {
			was := kept.Candidates("desk", list[i].State, target)[n]
			if c.N != was.N || c.K != was.K {
				t.Errorf("the tests of promotion have lost it: %s\n%+v\n%+v", tested, c, was)
			}
		}
	}
}

// TestRetractRefuses: what was never learned cannot be taken back, and nothing changes.
func TestRetractRefuses(t *testing.T) {
	list := crowdOutcomes("retract", 30, 6, 3)
	l := add(t, trust.New(), list[:20]...)
	q, _ := crowd(trust.NewDraw("question"), 6, 3)
	before := asText(t, l.Judge(q))
	bad := list[25]
	bad.Machine = "another"
	strange := list[3]
	strange.Proposals = append([]trust.OutcomeProposal{{SpecialistID: "who", Version: "x", Transition: strange.Options[0]}}, strange.Proposals...)
	for _, o := range []trust.Outcome{bad, strange, {}} {
		if err := l.Retract(o); !errors.Is(err, trust.ErrOutcome) || asText(t, l.Judge(q)) != before {
			t.Errorf("%+v: %v", o, err)
		}
	}
	x := trust.Lesson{Retracts: &list[3], Outcome: &list[4]}
	if err := l.Learn(x); !errors.Is(err, trust.ErrOutcome) {
		t.Errorf("beside an outcome: %v", err)
	}
}
