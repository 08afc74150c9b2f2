package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// outcomes returns all that was learned.
func (b *bench) outcomes() (list []trust.Outcome) {
	b.Helper()
	for _, l := range b.lessons() {
		l.Outcome.Seq = l.Seq
		list = append(list, *l.Outcome)
	}
	return list
}

// TestOutcome says what a ruling teaches the ledger.
func TestOutcome(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	b.cast.play("c", failing(fmt.Errorf("no idea")))
	m := b.machine(def{who: []string{fn("a"), fn("c"), human("human"), arb("bayes", threshold("0.9"))}, top: `"quorum":"any"`})
	s := b.start(m)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "cold_start" || tick.Reasoning() != "Cold start: 0 of 20 human decisions known, human input required" {
		t.Errorf("%s: %s", tick.Code, tick.Reasoning())
	}
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Blind: true})
	if !a.Executed {
		t.Fatal(a.GuardReason)
	}
	b.propose(s, "a", "finish")
	b.force(s, "park")
	got := b.outcomes()
	if len(got) != 2 {
		t.Fatalf("there are %d outcomes", len(got))
	}
	o := got[0]
	if o.Machine != "desk" || o.State != "open" || fmt.Sprint(o.Options) != "[finish again park]" || o.Truth != "again" || o.Source != trust.Forced ||
		o.HumanID != "human" || !o.Blind || o.Unasked || o.Pick != "finish" || o.P == 0 || o.N != 0 || o.DefinitionDigest != m.Digest() || o.Session != s.ID.String() {
		t.Errorf("the outcome is %+v", o)
	}
	if len(o.Proposals) != 2 || o.Proposals[0].SpecialistID != "a" || o.Proposals[0].Transition != "finish" || o.Proposals[0].Version == "" || !o.Proposals[1].Failed || o.Proposals[1].SpecialistID != "c" {
		t.Errorf("the proposals are %+v", o.Proposals)
	}
	if o = got[1]; !o.Unasked || o.Blind || o.Truth != "park" {
		t.Errorf("the second outcome is %+v", o)
	}
}

// TestBayesEarns has humans decide until the record supports a threshold, then
// decides alone; what it decides alone teaches nothing.
func TestBayesEarns(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	truth := "again"
	for i := range 4 {
		b.cast.play(fmt.Sprint("p", i), b.voter(rng, &truth, .95))
	}
	m := b.desk(fn("p0"), fn("p1"), fn("p2"), fn("p3"), human("human"), arb("bayes", threshold("0.9")))
	s := b.start(m)
	asked, alone, wrong := 0, 0, 0
	for range 300 {
		truth = []string{"again", "park"}[rng.IntN(2)]
		before := len(b.outcomes())
		tick := b.step(s)
		switch tick.Status {
		case runner.TickAdvanced:
			if alone++; tick.Transition.Name != truth {
				wrong++
			}
			if after := len(b.outcomes()); after != before {
				t.Fatalf("a decision of the engine made %d outcomes", after-before)
			}
		case runner.TickHuman:
			asked++
			b.force(s, truth)
		}
		if now := b.now(s); now.State.Name == "parked" {
			b.force(s, "back")
		}
	}
	if asked < 10 || asked > 60 || wrong > 8 || alone != 300-asked {
		t.Errorf("a human was asked %d times of 300, %d of %d decisions without were wrong", asked, wrong, alone)
	}
	b.reproduce(s)
}

// voter proposes the truth with probability p, else something else.
func (b *bench) voter(rng *rand.Rand, truth *string, p float64) part {
	return func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		say := *truth
		if rng.Float64() >= p {
			say = map[string]string{"again": "park", "park": "again"}[say]
		}
		return saying(say)(ctx, q)
	}
}

// reproduce judges every recorded round of bayes again, from the outcomes that
// were known then, and fails the test unless the same comes out.
func (b *bench) reproduce(s *session.Session) {
	b.Helper()
	lessons := b.lessons()
	checked := 0
	l := trust.New()
	for _, r := range b.raw(s) {
		if r.Kind != session.KindJudged {
			continue
		}
		var v struct {
			Evidence    session.JudgedBy `json:"evidence"`
			Explanation trust.Judgement  `json:"explanation"`
			Code        string           `json:"code"`
		}
		b.ok(json.Unmarshal(r.Data, &v))
		for ; len(lessons) > 0 && lessons[0].Seq <= v.Evidence.Place; lessons = lessons[1:] {
			b.ok(l.Learn(lessons[0]))
		}
		e := v.Explanation
		q := trust.Question{Machine: "desk", State: "open", Options: e.Options, PolicyDigest: v.Evidence.PolicyDigest, Partial: v.Evidence.Partial, Stop: v.Evidence.Stop,
			Policy: trust.Policy{Threshold: e.Threshold, Rounds: s.Machine().Definition().LearnsFromRounds()}}
		if e.Risk != nil {
			q.Policy.Promise = &e.Risk.Promise
		}
		if len(e.Options) == 1 {
			continue // of state parked
		}
		for i, vote := range e.Votes {
			q.Votes = append(q.Votes, trust.Vote{SpecialistID: vote.SpecialistID, Version: v.Evidence.Versions[i], Option: index(e.Options, vote.Transition)})
		}
		again := l.Judge(q)
		want, _ := json.Marshal(again)
		got, _ := json.Marshal(e)
		if string(want) != string(got) {
			b.Fatalf("event %d says\n%s\nagain it is\n%s", r.Seq, got, want)
		}
		checked++
	}
	if checked < 100 {
		b.Errorf("only %d judgements were made again", checked)
	}
}

func index(list []string, s string) int {
	for i := range list {
		if list[i] == s {
			return i
		}
	}
	return -1
}

// TestBayesSaysWhy checks the words of every outcome of a judgement.
func TestBayesSaysWhy(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("bayes")}, top: `"risk":{"maxError":0.1,"confidence":0.8}`})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.force(s, "again")
	tick := b.stepTo(s, runner.TickHuman)
	if want := "of finish, but errors below 0.1 are not established (collecting), human input required"; tick.Code != "risk_not_established" || !strings.HasSuffix(tick.Reasoning(), want) {
		t.Errorf("%s: %s", tick.Code, tick.Reasoning())
	}
	if log := b.log(s, 0); strings.Count(log, "judged") != 2 {
		t.Errorf("the log is\n%s", log)
	}
}
