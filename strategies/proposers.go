package strategies

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/dialai/dialai/specialist"
)

// ErrNoTransitions is the answer of every built-in proposer in a state that
// leads nowhere. Its text is DIAL's.
//
//lint:ignore ST1005 programs and logs written for DIAL look for this very text
var ErrNoTransitions = errors.New("No transitions available from current state")

// A choice is a built-in proposer: it picks an index of n transitions and says
// why in words that end with the transition's name.
type choice struct {
	because string
	pick    func(n int, q specialist.Question) int
}

// The built-in proposers. All of them may be used concurrently.
var (
	// FirstAvailable proposes the transition that is written first.
	FirstAvailable specialist.Proposer = choice{"Choosing first available transition: ", func(int, specialist.Question) int { return 0 }}
	// LastAvailable proposes the transition that is written last.
	LastAvailable specialist.Proposer = choice{"Choosing last available transition: ", func(n int, _ specialist.Question) int { return n - 1 }}
	// Random proposes each transition with the same probability, as the
	// question's seed says.
	Random specialist.Proposer = choice{"Randomly selected transition: ", func(n int, q specialist.Question) int {
		return rand.New(rand.NewPCG(q.Stream("random"))).IntN(n)
	}}
)

// Propose implements [specialist.Proposer].
func (c choice) Propose(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	legal := q.Transitions()
	if len(legal) == 0 {
		return specialist.Answer{}, ErrNoTransitions
	}
	t := legal[c.pick(len(legal), q)]
	return q.Choose(t, c.because+t.Name), nil
}
