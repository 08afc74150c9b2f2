package trust

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/exact"
)

// A promise under a new policy need not begin its test at nothing: recorded rounds, decided again
// under the policy, give pairs of a probability and whether it was right, and the test begins with
// those (Adopt). It waits beside the test that is under way until a round was judged under the new
// policy.

// ErrAdoption is wrapped by every error about an Adoption that cannot be counted.
var ErrAdoption = errors.New("bad adoption")

// An Adoption begins the test of a promise under a new policy with pairs that a
// back-test found for it in recorded rounds, in their order, instead of with none.
type Adoption struct {
	Machine      string  `json:"machine"`
	State        string  `json:"state,omitempty"` // of a promise per state
	Promise      Promise `json:"promise"`
	PolicyDigest string  `json:"policyDigest"`
	Pairs        []Pair  `json:"pairs"` // in the order of their outcomes; see [Seed]
	// Tried is the number of policies that were back-tested on those rounds, 1 or
	// more: the chance of a wrong promise is divided among them, since picking the
	// best of many is not free.
	Tried int64 `json:"tried"`
	// ID is that of the request that asked for it, "" if it had none. Of one Machine and
	// State a log holds at most one adoption of an ID.
	ID string `json:"adoptionId,omitempty"`
}

// Check returns an error wrapping [ErrAdoption] unless a can be counted.
func (a *Adoption) Check() error {
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
	for i, p := range a.Pairs {
		if err := p.outcome().checkStops(); err != nil || p.P < 0 || p.P > exact.One {
			return fmt.Errorf("%w: pairs[%d] holds no probabilities at falling thresholds", ErrAdoption, i)
		}
	}
	return nil
}

// Adopt has the test of a promise under a policy begin as a says. The test that is
// under way goes on until the policy is in force: until it is asked for, or an
// outcome was judged under it. A later adoption in the same scope takes the place of
// one that did not come into force. It returns an error wrapping [ErrAdoption], and
// changes nothing, if [Adoption.Check] refuses a.
func (l *Ledger) Adopt(a Adoption) error {
	if err := a.Check(); err != nil {
		return err
	}
	l.pool(a.Machine).adopt(&a)
	return nil
}

// adopt has a test begin with an adoption, which was checked.
func (m *pool) adopt(a *Adoption) {
	scope := a.Promise.scope(a.State)
	e := newEpoch(a.Promise, a.PolicyDigest, 0)
	e.tried = a.Tried
	for _, p := range a.Pairs {
		e.pair(p.outcome())
	}
	e.adopted = e.eligible
	if was := m.risk[scope]; was.of(a.Promise, a.PolicyDigest) {
		e.number = was.number + 1
		m.risk[scope] = e
		return
	}
	m.adopted[scope] = e
}

// of reports whether e tests a promise under a policy; nil tests none.
func (e *riskEpoch) of(p Promise, digest string) bool {
	return e != nil && e.promise == p && e.digest == digest
}

// following returns the epoch of a promise under a policy that is to come after
// the present one: the adopted one, or nil.
func (m *pool) following(p Promise, scope, digest string) *riskEpoch {
	e := m.adopted[scope]
	if !e.of(p, digest) {
		return nil
	}
	e = e.clone()
	if was := m.risk[scope]; was != nil {
		e.number = was.number
	}
	e.number++
	return e
}

// outcome returns what the test of a promise sees of a pair.
func (p Pair) outcome() *Outcome {
	pick := func(right bool) string {
		if right {
			return "right"
		}
		return "wrong"
	}
	o := &Outcome{Options: []string{"right", "wrong"}, P: p.P, Pick: pick(p.Right), Truth: "right", Promise: &Promise{}}
	for _, s := range p.Stops {
		o.Stops = append(o.Stops, StoppedAt{Tau: s.Tau, P: s.P, Pick: pick(s.Right)})
	}
	return o
}

// A Seed collects the pairs of an [Adoption] from outcomes as they would have been
// under its policy, in their order: those by which [Ledger.Add] tests a promise. An
// alarm of the detector forgets those before it, as it does there. The zero Seed is
// empty. A Seed must not be used concurrently.
type Seed struct {
	pairs    []Pair
	detector Detector
}

// Add counts an outcome under the promise that is to be adopted.
func (s *Seed) Add(o *Outcome) {
	if o.Pick == "" || o.Promise == nil {
		return
	}
	if o.Automatic {
		s.detector = s.detector.Add(o.Pick == o.Truth, 1-o.Promise.MaxError.Float())
	}
	if o.pairs() {
		s.pairs = append(s.pairs, pairOf(o))
	}
	if s.detector.Alarm() {
		*s = Seed{}
	}
}

// Pairs returns what was collected. The caller must not change it.
func (s *Seed) Pairs() []Pair { return s.pairs }

func pairOf(o *Outcome) Pair {
	p := Pair{P: o.P, Right: o.Pick == o.Truth}
	for _, s := range o.Stops {
		p.Stops = append(p.Stops, PairAt{Tau: s.Tau, P: s.P, Right: s.Pick == o.Truth})
	}
	return p
}
