package truth

import "context"

// An EntitlementSlot is told how a right to an answer came about and ended. Nothing
// in this module implements one but [NoEntitlement]; it is a place for programs
// that keep such books. It may be called concurrently.
type EntitlementSlot interface {
	// Acquire says that holder now has the right to use the candidate's answer.
	Acquire(ctx context.Context, holder string, c Candidate) error
	// Transfer says that the right went from one holder to another.
	Transfer(ctx context.Context, from, to string, c Candidate) error
	// Rectify says that the right was found to be wrong, and by which verdict.
	Rectify(ctx context.Context, holder string, c Candidate, r Result) error
}

// A ReplaySlot gives back the events of a gate in the order they happened, until
// yield returns an error, which it returns. Event logs implement it.
type ReplaySlot interface {
	Replay(ctx context.Context, candidateID string, yield func(Event) error) error
}

// A MetaSlot judges the gate itself: it is told each candidate and its verdict. It
// may be called concurrently.
type MetaSlot interface {
	Reflect(ctx context.Context, c Candidate, r Result) error
}

// NoEntitlement is an [EntitlementSlot] that does nothing.
type NoEntitlement struct{}

// Acquire returns nil.
func (NoEntitlement) Acquire(context.Context, string, Candidate) error { return nil }

// Transfer returns nil.
func (NoEntitlement) Transfer(context.Context, string, string, Candidate) error { return nil }

// Rectify returns nil.
func (NoEntitlement) Rectify(context.Context, string, Candidate, Result) error { return nil }

// NoMeta is a [MetaSlot] that does nothing.
type NoMeta struct{}

// Reflect returns nil.
func (NoMeta) Reflect(context.Context, Candidate, Result) error { return nil }
