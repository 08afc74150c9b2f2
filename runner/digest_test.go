package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// slowDigest is the digest as the specification words it, from the JSON of the
// question.
func slowDigest(t testing.TB, s *session.Session, q runner.Question) string {
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		SessionID   string                        `json:"sessionId"`
		RoundID     string                        `json:"roundId"`
		State       string                        `json:"state"`
		Facts       struct{ Data any }            `json:"facts"`
		Proposals   []struct{ ProposalID string } `json:"proposals"`
		Transitions []struct {
			Name, Target, Closed string
			Irreversible         bool
		} `json:"transitions"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	legal := []any{}
	for _, o := range v.Transitions {
		if o.Closed != "" {
			continue
		}
		legal = append(legal, map[string]any{"name": o.Name, "target": o.Target, "irreversible": o.Irreversible})
	}
	var ids any
	if q.Withheld == nil {
		list := []any{}
		for _, p := range v.Proposals {
			list = append(list, p.ProposalID)
		}
		ids = list
	}
	form, err := json.Marshal(map[string]any{"v": 1, "sessionId": v.SessionID, "roundId": v.RoundID, "machineDigest": s.Machine().Digest(), "state": v.State,
		"data": v.Facts.Data, "transitions": legal, "proposals": ids, "rulings": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	if form, err = jsontext.Canonical(form); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:])
}

// TestDigestSpelledOut compares the digests of questions with what the specification
// says of them.
func TestDigestSpelledOut(t *testing.T) {
	for _, meta := range []string{`null`, `{"z":1.50,"a":{"y":[1e3,"ü\n"],"x":null}}`, `[1,2]`, `"text"`} {
		b := newBench(t)
		s := b.start(b.machine(def{states: payment, who: []string{fn("a"), fn("b"), human("ann"), human("human"), half}}), runner.StartOptions{Meta: []byte(meta)})
		for _, step := range []func(){
			func() {}, func() { b.propose(s, "b", "approve") }, func() { b.propose(s, "a", "drop") }, func() { b.propose(s, "ann", "drop") },
			func() { b.propose(s, "b", "drop") }, func() { b.force(s, "approve") },
		} {
			step()
			q, err := b.r.Question(b.ctx, b.now(s), "ann")
			if b.ok(err); q.Digest != slowDigest(t, b.now(s), q) {
				t.Errorf("of %+v the digest is %s, want %s", q, q.Digest, slowDigest(t, b.now(s), q))
			}
		}
	}
	b := newBench(t)
	s := withholding(b, "collapse")
	b.said(map[string]string{"a": "finish", "b": "finish"})
	b.stepTo(s, runner.TickHuman)
	q, err := b.r.Question(b.ctx, b.now(s), "ann")
	if b.ok(err); q.Digest != slowDigest(t, b.now(s), q) {
		t.Errorf("withheld, the digest is %s, want %s", q.Digest, slowDigest(t, b.now(s), q))
	}
	s = b.start(b.machine(def{states: `"open":{"transitions":{"finish":"done","again":{"target":"open","when":"= false"}}},"done":{}`, who: []string{human("ann"), half}}))
	q, err = b.r.Question(b.ctx, b.now(s), "ann")
	if b.ok(err); len(q.Transitions) != 2 || q.Transitions[1].Closed == "" || q.Digest != slowDigest(t, b.now(s), q) {
		t.Errorf("with a transition that is closed, the digest is %s, want %s (%+v)", q.Digest, slowDigest(t, b.now(s), q), q.Transitions)
	}
}

// TestDigestOfWhatIsShown: the digest is the same for a session that was read back,
// whatever order its data is written in, and another one when data, state, round,
// definition or proposals change.
func TestDigestOfWhatIsShown(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: payment, who: []string{fn("a"), human("ann"), human("human"), half}})
	other := b.machine(def{states: strings.Replace(payment, `"drop":"done"`, `"drop":{"target":"done","irreversible":true}`, 1), who: []string{fn("a"), human("ann"), human("human"), half}})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		text, err := json.Marshal(anyData(rng))
		b.ok(err)
		s := b.start(m, runner.StartOptions{Meta: text})
		seen := map[string]string{}
		note := func(what string, s *session.Session) {
			q, err := b.r.Question(b.ctx, s, "ann")
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := b.r.Session(b.ctx, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := b.r.Question(b.ctx, loaded, ""); err != nil || again.Digest != q.Digest {
				t.Fatalf("%s: read back, the digest is %s (%v), was %s", what, again.Digest, err, q.Digest)
			}
			if was, ok := seen[q.Digest]; ok {
				t.Fatalf("%s and %s have one digest", was, what)
			}
			seen[q.Digest] = what
		}
		note("new", b.now(s))
		b.propose(s, "a", "approve")
		note("with a proposal", b.now(s))
		b.propose(s, "a", "drop")
		note("with another proposal", b.now(s))
		b.force(s, "approve")
		note("in another state", b.now(s))
		b.force(s, "back")
		note("in another round", b.now(s))
		note("of another session", b.start(m, runner.StartOptions{Meta: text}))
		note("of another definition", b.start(other, runner.StartOptions{Meta: text}))
	}
}

// anyData returns an object with a few members.
func anyData(rng *rand.Rand) map[string]any {
	data := map[string]any{}
	for range rng.IntN(5) {
		name := string([]rune{rune(rng.IntN(0x3000)), rune(rng.IntN(0x80))})
		switch rng.IntN(4) {
		case 0:
			data[name] = nil
		case 1:
			data[name] = rng.NormFloat64() * 1e9
		case 2:
			data[name] = string([]rune{rune(rng.IntN(0x3000)), '"', rune(rng.IntN(0x20))})
		default:
			data[name] = []any{anyData(rng), rng.IntN(2) == 0}
		}
	}
	return data
}

// TestStaleQuestion rules on a round that has come to show something else.
func TestStaleQuestion(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: payment, who: []string{fn("a"), human("ann"), human("bob"), half}}))
	q, err := b.r.Question(b.ctx, s, "ann")
	b.ok(err)
	b.propose(s, "a", "drop")
	before := b.now(s).Sequence
	in := runner.Ruling{SessionID: s.ID, RoundID: q.RoundID, QuestionDigest: q.Digest, SpecialistID: "ann", TransitionName: "approve"}
	changed := map[string]string{q.Digest: "[a proposed drop: open → done]", q.Digest[:session.DigestPrefix]: "[a proposed drop: open → done]", "no digest": "[]", q.Digest[:session.DigestPrefix-1]: "[]"}
	for digest := range changed {
		in.QuestionDigest = digest
		a, err := b.r.Decide(b.ctx, in)
		stale, ok := errors.AsType[*runner.StaleError](err)
		if !ok || stale.Refusal.Code != runner.CodeStaleQuestion || !errors.Is(err, runner.ErrStaleRound) || !a.Stale || a.Executed || a.GuardReason != err.Error() {
			t.Fatalf("a ruling on what is not shown any more is %+v, %v", a, err)
		}
		if fmt.Sprint(stale.Changed) != changed[digest] || len(stale.Question.Proposals) != 1 {
			t.Errorf("what changed is %v, the question %+v", stale.Changed, stale.Question)
		}
	}
	_, _, err = b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: q.RoundID, QuestionDigest: q.Digest, SpecialistID: "bob", TransitionName: "approve"})
	if stale, ok := errors.AsType[*runner.StaleError](err); !ok || stale.Refusal.Code != runner.CodeStaleQuestion {
		t.Errorf("such a proposal comes to %v", err)
	}
	if now := b.now(s); now.Sequence != before {
		t.Errorf("refused rulings wrote to the log:\n%s", b.log(s, before))
	}
	q, err = b.r.Question(b.ctx, b.now(s), "")
	b.ok(err)
	in.QuestionDigest = strings.ToUpper(q.Digest[:session.DigestPrefix])
	if a := b.rule(in); !a.Executed {
		t.Errorf("the digest of nobody in particular is refused: %+v", a)
	}
	in.RoundID = b.now(s).Key().ID() // and the digest of the round before
	_, err = b.r.Decide(b.ctx, in)
	stale, ok := errors.AsType[*runner.StaleError](err)
	if !ok || stale.Refusal.Code != runner.CodeStaleRound || fmt.Sprint(stale.Changed) != "[ann (human) executed approve: open → pay]" {
		t.Errorf("the digest of a round that is over comes to %+v", stale)
	}
}

// TestStaleSaysWhoRuled: who is refused because others have ruled since is told who has, and
// how, unless that is withheld (cases.md 7.3).
func TestStaleSaysWhoRuled(t *testing.T) {
	b := newBench(t)
	changed := func(s *session.Session, q runner.Question) string {
		t.Helper()
		_, err := b.r.Decide(b.ctx, q.Choose("carol", q.Transitions[0].Name))
		stale, ok := errors.AsType[*runner.StaleError](err)
		if !ok {
			t.Fatalf("a ruling on what is not shown any more comes to %v", err)
		}
		return strings.Join(stale.Changed, "; ")
	}
	s := b.start(b.approved("", `3`))
	q, err := b.r.Question(b.ctx, s, "carol")
	b.ok(err)
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.recorded(s, "bob", "pay", session.CodeApprovals, payload(`{"to":"x"}`))
	if got := changed(s, q); got != "alice chose pay; bob chose pay" {
		t.Errorf("what changed is %q", got)
	}
	if q, err = b.r.Question(b.ctx, b.now(s), "carol"); err != nil {
		t.Fatal(err)
	}
	_, err = b.word(s, "alice", "", back)
	b.ok(err)
	b.recorded(s, "bob", "pay", session.CodeApprovals)
	if got := changed(s, q); got != "bob chose pay; the ruling of alice was taken back" {
		t.Errorf("what changed is %q", got)
	}
	q, err = b.r.Question(b.ctx, b.now(s), "carol")
	b.ok(err)
	b.recorded(s, "bob", "pay", session.CodeApprovals, payload(`{"to":"y"}`))
	if got := changed(s, q); got != "bob chose pay" {
		t.Errorf("with another payload what changed is %q", got)
	}
	s = b.start(b.eyes("human", "carol", "dave"))
	q, err = b.r.Question(b.ctx, s, "carol")
	b.ok(err)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	if got := changed(s, q); got != "a human has ruled, which is withheld" {
		t.Errorf("what changed is %q", got)
	}
}

// TestDigestsOfWithheldQuestions: of a withheld question the author's own digest fits
// and that of nobody in particular; that of another does not.
func TestDigestsOfWithheldQuestions(t *testing.T) {
	for _, c := range []struct {
		digest, by string
		fits       bool
	}{{"", "bob", true}, {"ann", "ann", true}, {"bob", "bob", true}, {"", "ann", true}, {"ann", "bob", false}} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "b": "finish"})
		s := withholding(b, "collapse")
		b.stepTo(s, runner.TickHuman)
		_, now, err := b.r.Reveal(b.ctx, s.ID, "ann", nil)
		b.ok(err)
		q, err := b.r.Question(b.ctx, now, machine.SpecialistID(c.digest))
		b.ok(err)
		a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: q.RoundID, QuestionDigest: q.Digest, SpecialistID: machine.SpecialistID(c.by), TransitionName: "again"})
		if a.Executed != c.fits || c.fits != (err == nil) {
			t.Errorf("with the digest of %q the ruling of %s is %+v, %v", c.digest, c.by, a, err)
		}
	}
}

// TestQuestionSince: a question says since when it is open, also while the session runs,
// as it does once somebody has proposed.
func TestQuestionSince(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{who: []string{human("ann"), human("bob"), half}}))
	opened := b.now(s).CreatedAt
	question := func() runner.Question {
		t.Helper()
		q, err := b.r.Question(b.ctx, b.now(s), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := question(); q.Since < opened || q.Since == 0 {
		t.Errorf("before anything happened it is %v, begun at %v", q.Since, opened)
	}
	b.step(s)
	if _, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "ann", TransitionName: "again"}); err != nil {
		t.Fatal(err)
	}
	if now := b.now(s); now.Outcome().Since != 0 {
		t.Fatalf("it still waits: %v", now.Outcome())
	}
	if q := question(); q.Since < opened || q.Since > b.now(s).UpdatedAt {
		t.Errorf("after a proposal it is %v, begun at %v", q.Since, opened)
	}
}
