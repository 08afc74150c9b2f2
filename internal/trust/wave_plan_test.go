package trust_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
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
	explore := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 900_000_000, Explore: "explore"})
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
	if w := l.Wave(q, openVoters(0, 8, equalCost), dear); w.Stop != trust.StopTooExpensive || w.Cost != 0 {
		t.Errorf("all cost more than a human, and the wave is %+v", w)
	}
	mixed := openVoters(0, 8, func(i int) exact.Money { return exact.Money(min(i, 1)) * 1e9 })
	if w := l.Wave(q, mixed, dear); len(w.Ask) != 1 || w.Ask[0] != 0 || w.Cost != 0 {
		t.Errorf("one is free, and the wave is %+v", w)
	}
}

// TestCannotReach: where the wave says that no answers could decide, none does, of
// all the answers that those left can give; also where rounds without a human's word make picks.
func TestCannotReach(t *testing.T) {
	d, said := trust.NewDraw("reach"), [2]int{}
	for run := range 24 {
		learning := run % 2 // from rounds
		l := add(t, trust.New(), crowdOutcomes(fmt.Sprint("reach", run), []int{120, 25}[learning], 6, 2)...)
		for i := range 200 * learning {
			q, _ := crowd(d, 6, 2)
			for j := range q.Votes[:3] { // they agree with each other
				q.Votes[j].Option = q.Votes[0].Option
			}
			if err := l.AddUnruled(unruledOf(t, fmt.Sprint(i), q)); err != nil {
				t.Fatal(err)
			}
		}
		for range 60 {
			q, _ := crowd(d, 6, 2)
			q.Policy.Rounds = learning == 1
			all := q.Votes
			q.Votes, q.Partial = all[1:4], true
			open := append(openVoters(0, 1, equalCost), openVoters(4, 5, equalCost)...)
			most := exact.Billionths(0) // of what answers reach
			for answers := range 8 {    // of each: yes, no, or none
				one := q
				one.Votes = append([]trust.Vote{}, all[1:4]...)
				for i, a := range []int{answers % 3, answers / 3} {
					if v := all[4*i]; a < 2 {
						v.Option = a
						one.Votes = append(one.Votes, v)
					}
				}
				j := l.Judge(one)
				most = max(most, j.P[j.Best])
			}
			for _, tau := range []exact.Billionths{most, exact.Billionths(900_000_000 + d.Float()*99_000_000)} {
				if l.Wave(q, open, trust.Asking{Tau: tau}).Stop != trust.StopCannotReach {
					continue
				}
				if said[learning]++; most >= tau {
					t.Errorf("run %d: answers reach %s of %s", run, most, tau)
				}
			}
		}
	}
	if min(said[0], said[1]) < 20 {
		t.Errorf("it said so only %d times, and %d with rounds", said[0], said[1])
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

// TestWaveMost caps a wave, but not that which asks everyone.
func TestWaveMost(t *testing.T) {
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1", "option 2"}}
	l := add(t, trust.New(), crowdOutcomes("most", 300, 8, 3)...)
	whole := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 950_000_000})
	if len(whole.Ask) < 2 || whole.Tau != 950_000_000 {
		t.Fatalf("the wave is %+v", whole)
	}
	capped := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Tau: 950_000_000, Most: 1})
	if !reflect.DeepEqual(capped.Ask, whole.Ask[:1]) || capped.Cost != 1e9 {
		t.Errorf("at most one is %+v, of %+v", capped, whole)
	}
	if all := l.Wave(q, openVoters(0, 8, equalCost), trust.Asking{Most: 2}); len(all.Ask) != 8 || all.Tau != 0 {
		t.Errorf("nothing is established, and the wave is %+v", all)
	}
}

// TestWaveWithoutChoice asks the cheapest until one has answered.
func TestWaveWithoutChoice(t *testing.T) {
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"only"}}
	falling := func(i int) exact.Money { return exact.Money(9-i) * 1e9 }
	if w := trust.New().Wave(q, openVoters(0, 4, falling), trust.Asking{}); !reflect.DeepEqual(w.Ask, []int{3}) || w.Cost != 6e9 {
		t.Errorf("the wave is %+v", w)
	}
	q.Votes = []trust.Vote{{SpecialistID: "voter 03"}}
	if w := trust.New().Wave(q, openVoters(0, 3, falling), trust.Asking{}); w.Stop != trust.StopDecided || w.Ask != nil {
		t.Errorf("one has answered, and the wave is %+v", w)
	}
}

// TestWaveGivesUp asks who is free before it gives a round up, and whoever explores
// goes on.
func TestWaveGivesUp(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("gives up", 300, 8, 2)...)
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1"}}
	hopeless := trust.Asking{Tau: exact.One}
	mixed := openVoters(0, 4, func(i int) exact.Money { return exact.Money(i%2) * 1e9 })
	if w := l.Wave(q, mixed, hopeless); w.Stop != "" || len(w.Ask) != 2 || w.Ask[0]%2+w.Ask[1]%2 != 0 || w.Cost != 0 {
		t.Errorf("two are free, and the wave is %+v", w)
	}
	paid := openVoters(0, 4, equalCost)
	if w := l.Wave(q, paid, hopeless); w.Stop != trust.StopCannotReach || w.Ask != nil {
		t.Errorf("nobody is free, and the wave is %+v", w)
	}
	hopeless.Explore = "some round"
	first := l.Wave(q, paid, hopeless)
	if first.Stop != "" || len(first.Ask) == 0 {
		t.Errorf("who explores is given %+v", first)
	}
	if again := l.Wave(q, paid[1:], hopeless); again.Information[0] != first.Information[1] {
		t.Errorf("a draw depends on who else is asked: %v, then %v", first.Information, again.Information)
	}
	q.Stop = trust.StopCannotReach
	if j := l.Judge(q); j.Code != trust.CannotReach || j.Stop != trust.StopCannotReach {
		t.Errorf("without a vote the judgement is %s", j.Code)
	}
}

// slowStop asks for the votes of q in the order of a wave of one each, the slow way.
func slowStop(l *trust.Ledger, q trust.Question, tau exact.Billionths) trust.Judgement {
	all := q.Votes
	var left []int
	q.Votes, q.Partial = nil, true
	for i, v := range all {
		if v.Human {
			q.Votes = append(q.Votes, v)
		} else {
			left = append(left, i)
		}
	}
	for len(left) > 0 {
		var open []trust.Open
		for _, i := range left {
			open = append(open, trust.Open{SpecialistID: all[i].SpecialistID, Version: all[i].Version, Model: all[i].Model, OptionOrder: all[i].OptionOrder, Cost: 1e9})
		}
		w := l.Wave(q, open, trust.Asking{Tau: tau, Most: 1})
		if q.Stop = w.Stop; w.Stop != "" {
			break
		}
		q.Votes = append(q.Votes, all[left[w.Ask[0]]])
		left = append(left[:w.Ask[0]:w.Ask[0]], left[w.Ask[0]+1:]...)
	}
	if len(left) == 0 {
		q.Partial, q.Stop = false, ""
	}
	return l.Judge(q)
}

// TestStopped compares with asking one by one, and checks what Stops makes of it:
// entries where the test of the promise would see something else, and no others.
func TestStopped(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("stopped", 200, 7, 2)...)
	d, entries, sooner := trust.NewDraw("stopped"), 0, 0
	promise := trust.Promise{MaxError: 100_000_000, Confidence: 900_000_000}
	for range 150 {
		q, _ := crowd(d, 7, 2)
		q.Policy.Promise = &promise
		costs := make([]exact.Money, len(q.Votes))
		for i := range costs {
			costs[i] = 1e9
		}
		j := l.Judge(q)
		stops := l.Stops(q, &j, costs, trust.Asking{Most: 1})
		for r := range 8 {
			tau := exact.One - exact.Billionths(r+1)*50_000_000
			want, got := slowStop(l, q, tau), l.Stopped(q, costs, trust.Asking{Tau: tau, Most: 1})
			if want.Pick != got.Pick || want.P[0] != got.P[0] || want.Stop != got.Stop || len(want.Votes) != len(got.Votes) {
				t.Fatalf("at %s asking stops at %+v, one by one at %+v", tau, got, want)
			}
			if len(got.Votes) < len(q.Votes) {
				sooner++
			}
			var entry *trust.StoppedAt
			for i := range stops {
				if stops[i].Tau == tau {
					entry = &stops[i]
				}
			}
			reached, would := j.P[j.Best] >= tau, got.P[got.Best] >= tau
			if differs := reached != would || reached && j.Pick != got.Pick; differs != (entry != nil) {
				t.Fatalf("at %s: %s of %s, stopped %s of %s, and the entry is %+v", tau, j.P[j.Best], j.Pick, got.P[got.Best], got.Pick, entry)
			}
		}
		entries += len(stops)
	}
	if entries < 20 || sooner < 400 {
		t.Errorf("%d entries, %d stops before the last vote", entries, sooner)
	}
}

// TestStopsDecideThePromise: a promise that full panels would keep is tested by
// what asking in waves comes to. Here that is wrong each time, so nothing is ever
// established; without the stops it is.
func TestStopsDecideThePromise(t *testing.T) {
	promise := trust.Promise{MaxError: 100_000_000, Confidence: 900_000_000}
	for _, stops := range []bool{false, true} {
		l := trust.New()
		for i := range 120 {
			o := trust.Outcome{Machine: "desk", State: "s", Options: []string{"a", "b"}, Truth: "a", Source: trust.Forced, Promise: &promise, P: 980_000_000, Pick: "a", N: int64(20 + i)}
			if stops {
				for r := range 8 {
					o.Stops = append(o.Stops, trust.StoppedAt{Tau: exact.One - exact.Billionths(r+1)*50_000_000, P: 980_000_000, Pick: "b"})
				}
			}
			add(t, l, o)
		}
		if tau := l.Tau(trust.Question{Machine: "desk", State: "s", Options: []string{"a", "b"}, Policy: trust.Policy{Promise: &promise}}); (tau > 0) == stops {
			t.Errorf("with stops %t tau is %s", stops, tau)
		}
	}
	bad := trust.Outcome{Machine: "desk", State: "s", Options: []string{"a", "b"}, Truth: "a", Source: trust.Forced, Promise: &promise}
	for _, list := range [][]trust.StoppedAt{{{Tau: 2 * exact.One}}, {{Tau: 5, P: -1}}, {{Tau: 5, Pick: "c"}}, {{Tau: 5}, {Tau: 5}}, {{}}} {
		bad.Stops = list
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", list)
		}
	}
}

// TestSavingsWeigh: rounds that a human saw by chance count for those that nobody
// saw, and rounds that were asked in waves for none.
func TestSavingsWeigh(t *testing.T) {
	l, all := trust.New(), trust.New()
	for i, o := range crowdOutcomes("weigh", 200, 6, 2) {
		o.Proposals[0].Human = false
		add(t, all, o)
		switch i % 4 {
		case 0:
			o.SamplingProb, o.Source = exact.One/4, trust.Audited
		case 1:
			o.Partial = true
		case 2:
			o.Unasked = true
		}
		add(t, l, o)
	}
	plain, s := all.Savings("desk", trust.Policy{}, 900_000_000), l.Savings("desk", trust.Policy{}, 900_000_000)
	if plain.Rounds != 200 || s.Rounds != 100 || s.VotesAll < 50*4*4 || s.VotesAll > 50*6*5 || s.VotesAll <= plain.VotesAll {
		t.Errorf("all %+v, weighed %+v", plain, s)
	}
	few := trust.Savings{Rounds: 20, AccuracyAll: exact.One, AccuracySequential: 950_000_000, VotesAll: 100, VotesSequential: 50}
	if !few.Worth() {
		t.Error("one round of twenty tells nothing")
	}
	if few.AccuracySequential = 900_000_000; few.Worth() {
		t.Error("two rounds of twenty are lost")
	}
}

// TestWaveOfLiars: who is known to answer the opposite of the truth is worth asking,
// and as few as of the honest: their answers are expected to be the opposite.
func TestWaveOfLiars(t *testing.T) {
	wave := func(liars bool) trust.Wave {
		l, d := trust.New(), trust.NewDraw("liars")
		for range 200 {
			q, truth := crowd(d, 6, 2)
			for i := range q.Votes {
				if q.Votes[i].Option = truth; liars != (d.Float() < .1) {
					q.Votes[i].Option = 1 - truth
				}
			}
			add(t, l, outcome(q, truth))
		}
		q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1"}}
		return l.Wave(q, openVoters(0, 6, equalCost), trust.Asking{Tau: 900_000_000})
	}
	honest, liars := wave(false), wave(true)
	if len(honest.Ask) == 6 || len(honest.Ask) < len(liars.Ask) {
		t.Errorf("of the honest %d are asked, of liars %d", len(honest.Ask), len(liars.Ask))
	}
}

// BenchmarkWaveOfManyOptions looks for the first wave among 8 specialists and 64
// options. It should take 10 milliseconds at most: no more than the cube of the options.
func BenchmarkWaveOfManyOptions(b *testing.B) {
	d, l := trust.NewDraw("many"), trust.New()
	for range 300 {
		if err := l.Add(outcome(crowd(d, 8, 64))); err != nil {
			b.Fatal(err)
		}
	}
	q, _ := crowd(d, 8, 64)
	q.Votes = nil
	open := openVoters(0, 8, equalCost)
	for b.Loop() {
		l.Wave(q, open, trust.Asking{Tau: 900_000_000})
	}
}
