package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the arbiter makes of the proposals there are, because somebody wants to know.
// Evaluate only says so. A ruling without a transition (evaluateAndExecute) goes on: the
// payload that it gives is checked against the winner's transition, the guards ask whom
// they ask, the ruling has to be pinned as closely as the transition wants, an audit may
// hold it back for a human, and then the gate decides and the commit is written.
//
// Nobody is asked to propose for it. The verdict of an arbiter that is somebody's own
// code is recorded whatever becomes of the ruling, so that it is asked once for the same
// proposals.

// SelectChampion returns the enabled AI proposer of highest alignment in the
// session's present state, the first in the roster among equals, if its alignment
// reaches the bar; "" if nobody does. bar 0 means trust.Trusted.
func (r *Runner) SelectChampion(ctx context.Context, s *session.Session, bar exact.Billionths) (string, error) {
	if bar == 0 {
		bar = trust.Trusted
	}
	p, err := r.plan(ctx, s.Program)
	if err != nil {
		return "", err
	}
	t := r.look(p, s)
	members := t.members()
	weights, err := t.weigh(ctx, members)
	if err != nil {
		return "", err
	}
	if best := planning.Favourite(members, weights, bar); best != nil {
		return best.SpecialistID, nil
	}
	return "", nil
}

// evaluateAndExecute lets the arbiter decide the proposals there are.
func (r *Runner) evaluateAndExecute(ctx context.Context, s *session.Session, in Ruling) (Arbitration, error) {
	if s.Open != nil && s.Open.Pending() {
		return in.refused(s, session.RulingsPending), nil
	}
	w := r.newEngine(s)
	defer w.giveBack()
	v, err := w.evaluate(ctx)
	switch {
	case err != nil:
		return Arbitration{}, err
	case len(w.open.Proposals) == 0:
		return in.refused(s, noProposals), nil
	case v == nil:
		return w.unexecuted(ctx, in, w.arbiterFailure(w.by))
	case !v.Decision.Consensus():
		result, err := w.unexecuted(ctx, in, v.Decision.Reasoning())
		result.ArbitrationID, result.Decided = w.s.Key().ArbitrationID(v.Index), &v.Decision
		return result, err
	}
	if err := w.payable(&in, v); err != nil {
		result, failed := w.unexecuted(ctx, in, err.Error())
		return result, errors.Join(failed, err)
	}
	asAsked := func(v *session.Judged) decision { return in.amend(w.elected(v)) }
	q, err := w.inquire(ctx, asAsked)
	switch {
	case errors.Is(err, errElsewhere):
		return w.unexecuted(ctx, in, "Another process is asking the guards of the round")
	case errors.Is(err, errMeanwhile):
		return Arbitration{}, errors.Join(w.save(ctx), session.ErrStale) // look again
	case err != nil:
		return Arbitration{}, err
	}
	d := asAsked(w.open.Verdict)
	d.inquiry = q
	return w.executeElected(ctx, in, d)
}

// payable checks the payload that whoever has a round evaluated gives to what is elected,
// and brings it into its stored form.
func (w *engine) payable(in *Ruling, v *session.Judged) error {
	if in.MetaJSON == nil {
		return nil
	}
	given := specialist.Answer{TransitionName: w.elected(v).transition.Name, MetaJSON: in.MetaJSON}
	if _, err := legal(&w.now, &given, true); err != nil {
		return err
	}
	in.MetaJSON = given.MetaJSON // nil for null, which replaces nothing
	return nil
}

// unexecuted commits what is to be recorded and refuses the ruling.
func (w *engine) unexecuted(ctx context.Context, in Ruling, reason string) (Arbitration, error) {
	err := w.save(ctx)
	return in.refused(w.s, reason), err
}

// executeElected puts the verdict's choice through the gate, unless an audit holds
// it back, and commits.
func (w *engine) executeElected(ctx context.Context, in Ruling, d decision) (Arbitration, error) {
	v, winner := w.open.Verdict, d.winner
	result := in.refused(w.s, v.Decision.Reasoning())
	result.Decided = &v.Decision
	result.ArbitrationID, result.WinningProposalID = w.now.Key().ArbitrationID(v.Index), w.now.Key().ProposalID(winner.Arrival)
	result.TransitionName, result.ToState, result.MetaJSON = winner.Transition.Name, winner.Transition.Target, d.meta
	result.Reasoning = d.reasoning
	if err := in.pin().allows(d.transition); err != nil {
		result.GuardReason = err.Error()
		return result, errors.Join(err, w.save(ctx))
	}
	w.cancelOpen()
	if held, err := w.holdForAudit(ctx, w.by, &d); held || err != nil {
		result.GuardReason = w.now.Outcome().Reason
		return result, errors.Join(err, w.save(ctx))
	}
	w.demoteOnMismatch(d.transition)
	verdict, err := w.execute(ctx, &d)
	if failed, ok := errors.AsType[*cases.SetError](err); ok {
		w.unset(failed)
		result.GuardReason = failed.Error()
		err = w.save(ctx)
		result.Session = w.s
		return result, err
	}
	if err != nil {
		return Arbitration{}, err
	}
	if !result.gated(verdict) {
		w.refused(verdict)
	}
	err = w.save(ctx)
	result.Session = w.s
	return result, err
}

// evaluate returns the verdict on the present proposals; nil if the arbiter
// failed.
func (w *engine) evaluate(ctx context.Context) (*session.Judged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	var err error
	if w.by, err = w.arbiter(); err != nil {
		return nil, err
	}
	v, _, err := w.verdict(ctx)
	return v, err
}

// A Consensus is DIAL's ConsensusResult.
type Consensus struct {
	ConsensusReached  bool                        `json:"consensusReached"`
	WinningProposalID string                      `json:"winningProposalId,omitempty"`
	Reasoning         string                      `json:"reasoning"`
	Margin            *exact.Billionths           `json:"margin,omitempty"`
	Threshold         *machine.Threshold          `json:"threshold,omitempty"`
	Scores            map[string]exact.Billionths `json:"scores,omitempty"`
}

// Evaluate says what the arbiter makes of the current round: DIAL's
// evaluateConsensus. It moves nothing. An arbiter that is somebody's own code is
// asked once for each set of proposals, and its verdict recorded.
func (r *Runner) Evaluate(ctx context.Context, id specialist.SessionID) (Consensus, error) {
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return Consensus{}, err
		}
		c, err := r.consensusOf(ctx, s)
		if !errors.Is(err, session.ErrStale) {
			return c, err
		}
	}
	return Consensus{}, session.ErrStale
}

// consensusOf is Evaluate on a session as it is now. Whatever comes of it, the tickets
// that it took are given back.
func (r *Runner) consensusOf(ctx context.Context, s *session.Session) (Consensus, error) {
	w := r.newEngine(s)
	defer w.giveBack()
	w.looking = true
	v, err := w.evaluate(ctx)
	if err == nil && w.by.Custom() && len(w.open.Proposals) > 0 {
		err = w.save(ctx)
	}
	switch {
	case err != nil:
		return Consensus{}, err
	case v == nil:
		return Consensus{}, refuse(nil, session.CodeArbiterFailed, "%s", w.arbiterFailure(w.by))
	}
	return w.consensus(v), nil
}

func (t *round) consensus(v *session.Judged) Consensus {
	c := Consensus{ConsensusReached: v.Decision.Consensus(), Reasoning: v.Decision.Reasoning(), Margin: &v.Margin, Threshold: v.Threshold, Scores: t.scores(v)}
	if c.ConsensusReached {
		c.WinningProposalID = t.now.Key().ProposalID(v.Order[v.Decision.Winner])
	}
	return c
}

// scores sums the weights of a verdict by transition.
func (t *round) scores(v *session.Judged) map[string]exact.Billionths {
	return scoresOf(v, t.open.Proposals)
}

func scoresOf(v *session.Judged, proposals []*specialist.Proposal) map[string]exact.Billionths {
	scores := map[string]exact.Billionths{}
	for i, arrival := range v.Order {
		for _, p := range proposals {
			if p.Arrival == arrival {
				name := p.Transition.Name
				scores[name] = exact.Billionths(exact.AddSat(int64(scores[name]), int64(v.Weights[i])))
			}
		}
	}
	return scores
}
