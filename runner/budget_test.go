package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

func budget(members string) string {
	return `"guards":{"budget":{` + members + `},"loop_detection":{"cycle":false}}`
}

// charging is the part of a service that answers after a second and says what it
// cost.
func charging(transition string, d exact.Money) part {
	return after(time.Second, func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: transition, Usage: cost(d)}, nil
	})
}

// TestBudgetHoldsForParallelAsks: three services of a dollar each share a budget
// of two and a half: two are asked at once, the third has to do without, and the
// round goes on.
func TestBudgetHoldsForParallelAsks(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, id := range []string{"a", "b", "c"} {
			b.cast.play(id, charging("again", dollar))
		}
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), web("b", estimated("1")), web("c", estimated("1")), arbFn("judge")}, top: budget(`"hard_limit_usd":2.5`)}))
		b.stepTo(s, runner.TickAdvanced)
		if who := slices.Sorted(slices.Values(b.cast.who())); !slices.Equal(who, []string{"a", "b", "judge"}) {
			t.Errorf("asked were %v", who)
		}
		now := b.now(s)
		if now.Spent().Money != 2*dollar || now.Spent().Calls != 2 {
			t.Errorf("spent %+v", now.Spent())
		}
		if log := b.log(s, 2); !strings.Contains(log, "budget_usd") {
			t.Errorf("the log does not say that c was refused:\n%s", log)
		}
	})
}

// TestBudgetReleasesWhatWasHeld: what an ask was expected to cost and did not is
// there for the next one.
func TestBudgetReleasesWhatWasHeld(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, id := range []string{"a", "b", "c"} {
			b.cast.play(id, charging("again", dollar/10))
		}
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), web("b", estimated("1")), web("c", estimated("1")), arbFn("judge")}, top: budget(`"hard_limit_usd":1.5`)}))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if who := slices.Sorted(slices.Values(b.cast.who())); len(who) != 4 || time.Since(start) != 3*time.Second {
			t.Errorf("asked were %v in %s", who, time.Since(start))
		}
		if got := b.now(s).Spent().Money; got != 3*dollar/10 {
			t.Errorf("spent $%s", got)
		}
	})
}

// TestBudgetStops: once nobody can be asked any more the session stops, what was
// spent stays spent, and resuming it asks nobody.
func TestBudgetStops(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", charging("again", dollar))
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("carol"), arbFn("judge")}, top: budget(`"hard_limit_usd":2`)}))
		b.stepTo(s, runner.TickAdvanced)
		b.stepTo(s, runner.TickAdvanced)
		b.stepTo(s, runner.TickStopped)
		if o := b.now(s).Outcome(); o.Code != "budget_usd" || !strings.Contains(o.Reason, "$2") {
			t.Errorf("stopped by %s: %s", o.Code, o.Reason)
		}
		b.cast.who()
		_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
		b.ok(err)
		b.stepTo(s, runner.TickStopped)
		if who := b.cast.who(); len(who) != 0 || b.now(s).Spent().Money != 2*dollar {
			t.Errorf("after resuming %v were asked, $%s is spent", who, b.now(s).Spent().Money)
		}
	})
}

// TestFreeSpecialistsAreStillAsked: a function of this process costs nothing, so
// it is asked though the budget is gone.
func TestFreeSpecialistsAreStillAsked(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", charging("again", dollar))
		b.cast.say("rule", "again")
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), fn("rule"), arbFn("judge")}, top: budget(`"hard_limit_usd":1`)}))
		b.stepTo(s, runner.TickAdvanced)
		b.cast.who()
		b.stepTo(s, runner.TickAdvanced)
		if who := strings.Join(b.cast.who(), " "); who != "rule judge" {
			t.Errorf("asked were %s", who)
		}
	})
}

// TestBudgetOfTime: a session that takes too long, and one that does not move,
// are stopped at the gate.
func TestBudgetOfTime(t *testing.T) {
	for _, c := range []struct {
		members, code string
		passes        int
	}{{`"hard_limit_wall_ms":2500`, "budget_wall", 2}, {`"no_progress_ms":999`, "budget_no_progress", 0}, {`"round_limit_wall_ms":999`, "budget_wall", 0}, {`"no_progress_ms":1000`, "", 4}} {
		bubble(t, func(b *bench) {
			b.cast.play("a", charging("again", 0))
			b.cast.judge("judge", electFirst)
			s := b.start(b.machine(def{who: []string{web("a"), arbFn("judge")}, top: budget(c.members)}))
			for range c.passes {
				b.stepTo(s, runner.TickAdvanced)
			}
			if c.code == "" {
				return
			}
			b.stepTo(s, runner.TickStopped)
			if got := b.now(s).Outcome().Code; got != c.code {
				t.Errorf("%s: stopped by %s", c.members, got)
			}
		})
	}
}

// TestSoftBudgetIsToldOnce: the next round's proposers hear of it, once.
func TestSoftBudgetIsToldOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		var heard []string
		b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			heard = append(heard, strings.Join(q.Notices, ";"))
			return specialist.Answer{TransitionName: "again", Usage: cost(dollar)}, nil
		})
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{fn("a"), arbFn("judge")}, top: budget(`"soft_limit_usd":1.5`)}))
		for range 4 {
			b.stepTo(s, runner.TickAdvanced)
		}
		told := 0
		for _, h := range heard {
			if strings.Contains(h, "Budget") {
				told++
			}
		}
		if told != 1 || !strings.Contains(heard[2], "Budget") {
			t.Errorf("the proposers heard %q", heard)
		}
	})
}

// TestBudgetIsNeverOverspent lets random panels, with what they say they will cost
// as an upper bound of what they do, share a budget over many rounds.
func TestBudgetIsNeverOverspent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		bubble(t, func(b *bench) {
			var who []string
			for i := range 1 + rng.IntN(4) {
				id, most := fmt.Sprint("p", i), 1+rng.IntN(5)
				b.cast.play(id, charging("again", exact.Money(rng.IntN(most+1))*dollar/10))
				who = append(who, web(id, estimated(fmt.Sprintf("0.%d", most))))
			}
			b.cast.judge("judge", electFirst)
			limit := exact.Money(1+rng.IntN(30)) * dollar / 10
			s := b.start(b.machine(def{who: append(who, arbFn("judge")), top: budget(`"hard_limit_usd":` + limit.String())}))
			for range 12 {
				if tick := b.step(s); tick.Status != runner.TickAdvanced {
					break
				}
			}
			if got := b.now(s).Spent().Money; got > limit {
				t.Errorf("spent $%s of $%s", got, limit)
			}
		})
	}
}
