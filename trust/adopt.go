package trust

import (
	"errors"
	"fmt"
)

// ErrAdoption is wrapped by every error about an Adoption that cannot be counted.
var ErrAdoption = errors.New("bad adoption")

// An Adoption begins the test of a promise under a new policy with pairs that a
// back-test found for it in recorded rounds, in their order, instead of with none.
type Adoption struct {
	Machine      string  `json:"machine"`
	State        string  `json:"state,omitempty"` // of a promise per state
	Promise      Promise `json:"promise"`
	PolicyDigest string  `json:"policyDigest"`
	Pairs        []Pair  `json:"pairs"` // of rounds in which everyone the policy would ask had answered
	// Tried is the number of policies that were back-tested on those rounds, 1 or
	// more: the chance of a wrong promise is divided among them, since picking the
	// best of many is not free.
	Tried int64 `json:"tried"`
}

// Adopt opens an epoch as a says. It returns an error wrapping [ErrAdoption], and
// changes nothing, if a cannot be counted.
func (l *Ledger) Adopt(a Adoption) error {
	switch {
	case a.Machine == "":
		return fmt.Errorf("%w: machine is empty", ErrAdoption)
	case a.Promise.PerState && a.State == "":
		return fmt.Errorf("%w: state is empty, but the promise is that of a state", ErrAdoption)
	case a.Tried < 1:
		return fmt.Errorf("%w: tried is %d: count the policy itself", ErrAdoption, a.Tried)
	}
	if err := a.Promise.Check(); err != nil {
		return fmt.Errorf("%w: promise: %w", ErrAdoption, err)
	}
	m, scope, number := l.pool(a.Machine), a.Promise.scope(a.State), int64(0)
	if e := m.risk[scope]; e != nil {
		number = e.number
	}
	e := newEpoch(a.Promise, a.PolicyDigest, number+1)
	e.tried = a.Tried
	for _, p := range a.Pairs {
		e.pair(p.outcome())
	}
	m.risk[scope] = e
	return nil
}

// outcome returns what the test of a promise sees of a pair.
func (p Pair) outcome() *Outcome {
	o := &Outcome{P: p.P, Pick: "picked", Truth: "picked"}
	if !p.Right {
		o.Truth = "other"
	}
	return o
}
