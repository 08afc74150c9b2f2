package trust_test

import (
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/trust"
)

func TestWhatIf(t *testing.T) {
	l := trust.New()
	for i := range 100 {
		add(t, l, outcome(ask(yesNo, i%2, (i+i%10/9)%2, i/2%2), i%2)) // a is always right, b nearly, c a coin
	}
	q := ask(yesNo, 0, 0, 1)
	q.Policy.Threshold = new(exact.Billionths(900_000_000))
	was := l.Judge(q)
	if was.Code != trust.Decided || was.Pick != "yes" {
		t.Fatalf("the judgement is %+v", was)
	}
	before := append([]trust.Vote{}, q.Votes...)
	changes := l.WhatIf(q)
	if !reflect.DeepEqual(q.Votes, before) {
		t.Fatal("the votes were changed")
	}
	found := false
	for _, c := range changes {
		if c.SpecialistID == "c" {
			t.Errorf("the coin makes a difference: %+v", c)
		}
		found = found || c.SpecialistID == "a" && c.Transition == "no" && (c.Pick != "yes" || c.Code != trust.Decided)
	}
	if !found {
		t.Errorf("the best voter makes none: %+v", changes)
	}
	if list := l.WhatIf(trust.Question{}); len(list) != 0 {
		t.Errorf("nothing could have changed nothing: %+v", list)
	}
}
