package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// Which sessions of a tenant have room, and what its sessions did before they were counted. The past is read
// from the logs once in the life of the store, and of the windows that were not counted; where all sessions
// that it could be in are known to be of other tenants, no log is read. A restart reads nothing.

// spans are the windows of a quota, and the sessions of its tenant, which are counted like one.
type spans []spend.Span

func spansOf(q *spend.Quota) spans { return append(q.Spans(), spend.Span{Step: 1}) }

// columns returns the spans as arrays.
func (list spans) columns() (lens, steps, parts []int64) {
	for _, w := range list {
		lens, steps, parts = append(lens, w.Msec), append(steps, w.Step), append(parts, w.Parts)
	}
	return lens, steps, parts
}

// OpenQuota implements [session.QuotaStore].
func (s *Store) OpenQuota(ctx context.Context, scope spend.Scope, q *spend.Quota) error {
	if q == nil {
		return nil
	}
	var refused error
	err := s.turnOf(ctx, scope, q, func(t *tenantTurn) (err error) {
		refused, err = t.open()
		return err
	})
	if err == nil {
		err = refused
	}
	return err
}

// open makes room for the session of the turn, unless it has it.
func (t *tenantTurn) open() (refused, err error) {
	if t.quota.MaxSessions != nil {
		n, err := t.others()
		if err == nil && t.quota.RefusesSession(t.tenant, n) != nil {
			if err = t.clear(); err == nil {
				n, err = t.others()
			}
		}
		if err != nil {
			return nil, err
		}
		if over := t.quota.RefusesSession(t.tenant, n); over != nil {
			var open bool
			err := t.tx.QueryRow(t.ctx, `SELECT EXISTS (SELECT FROM quota_sessions WHERE session_id=$1 AND open)`, [16]byte(t.session)).Scan(&open)
			if err != nil || !open {
				return over, err
			}
			return nil, nil
		}
	}
	_, err = t.tx.Exec(t.ctx, `INSERT INTO quota_sessions AS q (session_id, tenant, open, owner, at) VALUES ($1, $2, true, $3, statement_timestamp())
		ON CONFLICT (session_id) DO UPDATE SET tenant=excluded.tenant, open=true, owner=excluded.owner, at=excluded.at`, [16]byte(t.session), []byte(t.tenant), t.owner)
	return nil, err
}

// others returns how many other sessions of the tenant have room.
func (t *tenantTurn) others() (n int64, err error) {
	err = t.tx.QueryRow(t.ctx, `SELECT count(*) FROM quota_sessions WHERE tenant=$1 AND open AND session_id<>$2`, []byte(t.tenant), [16]byte(t.session)).Scan(&n)
	return n, err
}

// clear takes the room of sessions that nobody has given back: of those that have ended, and of those
// that were never begun, for who was to begin them has ended. Calls that are out keep it.
func (t *tenantTurn) clear() error {
	if err := t.expire(); err != nil {
		return err
	}
	_, err := t.tx.Exec(t.ctx, `UPDATE quota_sessions q SET open=false WHERE q.tenant=$1 AND q.open AND q.session_id<>$2
		AND NOT EXISTS (SELECT FROM quota_holds h WHERE h.session=q.session_id AND NOT h.charged)
		AND CASE WHEN EXISTS (SELECT FROM sessions s WHERE s.session_id=q.session_id)
			THEN EXISTS (SELECT FROM sessions s WHERE s.session_id=q.session_id AND s.status>=2) AND (q.at<statement_timestamp()-$3::interval OR NOT EXISTS (SELECT FROM owners o WHERE o.name=q.owner AND o.until>statement_timestamp()))
			ELSE NOT EXISTS (SELECT FROM owners o WHERE o.name=q.owner AND o.until>statement_timestamp()) END`,
		[]byte(t.tenant), [16]byte(t.session), t.d.options.hurried(cleared))
	if err == nil {
		_, err = t.tx.Exec(t.ctx, `DELETE FROM quota_holds h WHERE h.tenant=$1 AND h.charged AND EXISTS (SELECT FROM quota_sessions q WHERE q.session_id=h.session AND NOT q.open)`, []byte(t.tenant))
	}
	return err
}

// CloseQuota implements [session.QuotaStore].
func (s *Store) CloseQuota(ctx context.Context, scope spend.Scope) error {
	id := parseSession(scope)
	open, err := one[bool](ctx, s, `SELECT EXISTS (SELECT FROM quota_sessions WHERE session_id=$1 AND open)`, [16]byte(id))
	if err != nil || !open {
		return err
	}
	busy := false
	err = s.turnOf(ctx, scope, nil, func(t *tenantTurn) error {
		if err := t.expire(); err != nil {
			return err
		}
		if err := t.tx.QueryRow(t.ctx, `SELECT EXISTS (SELECT FROM quota_holds WHERE session=$1 AND NOT charged)`, [16]byte(id)).Scan(&busy); err != nil || busy {
			return err
		}
		var b pgx.Batch
		b.Queue(`UPDATE quota_sessions SET open=false WHERE session_id=$1`, [16]byte(id))
		b.Queue(`DELETE FROM quota_holds WHERE session=$1`, [16]byte(id))
		return t.tx.SendBatch(t.ctx, &b).Close()
	})
	if err == nil && busy {
		err = fmt.Errorf("%w: %s", spend.ErrOpenCalls, scope)
	}
	return err
}

// RecallQuota implements [session.QuotaStore].
func (s *Store) RecallQuota(ctx context.Context, tenant string, q *spend.Quota, past func(context.Context) (spend.Past, error)) error {
	if q == nil {
		return nil
	}
	if _, err := s.holder(ctx); err != nil { // from now on nobody rebuilds the store
		return err
	}
	spans := spansOf(q)
	lens, steps, _ := spans.columns()
	known, err := one[bool](ctx, s, `SELECT NOT EXISTS (SELECT FROM unnest($2::bigint[], $3::bigint[]) w (len, step)
		WHERE NOT EXISTS (SELECT FROM quota_windows k WHERE k.tenant=$1 AND k.len=w.len AND k.step=w.step))`, []byte(tenant), lens, steps)
	if err != nil || known {
		return err
	}
	none, err := one[bool](ctx, s, `SELECT NOT EXISTS (SELECT FROM quota_sessions WHERE tenant=$1)
		AND NOT EXISTS (SELECT FROM sessions s WHERE s.status<2 AND NOT EXISTS (SELECT FROM quota_sessions q WHERE q.session_id=s.session_id))
		AND NOT EXISTS (SELECT FROM sessions s WHERE s.ended_at>=`+nowMsec+`-$2::bigint AND NOT EXISTS (SELECT FROM quota_sessions q WHERE q.session_id=s.session_id))`, []byte(tenant), q.Longest())
	if err != nil {
		return err
	}
	var p spend.Past
	if !none {
		if p, err = past(ctx); err != nil {
			return err
		}
	}
	return s.turnOf(ctx, spend.Scope{Tenant: tenant}, nil, func(t *tenantTurn) error { return t.recall(spans, &p) })
}

// recall counts the past in the windows that are not counted yet, unless somebody else has meanwhile.
func (t *tenantTurn) recall(list spans, p *spend.Past) error {
	var now int64
	if err := t.tx.QueryRow(t.ctx, `SELECT `+nowMsec).Scan(&now); err != nil {
		return err
	}
	var missing spans
	for _, w := range list {
		added, err := t.tx.Exec(t.ctx, `INSERT INTO quota_windows (tenant, len, step, parts) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, []byte(t.tenant), w.Msec, w.Step, w.Parts)
		if err != nil {
			return err
		}
		if added.RowsAffected() > 0 {
			missing = append(missing, w)
		}
	}
	spent := append([]spend.Spending(nil), p.Spent...)
	var b pgx.Batch
	for _, c := range p.Calls { // who made them may be gone, so they are charged as expected
		var id specialist.SessionID
		if !c.Started || id.UnmarshalText([]byte(c.Scope.Session)) != nil {
			continue
		}
		var held bool
		if err := t.tx.QueryRow(t.ctx, `SELECT EXISTS (SELECT FROM quota_holds WHERE session=$1 AND call=$2 AND NOT charged)`, [16]byte(id), []byte(c.ID)).Scan(&held); err != nil {
			return err
		}
		if held {
			continue
		}
		spent = append(spent, spend.Spending{At: specialist.Time(now), Book: c.Entry})
		h := newHold(c.ID, c.Entry)
		b.Queue(`INSERT INTO quota_holds (id, tenant, session, call, owner, charged, calls, tokens_in, tokens_out, pico) SELECT $1, $2, $3, $4, '', true, $5, $6, $7, $8
			WHERE NOT EXISTS (SELECT FROM quota_holds WHERE session=$3 AND call=$4)`, h.id, []byte(t.tenant), [16]byte(id), []byte(c.ID), h.need.Calls, h.need.TokensIn, h.need.TokensOut, int64(h.need.Money))
	}
	if len(missing) > 0 { // who checks the store sums up what they have spent
		b.Queue(`INSERT INTO quota_sessions (session_id, tenant, open, owner, at) SELECT x::uuid, $2, false, '', statement_timestamp() FROM unnest($1::text[]) x ON CONFLICT DO NOTHING`, p.Ended, []byte(t.tenant))
	}
	for _, w := range missing {
		if w.Msec == 0 {
			for _, name := range p.Sessions {
				b.Queue(`INSERT INTO quota_sessions (session_id, tenant, open, owner, at) VALUES ($1::text::uuid, $2, true, '', statement_timestamp()) ON CONFLICT DO NOTHING`, name, []byte(t.tenant))
			}
			continue
		}
		b.Queue(`DELETE FROM quota WHERE tenant=$1 AND len=$2 AND step=$3`, []byte(t.tenant), w.Msec, w.Step)
		for slot, used := range slotsOf(w, spent, now) {
			b.Queue(`INSERT INTO quota (tenant, len, step, slot, calls, tokens, pico) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				[]byte(t.tenant), w.Msec, w.Step, slot, used.Calls, exact.AddSat(used.TokensIn, used.TokensOut), int64(used.Money))
		}
	}
	return t.tx.SendBatch(t.ctx, &b).Close()
}

// slotsOf returns what was spent in the slots of a window, as of now.
func slotsOf(w spend.Span, spent []spend.Spending, now int64) slots {
	of := slots{}
	for _, s := range spent {
		of.add(w, s, now)
	}
	return of
}

// slots are what was spent in the slots of a window, by their numbers.
type slots map[int64]spend.Book

// add adds what was spent, unless it has left the window by now.
func (of slots) add(w spend.Span, s spend.Spending, now int64) {
	slot := min(max(int64(s.At), 0), now) / w.Step
	if used := s.Book.Above(spend.Book{}); slot > now/w.Step-w.Parts && used != (spend.Book{}) {
		of[slot] = of[slot].Plus(used)
	}
}

// quotaTables have what a rebuild forgets: the next process that meets a tenant reads it from the logs.
var quotaTables = []string{"quota", "quota_holds", "quota_windows", "quota_sessions"}
