package runner_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

const traced = `{"machineName":"traced","initialState":"a","goalState":"done","states":{"a":{"transitions":{"on":"done"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"p1","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

type partKey struct{}

// TestTrace: the parts of a step are told in their order, each within the step, with the
// session that they are about; and nobody who does not ask for it pays for it.
func TestTrace(t *testing.T) {
	var mu sync.Mutex
	var told []string
	open := 0
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Trace: func(ctx context.Context, p runner.Part) (context.Context, func(error)) {
		mu.Lock()
		defer mu.Unlock()
		within, _ := ctx.Value(partKey{}).(string)
		told = append(told, within+">"+p.Name)
		if p.MachineName != "traced" || p.Session == (specialist.SessionID{}) {
			t.Errorf("a part is of %+v", p)
		}
		open++
		return context.WithValue(ctx, partKey{}, p.Name), func(err error) {
			if open--; err != nil {
				t.Errorf("%s ended with %v", p.Name, err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.Parse("traced.json", []byte(traced), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	const step = runner.PartStep + ">"
	want := []string{">" + runner.PartCommit, ">" + runner.PartStep, step + runner.PartAsk, step + runner.PartAsk, step + runner.PartDecide, step + runner.PartGate, step + runner.PartGate, step + runner.PartCommit}
	if !slices.Equal(told, want) || open != 0 {
		t.Errorf("told %v, want %v; %d are open", told, want, open)
	}
}
