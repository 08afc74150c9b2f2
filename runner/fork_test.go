package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

func (b *bench) fork(s *session.Session, at int64) *session.Session {
	b.Helper()
	f, err := b.r.Fork(b.ctx, s.ID, runner.Forking{At: at, Actor: key("forker")})
	b.ok(err)
	return f
}

// TestFork: a fork goes on from where the other session stood, with what that had spent;
// nobody is asked again for what was answered, and nothing of it counts twice (cases.md 8.2).
func TestFork(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", paid("again"))
	b.cast.play("c", paid("park"))
	s := b.start(b.desk(fn("a"), fn("c"), human("human"), half), runner.StartOptions{Meta: []byte(`{"n":1}`), Seed: 7, Actor: key("starter")})
	b.stepTo(s, runner.TickHuman)
	_, err := b.r.Execute(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again"})
	b.ok(err)
	b.stepTo(s, runner.TickHuman)
	was := b.now(s)
	lessons, asked := len(b.lessons()), len(b.cast.who())
	f := b.fork(s, 0)
	if f.ID == s.ID || f.Sequence != 1 || f.Key().Round != 2 || f.State != was.State || f.Status != session.NeedsHuman || f.Executed != 1 || f.Spent() != was.Spent() ||
		f.Options().Seed != 0 || f.Options().Actor.Subject != "key:forker" || string(f.Options().Meta) != `{"n":1}` || f.CreatedAt == was.CreatedAt && f.Head == was.Head && f.Head != nil {
		t.Errorf("the fork is %+v", f.View())
	}
	if from := f.Options().ForkedFrom; from == nil || from.SessionID != s.ID.String() || from.Sequence != was.Sequence || from.Round != 2 {
		t.Errorf("it is forked from %+v", from)
	}
	if len(f.Proposals()) != 2 || len(f.OpenAsks()) != 0 {
		t.Errorf("it has %d proposals, %d asks", len(f.Proposals()), len(f.OpenAsks()))
	}
	if records := b.records(f); len(records) != 1 || strings.Contains(string(records[0].Events), `"kind":"learned"`) {
		t.Errorf("its log is %s", records[0].Events)
	}
	b.forget()
	b.stepTo(f, runner.TickHuman)
	if n := len(b.cast.who()); n != 0 {
		t.Errorf("%d were asked again, %d before", n, asked)
	}
	b.rule(runner.Ruling{SessionID: f.ID, RoundID: f.Key().ID(), SpecialistID: "human", TransitionName: "again"})
	if n := len(b.lessons()); n != lessons || b.count(f, session.KindLearned) != 0 {
		t.Errorf("the round has taught something: %d lessons, there were %d", n, lessons)
	}
	b.stepTo(f, runner.TickHuman)
	if n := len(b.cast.who()); n != 2 {
		t.Errorf("in its own round %d were asked", n)
	}
	b.rule(runner.Ruling{SessionID: f.ID, RoundID: b.now(f).Key().ID(), SpecialistID: "human", TransitionName: "finish"})
	if n := len(b.lessons()); n != lessons+1 || b.now(f).Status != session.Completed || b.now(f).Executed != 3 {
		t.Errorf("then there are %d lessons, there were %d", n, lessons)
	}
	if now := b.now(s); now.Sequence != was.Sequence {
		t.Error("the other session has moved")
	}
	if m := b.metrics(""); m.TotalDecisions != 3 {
		t.Errorf("%d decisions are counted, and 3 were made", m.TotalDecisions)
	}
	again := b.fork(b.now(s), 2) // of the very beginning
	if again.Round != 1 || again.Executed != 0 || again.Status != session.Running || again.Spent().Money != 0 {
		t.Errorf("forked at the beginning: %+v", again.View())
	}
	twice := b.fork(f, 1)
	if twice.Spent() != was.Spent() || twice.Executed != 1 || len(twice.Proposals()) != 2 {
		t.Errorf("a fork of a fork is %+v", twice.View())
	}
}

// TestForkLeavesReviews: reviews that the other session waits for do not come along (cases.md 8.2).
func TestForkLeavesReviews(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("carol"), arb("firstProposal")}, top: `"audit":{"mode":"after","rate":1}`}))
	b.stepTo(s, runner.TickAdvanced)
	if f := b.fork(s, 0); len(b.now(s).Reviews()) != 1 || len(f.Reviews()) != 0 {
		t.Errorf("%d reviews wait, %d of the fork", len(b.now(s).Reviews()), len(f.Reviews()))
	}
}

// TestForkInsideACommit is refused with its neighbours, as is an event that is not there, and
// a session that has completed (cases.md 8.2).
func TestForkInsideACommit(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), half))
	b.propose(s, "a", "again")
	b.force(s, "again")
	records := b.records(s)
	last := b.now(s).Sequence
	first := records[2].First
	for at, text := range map[int64]string{
		1:         "event 1 is inside a commit: fork at event 2, where the first ends",
		first:     "event 4 is inside a commit: fork at event 3, or at event 7",
		last + 1:  "has no event " + itoa(last+1),
		-1:        "has no event -1",
		last + 99: "its last is event " + itoa(last),
	} {
		_, err := b.r.Fork(b.ctx, s.ID, runner.Forking{At: at})
		if !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), text) {
			t.Errorf("at %d: %v, want %s", at, err, text)
		}
	}
	b.force(s, "finish")
	if _, err := b.r.Fork(b.ctx, s.ID, runner.Forking{}); !errors.Is(err, runner.ErrNotRunning) {
		t.Errorf("of what has completed: %v", err)
	}
	if _, err := b.r.Fork(b.ctx, specialist.SessionID{9}, runner.Forking{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := b.r.Fork(b.ctx, s.ID, runner.Forking{At: 2, ID: s.ID}); !errors.Is(err, session.ErrExists) {
		t.Errorf("onto itself: %v", err)
	}
	if list, err := b.store.List(b.ctx, session.ListQuery{}); err != nil || len(list) != 1 {
		t.Errorf("there are %d sessions (%v)", len(list), err)
	}
}

// paid is the part of somebody who says that and takes a dollar for it.
func paid(transition string) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: transition, Usage: cost(dollar)}, nil
	}
}

func itoa(n int64) string { text, _ := json.Marshal(n); return string(text) }

// TestForkLeavesBehind what is withheld, and rulings that wait for others: a fork is no way
// to see the one, nor around the other (cases.md 8.2).
func TestForkLeavesBehind(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", paid("again"))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"audit":{"rate":1,"mode":"before"}`}))
	b.train(s.Machine(), "a", 20, 20)
	b.stepTo(s, runner.TickHuman)
	if b.now(s).Withheld("") == "" || len(b.now(s).Proposals()) != 1 {
		t.Fatal("nothing is withheld")
	}
	f := b.fork(s, 0)
	if len(f.Proposals()) != 0 || f.Status != session.Running || f.Spent() != b.now(s).Spent() || strings.Contains(string(b.records(f)[0].Events), `"kind":"proposed"`) {
		t.Errorf("the fork has %d proposals, is %s, has spent %v", len(f.Proposals()), f.Status, f.Spent())
	}
	p := b.start(b.approved("", `2`))
	b.stepTo(p, runner.TickHuman)
	waits := b.now(p).Outcome()
	b.recorded(p, "alice", "pay", session.CodeApprovals)
	f = b.fork(p, 0)
	if list, _ := f.PendingRulings(); list != nil || f.Status != session.NeedsHuman || f.Outcome().Reason != waits.Reason {
		t.Errorf("the fork has %d rulings, waits for %+v", len(list), f.Outcome())
	}
	b.recorded(f, "bob", "pay", session.CodeApprovals) // the first of two again
}

// TestForkKeepsWithheld: what another human must not see by now stays out of a fork from before
// it was withheld too, but for what anybody may see (cases.md 4.6, 7.2, 8.2).
func TestForkKeepsWithheld(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol"))
	b.stepTo(s, runner.TickHuman)
	before := b.now(s).Sequence
	b.propose(s, "human", "park")
	at := b.now(s).Sequence
	if f := b.fork(s, at); !slices.ContainsFunc(f.Proposals(), func(p *specialist.Proposal) bool { return p.IsHuman }) {
		t.Error("nothing is withheld yet, and the proposal does not come along")
	}
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	if b.now(s).Withheld("carol") == "" {
		t.Fatal("nothing is withheld from carol")
	}
	for _, at := range []int64{before, at, 0} {
		if f := b.fork(s, at); len(f.Proposals()) != 0 || strings.Contains(string(b.records(f)[0].Events), `"kind":"proposed"`) {
			t.Errorf("from event %d the fork has %d proposals: %s", at, len(f.Proposals()), b.records(f)[0].Events)
		}
	}
	b.executed(s, "carol", "park")
	if f := b.fork(s, at); len(f.Proposals()) == 0 {
		t.Error("nothing is withheld any more, and the proposals do not come along")
	}
}

// TestForkIsNoWayAroundExclude: who has started the session, or ruled in it, is excluded from
// the fork's approvals too (cases.md 4.2, 8.2).
func TestForkIsNoWayAroundExclude(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved("", `{"count":1,"exclude":["starter"]}`), runner.StartOptions{Actor: &session.Actor{Subject: "key:bob", Method: "key", Humans: []string{"bob"}}})
	f := b.fork(b.fork(s, 0), 0)
	b.stepTo(f, runner.TickHuman)
	a, err := b.word(f, "bob", "pay")
	if !errors.Is(err, runner.ErrForbidden) || a.Executed {
		t.Errorf("who has started the first approves: %v", err)
	}
	if e := b.executed(f, "alice", "pay"); slices.Contains(e.Authors, "bob") {
		t.Error("bob is an author")
	}
}

// TestForkIsDueAnew: a fork counts by when it is to leave its state from its own beginning,
// reminders too; what would have come before that never comes (cases.md 6.1, 8.2).
func TestForkIsDueAnew(t *testing.T) {
	b := newBench(t)
	s := b.start(b.timed(`{"in":"2h","remind":["90m","3h"],"then":"escalate"}`, `"boss"`))
	b.executed(s, "alice", "again")
	b.pass(90 * time.Minute)
	b.stepTo(s, runner.TickHuman) // which reminds
	f := b.fork(s, 0)
	if due := f.Due(); due == nil || due.At != f.CreatedAt+2*3600*1000 || due.At <= b.now(s).Due().At || f.WakeAt() != f.CreatedAt+1800*1000 {
		t.Fatalf("the fork of %s is due at %+v, wakes at %s", f.CreatedAt, due, f.WakeAt())
	}
	b.stepTo(f, runner.TickHuman)
	b.pass(30 * time.Minute)
	b.stepTo(f, runner.TickHuman)
	if n := b.count(f, session.KindReminded); n != 1 {
		t.Errorf("it was reminded %d times", n)
	}
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(f, runner.TickHuman)
	b.pass(90 * time.Minute)
	b.stepTo(f, runner.TickAdvanced)
	lost := b.fork(b.start(b.timed(`{"at":"= data.when","then":"escalate"}`, `"boss"`)), 0)
	if due := lost.Due(); due == nil || due.At != 0 || due.Error == "" || lost.WakeAt() != 0 {
		t.Errorf("a fork of what nobody knows the moment of is due at %+v", due)
	}
}

// TestForkKeepsLimitsAndMissing: a fork has the limits that were raised, and goes without
// whom the other session was started without (cases.md 5.3, 8.2).
func TestForkKeepsLimitsAndMissing(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", paid("again"))
	s := b.start(b.machine(def{who: []string{fn("a"), human("carol"), arb("firstProposal")}, top: `"guards":{"limits":{"max_steps":1},"loop_detection":{"cycle":false}},"quorum":"any"`}))
	b.stepTo(s, runner.TickAdvanced)
	b.ok(b.raise(s, "limits.max_steps", "3"))
	f := b.fork(s, 0)
	for _, one := range []*session.Session{b.fork(f, 0), f} {
		for range 2 {
			b.stepTo(one, runner.TickAdvanced)
		}
		if tick := b.stepTo(one, runner.TickStopped); tick.Code != "max_steps" || tick.Session.Executed != 3 {
			t.Errorf("it comes to %s after %d steps", tick.Code, tick.Session.Executed)
		}
	}
	gone := parse(t, `{"machineName":"m","initialState":"open","goalState":"done","quorum":"any","specialists":[{"role":"arbiter","specialistId":"judge"},
	  {"role":"proposer","specialistId":"a","strategyFn":"= 'again'"},{"role":"proposer","specialistId":"gone","strategyFn":"gone"}],"states":{"open":{"transitions":{"again":"open","end":"done"}},"done":{}}}`)
	other := b.runner(func(c *runner.Config) { c.Resolver = strategies.Registry{} })
	m, err := other.Start(b.ctx, gone, runner.StartOptions{AllowMissing: []machine.SpecialistID{"gone"}})
	b.ok(err)
	for range 2 {
		m, err = other.Fork(b.ctx, m.ID, runner.Forking{})
		if b.ok(err); !slices.Equal(m.Program.Missing(), []string{"gone"}) {
			t.Errorf("in the fork %q are missing", m.Program.Missing())
		}
		if tick, err := other.Step(b.ctx, m.ID); err != nil || tick.Status != runner.TickAdvanced || !slices.Equal(tick.Asked(), []string{"a"}) {
			t.Errorf("it comes to %s, asks %q: %v", tick.Status, tick.Asked(), err)
		}
	}
}

// TestForkKeepsTexts as they are written, and what may be seen stays so: what a fork has
// taken over was no secret, unless the other session keeps it by now (cases.md 7.2, 8.2).
func TestForkKeepsTexts(t *testing.T) {
	b := newBench(t)
	s := b.start(parse(t, `{"machineName":"m","initialState":"open","goalState":"done","specialists":[{"role":"arbiter","specialistId":"judge"}],
	  "states":{"open":{"due":{"at":"= '-1h'","then":"go"},"specialists":[],"transitions":{"go":{"target":"open","set":{"way":"<a>&b"}},"end":"done"}},"done":{}}}`))
	b.stepTo(s, runner.TickAdvanced)
	if f := b.fork(b.fork(s, 0), 0); string(f.Data().JSON()) != string(b.now(s).Data().JSON()) {
		t.Errorf("the data are %s, were %s", f.Data().JSON(), b.now(s).Data().JSON())
	}
	shown := b.start(b.approved(`"audit":{"rate":1,"mode":"before"},`, `2`))
	b.recorded(shown, "alice", "pay", session.CodeApprovals) // a human is asked, so everything is shown
	b.propose(shown, "bob", "pay")
	if f := b.fork(shown, 0); b.now(shown).Withheld("") != "" || f.Withheld("") != "" || len(f.Proposals()) != 1 {
		t.Errorf("the fork has %d proposals, withheld: %q", len(f.Proposals()), f.Withheld(""))
	}
	two := b.start(b.machine(def{who: []string{human("ann"), human("bob"), human("carol"), half}, top: `"secondHuman":{"rate":1,"when":"before"}`}))
	b.propose(two, "ann", "again")
	f := b.fork(two, 0)
	if f.Withheld("") != "" || len(f.Proposals()) != 1 {
		t.Errorf("the fork has %d proposals, withheld: %q", len(f.Proposals()), f.Withheld(""))
	}
	b.stepTo(f, runner.TickHuman)
	b.recorded(f, "ann", "again", session.CodeSecondHuman)
	if b.now(f).Withheld("") == "" {
		t.Fatal("nothing is withheld")
	}
	if again := b.fork(f, 0); len(again.Proposals()) != 0 {
		t.Errorf("a fork of that has %d proposals", len(again.Proposals()))
	}
}
