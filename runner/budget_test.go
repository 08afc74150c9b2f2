package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
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

// TestAnswersThatCannotBeReadArePaid: who answers what nobody can read has done the
// work, and nobody will ever say what it cost. Errors of other kinds cost nothing, but
// are calls as well, to the session and to its tenant.
func TestAnswersThatCannotBeReadArePaid(t *testing.T) {
	for _, c := range []struct {
		err error
		usd exact.Money
	}{{fmt.Errorf("no JSON: %w", specialist.ErrUncounted), dollar}, {errors.New("refused"), 0}} {
		b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(9 * exact.Dollar)}}}))
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{}, c.err
		})
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("carol"), half}, top: budget(`"hard_limit_usd":2`)}))
		b.stepTo(s, runner.TickHuman)
		spent := b.now(s).Spent()
		if used, _ := b.r.QuotaUsed(""); spent.Money != c.usd || used[2] != int64(c.usd) || spent.Estimated != int64(c.usd/dollar) || spent.Calls != 1 || used[0] != 1 {
			t.Errorf("%v: spent %+v, of the quota %v", c.err, spent, used)
		}
	}
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
		for _, o := range []runner.ResumeOptions{{}, {RetryFailed: true}} { // it is no failure of theirs
			_, err := b.r.Resume(b.ctx, s.ID, o)
			b.ok(err)
			b.stepTo(s, runner.TickStopped)
		}
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
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), fn("rule"), arbFn("judge")}, top: `"quorum":"any",` + budget(`"hard_limit_usd":1`)}))
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
			most := rng.IntN(4)
			b.cast.judge("judge", costing(electFirst, exact.Money(rng.IntN(most+1))*dollar/10))
			limit := exact.Money(1+rng.IntN(30)) * dollar / 10
			s := b.start(b.machine(def{who: append(who, paidArbiter(fmt.Sprintf("0.%d", most))), top: budget(`"hard_limit_usd":` + limit.String())}))
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

// costing has an arbiter say what deciding cost.
func costing(a arbiter.Arbiter, d exact.Money) arbiter.Arbiter {
	return arbiter.Func(func(ctx context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		decision, err := a.Decide(ctx, r)
		decision.Expense = &arbiter.Expense{Usage: cost(d)}
		return decision, err
	})
}

// paidArbiter is an arbiter behind a webhook that is expected to cost something.
func paidArbiter(estimate string) string {
	return entry("arbiter", "judge", `"strategyWebhookUrl":"https://hooks.example/judge","webhookTokenName":"A_WEBHOOK_TOKEN"`, estimated(estimate))
}

// TestArbitersArePaid: what deciding costs is reserved before the arbiter is
// asked and settled after, and once the budget does not have it the session stops
// without asking.
func TestArbitersArePaid(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.judge("judge", costing(electFirst, dollar/2))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), paidArbiter("1")}, top: budget(`"hard_limit_usd":1.7`)}))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickAdvanced)
	b.cast.who()
	b.stepTo(s, runner.TickStopped)
	if who := strings.Join(b.cast.who(), " "); who != "a" || b.now(s).Outcome().Code != "budget_usd" || b.now(s).Spent().Money != dollar || b.now(s).Spent().Calls != 2 {
		t.Errorf("asked were %s, the outcome is %+v, spent %+v", who, b.now(s).Outcome(), b.now(s).Spent())
	}
	if _, err := b.r.Evaluate(b.ctx, s.ID); err == nil || !strings.Contains(err.Error(), "not enough usd") {
		t.Errorf("looking came to %v", err)
	}
	if d, err := b.r.Decisions(b.ctx, "desk", "", 0); err != nil || len(d) != 2 || d[1].CostUSD != dollar/2 {
		t.Errorf("the decisions are %+v, %v", d, err)
	}
}

// TestArbitersWithoutAnswerArePaid: one that fails costs what it says, one that
// does not answer in time, too late, or what nobody can read, what was expected until
// it says otherwise.
func TestArbitersWithoutAnswerArePaid(t *testing.T) {
	broken := arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Decision{Expense: &arbiter.Expense{Usage: cost(dollar / 4)}}, errors.New("no power")
	})
	silent := arbiter.Func(func(ctx context.Context, _ *arbiter.Round) (arbiter.Decision, error) {
		<-ctx.Done()
		return arbiter.Decision{}, ctx.Err()
	})
	garbled := arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Decision{}, fmt.Errorf("no JSON: %w", specialist.ErrUncounted)
	})
	for _, c := range []struct {
		judge     arbiter.Arbiter
		spent     exact.Money
		estimated int64
	}{{broken, dollar / 4, 0}, {silent, dollar, 1}, {garbled, dollar, 1}} {
		bubble(t, func(b *bench) {
			b.cast.say("a", "again")
			b.cast.judge("judge", c.judge)
			s := b.start(b.machine(def{who: []string{fn("a"), human("human"), paidArbiter("1")}, top: budget(`"hard_limit_usd":2`)}))
			b.stepTo(s, runner.TickHuman)
			if spent := b.now(s).Spent(); spent.Money != c.spent || spent.Estimated != c.estimated {
				t.Errorf("spent is %+v", spent)
			}
		})
	}
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.play("b", failing(errors.New("not yet")))
	var s *session.Session
	asked := 0
	b.cast.judge("judge", costing(arbiter.Func(func(ctx context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		if asked++; asked == 1 {
			b.propose(s, "b", "park")
			if got := b.now(s).Spent(); got.Money != dollar || got.Estimated != 1 {
				t.Errorf("with its question out of date, spent is %+v", got)
			}
		}
		return arbiter.Elect(0, "so be it"), nil
	}), dollar/4))
	s = b.start(b.machine(def{who: []string{fn("a"), fn("b"), paidArbiter("1")}, top: budget(`"hard_limit_usd":9`)}))
	for b.now(s).Executed == 0 {
		b.step(s)
	}
	if spent := b.now(s).Spent(); asked != 2 || spent.Money != dollar/2 {
		t.Errorf("asked %d times, spent %+v", asked, spent)
	}
}

// TestProcessesNeverOverspendTogether has several runners step one session at
// once, each of whose rounds asks three services and an arbiter that all cost as
// much as they may.
func TestProcessesNeverOverspendTogether(t *testing.T) {
	for limit := 1; limit <= 20; limit += 3 {
		b := newBench(t)
		var who []string
		for _, id := range []string{"p", "q", "r"} {
			b.cast.play(id, spending("again", cost(dollar), ""))
			who = append(who, web(id, estimated("1")))
		}
		b.cast.judge("judge", costing(electFirst, dollar))
		s := b.start(b.machine(def{who: append(who, human("human"), paidArbiter("1")), top: budget(fmt.Sprintf(`"hard_limit_usd":%d`, limit))}))
		var wg sync.WaitGroup
		for range 4 {
			r := b.runner()
			wg.Go(func() {
				for range 12 {
					tick, err := r.Step(b.ctx, s.ID)
					if err != nil && !errors.Is(err, session.ErrStale) || tick.Status == runner.TickStopped {
						return
					}
				}
			})
		}
		wg.Wait()
		if got := b.now(s).Spent(); got.Money > exact.Money(limit)*dollar || got.Money != dollar*exact.Money(got.Calls) {
			t.Errorf("spent %+v of $%d", got, limit)
		}
	}
}

// TestNobodyIsAskedTooLate: once the time of a session is over nobody is asked any
// more who costs something, and no model by its guards.
func TestNobodyIsAskedTooLate(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", charging("again", dollar))
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("carol"), arbFn("judge")}, top: budget(`"hard_limit_wall_ms":1500`)}))
		b.stepTo(s, runner.TickAdvanced)
		time.Sleep(time.Second)
		b.cast.who()
		tick := b.stepTo(s, runner.TickStopped)
		if who := b.cast.who(); len(who) != 0 || b.now(s).Outcome().Code != "budget_wall" {
			t.Errorf("asked were %v, stopped by %s", who, tick.Code)
		}
	})
	bubble(t, func(b *bench) {
		o := &oracle{before: func(truth.CompletionPurpose) error { time.Sleep(time.Second); return nil }}
		r := b.runner(inBubble, o.with)
		b.cast.say("a", "again")
		s, err := r.Start(b.ctx, b.machine(def{who: []string{fn("a"), human("carol"), half}, top: `"guards":{"truth":{"model":"m"},"budget":{"hard_limit_wall_ms":3500,"probe_share_max":1}}`}), runner.StartOptions{})
		b.ok(err)
		tick, err := r.Step(b.ctx, s.ID)
		if err != nil || tick.Code != "budget_wall" || o.asked() != 4 {
			t.Errorf("came to %s after %d questions, %v", tick.Code, o.asked(), err)
		}
	})
}

// TestBudgetHoldsWhatIsOut: an ask that will be answered later holds what it may
// cost, also from the steps after the one that sent it, and for other processes.
func TestBudgetHoldsWhatIsOut(t *testing.T) {
	for _, mode := range []machine.Mode{machine.All, machine.Eager} {
		b := newBench(t, public)
		b.cast.play("w", accepting)
		b.cast.play("a", spending("again", cost(dollar), ""))
		b.cast.judge("judge", electFirst)
		m := b.machine(def{who: []string{web("w", estimated("1")), web("a", estimated("1")), human("human"), arbFn("judge")}, top: budget(`"hard_limit_usd":1.5`)})
		s := b.start(m, runner.StartOptions{Mode: mode})
		b.step(s)
		ask := b.cast.lastAsk()
		for _, r := range []*runner.Runner{b.r, b.runner(public)} {
			_, err := r.Step(b.ctx, s.ID)
			b.ok(err)
		}
		if who := b.cast.who(); !slices.Equal(who, []string{"w"}) {
			t.Errorf("mode %s: asked were %v while $1 of $1.5 is held", mode, who)
		}
		_, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "again", Usage: cost(dollar / 4)})
		b.ok(err)
		for b.now(s).Executed == 0 {
			b.step(s)
		}
		if who := b.cast.who(); !slices.Contains(who, "a") || b.now(s).Spent().Money != dollar+dollar/4 {
			t.Errorf("mode %s: asked were %v once it was released, spent is %+v", mode, who, b.now(s).Spent())
		}
	}
}

// TestLostAsksThatHoldEachOther: asks of models whose process is lost are charged when they are repeated. Where what
// they hold leaves no room for any of that, no round waits for them: nobody else will give anything back.
func TestLostAsksThatHoldEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := modelBench(t, inBubble)
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			b.cast.play(id, hanging)
		}
		s := b.start(b.machine(def{who: []string{llm("a", "free"), llm("b", "free"), llm("c", "free"), arb("firstProposal")}, top: budget(`"hard_limit_calls":3`)}))
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		if _, err := b.r.Step(ctx, s.ID); err == nil || len(b.cast.who()) != len(ids) {
			t.Fatalf("the step that is cancelled returns %v", err)
		}
		b.ok(b.r.Close())
		b.r = b.runner(inBubble, withModels(&b))
		for range 3 {
			if b.now(s).Status.Live() {
				b.step(s)
			}
		}
		now := b.now(s)
		if now.Status != session.Stopped || now.Outcome().Code != "budget_calls" || now.Spent().Calls != 3 || len(now.OpenAsks()) != 0 || len(b.cast.who()) != 0 {
			t.Errorf("session %s, %s; spent %+v, out are %d asks; the log is\n%s", now.Status, now.Outcome().Code, now.Spent(), len(now.OpenAsks()), strings.Join(b.told(now), "\n"))
		}
	})
}
