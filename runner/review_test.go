package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// lessons returns all that was learned.
func (b *bench) lessons() (list []trust.Lesson) {
	b.Helper()
	for l, err := range b.store.Lessons(b.ctx, 0) {
		b.ok(err)
		list = append(list, l)
	}
	return list
}

// reviews returns what waits for a human, in short.
func (b *bench) reviews() string {
	b.Helper()
	items, _, err := b.r.Reviews(b.ctx, session.ListQuery{}, "")
	b.ok(err)
	var list []string
	for _, v := range items {
		list = append(list, fmt.Sprint(v.Review, " of round ", v.Round, " for ", v.Humans))
	}
	return fmt.Sprint(list)
}

func (b *bench) review(s *session.Session, round int32, who, transition string) (*session.Reviewed, error) {
	b.Helper()
	key := s.Key()
	key.Round, key.Attempt = round, 0
	return b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: key.ID(), SpecialistID: machine.SpecialistID(who), TransitionName: transition, Blind: true})
}

// TestAuditAfter draws every automatic decision for an audit, which a human does
// when the session has long ended.
func TestAuditAfter(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("firstProposal")}, top: `"audit":{"rate":1}`})
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	if got := b.reviews(); got != "[audit of round 1 for [human]]" {
		t.Fatalf("there waits %s", got)
	}
	if _, err := b.review(s, 1, "a", "finish"); !errors.Is(err, runner.ErrForbidden) {
		t.Errorf("an AI audits: %v", err)
	}
	if _, err := b.review(s, 1, "human", "back"); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("a transition of another state: %v", err)
	}
	if _, err := b.review(s, 7, "human", "finish"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a round that was never: %v", err)
	}
	if n := len(b.lessons()); n != 0 {
		t.Fatalf("refusals taught %d lessons", n)
	}
	d, err := b.review(s, 1, "human", "again")
	b.ok(err)
	o := b.lessons()[0].Outcome
	if d.Review != session.Audit || o.Source != trust.Audited || !o.Automatic || o.Unasked || !o.Blind || o.SamplingProb.Float() != 1 ||
		o.Pick != "finish" || o.Truth != "again" || o.HumanID != "human" || len(o.Proposals) != 1 || o.State != "open" {
		t.Errorf("the audit is %+v, its outcome %+v", d, o)
	}
	if now := b.now(s); now.Status != session.Completed || now.Executed != 1 || b.reviews() != "[]" {
		t.Errorf("after the audit the session is %s with %d steps, waiting: %s", now.Status, now.Executed, b.reviews())
	}
	if _, err := b.review(s, 1, "human", "finish"); !errors.Is(err, runner.ErrReviewed) {
		t.Errorf("a second audit: %v", err)
	}
	b.wantMinutes(s, 0, 1)
}

// wantMinutes says how many decisions and looks beside humans are to have made, and
// that these are their minutes.
func (b *bench) wantMinutes(s *session.Session, decisions, looks int) {
	b.Helper()
	m, err := report.MetricsOf(b.ctx, b.r, s.Machine().Name(), "")
	b.ok(err)
	usual := m.HumanMinutes
	m.Assume(.25)
	if n := float64(decisions + looks); m.HumanDecisions != decisions || m.HumanLooks != looks || usual != 2*n || math.Abs(m.HumanMinutes-n/4) > .051 {
		b.Errorf("humans decided %d rounds and looked at %d: %v minutes, then %v", m.HumanDecisions, m.HumanLooks, usual, m.HumanMinutes)
	}
}

// TestAuditUndrawn has a human look at a round that nobody had drawn: that is no
// random sample.
func TestAuditUndrawn(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), arb("firstProposal")))
	b.stepTo(s, runner.TickAdvanced)
	b.force(s, "park")
	if got := b.reviews(); got != "[]" {
		t.Fatalf("there waits %s", got)
	}
	if _, err := b.review(s, 2, "human", "finish"); !errors.Is(err, runner.ErrReviewed) {
		t.Errorf("a human's decision is audited: %v", err)
	}
	_, err := b.review(s, 1, "human", "finish")
	b.ok(err)
	if o := b.lessons()[1].Outcome; !o.Unasked || !o.Automatic || o.SamplingProb != 0 || o.Pick != "again" || o.Truth != "finish" {
		t.Errorf("the outcome is %+v", o)
	}
	if _, err := b.review(s, 1, "human", "again"); !errors.Is(err, runner.ErrReviewed) {
		t.Errorf("a second audit: %v", err)
	}
}

// TestAuditBefore has a human decide, before anything is executed, what the engine
// would have decided.
func TestAuditBefore(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("firstProposal")}, top: `"audit":{"rate":1,"mode":"before"}`})
	s := b.start(m)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "audit" || tick.Reasoning() != "Drawn for an audit, human input required" {
		t.Errorf("%s: %s", tick.Code, tick.Reasoning())
	}
	b.force(s, "again")
	if o := b.lessons()[0].Outcome; o.Source != trust.Audited || !o.Automatic || o.Unasked || o.SamplingProb.Float() != 1 || o.Truth != "again" || o.Pick != "finish" {
		t.Errorf("the outcome is %+v", o)
	}
	b.wantMinutes(s, 1, 0)
	if got := b.reviews(); got != "[]" {
		t.Errorf("there waits %s", got)
	}
}

// TestAuditRates: newcomers are looked at more closely, and the same rounds are
// drawn whoever asks and however often.
func TestAuditRates(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("firstProposal")}, top: `"audit":{"rate":0.1,"newcomerRate":0.5,"newcomer":100}`})
	s := b.start(m)
	for range 600 {
		b.stepTo(s, runner.TickAdvanced)
	}
	first, rest := 0, 0
	for _, v := range b.now(s).Reviews() {
		if v.Key.Round <= 100 {
			first++
		} else {
			rest++
		}
	}
	if first < 30 || first > 70 || rest < 25 || rest > 80 { // 4 standard errors around 50 and 50
		t.Errorf("%d of the first 100 and %d of the other 500 were drawn", first, rest)
	}
}

// TestSecondHuman has two humans decide the same round: what they agree about
// counts then, what they do not when a third has settled it.
func TestSecondHuman(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), human("dave"), arb("bayes")}, top: `"secondHuman":{"rate":1}`})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.force(s, "again")
	b.stepTo(s, runner.TickHuman)
	b.force(s, "park")
	if got := b.reviews(); got != "[second of round 1 for [carol dave] second of round 2 for [carol dave]]" || len(b.lessons()) != 0 {
		t.Fatalf("there waits %s with %d lessons", got, len(b.lessons()))
	}
	if _, err := b.review(s, 1, "human", "again"); !errors.Is(err, runner.ErrForbidden) {
		t.Errorf("the first human answers twice: %v", err)
	}
	_, err := b.review(s, 1, "carol", "again")
	b.ok(err)
	if l := b.lessons()[0]; l.Outcome == nil || l.Outcome.HumanID != "human" || l.Outcome.Source != trust.Forced || l.Second == nil || l.Second.First != l.Second.Second {
		t.Errorf("agreement teaches %+v", l)
	}
	_, err = b.review(s, 2, "dave", "finish")
	b.ok(err)
	if l := b.lessons()[1]; l.Outcome != nil || l.Second == nil || l.Second.First != "park" || l.Second.Second != "finish" {
		t.Errorf("disagreement teaches %+v", l)
	}
	if got := b.reviews(); got != "[adjudication of round 2 for [carol]]" {
		t.Fatalf("there waits %s", got)
	}
	_, err = b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: b.now(s).Reviews()[0].Key.ID(), SpecialistID: "carol", TransitionName: "finish"})
	b.ok(err)
	if l := b.lessons()[2]; !l.Settles || l.Outcome.Blind || l.Outcome.Source != trust.Adjudicated || l.Outcome.Truth != "finish" || l.Second.Settled != "finish" || b.reviews() != "[]" {
		t.Errorf("a third human teaches %+v", l)
	}
	l, err := b.r.Ledger(b.ctx)
	b.ok(err)
	if k, n := l.Human("human"); k != 1 || n != 2 {
		t.Errorf("the first human was right in %d of %d rounds", k, n)
	}
	if k, n := l.Human("dave"); k != 1 || n != 1 || l.N("desk") != 2 {
		t.Errorf("dave was right in %d of %d rounds; there are %d outcomes", k, n, l.N("desk"))
	}
}

// TestSecondHumanAlone: with one human the check is skipped, and outcomes count.
func TestSecondHumanAlone(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("off", `"disabled":true`), arb("bayes")}, top: `"secondHuman":{"rate":1}`}))
	b.stepTo(s, runner.TickHuman)
	b.force(s, "again")
	if b.reviews() != "[]" || len(b.lessons()) != 1 {
		t.Errorf("there waits %s with %d lessons", b.reviews(), len(b.lessons()))
	}
}

// TestSecondHumanIrreversible: what cannot be undone has a rate of its own.
func TestSecondHumanIrreversible(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), arb("bayes")}, top: `"secondHuman":{"rate":0.000000001,"irreversibleRate":1}`,
		states: `"open":{"transitions":{"again":"open","burn":{"target":"done","irreversible":true}}},"done":{}`})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.force(s, "again")
	if got := b.reviews(); got != "[]" {
		t.Errorf("at a rate of next to 0 there waits %s", got)
	}
	b.stepTo(s, runner.TickHuman)
	b.force(s, "burn")
	if got := b.reviews(); got != "[second of round 2 for [carol]]" {
		t.Errorf("of what cannot be undone there waits %s", got)
	}
}

// TestReviewShowsWhatItIsAbout: who reviews a closed round sees its question as it stood
// when it was closed, whatever came after it: facts, history with payloads, and what was
// proposed as far as it is not withheld from them.
func TestReviewShowsWhatItIsAbout(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("carol"), arb("bayes")}, top: `"secondHuman":{"rate":1}`}))
	for _, said := range []string{"again", "park"} {
		b.stepTo(s, runner.TickHuman)
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "human", TransitionName: said, Reasoning: "so " + said, MetaJSON: json.RawMessage(`{"iban":"` + said + `"}`)})
	}
	round := b.now(s).Reviews()[1].Key
	for _, c := range []struct {
		viewer machine.SpecialistID
		look   bool
		sees   bool
	}{{"", false, false}, {"carol", false, false}, {"human", false, true}, {"carol", true, true}, {"", false, false}} {
		if c.look {
			_, err := b.r.RevealReview(b.ctx, s.ID, round.ID(), c.viewer, nil)
			b.ok(err)
		}
		items, _, err := b.r.Reviews(b.ctx, session.ListQuery{}, c.viewer)
		b.ok(err)
		q := items[1]
		if q.RoundID != round.ID() || q.State != "open" || len(q.Facts.Data) == 0 || len(q.History) != 1 || string(q.History[0].MetaJSON) != `{"iban":"again"}` || len(q.Transitions) != 3 {
			t.Errorf("%q is shown %+v", c.viewer, q)
		}
		if sees := len(q.Proposals) == 1 && len(q.Rulings) == 1 && q.Rulings[0].Reasoning == "so park" && string(q.Rulings[0].MetaJSON) == `{"iban":"park"}` && q.Withheld == nil && q.WithheldRulings == 0; sees != c.sees ||
			!sees && (len(q.Proposals) != 0 || len(q.Rulings) != 0 || q.WithheldRulings != 1 || q.Withheld == nil || q.Withheld.Proposals != 1) {
			t.Errorf("%q is shown the proposals %s and the rulings %v", c.viewer, q.Proposals, q.Rulings)
		}
		rounds, err := b.r.WithheldRounds(b.ctx, b.now(s), c.viewer)
		b.ok(err)
		if rounds[round.Round] == "" != c.sees {
			t.Errorf("from %q are withheld the rounds %v", c.viewer, rounds)
		}
	}
}

// TestTwoWhoDisagreeAlone: where two humans disagree about a closed round and no third is
// there, everything is shown, and the round is settled as soon as one of them takes the
// other's choice: that is no blind ruling, and says of neither that they were right.
func TestTwoWhoDisagreeAlone(t *testing.T) {
	for _, c := range []struct{ who, says, truth string }{{"human", "finish", "finish"}, {"carol", "park", "park"}} {
		b := newBench(t)
		b.cast.say("a", "again")
		s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("carol"), human("dave"), arb("bayes")}, top: `"secondHuman":{"rate":1}`}))
		b.stepTo(s, runner.TickHuman)
		b.force(s, "park")
		_, err := b.review(s, 1, "carol", "finish")
		b.ok(err)
		if _, err := b.review(s, 1, c.who, c.says); !errors.Is(err, runner.ErrForbidden) || b.reviews() != "[adjudication of round 1 for [dave]]" {
			t.Errorf("with a third human there waits %s, and %s: %v", b.reviews(), c.who, err)
		}
		b.ok(b.r.Disable(b.ctx, s.Machine().Name(), "dave"))
		items, _, err := b.r.Reviews(b.ctx, session.ListQuery{}, "")
		b.ok(err)
		if q := items[0]; q.Code != session.CodeContested || len(q.Rulings) != 2 || len(q.Proposals) != 1 || len(q.Transitions) != 2 || fmt.Sprint(q.Humans) != "[human carol]" {
			t.Errorf("what is shown is %+v", q)
		}
		for _, other := range []struct{ who, says string }{{"human", "park"}, {"human", "again"}, {"carol", "finish"}, {"carol", "again"}} {
			if _, err := b.review(s, 1, other.who, other.says); !errors.Is(err, runner.ErrIllegal) {
				t.Errorf("%s says %s: %v", other.who, other.says, err)
			}
		}
		if _, err := b.review(s, 1, "dave", "park"); !errors.Is(err, runner.ErrForbidden) {
			t.Errorf("who is switched off answers: %v", err)
		}
		_, err = b.review(s, 1, c.who, c.says)
		b.ok(err)
		lessons := b.lessons()
		if l := lessons[len(lessons)-1]; len(lessons) != 2 || l.Second != nil || l.Outcome.Truth != c.truth || l.Outcome.Blind || l.Outcome.HumanID != "human" || b.reviews() != "[]" {
			t.Errorf("%s taking the other's choice teaches %+v; there waits %s", c.who, l, b.reviews())
		}
		l, err := b.r.Ledger(b.ctx)
		b.ok(err)
		if _, n := l.Human(c.who); n != 0 {
			t.Errorf("%s was judged in %d rounds", c.who, n)
		}
	}
}
