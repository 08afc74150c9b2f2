package llm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A world is what the model of a gate says: the same for as long as the case is the
// same, and something else once that is forged; or, if it is no good, otherwise.
type world struct {
	unsteady bool // says something else every time
	stubborn bool // pays in whatever world
	fickle   bool // changes its mind with the words
	score    string
	probs    []float64
}

func (w *world) says(n int, c llmtest.Call) llmtest.Reply {
	words := []string{"pay", "cut", "wait", "ask", "leave", "return", "close", "open", "send", "keep"}
	text := "pay\nChoosing first available transition: pay" // as the function says
	switch {
	case strings.Contains(c.User, "SCORE"):
		text = "Checked.\nSCORE: " + w.score
	case strings.Contains(c.User, "would be wrong"):
		text = "Pay the forged claim?"
	case strings.Contains(c.User, "different words"):
		text = "Is the other wording to be paid?"
	case w.unsteady:
		text = words[n%len(words)]
	case strings.Contains(c.User, "forged") && !w.stubborn:
		text = "refuse entirely"
	case strings.Contains(c.User, "other wording") && w.fickle:
		text = "never at all"
	}
	return llmtest.Reply{Text: text, LogProbs: w.probs}
}

// TestTruthGateOfEveryProvider: each probe of the gate decides on each provider's
// real format, through the whole engine; where a provider tells no log probabilities
// the refusal says so. What was asked is in the audit and in what was spent.
func TestTruthGateOfEveryProvider(t *testing.T) {
	sure, unsure := []float64{-0.01, -0.01, -0.01, -0.01}, []float64{-2, -2, -2, -2}
	none := "the model tells no log probabilities; use the estimator consistency or process_reward_verifier"
	for _, c := range []struct {
		name, estimator string
		world           world
		want            string // status, then code and message
		but             string // the same for Anthropic, which tells no log probabilities
	}{
		{"a sound answer passes", "consistency", world{}, "advanced", ""},
		{"consistency", "consistency", world{unsteady: true}, "rejected high_uncertainty", ""},
		{"sensitivity", "consistency", world{stubborn: true}, "rejected low_sensitivity", ""},
		{"adherence", "consistency", world{fickle: true}, "needs_human low_adherence", ""},
		{"a good critique", "process_reward_verifier", world{score: "0.9"}, "advanced", ""},
		{"a bad critique", "process_reward_verifier", world{score: "0.1"}, "rejected high_uncertainty", ""},
		{"likely by its tokens", "token_logprob_entropy", world{probs: sure}, "advanced", "needs_human internal_error " + none},
		{"unlikely by its tokens", "token_logprob_entropy", world{probs: unsure}, "rejected high_uncertainty", "needs_human internal_error " + none},
		{"no log probabilities", "token_logprob_entropy", world{}, "needs_human internal_error " + none, ""},
	} {
		for _, id := range []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-5", "google/gemini-2.5-flash"} {
			provider, model, _ := strings.Cut(id, "/")
			t.Run(provider+"/"+c.name, func(t *testing.T) {
				s := serve(t, c.world.says)
				got := gated(t, s, fmt.Sprintf(`{"model":"openai/gpt-5.4-nano","probe_model":%q,"estimator":%q,"when":["pay"]}`, id, c.estimator))
				want := c.want
				if c.but != "" && provider == "anthropic" {
					want = c.but
				}
				if !sameOutcome(got.outcome, want) {
					t.Errorf("%s, want %s", got.outcome, want)
				}
				asked := s.Calls()
				probes := 0
				for _, call := range asked {
					if call.Model == model {
						probes++
					}
				}
				if probes == 0 || probes != len(asked) || got.spent.Calls != int64(len(asked)) || got.audited != len(asked) || got.spent.Unpriced != 0 || got.spent.Money == 0 {
					t.Errorf("%d of %d calls asked the model of the probes, %d were audited, spent %+v", probes, len(asked), got.audited, got.spent)
				}
				if got.spent.TokensIn != 100*int64(len(asked)) || got.spent.TokensOut != 10*int64(len(asked)) {
					t.Errorf("the tokens are not those that the provider counted: %+v", got.spent)
				}
			})
		}
	}
}

// sameOutcome compares the words of an outcome.
func sameOutcome(got, want string) bool {
	status, rest, _ := strings.Cut(want, " ")
	code, message, _ := strings.Cut(rest, " ")
	return strings.HasPrefix(got, strings.TrimSpace(status+" "+code)) && strings.Contains(got, message)
}

type gatedRound struct {
	outcome string // status, code and message of the gate
	spent   spend.Book
	audited int
}

// gated runs a round that a function decides, past a truth gate.
func gated(t *testing.T, s *llmtest.Server, section string) (g gatedRound) {
	t.Helper()
	m, err := machine.Parse("gated.json", []byte(`{"machineName":"gated","initialState":"open","goalState":"done","guards":{"truth":`+section+`,"budget":{"probe_share_max":1}},
		"states":{"open":{"prompt":"Pay the claim of 100?","transitions":{"pay":"done","wait":"open"}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"rule","strategyFnName":"firstAvailable"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	c := config(s)
	c.Audit = func(context.Context, specialist.AuditEntry) error { g.audited++; return nil }
	models := llm.New(c)
	kept := store.NewMemory()
	defer kept.Close()
	r, err := runner.New(runner.Config{Store: kept, Resolver: models, Prices: llm.Prices(), Observer: func(rec session.Change) {
		for _, e := range rec.Events {
			if d, ok := e.Data.(*session.Gated); ok && len(d.Verdict.Reasons) > 0 {
				g.outcome = " " + d.Verdict.Reasons[0].Code + " " + d.Verdict.Reasons[0].Message
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	started, err := r.Start(t.Context(), m, runner.StartOptions{Defaults: true})
	if err != nil {
		t.Fatal(err)
	}
	tick, err := r.Step(t.Context(), started.ID)
	if err != nil {
		t.Fatal(err)
	}
	g.outcome, g.spent = string(tick.Status)+g.outcome, tick.Session.Spent()
	return g
}

// TestProbesOfAnotherModel: with a probe_model of its own, the model that gave the
// answer is asked nothing.
func TestProbesOfAnotherModel(t *testing.T) {
	w := world{}
	s := serve(t, w.says)
	gated(t, s, `{"model":"openai/gpt-5.4-nano","probe_model":"anthropic/claude-sonnet-5"}`)
	for _, call := range s.Calls() {
		if call.API != "messages" || call.Model != "claude-sonnet-5" {
			t.Errorf("%s was asked over %s", call.Model, call.API)
		}
	}
	if n := len(s.Calls()); n < 7 {
		t.Errorf("only %d calls", n)
	}
}
