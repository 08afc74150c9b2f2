package runner

import (
	"context"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Which closed rounds a human looks at is drawn from a secret of the store, the
// session and the round alone: no answer can influence it, nobody outside can
// foresee it, and a restart draws the same.

// drawAudit draws whether a decision that the engine is about to execute is
// audited; nil where none is.
func (t *assessment) drawAudit(ctx context.Context, by *planning.Member) (*session.Draws, error) {
	if !t.here.Audits || t.forced() {
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
func (t *assessment) auditRate(ctx context.Context, by *planning.Member) (exact.Billionths, error) {
	a := t.here.State.Audit
	plan := trust.AuditPlan{Rate: planning.Billionths(a.Rate), NewcomerRate: planning.Billionths(a.NewcomerRate), Newcomer: int64(a.Newcomer)}
	q := &t.here.Question
	switch {
	case t.championship.alone:
		return plan.Probability(t.championship.seen.Decisions, t.championship.seen.Detector), nil
	case !by.ByBayes() || q.Policy.Promise == nil:
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
	s := t.here.State.SecondHuman
	if s == nil || d.transition.Approvals != nil || len(t.here.HumansOn()) < 2 || s.When == machine.After && len(t.now.Offered().Transitions) < 2 {
		return nil, nil
	}
	rate := planning.Billionths(s.Rate)
	if d.transition.Irreversible && s.IrreversibleRate != nil {
		rate = planning.Billionths(*s.IrreversibleRate)
	}
	hit, err := t.draw(ctx, "second human", rate)
	return &session.Draws{SecondRate: rate, Second: hit}, err
}

// waitsForAudit reports whether a decision of the engine is one that a human sees
// first.
func (t *assessment) waitsForAudit(ctx context.Context, by *planning.Member) (bool, error) {
	draws, err := t.drawAudit(ctx, by)
	return err == nil && draws != nil && draws.Audit && t.here.State.Audit.Mode == machine.Before, err
}

// holdForAudit draws whether a decision of the engine is audited. It reports
// whether the session has to wait for that: then a human decides the round first.
func (w *engine) holdForAudit(ctx context.Context, by *planning.Member, d *decision) (bool, error) {
	var err error
	if d.draws, err = w.drawAudit(ctx, by); err != nil || d.draws == nil {
		return false, err
	}
	if !d.draws.Audit || w.here.State.Audit.Mode != machine.Before {
		return false, nil
	}
	w.emit(&session.AwaitsHuman{Code: session.CodeAudit, Reason: "Drawn for an audit, human input required", Draws: d.draws})
	return true, nil
}
