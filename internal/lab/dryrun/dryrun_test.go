package dryrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/lab/dryrun"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
)

// outside is a machine of which nobody is in this program: a service, a model, an agent and a
// human, and an arbiter that is a service.
const outside = `{"machineName":"refunds","initialState":"new","goalState":"closed","guards":{"budget":{"hard_limit_usd":1}},
	"input":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"}}},
	"states":{"new":{"prompt":"Which way?","transitions":{"claim":"claimed","drop":"closed"}},
		"claimed":{"prompt":"Refund?","transitions":{"refund":"closed","wait":"later"}},
		"later":{"due":{"in":"36h","then":"again"},"transitions":{"again":"claimed"}},"closed":{}},
	"specialists":[{"role":"proposer","specialistId":"hook","strategyWebhookUrl":"https://hook.example.com/x","webhookTokenName":"NO_SUCH_TOKEN","estimatedCostUSD":0.01},
		{"role":"proposer","specialistId":"model","contextFn":"sessionContext","modelId":"gpt-4o","estimatedCostUSD":0.01},
		{"role":"proposer","specialistId":"carol","isHuman":true},
		{"role":"arbiter","specialistId":"judge","strategyWebhookUrl":"https://judge.example.com/x","webhookTokenName":"NO_SUCH_TOKEN","estimatedCostUSD":0.01}]}`

func parsed(t testing.TB, text string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("m.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs, and says how the rounds went.
func run(t testing.TB, text, answers string) (*api.DryRun, string) {
	t.Helper()
	c := dryrun.Config{Machine: parsed(t, text), Meta: json.RawMessage(`{"amount":3}`), Seed: 7}
	if err := json.Unmarshal([]byte(answers), &c.Answers); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r, err := dryrun.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > dryrun.MaxTime+10*time.Second || r.Steps > dryrun.MaxSteps {
		t.Errorf("it takes %s and %d steps", took, r.Steps)
	}
	var lines []string
	for _, d := range r.Rounds {
		line := d.State + ":"
		for _, p := range d.Proposals {
			line += " " + p.SpecialistID + "=" + p.TransitionName
		}
		for _, f := range d.Failures {
			line += " " + f.SpecialistID + "!" + f.Code
		}
		if d.Human != nil {
			line += fmt.Sprint(" ", d.Human.Code, d.Human.Humans)
		}
		if x := d.Executed; x != nil {
			line += " -> " + x.ToState + " (" + x.Decision + ")"
		}
		lines = append(lines, line)
	}
	return r, strings.Join(lines, "\n")
}

// TestDryRun: everybody outside is played by the script, timers fire at once, and it is said who
// would be asked where the script has no human.
func TestDryRun(t *testing.T) {
	const script = `[{"specialistId":"hook","transitionName":"claim","state":"new","reasoning":"late"},{"specialistId":"model","transitionName":"drop","state":"new"},{"specialistId":"model","error":"no credit"},
		{"specialistId":"judge","transitionName":"claim","state":"new","reasoning":"hook knows"},
		{"specialistId":"carol","transitionName":"wait","state":"claimed"},{"specialistId":"carol","transitionName":"refund","state":"claimed"}]`
	r, rounds := run(t, outside, script)
	want := `new: hook=claim model=drop -> claimed (consensus)
claimed: hook!no_answer model!ask_error no_proposals[carol] -> later (forced)
later: hook!no_answer model!ask_error no_proposals[carol] -> claimed (timer)
claimed: hook!no_answer model!ask_error no_proposals[carol] -> closed (forced)`
	if rounds != want {
		t.Errorf("the rounds are\n%s\nwant\n%s\n%+v", rounds, want, r)
	}
	if v := r.Rounds[0].Verdicts; len(v) != 1 || !v[0].ConsensusReached || v[0].TransitionName != "claim" || v[0].Reasoning != "hook knows" || v[0].ArbiterID != "judge" {
		t.Errorf("the verdict is %+v", v)
	}
	if f := r.Rounds[1].Failures[1]; f.Message != "no credit" {
		t.Errorf("the failure is %+v", f)
	}
	if r.Status != "completed" || r.CurrentState != "closed" || len(r.Unused) != 0 {
		t.Errorf("it ends %+v", r)
	}
	same, _ := run(t, outside, script)
	a, _ := json.Marshal(r)
	if b, _ := json.Marshal(same); string(a) != string(b) {
		t.Errorf("again it is\n%s\nit was\n%s", b, a)
	}

	for range 3 { // of those who answer at the same time, too, when the round is decided by the first
		_, first := run(t, crowd(20), said(20, ""))
		if _, again := run(t, crowd(20), said(20, "")); again != first {
			t.Fatalf("a crowd says again\n%.600s\nit said\n%.600s", again, first)
		}
	}

	r, rounds = run(t, outside, `[{"specialistId":"hook","transitionName":"claim"},{"specialistId":"judge"},{"specialistId":"hook","state":"later","transitionName":"again"}]`)
	if r.Status != "needs_human" || rounds != "new: hook=claim model!no_answer "+r.Code+"[carol]" || fmt.Sprint(r.Unused) != "[2]" {
		t.Errorf("without a human it is %s\n%+v", rounds, r)
	}
}

// TestDryRunRefuses: what nobody could say, and input that the machine does not want.
func TestDryRunRefuses(t *testing.T) {
	m := parsed(t, outside)
	for _, a := range []api.DryAnswer{{SpecialistID: "nobody"}, {SpecialistID: "hook", State: "nowhere"}} {
		if _, err := dryrun.Run(t.Context(), dryrun.Config{Machine: m, Meta: json.RawMessage(`{"amount":3}`), Answers: []api.DryAnswer{a}}); !errors.Is(err, dryrun.ErrScript) || !strings.Contains(err.Error(), "answers/0") {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if _, err := dryrun.Run(t.Context(), dryrun.Config{Machine: m, Meta: json.RawMessage(`{}`)}); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("without the input it comes to %v", err)
	}
}

// looping never ends by itself.
const looping = `{"machineName":"loop","initialState":"a","goalState":"z","states":{"a":{"transitions":{"on":"a","out":"z"}},"z":{}},
	"specialists":[{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://s.example.com/x","webhookTokenName":"T"},{"role":"arbiter","specialistId":"j","strategyFnName":"firstProposal"}]}`

// crowd is looping with so many who propose, and said what they all say, with more.
func crowd(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"role":"proposer","specialistId":"s%d","strategyWebhookUrl":"https://s.example.com/x","webhookTokenName":"T"}`, i))
	}
	return strings.Replace(looping, `{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://s.example.com/x","webhookTokenName":"T"}`, strings.Join(list, ","), 1)
}

func said(n int, more string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"specialistId":"s%d","transitionName":"on"%s}`, i, more))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestDryRunBounds: what would go on for ever, or fill the memory, ends, and says at which bound.
func TestDryRunBounds(t *testing.T) {
	large := `"` + strings.Repeat("x", 60_000) + `"`
	for name, c := range map[string]struct{ text, answers, code string }{
		"a loop":          {looping, `[{"specialistId":"s","transitionName":"on"}]`, "step_limit"},
		"payloads":        {crowd(8), said(8, `,"metaJson":`+large), "size_limit"},
		"a timer at once": {strings.Replace(looping, `"a":{`, `"a":{"due":{"in":"1s","then":"on"},`, 1), `[{"specialistId":"s","error":"no"}]`, "step_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if r, rounds := run(t, c.text, c.answers); r.Status != "limit" || r.Code != c.code || r.Reason == "" {
				t.Errorf("it ends %s %s after %d steps: %.300s", r.Status, r.Code, r.Steps, rounds)
			}
		})
	}
}

// TestDryRunAgents: an agent is answered for like everybody else, and fails where it has no line.
func TestDryRunAgents(t *testing.T) {
	text := strings.Replace(looping, `"strategyWebhookUrl":"https://s.example.com/x","webhookTokenName":"T"`, `"agent":"claude"`, 1)
	if r, rounds := run(t, text, `[{"specialistId":"s","transitionName":"on","state":"a"},{"specialistId":"s","transitionName":"nowhere","state":"a"},{"specialistId":"s","transitionName":"out"}]`); r.Status != "needs_human" || !strings.HasPrefix(rounds, "a: s=on -> a (consensus)\na: s!") {
		t.Errorf("it ends %s %s: %s", r.Status, r.Code, rounds)
	}
	if r, rounds := run(t, text, `[]`); r.Status != "needs_human" || !strings.HasPrefix(rounds, "a: s!no_answer") || r.Rounds[0].Failures[0].Message == "" {
		t.Errorf("it ends %s %s: %s", r.Status, r.Code, rounds)
	}
}

// TestDryRunSamples: every sample machine runs without anybody of whom it speaks.
func TestDryRunSamples(t *testing.T) {
	for _, sample := range machines.List() {
		file, text, _ := machines.Read(sample.Name)
		m, err := machine.Parse(file, text, runner.Checks())
		if err != nil {
			t.Fatal(err)
		}
		r, err := dryrun.Run(t.Context(), dryrun.Config{Machine: m})
		if refused, ok := errors.AsType[*runner.Error](err); ok && refused.Code == "invalid_input" {
			continue
		}
		if err != nil || r.Status == "" || len(r.Rounds) == 0 {
			t.Errorf("%s: %+v, %v", sample.Name, r, err)
			continue
		}
		t.Logf("%s: %d rounds, %s %s", sample.Name, len(r.Rounds), r.Status, r.Code)
	}
}

// TestDryRunHostile: many specialists, dear expressions and a caller who has gone end in time.
func TestDryRunHostile(t *testing.T) {
	if r, _ := run(t, crowd(250), said(250, "")); r.Status != "limit" {
		t.Errorf("a crowd ends %s %s", r.Status, r.Code)
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 3000), ",") + "]"
	dear := strings.Replace(looping, `"on":"a"`, `"on":{"target":"a","when":"= metaJson.l.all(a, metaJson.l.all(b, metaJson.l.all(c, a + b + c > 0)))"}`, 1)
	r, err := dryrun.Run(t.Context(), dryrun.Config{Machine: parsed(t, dear), Meta: json.RawMessage(`{"l":` + list + `}`), Answers: []api.DryAnswer{{SpecialistID: "s", TransitionName: "on"}}})
	if err != nil || len(r.Rounds) != 1 || len(r.Rounds[0].Closed) != 1 {
		t.Errorf("a dear condition: %+v, %v", r, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dryrun.Run(gone, dryrun.Config{Machine: parsed(t, crowd(3))}); !errors.Is(err, context.Canceled) {
		t.Errorf("for a caller who has gone: %v", err)
	}
}
