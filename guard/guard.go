// Package guard watches answers and spending; it may stop or warn, never
// choose.
//
// Every check is a pure function of a [Config], a [State] and a [verdict.Step]:
// [Config.Check] judges, [State.Advance] counts what was judged fit. [Guard]
// wraps the two for programs that use the package alone. The engine keeps the
// State with the session instead and counts in the transaction that stores the
// transition: that is what two-phase means here.
package guard

import (
	"context"

	"github.com/dialai/dialai/verdict"
)

// A Checker is a guard of a program's own, run after the built-in checks.
//
// Check judges one step. It must not keep s, and must judge the same step alike.
// A panic counts as an abort with code internal_error, and a status without a
// reason counts too. It may be called concurrently.
type Checker interface {
	Check(ctx context.Context, s verdict.Step) verdict.Verdict
}

// Func makes a Checker of a function.
type Func func(ctx context.Context, s verdict.Step) verdict.Verdict

// Check calls f.
func (f Func) Check(ctx context.Context, s verdict.Step) verdict.Verdict { return f(ctx, s) }

// safely asks a guard of the program's own; a panic fails closed.
func safely(ctx context.Context, c Checker, s verdict.Step) (v verdict.Verdict) {
	defer func() {
		if recover() != nil {
			v = verdict.InternalError("a custom guard")
		}
	}()
	return c.Check(ctx, s)
}
