package specialist

import "context"

// A Caller says on whose behalf something outside the process is asked, for logs
// and audits, and whether that is still wanted. The zero Caller is nobody in particular.
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

	// Wanted returns why no further request may be sent for the ask, nil while one may;
	// a nil Wanted lets all be sent. It may be called concurrently.
	Wanted func(ctx context.Context) error
}

// StillWanted asks Wanted, which costs a look into the store. Whoever sends more than one
// request for an ask calls it before each but the first: the session may have been
// cancelled meanwhile, or the ask answered by others.
func (c Caller) StillWanted(ctx context.Context) error {
	if c.Wanted == nil {
		return nil
	}
	return c.Wanted(ctx)
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
