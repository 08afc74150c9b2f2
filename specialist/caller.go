package specialist

import "context"

// A Caller says on whose behalf something outside the process is asked, for logs
// and audits. It decides nothing. The zero Caller is nobody in particular.
type Caller struct {
	SessionID, MachineName, State, SpecialistID string
	Round, Attempt                              int32
	Nth                                         int32 // how many asks of that specialist came before in the round

	// AskID identifies the ask in the log, as [Ask.ID] does: whoever repeats the request
	// for it sends the same one, so that it can be sent as an idempotency key. It is ""
	// for what is no ask of a session.
	AskID string

	// Spent is told what each ask of a model has cost, which model was asked, and which
	// answered, as its provider calls it, "" if none did; nil wants to know nothing. It
	// may be called concurrently.
	Spent func(u Usage, asked, answered string)
}

type callerKey struct{}

// WithCaller returns a context that carries c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the Caller that a context carries, or the zero one.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
