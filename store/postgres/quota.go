package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What tenants use of their quotas is counted here, once for all processes. Each thing that is said of a
// tenant is one transaction under the tenant's lock (quota_turn.go), on a connection of its own:
// it reads what the windows have counted and what is held, has package spend say whether there is room,
// and writes. So what is reserved together is reserved as a whole, or not at all.
//
// A hold belongs to an owner (owner.go). If that is dead, whoever comes next charges what it held, as
// expected: nobody will say what it cost. If somebody does after all, what it cost more is charged.
//
// Holds have ids that are drawn before they are sent, so what is sent again, for its answer was lost,
// counts once. What could not be said is said with what comes next (unsaid); until then more
// is held than need be, never less.

// quotas is what this process knows of quotas.
type quotas struct {
	lane *lane

	turns   sync.Mutex // one after the other; those who wait have what they say said together
	failed  time.Time  // when the database was waited for in vain; guarded by turns
	failure error

	mu     sync.Mutex
	owner  *owner              // of what this process holds; nil if it holds nothing yet
	unsaid map[string][]ending // by tenant
	beside [][16]byte          // rows of calls without a hold that have been said
}

// An ending is what has become of a hold, or of a call that nobody reserved.
type ending struct {
	hold    *quotaHold
	kind    endKind
	used    specialist.Usage
	session specialist.SessionID
}

// An endKind says how a hold ends.
type endKind int

const (
	releaseHold  endKind = iota // nothing was used
	chargeHold                  // as expected, until somebody says more
	settleHold                  // as used says
	chargeBeside                // used, without a hold
)

// A quotaHold is what one call holds.
type quotaHold struct {
	id   [16]byte
	name string
	need spend.Book

	mu             sync.Mutex
	started, ended bool
}

func newHold(name string, need spend.Book) *quotaHold {
	need.Calls, need.Unpriced, need.Estimated = 1, 0, 1 // as a ledger has it
	h := &quotaHold{name: name, need: need}
	rand.Read(h.id[:]) // never fails
	return h
}

// Start implements [session.QuotaHold].
func (h *quotaHold) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = true
}

// end returns how the hold ends; ok is false if it has ended already.
func (h *quotaHold) end(settled bool) (kind endKind, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return 0, false
	}
	switch {
	case settled:
		kind = settleHold
	case h.started:
		kind = chargeHold
	}
	h.ended = kind != chargeHold // which may still be settled
	return kind, true
}

// holder returns the name of the owner of what this process holds.
func (s *Store) holder(ctx context.Context) (string, error) {
	s.quotas.mu.Lock()
	defer s.quotas.mu.Unlock()
	if o := s.quotas.owner; o != nil && o.lives() {
		return o.name, nil
	}
	o, err := s.claim(ctx)
	if err != nil {
		return "", err
	}
	s.quotas.owner = o
	return o.name, nil
}

// leaveQuotas has all that this process holds be charged by whoever comes next.
func (s *Store) leaveQuotas() {
	s.quotas.mu.Lock()
	defer s.quotas.mu.Unlock()
	if o := s.quotas.owner; o != nil {
		_ = o.Release() // or it dies
	}
}

// ReserveQuota implements [session.QuotaStore].
func (s *Store) ReserveQuota(ctx context.Context, scope spend.Scope, q *spend.Quota, wave ...session.QuotaCall) ([]session.QuotaHold, error) {
	holds := make([]session.QuotaHold, len(wave))
	if q == nil {
		return holds, nil
	}
	made := make([]*quotaHold, len(wave))
	for i, c := range wave {
		made[i] = newHold(c.Name, c.Need)
		holds[i] = made[i]
	}
	var refused error
	err := s.turnOf(ctx, scope, q, func(t *tenantTurn) (err error) {
		if refused = nil; t.again {
			if there, err := t.has(made[0].id); there || err != nil {
				return err
			}
		}
		if refused, err = t.room(made); refused == nil && err == nil {
			err = t.insert(made)
		}
		return err
	})
	if errors.Is(err, session.ErrUnknown) {
		for _, h := range made { // it may have happened
			s.later(scope.Tenant, ending{hold: h, session: parseSession(scope)})
		}
	}
	if err = errors.Join(err, refused); err != nil {
		return nil, err
	}
	return holds, nil
}

// FindQuota implements [session.QuotaStore].
func (s *Store) FindQuota(ctx context.Context, scope spend.Scope, call string) (session.QuotaHold, error) {
	if call == "" {
		return nil, nil
	}
	list, err := query(ctx, s, func(row pgx.CollectableRow) (*quotaHold, error) {
		h := &quotaHold{name: call, started: true} // it may have been
		return h, row.Scan(&h.id, &h.need.Calls, &h.need.TokensIn, &h.need.TokensOut, &h.need.Money)
	}, `SELECT id, calls, tokens_in, tokens_out, pico FROM quota_holds WHERE session=$1 AND call=$2 ORDER BY charged LIMIT 1`, parseSession(scope), []byte(call))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// EndQuota implements [session.QuotaStore].
func (s *Store) EndQuota(ctx context.Context, scope spend.Scope, ends ...session.QuotaEnd) {
	var list []ending
	for _, e := range ends {
		h, _ := e.Hold.(*quotaHold)
		if h == nil {
			list = append(list, ending{newHold("", spend.Book{}), chargeBeside, e.Used, parseSession(scope)})
		} else if kind, ok := h.end(e.Settled); ok {
			list = append(list, ending{h, kind, e.Used, parseSession(scope)})
		}
	}
	if len(list) == 0 {
		return
	}
	s.later(scope.Tenant, list...)
	_ = s.turnOf(context.WithoutCancel(ctx), scope, nil, nil) // or it is said later
}

// later has endings be said in the next turn of their tenant.
func (s *Store) later(tenant string, list ...ending) {
	s.quotas.mu.Lock()
	defer s.quotas.mu.Unlock()
	if s.quotas.unsaid == nil {
		s.quotas.unsaid = map[string][]ending{}
	}
	s.quotas.unsaid[tenant] = append(s.quotas.unsaid[tenant], list...)
}

// parseSession returns the id of the session of a scope; zero for what is none.
func parseSession(s spend.Scope) (id specialist.SessionID) {
	_ = id.UnmarshalText([]byte(s.Session)) // of a session always
	return id
}
