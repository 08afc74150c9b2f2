package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

const (
	staleText  = "Round ID mismatch - decision cycle already completed"
	onlyHumans = "Only human specialists can force arbitration"
)

// unmoved fails the test unless a ruling was refused for that reason and left
// the session in its round.
func (b *bench) unmoved(s *session.Session, a runner.Arbitration, reason string) {
	b.Helper()
	now := b.now(s)
	if a.GuardReason != reason || a.Executed || a.GuardsPass || now.Round != s.Round || now.State != s.State || now.Executed != s.Executed {
		b.Errorf("the result is %+v in round %d, want a refusal: %s", a, now.Round, reason)
	}
	if a.ArbitrationID != s.Key().ArbitrationID(1) || a.RoundID != s.Key().ID() || a.SessionID != s.ID.String() || a.Session == nil {
		b.Errorf("the result is %+v: its ids are wrong", a)
	}
}

// TestDecideRows goes through the table of rulings, each row with what would be
// refused by a later one too.
func TestDecideRows(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.desk(fn("a"), human("human"), human("off", `"disabled":true`), half)
	s := b.start(m)
	meta := json.RawMessage(`{"from":"ruling"}`)
	for _, c := range []struct {
		name           string
		in             runner.Ruling
		reason         string
		stale, isHuman bool
	}{
		{"stale first", runner.Ruling{RoundID: "old", SpecialistID: "nobody", TransitionName: "nope"}, staleText, true, false},
		{"stale without transition", runner.Ruling{RoundID: "old"}, staleText, true, false},
		{"nobody", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "nobody", TransitionName: "nope"}, onlyHumans, false, false},
		{"anonymous", runner.Ruling{RoundID: runner.CurrentRound, TransitionName: "nope"}, onlyHumans, false, false},
		{"an AI", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "finish"}, onlyHumans, false, false},
		{"the arbiter", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "arb", TransitionName: "finish"}, onlyHumans, false, false},
		{"a disabled human", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "off", TransitionName: "finish"}, onlyHumans, false, false},
		{"the operator, where humans are declared", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: runner.Operator, TransitionName: "finish"}, onlyHumans, false, false},
		{"invalid", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "back"}, `Invalid transition "back" from state "open"`, false, true},
		{"wrong target", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish", ToState: "open"}, `State mismatch: transition "finish" should go to "done", not "open"`, false, true},
		{"no proposals", runner.Ruling{RoundID: runner.CurrentRound, SpecialistID: "human"}, "No proposals in current round", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.SessionID, c.in.MetaJSON, c.in.Usage = s.ID, meta, given(dollar, 1, 0, 3)
			a, err := b.r.Decide(b.ctx, c.in)
			if b.unmoved(s, a, c.reason); a.Stale != c.stale || a.IsHuman != c.isHuman {
				t.Errorf("stale %t, isHuman %t", a.Stale, a.IsHuman)
			}
			switch { // a transition that is not legal was no error once: a caller who looked at err alone went on
			case c.stale:
				b.refused(err, runner.ErrStaleRound, c.reason)
			case c.isHuman:
				b.refused(err, runner.ErrIllegal, c.reason)
			case c.reason == onlyHumans: // nor was this
				b.refused(err, runner.ErrForbidden, c.reason)
			default:
				b.ok(err)
			}
			text, err := json.Marshal(a)
			b.ok(err)
			if tail := `"metaJson":{"from":"ruling"},"costUSD":1,"latencyMsec":1,"numInputTokens":0,"numOutputTokens":3}`; !strings.HasSuffix(string(text), tail) || a.SpecialistID != string(c.in.SpecialistID) {
				t.Errorf("the result loses what was given: %s", text)
			}
		})
	}
	if got := b.now(s); got.Sequence != 2 {
		t.Errorf("refused rulings wrote to the log:\n%s", b.log(s, 2))
	}
}

// TestWhoMayRule holds the roles to their rights, for ruling and executing.
func TestWhoMayRule(t *testing.T) {
	states := `"open":{"transitions":{"again":"open"},"specialists":[` + human("local") + `,` + ref("proposer", "benched", `"disabled":true`) + `,` + fn("a") + `]},
		"other":{"transitions":{"x":"done"},"specialists":[` + human("foreign") + `]},"done":{}`
	all := []string{human("global"), human("benched"), human("off", `"disabled":true`), fn("m"), half}
	alone := def{who: []string{fn("a"), half}}
	operated := func(c *runner.Config) { c.AllowOperator = true }
	for _, c := range []struct {
		d         def
		configure func(*runner.Config)
		who       string
		may       bool
	}{
		{def{states: states, who: all}, nil, "local", true},
		{def{states: states, who: all}, nil, "global", true},
		{def{states: states, who: all}, nil, "foreign", false},
		{def{states: states, who: all}, nil, "benched", false},
		{def{states: states, who: all}, nil, "off", false},
		{def{states: states, who: all}, nil, "a", false},
		{def{states: states, who: all}, nil, "m", false},
		{def{states: states, who: all}, nil, "arb", false},
		{def{states: states, who: all}, nil, "nobody", false},
		{def{states: states, who: all}, operated, runner.Operator, false},
		{alone, operated, runner.Operator, true},
		{alone, operated, "operator", false},
		{alone, nil, runner.Operator, false},
		{def{who: []string{fn("a"), half, human("off", `"disabled":true`)}}, operated, runner.Operator, false}, // declared, if disabled
	} {
		var configure []func(*runner.Config)
		if c.configure != nil {
			configure = append(configure, c.configure)
		}
		b := newBench(t, configure...)
		for _, rule := range []func(context.Context, runner.Ruling) (runner.Arbitration, error){b.r.Decide, b.r.Execute} {
			s := b.start(b.machine(c.d))
			a, err := rule(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(c.who), TransitionName: "again"})
			if errors.Is(err, runner.ErrForbidden) == c.may || a.Executed != c.may || a.IsHuman != c.may {
				t.Errorf("%s: executed %t (%s), want %t", c.who, a.Executed, a.GuardReason, c.may)
			}
			if !c.may {
				b.unmoved(s, a, onlyHumans)
			}
		}
	}
}

// TestDisabledHumanOfTheStore disables a human while a session runs.
func TestDisabledHumanOfTheStore(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), human("human"), half))
	b.force(s, "again")
	b.ok(b.r.Disable(b.ctx, "desk", "human"))
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
	b.refused(err, runner.ErrForbidden, onlyHumans)
	b.unmoved(b.now(s), a, onlyHumans)
	b.ok(b.r.Enable(b.ctx, "desk", "human"))
	b.force(s, "again")
}

// TestForce has a human decide against everybody: it is executed at once, taught
// once, and recorded.
func TestForce(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	b.cast.say("b", "again")
	b.cast.say("c", "finish")
	m := b.desk(fn("a"), fn("b"), fn("c"), human("human"), human("watcher"), half)
	s := b.start(m)
	b.propose(s, "watcher", "finish")
	b.stepTo(s, runner.TickAdvanced) // the watcher weighs a full vote
	s = b.start(m)
	b.propose(s, "watcher", "park")
	for _, who := range []string{"a", "b", "c"} {
		b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who)})
	}
	before := b.now(s)
	a := b.rule(runner.Ruling{SessionID: s.ID, SpecialistID: "human", RoundID: before.Key().ID(), TransitionName: "again", MetaJSON: []byte(`{"why": 1}`)})
	if !a.Executed || !a.GuardsPass || !a.IsHuman || a.Stale || a.GuardReason != "Human override accepted" || a.Reasoning != "Human override accepted" ||
		a.TransitionName != "again" || a.ToState != "open" || string(a.MetaJSON) != `{"why":1}` || a.RoundID != before.Key().ID() {
		t.Errorf("the result is %+v", a)
	}
	now := b.now(s)
	if now.Round != 2 || now.Key() == before.Key() || len(now.Proposals()) != 0 || now.Status != session.Running {
		t.Errorf("the session is %+v", now)
	}
	b.wantLog(s, before.Sequence, "gated again ok", "executed human again", "learned", "round_opened open 2 0")
	book, err := b.store.Book(b.ctx, "desk")
	b.ok(err)
	var got []string
	for _, r := range book.Records("desk") {
		got = append(got, fmt.Sprintf("%s:%s %d/%d", r.SpecialistID, r.MachineName, r.MatchingChoices, r.TotalComparisons))
	}
	if want := "a:desk 0/1, b:desk 1/1, c:desk 0/1"; strings.Join(got, ", ") != want {
		t.Errorf("the ruling taught %v, want %s: every AI once, no human", got, want)
	}
	exemplars, err := b.store.Exemplars(b.ctx, "desk", "open", 0)
	b.ok(err)
	if len(exemplars) != 1 || exemplars[0].HumanTransitionName != "again" || exemplars[0].HumanToState != "open" || exemplars[0].SpecialistID != "human" {
		t.Errorf("exemplars are %+v", exemplars)
	}
	d := b.lastDecision()
	if d.Kind != "forced" || !d.IsHuman || d.ConsensusMargin != nil || d.Threshold.Given != 0.5 || d.SpecialistID != "human" || d.WinningProposalID != "" || len(d.Proposals) != 4 ||
		fmt.Sprint(d.AlignmentSnapshot) != "map[a:0 b:0 c:0 watcher:1]" || fmt.Sprint(d.Scores) != "map[again:0 finish:0 park:1]" {
		t.Errorf("the record is %+v", d)
	}
}

func (b *bench) lastDecision() *session.DecisionRecord {
	b.Helper()
	decisions, err := b.r.Decisions(b.ctx, "desk", "", 1)
	b.ok(err)
	if len(decisions) != 1 {
		b.Fatalf("%d decisions of the newest one", len(decisions))
	}
	return decisions[0]
}

// TestForceScopes compares within the state's record where the state has a list
// of its own, else within the machine's; never both.
func TestForceScopes(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(two(fn("a"), fn("a"), human("human"), half)))
	b.propose(s, "a", "go")
	b.force(s, "go")
	b.propose(s, "a", "stay")
	b.force(s, "stay")
	b.propose(s, "a", "go")
	b.force(s, "stay")
	book, err := b.store.Book(b.ctx, "desk")
	b.ok(err)
	var got []string
	for _, r := range book.Records("desk") {
		got = append(got, fmt.Sprintf("%s:%s:%s %d/%d %s", r.SpecialistID, r.MachineName, r.State, r.MatchingChoices, r.TotalComparisons, r.AlignmentScore))
	}
	if want := "a:desk: 1/1 0.206543291, a:desk:open 1/2 0.094528655"; strings.Join(got, ", ") != want {
		t.Errorf("records are %v, want %s", got, want)
	}
}

// TestForceBeforeAnything rules on rounds nobody has proposed in, and on ones
// that nobody could decide.
func TestForceBeforeAnything(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), human("human"))) // no arbiter at all
	b.force(s, "again")
	b.propose(s, "a", "again")
	b.force(s, "park")
	if now := b.now(s); now.State.Name != "parked" || now.Executed != 2 {
		t.Errorf("the session is in %s", now.State.Name)
	}
	if d := b.lastDecision(); d.Threshold.Given != 1 || fmt.Sprint(d.Scores) != "map[again:0]" {
		t.Errorf("without an arbiter the record is %+v", d)
	}
	_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
	b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
}

// TestForceStopsAtBudgets lets guards refuse a human only what they may.
func TestForceStopsAtBudgets(t *testing.T) {
	guarded := `"guards":{"limits":{"max_steps":1},"loop_detection":{"max_state_visits":0},"retry":{"max_attempts":0}}`
	asked := 0
	b := newBench(t, func(c *runner.Config) {
		c.Guards = append(c.Guards, guard.Func(func(context.Context, verdict.Step) verdict.Verdict {
			asked++
			return verdict.Reject(verdict.Abort, "no", "never")
		}))
	})
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: guarded}), runner.StartOptions{Meta: []byte(`{"known":1}`)})
	b.force(s, "again") // loop checks and the program's own guards are no matter for a ruling
	before := b.now(s)
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish"})
	if a.GuardReason != "max_steps: the number of steps is 2, more than the limit of 1" || a.Executed || a.GuardsPass || !a.IsHuman || a.TransitionName != "finish" {
		t.Errorf("the result is %+v", a)
	}
	now := b.now(s)
	if now.Status != session.Running || now.Round != before.Round || now.Executed != 1 || asked != 0 {
		t.Errorf("a refused ruling moved the session: %+v (custom guards asked %d times)", now, asked)
	}
	b.wantLog(s, before.Sequence, "gated finish abort")
	book, _ := b.store.Book(b.ctx, "desk")
	if exemplars, _ := b.store.Exemplars(b.ctx, "desk", "open", 0); len(exemplars) != 1 || len(book.Records("desk")) != 0 {
		t.Error("a refused ruling taught something")
	}
}

// TestDecideByArbiter lets the arbiter close rounds.
func TestDecideByArbiter(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"quorum":"any"`})
	b.train(m, "a", 8, 8)
	b.train(m, "b", 2, 8)
	s := b.start(m)
	b.propose(s, "b", "finish")
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Reasoning: "my reasons", MetaJSON: []byte(`{"mine":1}`)})
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "whoever"})
	const reason = "Alignment-weighted margin 0.81 >= threshold 0.5 (leader: again)"
	if !a.Executed || !a.GuardsPass || a.IsHuman || a.GuardReason != reason || a.WinningProposalID != s.Key().ProposalID(2) ||
		a.Reasoning != "my reasons" || string(a.MetaJSON) != `{"mine":1}` || a.TransitionName != "again" || a.ToState != "open" {
		t.Errorf("the result is %+v", a)
	}
	history := b.now(s).View().History
	if len(history) != 1 || history[0].Reasoning != "my reasons" || string(history[0].MetaJSON) != `{"mine":1}` || history[0].IsHuman || history[0].SpecialistID != "a" || history[0].ProposalID != a.WinningProposalID {
		t.Errorf("the history is %+v", history)
	}
	book, _ := b.store.Book(b.ctx, "desk")
	if book.Tally(recordOf("a")).Total != 8 || book.Tally(recordOf("b")).Total != 8 {
		t.Error("a consensus taught something")
	}
	b.propose(s, "a", "again")
	a = b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, Reasoning: "given", MetaJSON: []byte(`{"given":1}`)})
	if !a.Executed || a.Reasoning != "given" || string(a.MetaJSON) != `{"given":1}` || a.GuardReason != "Single proposal with no competing proposals" {
		t.Errorf("the result is %+v", a)
	}
	b.propose(s, "a", "again")
	b.propose(s, "human", "finish")
	b.propose(s, "b", "park")
	before := b.now(s)
	a = b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
	b.unmoved(before, a, "Alignment-weighted margin 0.19 below threshold 0.5")
	if a.Decided == nil || a.Decided.Consensus() {
		t.Errorf("the verdict is %+v", a.Decided)
	}
	if now := b.now(s); now.Status != session.Running {
		t.Errorf("a ruling without consensus left the session %s", now.Status)
	}
}

// TestRecordIsWhatWasDecided compares a consensus record with the input of the
// decision: threshold, scores and snapshot as they were then.
func TestRecordIsWhatWasDecided(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), fn("b"), human("human"), arb("alignmentMargin", threshold("0.9"))}, top: `"consensusThreshold":0.8`})
	b.train(m, "a", 8, 8)
	b.train(m, "b", 2, 8)
	s := b.start(m)
	b.propose(s, "b", "finish")
	b.propose(s, "a", "again")
	b.stepTo(s, runner.TickAdvanced)
	d := b.lastDecision()
	b.train(m, "b", 20, 20) // what is learned later is not in it
	if e := b.newest(s); fmt.Sprint(*e) != fmt.Sprint(*d) {
		t.Errorf("the record changed from %+v to %+v", d, e)
	}
	if d.Kind != "consensus" || d.IsHuman || d.Threshold.Given != 0.8 || d.ArbiterID != "arb" || d.Strategy != "alignmentMargin" || d.WinningProposalID != s.Key().ProposalID(2) ||
		fmt.Sprint(d.AlignmentSnapshot) != "map[a:0.67558438 b:0.071477689]" || fmt.Sprint(d.Scores) != "map[again:0.67558438 finish:0.071477689]" ||
		*d.ConsensusMargin != exact.Share(675584380-71477689, 675584380+71477689) || d.SpecialistID != "a" ||
		d.ArbiterReasoning != "Alignment-weighted margin 0.81 >= threshold 0.8 (leader: again)" || d.Guard.Status != "ok" {
		t.Errorf("the record is %+v", d)
	}
}

// newest returns the last decision of one session.
func (b *bench) newest(s *session.Session) (d *session.DecisionRecord) {
	b.Helper()
	all, err := b.r.Decisions(b.ctx, "desk", "", 0)
	b.ok(err)
	for _, r := range all {
		if r.SessionID == s.ID.String() {
			d = r
		}
	}
	return d
}

// TestUnknownWinner has an arbiter elect what nobody proposed.
func TestUnknownWinner(t *testing.T) {
	b := newBench(t)
	b.cast.judge("judge", arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		_, err := r.Find("00000000-0000-8000-8000-000000000000")
		return arbiter.Decision{}, err
	}))
	s := b.start(b.desk(fn("a"), human("human"), arbFn("judge")))
	b.propose(s, "a", "again")
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
	b.unmoved(b.now(s), a, "Winning proposal not found: 00000000-0000-8000-8000-000000000000")
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) { return arbiter.Elect(7, "x"), nil }))
	b.propose(s, "a", "again") // another set: asked anew
	b.unmoved(b.now(s), b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound}), "Winning proposal not found: #7")
	if n := len(b.cast.who()); n != 2 {
		t.Errorf("the arbiter was asked %d times", n)
	}
}

// TestNoReasonIsNone: who asks for exemplars reads no reason where the human gave none,
// whether it was left out or put into DIAL's words for that.
func TestNoReasonIsNone(t *testing.T) {
	b := newBench(t)
	m := b.desk(human("human"), entry("arbiter", "arb", ""))
	for _, reason := range []string{"", "Human override accepted", "it was late"} {
		s := b.start(m)
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: reason})
	}
	exemplars, err := b.store.Exemplars(b.ctx, "desk", "open", 0)
	if err != nil || len(exemplars) != 3 {
		t.Fatalf("%d exemplars (%v)", len(exemplars), err)
	}
	reasons := map[string]int{}
	for _, e := range exemplars {
		reasons[e.Reasoning]++
	}
	if reasons[""] != 2 || reasons["it was late"] != 1 {
		t.Errorf("the reasons are %v", reasons)
	}
}

// TestArbiterReasoningDefaults gives the strategy's name where an arbiter says
// nothing.
func TestArbiterReasoningDefaults(t *testing.T) {
	b := newBench(t)
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) { return arbiter.Elect(0, ""), nil }))
	s := b.start(b.desk(fn("a"), arbFn("judge")))
	b.propose(s, "a", "again")
	if a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound}); a.GuardReason != "judge" || !a.Executed {
		t.Errorf("the result is %+v", a)
	}
}

// TestArbiterFails in a ruling: no verdict, and the session is as it was.
func TestArbiterFails(t *testing.T) {
	b := newBench(t)
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Decision{}, errors.New("no power")
	}))
	s := b.start(b.desk(fn("a"), human("human"), arbFn("judge")))
	b.propose(s, "a", "again")
	b.unmoved(b.now(s), b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound}), "Arbiter arb failed: no power")
	b.force(s, "again")
}

// TestGuardsRefuseConsensus stops a consensus at the gate.
func TestGuardsRefuseConsensus(t *testing.T) {
	for status, want := range map[verdict.Status]session.Status{verdict.Abort: session.Stopped, verdict.Escalate: session.NeedsHuman, verdict.Retry: session.Running} {
		b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", status, "house", "not on Sundays")} })
		s := b.start(b.desk(fn("a"), half))
		b.propose(s, "a", "again")
		a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
		if a.Executed || a.GuardsPass || a.GuardReason != "house: not on Sundays" || a.IsHuman || a.WinningProposalID == "" {
			t.Errorf("%s: the result is %+v", status, a)
		}
		if now := b.now(s); now.Status != want || now.Executed != 0 || now.Round != 1 {
			t.Errorf("%s: the session is %s", status, now.Status)
		}
	}
}

// TestEndedSessionsAreNotRuled refuses everything on a session that is over.
func TestEndedSessionsAreNotRuled(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), human("human"), half))
	b.force(s, "finish")
	text := "Session is not running: " + s.ID.String() + " (completed)"
	for _, rule := range []func(context.Context, runner.Ruling) (runner.Arbitration, error){b.r.Decide, b.r.Execute} {
		_, err := rule(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		b.refused(err, runner.ErrNotRunning, text)
		_, err = rule(b.ctx, runner.Ruling{SessionID: specialist.SessionID{9}, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		b.refused(err, session.ErrNotFound, "Session not found: 09000000-0000-0000-0000-000000000000")
	}
	_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
	b.refused(err, runner.ErrNotRunning, text)
}

// TestExecute executes without teaching.
func TestExecute(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, states: `"open":{"transitions":{"again":"open","down":"cellar","finish":"done"}},"cellar":{},"done":{}`}))
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
	in := runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", ToState: "open", Reasoning: "by hand"}
	a, err := b.r.Execute(b.ctx, in)
	b.ok(err)
	if !a.Executed || a.Reasoning != "by hand" {
		t.Errorf("the result is %+v", a)
	}
	book, _ := b.store.Book(b.ctx, "desk")
	exemplars, _ := b.store.Exemplars(b.ctx, "desk", "open", 0)
	if d := b.lastDecision(); d.Kind != "executed" || d.ConsensusMargin != nil || !d.IsHuman || len(book.Records("desk")) != 0 || len(exemplars) != 0 {
		t.Errorf("it taught %v and %v and is recorded as %s", book.Records("desk"), exemplars, d.Kind)
	}
	_, err = b.r.Execute(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human"})
	b.refused(err, runner.ErrIllegal, "transitionName is required")
	now := b.now(s)
	for change, want := range map[string]string{
		"nope": `Invalid transition "nope" from state "open"`, "again": `State mismatch: transition "again" should go to "open", not "done"`,
	} {
		in.TransitionName, in.ToState = change, "done"
		a, err := b.r.Execute(b.ctx, in)
		b.refused(err, runner.ErrIllegal, want)
		b.unmoved(now, a, want)
	}
	b.force(s, "down")
	a, err = b.r.Execute(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
	b.ok(err)
	b.unmoved(b.now(s), a, `No transitions available from state "cellar"`)
}

// TestMachineUnchanged runs a session to its end: the definition is untouched.
func TestMachineUnchanged(t *testing.T) {
	b := newBench(t)
	m := b.desk(first("a"), human("human"), half)
	digest, text := m.Digest(), string(m.JSON())
	s := b.start(m)
	b.force(s, "again")
	b.stepTo(s, runner.TickAdvanced)
	again, err := machine.Parse("m.json", []byte(text), runner.Checks())
	b.ok(err)
	if m.Digest() != digest || again.Digest() != digest || string(b.now(s).Machine().JSON()) != text {
		t.Error("running a session changed its machine")
	}
}

// TestIrreversible leaves to a human what cannot be undone, whoever elects it,
// unless a human proposed it.
func TestIrreversible(t *testing.T) {
	for _, arb := range []string{half, `{"role":"arbiter","specialistId":"arb","strategyFnName":"firstProposal"}`, `{"role":"arbiter","specialistId":"arb","strategyFn":"= leader"}`} {
		b := newBench(t)
		b.cast.say("a", "finish")
		m := parse(b, `{"machineName":"m","initialState":"open","goalState":"done","specialists":[`+fn("a")+`,`+human("human")+`,`+arb+`],
			"states":{"open":{"transitions":{"finish":{"target":"done","irreversible":true},"wait":"open"}},"done":{}}}`)
		s := b.start(m)
		if tick := b.stepTo(s, runner.TickHuman); tick.Code != "irreversible" || tick.Reasoning() != `Transition "finish" cannot be undone, human input required` {
			t.Errorf("%s: %s: %s", arb, tick.Code, tick.Reasoning())
		}
		if a := b.force(s, "finish"); !a.Executed {
			t.Errorf("%s: the ruling was refused: %s", arb, a.GuardReason)
		}
	}
	b := newBench(t)
	m := parse(b, `{"machineName":"m","initialState":"open","goalState":"done","specialists":[`+human("human")+`,`+half+`],
		"states":{"open":{"transitions":{"finish":{"target":"done","irreversible":true}}},"done":{}}}`)
	s := b.start(m)
	b.propose(s, "human", "finish")
	b.stepTo(s, runner.TickAdvanced)
}

// TestRulingOnAStoppedSession takes up a session that a guard stopped if somebody
// says that they do, and only with what they decide.
func TestRulingOnAStoppedSession(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"limits":{"max_steps":1}}`}))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickStopped)
	stopped := b.now(s)
	in := runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish"}
	_, err := b.r.Decide(b.ctx, in)
	b.refused(err, runner.ErrNotRunning, "Session is not running: "+s.ID.String()+" (stopped)")
	in.Reopen = true
	for _, bad := range []func(*runner.Ruling){
		func(in *runner.Ruling) { in.TransitionName = "nowhere" }, func(in *runner.Ruling) { in.ToState = "open" },
		func(in *runner.Ruling) { in.SpecialistID = "a" }, func(in *runner.Ruling) { in.SpecialistID = "nobody" },
		func(in *runner.Ruling) { in.RoundID = "another" }, func(in *runner.Ruling) { in.MetaJSON = []byte("{") },
	} {
		refused := in
		bad(&refused)
		if a, _ := b.r.Decide(b.ctx, refused); a.Executed || a.GuardReason == "" || b.now(s).Sequence != stopped.Sequence || b.now(s).Status != session.Stopped {
			t.Errorf("%+v leaves the session %s at %d, %+v", refused, b.now(s).Status, b.now(s).Sequence, a)
		}
	}
	a := b.rule(in)
	now := b.now(s)
	if a.Executed || a.GuardReason != "max_steps: the number of steps is 2, more than the limit of 1" || now.Status != session.Stopped || now.Executed != 1 {
		t.Errorf("what a guard refuses leaves the session %s, %+v", now.Status, a)
	}
	if was, is := stopped.Outcome(), now.Outcome(); was.Code != is.Code || was.Reason != is.Reason || now.Round != stopped.Round {
		t.Errorf("it stopped for %+v, and now for %+v", was, is)
	}
	b.wantLog(s, stopped.Sequence, "resumed human", "gated finish abort", "ended stopped max_steps")
}

// TestRulingReopens takes up a session and moves it in one commit.
func TestRulingReopens(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", verdict.Abort, "house", "never")} })
	s := b.start(b.desk(fn("a"), human("human"), half))
	b.propose(s, "a", "again")
	b.stepTo(s, runner.TickStopped)
	before := len(b.records(s))
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reopen: true})
	if !a.Executed || b.now(s).Status != session.Running || len(b.records(s)) != before+1 || b.count(s, session.KindResumed) != 1 {
		t.Errorf("the result is %+v", a)
	}
}
