package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

func TestFunc(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 5)
	f := guard.Func(func(ctx context.Context, s verdict.Step) verdict.Verdict {
		return verdict.Reject(verdict.Retry, s.Transition, fmt.Sprint(ctx.Value(key{})))
	})
	var c guard.Checker = f
	if got := c.Check(ctx, verdict.Step{Transition: "pay"}).Reasons[0].Text(); got != "pay: 5" {
		t.Errorf("the function said %q", got)
	}
	if v := verdict.InternalError("the gate"); codes(v) != "abort [internal_error]" || v.Reasons[0].Message != "a check failed in the gate" {
		t.Errorf("InternalError is %+v", v)
	}
}
