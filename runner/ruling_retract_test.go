package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (b *bench) retract(s *session.Session, round, who string) error {
	_, err := b.r.Retract(b.ctx, runner.Retracting{SessionID: s.ID, RoundID: round, SpecialistID: machine.SpecialistID(who), Note: "I read the wrong one", Actor: key(who)})
	return err
}

// TestRetract: an author takes the own executed ruling back. What was executed stays;
// weights and examples are as if nobody had ruled; who did it is in the log (cases.md 4.7).
func TestRetract(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.desk(fn("a"), human("human"), half)
	s := b.start(m)
	b.submit(runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "a", TransitionName: "finish"})
	round := s.Key().ID()
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: round, SpecialistID: "human", TransitionName: "again"})
	weight := func() string {
		book, err := b.store.Book(b.ctx, "desk")
		b.ok(err)
		return book.Score("a", "").String()
	}
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "finish"})
	next := b.now(s).Key().ID()
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: next, SpecialistID: "human", TransitionName: "finish"})
	done := b.now(s)
	if done.Status != session.Completed {
		t.Fatalf("the session is %s", done.Status)
	}
	once := newBench(t) // where nobody has ruled on the first round
	once.train(m, "a", 1, 1)
	book, err := once.store.Book(once.ctx, "desk")
	once.ok(err)
	want := book.Score("a", "").String()
	if weight() == want {
		t.Fatalf("a ruling against it leaves the weight at %s", want)
	}
	b.ok(b.retract(s, round, "human"))
	now := b.now(s)
	if now.Status != session.Completed || now.Executed != 2 || now.Sequence != done.Sequence+1 || weight() != want {
		t.Errorf("the session is %s with %d steps at %d, the weight %s, want %s", now.Status, now.Executed, now.Sequence, weight(), want)
	}
	if h := now.View().History; h[0].Retracted != "I read the wrong one" || h[1].Retracted != "" || h[0].TransitionName != "again" {
		t.Errorf("the history is %+v", h)
	}
	list, err := b.store.Exemplars(b.ctx, "desk", "open", 0)
	if b.ok(err); len(list) != 1 || list[0].HumanTransitionName != "finish" {
		t.Errorf("the exemplars are %+v", list)
	}
	if l := b.lessons(); len(l) != 3 || l[2].Retracts == nil || l[2].Retracts.Truth != "again" {
		t.Errorf("the lessons are %+v", l)
	}
	if e := b.explain(now, "1"); e.Ruling.Retracted == nil || e.Ruling.Retracted.HumanID != "human" {
		t.Errorf("explained it is %+v", e.Ruling)
	}
	b.forget()
	if b.now(s).Retracted(1) == nil {
		t.Error("read back, the ruling stands")
	}
}

// TestRetractRefuses whoever has not ruled, a second time, and what another human has
// reviewed; a review that was only waited for is off (cases.md 4.7).
func TestRetractRefuses(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("bob"), half}, top: `"secondHuman":{"rate":1,"when":"after"}`}))
	b.force(s, "again")
	b.force(s, "again")
	reviews := b.now(s).Reviews()
	first, second := reviews[0].Key.ID(), reviews[1].Key.ID()
	d, err := b.review(s, reviews[0].Key.Round, "bob", "again")
	if b.ok(err); d == nil {
		t.Fatal("no review")
	}
	before := b.now(s).Sequence
	for _, c := range []struct {
		round, who string
		kind       error
		text       string
	}{
		{second, "bob", runner.ErrForbidden, "bob has not ruled on round 2: only who has can take that back"},
		{second, "a", runner.ErrForbidden, "a has not ruled on round 2"},
		{first, "human", runner.ErrReviewed, "bob has reviewed round 1"},
		{"nowhere", "human", session.ErrNotFound, "Closed round not found: nowhere"},
		{b.now(s).Key().ID(), "human", session.ErrNotFound, "Closed round not found"},
	} {
		if err := b.retract(s, c.round, c.who); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s on %s: %v", c.who, c.round, err)
		}
	}
	_, err = b.r.Retract(b.ctx, runner.Retracting{SessionID: s.ID, RoundID: second, SpecialistID: "human", Note: " "})
	b.refused(err, runner.ErrIllegal, "a ruling is taken back without a note: say why")
	if b.now(s).Sequence != before {
		t.Error("a refused word was recorded")
	}
	lessons := len(b.lessons())
	b.ok(b.retract(s, second, "human"))
	if now := b.now(s); len(now.Reviews()) != 0 || len(b.lessons()) != lessons {
		t.Errorf("%d reviews wait, %d lessons, there were %d: what nobody has learned yet teaches nothing", len(now.Reviews()), len(b.lessons()), lessons)
	}
	if err := b.retract(s, second, "human"); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := b.review(s, 2, "bob", "again"); !errors.Is(err, runner.ErrReviewed) {
		t.Errorf("reviewed after that: %v", err)
	}
	b.propose(s, "a", "again")
	other := b.start(b.desk(fn("a"), human("human"), fn("b"), half))
	b.cast.say("b", "again")
	b.train(other.Machine(), "a", 20, 20)
	b.stepTo(other, runner.TickAdvanced)
	if err := b.retract(other, other.Key().ID(), "human"); !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), "no human has ruled on round 1") {
		t.Errorf("a consensus: %v", err)
	}
}
