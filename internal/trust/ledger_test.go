package trust_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

func add(t *testing.T, l *trust.Ledger, list ...trust.Outcome) *trust.Ledger {
	t.Helper()
	for _, o := range list {
		if err := l.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// crowdOutcomes draws outcomes of a crowd in three states, with humans among the
// voters, shadows, failures and replaced proposals.
func crowdOutcomes(seed string, n, voters, k int) []trust.Outcome {
	d := trust.NewDraw("crowd", seed)
	list := make([]trust.Outcome, n)
	for i := range list {
		list[i] = outcome(crowd(d, voters, k))
		o := &list[i]
		o.Seq = int64(i + 1)
		for j := range o.Proposals {
			p, u := &o.Proposals[j], d.Float()
			switch {
			case j == 0 && u < .3:
				p.Human, p.Model, p.Version = true, "", ""
			case u < .05:
				p.Shadow = true
			case u < .1:
				p.Failed = true
			case u < .12:
				p.Replaced = true
			}
		}
	}
	return list
}

func asText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestJudgementIsAFunction: rebuilt, from cloned ledgers, after the outcomes'
// proposals and the votes were shuffled, the bytes are the same.
func TestJudgementIsAFunction(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 3))
	list := crowdOutcomes("function", 150, 6, 3)
	l := add(t, trust.New(), list...)
	q, _ := crowd(trust.NewDraw("question"), 6, 3)
	q.Policy.Threshold = new(exact.Billionths(800_000_000))
	want := asText(t, l.Judge(q))
	other := trust.New()
	for _, o := range list {
		rng.Shuffle(len(o.Proposals), func(i, j int) { o.Proposals[i], o.Proposals[j] = o.Proposals[j], o.Proposals[i] })
		before := other
		other = other.Clone()
		add(t, other, o)
		if before.N("desk") == other.N("desk") {
			t.Fatal("adding to a clone changed the original")
		}
	}
	for range 50 {
		rng.Shuffle(len(q.Votes), func(i, j int) { q.Votes[i], q.Votes[j] = q.Votes[j], q.Votes[i] })
		for _, ledger := range []*trust.Ledger{l, other} {
			j := ledger.Judge(q)
			checkJudgement(t, j)
			if got := asText(t, j); got != want {
				t.Fatalf("seed %d: a judgement is\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

// TestSnapshotsStay: a clone taken at any time judges for ever as it did then.
func TestSnapshotsStay(t *testing.T) {
	q, _ := crowd(trust.NewDraw("question"), 5, 3)
	l := trust.New()
	var kept []*trust.Ledger
	var said []string
	for _, o := range crowdOutcomes("snapshots", 80, 5, 3) {
		kept, said = append(kept, l.Clone()), append(said, asText(t, l.Judge(q)))
		add(t, l, o)
	}
	for i := range kept {
		if got := asText(t, kept[i].Judge(q)); got != said[i] {
			t.Fatalf("the snapshot of %d outcomes now says\n%s\nnot\n%s", i, got, said[i])
		}
	}
}

// TestLeaveOneOut: the fits see each outcome as a ledger would that never saw it.
func TestLeaveOneOut(t *testing.T) {
	for i, k := range []int{2, 3, 5} {
		list := crowdOutcomes(fmt.Sprint("left out", i), 40, 5, k)
		for j := range list {
			if j%5 == 0 {
				list[j].Machine = "elsewhere"
			}
		}
		var here []trust.Outcome // those elsewhere first, so that places agree
		for _, o := range list {
			if o.Machine == "desk" {
				here = append(here, o)
			}
		}
		if err := trust.LeftOut("desk", here); err != nil {
			t.Errorf("of %d options: %v", k, err)
		}
	}
}

// TestTrustByHand follows one specialist through the three levels.
func TestTrustByHand(t *testing.T) {
	l := trust.New()
	say := func(machine, state string, right, wrong int) {
		for i := range right + wrong {
			o := outcome(ask(yesNo, 0), 0)
			o.Machine, o.State = machine, state
			if i >= right {
				o.Truth = "no"
			}
			add(t, l, o)
		}
	}
	say("other", "open", 3, 1)
	say("desk", "closed", 1, 3)
	say("desk", "open", 5, 1)
	j := l.Judge(ask(yesNo, 0))
	u := 5 * 10 / (10 + 4.) // what ten answers of one worker weigh
	mu := (.6*u + 20*.7) / (u + 20)
	global := (3 + 4*mu) / (4 + 4)
	machine := (1 + 4*global) / (4 + 4)
	want := (5 + 4*machine) / (6 + 4)
	v := j.Votes[0]
	if !near(v.Trust.Float(), want, 1e-7) || !near(v.Weight.Float(), math.Log(want/(1-want)), 1e-6) {
		t.Errorf("trust is %s with weight %d, want %v", v.Trust, v.Weight, want)
	}
	levels := []trust.LevelCount{{Level: trust.LevelState, K: 5e9, N: 6e9}, {Level: trust.LevelMachine, K: 1e9, N: 4e9}, {Level: trust.LevelGlobal, K: 3e9, N: 4e9}}
	if v.Level != trust.LevelState || v.K != 5 || v.N != 6 || !reflect.DeepEqual(v.Pooled, levels) {
		t.Errorf("it comes from %s, %d of %d, of %v", v.Level, v.K, v.N, v.Pooled)
	}
	if p := []exact.Billionths{j.Prior[0], j.Prior[1]}; p[0] != 750_000_000 || p[1] != 250_000_000 {
		t.Errorf("the prior after 5 and 1 is %s", p)
	}
	if v := l.Judge(trust.Question{Machine: "new", State: "s", Options: yesNo, Votes: []trust.Vote{{SpecialistID: "stranger"}}}).Votes[0]; v.Level != trust.LevelPrior || v.Weight <= 0 {
		t.Errorf("a stranger's vote is %+v", v)
	}
}

// TestOneCountFlipsADecision: computed weights reach the tally.
func TestOneCountFlipsADecision(t *testing.T) {
	ledger := func(last int) *trust.Ledger {
		l := trust.New()
		for i := range 41 {
			o := outcome(ask(yesNo, i%2, 1-i%2), i/2%2) // each is right half the time
			if i == 40 {
				o = outcome(ask(yesNo, 0, 1), last)
			}
			add(t, l, o)
		}
		return l
	}
	q := ask(yesNo, 0, 1)
	q.Policy = trust.Policy{Experts: trust.ExpertL4}
	a, b := ledger(0).Judge(q), ledger(1).Judge(q)
	if a.Pick != "yes" || b.Pick != "no" {
		t.Errorf("after one more count for each they pick %q and %q", a.Pick, b.Pick)
	}
}

// TestAgreementNeverHurts: adding the weakest agreeing voter whose vote counts for
// its option never lowers that option's score.
func TestAgreementNeverHurts(t *testing.T) {
	d := trust.NewDraw("agreement")
	added := 0
	for run := range 30 {
		l := add(t, trust.New(), crowdOutcomes(fmt.Sprint("agreement", run), 60, 10, 3)...)
		for range 40 {
			q, _ := crowd(d, 10, 3)
			option, votes, weakest := q.Votes[0].Option, q.Votes, -1
			least := exact.Billionths(math.MaxInt64)
			for i, v := range l.Judge(q).Votes { // both are by id
				if w := v.Weight; votes[i].Option == option && w > 0 && w < least {
					least, weakest = w, i
				}
			}
			if weakest < 0 {
				continue
			}
			full := l.Scores(q)[option]
			q.Votes = append(append([]trust.Vote{}, votes[:weakest]...), votes[weakest+1:]...)
			added++
			if fewer := l.Scores(q)[option]; full < fewer-1e-12 {
				t.Fatalf("with the weakest voter option %d scores %v, without it %v", option, full, fewer)
			}
		}
	}
	if added < 500 {
		t.Errorf("only %d cases", added)
	}
}

// TestNewVersionInherits: a fifth of the counts, but no more than 20 comparisons;
// the evidence for promotion starts from nothing.
func TestNewVersionInherits(t *testing.T) {
	for _, c := range []struct {
		n    int
		want exact.Billionths
	}{{10, 2e9}, {100, 20e9}, {500, 20e9}} {
		l := trust.New()
		for range c.n {
			add(t, l, outcome(ask(yesNo, 0), 0))
		}
		q := ask(yesNo, 0)
		q.Votes[0].Version = "2"
		foretold := l.Judge(q).Votes[0]
		o := outcome(q, 1)
		add(t, l, o) // now the ledger knows it, with one miss of its own
		known := l.Judge(q).Votes[0]
		if got := foretold.Pooled; len(got) != 1 || got[0].K != c.want || got[0].N != c.want {
			t.Errorf("after %d outcomes a new version starts with %v, want %s", c.n, got, c.want)
		}
		if got := known.Pooled; len(got) != 1 || got[0].K != c.want || got[0].N != c.want+exact.One {
			t.Errorf("after %d outcomes and a miss it has %v", c.n, got)
		}
		for _, e := range l.Candidates("desk", "open", target) {
			if e.Version == "2" && (e.N != 1 || e.K != 0) {
				t.Errorf("its evidence is %d of %d", e.K, e.N)
			}
		}
	}
}

// TestWhatTeachesNothing: failures, replaced and human proposals, and rounds with
// one option, change no trust; shadows are scored without a vote.
func TestWhatTeachesNothing(t *testing.T) {
	l := trust.New()
	o := outcome(ask(yesNo, 0, 0, 0, 0), 0)
	o.Proposals[0].Failed, o.Proposals[1].Replaced, o.Proposals[2].Human, o.Proposals[3].Shadow = true, true, true, true
	for range 9 {
		add(t, l, o)
	}
	only := outcome(ask([]string{"on"}, 0), 0)
	add(t, l, only)
	if n := l.N("desk"); n != 9 {
		t.Errorf("there are %d outcomes, want 9", n)
	}
	j := l.Judge(ask(yesNo, 0, 0, 0, 1))
	for i, want := range []int64{0, 0, 0, 9} {
		if v := j.Votes[i]; v.N != want {
			t.Errorf("%q has %d comparisons, want %d", v.SpecialistID, v.N, want)
		}
	}
	if j := l.Judge(ask([]string{"on"}, 0)); j.Code != trust.Decided || j.Pick != "on" || j.P[0] != exact.One {
		t.Errorf("a round with one option is %+v", j)
	}
	if j := l.Judge(ask([]string{"on"})); j.Code != trust.NoProposals || j.Winner != -1 {
		t.Errorf("without a proposal it is %+v", j)
	}
}

// TestDegeneratePanels: one voter, all equal, all wrong, unanimous for ever.
func TestDegeneratePanels(t *testing.T) {
	for name, c := range map[string]struct {
		votes []int
		truth func(i int) int
	}{
		"one voter":         {[]int{0}, func(i int) int { return i % 2 }},
		"all right":         {[]int{0, 0, 0}, func(int) int { return 0 }},
		"all wrong":         {[]int{0, 0, 0}, func(int) int { return 1 }},
		"nobody":            {nil, func(i int) int { return i % 2 }},
		"unanimous for one": {[]int{1, 1, 1, 1}, func(i int) int { return i % 2 }},
	} {
		l := trust.New()
		for i := range 300 {
			checkJudgement(t, l.Judge(ask(yesNo, c.votes...)))
			add(t, l, outcome(ask(yesNo, c.votes...), c.truth(i)))
		}
		j := l.Judge(ask(yesNo, c.votes...))
		checkJudgement(t, j)
		if name == "all wrong" && j.Pick != "no" || name == "all right" && j.Pick != "yes" {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if j := trust.New().Judge(trust.Question{}); j.Code != trust.NoProposals || len(j.P) != 0 {
		t.Errorf("a question without anything is %+v", j)
	}
	j := trust.New().Judge(trust.Question{Options: yesNo, Votes: []trust.Vote{{Option: 7}, {Option: -1}}, Removed: []bool{true, true, true}})
	if j.Code != trust.NoProposals {
		t.Errorf("votes for nothing give %+v", j)
	}
}

func TestRemovedOptions(t *testing.T) {
	q := ask([]string{"a", "b", "c"}, 0, 0, 1)
	before := trust.New().Judge(q)
	q.Removed = []bool{true}
	after := trust.New().Judge(q)
	checkJudgement(t, after)
	if before.Pick != "a" || after.Pick != "b" || after.P[0] != 0 || after.Winner != 2 || after.P[1] <= before.P[1] {
		t.Errorf("without the leader, %+v", after)
	}
}

func TestStackingIsSolved(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("stacking", 120, 8, 3)...)
	if g := l.Gradient("desk"); g > 1e-6 {
		t.Errorf("the gradient at the fit is %g", g)
	}
}

// TestRegret: with fixed experts and sequential losses the mixture never
// loses more than ln 2 against unweighted votes alone.
func TestRegret(t *testing.T) {
	for run := range 20 {
		list := crowdOutcomes(fmt.Sprint("regret", run), 60, 6, 3)
		l, sum := trust.New(), [2]float64{}
		weights := [2]float64{.5, .5} // of V and L4
		var mixed float64
		for i := range list {
			o := &list[i]
			q := trust.Question{Machine: o.Machine, State: o.State, Options: o.Options}
			for _, p := range o.Proposals {
				if p.Live() && !p.Human {
					q.Votes = append(q.Votes, trust.Vote{SpecialistID: p.SpecialistID, Version: p.Version, Model: p.Model, Option: int(p.Transition[len(p.Transition)-1] - '0')})
				}
			}
			y := int(o.Truth[len(o.Truth)-1] - '0')
			p := [2]float64{}
			for e, set := range []trust.Experts{trust.ExpertV, trust.ExpertL4} {
				q.Policy.Experts = set
				p[e] = max(1e-9, l.Judge(q).P[y].Float())
				sum[e] -= math.Log(p[e])
			}
			mix := weights[0]*p[0] + weights[1]*p[1]
			mixed -= math.Log(mix)
			weights = [2]float64{weights[0] * p[0] / mix, weights[1] * p[1] / mix}
			add(t, l, *o)
		}
		if mixed > sum[0]+math.Ln2+1e-9 {
			t.Errorf("run %d: the mixture loses %v, votes alone %v", run, mixed, sum[0])
		}
	}
}

// TestCaution: an expert is weighed by its loss and half a standard error of what it
// differs from the loss of V.
func TestCaution(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("caution", trust.StackingFrom, 6, 3)...)
	plain, charged := l.Losses("desk")
	for e := range charged {
		if plain[e] == nil {
			continue // it learns from rounds without a human's word, of which there are none
		}
		loss, sum, square := 0., 0., 0.
		for j := range plain[e] {
			d := plain[e][j] - plain[0][j]
			loss, sum, square = loss+plain[e][j], sum+d, square+d*d
		}
		want := loss + .5*math.Sqrt(square-sum*sum/float64(len(plain[e])))
		if math.Abs(charged[e]-want) > 1e-9 || e > 0 && want < loss+.01 {
			t.Errorf("expert %d is charged %v, want %v of %v", e, charged[e], want, loss)
		}
	}
}
