package runner_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// timed is a machine whose first state is due. Two humans rule there; pay takes both.
func (b *bench) timed(due, more string) *machine.Machine {
	b.Helper()
	return parse(b.TB, `{"machineName":"desk","initialState":"open","goalState":"paid",
	  "specialists":[{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},{"role":"arbiter","specialistId":"judge"}],
	  "states":{"open":{"due":`+due+`,"transitions":{"pay":{"target":"paid","approvals":2},"escalate":`+more+`,"again":"open"}},
	    "boss":{"transitions":{"pay":"paid"}},"paid":{}}}`)
}

// waits is a machine whose first state nobody but its timer ends.
func (b *bench) waits(due, more string) *machine.Machine {
	b.Helper()
	return parse(b.TB, `{"machineName":"w","initialState":"cooling","goalState":"done",
	  "states":{"cooling":{"due":`+due+`,"specialists":[],"transitions":{"go":`+more+`,"drop":"done"}},"done":{}},
	  "specialists":[{"role":"arbiter","specialistId":"judge"}]}`)
}

// pass lets time go by, or back.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick += d
}

// TestTimer: a transition is executed when the state is due and nothing else was before,
// by nobody, and teaches nothing (cases.md 6.1, 6.2).
func TestTimer(t *testing.T) {
	b := newBench(t)
	s := b.start(b.timed(`{"in":"24h","then":"escalate"}`, `{"target":"boss","set":{"late":"= by + ' ' + string(human) + ' ' + to"}}`))
	if due := s.Due(); due == nil || due.At != s.CreatedAt+24*3600*1000 || s.WakeAt() != due.At {
		t.Fatalf("it is due at %+v, created at %s, wakes at %s", due, s.CreatedAt, s.WakeAt())
	}
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "alice", "pay", session.CodeApprovals) // a pending word holds nothing up
	b.pass(24*time.Hour - time.Second)
	b.stepTo(s, runner.TickHuman)
	b.pass(time.Second)
	tick := b.stepTo(s, runner.TickAdvanced)
	e := b.now(s).Last()
	if e.Transition.Name != "escalate" || e.How != session.ByTimer || e.SpecialistID != session.TimerID || e.IsHuman || e.Standing != nil || b.now(s).State.Name != "boss" {
		t.Fatalf("what was executed is %+v", e)
	}
	if tick.Transition.Name != "escalate" || tick.Previous.Name != "open" || !strings.HasPrefix(tick.Reasoning(), "due at ") {
		t.Errorf("the step came to %+v: %s", tick, tick.Reasoning())
	}
	if data := string(b.now(s).Data().JSON()); data != `{"late":"__timer false boss"}` {
		t.Errorf("the data are %s", data)
	}
	if b.count(s, session.KindLearned) != 0 || len(b.lessons()) != 0 || b.now(s).Due() != nil || b.now(s).WakeAt() != 0 {
		t.Errorf("a timer has taught something, or comes again: %+v", b.now(s).Due())
	}
	m := b.metrics("")
	if m.TotalDecisions != 0 || m.HumanDecisions != 0 || m.AIDecisions != 0 || m.Timers != 1 {
		t.Errorf("metrics count it as %+v", m)
	}
}

// TestEntryCountsAnew: each entry into a state counts anew, a further attempt does not
// (cases.md 6.1).
func TestEntryCountsAnew(t *testing.T) {
	b := newBench(t)
	s := b.start(b.timed(`"24h"`, `"boss"`))
	first := s.Due().At
	b.pass(time.Hour)
	b.executed(s, "alice", "again")
	if now := b.now(s); now.Due().At <= first+3600*1000-1 || now.Due().At != now.EnteredAt()+24*3600*1000 {
		t.Errorf("after another entry it is due at %s", now.Due().At)
	}
	b.pass(48 * time.Hour)
	if tick := b.step(s); tick.Status != runner.TickHuman || !b.now(s).Overdue(specialist.TimeOf(b.clock())) || b.now(s).Executed != 1 {
		t.Errorf("without then a step comes to %s", tick.Status)
	}
}

// TestDueAt: what an expression says of the moment is worked out once, on entry, in
// whatever zone it is written (cases.md 6.1).
func TestDueAt(t *testing.T) {
	for at, want := range map[string]string{
		`= '90m'`:                                    "2026-01-02T04:34:05.",
		`= '-1h'`:                                    "2026-01-02T02:04:05.",
		`= '2020-02-29T12:00:00Z'`:                   "2020-02-29T12:00:00.000Z",
		`= '1969-12-31T23:59:59Z'`:                   "1970-01-01T00:00:00.001Z",
		`= '2026-03-29T02:30:00+01:00'`:              "2026-03-29T01:30:00.000Z", // a time that clocks of that zone leave out
		`= '2026-10-25T02:30:00+02:00'`:              "2026-10-25T00:30:00.000Z", // and one that they show twice
		`= '2026-10-25T02:30:00+01:00'`:              "2026-10-25T01:30:00.000Z",
		`= '9999-12-31T23:59:59Z'`:                   "9999-12-31T23:59:59.000Z",
		`= '9999-12-31T23:59:59-14:00'`:              "!it lies in the year 10000, after the last one that a time can be written of",
		`= '2026-13-01T00:00:00Z'`:                   `!"2026-13-01T00:00:00Z" is neither a time such as 2026-11-23T17:00:00+01:00 nor a duration such as 24h`,
		`= 'tomorrow'`:                               `!"tomorrow" is neither a time such as 2026-11-23T17:00:00+01:00 nor a duration such as 24h`,
		`= data.deadline`:                            `!nothing is called deadline`,
		`= visits == 1 ? now : last`:                 "2026-01-02T03:04:05.",
		`= string(timestamp(now) + duration('24h'))`: "2026-01-03T03:04:05.",
	} {
		b := newBench(t)
		s := b.start(b.timed(fmt.Sprintf(`{"at":%q}`, at), `"boss"`))
		d := s.Due()
		if failed, ok := strings.CutPrefix(want, "!"); ok {
			q, err := b.r.Question(b.ctx, s, "")
			if b.ok(err); !strings.Contains(d.Error, failed) || d.At != 0 || q.DueError != d.Error || q.Overdue || s.WakeAt() != 0 {
				t.Errorf("%s: due %+v, question %q", at, d, q.DueError)
			}
		} else if !strings.HasPrefix(d.At.String(), want) || d.Error != "" {
			t.Errorf("%s: due at %s, want %s: %s", at, d.At, want, d.Error)
		}
	}
}

// TestReminders: each reminder is an event, once; of several missed the last, and of those
// before the entry none (cases.md 6.4).
func TestReminders(t *testing.T) {
	b := newBench(t)
	s := b.start(b.timed(`{"in":"24h","remind":["48h","4h","12h","3h30m","1h"]}`, `"boss"`))
	due := s.Due().At
	reminded := func() (list []string) {
		for _, e := range b.raw(s) {
			if e.Kind == session.KindReminded {
				list = append(list, string(e.Data))
			}
		}
		return list
	}
	b.stepTo(s, runner.TickHuman)
	if list := reminded(); list != nil || b.now(s).WakeAt() != due-12*3600*1000 {
		t.Fatalf("before any came: %s, wakes at %s", list, b.now(s).WakeAt())
	}
	b.pass(21 * time.Hour) // after the ones of 12 h, 4 h and 3½ h
	for range 3 {
		b.stepTo(s, runner.TickHuman)
	}
	want := []string{fmt.Sprintf(`{"due":"%s","before":"3h30m0s"}`, due)}
	if list := reminded(); !slices.Equal(list, want) || b.now(s).WakeAt() != due-3600*1000 {
		t.Errorf("reminders are %s, wakes at %s", list, b.now(s).WakeAt())
	}
	b.pass(-20 * time.Hour) // the clock goes back: nothing comes again
	b.stepTo(s, runner.TickHuman)
	b.pass(44 * time.Hour)
	b.stepTo(s, runner.TickHuman)
	b.stepTo(s, runner.TickHuman)
	want = append(want, fmt.Sprintf(`{"due":"%s","before":"1h0m0s"}`, due))
	if list := reminded(); !slices.Equal(list, want) || b.now(s).WakeAt() != 0 {
		t.Errorf("reminders are %s, wakes at %s", list, b.now(s).WakeAt())
	}
}

// TestWait: in a state that only its timer ends nothing happens before it, and a step
// needs nothing that asking would (cases.md 6.3).
func TestWait(t *testing.T) {
	b := newBench(t)
	s := b.start(b.waits(`{"in":"1h","then":"go"}`, `"done"`))
	want := "go at " + s.Due().At.String()
	tick := b.stepTo(s, runner.TickWaiting)
	if v := tick.View(); tick.Code != session.CodeTimer || v.Reasoning != want || v.Code != "timer" || b.now(s).Sequence != 2 {
		t.Errorf("a wait comes to %+v", v)
	}
	r, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
	if b.ok(err); r.Status != runner.WaitingStatus || r.Code != session.CodeTimer || r.Reason != want {
		t.Errorf("a run ends %+v", r)
	}
	if list, err := b.tickAll(); err != nil || len(list) != 0 {
		t.Errorf("a tick steps %+v, %v", list, err)
	}
	if items, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, ""); err != nil || len(items) != 0 {
		t.Errorf("a wait asks %+v, %v", items, err)
	}
	list, err := b.r.Sessions(b.ctx, session.ListQuery{})
	if b.ok(err); list[0].Code != session.CodeTimer || list[0].Status != session.Running || list[0].Reason != want || list[0].DueAt != s.Due().At {
		t.Errorf("it is listed as %+v", list[0])
	}
	b.pass(time.Hour)
	if ticks, err := b.tickAll(); err != nil || len(ticks) != 1 || ticks[0].Tick.Status != runner.TickAdvanced {
		t.Errorf("when it comes a tick steps %+v, %v", ticks, err)
	}
	if now := b.now(s); now.Status != session.Completed || now.Last().How != session.ByTimer {
		t.Errorf("it is %s", now.Status)
	}
}

// TestWaitNeedsHuman: a wait whose timer can do nothing is a human's (cases.md 6.1, 6.2).
func TestWaitNeedsHuman(t *testing.T) {
	for due, want := range map[string][3]string{
		`{"at":"= 'soon'","then":"go"}`: {`"done"`, session.CodeDueFailed, `State "cooling" waits for go, and nobody knows until when: "soon" is neither`},
		`{"in":"1h","then":"go"}`:       {`{"target":"done","when":"= steps > 5"}`, session.CodeClosed, `transition "go" is closed in this round: its condition does not hold: = steps > 5`},
		`{"in":"2h","then":"go"}`:       {`{"target":"done","set":{"x":"= data.none"}}`, session.CodeSetFailed, `transition "go" cannot set "x"`},
	} {
		b := newBench(t, operator)
		s := b.start(b.waits(due, want[0]))
		if waits := want[1] == session.CodeSetFailed; s.Waits() != waits || (s.Standing().Code == session.CodeTimer) != waits {
			t.Errorf("%s: at first it waits: %t, with the code %q", due, s.Waits(), s.Standing().Code)
		} else if waits { // what cannot come at all needs a human at once
			b.pass(2 * time.Hour)
		}
		tick := b.stepTo(s, runner.TickHuman)
		if tick.Code != want[1] || !strings.HasPrefix(tick.Reasoning(), want[2]) {
			t.Errorf("%s: %s: %s", due, tick.Code, tick.Reasoning())
		}
		sequence := b.now(s).Sequence
		b.pass(2 * time.Hour)
		if b.stepTo(s, runner.TickHuman); b.now(s).Sequence != sequence || b.now(s).WakeAt() != 0 {
			t.Errorf("%s: it is tried again", due)
		}
		b.rule(runner.Ruling{SessionID: s.ID, SpecialistID: runner.Operator, RoundID: runner.CurrentRound, TransitionName: "drop"})
	}
}

// operator lets whoever has the terminal rule.
func operator(c *runner.Config) { c.AllowOperator = true }

// TestTimerThatCannot: where the transition cannot be executed the question is overdue, and
// nothing is tried again in this round (cases.md 2.2, 6.2).
func TestTimerThatCannot(t *testing.T) {
	b := newBench(t)
	s := b.start(b.timed(`{"in":"1h","then":"escalate"}`, `{"target":"boss","set":{"x":"= data.none"}}`))
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.pass(time.Hour)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeSetFailed {
		t.Fatalf("it comes to %s: %s", tick.Code, tick.Reasoning())
	}
	now := b.now(s)
	if list, _ := now.PendingRulings(); len(list) != 1 || now.Timer() != nil || !now.Overdue(specialist.TimeOf(b.clock())) {
		t.Errorf("rulings %v, timer %v", list, now.Timer())
	}
	b.stepTo(s, runner.TickHuman)
	if b.now(s).Sequence != now.Sequence {
		t.Error("it is tried again")
	}
	b.executed(s, "bob", "again")
	if now := b.now(s); now.Timer() == nil {
		t.Error("the next round has no timer")
	}
	closed := b.start(b.timed(`{"in":"1h","then":"escalate"}`, `{"target":"boss","when":"= steps > 9"}`))
	b.pass(2 * time.Hour)
	if tick := b.stepTo(closed, runner.TickHuman); tick.Code != session.CodeNoProposals || b.now(closed).Executed != 0 || b.now(closed).WakeAt() != 0 {
		t.Errorf("with a closed transition it comes to %s", tick.Code)
	}
}

// TestTimerIsTriedAgain: a timer that could not be executed is tried again once somebody has raised
// the limit that stood in its way, or moved the session to where it can be; until then the
// rulings that are pending wait as before (cases.md 2.2, 6.2).
func TestTimerIsTriedAgain(t *testing.T) {
	const states = `"open":{"transitions":{"on":"late"}},"late":{"due":{"in":"1h","then":"go"},%s"transitions":{"go":%s,"pay":{"target":"paid","approvals":2},"stay":"late"}},"paid":{}`
	for name, roster := range map[string]string{"a wait": `"specialists":[],`, "people": ""} {
		for why, write := range map[string]string{"max_steps": `"paid"`, session.CodeSetFailed: `{"target":"paid","set":{"x":"= data.none"}}`} {
			b, most := newBench(t), map[string]string{"max_steps": "1"}[why]
			machineOf := func(write string) *machine.Machine {
				return parse(t, `{"machineName":"m","initialState":"open","goalState":"paid","guards":{"limits":{"max_steps":`+cmp.Or(most, "9")+`}},"states":{`+fmt.Sprintf(states, roster, write)+`},
				  "specialists":[`+human("carol")+`,`+human("dan")+`,`+arb("")+`]}`)
			}
			s := b.start(machineOf(write))
			b.executed(s, "carol", "on")
			rules := roster == ""
			if rules {
				b.recorded(s, "dan", "pay", session.CodeApprovals)
			}
			b.pass(time.Hour)
			if tick := b.stepTo(s, runner.TickHuman); tick.Code != why {
				t.Fatalf("%s: the timer comes to %s", name, tick.Code)
			}
			sequence := b.now(s).Sequence
			if b.stepTo(s, runner.TickHuman); b.now(s).Sequence != sequence {
				t.Errorf("%s: it is tried again by nobody", name)
			}
			if why == session.CodeSetFailed {
				_, err := b.move(s, machineOf(`"paid"`))
				b.ok(err)
			} else if b.ok(b.raise(s, "limits.max_steps", "5")); rules {
				if o := b.now(s).Outcome(); o.Code != session.CodeApprovals || o.Reason != "1 of 2 approvals for pay: dan" {
					t.Errorf("with the limit raised it waits for %s: %s", o.Code, o.Reason)
				}
			}
			b.forget()
			b.stepTo(s, runner.TickAdvanced)
			if now := b.now(s); now.Status != session.Completed || now.Last().How != session.ByTimer {
				t.Errorf("%s, %s: it is %s", name, why, now.Status)
			}
		}
	}
}

// TestTimerNeedsNobody: a timer comes also where a function of the machine is missing
// (cases.md 5.3).
func TestTimerNeedsNobody(t *testing.T) {
	b := newBench(t)
	m := parse(t, `{"machineName":"m","initialState":"open","goalState":"done","specialists":[{"role":"proposer","specialistId":"a","strategyFn":"fn"}],
	  "states":{"open":{"due":{"in":"1h","then":"stop"},"transitions":{"stop":"done"}},"done":{}}}`)
	s := b.start(m)
	other := b.runner(func(c *runner.Config) { c.Resolver = strategies.Registry{} })
	var missing *runner.StartError
	if _, err := other.Step(b.ctx, s.ID); !errors.As(err, &missing) {
		t.Fatalf("before it comes: %v", err)
	}
	b.pass(time.Hour)
	tick, err := other.Step(b.ctx, s.ID)
	if b.ok(err); tick.Status != runner.TickAdvanced || tick.Session.Status != session.Completed {
		t.Errorf("it comes to %s", tick.Status)
	}
}

// TestWakesForAnswers: the deadline of an ask that is out is a moment to wake (cases.md 6.4).
func TestWakesForAnswers(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", failing(specialist.ErrAccepted)) // it answers later
	s := b.start(b.desk(web("a"), half))
	b.stepTo(s, runner.TickWaiting)
	if s = b.now(s); len(s.OpenAsks()) != 1 || s.WakeAt() != s.OpenAsks()[0].Remote.Deadline {
		t.Errorf("it wakes at %s", s.WakeAt())
	}
}

// TestStoppedHasNoTimer: while a session stands still nothing happens to it (cases.md 6.2).
func TestStoppedHasNoTimer(t *testing.T) {
	b := newBench(t)
	s := b.start(b.waits(`{"in":"1h","remind":["30m"],"then":"go"}`, `"done"`))
	actor := session.LocalActor("x")
	_, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: actor, Note: "later"})
	b.ok(err)
	b.pass(2 * time.Hour)
	if tick := b.step(s); tick.Status != runner.TickStopped || b.now(s).WakeAt() != 0 {
		t.Errorf("a stopped session comes to %s", tick.Status)
	}
	if list, err := b.r.Due(b.ctx, 1<<50, 0); err != nil || len(list) != 0 {
		t.Errorf("to wake are %v, %v", list, err)
	}
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: &actor})
	b.ok(err)
	b.stepTo(s, runner.TickAdvanced)
}

// TestRulingMeetsTimer: of a ruling and a timer that come at the same time one is executed
// (cases.md 6.2).
func TestRulingMeetsTimer(t *testing.T) {
	b := newBench(t)
	m := b.timed(`{"in":"1h","then":"escalate"}`, `"boss"`)
	byTimer := 0
	for range 200 {
		s := b.start(m)
		b.recorded(s, "alice", "pay", session.CodeApprovals)
		b.pass(time.Hour)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.r.Step(b.ctx, s.ID) })
		wg.Go(func() {
			_, _ = b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "bob", RoundID: s.Key().ID(), TransitionName: "pay"})
		})
		wg.Wait()
		now := b.now(s)
		if now.Executed != 1 {
			t.Fatalf("%d transitions were executed", now.Executed)
		}
		if now.Last().How == session.ByTimer {
			byTimer++
		}
	}
	t.Logf("the timer was first %d of 200 times", byTimer)
}

// TestClockGoesBack: a clock that goes backwards makes nothing due twice (cases.md 6.5).
func TestClockGoesBack(t *testing.T) {
	b := newBench(t)
	m := parse(t, `{"machineName":"w","initialState":"a","goalState":"done","specialists":[],
	  "states":{"a":{"due":{"in":"1h","then":"go"},"transitions":{"go":"b"}},"b":{"due":{"in":"1h","then":"go"},"transitions":{"go":"done"}},"done":{}}}`)
	s := b.start(m)
	b.pass(time.Hour)
	b.stepTo(s, runner.TickAdvanced)
	b.pass(-48 * time.Hour)
	for range 3 {
		if b.stepTo(s, runner.TickWaiting); b.now(s).Executed != 1 {
			t.Fatal("something is executed again")
		}
	}
	b.pass(50 * time.Hour)
	b.stepTo(s, runner.TickAdvanced)
}

// TestWaitingIsNotCounted: guards' limits of time do not count waits (cases.md 6.5).
func TestWaitingIsNotCounted(t *testing.T) {
	b := newBench(t)
	m := parse(t, `{"machineName":"w","initialState":"cooling","goalState":"done","guards":{"budget":{"hard_limit_wall_ms":60000,"no_progress_ms":60000}},
	  "specialists":[{"role":"arbiter","specialistId":"judge"}],
	  "states":{"cooling":{"due":{"in":"24h","then":"go"},"specialists":[],"transitions":{"go":"work"}},
	    "work":{"specialists":[{"role":"proposer","specialistId":"a","strategyFn":"= 'go'"}],"transitions":{"go":"done"}},"done":{}}}`)
	s := b.start(m)
	b.stepTo(s, runner.TickWaiting)
	b.pass(72 * time.Hour)
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Session.Status != session.Completed {
		t.Errorf("it comes to %s", tick.Session.Status)
	}
}

// TestTickReachesHumans: a tick that leads where only humans decide asks them, whether a timer
// or a winner leads there, so that the time until the next one is theirs (cases.md 6.4, 6.5).
func TestTickReachesHumans(t *testing.T) {
	const limits = `"guards":{"budget":{"hard_limit_wall_ms":60000,"no_progress_ms":60000}},`
	for name, file := range map[string]string{
		"a timer": `{"due":{"in":"1h","then":"go"},"specialists":[],"transitions":{"go":"later"}},
		    "later":{"due":{"at":"= '-1h'","then":"go"},"specialists":[],"transitions":{"go":"boss"}}`,
		"a winner": `{"specialists":[{"role":"proposer","specialistId":"a","strategyFn":"= 'go'"}],"transitions":{"go":"boss"}}`,
	} {
		b := newBench(t)
		s := b.start(parse(t, `{"machineName":"m","initialState":"first","goalState":"done",`+limits+`
		  "specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge"}],
		  "states":{"first":`+file+`,"boss":{"transitions":{"pay":"done"}},"done":{}}}`))
		if s.State.Wait {
			b.pass(time.Hour)
		}
		results, err := b.tickAll()
		if b.ok(err); len(results) != 1 || results[0].Err != nil || results[0].Tick.Status != runner.TickAdvanced || results[0].Tick.Transition.Target != "boss" {
			t.Errorf("%s: the tick comes to %+v", name, results)
		}
		if items, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, "carol"); err != nil || len(items) != 1 || items[0].State != "boss" {
			t.Errorf("%s: after the tick the inbox has %d questions, %v", name, len(items), err)
		}
		b.pass(72 * time.Hour)
		b.executed(s, "carol", "pay")
	}
}

// TestTickAsksAfterATimer: in the state to which a timer leads the same tick asks, and an
// endless chain of timers ends it, not the session.
func TestTickAsksAfterATimer(t *testing.T) {
	b := newBench(t)
	s := b.start(parse(t, `{"machineName":"m","initialState":"first","goalState":"done","specialists":[{"role":"arbiter","specialistId":"judge"}],
	  "states":{"first":{"due":{"in":"1h","then":"go"},"specialists":[],"transitions":{"go":"work"}},
	    "work":{"specialists":[{"role":"proposer","specialistId":"a","strategyFn":"= 'again'"},{"role":"proposer","specialistId":"carol","isHuman":true}],"solicit":"eager","quorum":2,"transitions":{"again":"work","end":"done"}},"done":{}}}`))
	b.pass(time.Hour)
	results, err := b.tickAll()
	if b.ok(err); len(results) != 1 || results[0].Tick.Previous.Name != "first" || !slices.Equal(results[0].Tick.Asked(), []string{"a"}) {
		t.Errorf("the tick comes to %+v", results)
	}
	endless := b.start(b.waits(`{"at":"= '-1h'","then":"go"}`, `"cooling"`))
	_, err = b.tickAll()
	if b.ok(err); b.now(endless).Status != session.Running || b.now(endless).Executed != 100 {
		t.Errorf("the endless one is %s after %d steps", b.now(endless).Status, b.now(endless).Executed)
	}
	if b.now(s).State.Name != "work" {
		t.Errorf("the other one is in %s", b.now(s).State.Name)
	}
}

// TestOverdueFirst: questions that are overdue stand in front, the longest overdue first, whatever the pages are.
func TestOverdueFirst(t *testing.T) {
	b := newBench(t)
	var started []string
	for _, due := range []string{`"24h"`, `"3h"`, `"8760h"`, `"1h"`} {
		s := b.start(b.timed(due, `"boss"`))
		b.stepTo(s, runner.TickHuman)
		started = append(started, s.ID.String())
	}
	b.pass(4 * time.Hour)
	want := []string{started[3], started[1], started[0], started[2]}
	for _, limit := range []int{0, 1, 2, 3, 4, 9} {
		var got []string
		for q := (session.ListQuery{Limit: limit}); ; {
			items, next, err := b.r.Inbox(b.ctx, q, "")
			b.ok(err)
			for _, item := range items {
				got = append(got, item.SessionID)
				if item.Overdue != (len(got) <= 2) {
					t.Errorf("the question of %s is overdue: %t", item.SessionID, item.Overdue)
				}
			}
			if q.After = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d the inbox is %v, want %v", limit, got, want)
		}
	}
	if _, _, err := b.r.Inbox(b.ctx, session.ListQuery{Limit: 1, After: "ozz.x"}, ""); !errors.Is(err, session.ErrCursor) {
		t.Errorf("an altered cursor: %v", err)
	}
}

// TestWaitIsCountedAlike: where nothing happens before the timer, somebody who came later
// proposes, and the state is left long after. What has passed counts to limits of time, live
// and read back.
func TestWaitIsCountedAlike(t *testing.T) {
	b := newBench(t)
	s := b.start(b.waits(`{"in":"1h","then":"go"}`, `"done"`))
	_, err := b.r.Register(b.ctx, "w", machine.Specialist{Role: machine.Proposer, SpecialistID: "eve", IsHuman: true}, nil)
	b.ok(err)
	b.pass(time.Minute)
	b.propose(s, "eve", "drop")
	b.pass(time.Hour)
	b.submit(runner.Submission{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "eve", TransitionName: "go", Reasoning: "after all"})
	live := b.now(s)
	if began, _ := live.CountedSince(live.UpdatedAt); began < s.CreatedAt+60*1000 || began > s.CreatedAt+61*1000 {
		t.Errorf("it counts since %s, was created at %s and has waited for a minute", began, s.CreatedAt)
	}
	b.checkLog(s.ID)
}
