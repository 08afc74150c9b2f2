package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the sessions of this Runner take from the quotas of their tenants (package tenants):
// room for a session while it lives, and a ticket for each call, from before it is recorded
// until it is settled.

// scope returns where a session's calls are counted.
func (r *Runner) scope(s *session.Session) spend.Scope {
	return r.scopeOf(s.ID, s.Machine(), s.Options().Meta)
}

// Tenant returns whose a session is: what [Config].Tenant says of its machine and metaJson, and "" where all are of
// one. It may be called concurrently.
func (r *Runner) Tenant(s *session.Session) string { return r.scope(s).Tenant }

func (r *Runner) scopeOf(id specialist.SessionID, m *machine.Machine, meta []byte) spend.Scope {
	scope := spend.Scope{Session: id.String()}
	if r.config.Tenant != nil {
		scope.Tenant = r.config.Tenant(m, meta)
	}
	return scope
}

// loadTenant reads what the tenant of a session did before this Runner knew of it, once.
func (r *Runner) loadTenant(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	return r.quota.Load(ctx, r.scope(s).Tenant)
}

// admitted makes room for a session that is about to begin, or to go on.
func (r *Runner) admitted(ctx context.Context, s *session.Session) error {
	if r.quota == nil {
		return nil
	}
	err := r.quota.Admit(ctx, r.scope(s))
	if over, full := errors.AsType[*spend.BudgetError](err); full {
		return refuse(ErrQuota, over.Code, "%s", over.Reason().Message)
	}
	return err
}

// ended gives the room of a session back that has come to its end. Calls that are
// still out keep it until they are settled or their step is over.
func (r *Runner) ended(s *session.Session) {
	if r.quota != nil && !s.Status.Live() {
		r.quota.Leave(r.scope(s))
	}
}

// corrected says what a call has cost that was answered later.
func (r *Runner) corrected(ctx context.Context, s *session.Session, id string, u specialist.Usage) error {
	if r.quota == nil {
		return nil
	}
	return r.quota.Correct(ctx, r.scope(s), tenants.CallID(s.Key(), id), u)
}

// takeMore adds room for a repair to a ticket, and reports whether there is any. A store that fails
// has none.
func (w *engine) takeMore(ctx context.Context, id string, need spend.Book) bool {
	t, limited := w.tickets[id]
	if !limited {
		return true
	}
	more, err := w.r.quota.Reserve(ctx, w.r.scope(&w.now), session.QuotaCall{Need: need})
	if err != nil {
		return false
	}
	t.Add(more[0])
	w.hold(id, t)
	return true
}

// keep takes the ticket of a call that is asked for again. It is on its way, so
// nobody refuses it.
func (w *engine) keep(ctx context.Context, id string, need spend.Book) error {
	if w.r.quota == nil {
		return nil
	}
	t, ok, err := w.r.quota.Find(ctx, w.r.scope(&w.now), w.callID(id))
	if err != nil {
		return err
	}
	if ok {
		w.tickets[id].ReleaseRepairs()
		w.hold(id, t)
		return nil
	}
	_, err = w.take(ctx, id, need)
	return err
}

// callID names a call of somebody in the round.
func (w *engine) callID(id string) string { return tenants.CallID(w.now.Key(), id) }

func (w *engine) hold(id string, t tenants.Ticket) {
	if w.tickets == nil {
		w.tickets = map[string]tenants.Ticket{}
	}
	w.tickets[id] = t
}

// paid says what a call of somebody has cost. Without a ticket it was thought to be
// free.
func (w *engine) paid(id string, u specialist.Usage) {
	if t := w.tickets[id]; t.Holds() {
		t.Settle(u)
	} else if w.r.quota != nil {
		w.r.quota.Charge(w.r.scope(&w.now), u)
	}
}

// takeAll takes the tickets of those who are asked together, of all or of none: then take says who is refused.
func (w *engine) takeAll(ctx context.Context, ask []*planning.Member) error {
	if w.r.quota == nil || len(ask) < 2 {
		return nil
	}
	var ids []string
	var wave []session.QuotaCall
	for _, m := range ask {
		need := w.need(m).first
		if need == (spend.Book{}) || w.repeats(m) != nil {
			continue
		}
		w.drop(m.SpecialistID)
		ids, wave = append(ids, m.SpecialistID), append(wave, session.QuotaCall{Name: w.callID(m.SpecialistID), Need: need})
	}
	if len(wave) < 2 {
		return nil
	}
	tickets, err := w.r.quota.Reserve(ctx, w.r.scope(&w.now), wave...)
	if _, over := errors.AsType[*spend.BudgetError](err); over {
		return nil
	}
	w.taken = map[string]bool{}
	for i, t := range tickets {
		w.hold(ids[i], t)
		w.taken[ids[i]] = true
	}
	return err
}

// take takes a ticket for a call of somebody, or says why there is none. What is
// free needs none. A ticket that they have, such as from before a lost race, goes back
// first.
func (w *engine) take(ctx context.Context, id string, need spend.Book) (*spend.BudgetError, error) {
	if w.r.quota == nil || need == (spend.Book{}) {
		return nil, nil
	}
	if w.taken[id] {
		delete(w.taken, id)
		return nil, nil
	}
	w.drop(id)
	tickets, err := w.r.quota.Reserve(ctx, w.r.scope(&w.now), session.QuotaCall{Name: w.callID(id), Need: need})
	if over, ok := errors.AsType[*spend.BudgetError](err); ok {
		return over, nil
	}
	if err == nil {
		w.hold(id, tickets[0])
	}
	return nil, err
}

// dropUntaken returns the tickets of takeAll of those who were refused for another reason.
func (w *engine) dropUntaken() {
	for id := range w.taken {
		w.drop(id)
	}
	w.taken = nil
}

// drop returns the ticket of somebody, if there is one.
func (w *engine) drop(id string) {
	if t, ok := w.tickets[id]; ok {
		t.Release()
		delete(w.tickets, id)
	}
}

// giveBack returns the tickets of calls that were never made.
func (w *engine) giveBack() {
	for id := range w.tickets {
		w.drop(id)
	}
	if w.tickets != nil {
		w.tickets = nil
		w.r.ended(w.s) // nothing keeps it any more
	}
}
