package runner

import (
	"context"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// CommitFailure commits an answer that says what it cost, whatever that is.
func CommitFailure(ctx context.Context, r *Runner, s *session.Session, id string, u specialist.Usage) error {
	w, err := r.begin(ctx, s)
	if err != nil {
		return err
	}
	w.emit(&session.AskFailed{SpecialistID: id, Role: machine.Proposer, Code: session.CodeAskError, Usage: u})
	_, err = w.write(ctx)
	return err
}

// QuotaHeld returns how many calls hold some of a tenant's quota.
func (r *Runner) QuotaHeld(tenant string) (held int) {
	for _, c := range r.quota.Snapshot().Calls {
		if c.Scope.Tenant == tenant {
			held++
		}
	}
	return held
}
