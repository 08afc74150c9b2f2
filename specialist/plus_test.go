package specialist_test

import (
	"testing"

	"github.com/dialai/dialai/specialist"
)

// TestPlus: what asks cost together: calls add up, a cost is known only if no part
// of it is missing, and calls that nobody charges for miss none.
func TestPlus(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 100, NumOutputTokens: 10, Given: specialist.InputGiven | specialist.OutputGiven}
	both := specialist.Usage{NumInputTokens: 200, NumOutputTokens: 20, Given: tokens.Given}
	refused, none := specialist.Usage{}.WithCalls(1, 1), specialist.Usage{}.WithCalls(0, 0)
	for name, c := range map[string]struct{ a, b, want specialist.Usage }{
		"nothing said":               {specialist.Usage{}, tokens, tokens},
		"two calls":                  {tokens, tokens, both.WithCalls(2, 0)},
		"one that was refused":       {tokens, refused, tokens.WithCalls(2, 1)},
		"none":                       {tokens, none, tokens},
		"refused twice":              {refused, refused, specialist.Usage{}.WithCalls(2, 2)},
		"both costs known":           {tokens.WithCost(3), tokens.WithCost(4), both.WithCalls(2, 0).WithCost(7)},
		"one cost known":             {tokens.WithCost(3), tokens, both.WithCalls(2, 0)},
		"a cost beside a refused":    {tokens.WithCost(3), refused, tokens.WithCalls(2, 1).WithCost(3)},
		"a cost beside none, turned": {none, tokens.WithCost(3), tokens.WithCost(3)},
	} {
		if got := c.a.Plus(c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := c.b.Plus(c.a); got != c.want {
			t.Errorf("%s, turned: %+v, want %+v", name, got, c.want)
		}
	}
	if refused.Billed() != 0 || tokens.Made() != 1 || tokens.Billed() != 1 || none.Made() != 0 {
		t.Error("calls are counted wrongly")
	}
}
