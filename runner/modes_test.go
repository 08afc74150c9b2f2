package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// bubble runs a test on a clock that moves only when everybody waits.
func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newBench(t, inBubble)) })
}

// after is the part of somebody who takes a while.
func after(d time.Duration, p part) part {
	return func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		select {
		case <-time.After(d):
			return p(ctx, q)
		case <-ctx.Done():
			return specialist.Answer{}, ctx.Err()
		}
	}
}

func estimated(dollars string) string { return `"estimatedCostUSD":` + dollars }

// TestAllAsksAtOnce asks three services of a second each: the round takes one
// second. Functions of this process are asked one by one in roster order.
func TestAllAsksAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, id := range []string{"a", "b", "c"} {
			b.cast.play(id, after(time.Second, saying("again")))
		}
		b.cast.say("f", "again")
		b.cast.say("g", "again")
		b.cast.judge("judge", electFirst)
		s := b.start(b.desk(fn("g"), web("a"), web("b"), fn("f"), web("c"), arbFn("judge")))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the round took %s", took)
		}
		who := b.cast.who()
		if g, f := slices.Index(who, "g"), slices.Index(who, "f"); len(who) != 6 || g > f || who[5] != "judge" {
			t.Errorf("asked were %v", who)
		}
		if log := b.log(s, 2); !strings.HasPrefix(log, "asked a#1 b#2 c#3\n") { // in one record
			t.Errorf("the log is\n%s", log)
		}
	})
}

// records returns the stored records of a session.
func (b *bench) records(s *session.Session) (all []session.StoredRecord) {
	b.Helper()
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		all = append(all, rec)
	}
	return all
}

// A panelist is a specialist whose standing was earned before the test.
type panelist struct {
	id   string
	k, n int
}

// panel has standings that are zero, thin, fair, and twice the same.
var panel = []panelist{{"zero", 0, 0}, {"thin", 2, 5}, {"fair", 4, 5}, {"good", 9, 9}, {"twin", 9, 9}}

// winnerOf tells a round's end: who won with what, or why a human must decide.
func winnerOf(s *session.Session) string {
	if l := s.Last(); l != nil {
		return l.Transition.Name + " by " + l.SpecialistID
	}
	return s.Outcome().Reason
}

// said makes parts out of choices by transition; "" fails.
func (b *bench) said(choices map[string]string) {
	for id, c := range choices {
		if c == "" {
			b.cast.play(id, failing(errors.New("no answer")))
		} else {
			b.cast.say(id, c)
		}
	}
}

// spoken counts those of the choices that are one.
func spoken(choices map[string]string) (n int) {
	for _, c := range choices {
		if c != "" {
			n++
		}
	}
	return n
}

// TestEarlyStopIsSound goes through every answer, and none, of small panels: a
// round that stops early elects whom it would have elected had everybody been
// heard. The slow way hands in all answers before the step.
func TestEarlyStopIsSound(t *testing.T) {
	stopped, decided := 0, 0
	choices := []string{"finish", "again", "park", ""}
	for _, ids := range [][]string{{"good", "twin", "fair"}, {"zero", "good", "thin"}, {"twin", "thin", "zero"}, {"fair", "thin", "good"}} {
		for _, limit := range []string{"0", "0.3", "0.5", "1"} {
			for _, mode := range []string{`"all"`, `{"mode":"sequential","wave":1}`, `{"mode":"sequential","wave":2}`, `{"mode":"sequential","wave":"auto"}`} {
				b := newBench(t)
				var who []string
				for i, id := range ids {
					who = append(who, fn(id, estimated(fmt.Sprint((i*7)%3))))
				}
				m := b.machine(def{who: append(who, human("human"), arb("alignmentMargin", threshold(limit))), top: `"solicit":` + mode})
				for _, p := range panel {
					if slices.Contains(ids, p.id) {
						b.train(m, p.id, p.k, p.n)
					}
				}
				for n := range 4 * 4 * 4 {
					chosen := map[string]string{ids[0]: choices[n%4], ids[1]: choices[n/4%4], ids[2]: choices[n/16]}
					b.said(chosen)
					quick := b.start(m)
					b.cast.who()
					b.step(quick)
					asked := len(b.cast.who())
					slow := b.start(m)
					for i := range ids {
						if id := ids[(i+n)%3]; chosen[id] != "" {
							b.propose(slow, id, chosen[id])
						}
					}
					b.step(slow)
					got, want := b.now(quick), b.now(slow)
					// One after the other, one answer is a quorum of those who were asked where
					// that one was: where it was handed in, the others are still asked.
					alone := mode != `"all"` && asked == 1 && spoken(chosen) == 1
					if alone && want.Outcome().Code != session.CodeNoQuorum || winnerOf(got) != winnerOf(want) && !alone {
						t.Fatalf("mode %s, threshold %s, %v say %v: asked %d, %s; asked all, %s", mode, limit, ids, chosen, asked, winnerOf(got), winnerOf(want))
					}
					if got.Executed > 0 {
						decided++
						if asked < 3 {
							stopped++
						}
					} else if asked != 3 {
						t.Fatalf("%v say %v: a round stopped towards no consensus after %d", ids, chosen, asked)
					}
				}
				b.forget()
			}
		}
	}
	if stopped < decided/5 {
		t.Errorf("only %d of %d decided rounds stopped early", stopped, decided)
	}
}

// TestArrivalNeverChangesTheWinner has services answer at random times: in the
// modes all and sequential the same proposal wins as when all are there at once.
func TestArrivalNeverChangesTheWinner(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 7))
	var orders int
	for range 12 {
		bubble(t, func(b *bench) {
			ids := []string{"zero", "thin", "fair", "good", "twin"}
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			var who []string
			for _, id := range ids {
				who = append(who, web(id, estimated(fmt.Sprint(rng.IntN(3)))))
			}
			limit := []string{"0", "0.2", "0.5"}[rng.IntN(3)]
			mode := []string{`"all"`, `{"mode":"sequential","wave":3}`, `{"mode":"sequential","wave":"auto"}`}[rng.IntN(3)]
			m := b.machine(def{who: append(who, human("human"), arb("alignmentMargin", threshold(limit))), top: `"solicit":` + mode})
			for _, p := range panel {
				b.train(m, p.id, p.k, p.n)
			}
			choices := map[string]string{}
			slow := b.start(m)
			for _, id := range ids {
				choices[id] = []string{"finish", "again", "park"}[rng.IntN(3)]
				b.propose(slow, id, choices[id])
			}
			b.step(slow)
			want := winnerOf(b.now(slow))
			for range 10 {
				for id, c := range choices {
					b.cast.play(id, after(time.Duration(rng.IntN(50))*time.Millisecond, saying(c)))
				}
				s := b.start(m)
				b.step(s)
				if got := winnerOf(b.now(s)); got != want {
					t.Fatalf("seed %d: %s, mode %s, threshold %s, roster %v: %s; with all at once %s", seed, choices, mode, limit, ids, got, want)
				}
				orders++
			}
		})
	}
	if orders != 120 {
		t.Errorf("%d orders were tried", orders)
	}
}

// TestCancellation stops a round early: those still out are cancelled, charged as
// estimated, recorded, and named in the decision.
func TestCancellation(t *testing.T) {
	bubble(t, func(b *bench) {
		m := b.machine(def{who: []string{web("slow", estimated("0.25")), web("good"), fn("weightless"), human("human"), half}})
		b.train(m, "good", 9, 9)
		b.cast.play("good", after(time.Second, saying("again")))
		b.cast.say("weightless", "finish")
		var why error
		b.cast.play("slow", func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
			<-ctx.Done()
			why = context.Cause(ctx)
			return specialist.Answer{}, ctx.Err()
		})
		s := b.start(m)
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if took := time.Since(start); took != time.Second || why == nil || why.Error() != "the round is decided" {
			t.Errorf("the step took %s, slow was told %v", took, why)
		}
		b.wantLog(s, 2, "asked slow#1 good#2", "asked weightless#3", "proposed weightless finish", "proposed good again",
			"ask_failed slow cancelled 0.25 true", "judged arb decided", "gated again ok", "executed good again", "round_opened open 2 0")
		d := b.lastDecision()
		if got := fmt.Sprint(d.Asked, d.Cancelled); got != "[slow good weightless] [slow]" || d.CostUSD != dollar/4 {
			t.Errorf("the decision names %s and cost %s", got, d.CostUSD)
		}
		if spent := b.now(s).Spent(); spent.Money != dollar/4 || spent.Estimated != 1 {
			t.Errorf("spent were %+v", spent)
		}
	})
}

// TestNoStopTowardsNoConsensus waits for everybody although no answer can bring
// consensus any more: those answers teach.
func TestNoStopTowardsNoConsensus(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("good"), fn("twin"), fn("zero"), human("human"), arb("alignmentMargin", threshold("1")))
	b.train(m, "good", 9, 9)
	b.train(m, "twin", 9, 9)
	b.said(map[string]string{"good": "again", "twin": "finish", "zero": "park"})
	s := b.start(m)
	b.cast.who()
	b.stepTo(s, runner.TickHuman)
	if n := len(b.cast.who()); n != 3 || len(b.now(s).Proposals()) != 3 {
		t.Errorf("%d were asked", n)
	}
}

// TestFirstProposalByArrival lets the fastest win whatever the roster says, and
// records the order that was used.
func TestFirstProposalByArrival(t *testing.T) {
	for _, mode := range []string{`"all"`, `"eager"`, `{"mode":"sequential","wave":3}`} {
		bubble(t, func(b *bench) {
			b.cast.play("a", after(3*time.Second, saying("finish")))
			b.cast.play("b", after(2*time.Second, saying("park")))
			b.cast.play("c", after(1*time.Second, saying("again")))
			s := b.start(b.machine(def{who: []string{web("a"), web("b"), web("c"), human("human"), arb("firstProposal")}, top: `"solicit":` + mode}))
			b.propose(s, "human", "park") // before anybody is asked
			start := time.Now()
			b.stepTo(s, runner.TickAdvanced)
			d := b.lastDecision()
			wait, asked := time.Duration(0), "[]"
			if mode == `"eager"` { // one proposal is not enough for it, unless nobody else is there
				wait, asked = 3*time.Second, "[a]"
			}
			if d.SpecialistID != "human" || time.Since(start) != wait || fmt.Sprint(d.Asked) != asked {
				t.Errorf("%s: %s won after %s, asked were %v", mode, d.SpecialistID, time.Since(start), d.Asked)
			}
			s = b.start(s.Machine())
			tick := b.step(s)
			for tick.Status == runner.TickSolicited {
				tick = b.step(s)
			}
			want := "c: First proposal received wins (from c)"
			if mode == `"eager"` { // asks in roster order, one by one
				want = "a: First proposal received wins (from a)"
			}
			if d := b.lastDecision(); d.SpecialistID+": "+d.ArbiterReasoning != want {
				t.Errorf("%s: %s: %s, want %s", mode, d.SpecialistID, d.ArbiterReasoning, want)
			}
		})
	}
}

// TestOrderIsRecorded compares the order that a verdict names with the rule:
// humans first and then by roster, in eager by arrival.
func TestOrderIsRecorded(t *testing.T) {
	for mode, want := range map[string]string{`"all"`: "[3,4,2]", `"sequential"`: "[3,4,2]", `"eager"`: "[2,3,4]"} {
		b := newBench(t)
		s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"solicit":` + mode}))
		b.propose(s, "b", "park")
		b.propose(s, "b", "finish") // arrival 2 replaces arrival 1
		b.propose(s, "human", "again")
		b.propose(s, "a", "park")
		b.stepTo(s, runner.TickAdvanced)
		for _, r := range b.raw(s) {
			if r.Kind == "judged" && !strings.Contains(string(r.Data), `"order":`+want) {
				t.Errorf("%s: the verdict is %s, want the order %s", mode, r.Data, want)
			}
		}
	}
}

// TestSequentialWaves asks the cheap before the dear, the roster deciding among
// equals, in waves of the given size, and no more than it takes.
func TestSequentialWaves(t *testing.T) {
	for _, c := range []struct {
		wave  int
		limit string
		want  string // who is asked, a space between records
	}{
		{1, "1", "c d b e a"},
		{2, "1", "cd be a"},
		{3, "1", "cdb ea"},
		{9, "1", "cdbea"},
		{1, "0.5", "c d"}, // d is trusted, c is not; nobody else has weight
		{2, "0.5", "cd"},
		{3, "0.5", "cdb"},
	} {
		b := newBench(t)
		m := b.machine(def{who: []string{web("a", estimated("3")), web("b", estimated("1")), web("c"), web("d"), web("e", estimated("1")),
			human("human"), arb("alignmentMargin", threshold(c.limit))}, top: fmt.Sprintf(`"solicit":{"mode":"sequential","wave":%d}`, c.wave)})
		if c.limit != "1" {
			b.train(m, "d", 9, 9)
		}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			b.cast.say(id, "again")
		}
		b.cast.say("c", "finish")
		s := b.start(m)
		b.step(s)
		var waves []string
		for _, r := range b.raw(s) {
			if r.Kind == "asked" {
				waves = append(waves, strings.NewReplacer("asked", "", " ", "", "#", "", "1", "", "2", "", "3", "", "4", "", "5", "").Replace(inShort(t, r)))
			}
		}
		if got := strings.Join(waves, " "); got != c.want {
			t.Errorf("waves of %d, threshold %s: asked were %s, want %s", c.wave, c.limit, got, c.want)
		}
	}
}

// TestSequentialMakesDo decides on the answers of a wave that failed in part, where
// one answer is enough.
func TestSequentialMakesDo(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "", "b": "again", "c": ""})
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), half}, top: `"solicit":"sequential","quorum":"any"`}))
	tick := b.stepTo(s, runner.TickAdvanced)
	if fmt.Sprint(tick.Asked()) != "[a b c]" || tick.Reasoning() != "Single proposal with no competing proposals" {
		t.Errorf("asked were %v: %s", tick.Asked(), tick.Reasoning())
	}
}

// TestMaxParallel bounds how many are asked at once.
func TestMaxParallel(t *testing.T) {
	bubble(t, func(b *bench) {
		var now, most atomic.Int32
		var who []string
		for i := range 7 {
			id := fmt.Sprint("w", i)
			who = append(who, web(id))
			b.cast.play(id, func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				return after(time.Second, saying("again"))(ctx, q)
			})
		}
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: append(who, arbFn("judge")), top: `"solicit":{"maxParallel":3}`}))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if took := time.Since(start); took != 3*time.Second || most.Load() != 3 {
			t.Errorf("%d at once, in %s", most.Load(), took)
		}
	})
}

// TestTimeouts gives up on those who take too long: each alone, and the round.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		solicit, rest string
		takes         time.Duration
		sent          int
	}{
		{`{"timeout":"7s"}`, "", 7 * time.Second, 3},
		{`{"timeout":"7s"}`, `"timeout":"3s"`, 3 * time.Second, 3},
		{`{"timeout":"7s","roundTimeout":"2s"}`, "", 2 * time.Second, 3},
		{`{"timeout":"7s","roundTimeout":"9s","maxParallel":1}`, "", 9 * time.Second, 2},
		{`{}`, "", 55 * time.Second, 3}, // webhooks have five seconds less than functions
	} {
		bubble(t, func(b *bench) {
			who := []string{web("a", c.rest, estimated("1")), web("b", c.rest, estimated("1")), web("c", c.rest, estimated("1")), human("human"), half}
			for _, id := range []string{"a", "b", "c"} {
				b.cast.play(id, hanging)
			}
			s := b.start(b.machine(def{who: who, top: `"solicit":` + c.solicit}))
			start := time.Now()
			tick := b.stepTo(s, runner.TickHuman)
			if took := time.Since(start); took != c.takes || tick.Reasoning() != "No proposals" {
				t.Errorf("%s: the step took %s: %s", c.solicit, took, tick.Reasoning())
			}
			failed, spent := b.count(s, "ask_failed"), b.now(s).Spent()
			if n := len(b.cast.who()); failed != 3 || n != c.sent || spent.Money != dollar*exact.Money(n) || !strings.Contains(b.log(s, 2), " timeout 1 true") {
				t.Errorf("%s: %d asks failed, %d were sent, spent were %+v", c.solicit, failed, n, spent)
			}
		})
	}
}

// TestFunctionTimeout bounds functions of this process, which honour their ctx.
func TestFunctionTimeout(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", hanging)
		b.cast.say("b", "again")
		s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), half}, top: `"quorum":"any"`}))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("the step took %s", took)
		}
		b.wantLog(s, 2, "asked a#1 b#2", "ask_failed a timeout", "proposed b again", "judged arb decided", "gated again ok", "executed b again", "round_opened open 2 0")
	})
}

// TestModeOfSession asks as the start says, not as the file does.
func TestModeOfSession(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "again", "b": "again"})
	m := b.desk(fn("a"), fn("b"), half)
	s := b.start(m, runner.StartOptions{Mode: "eager"})
	b.stepTo(s, runner.TickSolicited)
	if got := fmt.Sprint(b.cast.who()); got != "[a]" {
		t.Errorf("asked were %s", got)
	}
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{Mode: "slow"})
	b.refused(err, runner.ErrIllegal, `mode is "slow", it may be all, eager or sequential`)
}

// TestHumanJoinsWhileWaiting has a human propose while a step waits for answers:
// the proposal is part of the round.
func TestHumanJoinsWhileWaiting(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.start(b.desk(web("a"), human("human"), half))
		b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			b.propose(s, "human", "finish")
			return saying("again")(ctx, q)
		})
		tick := b.stepTo(s, runner.TickAdvanced)
		if tick.Transition.Name != "finish" || !strings.Contains(tick.Reasoning(), "1.00 >= threshold 0.5") {
			t.Errorf("the step went %s: %s", tick.Transition.Name, tick.Reasoning())
		}
	})
}

// TestRulingWhileWaiting has a human rule while a step waits: the step gives way,
// and what was answered is kept as discarded, with its cost.
func TestRulingWhileWaiting(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.start(b.desk(web("a", estimated("1")), human("human"), half))
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			b.force(s, "park")
			return specialist.Answer{TransitionName: "again", Usage: cost(3 * dollar)}, nil
		})
		tick := b.stepTo(s, runner.TickSolicited)
		if now := b.now(s); now.State.Name != "parked" || tick.Session.State != now.State || now.Spent().Money != 3*dollar {
			t.Errorf("the session is in %s, spent %s", now.State.Name, now.Spent().Money)
		}
		b.wantLog(s, 2, "asked a#1", "gated park ok", "executed human park", "learned", "round_opened parked 2 0", "discarded 1 0 a again late 3")
	})
}
