package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/verdict"
)

// An oracle is a model for truth gates. As it is it agrees with whoever is asked
// about "again" and tells worlds apart, in 8 calls of 10 and 5 tokens.
type oracle struct {
	mu    sync.Mutex
	calls []string // the purposes

	sample, elsewhere, reworded string // its answers; "" are the good ones
	cost                        *exact.Money
	before                      func(purpose truth.CompletionPurpose) error
}

const said = "again\nit is again"

func (o *oracle) Complete(_ context.Context, r truth.CompletionRequest) (truth.Completion, error) {
	o.mu.Lock()
	o.calls = append(o.calls, string(r.Purpose))
	o.mu.Unlock()
	if o.before != nil {
		if err := o.before(r.Purpose); err != nil {
			return truth.Completion{}, err
		}
	}
	or := func(text, good string) string {
		if text == "" {
			return good
		}
		return text
	}
	text := ""
	switch {
	case r.Purpose == truth.PurposeRewrite && strings.Contains(r.Prompt, "would be wrong"):
		text = fmt.Sprint("elsewhere ", r.Seed)
	case r.Purpose == truth.PurposeRewrite:
		text = fmt.Sprint("reworded ", r.Seed)
	case r.Purpose == truth.PurposeSample:
		if text = said; o.sample != "" {
			text = fmt.Sprint(o.sample, r.Seed)
		}
	case strings.HasPrefix(r.Prompt, "elsewhere"):
		text = or(o.elsewhere, "finish, by all means")
	default:
		text = or(o.reworded, said)
	}
	return truth.Completion{Text: text, Tokens: truth.CountedTokens(10, 5), CostUSD: o.cost}, nil
}

func (o *oracle) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls)
}

// with answers for the model "m" of truth gates.
func (o *oracle) with(c *runner.Config) {
	asking(onlyM{o: o})(c)
}

// onlyM finds the model "m", and nobody else.
type onlyM struct {
	strategies.Registry
	o *oracle
}

func (m onlyM) Completer(model string) (truth.Completer, error) {
	if model != "m" {
		return nil, errors.New("there is only m")
	}
	return m.o, nil
}

// probed is a machine whose steps are probed; budget has members of a budget.
func (b *bench) probed(budget string) *session.Session {
	b.Helper()
	b.cast.say("a", "again")
	return b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"truth":{"model":"m"}` + budget + `}`}))
}

const probes = 3 + 2*2 + 2*2 // calls of a gate that passes

// TestTruthGate brings a step to everything that a truth gate can come to.
func TestTruthGate(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      *oracle
		status runner.TickStatus
		code   string
		calls  int
		values int // that were measured
	}{
		{"pass", &oracle{}, runner.TickAdvanced, "", probes, 3},
		{"uncertain", &oracle{sample: "finish"}, runner.TickRejected, "high_uncertainty", 3, 1},
		{"insensitive", &oracle{elsewhere: said}, runner.TickRejected, "low_sensitivity", 7, 2},
		{"volatile", &oracle{reworded: "park it"}, runner.TickHuman, "low_adherence", probes, 3},
		{"down", &oracle{before: func(truth.CompletionPurpose) error { return errors.New("no power") }}, runner.TickHuman, "internal_error", 1, 0},
		{"mad", &oracle{before: func(truth.CompletionPurpose) error { panic("mad") }}, runner.TickHuman, "internal_error", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.o.with)
			s := b.probed("")
			tick := b.stepTo(s, c.status)
			if tick.Code != c.code || c.o.asked() != c.calls {
				t.Errorf("the step came to code %q after %d calls, want %q after %d", tick.Code, c.o.asked(), c.code, c.calls)
			}
			now := b.now(s)
			if n := int64(c.calls); c.o.before == nil && (now.Spent().Calls != n || now.Spent().TokensIn != 10*n || now.Spent().TokensOut != 5*n || now.GuardState().Probes != now.Spent()) {
				t.Errorf("spent is %+v, of it for probes %+v", now.Spent(), now.GuardState().Probes)
			}
			if got := b.count(s, "probed"); got != c.calls+c.values || len(now.OpenAsks()) != 0 {
				t.Errorf("the log holds %d probes; open are %+v", got, now.OpenAsks())
			}
		})
	}
}

// TestTruthGateIsAskedOnlyWhereItIsWanted: by the transition and by the state,
// and never about what a human decides or another guard has refused.
func TestTruthGateIsAskedOnlyWhereItIsWanted(t *testing.T) {
	const states = `"open":{"transitions":{"finish":"done","again":"open","park":"parked"}},
		"parked":{"guards":{"truth":false},"transitions":{"back":"open"}},"done":{}`
	var o oracle
	b := newBench(t, o.with)
	b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: map[string]string{"open": "park", "parked": "back"}[q.State.Name], Reasoning: "it is again"}, nil
	})
	s := b.start(b.machine(def{states: states, who: []string{fn("a"), human("human"), half}, top: `"guards":{"truth":{"model":"m","when":["again"]}}`}))
	b.stepTo(s, runner.TickAdvanced) // park
	b.stepTo(s, runner.TickAdvanced) // back
	b.force(s, "again")
	if o.asked() != 0 {
		t.Errorf("%d questions were asked", o.asked())
	}
	b.cast.say("a", "again")
	b.stepTo(s, runner.TickAdvanced)
	if o.asked() != probes {
		t.Errorf("%d questions were asked about again", o.asked())
	}

	b = newBench(t, o.with, func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "no")}
	})
	s = b.probed("")
	if tick := b.stepTo(s, runner.TickRejected); tick.Code != "house" || o.asked() != probes {
		t.Errorf("came to %s after %d questions", tick.Code, o.asked())
	}
}

// TestTruthGateAfterAnAudit: what a human decides first is not probed.
func TestTruthGateAfterAnAudit(t *testing.T) {
	var o oracle
	b := newBench(t, o.with)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"truth":{"model":"m"}},"audit":{"mode":"before","rate":1}`}))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeAudit || o.asked() != 0 {
		t.Errorf("came to %s after %d questions", tick.Code, o.asked())
	}
}

// TestTruthGateOfARuling: letting the arbiter decide passes the same gate.
func TestTruthGateOfARuling(t *testing.T) {
	o := oracle{elsewhere: said}
	b := newBench(t, o.with)
	s := b.probed("")
	b.propose(s, "a", "again")
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", Reasoning: "it is again"})
	if a.Executed || !strings.Contains(a.GuardReason, "low_sensitivity") {
		t.Errorf("the ruling: %+v", a)
	}
}

// TestUnaskedStepsAskAHuman: the gate wants an inquiry about exactly the step
// that passes.
func TestUnaskedStepsAskAHuman(t *testing.T) {
	asked := verdict.Step{Transition: "t", Output: "o", MetaJSON: []byte("1")}
	if v := runner.Unasked(asked, asked); !v.Passed() {
		t.Errorf("the step that was asked about: %+v", v)
	}
	for _, other := range []verdict.Step{{Transition: "u", Output: "o", MetaJSON: []byte("1")}, {Transition: "t", Output: "p", MetaJSON: []byte("1")}, {Transition: "t", Output: "o"}} {
		if v := runner.Unasked(asked, other); v.Status != verdict.Escalate || v.Reasons[0].Code != "internal_error" {
			t.Errorf("%+v: %+v", other, v)
		}
	}
}

// TestNobodyToAsk: who is to be asked is looked for when a session starts.
func TestNobodyToAsk(t *testing.T) {
	var o oracle
	for _, c := range []struct {
		guards, want string
		configure    func(*runner.Config)
	}{
		{`"truth":{"model":"m"}`, `the truth gate of state "open": it asks the model "m", and this program has no such model: set Resolver of the runner's Config`, func(*runner.Config) {}},
		{`"truth":{"model":"x"}`, `it asks the model "x": there is only m`, o.with},
		{`"truth":{"model":"m","probe_model":"y"}`, `it asks the model "y": there is only m`, o.with},
		{`"classifier":{"function":"mod","on_error":"open"}`, `the classifier of state "open": the function "mod" is not in the Registry`, func(*runner.Config) {}},
		{`"classifier":{"url":"https://c.example","token_name":"T","on_error":"open"}`, `it is at https://c.example, and this program has no way to ask it`, func(*runner.Config) {}},
	} {
		b := newBench(t, c.configure)
		_, err := b.r.Start(b.ctx, b.machine(def{who: []string{fn("a"), half}, top: `"guards":{` + c.guards + `}`}), runner.StartOptions{})
		var start *runner.StartError
		if !errors.As(err, &start) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.guards, err)
		}
	}
}

// TestProbesArePaid: a budget bounds what the guards ask, before they ask it.
func TestProbesArePaid(t *testing.T) {
	money := dollar
	for _, c := range []struct {
		budget, code string
		calls        int // that are made
	}{
		{`"hard_limit_calls":5`, "budget_calls", 5},
		{`"hard_limit_calls":` + fmt.Sprint(probes), "", probes},
		{`"hard_limit_usd":5,"default_estimate_usd":0`, "budget_usd", 6}, // nobody knows before what a call costs: one too many
		{`"hard_limit_usd":5,"default_estimate_usd":1`, "budget_usd", 5},
		{`"hard_limit_usd":5`, "unpriced_ask", 0},
		{`"hard_limit_tokens":16999,"reserve_mode":"static"`, "budget_tokens", 40},
		{`"hard_limit_calls":5,"debit_probes":false`, "", probes},
	} {
		o := oracle{cost: &money}
		b := newBench(t, o.with)
		s := b.probed(`,"budget":{"probe_share_max":1,` + c.budget + `}`)
		want := runner.TickStopped
		switch c.code {
		case "":
			want = runner.TickAdvanced
		case "unpriced_ask":
			want = runner.TickHuman
		}
		tick := b.step(s)
		for range 3 { // the limit of tokens has room for the reservation of a few gates
			if c.code != "budget_tokens" || tick.Status != runner.TickAdvanced {
				break
			}
			tick = b.step(s)
		}
		if tick.Status != want || tick.Code != c.code || o.asked() > c.calls || c.code != "budget_tokens" && o.asked() != c.calls {
			t.Errorf("%s: the step came to %s, %s after %d calls", c.budget, tick.Status, tick.Code, o.asked())
		}
		if free := strings.Contains(c.budget, "false") || c.calls == 0; free != (b.now(s).Spent().Calls == 0) {
			t.Errorf("%s: spent is %+v", c.budget, b.now(s).Spent())
		}
	}
}

// TestProbesReserveWhatIsLikely: once a model has answered often enough, its
// answers are reserved at what they were, unless the budget says otherwise. So 11
// calls fit where 11 times the longest output would not.
func TestProbesReserveWhatIsLikely(t *testing.T) {
	for mode, want := range map[string]runner.TickStatus{"adaptive": runner.TickAdvanced, "static": runner.TickStopped} {
		var o oracle
		b := newBench(t, o.with)
		b.stepTo(b.probed(""), runner.TickAdvanced) // from which the length is known
		s := b.probed(`,"budget":{"probe_share_max":1,"hard_limit_tokens":16000,"reserve_mode":"` + mode + `"}`)
		b.stepTo(s, want)
	}
}

// TestProbesHaveTheirShare: by default the guards may spend a fifth.
func TestProbesHaveTheirShare(t *testing.T) {
	var o oracle
	b := newBench(t, o.with)
	s := b.probed(`,"budget":{"hard_limit_usd":5,"default_estimate_usd":0}`)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "budget_probe_share" || o.asked() != 0 {
		t.Errorf("came to %s after %d calls", tick.Code, o.asked())
	}
	b = newBench(t, o.with)
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "again", Reasoning: "it is again", Usage: given(0, 0, 400_000, 0)}, nil
	})
	s = b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"truth":{"model":"m"},"cost":{"on_unknown_model":"skip"},"budget":{"hard_limit_usd":5,"default_estimate_usd":0}}`}))
	b.stepTo(s, runner.TickAdvanced)
}

// TestProbesSurviveACrash kills the process in each of a gate's calls, and at
// each commit around them: the next process goes on where it was. What was asked
// and never answered is charged at its estimate, everything else as it was, and
// nothing that was answered is asked again.
func TestProbesSurviveACrash(t *testing.T) {
	for dies := 1; dies <= probes; dies++ {
		for _, where := range []string{"reserve", "call", "settle"} {
			o := &oracle{}
			dead := errors.New("killed")
			disk := &contested{}
			b := newBench(t, o.with, func(c *runner.Config) { disk.Store = c.Store; c.Store = disk })
			s := b.probed("")
			killed, n := false, 0
			disk.on(func(c *session.Change) error {
				if killed {
					return dead
				}
				switch {
				case where == "reserve" && holds(c, "asked"), where == "settle" && settles(c):
					n++
					killed = n == dies
				}
				if killed {
					return dead
				}
				return nil
			})
			o.before = func(truth.CompletionPurpose) error {
				if where == "call" && o.asked() == dies {
					killed = true
				}
				return nil
			}
			if _, err := b.r.Step(b.ctx, s.ID); !errors.Is(err, dead) {
				t.Fatalf("%s of call %d: the step came to %v", where, dies, err)
			}
			b.ok(b.r.Close()) // the system gives its lock back
			disk.on(nil)
			o.before = nil
			b.r = b.runner(o.with)
			before := o.asked()
			b.stepTo(s, runner.TickAdvanced)
			lost := where != "reserve"
			wantCalls := probes - dies + 1
			if got := o.asked() - before; got != wantCalls {
				t.Errorf("%s of call %d: %d questions were asked afterwards, want %d", where, dies, got, wantCalls)
			}
			spent := b.now(s).Spent()
			want := spend.Book{Calls: probes, TokensIn: 10 * probes, TokensOut: 5 * probes, Unpriced: probes}
			held := int64(16_384)
			if dies > 8 { // by then it is known how long the answers are
				held = 7
			}
			if lost {
				want.Calls, want.Unpriced, want.TokensIn, want.TokensOut, want.Estimated = probes+1, spent.Unpriced, spent.TokensIn, 5*probes+held, 1
			}
			if spent != want || lost && spent.TokensIn <= 10*probes {
				t.Errorf("%s of call %d: spent is %+v, want %+v", where, dies, spent, want)
			}
		}
	}
}

// settles reports whether a commit holds what came of a question.
func settles(c *session.Change) bool {
	return slices.ContainsFunc(c.Events, func(e session.Event) bool {
		p, ok := e.Data.(*session.Probed)
		return ok && p.Ask != 0
	})
}

// TestProbesOfARoundThatIsOver: a human decides while the guards ask. What was
// asked is paid as it was, and nothing is asked any more.
func TestProbesOfARoundThatIsOver(t *testing.T) {
	o := &oracle{}
	b := newBench(t, o.with)
	s := b.probed("")
	o.before = func(truth.CompletionPurpose) error {
		if o.asked() == 2 {
			b.force(s, "park")
		}
		return nil
	}
	b.stepTo(s, runner.TickSolicited)
	now := b.now(s)
	if spent := now.Spent(); now.State.Name != "parked" || o.asked() != 2 || spent.TokensIn != 20 || spent.TokensOut != 10 || spent.Calls != 2 || now.GuardState().Probes.TokensOut != 10 {
		t.Errorf("in %s after %d questions spent is %+v", now.State.Name, o.asked(), spent)
	}
	if b.count(s, "discarded") != 1 {
		t.Errorf("the log:\n%s", b.log(s, 2))
	}
}

// TestProbesOfAnotherProposal: somebody proposes while the guards ask, so the
// arbiter is asked again; what the guards know already they do not ask again.
func TestProbesOfAnotherProposal(t *testing.T) {
	o := &oracle{}
	b := newBench(t, o.with)
	b.cast.say("a", "again")
	b.cast.play("b", failing(errors.New("not yet")))
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), arbFn("judge")}, top: `"quorum":"any","guards":{"truth":{"model":"m"}}`}))
	o.before = func(truth.CompletionPurpose) error {
		if o.asked() == 4 {
			b.propose(s, "b", "park")
		}
		return nil
	}
	b.stepTo(s, runner.TickSolicited)
	o.before = nil
	b.stepTo(s, runner.TickAdvanced)
	if last := b.now(s).Last(); last.SpecialistID != "a" || b.count(s, "judged") != 2 || o.asked() != probes {
		t.Errorf("%s won after %d verdicts and %d questions", last.SpecialistID, b.count(s, "judged"), o.asked())
	}
}

// TestProbesElsewhere: while one process asks, another waits.
func TestProbesElsewhere(t *testing.T) {
	o := &oracle{}
	b := newBench(t, o.with)
	s := b.probed("")
	other := b.runner(o.with)
	o.before = func(truth.CompletionPurpose) error {
		if o.asked() != 2 {
			return nil
		}
		for _, r := range []*runner.Runner{b.r, other} { // in this process and in another
			tick, err := r.Step(b.ctx, s.ID)
			if err != nil || tick.Status != runner.TickWaiting {
				t.Errorf("meanwhile a step came to %s, %v", tick.Status, err)
			}
		}
		return nil
	}
	b.stepTo(s, runner.TickAdvanced)
	if o.asked() != probes {
		t.Errorf("%d questions were asked", o.asked())
	}
}

// TestProbesAfterResume: what the guards were told before a session stopped they
// do not ask again.
func TestProbesAfterResume(t *testing.T) {
	o := &oracle{}
	b := newBench(t, o.with)
	s := b.probed(`,"budget":{"probe_share_max":1,"hard_limit_calls":5}`)
	b.stepTo(s, runner.TickStopped)
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickStopped)
	if o.asked() != 5 || b.now(s).Spent().Calls != 5 {
		t.Errorf("%d questions were asked", o.asked())
	}
}
