package trust_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/trust"
)

// open returns specialists "voter 00" and so on, as crowd makes them, from on.
func openVoters(from, n int, cost func(i int) exact.Money) []trust.Open {
	var list []trust.Open
	for i := from; i < n; i++ {
		list = append(list, trust.Open{SpecialistID: fmt.Sprintf("voter %02d", i), Version: "1", Model: fmt.Sprint("model ", i%4), OptionOrder: fmt.Sprint(i % 2), Cost: cost(i)})
	}
	return list
}

func equalCost(int) exact.Money { return 1_000_000_000 }

// TestWave: before a tau is established everyone is asked; then those who are free
// and as few others as could decide, the most telling for their cost first.
func TestWave(t *testing.T) {
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1", "option 2"}}
	cold := trust.New().Wave(q, openVoters(0, 5, equalCost), trust.Asking{})
	if want := (trust.Wave{Ask: []int{0, 1, 2, 3, 4}, Cost: 5e9, Information: make([]int64, 5)}); !reflect.DeepEqual(cold, want) {
		t.Errorf("without outcomes the wave is %+v", cold)
	}
	l := add(t, trust.New(), crowdOutcomes("wave", 300, 8, 3)...)
	wave := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 900_000_000})
	if len(wave.Ask) == 0 || len(wave.Ask) == 8 || wave.Stop != "" || wave.Cost != exact.Money(len(wave.Ask))*1e9 {
		t.Errorf("the first wave is %+v", wave)
	}
	for i := range wave.Ask[1:] {
		if wave.Information[wave.Ask[i]] < wave.Information[wave.Ask[i+1]] {
			t.Errorf("who tells less is asked first: %+v", wave)
		}
	}
	for _, i := range wave.Ask {
		if i < 4 { // the first half guess more often
			t.Errorf("voter %d is asked, of %v", i, wave.Information)
		}
	}
	free := l.Wave(q, openVoters(0, 8, func(i int) exact.Money { return exact.Money(i/2) * 1e9 }), trust.Asking{Tau: 950_000_000})
	if len(free.Ask) < 2 || free.Ask[0]+free.Ask[1] != 1 {
		t.Errorf("those who are free do not come first: %+v", free)
	}
	if w := l.Wave(q, nil, trust.Asking{Tau: 1}); w.Stop != trust.StopAllAsked {
		t.Errorf("with nobody left the wave is %+v", w)
	}
	again := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 900_000_000})
	if !reflect.DeepEqual(wave, again) {
		t.Errorf("asked again the wave is %+v, not %+v", again, wave)
	}
	explore := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 900_000_000, Explore: trust.NewDraw("explore")})
	if reflect.DeepEqual(explore.Information, wave.Information) {
		t.Error("exploring draws nothing")
	}
}

func TestWaveStops(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("stops", 300, 8, 2)...)
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1"}}
	for i := 4; i < 8; i++ {
		o := openVoters(i, i+1, equalCost)[0]
		q.Votes = append(q.Votes, trust.Vote{SpecialistID: o.SpecialistID, Version: "1", Model: o.Model, OptionOrder: o.OptionOrder, Option: 0})
	}
	if w := l.Wave(q, openVoters(0, 4, equalCost), trust.Asking{Tau: 800_000_000}); w.Stop != trust.StopDecided || len(w.Ask) != 0 {
		t.Errorf("four good voters agree, and the wave is %+v", w)
	}
	q.Votes[2].Option, q.Votes[3].Option = 1, 1
	if w := l.Wave(q, openVoters(0, 1, equalCost), trust.Asking{Tau: 999_000_000}); w.Stop != trust.StopCannotReach {
		t.Errorf("a weak one is left for a tie, and the wave is %+v", w)
	}
	if w := l.Wave(q, openVoters(0, 1, equalCost), trust.Asking{Tau: 999_000_000, Patient: true}); len(w.Ask) != 1 {
		t.Errorf("who is patient is given %+v", w)
	}
	dear := trust.Asking{Tau: 900_000_000, HumanCost: 500_000_000}
	q.Votes = nil
	if w := l.Wave(q, openVoters(0, 8, equalCost), dear); w.Stop != trust.StopTooDear || w.Cost != 0 {
		t.Errorf("all cost more than a human, and the wave is %+v", w)
	}
	mixed := openVoters(0, 8, func(i int) exact.Money { return exact.Money(min(i, 1)) * 1e9 })
	if w := l.Wave(q, mixed, dear); len(w.Ask) != 1 || w.Ask[0] != 0 || w.Cost != 0 {
		t.Errorf("one is free, and the wave is %+v", w)
	}
}

// TestCannotReach: where the wave says that no answers could decide, none does, of
// all the answers that those left can give.
func TestCannotReach(t *testing.T) {
	d, said := trust.NewDraw("reach"), 0
	for run := range 12 {
		l := add(t, trust.New(), crowdOutcomes(fmt.Sprint("reach", run), 120, 6, 2)...)
		for range 60 {
			q, _ := crowd(d, 6, 2)
			all := q.Votes
			q.Votes, q.Partial = all[1:4], true
			tau := exact.Billionths(900_000_000 + d.Float()*99_000_000)
			open := append(openVoters(0, 1, equalCost), openVoters(4, 5, equalCost)...)
			if l.Wave(q, open, trust.Asking{Tau: tau}).Stop != trust.StopCannotReach {
				continue
			}
			said++
			for answers := range 9 { // of each: yes, no, or none
				q.Votes = append([]trust.Vote{}, all[1:4]...)
				for i, a := range []int{answers % 3, answers / 3} {
					if v := all[4*i]; a < 2 {
						v.Option = a
						q.Votes = append(q.Votes, v)
					}
				}
				if j := l.Judge(q); j.P[j.Best] >= tau && len(q.Votes) > 3 {
					t.Errorf("run %d: answers %d reach %s of %s", run, answers, j.P[j.Best], tau)
				}
			}
		}
	}
	if said < 20 {
		t.Errorf("it said so only %d times", said)
	}
}

// TestSavings: on a panel of independent good voters asking one after the other
// saves; on copies, where nobody adds anything, it does not pretend to.
func TestSavings(t *testing.T) {
	list := crowdOutcomes("savings", 400, 8, 2)
	for i := range list {
		for j := range list[i].Proposals {
			list[i].Proposals[j].Cost = 1e9
		}
	}
	l := add(t, trust.New(), list...)
	s := l.Savings("desk", trust.Policy{}, 995_000_000)
	if s.Rounds != trust.ReplayRounds || !s.Worth() || s.CostSequential >= s.CostAll || s.CostAll != exact.Money(s.VotesAll)*1e9 {
		t.Errorf("good voters: %+v", s)
	}
	if s := l.Savings("desk", trust.Policy{}, 600_000_000); s.Worth() {
		t.Errorf("whoever speaks first decides, and accuracy is lost: %+v", s)
	}
	if s := l.Savings("desk", trust.Policy{}, exact.One); s.Worth() {
		t.Errorf("for certainty: %+v", s)
	}
	if s := l.Savings("nowhere", trust.Policy{}, 1); s.Worth() || s.Rounds != 0 {
		t.Errorf("nowhere: %+v", s)
	}
	for i := range list {
		list[i].Partial = true
	}
	if s := add(t, trust.New(), list...).Savings("desk", trust.Policy{}, 950_000_000); s.Rounds != 0 {
		t.Errorf("rounds in which not all were asked show %+v", s)
	}
}

// TestInformation: of two answers the more reliable tells more, a coin nothing.
func TestInformation(t *testing.T) {
	l := trust.New()
	for i := range 400 {
		coin := i / 2 % 2
		add(t, l, outcome(ask(yesNo, i%2, (i+i%10/9)%2, coin), i%2))
	}
	q := trust.Question{Machine: "desk", State: "open", Options: yesNo}
	w := l.Wave(q, []trust.Open{{SpecialistID: "a", Cost: 1}, {SpecialistID: "b", Cost: 1}, {SpecialistID: "c", Cost: 1}}, trust.Asking{Tau: 999_999_999, Patient: true})
	a, b, c := float64(w.Information[0])/1e9, float64(w.Information[1])/1e9, float64(w.Information[2])/1e9
	if !(a > b && b > c) || c > .001 || a < .5 || a > math.Ln2 {
		t.Errorf("they tell %v, %v and %v nats", a, b, c)
	}
}
