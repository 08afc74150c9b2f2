package runner

import (
	"context"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// learn returns what a human's ruling teaches the ledger of the present round.
func (t *assessment) learn(ctx context.Context, d decision) (*trust.Outcome, error) {
	q := t.asked()
	o := &trust.Outcome{
		Session: t.now.ID.String(), Round: t.now.Key().ID(), Machine: q.Machine, State: q.State, DefinitionDigest: t.now.Machine().Digest(),
		Options: q.Options, Truth: d.transition.Name, Source: trust.Forced, HumanID: d.author(), Blind: d.blind, Unasked: !t.open.HumanAsked(t.now),
		PolicyDigest: q.PolicyDigest, Proposals: t.open.Learned(t.here.VersionOf, t.now.Machine()), Partial: t.open.Waved() || t.partial(),
		NoQuorum: !t.quorate(),
	}
	if a := t.open.Draws; a != nil && a.Audit && t.open.HumanAsked(t.now) {
		o.Source, o.Automatic, o.SamplingProb = trust.Audited, true, a.AuditRate
		o.Pick = t.elected(t.open.Verdict).transition.Name
	}
	if d.second != nil && d.second.Settled != "" {
		o.Source = trust.Adjudicated
	}
	if by := t.here.Arbiter; by != nil && by.ByBayes() {
		o.Promise = q.Policy.Promise
		if err := t.counterfactual(ctx, by, o); err != nil {
			return nil, err
		}
	}
	return o, o.Check()
}

// unruled returns what the present round says without a human's word, where bayes learns from
// such rounds, too; nil if that is nothing.
func (t *assessment) unruled() *session.Learned {
	if !t.now.Machine().Definition().LearnsFromRounds() || t.here.Arbiter == nil || !t.here.Arbiter.ByBayes() || t.forced() {
		return nil
	}
	q := t.asked()
	u := trust.UnruledOf(t.now.Key().ID(), q.Machine, q.State, q.Options, t.open.Learned(t.here.VersionOf, t.now.Machine()))
	if u == nil {
		return nil
	}
	return &session.Learned{Unruled: u}
}

// counterfactual enters what bayes had made of the round before the human spoke, and
// what it would have made of it had it stopped asking earlier.
func (t *assessment) counterfactual(ctx context.Context, by *planning.Member, o *trust.Outcome) error {
	e, q, err := t.put(ctx, by)
	if err != nil {
		return err
	}
	j := t.judged()
	if j == nil {
		made := e.Ledger.Judge(q)
		j = &made
	}
	if j.Best >= 0 {
		o.P, o.Pick, o.N = j.P[j.Best], j.Pick, j.N
	}
	if t.stopsEarly() {
		o.Stops = e.Ledger.Stops(q, j, t.costs(q.Votes), t.askingPolicy())
	}
	return nil
}

// stopsEarly reports whether the policy of the state is to stop asking once a
// probability is reached. Then a round that was put to everyone, since nothing was
// established yet, says what it would have come to.
func (t *round) stopsEarly() bool {
	switch {
	case t.now.State.Solicit.Mode != machine.Sequential:
		return false
	case t.open.Wave == nil:
		return !t.partial()
	}
	return t.open.Wave.Everyone != NoSaving
}

// costs returns what asking for each vote is expected to cost.
func (t *assessment) costs(votes []trust.Vote) []exact.Money {
	costs := make([]exact.Money, len(votes))
	for i := range votes {
		if m := t.here.Find(votes[i].SpecialistID); m != nil {
			costs[i] = t.costOf(m)
		}
	}
	return costs
}

// judged returns the judgement that stands on the present proposals, or nil.
func (t *round) judged() *trust.Judgement {
	if t.open.Verdict == nil {
		return nil
	}
	return t.open.Verdict.Decision.Judgement
}
