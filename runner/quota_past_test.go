package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A company is a bench on a SQLite file whose process can be started anew.
type company struct {
	*bench
	path  string
	quota spend.Quota
	late  time.Duration // what the clock is ahead
	sql   *store.SQLite
}

func newCompany(t *testing.T, q spend.Quota) *company {
	t.Helper()
	c := &company{path: filepath.Join(t.TempDir(), "dialai.db"), quota: q}
	t.Cleanup(func() { c.ok(c.sql.Close()) }) // after the bench has looked at the logs
	c.bench = newBench(t)
	c.restart()
	return c
}

// restart begins a new process on the same file.
func (c *company) restart() {
	c.Helper()
	if c.sql != nil {
		c.ok(c.r.Close())
		c.ok(c.sql.Close())
	}
	var err error
	c.sql, err = store.OpenSQLite(c.ctx, c.path, store.SQLiteOptions{})
	c.ok(err)
	c.r = c.process()
}

// process returns a further process on the open file.
func (c *company) process() *runner.Runner {
	return c.runner(tenants(c.quota), func(config *runner.Config) {
		config.Store = c.sql
		now := config.Now
		config.Now = func() time.Time { return now().Add(c.late) }
	})
}

// spends is a machine whose only service costs a dollar and says so.
func (c *company) spends() *machine.Machine {
	c.cast.play("a", spending("again", cost(dollar), ""))
	c.cast.judge("judge", electFirst)
	return c.machine(def{who: []string{web("a", estimated("1")), human("human"), arbFn("judge")}})
}

// TestQuotaSurvivesARestart: what a tenant used is still used after a restart, as
// long as its window has not passed, and however often it is read it counts once.
func TestQuotaSurvivesARestart(t *testing.T) {
	hour := spend.Window{Msec: 3_600_000, Sliding: true, USD: new(3 * exact.Dollar)}
	c := newCompany(t, spend.Quota{Windows: []spend.Window{hour}})
	m := c.spends()
	first, rich := c.startOf(m, "acme"), c.startOf(m, "rich")
	c.stepTo(rich, runner.TickAdvanced)
	c.stepTo(first, runner.TickAdvanced)
	c.stepTo(first, runner.TickAdvanced)
	c.restart()
	c.restart()
	c.stepTo(first, runner.TickAdvanced) // $3 of $3: nothing counted twice
	c.restart()
	second := c.startOf(m, "acme")
	if tick := c.stepTo(second, runner.TickStopped); tick.Code != "quota_exceeded" {
		t.Errorf("after a restart: stopped by %s", tick.Code)
	}
	c.stepTo(rich, runner.TickAdvanced)
	c.stepTo(c.startOf(m, "another"), runner.TickAdvanced)
	c.late = 30 * time.Minute
	c.restart()
	_, err := c.r.Resume(c.ctx, second.ID, runner.ResumeOptions{})
	c.ok(err)
	c.stepTo(second, runner.TickStopped)
	c.late = 2 * time.Hour
	c.restart()
	_, err = c.r.Resume(c.ctx, second.ID, runner.ResumeOptions{})
	c.ok(err)
	c.stepTo(second, runner.TickAdvanced)
}

// A halting is a store that cannot read logs for a while.
type halting struct {
	*store.SQLite
	fails *int // how many more times
}

func (h halting) Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	if *h.fails > 0 {
		*h.fails--
		return func(yield func(session.StoredRecord, error) bool) { yield(session.StoredRecord{}, context.Canceled) }
	}
	return h.SQLite.Records(ctx, id, from)
}

// Log fails after one record.
func (h halting) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	if *h.fails == 0 {
		return h.SQLite.Log(ctx, machineName, after)
	}
	*h.fails--
	return func(yield func(session.LogEntry, error) bool) {
		for e, err := range h.SQLite.Log(ctx, machineName, after) {
			_ = yield(e, err) && yield(session.LogEntry{}, context.Canceled)
			return
		}
	}
}

// TestQuotaSurvivesARestartThatFails: what cannot be read at first is not taken for
// nothing once it can. The error says which log it was.
func TestQuotaSurvivesARestartThatFails(t *testing.T) {
	c := newCompany(t, spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, USD: new(exact.Dollar)}}})
	m := c.spends()
	c.stepTo(c.startOf(m, "acme"), runner.TickAdvanced)
	for _, fails := range []int{1, 2} { // to say whose the session is, and what it spent
		c.restart()
		left := 0
		c.r = c.runner(tenants(c.quota), func(config *runner.Config) {
			config.Store = halting{c.sql, &left}
		})
		if fails == 2 {
			c.ok(c.r.Meet(c.ctx, c.startOf(m, "another")))
		}
		left = 1
		_, err := c.r.Start(c.ctx, m, runner.StartOptions{Meta: []byte(`{"tenant":"acme"}`)})
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), `what tenant "acme" used before: session `) {
			t.Errorf("a log that cannot be read: %v", err)
		}
		if tick := c.stepTo(c.startOf(m, "acme"), runner.TickStopped); tick.Code != "quota_exceeded" {
			t.Errorf("after failure %d: stopped by %s", fails, tick.Code)
		}
	}
}

// TestQuotaOfCallsAndTokensSurvivesARestart: the other units, and the dollars of a
// minute.
func TestQuotaOfCallsAndTokensSurvivesARestart(t *testing.T) {
	for _, q := range []spend.Quota{
		{Windows: []spend.Window{{Msec: 1 << 40, Calls: new(int64(2))}}},
		{Windows: []spend.Window{{Msec: 1 << 40, Tokens: new(int64(199))}}},
		{USDPerMinute: new(2 * exact.Dollar)},
	} {
		c := newCompany(t, q)
		use := cost(dollar)
		use.NumInputTokens, use.NumOutputTokens, use.Given = 60, 40, use.Given|specialist.InputGiven|specialist.OutputGiven
		m := c.spends()
		c.cast.play("a", spending("again", use, ""))
		s := c.startOf(m, "acme")
		c.stepTo(s, runner.TickAdvanced)
		c.stepTo(s, runner.TickAdvanced)
		c.restart()
		if tick := c.stepTo(s, runner.TickStopped); tick.Code != "quota_exceeded" && tick.Code != "quota_velocity" {
			t.Errorf("%+v: stopped by %s", q, tick.Code)
		}
	}
}

// TestQuotaOfSessionsSurvivesARestart: sessions that are open count, those that
// have ended do not, whoever ended them.
func TestQuotaOfSessionsSurvivesARestart(t *testing.T) {
	c := newCompany(t, spend.Quota{MaxSessions: new(int64(2))})
	c.cast.say("a", "finish")
	m := c.desk(fn("a"), human("human"), half)
	start := func() error {
		_, err := c.r.Start(c.ctx, m, runner.StartOptions{Meta: []byte(`{"tenant":"acme"}`)})
		return err
	}
	done, open := c.startOf(m, "acme"), c.startOf(m, "acme")
	c.stepTo(done, runner.TickAdvanced)
	c.restart()
	c.ok(start())
	if err := start(); !errors.Is(err, runner.ErrQuota) {
		t.Errorf("the third session: %v", err)
	}
	other := c.process()
	tick, err := other.Step(c.ctx, open.ID)
	c.ok(err)
	if tick.Status != runner.TickAdvanced {
		t.Fatalf("the other process came to %s", tick.Status)
	}
	c.ok(start()) // it has ended elsewhere
	if err := start(); !errors.Is(err, runner.ErrQuota) {
		t.Errorf("the fourth session: %v", err)
	}
}

// TestQuotaHoldsWhatIsOutAfterARestart: an ask that nobody has answered yet is
// charged as estimated, and once when it is answered after all.
func TestQuotaHoldsWhatIsOutAfterARestart(t *testing.T) {
	c := newCompany(t, spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(4 * exact.Dollar)}}})
	m := c.spends()
	c.cast.judge("judge", electFirst)
	ctx, kill := context.WithCancel(c.ctx)
	c.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		kill() // the process ends here
		return specialist.Answer{}, ctx.Err()
	})
	s := c.startOf(m, "acme")
	if _, err := c.r.Step(ctx, s.ID); err == nil {
		t.Fatal("the step was not given up")
	}
	c.restart()
	c.ok(c.r.Meet(c.ctx, c.now(s)))
	if used, open := c.r.QuotaUsed("acme"); used != [3]int64{1, 0, int64(dollar)} || open != 1 {
		t.Errorf("with an ask that is out: %v used in %d sessions", used, open)
	}
	c.cast.play("a", spending("again", cost(3*dollar), ""))
	c.stepTo(s, runner.TickAdvanced) // it costs more than was thought
	if used, _ := c.r.QuotaUsed("acme"); used != [3]int64{1, 0, 3 * int64(dollar)} {
		t.Errorf("once it is answered: %v used", used)
	}
	c.restart()
	c.ok(c.r.Meet(c.ctx, c.now(s)))
	if used, _ := c.r.QuotaUsed("acme"); used != [3]int64{1, 0, 3 * int64(dollar)} {
		t.Errorf("after another restart: %v used", used)
	}
}

// TestQuotaAfterARestartIsWhatItWas: whoever is asked, and whatever becomes of it,
// the log says what the windows of the process that asked have counted.
func TestQuotaAfterARestartIsWhatItWas(t *testing.T) {
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := newCompany(t, spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(1000 * exact.Dollar)}}})
		m := c.random(rng)
		for range 3 {
			s := c.startOf(m, "acme")
			for range 6 {
				tick, err := c.r.Step(c.ctx, s.ID)
				c.ok(err)
				if tick.Status == runner.TickHuman {
					c.force(s, "again")
				}
			}
		}
		was, open := c.r.QuotaUsed("acme")
		c.restart()
		s := c.startOf(m, "rich")
		c.ok(c.r.Meet(c.ctx, s))
		c.ok(c.r.Meet(c.ctx, c.startOf(m, "acme")))
		if is, now := c.r.QuotaUsed("acme"); is != was || now != open+1 {
			t.Fatalf("seed %d: %v were used in %d sessions, after a restart %v in %d, one of them new", seed, was, open, is, now)
		}
	}
}

// random returns a machine whose services and functions answer at random: with a
// cost, without, not at all, or with what is not legal.
func (c *company) random(rng *rand.Rand) *machine.Machine {
	seed := rng.Uint64()
	answer := func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		rng := rand.New(rand.NewPCG(seed, uint64(q.Key.Round)<<32|uint64(q.Key.Attempt)<<16|uint64(q.Self[0])<<8|uint64(q.Self[1])))
		a := specialist.Answer{TransitionName: "again"}
		if rng.IntN(3) > 0 {
			a.Usage = cost(exact.Money(rng.Int64N(int64(dollar))))
			a.Usage.NumInputTokens, a.Usage.Given = rng.Int64N(100), a.Usage.Given|specialist.InputGiven
		}
		switch rng.IntN(5) {
		case 0:
			return a, errors.New("out of order")
		case 1:
			a.TransitionName = "nowhere"
		}
		return a, nil
	}
	var who []string
	for i := range 1 + rng.IntN(3) {
		id := fmt.Sprint("w", i)
		c.cast.play(id, answer)
		who = append(who, web(id, estimated("0.5")))
	}
	for i := range rng.IntN(3) {
		id := fmt.Sprint("f", i)
		c.cast.play(id, answer)
		if rng.IntN(2) == 0 {
			who = append(who, fn(id, estimated("0.5")))
		} else {
			who = append(who, fn(id))
		}
	}
	c.cast.judge("judge", costing(electFirst, dollar/4))
	arbiters := []string{half, arbFn("judge"), paidArbiter("0.5")}
	return c.machine(def{who: append(who, human("human"), arbiters[rng.IntN(3)])})
}

// TestQuotaOfLateAnswers: who will answer later is charged as estimated, and what it
// says it cost corrects that.
func TestQuotaOfLateAnswers(t *testing.T) {
	b := newBench(t, public, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(9 * exact.Dollar)}}}))
	s, ask := b.late(estimated("1"))
	if used, _ := b.r.QuotaUsed(""); used != [3]int64{1, 0, int64(dollar)} {
		t.Errorf("until it answers: %v", used)
	}
	_, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "park", Usage: cost(3 * dollar)})
	b.ok(err)
	if used, _ := b.r.QuotaUsed(""); used != [3]int64{1, 0, 3 * int64(dollar)} || b.now(s).Spent().Money != 3*dollar {
		t.Errorf("once it has answered: %v", used)
	}
}

// TestProposeKeepsToBudgets: whoever has somebody asked by hand cannot spend what
// nobody else could.
func TestProposeKeepsToBudgets(t *testing.T) {
	for _, c := range []struct {
		top, code string
		quota     spend.Quota
	}{
		{top: budget(`"hard_limit_usd":0.5`), code: "budget_usd"},
		{code: "quota_exceeded", quota: spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(exact.Dollar / 2)}}}},
	} {
		b := newBench(t, tenants(c.quota))
		b.cast.play("a", spending("again", cost(dollar), ""))
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("human"), half}, top: c.top}))
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
		if e, ok := errors.AsType[*runner.Error](err); !ok || e.Code != c.code || len(b.cast.who()) != 0 {
			t.Errorf("%s: %v", c.code, err)
		}
	}
}
