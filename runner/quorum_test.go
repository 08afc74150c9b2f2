package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// mute fails to answer.
var mute = failing(errors.New("no such key: score"))

// TestQuorumFloor (C5.1, C5.2): two of three fail, and the third does not decide
// alone; what is declared, the mode and the strategy say how many are enough.
func TestQuorumFloor(t *testing.T) {
	first, elects := arb("firstProposal"), arbFn("judge")
	for _, c := range []struct {
		name, top, arb string
		fail           string // of a, b and c
		code           string // "" if it executes
		reason         string
	}{
		{"the default is a majority", "", half, "ab", "no_quorum", "1 of 3 answered, 2 needed: a failed: no such key: score; b failed: no such key: score"},
		{"two of three are one", "", elects, "b", "", ""},
		{"any", `"quorum":"any"`, half, "ab", "", ""},
		{"all", `"quorum":"all"`, half, "b", "no_quorum", "2 of 3 answered, 3 needed: b failed: no such key: score"},
		{"a number", `"quorum":2`, half, "ab", "no_quorum", "1 of 3 answered, 2 needed: a failed: no such key: score; b failed: no such key: score"},
		{"a number that is reached", `"quorum":1`, half, "ab", "", ""},
		{"a number above the panel", `"quorum":4`, half, "", "no_quorum", "3 of 3 answered, 4 needed"},
		{"firstProposal takes any", "", first, "ab", "", ""},
		{"firstProposal under a declared quorum", `"quorum":"majority"`, first, "ab", "no_quorum", "1 of 3 answered, 2 needed: a failed: no such key: score; b failed: no such key: score"},
		{"eager takes any", `"solicit":"eager"`, half, "ab", "", ""},
		{"eager under a declared quorum", `"solicit":"eager","quorum":"all"`, half, "c", "no_quorum", "2 of 3 answered, 3 needed: c failed: no such key: score"},
		{"sequential asks on", `"solicit":{"mode":"sequential","wave":2}`, elects, "a", "", ""},
		{"sequential gives up when all were asked", `"solicit":"sequential"`, half, "ab", "no_quorum", "1 of 3 answered, 2 needed: a failed: no such key: score; b failed: no such key: score"},
		{"nobody answers", "", half, "abc", "no_proposals", "No proposals"},
		{"a state's beats the machine's", `"quorum":"all"`, half, "ab", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.cast.judge("judge", electFirst)
			b.said(map[string]string{"a": "finish", "b": "finish", "c": "finish"})
			for _, id := range strings.Split(c.fail, "") {
				if id != "" {
					b.cast.play(id, mute)
				}
			}
			d := def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), c.arb}, top: c.top}
			if c.name == "a state's beats the machine's" {
				d.states = strings.Replace(deskStates, `"open":{`, `"open":{"quorum":"any",`, 1)
			}
			s := b.start(b.machine(d))
			tick := b.step(s)
			for tick.Status == runner.TickSolicited {
				tick = b.step(s)
			}
			o := b.now(s).Outcome()
			if c.code == "" {
				if o.Code != session.CodeGoal {
					t.Errorf("it came to %s: %s", o.Code, o.Reason)
				}
			} else if o.Code != c.code || o.Reason != c.reason {
				t.Errorf("it waits for %s: %s\nwant %s: %s", o.Code, o.Reason, c.code, c.reason)
			}
		})
	}
}

// TestRequiredInTheFirstWave (C5.2): who is required is asked with the first wave.
func TestRequiredInTheFirstWave(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "finish", "c": "finish"})
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), fn("c", `"required":true`), arb("firstProposal")}, top: `"solicit":{"mode":"sequential","wave":1}`}))
	b.step(s)
	if asked := strings.Join(b.cast.who(), ""); asked != "ac" {
		t.Errorf("%q were asked, want a and c", asked)
	}
}

// TestHumansAreNoPanel (C5.1): what a human proposes is no answer of the panel, so it makes no
// quorum of one answer.
func TestHumansAreNoPanel(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish"})
	b.cast.play("b", mute)
	b.cast.judge("judge", arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Elect(slices.IndexFunc(r.Votes, func(v arbiter.Vote) bool { return v.SpecialistID == "a" }), "a says so"), nil
	}))
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), human("human"), arbFn("judge")}}))
	b.propose(s, "a", "finish")
	b.propose(s, "human", "finish")
	b.stepTo(s, runner.TickHuman)
	if o := b.now(s).Outcome(); o.Code != session.CodeNoQuorum || !strings.HasPrefix(o.Reason, "1 of 2 answered, 2 needed") {
		t.Errorf("it waits for %s: %s", o.Code, o.Reason)
	}
}

// TestQuorumAfterResume: those whose asks failed are to be asked again. Until they are, whoever
// did answer is no panel of one, in whatever mode.
func TestQuorumAfterResume(t *testing.T) {
	for _, mode := range []string{`"all"`, `{"mode":"sequential","wave":1}`, `{"mode":"sequential","wave":2}`} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish"})
		b.cast.judge("judge", electFirst)
		b.cast.play("b", mute)
		b.cast.play("c", mute)
		s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), arbFn("judge")}, top: `"solicit":` + mode}))
		for b.step(s).Status == runner.TickSolicited {
		}
		if o := b.now(s).Outcome(); o.Code != session.CodeNoQuorum {
			t.Fatalf("%s: it stands at %+v", mode, o)
		}
		_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
		b.ok(err)
		if a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID()}); a.Executed || a.Decided == nil || a.Decided.Code() != session.CodeNoQuorum {
			t.Errorf("%s: one of three decided: %+v", mode, a)
		}
	}
}

// TestQuorumRecorded (C5.1): a verdict says how much of the panel has answered, and is read
// back as it was written; one of an older log says nothing of it.
func TestQuorumRecorded(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "", "c": "finish"})
	m := b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), half}})
	b.train(m, "a", 9, 9)
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	seen := false
	for _, rec := range b.records(s) {
		text := string(rec.Events)
		if strings.Contains(text, `"kind":"judged"`) {
			seen = strings.Contains(text, `"quorum":{"counted":3,"answered":2,"needed":2}`)
		}
	}
	if !seen {
		t.Errorf("the verdict does not say 2 of 3: %s", b.log(s, 2))
	}
	if e := b.explain(s, ""); e.Verdict.Quorum == nil || e.Verdict.Quorum.Counted != 3 || !e.Changes.Reproduced {
		t.Errorf("explained: %+v, %+v", e.Verdict, e.Changes)
	} else if w := variant(e, "a", ""); w.Code != session.CodeNoQuorum || !w.Changed {
		t.Errorf("without a: %+v", w)
	}
}

// TestQuorumOrders (C5.1): no order of answers and failures changes whether a round is
// decided, nor by whom: every answer, and none, of three services in every order in
// which they can arrive, under every rule.
func TestQuorumOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("it goes through thousands of rounds")
	}
	choices := []string{"finish", "park", ""}
	ids := [3]string{"good", "twin", "thin"}
	orders := [][3]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}}
	decided, waited, stopped := 0, 0, 0
	for _, top := range []string{`"solicit":"all"`, `"solicit":{"mode":"sequential","wave":2}`, `"solicit":{"mode":"sequential","wave":"auto"}`,
		`"solicit":"all","quorum":"all"`, `"solicit":"all","quorum":"any"`, `"solicit":{"mode":"sequential","wave":2},"quorum":2`} {
		for _, required := range []string{"", `"required":true`} {
			bubble(t, func(b *bench) {
				m := b.machine(def{who: []string{web("good"), web("twin"), web("thin", required), human("human"), arb("alignmentMargin", threshold("0.5"))}, top: top})
				for _, id := range []string{"good", "twin"} {
					b.train(m, id, 9, 9)
				}
				b.train(m, "thin", 2, 5)
				for n := range 27 {
					said := [3]string{choices[n%3], choices[n/3%3], choices[n/9]}
					want := ""
					for _, order := range orders {
						for i, id := range ids {
							p := mute
							if said[i] != "" {
								p = saying(said[i])
							}
							b.cast.play(id, after(time.Duration(order[i])*time.Second, p))
						}
						s := b.start(m)
						b.cast.who()
						begin := time.Now()
						b.step(s)
						if time.Since(begin) < 3*time.Second && b.now(s).Executed > 0 {
							stopped++
						}
						got := winnerOf(b.now(s))
						if b.now(s).Executed == 0 {
							got, waited = "a human: "+b.now(s).Outcome().Code, waited+1
						} else {
							decided++
						}
						if want == "" {
							want = got
						}
						if got != want {
							b.Fatalf("%s, %s: %v in the order %v: %s, in another %s", top, required, said, order, got, want)
						}
						if said[2] == "" && required != "" && b.now(s).Executed > 0 {
							b.Fatalf("%s: %v in the order %v was decided without thin, who is required", top, said, order)
						}
					}
				}
			})
		}
	}
	if decided == 0 || waited == 0 || stopped == 0 {
		t.Errorf("%d were decided, %d waited, %d stopped early: the test tries nothing", decided, waited, stopped)
	}
}

// TestRequired (C5.2): without the answer of who is required there is no automatic
// decision, whatever the quorum, the arbiter and the way in which it is asked for.
func TestRequired(t *testing.T) {
	for name, top := range map[string]string{"all": `"quorum":"any"`, "sequential": `"solicit":"sequential"`, "eager": `"solicit":"eager"`} {
		for _, by := range []string{arb("firstProposal"), arbFn("judge")} {
			b := newBench(t)
			b.cast.judge("judge", electFirst)
			b.said(map[string]string{"a": "finish", "b": "finish", "fraud": ""})
			m := b.machine(def{who: []string{fn("a", estimated("0")), fn("b", estimated("1")), fn("fraud", estimated("9"), `"required":true`), human("human"), by}, top: top})
			s := b.start(m)
			tick := b.step(s)
			for tick.Status == runner.TickSolicited {
				tick = b.step(s)
			}
			if o := b.now(s).Outcome(); o.Code != session.CodeNoQuorum || !strings.Contains(o.Reason, "fraud is required: fraud failed: no answer") {
				t.Errorf("%s, %s: it came to %s: %s", name, by, o.Code, o.Reason)
			}
			b.cast.say("fraud", "finish")
			_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
			b.ok(err)
			for tick = b.step(s); tick.Status == runner.TickSolicited; {
				tick = b.step(s)
			}
			if tick.Status != runner.TickAdvanced {
				t.Errorf("%s, %s: answered, it came to %s", name, by, tick.Reasoning())
			}
		}
	}
}

// TestRequiredNoWayAround (C5.2): neither DIAL's submitArbitration without a
// transition nor its evaluateConsensus decides below the floor; a human does.
func TestRequiredNoWayAround(t *testing.T) {
	for _, c := range []struct{ who, top string }{{fn("fraud", `"required":true`), ""}, {fn("fraud"), `"quorum":"all"`}} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "fraud": ""})
		s := b.start(b.machine(def{who: []string{fn("a"), c.who, human("human"), half}, top: c.top}))
		b.stepTo(s, runner.TickHuman)
		if v := b.evaluate(s); v.ConsensusReached || !strings.Contains(v.Reasoning, "fraud") {
			t.Errorf("evaluateConsensus: %+v", v)
		}
		in := runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human"}
		if a := b.rule(in); a.Executed || !strings.Contains(a.GuardReason, "1 of 2 answered") {
			t.Errorf("submitArbitration: %+v", a)
		}
		b.propose(s, "human", "finish") // what a human proposes is no automatic decision
		b.stepTo(s, runner.TickAdvanced)
		if by := b.now(s).Last().SpecialistID; by != "human" {
			t.Errorf("%s won", by)
		}
	}
}

// TestEvaluatedBeforeFailures: a verdict that was given before others failed does not
// stand where the quorum is not reached any more.
func TestEvaluatedBeforeFailures(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "", "c": ""})
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arbFn("judge")}}))
	b.propose(s, "a", "finish")
	if v := b.evaluate(s); !v.ConsensusReached {
		t.Fatalf("of one who proposed: %+v", v)
	}
	b.register(proposer("b")) // who is asked, and fails
	b.register(proposer("c"))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeNoQuorum {
		t.Errorf("it came to %s", tick.Code)
	}
}

// TestRequiredReference (C5.2): a state's reference requires for that state, and who
// is switched off is missed.
func TestRequiredReference(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "park", "b": ""})
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"quorum":"any"`,
		states: `"open":{"transitions":{"park":"parked"}},"parked":{"specialists":[{"role":"proposer","specialistId":"a"},{"role":"proposer","specialistId":"b","required":true}],"transitions":{"park":"done"}},"done":{}`}))
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeNoQuorum {
		t.Errorf("it came to %s", tick.Code)
	}
	b.ok(b.r.Disable(b.ctx, "desk", "b"))
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	if tick := b.stepTo(s, runner.TickHuman); !strings.HasSuffix(tick.Reasoning(), "b is required: b is switched off") {
		t.Errorf("it came to %s: %s", tick.Code, tick.Reasoning())
	}
}

// TestRequiredBesideChampion (C5.2): a champion is asked alone, and who is required
// beside it; if that one fails, the champion does not decide.
func TestRequiredBesideChampion(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench(t)
		m := b.machine(def{who: []string{fn("good"), fn("other"), fn("fraud", `"required":true`), human("human"), half}, top: `"solicit":{"champion":true}`})
		b.train(m, "good", 40, 40)
		b.said(map[string]string{"good": "again", "other": "again", "fraud": "again"})
		s := b.start(m)
		for range 60 { // audits ask everybody
			b.cast.who()
			if b.stepTo(s, runner.TickAdvanced); fmt.Sprint(b.cast.who()) == "[good fraud]" {
				break
			}
		}
		if fails {
			b.cast.play("fraud", mute)
		}
		for range 20 {
			b.cast.who()
			tick := b.step(s)
			if tick.Status == runner.TickHuman != fails {
				t.Fatalf("fraud fails %t: the step came to %s: %s", fails, tick.Status, tick.Reasoning())
			}
			if fails {
				break
			}
		}
	}
}

// TestChampionBelowQuorum (C5.2): for a champion alone one answer is enough, unless
// the machine declares that it is not: then the others are asked too.
func TestChampionBelowQuorum(t *testing.T) {
	for quorum, want := range map[string]bool{"": true, `,"quorum":"majority"`: true, `,"quorum":2`: false} {
		b := newBench(t)
		m := b.machine(def{who: []string{fn("good"), fn("other"), human("human"), half}, top: `"solicit":{"champion":true}` + quorum})
		b.train(m, "good", 40, 40)
		b.said(map[string]string{"good": "again", "other": "again"})
		s, alone := b.start(m), false
		for range 60 {
			b.cast.who()
			b.stepTo(s, runner.TickAdvanced)
			alone = alone || fmt.Sprint(b.cast.who()) == "[good]"
		}
		if alone != want {
			t.Errorf("quorum %q: the champion was asked alone: %t", quorum, alone)
		}
	}
}

// TestQuorumWithheld (C5.1): where proposals are withheld the reason has numbers only.
func TestQuorumWithheld(t *testing.T) {
	for _, top := range []string{`"quorum":"all","collapse":{},"audit":{"mode":"before"}`, `"quorum":"all","audit":{"mode":"before"}`} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "b": ""})
		by := half
		if strings.Contains(top, "collapse") {
			by, top = arb("bayes"), `"risk":{"maxError":0.3,"confidence":0.5},`+top
		}
		s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), human("human"), by}, top: top, states: `"open":{"transitions":{"finish":"done"}},"done":{}`}))
		b.stepTo(s, runner.TickHuman)
		if o := b.now(s).Outcome(); o.Code != session.CodeNoQuorum || o.Reason != "1 of 2 answered, 2 needed" {
			t.Errorf("%s: it waits for %s: %s", top, o.Code, o.Reason)
		}
	}
}

// TestResumeAsksWhoFailed (C8.4): resume asks again those because of whom the session
// waits, unless it is told to keep their failures; for another reason it asks nobody.
func TestResumeAsksWhoFailed(t *testing.T) {
	for _, c := range []struct {
		fail, asked string
		keep        bool
	}{{"ab", "[a b]", false}, {"abc", "[a b c]", false}, {"ab", "[]", true}, {"", "[]", false}} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "b": "finish", "c": "finish"})
		if c.fail == "" {
			b.said(map[string]string{"a": "finish", "b": "park"}) // a cold start
		}
		for _, id := range strings.Split(c.fail, "") {
			if id != "" {
				b.cast.play(id, mute)
			}
		}
		s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), half}}))
		b.stepTo(s, runner.TickHuman)
		before := b.now(s)
		b.cast.who()
		b.said(map[string]string{"a": "finish", "b": "finish", "c": "finish"})
		_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: someone, KeepFailed: c.keep})
		b.ok(err)
		tick := b.step(s)
		if got := fmt.Sprint(b.cast.who()); got != c.asked {
			t.Errorf("%+v: asked were %s", c, got)
		}
		if c.asked == "[]" && (tick.Session.Sequence != before.Sequence || tick.Status != runner.TickHuman) {
			t.Errorf("%+v: the session went on: %s", c, tick.Status)
		}
	}
}

// TestQuorumDigest (C3.3): what is declared of panels is part of the policy digest,
// and nothing is where nothing is declared.
func TestQuorumDigest(t *testing.T) {
	digest := func(quorum, required string) string {
		m := parse(t, def{who: []string{fn("a"), fn("b", required), arb("bayes")}, top: quorum}.text())
		casts, err := planning.Cast(m, &session.Roster{})
		if err != nil {
			t.Fatal(err)
		}
		return casts[0].Question.PolicyDigest
	}
	plain := digest("", "")
	seen := map[string]string{plain: "nothing"}
	for _, c := range [][2]string{{`"quorum":"majority"`, ""}, {`"quorum":2`, ""}, {"", `"required":true`}} {
		d := digest(c[0], c[1])
		if was, twice := seen[d]; twice {
			t.Errorf("%v has the digest of %s", c, was)
		}
		seen[d] = fmt.Sprint(c)
	}
	if d := digest("", `"required":false`); d != plain {
		t.Errorf("required: false makes another digest")
	}
}

// TestQuorumNeeded counts by hand.
func TestQuorumNeeded(t *testing.T) {
	for _, c := range []struct {
		q    machine.Quorum
		want [5]int // of 0 to 4
	}{
		{machine.Quorum{Rule: machine.AnyQuorum}, [5]int{0, 1, 1, 1, 1}},
		{machine.Quorum{Rule: machine.MajorityQuorum}, [5]int{0, 1, 2, 2, 3}},
		{machine.Quorum{Rule: machine.AllQuorum}, [5]int{0, 1, 2, 3, 4}},
		{machine.Quorum{Count: 2}, [5]int{2, 2, 2, 2, 2}},
		{machine.Quorum{}, [5]int{}},
	} {
		for counted, want := range c.want {
			if got := c.q.Needed(counted); got != want {
				t.Errorf("%s of %d needs %d, want %d", c.q, counted, got, want)
			}
		}
	}
}

// TestProposedEarly (C5.1): who proposes before anybody is asked is one of the panel, and
// not the whole of it: no way of having the round decided takes that for a quorum, and
// whoever would have been asked, and fails, has not answered.
func TestProposedEarly(t *testing.T) {
	ways := map[string]func(*bench, *session.Session) bool{
		"submitArbitration": func(b *bench, s *session.Session) bool {
			a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "judge"})
			if !a.Executed && !strings.Contains(a.GuardReason, "1 of 3 answered, 2 needed") {
				b.Errorf("refused because %s", a.GuardReason)
			}
			return a.Executed
		},
		"evaluateConsensus": func(b *bench, s *session.Session) bool { return b.evaluate(s).ConsensusReached },
		"step":              func(b *bench, s *session.Session) bool { return b.step(s).Status == runner.TickAdvanced },
	}
	for _, top := range []string{`"solicit":"all"`, `"solicit":"sequential"`, `"solicit":{"mode":"sequential","wave":1}`, `"solicit":"eager","quorum":"majority"`} {
		for _, by := range []string{half, arbFn("judge"), arb("bayes", threshold("0.5"))} {
			for way, decides := range ways {
				b := newBench(t)
				b.cast.judge("judge", electFirst)
				b.said(map[string]string{"a": "finish", "b": "", "c": ""})
				m := b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), by}, top: top})
				b.train(m, "a", 9, 9)
				s := b.start(m)
				b.propose(s, "a", "finish")
				if decides(b, s) {
					t.Errorf("%s, %s: %s decides by one of three", top, by, way)
					continue
				}
				for b.now(s).Status == session.Running {
					b.step(s)
				}
				if o := b.now(s).Outcome(); o.Code != session.CodeNoQuorum && !strings.Contains(by, "bayes") {
					t.Errorf("%s, %s: after %s it came to %s: %s", top, by, way, o.Code, o.Reason)
				}
			}
		}
	}
}
