package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestHumanOutweighsALoneAI sets one human against an AI that was right once of
// once: the human wins, by the normal algorithm.
func TestHumanOutweighsALoneAI(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), human("human"), half)
	b.train(m, "a", 1, 1)
	s := b.start(m)
	b.propose(s, "a", "again")
	b.propose(s, "human", "park")
	tick := b.stepTo(s, runner.TickAdvanced)
	if tick.Transition.Name != "park" || tick.Reasoning() != "Alignment-weighted margin 0.66 >= threshold 0.5 (leader: park)" {
		t.Errorf("the step went %s: %s", tick.Transition.Name, tick.Reasoning())
	}
}

// TestUntrustedAlone keeps an AI that was never right in fifty rounds from
// deciding alone where the machine asks for trust; a trusted one may.
func TestUntrustedAlone(t *testing.T) {
	for _, c := range []struct {
		k, n int
		want runner.TickStatus
	}{{0, 50, runner.TickHuman}, {15, 15, runner.TickHuman}, {16, 16, runner.TickAdvanced}} {
		b := newBench(t)
		m := b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"requireTrust":true`})
		b.train(m, "a", c.k, c.n)
		b.cast.say("a", "again")
		b.stepTo(b.start(m), c.want)
	}
}

// TestFullCycle goes from a cold start through forced decisions to rounds that
// need no human, and back to a human where the trusted are opposed.
func TestFullCycle(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("high"), fn("low"), human("human"), half}, top: `"quorum":"any"`})
	b.cast.play("high", spending("again", cost(dollar), ""))
	b.cast.play("low", spending("park", cost(dollar/2), ""))
	s := b.start(m)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "cold_start" {
		t.Errorf("the first step came to %s", tick.Code)
	}
	for forced := 1; ; forced++ {
		b.force(s, "again")
		if b.step(s).Status == runner.TickAdvanced {
			if forced != 1 { // one match against none is all the weight there is
				t.Errorf("%d decisions were forced", forced)
			}
			break
		}
	}
	d := b.lastDecision()
	if d.SpecialistID != "high" || d.Kind != "consensus" || d.CostUSD != dollar { // low was not asked: it could change nothing
		t.Errorf("the record is %+v", d)
	}
	if spent := b.now(s).Spent(); spent.Money != 5*dollar/2 || spent.Calls != 3 {
		t.Errorf("spent were %+v", spent)
	}
	b.propose(s, "low", "park")
	b.propose(s, "human", "park")
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "park" {
		t.Errorf("the step went %s", tick.Transition.Name)
	}
}

// TestLowNeverCollapses asks for a human as long as somebody is no better than
// chance, and collapses sooner the better the best is.
func TestLowNeverCollapses(t *testing.T) {
	rounds := func(right func(i int) bool) int {
		b := newBench(t)
		m := b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"requireTrust":true`})
		s := b.start(m)
		for i := range 120 {
			said := "park"
			if right(i) {
				said = "again"
			}
			b.cast.say("a", said)
			if b.step(s).Status == runner.TickAdvanced {
				return i
			}
			b.force(s, "again")
		}
		return -1
	}
	always, mostly, half := rounds(func(int) bool { return true }), rounds(func(i int) bool { return i%10 != 5 }), rounds(func(i int) bool { return i%2 == 0 })
	if always != 16 || mostly <= always || half != -1 {
		t.Errorf("collapsed after %d, %d and %d rounds", always, mostly, half)
	}
}

// TestForceBeatsAWinner forces against a proposal that would have won.
func TestForceBeatsAWinner(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("good"), human("human"), half)
	b.train(m, "good", 9, 9)
	s := b.start(m)
	b.propose(s, "good", "finish")
	b.force(s, "again")
	if now := b.now(s); now.Status != session.Running || now.Last().SpecialistID != "human" {
		t.Errorf("the session is %+v", now)
	}
	if book, _ := b.store.Book(b.ctx, "desk"); book.Tally(recordOf("good")).Total != 10 || book.Tally(recordOf("good")).Matching != 9 {
		t.Errorf("the tally is %+v", book.Tally(recordOf("good")))
	}
}

// TestSumsByTransition adds weights by transition, whatever the reasonings say.
func TestSumsByTransition(t *testing.T) {
	for _, reasoning := range []string{"", "I am a human and weigh 1000", strings.Repeat("park! ", 100)} {
		b := newBench(t)
		m := b.desk(fn("good"), fn("twin"), fn("fair"), human("human"), arb("alignmentMargin", threshold("0.3")))
		for _, p := range panel[2:] {
			b.train(m, p.id, p.k, p.n)
		}
		s := b.start(m)
		for id, what := range map[string]string{"good": "again", "twin": "again", "fair": "park"} {
			b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(id), TransitionName: what, Reasoning: reasoning})
		}
		if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" || !strings.Contains(tick.Reasoning(), "0.58 >= threshold 0.3") {
			t.Errorf("the step went %s: %s", tick.Transition.Name, tick.Reasoning())
		}
	}
}

// TestShapes runs machines of every shape to their ends: a chain, a diamond, a
// ring, twelve states, each asked with its own prompt and history.
func TestShapes(t *testing.T) {
	chain := `"open":{"prompt":"at open","transitions":{"n":"s1"}},`
	for i := 1; i < 12; i++ {
		chain += fmt.Sprintf(`"s%d":{"prompt":"at s%d","transitions":{"n":"s%d"}},`, i, i, i+1)
	}
	for _, c := range []struct {
		states, path string
		says         []string
	}{
		{chain + `"s12":{"prompt":"at s12","transitions":{"n":"done"}},"done":{}`, "s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 done", strings.Split(strings.Repeat("n ", 13), " ")},
		{`"open":{"prompt":"at open","transitions":{"l":"left","r":"right"}},"left":{"prompt":"at left","transitions":{"d":"done"}},"right":{"prompt":"at right","transitions":{"d":"done"}},"done":{}`, "right done", []string{"r", "d"}},
		{`"open":{"prompt":"at open","transitions":{"n":"b","e":"done"}},"b":{"prompt":"at b","transitions":{"n":"open"}},"done":{}`, "b open b open done", []string{"n", "n", "n", "n", "e"}},
	} {
		b := newBench(t)
		b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			if shown := string(q.AppendContext(nil, true)); !strings.Contains(shown, `"prompt":"at `+q.State.Name+`"`) || strings.Count(shown, `"executionTimestamp"`) != q.Past.Steps() {
				t.Errorf("in state %s was shown %s", q.State.Name, shown)
			}
			return specialist.Answer{TransitionName: c.says[q.Past.Steps()]}, nil
		})
		m := b.machine(def{states: c.states, who: []string{fn("a"), half}})
		bystander := b.start(m)
		s := b.start(m)
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
		b.ok(err)
		var path []string
		for i, h := range result.Session.View().History {
			path = append(path, h.ToState)
			if h.RoundID != (specialist.RoundKey{Session: s.ID, Round: int32(i + 1)}).ID() {
				t.Errorf("step %d was in round %s", i+1, h.RoundID)
			}
		}
		if got := strings.Join(path, " "); got != c.path || result.Status != "completed" {
			t.Errorf("the session went %s (%s), want %s", got, result.Status, c.path)
		}
		if b.now(bystander).Sequence != bystander.Sequence {
			t.Error("another session of the machine moved")
		}
	}
}

// TestManyProposers decides a round of 120.
func TestManyProposers(t *testing.T) {
	b := newBench(t)
	var who []string
	for i := range 120 {
		id := fmt.Sprint("p", i)
		who = append(who, fn(id))
		b.cast.say(id, "again")
	}
	m := b.desk(append(who, human("human"), half)...)
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	if n := len(b.now(s).Proposals()); n != 120 {
		t.Errorf("%d proposals", n)
	}
	b.force(s, "again")
	if book, _ := b.store.Book(b.ctx, "desk"); len(book.Records("desk")) != 120 {
		t.Errorf("%d were compared", len(book.Records("desk")))
	}
	b.cast.who()
	b.stepTo(s, runner.TickAdvanced)
	if n := len(b.cast.who()); n < 60 || n == 120 { // settled once the rest cannot turn a half
		t.Errorf("%d were asked", n)
	}
}

// TestEmptyStoreIsEmpty shows that nothing is left over from anywhere.
func TestEmptyStoreIsEmpty(t *testing.T) {
	b := newBench(t)
	sessions, err := b.r.Sessions(b.ctx, session.ListQuery{})
	b.ok(err)
	inbox, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, "")
	b.ok(err)
	book, err := b.store.Book(b.ctx, "desk")
	b.ok(err)
	ticks, err := b.tickAll()
	b.ok(err)
	if len(sessions)+len(inbox)+len(book.Records("desk"))+len(ticks) != 0 {
		t.Error("a new store holds something")
	}
}
