package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// repairers are models that may need two repairs and get refused six times. Each of
// their calls takes a second and needs what was expected of it.
type repairers struct {
	strategies.Registry // of nobody
	mu                  sync.Mutex
	full                int               // asks that ran out of room
	wants               map[string][]bool // by specialist: the calls it makes, true for those that are billed
	rooms               map[string]specialist.CallLimit
}

type mender struct{ *repairers }

func (m *repairers) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.ModelID == "" {
		return nil, nil
	}
	return mender{m}, nil
}

// Estimate implements specialist.Estimator.
func (mender) Estimate(specialist.Question) specialist.Estimate {
	return specialist.Estimate{Model: "cheap", InputTokens: 1000, OutputTokens: 500, Repairs: 2, RepairInput: 100, Retries: 6}
}

// Propose implements specialist.Proposer.
func (m mender) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	room := specialist.CallLimitOf(ctx)
	m.mu.Lock()
	m.rooms[q.Self] = room
	m.mu.Unlock()
	a := specialist.Answer{TransitionName: "again", Model: "cheap"}
	for i, billed := range m.wants[q.Self] {
		if i > 0 && (room.Calls != 0 && a.Usage.Made() >= room.Calls || room.Billed != 0 && a.Usage.Billed() >= room.Billed) {
			m.mu.Lock()
			m.full++
			m.mu.Unlock()
			return a, errors.New("no room")
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return a, ctx.Err()
		}
		u := specialist.Usage{}.WithCalls(1, 1)
		if billed {
			u = tokens(1000, 500)
		}
		a.Usage = a.Usage.Plus(u)
	}
	return a, nil
}

func (b *bench) repairing(m *repairers) *runner.Runner {
	table, _ := spend.ParsePrices([]byte(`{"prices":{"cheap":{"input_per_1m":100,"output_per_1m":800}}}`))
	return b.runner(inBubble, asking(m), func(c *runner.Config) { c.Prices = table })
}

// TestRepairsNeverOverspend: whatever the limits, and however often proposers that
// are asked at once repair their answers or are refused, together they never spend
// more than a limit allows, in dollars, tokens and calls, and every call is counted.
func TestRepairsNeverOverspend(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	kinds := map[string]int{}
	for range 150 {
		limit := map[string]string{
			"usd":    fmt.Sprintf(`"hard_limit_usd":%d.%d`, rng.IntN(6), rng.IntN(10)),
			"tokens": fmt.Sprintf(`"hard_limit_tokens":%d`, 1000+rng.IntN(20_000)),
			"calls":  fmt.Sprintf(`"hard_limit_calls":%d`, 1+rng.IntN(12)),
		}[[]string{"usd", "tokens", "calls"}[rng.IntN(3)]]
		m := &repairers{wants: map[string][]bool{}, rooms: map[string]specialist.CallLimit{}}
		who := []string{arbFn("judge")}
		for i := range 1 + rng.IntN(5) {
			id := string(rune('a' + i))
			for range 1 + rng.IntN(5) {
				m.wants[id] = append(m.wants[id], rng.IntN(3) > 0)
			}
			who = append(who, llm(id, "cheap"))
		}
		bubble(t, func(b *bench) {
			b.r = b.repairing(m)
			b.cast.judge("judge", electFirst)
			s := b.start(b.machine(def{who: who, top: budget(limit)}))
			for range 4 {
				if b.now(s).Status != session.Running {
					break
				}
				b.step(s)
			}
			made := spend.Book{}
			for _, e := range b.usages(s) {
				made.Calls, made.Money = made.Calls+e.Made(), made.Money.Add(e.CostUSD)
				made.TokensIn, made.TokensOut = made.TokensIn+e.NumInputTokens, made.TokensOut+e.NumOutputTokens
			}
			spent := b.now(s).Spent()
			if spent.Calls != made.Calls || spent.Money != made.Money || spent.TokensIn != made.TokensIn || spent.Unpriced != 0 {
				t.Errorf("seed %d: %s: spent %+v, the answers say %+v", seed, limit, spent, made)
			}
			c := b.now(s).Program.Guards(b.now(s).State)
			if over := c.Budget.Over(spent); over != nil {
				t.Errorf("seed %d: %s: %v after %+v", seed, limit, over, m.wants)
			}
			for _, kind := range []string{"budget_", "proposed"} {
				if strings.Contains(b.log(s, 0), kind) {
					kinds[kind]++
				}
			}
			if m.full > 0 {
				kinds["no room"]++
			}
		})
	}
	if len(kinds) < 3 {
		t.Errorf("seed %d: only %v happened: the test shows nothing", seed, kinds)
	}
}

// usages returns what the answers in a session's log say they cost.
func (b *bench) usages(s *session.Session) (list []specialist.Usage) {
	f := folderOf(b, s.Machine())
	for _, rec := range b.records(s) {
		events, err := f.Add(rec.Events)
		b.ok(err)
		for _, e := range events {
			switch d := e.Data.(type) {
			case *session.Proposed:
				list = append(list, d.Usage)
			case *session.AskFailed:
				if d.Usage != (specialist.Usage{}) {
					list = append(list, d.Usage)
				}
			}
		}
	}
	return list
}

// TestRoomIsShared: room for repairs goes round, and nobody is refused because
// others might need it.
func TestRoomIsShared(t *testing.T) {
	for _, c := range []struct {
		limit string
		want  string // room for calls that may be billed, and for calls of any kind
	}{
		{`"hard_limit_usd":100`, "a 3/0, b 3/0"},
		{`"hard_limit_usd":2.6`, "a 3/0, b 2/0"},
		{`"hard_limit_usd":1.4`, "a 1/0, b 1/0"},
		{`"hard_limit_calls":2`, "a 1/1, b 1/1"},
		{`"hard_limit_calls":5`, "a 3/3, b 2/2"},
		{`"hard_limit_calls":9`, "a 3/5, b 3/4"},
		{`"hard_limit_calls":100`, "a 3/9, b 3/9"},
		{`"soft_limit_usd":1`, "a 3/0, b 3/0"},
	} {
		m := &repairers{wants: map[string][]bool{"a": {true}, "b": {true}}, rooms: map[string]specialist.CallLimit{}}
		bubble(t, func(b *bench) {
			b.r = b.repairing(m)
			b.cast.judge("judge", electFirst)
			b.step(b.start(b.machine(def{who: []string{llm("a", "cheap"), llm("b", "cheap"), arbFn("judge")}, top: budget(c.limit)})))
		})
		got := fmt.Sprintf("a %d/%d, b %d/%d", m.rooms["a"].Billed, m.rooms["a"].Calls, m.rooms["b"].Billed, m.rooms["b"].Calls)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.limit, got, c.want)
		}
	}
}

// TestLostModelIsCharged: a model that a lost process had asked is asked again under
// its key. It knows no keys, so what was asked before is charged as estimated, and
// the budget is looked at again.
func TestLostModelIsCharged(t *testing.T) {
	for limit, want := range map[string]struct {
		status runner.TickStatus
		calls  int64
		money  exact.Money
	}{
		`"hard_limit_usd":100`: {runner.TickAdvanced, 2, exact.Dollar},
		`"hard_limit_usd":0.9`: {runner.TickStopped, 1, exact.Dollar / 2},
		`"hard_limit_calls":1`: {runner.TickStopped, 1, exact.Dollar / 2},
	} {
		bubble(t, func(b *bench) {
			m := &repairers{wants: map[string][]bool{"a": {true}}, rooms: map[string]specialist.CallLimit{}}
			b.r = b.repairing(m)
			s := b.start(b.machine(def{who: []string{llm("a", "cheap"), arb("firstProposal")}, top: budget(limit)}))
			ctx, cancel := context.WithTimeout(b.ctx, time.Second/2)
			defer cancel()
			if _, err := b.r.Step(ctx, s.ID); err == nil {
				t.Fatal("a step that was given up succeeds")
			}
			b.ok(b.r.Close())
			b.r = b.repairing(m)
			b.stepTo(s, want.status)
			if spent := b.now(s).Spent(); spent.Calls != want.calls || spent.Money != want.money || spent.Estimated != 1 {
				t.Errorf("%s: spent %+v, want %d calls for $%s", limit, spent, want.calls, want.money)
			}
			if book := folderOf(t, s.Machine()); book != nil { // a log that is read back says the same
				for _, rec := range b.records(s) {
					_, err := book.Add(rec.Events)
					b.ok(err)
				}
				if book.Session().Spent() != b.now(s).Spent() {
					t.Errorf("%s: read back, it has spent %+v", limit, book.Session().Spent())
				}
			}
		})
	}
}

// TestLostModelIsReserved: what a lost process had asked of a model will be charged
// whatever becomes of it, so nobody who is asked beside it for the first time may use
// that up.
func TestLostModelIsReserved(t *testing.T) {
	bubble(t, func(b *bench) {
		m := &repairers{wants: map[string][]bool{"a": {true}}, rooms: map[string]specialist.CallLimit{}}
		b.r = b.repairing(m)
		s := b.start(b.machine(def{who: []string{web("x", estimated("0.5")), llm("a", "cheap"), arb("firstProposal")}, top: budget(`"hard_limit_usd":0.9`)}))
		b.ok(b.r.Disable(b.ctx, "desk", "x"))
		ctx, cancel := context.WithTimeout(b.ctx, time.Second/2)
		defer cancel()
		if _, err := b.r.Step(ctx, s.ID); err == nil {
			t.Fatal("a step that was given up succeeds")
		}
		b.ok(b.r.Close())
		b.r = b.repairing(m)
		b.ok(b.r.Enable(b.ctx, "desk", "x"))
		b.cast.say("x", "again")
		b.stepTo(s, runner.TickStopped)
		if spent := b.now(s).Spent(); spent.Money != exact.Dollar/2 || len(b.cast.who()) != 0 {
			t.Errorf("of $0.9 were spent %+v", spent)
		}
	})
}

// TestVerdictHoldsTheRest: who is to be asked again finds the rest of the budget held
// for a verdict that is out. The step waits for that, or asks for it again where nobody
// else does; it used to look for room for ever.
func TestVerdictHoldsTheRest(t *testing.T) {
	for _, mode := range []string{"all", "eager"} {
		b := newBench(t)
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{Usage: specialist.Usage{}.WithCost(0)}, errors.New("not now")
		})
		b.cast.say("b", "again")
		other := b.runner()
		ctx, cancel := context.WithCancel(b.ctx)
		s := b.start(b.machine(def{who: []string{web("a", estimated("0.4")), fn("b"), paidArbiter("0.5")}, top: `"quorum":"any","solicit":"` + mode + `",` + budget(`"hard_limit_usd":0.8`)}))
		b.cast.judge("judge", arbiter.Func(func(inner context.Context, _ *arbiter.Round) (arbiter.Decision, error) {
			b.cast.judge("judge", electFirst)
			_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
			b.ok(err)
			b.stepTo(s, runner.TickWaiting) // meanwhile, here
			cancel()
			<-inner.Done()
			return arbiter.Decision{}, inner.Err()
		}))
		for err := error(nil); !errors.Is(err, context.Canceled); {
			if _, err = other.Step(ctx, s.ID); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: the other process: %v", mode, err)
			}
		}
		b.ok(other.Close())
		b.stepTo(s, runner.TickAdvanced)
	}
}

// TestProposeIsInTheBudget: somebody who is asked on request is asked within the
// budget too.
func TestProposeIsInTheBudget(t *testing.T) {
	bubble(t, func(b *bench) {
		m := &repairers{wants: map[string][]bool{"a": {true}}, rooms: map[string]specialist.CallLimit{}}
		b.r = b.repairing(m)
		s := b.start(b.machine(def{who: []string{llm("a", "cheap"), arb("firstProposal")}, top: budget(`"hard_limit_usd":0.4`)}))
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
		if err == nil || !strings.Contains(err.Error(), "above the limit of $0.4") || len(m.rooms) != 0 {
			t.Errorf("%v", err)
		}
	})
}

// TestUnbilledCalls: what a provider refused is a call without a cost, not one
// without a price, also of a model that has none; and it is not charged again as
// expected when time is up.
func TestUnbilledCalls(t *testing.T) {
	b := modelBench(t)
	b.cast.play("m", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{Usage: specialist.Usage{}.WithCalls(1, 1), Model: "new"}, errors.New("LLM API error (401): wrong key")
	})
	b.cast.play("n", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{Usage: specialist.Usage{}.WithCalls(2, 2), Model: "new"}, context.DeadlineExceeded
	})
	s := b.start(b.machine(def{who: []string{llm("m", "new"), llm("n", "new"), fn("f"), arb("firstProposal")}, top: `"guards":{"cost":{"max_dollars_per_task":1,"on_unknown_model":"abort"}}`}))
	b.cast.play("f", saying("again"))
	b.step(s)
	if got := b.now(s).Spent(); got.Unpriced != 0 || got.Money != 0 || got.Calls > 3 || b.now(s).Status != session.Running {
		t.Errorf("%+v, %s", got, b.now(s).Status)
	}
}

// TestOtherNames: under which name a model answers, and what it is charged as.
func TestOtherNames(t *testing.T) {
	table, problems := spend.ParsePrices([]byte(`{"prices":{
		"maker/small":{"input_per_1m":100},"maker/small-pro":{"input_per_1m":900},"maker/dated-2024-05-13":{"input_per_1m":500},"maker/dated":{"input_per_1m":200},"other":{"input_per_1m":300}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		asked, answered string
		want            string // dollars for 10,000 tokens; "" for none
		estimated       bool
	}{
		{"maker/small", "", "1", false},
		{"maker/small", "small", "1", false},
		{"maker/small", "small-2024-07-18", "1", false},
		{"maker/small:free", "maker/small:free", "1", false},
		{"maker/small-latest", "small-20240718", "1", false},
		{"maker/dated", "maker/dated-2024-05-13", "5", false},
		{"maker/dated", "maker/dated-2024-08-06", "2", false},
		{"maker/small", "maker/small-pro", "9", false},
		{"maker/small", "maker/small-pro-2025-10-06", "9", false},
		{"maker/small", "maker/small-mini", "", false},
		{"maker/small-mini", "maker/small", "1", false},
		{"maker/small", "other", "3", false},
		{"maker/small", "model.gguf", "1", true},
		{"nobody/knows", "model.gguf", "", false},
	} {
		b := newBench(t, func(rc *runner.Config) { rc.Prices = table })
		b.r = b.runner(asking(models{cast: b.cast}), func(c *runner.Config) { c.Prices = table })
		called := spend.CalledOf(c.asked, c.answered)
		b.cast.play("m", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{TransitionName: "again", Usage: tokens(10_000, 0), Model: called.Model, Asked: called.Asked, Answered: called.Answered}, nil
		})
		s := b.start(b.machine(def{who: []string{web("m"), arb("firstProposal")}, top: `"guards":{"cost":{"max_dollars_per_task":100}}`}))
		tick := b.step(s)
		spent := b.now(s).Spent()
		got := ""
		if spent.Unpriced == 0 {
			got = spent.Money.String()
		}
		if got != c.want || (spent.Estimated == 1) != c.estimated {
			t.Errorf("%s answers for %s: $%s, %d estimated, want $%s", c.answered, c.asked, got, spent.Estimated, c.want)
		}
		if c.want != "" {
			continue
		}
		if o := b.now(s).Outcome(); tick.Code != "unpriced_model" || !strings.Contains(o.Reason, c.answered) || !strings.Contains(o.Reason, c.asked) {
			t.Errorf("%s answers for %s: %s: %s", c.answered, c.asked, tick.Code, o.Reason)
		}
	}
}

// TestRepairsInAQuota: what repairs take counts for the tenant too, and another
// process that reads what was used says the same.
func TestRepairsInAQuota(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(b *bench) {
			m := &repairers{wants: map[string][]bool{"a": {true, true, true}}, rooms: map[string]specialist.CallLimit{}}
			limited := tenants(spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Sliding: true, Calls: new(int64(8))}}})
			configure := func(c *runner.Config) { limited(c); asking(m)(c); c.Now = time.Now }
			b.r = b.runner(configure)
			s := b.startOf(b.machine(def{who: []string{llm("a", "free"), arb("firstProposal")}}), "acme")
			var rooms []int64
			for range 3 {
				b.stepTo(s, runner.TickAdvanced)
				rooms = append(rooms, m.rooms["a"].Billed)
				m.wants["a"] = m.wants["a"][:2]
				if restart {
					b.ok(b.r.Close())
					b.r = b.runner(configure)
				}
			}
			if fmt.Sprint(rooms) != "[3 3 3]" || b.now(s).Spent().Calls != 7 {
				t.Errorf("restarted %t: room for %v, spent %+v", restart, rooms, b.now(s).Spent())
			}
			m.wants["a"] = []bool{true}
			b.stepTo(s, runner.TickAdvanced)
			b.stepTo(s, runner.TickStopped)
			if room := m.rooms["a"]; room.Billed != 1 || b.now(s).Outcome().Code != "quota_exceeded" {
				t.Errorf("restarted %t: room for %d of the last call, then %+v", restart, room.Billed, b.now(s).Outcome())
			}
		})
	}
}
