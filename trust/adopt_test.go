package trust_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/trust"
)

func TestAdopt(t *testing.T) {
	l, right := trust.New(), make([]trust.Pair, 40)
	for i := range right {
		right[i] = trust.Pair{P: 990_000_000, Right: true}
	}
	a := trust.Adoption{Machine: "desk", Promise: promise(.1), PolicyDigest: "p", Pairs: right, Tried: 1}
	if err := l.Adopt(a); err != nil || risk(t, l).State != trust.Met {
		t.Errorf("40 right pairs adopted: %+v, %v", risk(t, l), err)
	}
	a.Tried = 20
	if err := l.Adopt(a); err != nil || risk(t, l).State != trust.Collecting || risk(t, l).Epoch != 2 || risk(t, l).Needs == 0 {
		t.Errorf("for the best of 20 policies: %+v, %v", risk(t, l), err)
	}
	add(t, l, judged(.99, true, promise(.1)))
	if r := risk(t, l); r.Eligible != 41 || r.Epoch != 2 {
		t.Errorf("the next outcome does not go on with it: %+v", r)
	}
	for name, spoil := range map[string]func(a *trust.Adoption){
		"machine": func(a *trust.Adoption) { a.Machine = "" }, "tried": func(a *trust.Adoption) { a.Tried = 0 },
		"promise": func(a *trust.Adoption) { a.Promise.MaxError = 0 }, "state": func(a *trust.Adoption) { a.Promise.PerState = true },
	} {
		bad := a
		spoil(&bad)
		if err := l.Adopt(bad); !errors.Is(err, trust.ErrAdoption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAsked: a replay asks as many as it takes, those who are free at once, and
// stops where the votes decide.
func TestAsked(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("asked", 300, 8, 2)...)
	q, _ := crowd(trust.NewDraw("asked question"), 8, 2)
	for i := range q.Votes {
		q.Votes[i].Option = 0
	}
	costs := make([]exact.Money, 8)
	asked, stop := l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if len(asked) != 8 || stop != trust.StopDecided && stop != trust.StopAllAsked {
		t.Errorf("of 8 who are free %v are asked, then %s", asked, stop)
	}
	for i := range costs {
		costs[i] = 1e9
	}
	asked, stop = l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if len(asked) == 0 || len(asked) > 4 || stop != trust.StopDecided {
		t.Errorf("of 8 who agree %v are asked, then %s", asked, stop)
	}
	q.Votes[asked[0]].Human = true
	again, _ := l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if slices.Contains(again, asked[0]) {
		t.Errorf("a human is asked: %v", again)
	}
	if asked, stop := l.Asked(q, nil, trust.Asking{}); len(asked) != 7 || stop != trust.StopAllAsked {
		t.Errorf("without a tau %v are asked, then %s", asked, stop)
	}
	if asked, stop := trust.New().Asked(trust.Question{}, nil, trust.Asking{}); len(asked) != 0 || stop != trust.StopAllAsked {
		t.Errorf("of nobody %v are asked, then %s", asked, stop)
	}
}
