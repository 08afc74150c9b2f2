package strategies_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A hidden resolver knows one proposer, by its address, and cannot use another.
type hidden struct{ strategies.Registry }

func (hidden) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	switch s.StrategyWebhookURL {
	case "here":
		return strategies.LastAvailable, nil
	case "down":
		return nil, errors.New("it is down")
	}
	return nil, nil
}

// TestResolversAskInOrder: the first that knows somebody counts, one that cannot use
// whom it knows ends the search, and what nobody knows is nobody and no error.
func TestResolversAskInOrder(t *testing.T) {
	first := strategies.Registry{}.WithProposer("x", strategies.FirstAvailable).WithContext("sessionContext", answers{"own"})
	second := strategies.Registry{}.WithProposer("x", strategies.LastAvailable).WithProposer("y", strategies.LastAvailable).
		WithModel("m", truth.CompleterFunc(func(context.Context, truth.CompletionRequest) (truth.Completion, error) {
			return truth.Completion{Text: "m"}, nil
		}))
	all := strategies.Resolvers{nil, first, strategies.Resolvers{hidden{}, second}}
	for _, c := range []struct {
		who  machine.Specialist
		want specialist.Proposer
		err  string
	}{
		{machine.Specialist{StrategyFn: "x"}, strategies.FirstAvailable, ""},
		{machine.Specialist{StrategyFn: "y"}, strategies.LastAvailable, ""},
		{machine.Specialist{StrategyFn: "z"}, nil, ""},
		{machine.Specialist{StrategyFnName: "random"}, strategies.Random, ""},
		{machine.Specialist{StrategyWebhookURL: "here"}, strategies.LastAvailable, ""},
		{machine.Specialist{StrategyWebhookURL: "down"}, nil, "it is down"},
		{machine.Specialist{StrategyWebhookURL: "there"}, nil, ""},
	} {
		p, err := all.Proposer(nil, &c.who, nil)
		if (p == nil) != (c.want == nil) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%+v: %v, %v", c.who, p, err)
			continue
		}
		if p == nil {
			continue
		}
		got, _ := p.Propose(t.Context(), question(1))
		if want, _ := c.want.Propose(t.Context(), question(1)); got.Reasoning != want.Reasoning {
			t.Errorf("%+v: %s, want %s", c.who, got.Reasoning, want.Reasoning)
		}
	}
	if x, _ := all.Context(nil, &machine.Specialist{ContextFn: "sessionContext"}); x != (answers{"own"}) {
		t.Errorf("a program's own context of a built-in name is %v", x)
	}
	if c, err := all.Completer("m"); c == nil || err != nil {
		t.Errorf("a model of the second: %v, %v", c, err)
	}
	if c, err := all.Classifier(&guard.ClassifierConfig{Function: "m"}); c != nil || err != nil {
		t.Errorf("a classifier that nobody knows: %v, %v", c, err)
	}
}
