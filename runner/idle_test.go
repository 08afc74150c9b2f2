package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// TestLimitsOfTimeDoNotCountWaiting: a session that waits for a human, or stands
// stopped, uses none of its time. Limits of time count the rest, and a clock that goes
// backwards gives no time and takes none.
func TestLimitsOfTimeDoNotCountWaiting(t *testing.T) {
	for _, limit := range []string{"no_progress_ms", "hard_limit_wall_ms", "round_limit_wall_ms"} {
		for _, c := range []struct {
			name          string
			worked, waits []time.Duration
			refused       bool
		}{
			{"the human thought", []time.Duration{0}, []time.Duration{240 * time.Hour}, false},
			{"twice", []time.Duration{20 * time.Second, 30 * time.Second}, []time.Duration{time.Hour, time.Hour}, false},
			{"it worked too long", []time.Duration{20 * time.Second, 50 * time.Second}, []time.Duration{time.Hour, time.Hour}, true},
			{"the clock went back", []time.Duration{0}, []time.Duration{-time.Hour}, false},
			{"back while it worked", []time.Duration{-time.Hour}, []time.Duration{time.Hour}, false},
		} {
			for _, stop := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, stopped %t", limit, c.name, stop), func(t *testing.T) {
					now, status := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), verdict.Escalate
					if stop {
						status = verdict.Abort
					}
					b := newBench(t, func(rc *runner.Config) {
						rc.Now = func() time.Time { return now }
						rc.Guards = []guard.Checker{reject("again", status, "house", "no")}
					})
					b.cast.say("a", "again")
					s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: budget(`"` + limit + `":60000`)}))
					for i := range c.waits {
						now = now.Add(c.worked[i])
						b.step(s)
						now = now.Add(c.waits[i])
						if stop || i < len(c.waits)-1 {
							_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
							b.ok(err)
						}
					}
					a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "park", Reasoning: "because"})
					if a.Executed == (c.refused && stop) { // a session that waits is not resumed: all of that is waiting
						t.Errorf("the ruling was executed: %t (%s)\n%s", a.Executed, a.GuardReason, b.log(s, 1))
					}
				})
			}
		}
	}
}

// TestProposingIsNoWork: what somebody proposes while a session waits for a human begins
// no time that is counted, until somebody goes on with it: the next human may think as
// long as the first.
func TestProposingIsNoWork(t *testing.T) {
	for _, limit := range []string{"no_progress_ms", "hard_limit_wall_ms", "round_limit_wall_ms"} {
		for _, goesOn := range []bool{false, true} {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			b := newBench(t, func(rc *runner.Config) { rc.Now = func() time.Time { return now } })
			b.cast.judge("judge", electNone)
			s := b.start(b.machine(def{who: []string{human("human"), human("carol"), arbFn("judge")}, top: budget(`"` + limit + `":60000`)}))
			b.stepTo(s, runner.TickHuman)
			now = now.Add(time.Hour)
			b.propose(s, "carol", "park")
			now = now.Add(time.Hour)
			if goesOn {
				b.stepTo(s, runner.TickHuman)
				now = now.Add(time.Hour)
			}
			if a := b.force(s, "finish"); !a.Executed {
				t.Errorf("%s, gone on %t: %s", limit, goesOn, a.GuardReason)
			}
		}
	}
}

// TestRulingIsNoWork: where a human's ruling was executed, or one was taken back, and
// nobody goes on, no time is counted, whatever comes from outside meanwhile: the next
// human may think as long as the first. What is done once somebody goes on is counted.
func TestRulingIsNoWork(t *testing.T) {
	both := func(b *bench, s *session.Session, transition string) {
		b.recorded(s, "human", transition, session.CodeSecondHuman)
		b.executed(s, "carol", transition)
	}
	one := func(b *bench, s *session.Session, transition string) { b.executed(s, "human", transition) }
	for name, c := range map[string]struct {
		second  bool // has to rule too
		service bool // takes part
		then    func(b *bench, s *session.Session, think func())
		refused bool
	}{
		"nothing came": {then: func(_ *bench, _ *session.Session, think func()) { think() }},
		"proposals came": {then: func(b *bench, s *session.Session, think func()) {
			think()
			b.propose(s, "carol", "finish")
			think()
			b.propose(s, "human", "again")
			think()
		}},
		"somebody went on": {then: func(b *bench, s *session.Session, think func()) {
			think()
			b.stepTo(s, runner.TickHuman)
			think()
		}},
		"a ruling was taken back": {second: true, then: func(b *bench, s *session.Session, think func()) {
			think()
			b.recorded(s, "human", "finish", session.CodeSecondHuman)
			think()
			b.taken(s, "human")
			think()
		}},
		"a ruling was taken back after a proposal": {second: true, then: func(b *bench, s *session.Session, think func()) {
			b.stepTo(s, runner.TickHuman)
			b.recorded(s, "human", "finish", session.CodeSecondHuman)
			b.propose(s, "carol", "finish")
			think()
			b.taken(s, "human")
			think()
		}},
		"a service worked": {service: true, refused: true, then: func(b *bench, s *session.Session, think func()) {
			b.cast.play("service", func(context.Context, specialist.Question) (specialist.Answer, error) {
				think()
				return specialist.Answer{TransitionName: "again"}, nil
			})
			b.step(s)
		}},
	} {
		for _, limit := range []string{"no_progress_ms", "hard_limit_wall_ms", "round_limit_wall_ms"} {
			t.Run(limit+", "+name, func(t *testing.T) {
				now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				b := newBench(t, func(rc *runner.Config) { rc.Now = func() time.Time { return now } })
				b.cast.judge("judge", electNone)
				b.cast.say("service", "again")
				d, rule := def{who: []string{human("human"), human("carol"), arbFn("judge")}, top: budget(`"` + limit + `":60000`)}, one
				if c.second {
					d.top, rule = d.top+","+secondBefore, both
				}
				if c.service {
					d.who = append(d.who, web("service"))
				}
				s := b.start(b.machine(d))
				b.stepTo(s, runner.TickHuman)
				now = now.Add(72 * time.Hour)
				rule(b, s, "again")
				c.then(b, s, func() { now = now.Add(72 * time.Hour) })
				if !c.refused {
					rule(b, s, "finish")
				} else if a, err := b.word(s, "human", "finish"); err != nil || a.Executed {
					t.Errorf("the ruling was executed: %t, %v\n%s", a.Executed, err, b.log(s, 1))
				}
			})
		}
	}
}

// TestForkKeepsProgress: a fork has made no progress for as long as the other session had worked
// without any, however long that had waited before and after its last transition, and how much
// later it is forked (cases.md 6.5, 8.2).
func TestForkKeepsProgress(t *testing.T) {
	for worked, executed := range map[time.Duration]bool{50 * time.Second: true, 70 * time.Second: false} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		b := newBench(t, func(rc *runner.Config) { rc.Now = func() time.Time { return now } })
		b.cast.judge("judge", electNone)
		b.cast.play("service", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			if q.Key.Round == 2 {
				now = now.Add(worked)
			}
			return specialist.Answer{TransitionName: "again"}, nil
		})
		s := b.start(b.machine(def{who: []string{human("human"), human("carol"), web("service"), arbFn("judge")}, top: budget(`"no_progress_ms":60000`)}))
		for _, act := range []func(){
			func() { b.stepTo(s, runner.TickHuman) }, func() { b.executed(s, "human", "again") },
			func() { b.stepTo(s, runner.TickHuman) }, func() { b.propose(s, "carol", "park") },
		} {
			act()
			now = now.Add(time.Hour)
		}
		if a, err := b.word(b.fork(s, 0), "human", "finish"); err != nil || a.Executed != executed {
			t.Errorf("after %s of work the ruling was executed: %t, %v", worked, a.Executed, err)
		}
	}
}

// taken has a human take the own ruling back.
func (b *bench) taken(s *session.Session, who string) {
	b.Helper()
	if a, err := b.word(s, who, "", back); err != nil || !a.Recorded {
		b.Fatalf("the ruling of %s was not taken back: %v (%s)", who, err, a.GuardReason)
	}
}
