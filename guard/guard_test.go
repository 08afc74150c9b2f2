package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dialai/dialai/guard"
)

func TestFunc(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 5)
	f := guard.Func(func(ctx context.Context, s guard.Step) guard.Verdict {
		return guard.Reject(guard.Retry, s.Transition, fmt.Sprint(ctx.Value(key{})))
	})
	var c guard.Checker = f
	if got := c.Check(ctx, guard.Step{Transition: "pay"}).Reasons[0].Text(); got != "pay: 5" {
		t.Errorf("the function said %q", got)
	}
	if v := guard.InternalError("the gate"); codes(v) != "abort [internal_error]" || v.Reasons[0].Message != "a check failed in the gate" {
		t.Errorf("InternalError is %+v", v)
	}
}
