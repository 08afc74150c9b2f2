package runner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// TestSecondHumanSeen has three humans rule and look at withheld proposals at random,
// until two agree: what they agreed about is blind only if each of the authors had ruled
// before they looked, and before anybody did who was not named.
func TestSecondHumanSeen(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "finish"})
	m := b.machine(def{states: `"open":{"collapse":{},"transitions":{"finish":"done","again":"open","park":"done"}},"done":{}`,
		who: []string{fn("a"), fn("b"), human("ann"), human("bob"), human("cid"), arb("bayes")}, top: `"risk":{"maxError":0.05},` + secondBefore})
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	came := map[bool]int{}
	for range 200 {
		s := b.start(m)
		b.stepTo(s, runner.TickHuman)
		var acts []string
		seen, blind, contested := map[string]bool{}, map[string]bool{}, false
		for range 20 {
			who := one("ann", "bob", "cid")
			if r.IntN(4) == 0 {
				who = one(who, who, who, "")
				_, _, err := b.r.Reveal(b.ctx, s.ID, machine.SpecialistID(who), nil)
				b.ok(err)
				seen[who], acts = true, append(acts, who+" looks")
				continue
			}
			a, err := b.word(s, who, one("finish", "again", "park"))
			if errors.Is(err, runner.ErrForbidden) { // the ruling stands
				continue
			}
			b.ok(err)
			acts = append(acts, fmt.Sprint(who, " rules ", a.TransitionName))
			blind[who] = !seen[who] && !seen[""] && !contested
			contested = contested || b.now(s).Outcome().Code == session.CodeContested
			if !a.Executed {
				continue
			}
			want := true
			for _, id := range b.now(s).Last().Authors {
				want = want && blind[id]
			}
			if o := lastOutcome(b); o.Blind != want {
				t.Fatalf("seed %d: after %q the outcome is blind: %t", seed, acts, o.Blind)
			}
			came[want]++
			break
		}
	}
	if came[true] < 20 || came[false] < 20 {
		t.Errorf("seed %d: blind were %v", seed, came)
	}
}

// lastOutcome returns what the newest ruling taught.
func lastOutcome(b *bench) *trust.Outcome {
	b.Helper()
	lessons := b.lessons()
	if len(lessons) == 0 || lessons[len(lessons)-1].Outcome == nil {
		b.Fatal("nothing was taught")
	}
	return lessons[len(lessons)-1].Outcome
}

// TestReviewAfterLook: a look at a closed round that waits for a review is recorded
// once, and reviews of who looked are not blind, nor those of anybody after a look
// without a name.
func TestReviewAfterLook(t *testing.T) {
	for _, c := range []struct {
		look, reviews string
		blind         bool
		code          string // of a look that is refused
	}{{"ann", "ann", false, ""}, {"ann", "bob", true, ""}, {"none", "ann", true, ""}, {"", "bob", false, ""}, {"a", "ann", true, "not_human"}} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish"})
		s := b.start(b.machine(def{states: `"open":{"audit":{"mode":"after","rate":1,"newcomerRate":1},"transitions":{"finish":"done","again":"open"}},"done":{}`,
			who: []string{fn("a"), human("ann"), human("bob"), half}}))
		b.stepTo(s, runner.TickAdvanced)
		round := b.now(s).Reviews()[0].Key.ID()
		for range 2 {
			if c.look == "none" {
				continue
			}
			_, err := b.r.RevealReview(b.ctx, s.ID, round, machine.SpecialistID(c.look), nil)
			if refused, ok := errors.AsType[*runner.Error](err); ok != (c.code != "") || ok && refused.Code != c.code {
				t.Errorf("the look of %q is refused: %v", c.look, err)
			}
		}
		want := 1
		if c.look == "none" || c.code != "" {
			want = 0
		}
		if n := b.count(s, session.KindRevealed); n != want {
			t.Errorf("%d looks of %q are recorded", n, c.look)
		}
		_, err := b.review(s, 1, c.reviews, "finish")
		b.ok(err)
		if o := lastOutcome(b); o.Blind != c.blind {
			t.Errorf("after a look of %q the review of %s is blind: %t", c.look, c.reviews, o.Blind)
		}
		if after, err := b.r.RevealReview(b.ctx, s.ID, round, "bob", nil); err != nil || after.Sequence != b.now(s).Sequence {
			t.Errorf("a look at a round that waits for nobody: %v", err)
		}
	}
}
