package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// TestStatuses brings a step to everything it can come to, with its code and
// reason, and then steps again: what has come to rest stays as it is.
func TestStatuses(t *testing.T) {
	const cellar = `"open":{"transitions":{"down":"cellar","leave":"left","finish":"done"}},"cellar":{},"left":{"final":true},"done":{}`
	aborting := func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", verdict.Abort, "house", "never")} }
	escalating := func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("again", verdict.Escalate, "house", "ask somebody")}
	}
	judged := func(a arbiter.Func) func(*bench) { return func(b *bench) { b.cast.judge("judge", a) } }
	for _, c := range []struct {
		name      string
		d         def
		says      map[string]string
		configure []func(*runner.Config)
		prepare   func(*bench)
		steps     int // before the one that counts

		status         runner.TickStatus
		session        session.Status
		code, reason   string
		again          runner.TickStatus
		state          string
		unmovedByAgain bool
	}{
		{name: "advanced", d: def{who: []string{fn("a"), half}}, says: map[string]string{"a": "again"},
			status: runner.TickAdvanced, reason: "Single proposal with no competing proposals", again: runner.TickAdvanced, state: "open"},
		{name: "advanced to the goal", d: def{who: []string{fn("a"), half}}, says: map[string]string{"a": "finish"},
			status: runner.TickAdvanced, session: session.Completed, code: "goal", reason: "Single proposal with no competing proposals", again: runner.TickCompleted, state: "done", unmovedByAgain: true},
		{name: "completed", d: def{who: []string{fn("a"), half}}, says: map[string]string{"a": "finish"}, steps: 1,
			status: runner.TickCompleted, session: session.Completed, code: "goal", again: runner.TickCompleted, state: "done", unmovedByAgain: true},
		{name: "ended in a final state", d: def{who: []string{fn("a"), half}, states: cellar}, says: map[string]string{"a": "leave"}, steps: 1,
			status: runner.TickCompleted, session: session.Completed, code: "final", again: runner.TickCompleted, state: "left", unmovedByAgain: true},
		{name: "solicited", d: def{who: []string{fn("a"), fn("b"), half}, top: `"solicit":"eager"`}, says: map[string]string{"a": "again", "b": "again"},
			status: runner.TickSolicited, again: runner.TickHuman, state: "open"},
		{name: "cold start", d: def{who: []string{fn("a"), fn("b"), half}}, says: map[string]string{"a": "again", "b": "finish"},
			status: runner.TickHuman, session: session.NeedsHuman, code: "cold_start", reason: "Cold start: no alignment data available, human input required", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "below the threshold", d: def{who: []string{fn("good"), fn("twin"), human("human"), half}}, says: map[string]string{"good": "again", "twin": "finish"},
			prepare: func(b *bench) {
				m := b.desk(fn("good"), fn("twin"), human("human"), half)
				b.train(m, "good", 9, 9)
				b.train(m, "twin", 9, 9)
			},
			status: runner.TickHuman, session: session.NeedsHuman, code: "below_threshold", reason: "Alignment-weighted margin 0.00 below threshold 0.5", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "not trusted", d: def{who: []string{fn("a"), half}, top: `"requireTrust":true`}, says: map[string]string{"a": "again"},
			status: runner.TickHuman, session: session.NeedsHuman, code: "untrusted", reason: "Single proposal from a is not trusted (alignment 0.00), human input required", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "nobody to ask", d: def{who: []string{human("human"), half}},
			status: runner.TickHuman, session: session.NeedsHuman, code: "no_proposals", reason: "No proposals", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "nobody to ask, first proposal", d: def{who: []string{human("human"), arb("firstProposal")}},
			status: runner.TickHuman, session: session.NeedsHuman, code: "no_proposals", reason: "No proposals received", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "all asks failed", d: def{who: []string{fn("a"), fn("b"), half}}, says: map[string]string{"a": "", "b": "nowhere"},
			status: runner.TickHuman, session: session.NeedsHuman, code: "no_proposals", reason: "No proposals", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "the arbiter failed", d: def{who: []string{fn("a"), arbFn("judge")}}, says: map[string]string{"a": "again"},
			prepare: judged(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
				return arbiter.Decision{}, errors.New("no power")
			}),
			status: runner.TickHuman, session: session.NeedsHuman, code: "arbiter_failed", reason: "Arbiter arb failed: no power", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "the arbiter elects what is not there", d: def{who: []string{fn("a"), arbFn("judge")}}, says: map[string]string{"a": "again"},
			prepare: judged(func(context.Context, *arbiter.Round) (arbiter.Decision, error) { return arbiter.Elect(4, ""), nil }),
			status:  runner.TickHuman, session: session.NeedsHuman, code: "arbiter_failed", reason: "Winning proposal not found: #4", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "the arbiter forgets to decide", d: def{who: []string{fn("a"), arbFn("judge")}}, says: map[string]string{"a": "again"},
			prepare: judged(func(context.Context, *arbiter.Round) (arbiter.Decision, error) { return arbiter.Decision{}, nil }),
			status:  runner.TickHuman, session: session.NeedsHuman, code: "arbiter_failed", reason: "Arbiter arb failed: the arbiter returned the zero Decision, which decides nothing: use Elect or None", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "a custom arbiter is not sure", d: def{who: []string{fn("a"), arbFn("judge")}}, says: map[string]string{"a": "again"}, prepare: judged(electNone),
			status: runner.TickHuman, session: session.NeedsHuman, code: "no_consensus", reason: "not sure", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "a guard escalates", d: def{who: []string{fn("a"), half}}, says: map[string]string{"a": "again"}, configure: []func(*runner.Config){escalating},
			status: runner.TickHuman, session: session.NeedsHuman, code: "house", reason: "house: ask somebody", again: runner.TickHuman, state: "open", unmovedByAgain: true},
		{name: "a guard aborts", d: def{who: []string{fn("a"), half}}, says: map[string]string{"a": "again"}, configure: []func(*runner.Config){aborting},
			status: runner.TickStopped, session: session.Stopped, code: "house", reason: "never", again: runner.TickStopped, state: "open", unmovedByAgain: true},
		{name: "dead end", d: def{who: []string{fn("a"), half}, states: cellar}, says: map[string]string{"a": "down"}, steps: 1,
			status: runner.TickFailed, session: session.Failed, code: "dead_end", reason: "No transitions available from current state", again: runner.TickFailed, state: "cellar", unmovedByAgain: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.configure...)
			if c.prepare != nil {
				c.prepare(b)
			}
			b.said(c.says)
			s := b.start(b.machine(c.d))
			for range c.steps {
				b.stepTo(s, runner.TickAdvanced)
			}
			tick := b.stepTo(s, c.status)
			now := b.now(s)
			if now.Status != c.session || tick.Code != c.code || tick.Reasoning() != c.reason || now.State.Name != c.state || tick.Session != now {
				t.Errorf("the step came to %s in %s, code %q: %s", now.Status, now.State.Name, tick.Code, tick.Reasoning())
			}
			if o := now.Outcome(); c.session != session.Running && o.Code != c.code {
				t.Errorf("the outcome is %+v", o)
			}
			b.cast.who()
			b.stepTo(s, c.again)
			if after := b.now(s); c.unmovedByAgain && (after.Sequence != now.Sequence || len(b.cast.who()) != 0) {
				t.Errorf("another step wrote\n%s", b.log(s, now.Sequence))
			}
		})
	}
}

// TestRejected has a guard send the round back: a new round id, the same state
// and round, another attempt with notices, everybody asked anew; the third time
// in a row, or the machine's own limit, is for a human.
func TestRejected(t *testing.T) {
	for _, c := range []struct {
		top   string
		limit int
	}{{"", 3}, {`"guards":{"retry":{"max_attempts":1}}`, 1}, {`"guards":{"retry":{"max_attempts":5}}`, 5}} {
		b := newBench(t, func(c *runner.Config) {
			c.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "not on Sundays")}
		})
		var notices []string
		b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			notices = q.Notices
			return specialist.Answer{TransitionName: "again"}, nil
		})
		s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: c.top}))
		ids := map[string]bool{s.Key().ID(): true}
		for i := 1; i < c.limit; i++ {
			tick := b.stepTo(s, runner.TickRejected)
			now := b.now(s)
			if now.Round != 1 || now.Attempt != int32(i) || now.State != s.State || ids[now.Key().ID()] || now.Executed != 0 || tick.Code != "house" || len(now.Proposals()) != 0 {
				t.Errorf("after %d rejections the session is %+v (%s)", i, now, tick.Code)
			}
			ids[now.Key().ID()] = true
			if text := fmt.Sprint(now.Notices()); text != "[house: not on Sundays]" {
				t.Errorf("the notices are %s", text)
			}
		}
		tick := b.stepTo(s, runner.TickHuman)
		if tick.Code != "house" || tick.Reasoning() != "house: not on Sundays" || len(b.cast.who()) != c.limit || c.limit > 1 && fmt.Sprint(notices) != "[house: not on Sundays]" {
			t.Errorf("the last step came to %s: %s, notices %v", tick.Code, tick.Reasoning(), notices)
		}
		b.force(s, "park") // what executes ends the row
		b.force(s, "back")
		if now := b.now(s); now.Rejects != 0 || now.Attempt != 0 || now.Round != 3 || len(now.Notices()) != 0 {
			t.Errorf("afterwards the session is %+v", now)
		}
	}
}

// TestNoticesReachTheNextRound has a guard warn: the step is executed, and the
// next round's proposers are told; without a warning there is no such member.
func TestNoticesReachTheNextRound(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict {
			if s.Transition != "again" {
				return verdict.Verdict{}
			}
			v := verdict.Reject(verdict.Warn, "soft", "careful")
			v.Notices = []string{"Take care."}
			return v
		})}
	})
	var shown string
	b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		shown = string(q.AppendContext(nil, true))
		return specialist.Answer{TransitionName: []string{"again", "park", "back"}[q.Past.Steps()%3]}, nil
	})
	s := b.start(b.desk(fn("a"), half))
	for i, want := range []bool{false, true, false} {
		b.stepTo(s, runner.TickAdvanced)
		if got := strings.Contains(shown, `"notices":["Take care."]`); got != want || strings.Contains(shown, "notices") != want {
			t.Errorf("round %d was asked %s", i+1, shown)
		}
	}
	if d, err := b.r.Decisions(b.ctx, "desk", "", 0); err != nil || d[0].Guard.Status != "warn" || fmt.Sprint(d[0].Guard.Codes) != "[soft]" || d[1].Guard.Status != "ok" {
		t.Errorf("the decisions are %+v (%v)", d, err)
	}
}

// TestResume reopens what may be reopened, with who and why, and nothing else.
func TestResume(t *testing.T) {
	allowed := true
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict {
			if s.Transition == "again" && !allowed {
				return verdict.Reject(verdict.Abort, "house", "never")
			}
			return verdict.Verdict{}
		})}
	})
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "again", Usage: cost(dollar)}, nil
	})
	s := b.start(b.desk(fn("a"), human("human"), half))
	o := runner.ResumeOptions{Actor: someone, Note: "try again"}
	resume := func() *session.Session {
		s, err := b.r.Resume(b.ctx, s.ID, o)
		b.ok(err)
		return s
	}
	if got := resume(); got.Sequence != s.Sequence {
		t.Error("resuming a running session wrote something")
	}
	allowed = false
	b.stepTo(s, runner.TickStopped)
	stopped := b.now(s)
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish"})
	b.refused(err, runner.ErrNotRunning, "Session is not running: "+s.ID.String()+" (stopped)")
	b.cast.who()
	if now := resume(); now.Status != session.Running || now.Key() != s.Key() || now.Spent().Money != dollar || now.Outcome() != (session.Outcome{}) {
		t.Errorf("resumed, the session is %+v", now)
	}
	b.stepTo(s, runner.TickStopped) // judged afresh, asked nobody anew
	allowed = true
	resume()
	b.stepTo(s, runner.TickAdvanced)
	if n := len(b.cast.who()); n != 0 {
		t.Errorf("%d were asked again", n)
	}
	b.wantLog(s, stopped.Sequence, "resumed", "gated again abort", "ended stopped house", "resumed", "gated again ok", "executed a again", "round_opened open 2 0")
	for _, r := range b.raw(s) {
		if r.Kind == "resumed" && string(r.Data) != `{"actor":{"subject":"local:me","method":"local"},"note":"try again"}` {
			t.Errorf("the resumption is %s", r.Data)
		}
	}
	b.force(s, "finish")
	done := b.now(s)
	if got := resume(); got.Sequence != done.Sequence || got.Status != session.Completed {
		t.Error("a completed session was reopened")
	}
	if _, err := b.r.Resume(b.ctx, specialist.SessionID{1}, o); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("resuming nothing: %v", err)
	}
}

// TestRetryFailed asks those whose asks failed again, and only them.
func TestRetryFailed(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "", "b": "again", "c": "", "d": "finish"})
	s := b.start(b.desk(fn("a"), fn("b"), web("c"), fn("d"), human("human"), half))
	b.stepTo(s, runner.TickHuman)
	b.cast.who()
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{KeepFailed: true})
	b.ok(err)
	b.stepTo(s, runner.TickHuman)
	if who := b.cast.who(); len(who) != 0 {
		t.Errorf("a resume that keeps failures asked %v", who)
	}
	b.said(map[string]string{"a": "again", "c": "again"})
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
	b.ok(err)
	b.stepTo(s, runner.TickHuman)
	if who := strings.Join(b.cast.who(), " "); who != "a c" && who != "c a" {
		t.Errorf("asked again were %s", who)
	}
	if n := len(b.now(s).Proposals()); n != 4 {
		t.Errorf("%d proposals", n)
	}
	ids := b.cast.askIDs()
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("c was asked under %v: another ask needs another key", ids)
	}
}

// TestDeadEndStays resumes a dead end: it fails again.
func TestDeadEndStays(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "down")
	s := b.start(b.machine(def{who: []string{fn("a"), half}, states: `"open":{"transitions":{"down":"cellar","finish":"done"}},"cellar":{},"done":{}`}))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickFailed)
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickFailed)
}

// TestRunLimits stops a run that goes round in circles, after so many steps or so
// long; resuming begins a new count.
func TestRunLimits(t *testing.T) {
	for _, c := range []struct {
		takes        time.Duration // each step
		o            runner.RunOptions
		code, reason string
		steps        int32
	}{
		{0, runner.RunOptions{MaxSteps: 7}, "step_limit", "the run reached its limit of 7 transitions", 7},
		{0, runner.RunOptions{}, "step_limit", "the run reached its limit of 1000 transitions", 1000},
		{time.Second, runner.RunOptions{Timeout: 4500 * time.Millisecond}, "time_limit", "the run took longer than its limit of 4.5s", 4},
		{59 * time.Second, runner.RunOptions{MaxSteps: 1e6}, "time_limit", "the run took longer than its limit of 1h0m0s", 61},
	} {
		bubble(t, func(b *bench) {
			b.cast.play("a", after(c.takes, saying("again")))
			s := b.start(b.desk(fn("a"), half))
			for range 2 {
				before := b.now(s)
				result, err := b.r.Run(b.ctx, s.ID, c.o)
				b.ok(err)
				took := result.Session.Executed - before.Executed
				if result.Status != "stopped" || result.Code != c.code || result.Reason != c.reason || took != c.steps {
					t.Errorf("the run came to %s, %s: %s after %d steps", result.Status, result.Code, result.Reason, took)
				}
				if c.steps > 100 {
					b.forget()
					return
				}
				_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
				b.ok(err)
			}
		})
	}
}

// TestRunEnds runs to every end that is not a limit.
func TestRunEnds(t *testing.T) {
	states := `"open":{"transitions":{"finish":"done","leave":"left","down":"cellar","again":"open"}},"left":{"final":true},"cellar":{},"done":{}`
	for says, want := range map[string]string{
		"finish": "completed goal done", "leave": "completed final left", "down": "failed dead_end cellar", "": "needs_human no_proposals open", "again": "stopped house open",
	} {
		b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", verdict.Abort, "house", "never")} })
		b.said(map[string]string{"a": says})
		s := b.start(b.machine(def{who: []string{fn("a"), half}, states: states}))
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
		b.ok(err)
		if got := result.Status + " " + result.Code + " " + result.Session.State.Name; got != want {
			t.Errorf("saying %q, the run came to %s, want %s", says, got, want)
		}
	}
}

// TestRunIsCancelled gives up with the caller's error and without a trace of it.
func TestRunIsCancelled(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(b.ctx)
	b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		if q.Past.Steps() == 3 {
			cancel()
		}
		return specialist.Answer{TransitionName: "again"}, nil
	})
	s := b.start(b.desk(fn("a"), half))
	if _, err := b.r.Run(ctx, s.ID, runner.RunOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	if now := b.now(s); now.Status != session.Running || now.Executed != 3 || len(now.Proposals()) != 0 {
		t.Errorf("the session is %+v", now)
	}
}

// TestTick steps every live session once; a failing one spoils its own result.
func TestTick(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"good": "again"})
	b.cast.play("wild", func(context.Context, specialist.Question) (specialist.Answer, error) { panic("wild") })
	ended := b.start(b.machine(def{name: "ended", who: []string{fn("good"), human("human"), half}}))
	b.force(ended, "finish")
	good := b.start(b.machine(def{name: "good", who: []string{fn("good"), half}}))
	wild := b.start(b.machine(def{name: "wild", who: []string{fn("wild"), half}}))
	orphan := b.start(b.machine(def{name: "orphan", who: []string{fn("good")}}))
	eager := b.start(b.machine(def{name: "eager", who: []string{fn("good"), fn("wild"), half}, top: `"solicit":"eager"`}))
	var many []*session.Session
	for range 40 {
		many = append(many, b.start(good.Machine()))
	}
	results, err := b.tickAll()
	b.ok(err)
	var got []string
	for _, r := range results[:4] {
		got = append(got, fmt.Sprintf("%s %s %v", r.Summary.MachineName, r.Tick.Status, r.Err))
	}
	want := "good advanced <nil>, wild needs_human <nil>, orphan  No arbiter registered for machine: orphan, eager solicited <nil>"
	if text := strings.Join(got, ", "); text != want || len(results) != 44 {
		t.Errorf("%d results: %s\nwant %s", len(results), text, want)
	}
	for i, s := range many {
		if results[4+i].Summary.SessionID != s.ID || results[4+i].Tick.Status != runner.TickAdvanced {
			t.Errorf("result %d is of %s", 4+i, results[4+i].Summary.SessionID)
		}
	}
	for _, c := range []struct {
		s    *session.Session
		log  string
		seq  int64
		name string
	}{
		{wild, "asked wild#1\nask_failed wild panic\njudged arb no_proposals\nneeds_human no_proposals", 2, "wild"},
		{orphan, "", 2, "orphan"},
		{eager, "asked good#1\nproposed good again", 2, "eager"},
	} {
		if text := b.log(c.s, c.seq); text != c.log {
			t.Errorf("the log of %s is\n%s", c.name, text)
		}
	}
	if b.now(ended).Executed != 1 {
		t.Error("an ended session was stepped")
	}
}

// TestTickAsItComes: a tick goes through any number of sessions, lists a page of them at a
// time, keeps few results, and whoever has seen enough leaves the others alone.
func TestTickAsItComes(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"good": "again"})
	m := b.machine(def{who: []string{fn("good"), half}})
	const sessions = 600
	for range sessions {
		b.start(m)
	}
	stepped := func() (n int) {
		list, err := b.store.List(b.ctx, session.ListQuery{})
		b.ok(err)
		for _, s := range list {
			if s.Sequence > 2 {
				n++
			}
		}
		return n
	}
	last := specialist.SessionID{}
	for r, err := range b.r.Tick(b.ctx) {
		b.ok(err)
		if r.Tick.Session.Sequence == 2 {
			t.Errorf("%s was not stepped", r.Summary.SessionID)
		}
		last = r.Summary.SessionID
		break
	}
	if n := stepped(); n == 0 || n > 300 {
		t.Errorf("for one result %d sessions were stepped", n)
	}
	seen := 0
	for r, err := range b.r.Tick(b.ctx) {
		if b.ok(err); seen == 0 && r.Summary.SessionID != last {
			t.Error("the first is not the oldest")
		}
		seen++
	}
	if n := stepped(); seen != sessions || n != sessions {
		t.Errorf("%d results, and %d of %d sessions were stepped", seen, n, sessions)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	var failed error
	for _, err := range b.r.Tick(ctx) {
		failed = err
	}
	if !errors.Is(failed, context.Canceled) {
		t.Errorf("without time it ends with %v", failed)
	}
}

// TestEagerTicks follows DIAL's tick: one proposer a step, a lone one advances at
// once, the last advances in its own step, consensus is tested from two on.
func TestEagerTicks(t *testing.T) {
	for _, c := range []struct {
		name   string
		who    []string
		says   map[string]string
		weight string // who is trusted
		want   string // what each step asks and comes to
	}{
		{"lone", []string{fn("a")}, map[string]string{"a": "again"}, "", "[a] advanced"},
		{"two agree, unknown", []string{fn("a"), fn("b")}, map[string]string{"a": "again", "b": "again"}, "", "[a] solicited, [b] needs_human"},
		{"the last advances", []string{fn("a"), fn("good")}, map[string]string{"a": "again", "good": "again"}, "", "[a] solicited, [good] advanced"},
		{"two suffice", []string{fn("a"), fn("good"), fn("c")}, map[string]string{"a": "again", "good": "again", "c": "park"}, "", "[a] solicited, [good] advanced"},
		{"the champion first", []string{fn("a"), fn("c"), fn("best")}, map[string]string{"a": "again", "c": "park", "best": "finish"}, "best", "[best] solicited, [a] advanced"},
		{"opposed", []string{fn("good"), fn("twin"), fn("c")}, map[string]string{"good": "again", "twin": "park", "c": "park"}, "", "[good] solicited, [twin] solicited, [c] needs_human"},
		{"one fails", []string{fn("a"), fn("good")}, map[string]string{"a": "", "good": "again"}, "", "[a] solicited, [good] advanced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			m := b.machine(def{who: append(append([]string{}, c.who...), human("human"), half), top: `"solicit":"eager"`})
			for _, p := range panel {
				if strings.Contains(strings.Join(c.who, ""), `"`+p.id+`"`) {
					b.train(m, p.id, p.k, p.n)
				}
			}
			if c.weight != "" {
				b.train(m, c.weight, 16, 16)
			}
			b.said(c.says)
			s := b.start(m)
			b.cast.who()
			var got []string
			for {
				tick := b.step(s)
				got = append(got, fmt.Sprintf("%v %s", b.cast.who(), tick.Status))
				if tick.Status != runner.TickSolicited {
					break
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("the steps came to %s, want %s", text, c.want)
			}
		})
	}
}

// TestEagerTestsBefore finds consensus before it asks anybody.
func TestEagerTestsBefore(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{who: []string{fn("a"), human("one"), human("two"), half}, top: `"solicit":"eager"`}))
	b.propose(s, "one", "again")
	b.propose(s, "two", "again")
	b.stepTo(s, runner.TickAdvanced)
	if n := len(b.cast.who()); n != 0 {
		t.Errorf("%d were asked", n)
	}
}

// TestOneWinnerOfManyCallers has 32 callers force and step one round at once:
// each round has one decision, and the log says what the session is.
func TestOneWinnerOfManyCallers(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), half))
	var wg sync.WaitGroup
	var mu sync.Mutex
	executed := map[string]int{}
	for i := range 32 {
		wg.Go(func() {
			for range 10 {
				round := b.now(s).Key().ID()
				won := ""
				if i%2 == 0 {
					a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "human", RoundID: round, TransitionName: "again"})
					if err != nil && !errors.Is(err, runner.ErrStaleRound) {
						t.Error(err)
					} else if a.Executed {
						won = a.RoundID
					}
				} else if tick, err := b.r.Step(b.ctx, s.ID); err != nil {
					t.Error(err)
				} else if tick.Status == runner.TickAdvanced {
					e := tick.Session.Last()
					won = specialist.RoundKey{Session: s.ID, Round: e.Round, Attempt: e.Attempt}.ID()
				}
				mu.Lock()
				if won != "" {
					executed[won]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	now := b.now(s)
	if int(now.Executed) != len(executed) || b.count(s, "executed") != len(executed) || len(executed) < 10 {
		t.Errorf("%d rounds were reported won, %d are stored", len(executed), now.Executed)
	}
	for id, n := range executed {
		if n != 1 {
			t.Errorf("round %s was won %d times", id, n)
		}
	}
	if d, err := b.r.Decisions(b.ctx, "desk", "", 0); err != nil || len(d) != len(executed) {
		t.Errorf("%d decisions are recorded (%v)", len(d), err)
	}
}

// TestAnswersAreChecked fuzzes answers with a seed: nothing illegal is stored, it
// costs what it costs, and the next round begins clean.
func TestAnswersAreChecked(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 10))
	names := []string{"finish", "again", "go", "", "Again", "again ", "__proto__", "\x00"}
	targets := []string{"", "", "", "done", "open", "nowhere"}
	metas := []string{"", "", `{"n":1}`, `{"n":"1"}`, `{}`, `null`, `{"n":1`, `[`, `{"n":1,"n":2}`, `{"n":1} {"n":1}`}
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	var kept, refused int
	for range 1500 {
		b := newBench(t)
		a := specialist.Answer{TransitionName: pick(names), ToState: pick(targets), Reasoning: pick([]string{"", "why\u2028not"}), MetaJSON: []byte(pick(metas)), Usage: cost(dollar)}
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) { return a, nil })
		s := b.start(b.machine(def{states: parameters, who: []string{fn("a"), human("human"), half}}))
		want := map[string]string{"finish": "done", "again": "open"}[a.TransitionName]
		legal := want != "" && (a.ToState == "" || a.ToState == want)
		switch meta := string(a.MetaJSON); {
		case meta == "" || meta == "null":
			legal = legal && a.TransitionName == "again" // the other asks for n
		case meta == `{"n":1}`:
		case a.TransitionName == "again" && (meta == `{}` || meta == `{"n":"1"}`):
		default:
			legal = false
		}
		tick := b.step(s)
		if legal != (tick.Status == runner.TickAdvanced) {
			t.Fatalf("seed %d: the answer %+v (%s) came to %s", seed, a, a.MetaJSON, tick.Status)
		}
		if b.now(s).Spent().Money != dollar {
			t.Fatalf("the answer %+v was charged %s", a, b.now(s).Spent().Money)
		}
		if legal {
			kept++
			continue
		}
		refused++
		b.wantLog(s, 2, "asked a#1", "ask_failed a illegal_answer 1", "judged arb no_proposals", "needs_human no_proposals")
		b.force(s, "again")
		if now := b.now(s); len(now.Proposals()) != 0 || now.Status != session.Running {
			t.Fatalf("the next round is not clean: %+v", now)
		}
	}
	if kept < 50 || refused < 500 {
		t.Errorf("%d answers were legal, %d were not", kept, refused)
	}
}

// TestExecutedIsRecorded compares decision records with executed events, one by
// one, in sessions decided in every way.
func TestExecutedIsRecorded(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 11))
	b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("park", verdict.Escalate, "house", "no")} })
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: []string{"again", "park"}[rng.IntN(2)]}, nil
	})
	m := b.desk(fn("a"), human("human"), half)
	executed := map[int64]string{}
	for range 5 {
		s := b.start(m)
		for range 40 {
			switch in := (runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"}); rng.IntN(4) {
			case 0:
				b.rule(in)
			case 1:
				_, err := b.r.Execute(b.ctx, in)
				b.ok(err)
			case 2:
				in.TransitionName = ""
				b.rule(in)
			default:
				b.step(s)
			}
		}
		for _, r := range b.raw(s) {
			if r.Kind == "executed" {
				var v struct{ DecisionID, TransitionName, Decision string }
				b.ok(json.Unmarshal(r.Data, &v))
				executed[int64(len(executed))] = v.DecisionID + v.TransitionName + v.Decision
			}
		}
	}
	records, err := b.r.Decisions(b.ctx, "desk", "", 0)
	b.ok(err)
	for i, d := range records {
		if d.DecisionID+d.TransitionName+d.Kind != executed[int64(i)] {
			t.Fatalf("decision %d is %s %s, executed was %s", i, d.TransitionName, d.Kind, executed[int64(i)])
		}
	}
	if len(records) != len(executed) || len(records) < 50 {
		t.Errorf("%d decisions, %d executed", len(records), len(executed))
	}
}

// TestTickOfAnError: the Tick that comes with an error has no reasoning. It panicked.
func TestTickOfAnError(t *testing.T) {
	if why := (runner.TickResult{}).Tick.Reasoning(); why != "" {
		t.Errorf("the reasoning is %q", why)
	}
}

// someone acts where it does not matter who.
var someone = &session.Actor{Subject: "local:me", Method: "local"}
