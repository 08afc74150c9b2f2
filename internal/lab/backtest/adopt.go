package backtest

import (
	"cmp"
	"context"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Digest names what p changes, whatever the order of ids.
func (p *Policy) Digest() string {
	sorted := func(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
	return planning.DigestOf([]any{p.Arbiter, p.Threshold, p.Risk, p.Roster != nil, sorted(p.Roster), sorted(p.Drop)})
}

// A seedKey says what pairs are evidence of.
type seedKey struct {
	machine, scope string
	planning.PromisedPolicy
}

// collect adds an outcome, as it is under the policy, to the evidence for its promise.
func (f *fold) collect(o *trust.Outcome) {
	if o.Promise == nil {
		return
	}
	key := seedKey{machine: o.Machine, PromisedPolicy: planning.PromisedPolicy{Promise: *o.Promise, Digest: o.PolicyDigest}}
	if o.Promise.PerState {
		key.scope = o.State
	}
	s := f.seeds[key]
	if s == nil {
		s = &trust.Seed{}
		f.seeds[key] = s
	}
	s.Add(o)
}

// stops returns what an outcome would have come to, had asking stopped earlier: where
// the policy asks one after the other.
func (f *fold) stops(o *trust.Outcome, l *learned) []trust.StoppedAt {
	state := l.part.now.State
	if state.Solicit.Mode != machine.Sequential || l.judgement == nil || o.Promise == nil {
		return nil
	}
	q := l.part.now.Question
	var costs []exact.Money
	for i := range o.Proposals {
		p := &o.Proposals[i]
		if option := slices.Index(q.Options, p.Transition); p.Live() && option >= 0 {
			q.Votes = append(q.Votes, trust.Vote{SpecialistID: p.SpecialistID, Version: p.Version, Model: p.Model, OptionOrder: p.OptionOrder, Option: option, Human: p.Human})
			costs = append(costs, p.Cost)
		}
	}
	asking := trust.Asking{Most: max(0, state.Solicit.Wave)}
	if c := state.Solicit.HumanCost; c != nil {
		asking.HumanCost = max(1, *c)
	}
	j := *l.judgement
	j.Risk = nil // all were asked, whatever tau was in force
	return f.ledger.now.Stops(q, &j, costs, asking)
}

// adoptions returns what the newest definition of each machine, under the policy,
// would begin the tests of its promises with.
func (f *fold) adoptions(ctx context.Context) (list []trust.Adoption, err error) {
	names := make([]string, 0, len(f.tallies))
	for _, t := range f.sorted() {
		names = append(names, t.machine)
	}
	for _, name := range slices.Compact(names) {
		digests, err := f.scenes.live(ctx, name)
		if err != nil {
			return nil, err
		}
		for scope, d := range digests {
			a := trust.Adoption{Machine: name, State: scope, Promise: d.Promise, PolicyDigest: d.Digest}
			if s := f.seeds[seedKey{name, scope, d}]; s != nil {
				a.Pairs = s.Pairs()
			}
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b trust.Adoption) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.State, b.State))
	})
	return list, nil
}

// live returns the promises of a machine's newest definition under the policy, as
// sessions that begin now would make them.
func (ss *scenes) live(ctx context.Context, machineName string) (map[string]planning.PromisedPolicy, error) {
	m, err := ss.definition(ctx, machineName, "")
	if err != nil {
		return nil, err
	}
	changed, err := ss.policy.apply(m)
	if err != nil {
		return nil, err
	}
	return planning.PolicyDigests(changed, ss.cast(ss.rosters[machineName]))
}

// cast returns a roster under the policy.
func (ss *scenes) cast(roster *session.Roster) *session.Roster {
	present := *roster
	if ss.policy.Arbiter != nil {
		present.Specialists = slices.DeleteFunc(slices.Clone(present.Specialists), func(r session.Registered) bool { return r.Role == machine.Arbiter })
	}
	return &present
}
