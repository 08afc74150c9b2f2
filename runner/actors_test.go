package runner_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// key is somebody whose method authenticates.
func key(name string) *session.Actor { return &session.Actor{Subject: "key:" + name, Method: "key"} }

// TestActors: every act on a session is in its log with the actor (cases.md 8.5).
func TestActors(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{human("human"), human("bob"), fn("a"), half}, top: secondBefore + `,"audit":{"rate":1,"mode":"before"}`}), runner.StartOptions{Actor: key("start")})
	b.submit(runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again", Actor: key("propose")})
	_, _, err := b.r.Reveal(b.ctx, s.ID, "human", key("look"))
	b.ok(err)
	rules := func(name string) func(*runner.Ruling) { return func(in *runner.Ruling) { in.Actor = key(name) } }
	b.recorded(s, "human", "again", session.CodeSecondHuman, rules("rule"))
	_, err = b.word(s, "human", "", back, rules("withdraw"))
	b.ok(err)
	b.recorded(s, "human", "again", session.CodeSecondHuman, rules("rule"))
	b.executed(s, "bob", "again", rules("execute"))
	_, err = b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: *key("cancel"), Note: "enough"})
	b.ok(err)
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: key("resume")})
	b.ok(err)
	var acts []string
	for _, r := range b.raw(s) {
		var d struct{ Actor *session.Actor }
		b.ok(json.Unmarshal(r.Data, &d))
		if d.Actor != nil {
			if d.Actor.Method != "key" {
				t.Errorf("%s is by %+v", r.Kind, d.Actor)
			}
			acts = append(acts, r.Kind+" "+d.Actor.Subject)
		}
	}
	want := "session_created key:start, proposed key:propose, revealed key:look, ruled key:rule, ruled key:withdraw, ruled key:rule, executed key:execute, ended key:cancel, resumed key:resume"
	if got := strings.Join(acts, ", "); got != want {
		t.Errorf("the log has\n%s\nwant\n%s", got, want)
	}
	if now := b.newest(s); now.Actor == nil || now.Actor.Subject != "key:execute" {
		t.Errorf("the decision is by %+v", now.Actor)
	}
}

// TestActorsOfTheRoster: changes to the roster are in the machine's log with their actor, and
// reviews in the session's (cases.md 8.5).
func TestActorsOfTheRoster(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("bob"), half}, top: `"secondHuman":{"rate":1,"when":"after"}`}))
	b.force(s, "again")
	round := b.now(s).Reviews()[0].Key.ID()
	d, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: round, SpecialistID: "bob", TransitionName: "again", Actor: key("review")})
	if b.ok(err); d.Actor == nil || d.Actor.Subject != "key:review" {
		t.Errorf("the review is by %+v", d.Actor)
	}
	_, err = b.r.Register(b.ctx, s.Machine().Name(), machine.Specialist{Role: machine.Proposer, SpecialistID: "third", StrategyFnName: "random"}, key("add"))
	b.ok(err)
	b.ok(b.r.Switch(b.ctx, s.Machine().Name(), "third", runner.Switching{Actor: *key("off")}))
	_, err = b.r.RecordTrial(b.ctx, s.Machine().Name(), session.Trial{Policy: "p", From: 1, To: 2}, key("try"))
	b.ok(err)
	var acts []string
	for rec, err := range b.store.RosterRecords(b.ctx, s.Machine().Name(), 0) {
		b.ok(err)
		events, err := session.DecodeRosterEvents(rec.Events)
		b.ok(err)
		for _, e := range events {
			acts = append(acts, e.Kind+" "+e.Actor.Subject)
		}
	}
	if got, want := strings.Join(acts, ", "), "specialist_registered key:add, specialist_disabled key:off, policy_tried key:try"; got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
}

// TestHalfAnActor: who says a half of who acts is refused, and nothing is recorded.
func TestHalfAnActor(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), human("human"), half))
	half := &session.Actor{Subject: "somebody"}
	for name, act := range map[string]func() error{
		"start": func() error {
			_, err := b.r.Start(b.ctx, s.Machine(), runner.StartOptions{Actor: half})
			return err
		},
		"rule": func() error {
			_, err := b.word(s, "human", "again", func(in *runner.Ruling) { in.Actor = half })
			return err
		},
		"propose": func() error {
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again", Actor: half})
			return err
		},
		"resume": func() error {
			_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: half})
			return err
		},
		"look": func() error {
			_, _, err := b.r.Reveal(b.ctx, s.ID, "human", half)
			return err
		},
		"look at a review": func() error {
			_, err := b.r.RevealReview(b.ctx, s.ID, s.Key().ID(), "human", half)
			return err
		},
		"review": func() error {
			_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, Actor: half})
			return err
		},
		"register": func() error {
			_, err := b.r.Register(b.ctx, s.Machine().Name(), machine.Specialist{Role: machine.Proposer, SpecialistID: "x", StrategyFnName: "random"}, half)
			return err
		},
		"demote": func() error {
			return b.r.Demote(b.ctx, runner.Order{MachineName: s.Machine().Name(), State: "open", SpecialistID: "human", Actor: half})
		},
		"try": func() error {
			_, err := b.r.RecordTrial(b.ctx, s.Machine().Name(), session.Trial{Policy: "p", From: 1, To: 2}, half)
			return err
		},
		"switch": func() error {
			return b.r.Switch(b.ctx, s.Machine().Name(), "a", runner.Switching{Actor: *half})
		},
	} {
		if err := act(); !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), `an actor has a subject and a method, not "somebody" and ""`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b.now(s).Sequence != s.Sequence {
		t.Error("a refused act was recorded")
	}
}

// TestIf: an act that depends on the session happens only while that holds, also where
// somebody else commits between the look and the commit (cases.md 8.5).
func TestIf(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("bob"), half}, top: `"secondHuman":{"rate":1,"when":"after"}`}))
	b.force(s, "again")
	round, busy := b.now(s).Reviews()[0].Key.ID(), errors.New("not like this")
	seen := int64(0)
	never := func(now *session.Session) error { seen = now.Sequence; return busy }
	for name, act := range map[string]func() error{
		"rule": func() error {
			_, err := b.word(s, "human", "again", func(in *runner.Ruling) { in.If = never })
			return err
		},
		"propose": func() error {
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", If: never})
			return err
		},
		"have it proposed": func() error {
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", If: never})
			return err
		},
		"resume": func() error {
			_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{If: never})
			return err
		},
		"review": func() error {
			_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: round, SpecialistID: "bob", TransitionName: "again", If: never})
			return err
		},
	} {
		before := b.now(s).Sequence
		seen = 0
		if err := act(); !errors.Is(err, busy) || seen != before || b.now(s).Sequence != before || len(b.cast.who()) > 0 {
			t.Errorf("%s: %v, asked of %d, the session was at %d and is at %d", name, err, seen, before, b.now(s).Sequence)
		}
	}
	calls := 0
	_, err := b.word(s, "human", "again", func(in *runner.Ruling) {
		in.RoundID = runner.CurrentRound
		in.If = func(now *session.Session) error {
			if calls++; calls == 1 {
				b.propose(s, "a", "finish") // somebody is faster
				return nil
			}
			if now.Sequence != b.now(s).Sequence {
				t.Error("the session that is shown is not the one that the commit would replace")
			}
			return busy
		}
	})
	if !errors.Is(err, busy) || calls != 2 || b.now(s).Executed != 1 {
		t.Errorf("after a lost race: %v, %d calls, %d executed", err, calls, b.now(s).Executed)
	}
}

// TestIDFromOutside: a session takes an id from outside, once (cases.md 8.5).
func TestIDFromOutside(t *testing.T) {
	b := newBench(t)
	m, id := b.desk(fn("a"), half), specialist.SessionID{15: 7}
	if s := b.start(m, runner.StartOptions{ID: id}); s.ID != id {
		t.Errorf("the session is %s", s.ID)
	}
	if _, err := b.r.Start(b.ctx, m, runner.StartOptions{ID: id}); !errors.Is(err, session.ErrExists) {
		t.Errorf("a second one: %v", err)
	}
	if s := b.start(m); s.ID == id {
		t.Error("another session has the id too")
	}
}

// TestOnePersonUnderTwoNames: two ids of one person are not two humans, neither for
// approvals nor where a second human is asked, if it is proved who that is (cases.md 4.2).
func TestOnePersonUnderTwoNames(t *testing.T) {
	as := func(a *session.Actor) func(*runner.Ruling) { return func(in *runner.Ruling) { in.Actor = a } }
	for _, c := range []struct {
		name    string
		machine func(*bench) *machine.Machine
		who     [3]string
		what    string
		code    string
	}{
		{"approvals", func(b *bench) *machine.Machine { return b.approved("", "2") }, [3]string{"alice", "bob", "carol"}, "pay", session.CodeApprovals},
		{"a second human", func(b *bench) *machine.Machine { return b.eyes("human", "bob", "carol") }, [3]string{"human", "bob", "carol"}, "again", session.CodeSecondHuman},
	} {
		b := newBench(t)
		b.cast.say("a", "again")
		s := b.start(c.machine(b))
		b.recorded(s, c.who[0], c.what, c.code, as(key("eve")))
		before := b.now(s).Sequence
		a, err := b.word(s, c.who[1], c.what, as(key("eve")))
		refused, ok := errors.AsType[*runner.Error](err)
		if !ok || refused.Code != session.CodeNotEligible || !errors.Is(err, runner.ErrForbidden) || a.Executed || a.Recorded || b.now(s).Sequence != before ||
			!strings.Contains(err.Error(), "both are key:eve") {
			t.Errorf("%s: the same person again: %v, %+v", c.name, err, a)
		}
		if e := b.executed(s, c.who[2], c.what, as(key("mallory"))); len(e.Authors) != 2 {
			t.Errorf("%s: authors are %v", c.name, e.Authors)
		}
		b = newBench(t)
		b.cast.say("a", "again")
		s = b.start(c.machine(b))
		b.recorded(s, c.who[0], c.what, c.code, as(&carol)) // a terminal proves nothing
		b.executed(s, c.who[1], c.what, as(&carol))
	}
}

// TestEveryActHasItsActor: whatever a person may have a Runner do is in a log with who had
// it done (cases.md 8.5, 10). A method that is new has to be named here.
func TestEveryActHasItsActor(t *testing.T) {
	b, d := newBench(t), promoted(t, .99, .95, .9)
	b.cast.say("a", "again")
	who := []string{fn("a"), human("human"), human("bob"), half}
	first := b.start(b.machine(def{name: "acts", who: who, top: `"secondHuman":{"rate":1,"when":"after"}`}))
	b.force(first, "again")
	b.force(first, "again")
	unseen := b.start(b.machine(def{name: "unseen", who: who, top: secondBefore + `,"audit":{"rate":1,"mode":"before"}`}))
	limited := b.start(b.machine(def{name: "limited", who: who, top: `"guards":{"limits":{"max_steps":0}}`}))
	b.stepTo(limited, runner.TickStopped)
	moved := b.start(b.machine(def{name: "files", who: who}))
	next := b.machine(def{name: "files", who: who, states: otherStates})
	reviews := b.now(first).Reviews()
	ruling := func(s *session.Session, who machine.SpecialistID, choice string, by *session.Actor) runner.Ruling {
		return runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: who, TransitionName: choice, Actor: by}
	}
	order := func(by *session.Actor) runner.Order {
		return runner.Order{MachineName: "desk", State: "open", SpecialistID: "human", Actor: by}
	}
	acts := []struct {
		method, kinds string
		do            func(by *session.Actor) error
	}{
		{"Start", "session_created", func(by *session.Actor) error {
			_, err := b.r.Start(b.ctx, first.Machine(), runner.StartOptions{Actor: by})
			return err
		}},
		{"Propose", "proposed", func(by *session.Actor) error {
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: first.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Actor: by})
			return err
		}},
		{"Reveal", "revealed", func(by *session.Actor) error {
			_, _, err := b.r.Reveal(b.ctx, unseen.ID, "human", by)
			return err
		}},
		{"Decide", "ruled ruled executed", func(by *session.Actor) error {
			if _, err := b.r.Decide(b.ctx, ruling(unseen, "human", "again", by)); err != nil {
				return err
			}
			back := ruling(unseen, "human", "", by)
			back.Withdraw = true
			if _, err := b.r.Decide(b.ctx, back); err != nil {
				return err
			}
			_, err := b.r.Decide(b.ctx, ruling(moved, "human", "again", by))
			return err
		}},
		{"Execute", "executed", func(by *session.Actor) error {
			_, err := b.r.Execute(b.ctx, ruling(moved, "human", "again", by))
			return err
		}},
		{"RevealReview", "revealed", func(by *session.Actor) error {
			_, err := b.r.RevealReview(b.ctx, first.ID, reviews[0].Key.ID(), "bob", by)
			return err
		}},
		{"Review", "reviewed", func(by *session.Actor) error {
			_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: first.ID, RoundID: reviews[1].Key.ID(), SpecialistID: "bob", TransitionName: "again", Actor: by})
			return err
		}},
		{"Retract", "retracted", func(by *session.Actor) error {
			_, err := b.r.Retract(b.ctx, runner.Retracting{SessionID: first.ID, RoundID: reviews[0].Key.ID(), SpecialistID: "human", Note: "a mistake", Actor: by})
			return err
		}},
		{"Stop", "ended", func(by *session.Actor) error {
			_, err := b.r.Stop(b.ctx, first.ID, runner.Stopping{Actor: *by, Note: "enough"})
			return err
		}},
		{"Resume", "resumed resumed", func(by *session.Actor) error {
			if _, err := b.r.Resume(b.ctx, first.ID, runner.ResumeOptions{Actor: by}); err != nil {
				return err
			}
			_, err := b.r.Resume(b.ctx, limited.ID, runner.ResumeOptions{SpecialistID: "bob", Note: "worth it", Raise: []guard.Raise{{Limit: "limits.max_steps", To: "1"}}, Actor: by})
			return err
		}},
		{"Move", "moved", func(by *session.Actor) error {
			_, err := b.r.Move(b.ctx, moved.ID, next, runner.Moving{Actor: *by, Note: "a better file"})
			return err
		}},
		{"SetDriver", "driver_changed", func(by *session.Actor) error {
			_, err := b.r.SetDriver(b.ctx, moved.ID, session.DriverTemporal, by)
			return err
		}},
		{"Fork", "session_created", func(by *session.Actor) error {
			_, err := b.r.Fork(b.ctx, first.ID, runner.Forking{Actor: by})
			return err
		}},
		{"Register", "specialist_registered", func(by *session.Actor) error {
			_, err := b.r.Register(b.ctx, "acts", machine.Specialist{Role: machine.Proposer, SpecialistID: "third", StrategyFnName: "random"}, by)
			return err
		}},
		{"Switch", "specialist_disabled specialist_enabled", func(by *session.Actor) error {
			b.ok(b.r.Switch(b.ctx, "acts", "third", runner.Switching{Actor: *by}))
			return b.r.Switch(b.ctx, "acts", "third", runner.Switching{On: true, Actor: *by})
		}},
		{"RecordTrial", "policy_tried", func(by *session.Actor) error {
			_, err := b.r.RecordTrial(b.ctx, "acts", session.Trial{Policy: "p", From: 1, To: 2}, by)
			return err
		}},
		{"Adopt", "policy_tried policy_adopted", func(by *session.Actor) error {
			a := trust.Adoption{Machine: "acts", PolicyDigest: "q", Promise: trust.Promise{MaxError: 100_000_000, Confidence: 900_000_000}, Pairs: []trust.Pair{{P: 990_000_000, Right: true}}}
			_, err := b.r.Adopt(b.ctx, runner.Adopting{Adoption: a, Trial: session.Trial{Policy: "q", From: 1, To: 2}, SpecialistID: "human", Actor: by})
			return err
		}},
		{"Demote", "stage_changed", func(by *session.Actor) error { return d.r.Demote(d.ctx, order(by)) }},
		{"Freeze", "collapse_frozen collapse_released", func(by *session.Actor) error {
			b.ok(d.r.Freeze(d.ctx, order(by), true))
			return d.r.Freeze(d.ctx, order(by), false)
		}},
		{"Promote", "stage_changed", func(by *session.Actor) error {
			_, err := d.r.Promote(d.ctx, order(by), "p1")
			return err
		}},
	}
	told := map[string]bool{
		"Adopt":  true,                  // its trial, and what backtest.TestAdopt looks at
		"Enable": true, "Disable": true, // Switch, where nobody says who
		"Callback": true, "Answer": true, "Withdraw": true, // what was asked for: the proposal names who answers
	}
	for _, name := range []string{ // what the engine does, or only reads
		"Step", "StepApart", "StepOn", "Called", "Run", "Tick", "Advance", "Ask", "Waits", "StopAtLimit", "StopAtTime", "Meet", "Close", "Watch", "Fold", "Tenant", "SessionDecisions", "Due", "Store", "Now", "Session", "Sessions", "Inbox", "Reviews", "Question", "Asks", "Evaluate", "Past", "Weights", "Outcome",
		"Ledger", "ReadAhead", "QuotaHeld", "QuotaUsed", "Adopters", "Humans", "HumansIn", "Deciding", "Newest", "Decisions", "TrustHistory", "Calibration", "NewestDecisions", "Tally", "SelectChampion", "WithheldRounds"} {
		told[name] = true
	}
	for _, act := range acts {
		told[act.method] = true
		if err := act.do(key(act.method)); err != nil {
			t.Errorf("%s: %v", act.method, err)
		}
	}
	kinds := map[string][]string{}
	note := func(kind string, by *session.Actor) {
		if by != nil {
			kinds[by.Subject] = append(kinds[by.Subject], kind)
		}
	}
	list, err := b.r.Sessions(b.ctx, session.ListQuery{})
	b.ok(err)
	for _, s := range list {
		for _, r := range b.raw(&session.Session{ID: s.SessionID}) {
			var d struct{ Actor *session.Actor }
			b.ok(json.Unmarshal(r.Data, &d))
			note(r.Kind, d.Actor)
		}
	}
	for name, on := range map[string]*bench{"acts": b, "desk": d.bench} {
		for rec, err := range on.store.RosterRecords(b.ctx, name, 0) {
			b.ok(err)
			events, err := session.DecodeRosterEvents(rec.Events)
			b.ok(err)
			for _, e := range events {
				note(e.Kind, e.Actor)
			}
		}
	}
	for _, act := range acts {
		got := kinds["key:"+act.method]
		want := strings.Fields(act.kinds)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is in the log as %q, want %q", act.method, got, want)
		}
	}
	for m := range reflect.TypeFor[*runner.Runner]().Methods() {
		if !told[m.Name] {
			t.Errorf("Runner.%s is neither an act with an actor nor among those that need none", m.Name)
		}
	}
}
