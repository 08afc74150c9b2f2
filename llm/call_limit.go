package llm

import (
	"context"

	"github.com/dialai/dialai/specialist"
)

// A callLimit is how many calls of a model may still be made; negative numbers are no
// bound.
type callLimit struct {
	calls  int64
	billed int64 // that may be charged for: each call may be, before it is made
}

// callLimitOf returns what is left to calls by the limit that a context carries.
func callLimitOf(ctx context.Context) callLimit {
	r := specialist.CallLimitOf(ctx)
	left := func(bound int64) int64 {
		if bound <= 0 {
			return -1
		}
		return bound
	}
	return callLimit{left(r.Calls), left(r.Billed)}
}

// left reports whether one more call may be made.
func (r callLimit) left() bool { return r.calls != 0 && r.billed != 0 }

// after returns what is left when calls were made.
func (r callLimit) after(u specialist.Usage) callLimit {
	if u == (specialist.Usage{}) {
		return r
	}
	less := func(left, made int64) int64 {
		if left < 0 {
			return left
		}
		return max(left-made, 0)
	}
	return callLimit{less(r.calls, u.Made()), less(r.billed, u.Billed())}
}

// refusedCall is what a call costs that the provider refused: nothing but itself.
var refusedCall = specialist.Usage{}.WithCalls(1, 1)

// noCall is what an ask costs that never reached a provider.
var noCall = specialist.Usage{}.WithCalls(0, 0)
