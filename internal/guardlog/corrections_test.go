package guardlog

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// late is a model that answers after a human has decided.
type late struct {
	strategies.Registry
	decide func()
	usage  specialist.Usage
}

func (l *late) Proposer(*machine.Machine, *machine.Specialist, specialist.Context) (specialist.Proposer, error) {
	return l, nil
}

func (l *late) Propose(context.Context, specialist.Question) (specialist.Answer, error) {
	l.decide()
	return specialist.Answer{TransitionName: "again", Usage: l.usage, Model: "m"}, nil
}

func (*late) Estimate(specialist.Question) specialist.Estimate {
	return specialist.Estimate{Model: "m", InputTokens: 1000, OutputTokens: 500}
}

// TestLogOfCorrections: whatever a late answer corrects, the log of the guards can be
// read, adds up to what was spent, and is judged as it was.
func TestLogOfCorrections(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 7, NumOutputTokens: 3, Given: specialist.InputGiven | specialist.OutputGiven}
	for name, usage := range map[string]specialist.Usage{
		"fewer tokens": tokens, "cheaper": tokens.WithCost(exact.Dollar / 8), "dearer": tokens.WithCost(9 * exact.Dollar),
		"unsent": specialist.Usage{}.WithCalls(0, 0), "three calls": tokens.WithCost(exact.Dollar/8).WithCalls(3, 2), "nothing said": {},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, model, kept := t.Context(), &late{usage: usage}, store.NewMemory()
			r, err := runner.New(runner.Config{Store: kept, Resolver: model})
			ok(t, err)
			defer r.Close()
			m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"again":"a","on":"b"}},"b":{}},"guards":{"limits":{"max_total_tokens":100000},"budget":{"hard_limit_calls":9}},"specialists":[
				{"role":"proposer","specialistId":"x","contextFn":"sessionContext","modelId":"m","estimatedCostUSD":1},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`), runner.Checks())
			ok(t, err)
			s, err := r.Start(ctx, m, runner.StartOptions{})
			ok(t, err)
			model.decide = func() {
				_, err := r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: "on"})
				ok(t, err)
			}
			_, err = r.Step(ctx, s.ID)
			ok(t, err)
			s, err = r.Session(ctx, s.ID)
			ok(t, err)
			var out bytes.Buffer
			w := New(s, Options{}, func(rec *guard.LogRecord) error { return json.NewEncoder(&out).Encode(rec) })
			ok(t, w.Fold(kept.Records(ctx, s.ID, 1), math.MaxInt64))
			guards, _ := guard.Parse(m.Definition().Guards, false)
			replay := guard.NewReplayer(guards, nil)
			for line := range strings.Lines(out.String()) {
				rec, err := guard.ParseLog([]byte(line))
				ok(t, err)
				if result, judged := replay.Next(rec); judged && result.Differs {
					t.Errorf("%s is judged otherwise", line)
				}
			}
			got, want := replay.Spent(), s.Spent()
			if got.Estimated, want.Estimated = 0, 0; got != want {
				t.Errorf("the log adds up to %+v, spent were %+v\n%s", got, want, &out)
			}
		})
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
