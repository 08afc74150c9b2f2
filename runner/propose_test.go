package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// given is a usage whose every member is known.
func given(money exact.Money, latency, in, out int64) specialist.Usage {
	return specialist.Usage{CostUSD: money, LatencyMsec: latency, NumInputTokens: in, NumOutputTokens: out,
		Given: specialist.CostGiven | specialist.LatencyGiven | specialist.InputGiven | specialist.OutputGiven}
}

func cost(money exact.Money) specialist.Usage { return specialist.Usage{}.WithCost(money) }

// dollar is one US dollar.
const dollar exact.Money = 1_000_000_000_000

const parameters = `"open":{"transitions":{"finish":{"target":"done","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},"again":"open"}},
	"aside":{"transitions":{"go":"done"},"specialists":[{"role":"proposer","specialistId":"elsewhere","strategyFn":"fn"}]},"done":{}`

// TestProposeRefusals goes down the checks of a proposal in their order: each
// row would be refused for a later reason too.
func TestProposeRefusals(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: parameters, who: []string{fn("a"), fn("off", `"disabled":true`), human("human"), half}})
	ended := b.start(m)
	b.rule(runner.Ruling{SessionID: ended.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish", MetaJSON: []byte(`{"n":1}`)})
	s := b.start(m)
	big := strings.Repeat("x", 64<<10+1)
	const stale = "00000000-0000-8000-8000-000000000000"
	for _, c := range []struct {
		in   runner.Submission
		kind error
		text string
	}{
		{runner.Submission{SessionID: specialist.SessionID{1}, RoundID: runner.CurrentRound, SpecialistID: "nobody"}, session.ErrNotFound, "Session not found: 01000000-0000-0000-0000-000000000000"},
		{runner.Submission{SessionID: ended.ID, RoundID: runner.CurrentRound, SpecialistID: "nobody"}, runner.ErrNotRunning, "Session is not running: " + ended.ID.String() + " (completed)"},
		{runner.Submission{SpecialistID: "nobody", RoundID: stale}, session.ErrNotFound, "Specialist not found: nobody"},
		{runner.Submission{SpecialistID: "", RoundID: stale}, session.ErrNotFound, "Specialist not found: "},
		{runner.Submission{SpecialistID: "arb", RoundID: stale}, runner.ErrForbidden, "Specialist arb is not a proposer"},
		{runner.Submission{SpecialistID: "elsewhere", RoundID: stale}, runner.ErrForbidden, `Specialist elsewhere does not take part in state "open"`},
		{runner.Submission{SpecialistID: "off", RoundID: stale}, runner.ErrForbidden, "Specialist off is disabled"},
		{runner.Submission{SpecialistID: "a", RoundID: stale, TransitionName: "nope", Usage: cost(dollar)}, runner.ErrStaleRound, "Round ID mismatch - decision cycle already completed"},
		{runner.Submission{SpecialistID: "a", RoundID: stale, TransitionName: "nope"}, runner.ErrStaleRound, "Round ID mismatch - decision cycle already completed"},
		{runner.Submission{SpecialistID: "human", RoundID: stale, TransitionName: "nope", Usage: cost(dollar)}, runner.ErrStaleRound, "Round ID mismatch - decision cycle already completed"},
		{runner.Submission{SpecialistID: "a", TransitionName: "again"}, runner.ErrIllegal, "roundId is required"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "nope", ToState: "nope"}, runner.ErrIllegal, `Invalid transition "nope" from state "open"`},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "go"}, runner.ErrIllegal, `Invalid transition "go" from state "open"`},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", ToState: "done", Reasoning: big}, runner.ErrIllegal, `State mismatch: transition "again" should go to "open", not "done"`},
		{runner.Submission{SpecialistID: "human", RoundID: s.Key().ID()}, runner.ErrIllegal, "Human specialist human must name a transition"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Reasoning: big}, runner.ErrIllegal, "reasoning is larger than 65536 bytes"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Usage: cost(-1)}, runner.ErrIllegal, "cost, latency and tokens must not be negative"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Usage: given(0, -1, 0, 0)}, runner.ErrIllegal, "cost, latency and tokens must not be negative"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Usage: given(0, 0, -1, 0)}, runner.ErrIllegal, "cost, latency and tokens must not be negative"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", Usage: given(0, 0, 0, -1)}, runner.ErrIllegal, "cost, latency and tokens must not be negative"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", MetaJSON: []byte(`{"a":`)}, runner.ErrIllegal, "metaJson is not one JSON value: unexpected EOF"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", MetaJSON: []byte(`{"a":1,"a":1}`)}, runner.ErrIllegal, `metaJson is not one JSON value: duplicate member "a"`},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", MetaJSON: []byte(`"` + big + `"`)}, runner.ErrIllegal, "metaJson is larger than 65536 bytes"},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "finish", MetaJSON: []byte(`{"n":"1"}`)}, runner.ErrIllegal, ""},
		{runner.Submission{RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", ToolCalls: []specialist.ToolCall{{Name: "t", Args: []byte("{")}}}, runner.ErrIllegal, `arguments of tool call "t" are not one JSON value of at most 65536 bytes`},
	} {
		if c.in.SessionID == (specialist.SessionID{}) {
			c.in.SessionID = s.ID
		}
		p, _, err := b.r.Propose(b.ctx, c.in)
		if c.text == "" && err != nil && strings.HasPrefix(err.Error(), `metaJson does not satisfy the parameters of transition "finish": `) {
			c.text = err.Error()
		}
		if b.refused(err, c.kind, c.text); p != nil {
			t.Errorf("%v left the proposal %v", err, p)
		}
	}
	// Only what an AI was paid for another round is logged.
	b.wantLog(s, 2, "discarded 1 0 a nope late 1")
	if got := b.now(s); len(got.Proposals()) != 0 || got.Round != 1 || got.Status != session.Running {
		t.Errorf("refusals changed the session: %+v", got)
	}
}

var uuid8 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestProposal proposes with every member that there is.
func TestProposal(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: parameters, who: []string{fn("a"), human("human"), half}}))
	p := b.submit(runner.Submission{SessionID: s.ID, SpecialistID: "a", RoundID: s.Key().ID(), TransitionName: "finish", ToState: "done", Reasoning: "世界 \u2028",
		MetaJSON: []byte(` {"n": 1.0, "deep": {"è": [null, {"x": []}]}} `), Usage: given(dollar/4, 12, 34, 56), Model: "m-1",
		ToolCalls: []specialist.ToolCall{{Name: "t", Args: []byte(`{ "b": 1 }`), ID: "call-1"}, {Name: "u"}}})
	shown := string(b.now(s).View().Proposals[0])
	var v map[string]any
	b.ok(json.Unmarshal([]byte(shown), &v))
	if id, _ := v["proposalId"].(string); !uuid8.MatchString(id) {
		t.Errorf("the proposal has id %s, no UUID of version 8", id)
	}
	want := fmt.Sprintf(`{"proposalId":"%s","sessionId":"%s","roundId":"%s","specialistId":"a","isHuman":false,"transitionName":"finish","toState":"done","reasoning":"世界 `+"\u2028"+`",`+
		`"metaJson":{"n":1.0,"deep":{"è":[null,{"x":[]}]}},"costUSD":0.25,"latencyMsec":12,"numInputTokens":34,"numOutputTokens":56,"createdAt":"%s","arrival":1,"mode":"submitted",`+
		`"model":"m-1","toolCalls":[{"name":"t","args":{"b":1},"id":"call-1"},{"name":"u"}]}`, s.Key().ProposalID(1), s.ID, s.Key().ID(), p.CreatedAt)
	if shown != want {
		t.Errorf("the proposal is\n%s\nwant\n%s", shown, want)
	}
	if q := b.propose(s, "human", "again"); !q.IsHuman || q.Arrival != 2 {
		t.Errorf("the human's proposal is %+v", q)
	}
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again", MetaJSON: []byte(`null`)}) // absent: nothing to satisfy
	if got := b.now(s).Proposals()[1]; got.MetaJSON != nil {
		t.Errorf("metaJson null is kept as %s", got.MetaJSON)
	}
}

// TestHumansAreDeclared proves that nobody becomes human by saying so: a
// proposal's isHuman, mode and target come from the declaration and the machine.
func TestHumansAreDeclared(t *testing.T) {
	b := newBench(t)
	b.cast.say("human-like", "finish")
	s := b.start(b.desk(fn("human-like"), human("human"), half))
	p := b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human-like", TransitionName: "finish", MetaJSON: []byte(`{"isHuman":true,"toState":"parked"}`)})
	if p.IsHuman || p.Transition.Target != "done" {
		t.Errorf("the proposal is %+v", p)
	}
	weights, err := b.r.Weights(b.ctx, b.now(s))
	b.ok(err)
	if weights["human-like"] != 0 {
		t.Errorf("it weighs %s", weights["human-like"])
	}
	if p := b.propose(s, "human", "finish"); !p.IsHuman {
		t.Error("a human is not human")
	}
	if weights, _ = b.r.Weights(b.ctx, b.now(s)); weights["human"] != exact.One {
		t.Errorf("a human weighs %s", weights["human"])
	}
}

// TestOneProposalEach has one specialist propose fifty times: it weighs as much
// as one proposal, the last counts, and the log keeps all.
func TestOneProposalEach(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("stuffer"), fn("other"), human("human"), half)
	b.train(m, "stuffer", 4, 8)
	b.train(m, "other", 8, 8)
	s := b.start(m)
	b.propose(s, "other", "again")
	for i := range 50 {
		p := b.propose(s, "stuffer", "finish")
		if p.Arrival != int32(i+2) || i > 0 && p.Replaces != p.Arrival-1 || i == 0 && p.Replaces != 0 {
			t.Fatalf("proposal %d has arrival %d and replaces %d", i, p.Arrival, p.Replaces)
		}
	}
	if now := b.now(s); len(now.Proposals()) != 2 || b.count(s, "proposed") != 51 {
		t.Errorf("%d proposals are live, %d in the log", len(now.Proposals()), b.count(s, "proposed"))
	}
	// 0.215… for finish against 0.675… for again: fifty votes would win.
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" {
		t.Errorf("the step went %s: %s", tick.Transition.Name, tick.Reasoning())
	}
}

// TestProposalReplaced takes a proposal back by another, for which the first is
// never counted nor compared.
func TestProposalReplaced(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), human("human"), half)
	s := b.start(m)
	b.propose(s, "a", "finish")
	b.propose(s, "a", "again")
	b.force(s, "again")
	book, err := b.store.Book(b.ctx, "desk")
	b.ok(err)
	if r := book.Records("desk"); len(r) != 1 || r[0].MatchingChoices != 1 || r[0].TotalComparisons != 1 {
		t.Errorf("one round taught %+v, want one match of one", r)
	}
}

// TestProposeWakes hands in a proposal while a session waits for a human: it
// runs again, and is decided with the proposal.
func TestProposeWakes(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.say("b", "park")
	s := b.start(b.desk(fn("a"), fn("b"), human("human"), half))
	b.stepTo(s, runner.TickHuman)
	b.stepTo(s, runner.TickHuman) // changes nothing
	before := b.now(s)
	b.propose(s, "human", "finish")
	now := b.now(s)
	if now.Status != session.Running || now.Outcome() != (session.Outcome{}) || now.Sequence != before.Sequence+1 {
		t.Errorf("after a proposal the session is %s: %s", now.Status, now.Outcome().Reason)
	}
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "finish" || len(tick.Asked()) != 0 {
		t.Errorf("the step went %s and asked %v", tick.Transition.Name, tick.Asked())
	}
}

// TestProposeAsks names no transition, so the specialist is asked.
func TestProposeAsks(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "again", Reasoning: "its own", MetaJSON: []byte(`{"own":1}`), Usage: cost(dollar), Model: "m"}, nil
	})
	m := b.desk(fn("a"), fn("b"), human("human"), half)
	s := b.start(m)
	p := b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
	if p.Transition.Name != "again" || p.Reasoning != "its own" || string(p.MetaJSON) != `{"own":1}` || p.Mode != specialist.Function || p.Usage.CostUSD != dollar {
		t.Errorf("asked, a proposed %+v", p)
	}
	p = b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", Reasoning: "given", MetaJSON: []byte(`{"given":1}`), Usage: cost(2 * dollar)})
	if p.Reasoning != "given" || string(p.MetaJSON) != `{"given":1}` || p.Usage.CostUSD != 2*dollar || p.Replaces != 1 {
		t.Errorf("what was given does not win: %+v", p)
	}
	b.wantLog(s, 2, "asked a#1", "proposed a again 1", "asked a#2", "proposed a again 2")
	b.cast.play("b", failing(errors.New("out of order")))
	before := b.now(s)
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "b"})
	b.refused(err, runner.ErrIllegal, "out of order")
	now := b.now(s)
	if now.Status != session.Running || now.Round != 1 || len(now.Proposals()) != 1 {
		t.Errorf("a failing ask changed the session: %+v", now)
	}
	b.wantLog(s, before.Sequence, "asked b#3", "ask_failed b ask_error")
	b.cast.say("b", "nonsense")
	_, _, err = b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "b"})
	b.refused(err, runner.ErrIllegal, `Invalid transition "nonsense" from state "open"`)
}

// TestProposeAsksWithoutArbiter asks somebody although nobody could decide.
func TestProposeAsksWithoutArbiter(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a")))
	if p := b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"}); p.Transition.Name != "again" {
		t.Errorf("asked, a proposed %s", p.Transition.Name)
	}
}

// TestProposeAskedOnce loses the race for the commit of an answer: nobody is
// asked twice, and the answer is kept.
func TestProposeAskedOnce(t *testing.T) {
	for _, who := range []string{fn("a"), web("a")} {
		c := &contested{}
		b := newBench(t, func(cfg *runner.Config) { c.Store = cfg.Store; cfg.Store = c })
		b.cast.say("a", "again")
		s := b.start(b.desk(who, human("human"), half))
		c.once("proposed", func() { b.propose(s, "human", "finish") })
		if p := b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"}); p.Transition.Name != "again" || p.Arrival != 2 {
			t.Errorf("the proposal is %+v", p)
		}
		if asked := b.cast.who(); len(asked) != 1 {
			t.Errorf("asked were %v", asked)
		}
		// The round is decided while the answer is on its way to the store.
		c.once("proposed", func() { b.force(s, "again") })
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
		b.refused(err, runner.ErrStaleRound, "Round ID mismatch - decision cycle already completed")
		if asked := b.cast.who(); len(asked) != 1 || b.count(s, "discarded") != 1 {
			t.Errorf("asked were %v, %d answers were discarded", asked, b.count(s, "discarded"))
		}
	}
}

// TestStaleProposalCosts logs a proposal for a round that is over with what it
// cost, priced as every other.
func TestStaleProposalCosts(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"cost":{"prices":{"m":{"input_per_1m":1,"output_per_1m":2}}}}`}))
	old := s.Key().ID()
	b.force(s, "again")
	for _, u := range []specialist.Usage{cost(dollar / 2), given(0, 0, 1_000_000, 1_000_000), {NumInputTokens: 500_000, Given: specialist.InputGiven}} {
		if u.NumOutputTokens > 0 {
			u.Given &^= specialist.CostGiven
		}
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, SpecialistID: "a", RoundID: old, TransitionName: "finish", Usage: u, Model: "m"})
		b.refused(err, runner.ErrStaleRound, "Round ID mismatch - decision cycle already completed")
	}
	spent := b.now(s).Spent()
	if spent.Money != 4*dollar || spent.Calls != 3 || spent.TokensIn != 1_500_000 || spent.Unpriced != 0 {
		t.Errorf("late proposals were charged %+v, want $4 for 3 calls", spent)
	}
	if len(b.now(s).Proposals()) != 0 {
		t.Error("a late proposal counts")
	}
}
