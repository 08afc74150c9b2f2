package runner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// whole is a ledger as bytes.
func whole(l *trust.Ledger) []byte {
	c := wire.NewWriter()
	l.Code(c)
	l.CodeUnruled(c)
	return c.Bytes()
}

// TestLearnFrom plays the same rounds under both policies. Where bayes learns from rounds, too,
// every round that waits and every one that the engine decides becomes a lesson of its own, a
// human's word takes its place, two more experts take part, and what is folded of the log is what
// decided, to the bit. What is known of humans alone is the same under both, and where
// nothing is said no round is recorded.
func TestLearnFrom(t *testing.T) {
	for _, top := range []string{``, `"learnFrom":"humans"`, `"learnFrom":"humansAndRounds"`} {
		t.Run(top, func(t *testing.T) {
			b := newBench(t)
			rng := rand.New(rand.NewPCG(seed, 1))
			truth := "again"
			for i := range 4 {
				b.cast.play(fmt.Sprint("p", i), b.voter(rng, &truth, .95))
			}
			s := b.start(b.machine(def{top: top, who: []string{fn("p0"), fn("p1"), fn("p2"), fn("p3"), human("human"), arb("bayes", threshold("0.9"))}}))
			wants := []string{} // rounds, in the order of the lessons; those with a human's word in capitals
			note := func(kind, round string) { wants = append(wants, kind+" "+round) }
			alone := 0
			for range 200 {
				truth = []string{"again", "park"}[rng.IntN(2)]
				round := b.now(s).Key().ID()
				switch tick := b.step(s); tick.Status {
				case runner.TickAdvanced:
					note("unruled", round)
					alone++
				case runner.TickHuman:
					note("unruled", round)
					note("ruled", round)
					b.force(s, truth)
				}
				if now := b.now(s); now.State.Name == "parked" {
					note("ruled", now.Key().ID())
					b.force(s, "back")
				}
			}
			learns := s.Machine().Definition().LearnsFromRounds()
			got, folded, humans := []string{}, trust.New(), trust.New()
			for _, x := range b.lessons() {
				b.ok(folded.Learn(x))
				switch {
				case x.Unruled != nil:
					if u := x.Unruled; u.Machine != "desk" || u.State != "open" || fmt.Sprint(u.Options) != "[finish again park]" || len(u.Proposals) != 4 || u.Proposals[0].SpecialistID != "p0" || u.Proposals[0].Version == "" {
						t.Fatalf("the round is %+v", u)
					}
					got = append(got, "unruled "+x.Unruled.Round)
				default:
					b.ok(humans.Learn(x))
					got = append(got, "ruled "+x.Outcome.Round)
				}
			}
			if !learns {
				wants = only(wants, "ruled")
			}
			if fmt.Sprint(got) != fmt.Sprint(wants) || alone < 50 {
				t.Errorf("%d rounds without a human; the lessons are\n%v, want\n%v", alone, got, wants)
			}
			if want := map[bool]int{false: 6, true: 8}[learns]; len(b.judgement(s).Experts) != want {
				t.Errorf("%d experts took part, want %d", len(b.judgement(s).Experts), want)
			}
			l, err := b.r.Ledger(b.ctx)
			b.ok(err)
			if !bytes.Equal(whole(l), whole(folded)) {
				t.Error("what is folded of the log is not what was learned")
			}
			var a, c = wire.NewWriter(), wire.NewWriter()
			folded.Code(a)
			humans.Code(c)
			if !bytes.Equal(a.Bytes(), c.Bytes()) {
				t.Error("rounds without a human's word have changed what is known of humans")
			}
			b.reproduce(s)
		})
	}
}

func only(list []string, kind string) (kept []string) {
	for _, w := range list {
		if len(w) > len(kind) && w[:len(kind)+1] == kind+" " {
			kept = append(kept, w)
		}
	}
	return kept
}

// judgement returns the newest one of several options in a session's log.
func (b *bench) judgement(s *session.Session) (newest trust.Judgement) {
	b.Helper()
	for _, r := range b.raw(s) {
		var v struct {
			Explanation trust.Judgement `json:"explanation"`
		}
		if r.Kind == session.KindJudged {
			if b.ok(json.Unmarshal(r.Data, &v)); len(v.Explanation.Options) > 1 {
				newest = v.Explanation
			}
		}
	}
	return newest
}

// TestLearnFromIsPolicy: to learn from rounds is another policy, of which nothing is established
// yet; to say that one learns from humans is not, and neither changes what the default was.
// What risks there are, and when it would help, is a notice of the promise.
func TestLearnFromIsPolicy(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.say("b", "again")
	run := func(top string, rounds int) report.PromiseStatus {
		b.Helper()
		s := b.start(b.machine(def{states: marked, top: top, who: []string{fn("a"), fn("b"), human("human"), arb("bayes")}}))
		for range rounds {
			b.stepTo(s, runner.TickHuman)
			b.force(s, "again")
		}
		r, err := report.RisksOf(b.ctx, b.r, "desk")
		b.ok(err)
		return r.Promises[0]
	}
	fresh := run(``, 0)
	if len(fresh.Notices) != 0 {
		t.Errorf("of a machine of which nothing is known is said %q", fresh.Notices)
	}
	humans := run(``, 12)
	if said := run(`"learnFrom":"humans"`, 0); said.PolicyDigest != humans.PolicyDigest || said.Epoch != 1 || said.Eligible != humans.Eligible || said.Eligible == 0 {
		t.Errorf("to say what is so makes %+v of %+v", said, humans)
	}
	if n := humans.Notices; len(n) != 1 || n[0] != `bayes learns from humans alone, and knows 12 of their decisions: where voters err independently and many rounds have no human's word, "learnFrom": "humansAndRounds" tells sooner who is good; where they err together or collude, they could teach themselves` {
		t.Errorf("of humans alone is said %q", n)
	}
	if rounds := run(`"learnFrom":"humansAndRounds"`, 1); rounds.PolicyDigest == humans.PolicyDigest || rounds.Epoch != 2 || rounds.Eligible != 1 ||
		len(rounds.Notices) != 1 || !strings.Contains(rounds.Notices[0], "could teach itself") {
		t.Errorf("to learn from rounds makes %+v", rounds)
	}
}

// TestRetractBesideRounds: a ruling is taken back with what it taught, though the round after
// it, which waits, was learned from meanwhile.
func TestRetractBesideRounds(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.say("b", "park")
	s := b.start(b.machine(def{top: `"learnFrom":"humansAndRounds"`, who: []string{fn("a"), fn("b"), human("human"), arb("bayes")}}))
	b.stepTo(s, runner.TickHuman)
	round := b.now(s).Key().ID()
	b.force(s, "again")
	b.stepTo(s, runner.TickHuman)
	b.ok(b.retract(s, round, "human"))
	l := b.lessons()
	if last := l[len(l)-1]; len(l) != 4 || l[2].Unruled == nil || last.Retracts == nil || last.Retracts.Round != round {
		t.Errorf("the lessons are %+v", l)
	}
	if e := b.explain(b.now(s), "1"); e.Ruling == nil || e.Ruling.Retracted == nil {
		t.Errorf("explained it is %+v", e)
	}
}
