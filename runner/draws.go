package runner

import (
	"context"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Which closed rounds a human looks at is drawn from a secret of the store, the
// session and the round alone: no answer can influence it, nobody outside can
// foresee it, and a restart draws the same.

// drawAudit draws whether a decision that the engine is about to execute is
// audited; nil where none is.
func (t *assessment) drawAudit(ctx context.Context, by *member) (*session.Draws, error) {
	if !t.here.audits || t.forced() {
		return nil, nil
	}
	rate, err := t.auditRate(ctx, by)
	if err != nil {
		return nil, err
	}
	hit, err := t.draw(ctx, "audit", rate)
	return &session.Draws{AuditRate: rate, Audit: hit}, err
}

func (t *assessment) draw(ctx context.Context, purpose string, rate exact.Billionths) (bool, error) {
	secret, err := t.r.store.Secret(ctx)
	if err != nil {
		return false, err
	}
	return trust.NewSecretDraw(secret, t.now.ID.String(), t.now.Key().ID(), purpose).Happens(rate), nil
}

// auditRate returns the share of automatic decisions to audit at present.
// Newcomers are looked at more closely, and everybody is while a detector is
// alarmed. How many decisions were made since is what audits stand for.
func (t *assessment) auditRate(ctx context.Context, by *member) (exact.Billionths, error) {
	a := t.here.state.Audit
	plan := trust.AuditPlan{Rate: billionths(a.Rate), NewcomerRate: billionths(a.NewcomerRate), Newcomer: int64(a.Newcomer)}
	q := &t.here.question
	switch {
	case t.championship.alone:
		return plan.Probability(t.championship.seen.Decisions, t.championship.seen.Detector), nil
	case !by.byBayes() || q.Policy.Promise == nil:
		n, err := t.r.store.DecidedSince(ctx, q.Machine, 0, a.Newcomer)
		return plan.Probability(int64(n), trust.Detector{}), err
	}
	e, err := t.evidence(ctx)
	if err != nil {
		return 0, err
	}
	_, d := e.Ledger.Risk(q.Machine, q.State, *q.Policy.Promise, q.PolicyDigest)
	return plan.Probability(e.Ledger.Automatic(q.Machine, q.State, *q.Policy.Promise, q.PolicyDigest), d), nil
}

// drawSecond draws whether another human is to decide what one has just decided;
// nil where none ever is. It is skipped where fewer than two humans take part. Where
// only one thing can be chosen, two may still differ in what goes with it, but nobody
// learns from that later.
func (t *assessment) drawSecond(ctx context.Context, d decision) (*session.Draws, error) {
	s := t.here.state.SecondHuman
	if s == nil || d.transition.Approvals != nil || len(t.here.humansOn()) < 2 || s.When == machine.After && len(t.now.Offered().Transitions) < 2 {
		return nil, nil
	}
	rate := billionths(s.Rate)
	if d.transition.Irreversible && s.IrreversibleRate != nil {
		rate = billionths(*s.IrreversibleRate)
	}
	hit, err := t.draw(ctx, "second human", rate)
	return &session.Draws{SecondRate: rate, Second: hit}, err
}

// humansOn returns the ids of the humans who may rule and are not switched off, in roster
// order.
func (p *statePlan) humansOn() (ids []string) {
	for _, list := range [][]member{p.members, p.humans} {
		for i := range list {
			if m := &list[i]; m.IsHuman && !m.off && p.decides(m.SpecialistID) {
				ids = append(ids, m.SpecialistID)
			}
		}
	}
	return ids
}

// auditable reports whether automatic decisions of a state are audited: those of
// bayes, and all where the file says how.
func (p *statePlan) auditable(def *machine.Definition) bool {
	if p.arbiter != nil && p.arbiter.byBayes() || def.Audit != nil {
		return true
	}
	i := slices.IndexFunc(def.States, func(s machine.StateDefinition) bool { return s.Name == p.state.Name })
	return i >= 0 && def.States[i].Audit != nil
}

// waitsForAudit reports whether a decision of the engine is one that a human sees
// first.
func (t *assessment) waitsForAudit(ctx context.Context, by *member) (bool, error) {
	draws, err := t.drawAudit(ctx, by)
	return err == nil && draws != nil && draws.Audit && t.here.state.Audit.Mode == machine.Before, err
}

// holdForAudit draws whether a decision of the engine is audited. It reports
// whether the session has to wait for that: then a human decides the round first.
func (w *engine) holdForAudit(ctx context.Context, by *member, d *decision) (bool, error) {
	var err error
	if d.draws, err = w.drawAudit(ctx, by); err != nil || d.draws == nil {
		return false, err
	}
	if !d.draws.Audit || w.here.state.Audit.Mode != machine.Before {
		return false, nil
	}
	w.emit(&session.AwaitsHuman{Code: session.CodeAudit, Reason: "Drawn for an audit, human input required", Draws: d.draws})
	return true, nil
}
