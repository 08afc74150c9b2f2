package backtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// BenchmarkBacktest back-tests rounds of three proposers with three choices each,
// every tenth decided by a human, over ten machines. DIALAI_BENCH_ROUNDS says how
// many; ns/op is that of all of them.
func BenchmarkBacktest(b *testing.B) {
	rounds := 20_000
	if n, err := strconv.Atoi(os.Getenv("DIALAI_BENCH_ROUNDS")); err == nil {
		rounds = n
	}
	for _, strategy := range []string{"bayes", "alignmentMargin"} {
		h := crowd(b, strategy, rounds)
		for _, c := range []struct {
			name   string
			policy backtest.Policy
		}{
			{"as-recorded", backtest.Policy{}},
			{"bayes", backtest.Policy{Arbiter: &machine.Specialist{Role: machine.Arbiter, SpecialistID: "tried", StrategyFnName: "bayes"}, Risk: &machine.Risk{MaxError: .1, Confidence: .9}}},
			{"drop", backtest.Policy{Drop: []string{"c"}}},
		} {
			b.Run(strategy+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					r, err := backtest.Run(h.ctx, backtest.Config{Source: h.store, Policy: c.policy})
					if err != nil || r.Total.Rounds < rounds {
						b.Fatal(r.Total.Rounds, err)
					}
				}
				b.ReportMetric(float64(rounds)*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
			})
		}
	}
}

// crowd makes the history of ten machines.
func crowd(b *testing.B, strategy string, rounds int) *history {
	h := newHistory(b)
	h.ok(h.r.Close())
	registry := strategies.Registry{}.WithProposer("voter", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		hi, _ := q.Stream("vote")
		options := q.Transitions()
		pick := options[int(q.Key.Round)%3]
		if hi%10 == 0 {
			pick = options[hi/10%3]
		}
		return specialist.Answer{TransitionName: pick.Name, Reasoning: "of three ways this is the one that fits best", Usage: specialist.Usage{}.WithCost(1e9)}, nil
	}))
	var err error
	h.r, err = runner.New(runner.Config{Store: h.store, Resolver: registry, AllowOperator: true})
	h.ok(err)
	errs := make([]error, 200)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = h.crowded(fmt.Sprint("machine", i%10), strategy, (rounds+len(errs)-1)/len(errs)) })
	}
	wg.Wait()
	h.ok(errors.Join(errs...))
	return h
}

// crowded plays one session.
func (h *history) crowded(name, strategy string, rounds int) error {
	text := fmt.Sprintf(`{"machineName":"%s","initialState":"open","goalState":"done","consensusThreshold":0.34,
		"states":{"open":{"transitions":{"left":"open","right":"open","ahead":"open"}},"done":{}},"specialists":[
		{"role":"proposer","specialistId":"a","strategyFn":"voter"},{"role":"proposer","specialistId":"b","strategyFn":"voter"},
		{"role":"proposer","specialistId":"c","strategyFn":"voter"},{"role":"arbiter","specialistId":"arbiter","strategyFnName":"%s"}]}`, name, strategy)
	m, err := machine.Parse(name+".json", []byte(text), runner.Checks())
	if err != nil {
		return err
	}
	s, err := h.r.Start(h.ctx, m, runner.StartOptions{})
	if err != nil {
		return err
	}
	for i := 1; i <= rounds; i++ {
		human := i%10 == 0
		for _, id := range []string{"a", "b", "c"} {
			if !human {
				break
			}
			if _, _, err := h.r.Propose(h.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(id)}); err != nil {
				return err
			}
		}
		if !human {
			tick, err := h.r.Step(h.ctx, s.ID)
			if err != nil {
				return err
			}
			human = tick.Status == runner.TickHuman
		}
		if human {
			truth := []string{"left", "right", "ahead"}[i%3]
			if _, err := h.r.Decide(h.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: runner.Operator, TransitionName: truth}); err != nil {
				return err
			}
		}
	}
	return nil
}
