package trust

import (
	"fmt"

	"github.com/dialai/dialai/exact"
)

// A Promise is a declared risk: with probability Confidence or more, the
// long-run share of automatic decisions that a human would have decided
// otherwise is at most MaxError.
type Promise struct {
	MaxError   exact.Billionths `json:"maxError"`   // in (0, 1)
	Confidence exact.Billionths `json:"confidence"` // in (0, 1)
	// PerState says that the promise is tested over the rounds of its state
	// alone, because the state declares it; else over all rounds of the machine
	// that are under the machine's promise.
	PerState bool `json:"perState,omitempty"`
	// Scopes is the number of promises among which the risk of a wrong promise is
	// divided ("familywise"); 0 and 1 divide nothing.
	Scopes int64 `json:"scopes,omitempty"`
	// ClopperPearson tests by looks at all pairs, at 50 of them and whenever they
	// have doubled, instead of at every moment.
	ClopperPearson bool `json:"clopperPearson,omitempty"`
}

// DefaultPromise returns the promise in force under bayes where neither a
// threshold nor a risk is declared: at most 5 % errors, with confidence .9.
func DefaultPromise() Promise {
	return Promise{MaxError: 50_000_000, Confidence: 900_000_000}
}

// Check returns an error that names the member unless p can be tested.
func (p Promise) Check() error {
	switch {
	case p.MaxError <= 0 || p.MaxError >= exact.One:
		return fmt.Errorf("maxError %s is not between 0 and 1: it is a share, such as 0.05", p.MaxError)
	case p.Confidence <= 0 || p.Confidence >= exact.One:
		return fmt.Errorf("confidence %s is not between 0 and 1: it is a probability, such as 0.9", p.Confidence)
	case p.Scopes < 0:
		return fmt.Errorf("scopes %d is negative", p.Scopes)
	}
	return nil
}

// Delta returns the probability with which p may be broken by chance: what
// Confidence leaves to 1, divided among Scopes.
func (p Promise) Delta() float64 {
	return (exact.One - p.Confidence).Float() / float64(max(1, p.Scopes))
}
