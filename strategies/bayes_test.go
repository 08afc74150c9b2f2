package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// TestHopelessIsSound: once no answer is said to help, none brings a winner.
func TestHopelessIsSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 5))
	hopeless := 0
	for range 10_000 {
		r, threshold := randomRound(rng, t, 4)
		var open []arbiter.Standing
		for range rng.IntN(4) {
			open = append(open, arbiter.Standing{Weight: weight(rng), Rank: int32(90 + len(open))})
		}
		if !(strategies.AlignmentMargin{}).Hopeless(r, open) {
			continue
		}
		hopeless++
		completions(r, open, func(full *arbiter.Round) {
			if e := decide(t, strategies.AlignmentMargin{}, full); e.Consensus() {
				t.Fatalf("seed %d: threshold %q, votes %s with %v open is hopeless, but %s is decided: %s", seed, threshold, show(r.Votes), open, show(full.Votes), result(full, e))
			}
		})
	}
	if hopeless < 300 {
		t.Errorf("seed %d: only %d rounds were hopeless", seed, hopeless)
	}
}

// taught returns a ledger of outcomes in desk's state open: s0 is always right, s1
// half the time, s2 never.
func taught(t *testing.T, n int, p *trust.Promise) *trust.Ledger {
	t.Helper()
	l := trust.New()
	for i := range n {
		truth, other := names[i%2], names[1-i%2]
		o := trust.Outcome{
			Machine: "desk", State: "open", Options: names, Truth: truth, Source: trust.Forced, Blind: true,
			P: 990_000_000, Pick: truth, N: int64(i), Promise: p, PolicyDigest: "p",
		}
		for j, says := range []string{truth, names[i/2%2], other} {
			o.Proposals = append(o.Proposals, trust.OutcomeProposal{SpecialistID: fmt.Sprint("s", j), Transition: says})
		}
		if err := l.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// evidence is that of a round in desk's state open.
func evidence(l *trust.Ledger, p trust.Policy, digest string) *arbiter.Evidence {
	return &arbiter.Evidence{Ledger: l, Question: trust.Question{Machine: "desk", State: "open", Options: names, Policy: p, PolicyDigest: digest}}
}

// TestBayes: what each code looks like in a decision and in words.
func TestBayes(t *testing.T) {
	promise := trust.Promise{MaxError: 100_000_000, Confidence: 900_000_000}
	threshold := exact.Billionths(500_000_000)
	strict := exact.Billionths(999_999_999)
	for _, c := range []struct {
		name   string
		round  *arbiter.Round
		e      *arbiter.Evidence
		winner int
		code   trust.Code
		says   string
		short  string
	}{
		{"nobody", round(t, ""), nil, -1, trust.NoProposals, "No proposals", "no proposals"},
		{"no outcomes", round(t, "", "a 0.9"), evidence(trust.New(), trust.Policy{}, ""), -1, trust.ColdStart, "Cold start: 0 of 20", "cold start"},
		{"few outcomes", round(t, "", "a 0.9"), evidence(taught(t, 19, nil), trust.Policy{Threshold: &threshold}, ""), -1, trust.ColdStart, "Cold start: 19 of 20", "cold start"},
		{"threshold", round(t, "", "a 0", "b 0.9", "b 0.9"), evidence(taught(t, 60, nil), trust.Policy{Threshold: &threshold}, ""), 0, trust.Decided, " of a >= threshold 0.5", ">= threshold 0.5"},
		{"below it", round(t, "", "a 0", "b 0.9"), evidence(taught(t, 60, nil), trust.Policy{Threshold: &strict}, ""), -1, trust.BelowThreshold, " of a below threshold 0.9999", "below threshold"},
		{"no promise yet", round(t, "", "a 0"), evidence(taught(t, 25, &promise), trust.Policy{Promise: &promise}, "p"), -1, trust.RiskNotEstablished, "errors below 0.1 are not established (collecting)", "risk not established"},
		{"promise", round(t, "", "a 0", "b 0", "b 0"), evidence(taught(t, 80, &promise), trust.Policy{Promise: &promise}, "p"), 0, trust.Decided, " of a >= tau 0.95 (errors at most 0.1 with confidence 0.9)", ">= tau 0.95"},
		{"other policy", round(t, "", "a 0"), evidence(taught(t, 80, &promise), trust.Policy{Promise: &promise}, "q"), -1, trust.RiskNotEstablished, "not established", "risk not established"},
	} {
		c.round.Evidence = c.e
		d := decide(t, strategies.Bayes{}, c.round)
		if d.Winner != c.winner || d.Code() != string(c.code) || d.Consensus() != (c.winner >= 0) || (d.Judgement == nil) != (c.e == nil) {
			t.Errorf("%s: winner %d, %s; want %d, %s: %s", c.name, d.Winner, d.Code(), c.winner, c.code, d.Reasoning())
		}
		if !strings.Contains(d.Reasoning(), c.says) || !strings.Contains(d.Short(), c.short) {
			t.Errorf("%s: it says %q, in short %q; want %q and %q", c.name, d.Reasoning(), d.Short(), c.says, c.short)
		}
	}
	r := round(t, "", "a 0")
	r.Evidence = evidence(taught(t, 80, nil), trust.Policy{Threshold: &threshold}, "")
	r.Evidence.Question.Irreversible = []bool{true, false, false}
	if d := decide(t, strategies.Bayes{}, r); d.Consensus() || d.Code() != string(trust.Irreversible) || !strings.Contains(d.Reasoning(), "cannot be undone") {
		t.Errorf("what cannot be undone: %s, %s", d.Code(), d.Reasoning())
	}
	if (strategies.Bayes{}).Settled(r, nil) {
		t.Error("bayes stops others from teaching")
	}
}

// TestBayesInEveryOrder: six proposals, in all orders, elect the same transition
// with the same words. Between equals the round's order decides, which the runner
// makes.
func TestBayesInEveryOrder(t *testing.T) {
	threshold := exact.Billionths(400_000_000)
	l := taught(t, 60, nil)
	r := round(t, "", "a 0", "b 0", "a 0", "c 0", "b 0", "b 0")
	r.Evidence = evidence(l, trust.Policy{Threshold: &threshold}, "")
	want, winner := "", ""
	permute(r.Votes, func() {
		d := decide(t, strategies.Bayes{}, r)
		who := "nobody"
		if d.Consensus() {
			who = r.Votes[d.Winner].Transition.Name
		}
		if want == "" {
			want, winner = d.Reasoning(), who
		}
		if d.Reasoning() != want || who != winner {
			t.Fatalf("%s elects %s: %s; want %s: %s", show(r.Votes), who, d.Reasoning(), winner, want)
		}
	})
	if winner == "nobody" {
		t.Errorf("nobody is elected: %s", want)
	}
}

// permute calls f with the votes in every order.
func permute(votes []arbiter.Vote, f func()) {
	if len(votes) <= 1 {
		f()
		return
	}
	var step func(k int)
	step = func(k int) {
		if k == len(votes) {
			f()
			return
		}
		for i := k; i < len(votes); i++ {
			votes[k], votes[i] = votes[i], votes[k]
			step(k + 1)
			votes[k], votes[i] = votes[i], votes[k]
		}
	}
	step(0)
}

// TestQuestion: versions, option orders and models reach the ledger.
func TestQuestion(t *testing.T) {
	r := round(t, "", "b 0")
	r.Votes[0].Version = "1"
	r.Votes[0].Detail = &specialist.Detail{Model: "m", OptionOrder: []string{"c", "a", "b"}}
	q := evidence(nil, trust.Policy{}, "p").Ask(r)
	v := q.Votes[0]
	if q.Machine != "desk" || q.State != "open" || len(q.Options) != 3 || v.Option != 1 || v.Model != "m" || v.Version != "1" || v.OptionOrder != trust.OrderKey([]string{"c", "a", "b"}) {
		t.Errorf("the question is %+v", q)
	}
}
