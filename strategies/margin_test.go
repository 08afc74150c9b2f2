package strategies_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

const seed = 20260601

var names = []string{"a", "b", "c"}

var desk = func() *machine.Machine {
	m, err := machine.Parse("desk.json", []byte(`{ "machineName": "desk", "initialState": "open", "goalState": "done",
		"states": { "open": { "transitions": { "a": "done", "b": "done", "c": "open" } }, "done": {} } }`), machine.Checks{})
	if err != nil {
		panic(err)
	}
	return m
}()

// vote makes a vote; its specialist is named by its rank.
func vote(name string, weight exact.Billionths, rank int32) arbiter.Vote {
	return arbiter.Vote{Weight: weight, Rank: rank, Proposal: &specialist.Proposal{
		SpecialistID: fmt.Sprint("s", rank), Transition: desk.Initial().Transition(name), Arrival: rank + 1}}
}

// round makes a round of votes "transition weight"; "human a" is one of weight 1.
func round(t testing.TB, threshold string, votes ...string) *arbiter.Round {
	t.Helper()
	r := &arbiter.Round{Machine: desk, State: desk.Initial()}
	for i, text := range votes {
		name, weight, _ := strings.Cut(text, " ")
		if name == "human" {
			r.Votes = append(r.Votes, vote(weight, exact.One, int32(i)))
			r.Votes[i].IsHuman = true
			continue
		}
		var w exact.Billionths
		if err := w.UnmarshalJSON([]byte(weight)); err != nil {
			t.Fatal(err)
		}
		r.Votes = append(r.Votes, vote(name, w, int32(i)))
	}
	if threshold != "" {
		r.Threshold = new(machine.Threshold)
		if err := r.Threshold.UnmarshalJSON([]byte(threshold)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func decide(t testing.TB, a arbiter.Arbiter, r *arbiter.Round) arbiter.Decision {
	t.Helper()
	d, err := a.Decide(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(r); err != nil {
		t.Fatal(err)
	}
	return d
}

// result is a decision in short: the winner's id, or "-", and the reasoning.
func result(r *arbiter.Round, d arbiter.Decision) string {
	if !d.Consensus() {
		return "- " + d.Reasoning()
	}
	return r.Votes[d.Winner].SpecialistID + " " + d.Reasoning()
}

func TestAlignmentMargin(t *testing.T) {
	const (
		cold   = "- Cold start: no alignment data available, human input required"
		lone   = "s0 Single proposal with no competing proposals"
		margin = "Alignment-weighted margin "
	)
	for _, c := range []struct {
		threshold string
		votes     []string
		want      string
	}{
		{"0.5", nil, "- No proposals"},
		{"0.5", []string{"a 0"}, lone}, {"", []string{"a 0.3"}, lone}, {"1", []string{"a 0"}, lone}, {"0", []string{"a 1"}, lone},
		{"1.5", []string{"a 0.3"}, "- " + margin + "1.00 below threshold 1.5"},
		{"1.5", []string{"a 0"}, cold},
		{"0.5", []string{"a 0", "a 0"}, cold}, {"0", []string{"a 0", "b 0"}, cold},
		{"0.5", []string{"a 0.8", "a 0.7", "b 0.5"}, "s0 " + margin + "0.50 >= threshold 0.5 (leader: a)"}, // exactly half
		{"0.500000001", []string{"a 0.8", "a 0.7", "b 0.5"}, "- " + margin + "0.50 below threshold 0.500000001"},
		{"", []string{"a 0.4", "a 0.9", "b 0"}, "s1 " + margin + "1.00 >= threshold 1 (leader: a)"}, // zero weight does not dissent
		{"", []string{"a 0.9", "a 0.9", "b 0.000000001"}, "- " + margin + "1.00 below threshold 1"},
		{"0", []string{"b 0.5", "a 0.5"}, "s0 " + margin + "0.00 >= threshold 0 (leader: b)"}, // a tie goes to the first of the round
		{"1e-7", []string{"a 0.5", "b 0.5"}, "- " + margin + "0.00 below threshold 1e-7"},
		{"0.5", []string{"human a", "b 0.206543291"}, "s0 " + margin + "0.66 >= threshold 0.5 (leader: a)"}, // a person is not outweighed
		{"0.9", []string{"a 0.489", "b 0.04"}, "- " + margin + "0.85 below threshold 0.9"},
		{"0.125", []string{"a 0.5625", "b 0.4375"}, "s0 " + margin + "0.13 >= threshold 0.125 (leader: a)"}, // half away from zero
		{"0.3", []string{"a 0.53", "b 0.21", "c 0.21"}, "s0 " + margin + "0.34 >= threshold 0.3 (leader: a)"},
	} {
		r := round(t, c.threshold, c.votes...)
		if got := result(r, decide(t, strategies.AlignmentMargin{}, r)); got != c.want {
			t.Errorf("threshold %s, %q: %s, want %s", c.threshold, c.votes, got, c.want)
		}
	}
}

// TestRequireTrust: a lone machine below the bar is not enough where trust is
// required; a person, or one competitor, is another matter.
func TestRequireTrust(t *testing.T) {
	for _, c := range []struct {
		votes []string
		want  string
	}{
		{[]string{"a 0.799999999"}, "- Single proposal from s0 is not trusted (alignment 0.80), human input required"},
		{[]string{"a 0"}, "- Single proposal from s0 is not trusted (alignment 0.00), human input required"},
		{[]string{"a 0.8"}, "s0 Single proposal with no competing proposals"},
		{[]string{"human a"}, "s0 Single proposal with no competing proposals"},
		{[]string{"a 0.5", "a 0.5"}, "s0 Alignment-weighted margin 1.00 >= threshold 1 (leader: a)"},
	} {
		r := round(t, "", c.votes...)
		r.RequireTrust = true
		if got := result(r, decide(t, strategies.AlignmentMargin{}, r)); got != c.want {
			t.Errorf("%q: %s, want %s", c.votes, got, c.want)
		}
	}
}

// TestAThousandFullVotes: the sums pass what fits into int64 times a billion.
func TestAThousandFullVotes(t *testing.T) {
	r := round(t, "0.5")
	for i := range int32(1000) {
		r.Votes = append(r.Votes, vote(names[min(i/751, 1)], exact.One, i))
	}
	if got, want := result(r, decide(t, strategies.AlignmentMargin{}, r)), "s0 Alignment-weighted margin 0.50 >= threshold 0.5 (leader: a)"; got != want {
		t.Errorf("751 against 249: %s, want %s", got, want)
	}
}

// slowMargin decides with fractions, from the rule's definition.
func slowMargin(r *arbiter.Round, thresholdText string) string {
	one := big.NewRat(1e9, 1)
	t := one
	if r.Threshold != nil {
		t = new(big.Rat).SetInt64(int64(r.Threshold.Weight))
	} else {
		thresholdText = "1"
	}
	if len(r.Votes) == 0 {
		return "- No proposals"
	}
	if len(r.Votes) == 1 && t.Cmp(one) <= 0 {
		v := r.Votes[0]
		if r.RequireTrust && !v.IsHuman && v.Weight < 8e8 {
			return fmt.Sprintf("- Single proposal from %s is not trusted (alignment %s), human input required", v.SpecialistID, v.Weight.Text2())
		}
		return v.SpecialistID + " Single proposal with no competing proposals"
	}
	total, sums := new(big.Rat), map[string]*big.Rat{}
	var order []string
	for _, v := range r.Votes {
		name := v.Transition.Name
		if sums[name] == nil {
			sums[name], order = new(big.Rat), append(order, name)
		}
		w := new(big.Rat).SetInt64(int64(v.Weight))
		sums[name].Add(sums[name], w)
		total.Add(total, w)
	}
	if total.Sign() == 0 {
		return "- Cold start: no alignment data available, human input required"
	}
	slices.SortStableFunc(order, func(x, y string) int { return sums[y].Cmp(sums[x]) })
	lead := new(big.Rat).Set(sums[order[0]])
	if len(order) > 1 {
		lead.Sub(lead, sums[order[1]])
	}
	share := lead.Mul(lead.Quo(lead, total), one)
	share.Add(share, big.NewRat(1, 2))
	billionths := new(big.Int).Quo(share.Num(), share.Denom())
	cents := new(big.Int).Quo(new(big.Int).Add(billionths, big.NewInt(5e6)), big.NewInt(1e7)).Int64()
	text := fmt.Sprintf("Alignment-weighted margin %d.%02d", cents/100, cents%100)
	if new(big.Rat).SetInt(billionths).Cmp(t) < 0 {
		return "- " + text + " below threshold " + thresholdText
	}
	var best *arbiter.Vote
	for i := range r.Votes {
		if v := &r.Votes[i]; v.Transition.Name == order[0] && (best == nil || v.Weight > best.Weight) {
			best = v
		}
	}
	return fmt.Sprintf("%s %s >= threshold %s (leader: %s)", best.SpecialistID, text, thresholdText, order[0])
}

var thresholds = []string{"", "0", "1e-9", "1e-7", "0.000001", "0.2", "0.25", "0.3333333333333333", "0.5", "0.75", "0.9", "1", "1.5"}

// weight returns a weight at which ties and exact margins are frequent, or any.
func weight(rng *rand.Rand) exact.Billionths {
	if rng.IntN(3) == 0 {
		return exact.Billionths(rng.Int64N(1e9 + 1))
	}
	return []exact.Billionths{0, 0, 1, 250_000_000, 500_000_000, 750_000_000, exact.One}[rng.IntN(7)]
}

func randomRound(rng *rand.Rand, t testing.TB, most int) (*arbiter.Round, string) {
	threshold := thresholds[rng.IntN(len(thresholds))]
	r := round(t, threshold)
	r.RequireTrust = rng.IntN(4) == 0
	for i := range rng.IntN(most + 1) {
		v := vote(names[rng.IntN(3)], weight(rng), int32(i))
		if rng.IntN(6) == 0 {
			v.IsHuman, v.Weight = true, exact.One
		}
		r.Votes = append(r.Votes, v)
	}
	return r, threshold
}

func TestAlignmentMarginAgainstFractions(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 30_000 {
		r, threshold := randomRound(rng, t, 6)
		d := decide(t, strategies.AlignmentMargin{}, r)
		if got, want := result(r, d), slowMargin(r, threshold); got != want {
			t.Fatalf("seed %d: threshold %q, trust required %t, votes %s: %s, want %s", seed, threshold, r.RequireTrust, show(r.Votes), got, want)
		}
	}
}

func show(votes []arbiter.Vote) string {
	var b strings.Builder
	for _, v := range votes {
		fmt.Fprintf(&b, "%s:%s:%s:%t ", v.SpecialistID, v.Transition.Name, v.Weight, v.IsHuman)
	}
	return b.String()
}

// TestReasoningPlaysNoPart: what is said, when, and what it cost does not sway
// the decision.
func TestReasoningPlaysNoPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		r, _ := randomRound(rng, t, 5)
		want := decide(t, strategies.AlignmentMargin{}, r)
		for i := range r.Votes {
			p := r.Votes[i].Proposal
			p.Reasoning, p.CreatedAt, p.Arrival = fmt.Sprint(rng.Int()), specialist.Time(rng.IntN(99)), int32(rng.IntN(99))
			p.Usage = specialist.Usage{}.WithCost(exact.Money(rng.IntN(99)))
		}
		if got := decide(t, strategies.AlignmentMargin{}, r); got != want {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
	}
}

// TestFirstProposalAgainstSorting: the earliest wins, then the first to arrive.
func TestFirstProposalAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 20_000 {
		r, _ := randomRound(rng, t, 6)
		arrivals := rng.Perm(len(r.Votes))
		want := "- No proposals received"
		best := [2]int64{1 << 40, 0}
		for i := range r.Votes {
			p := r.Votes[i].Proposal
			p.CreatedAt, p.Arrival = specialist.Time(rng.IntN(3)), int32(arrivals[i]+1)
			if at := [2]int64{int64(p.CreatedAt), int64(p.Arrival)}; slices.Compare(at[:], best[:]) < 0 {
				best, want = at, p.SpecialistID+" First proposal received wins (from "+p.SpecialistID+")"
			}
		}
		if got := result(r, decide(t, strategies.FirstProposal{}, r)); got != want {
			t.Fatalf("seed %d: %s: %s, want %s", seed, show(r.Votes), got, want)
		}
		if settled := (strategies.FirstProposal{}).Settled(r, nil); settled != (len(r.Votes) > 0) {
			t.Fatalf("seed %d: %d votes are settled: %t", seed, len(r.Votes), settled)
		}
	}
}

// completions calls f with every round that can become of r: each of the open
// stays silent or proposes any transition, and votes are in order of rank.
func completions(r *arbiter.Round, open []arbiter.Standing, f func(*arbiter.Round)) {
	if len(open) == 0 {
		full := *r
		full.Votes = slices.Clone(r.Votes)
		slices.SortFunc(full.Votes, func(x, y arbiter.Vote) int { return int(x.Rank - y.Rank) })
		f(&full)
		return
	}
	completions(r, open[1:], f)
	for _, name := range names {
		more := *r
		more.Votes = append(slices.Clone(r.Votes), vote(name, open[0].Weight, open[0].Rank))
		completions(&more, open[1:], f)
	}
}

// TestSettledIsSound: once a round counts as decided, no answer that is still
// out, nor its absence, brings another winner. It must also be of use: an early
// stop has to happen, and often when it is safe.
func TestSettledIsSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 4))
	settled, safe := 0, 0
	for range 10_000 {
		r, threshold := randomRound(rng, t, 4)
		var open []arbiter.Standing
		ranks := rng.Perm(8)
		for i := range r.Votes { // those who have answered may have any place
			r.Votes[i].Rank = int32(ranks[i])
			r.Votes[i].Proposal.SpecialistID = fmt.Sprint("s", ranks[i])
		}
		slices.SortFunc(r.Votes, func(x, y arbiter.Vote) int { return int(x.Rank - y.Rank) })
		for i := range rng.IntN(4) {
			open = append(open, arbiter.Standing{Weight: weight(rng), Rank: int32(ranks[len(r.Votes)+i])})
		}
		d := decide(t, strategies.AlignmentMargin{}, r)
		stops := (strategies.AlignmentMargin{}).Settled(r, open)
		if stops && !d.Consensus() {
			t.Fatalf("seed %d: %s is settled without a winner", seed, show(r.Votes))
		}
		if !d.Consensus() {
			continue
		}
		winner, changed := r.Votes[d.Winner].SpecialistID, ""
		completions(r, open, func(full *arbiter.Round) {
			e := decide(t, strategies.AlignmentMargin{}, full)
			if !e.Consensus() || full.Votes[e.Winner].SpecialistID != winner {
				changed = show(full.Votes) + "is decided: " + result(full, e)
			}
		})
		if changed == "" {
			safe++
		}
		if !stops {
			continue
		}
		settled++
		if changed != "" {
			t.Fatalf("seed %d: threshold %q, votes %s with %v open counts as settled for %s, but %s", seed, threshold, show(r.Votes), open, winner, changed)
		}
	}
	if settled < 500 || settled < safe/4 {
		t.Errorf("seed %d: stopped early %d times of %d in which it was safe", seed, settled, safe)
	}
	t.Logf("stopped early %d times of %d in which it was safe", settled, safe)
}
