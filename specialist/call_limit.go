package specialist

import "context"

// A CallLimit is what a budget has set aside for one ask: how many calls of a model it
// may make. Whoever asks a model stops before it would make more, as it stops at a
// deadline. The zero CallLimit sets no bound.
type CallLimit struct {
	Calls  int64 // of any kind; 0 is no bound
	Billed int64 // that a provider may charge for; 0 is no bound
}

type limitKey struct{}

// WithCallLimit returns a context that carries r.
func WithCallLimit(ctx context.Context, r CallLimit) context.Context {
	return context.WithValue(ctx, limitKey{}, r)
}

// CallLimitOf returns the CallLimit that a context carries, or the zero one.
func CallLimitOf(ctx context.Context) CallLimit {
	r, _ := ctx.Value(limitKey{}).(CallLimit)
	return r
}
