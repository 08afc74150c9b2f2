package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The turn of a tenant is one transaction in which nobody else counts anything of it. It begins with what this
// process could not say before.

// lockTenant waits for the turn of a tenant.
const lockTenant = `SELECT pg_advisory_xact_lock($1 # hashtextextended(encode($2::bytea, 'hex'), 0))`

// nowMsec is the time of a statement by the clock of the database, in ms since 1970.
const nowMsec = `floor(extract(epoch FROM statement_timestamp())*1000)::bigint`

// A tenantTurn belongs to one goroutine.
type tenantTurn struct {
	ctx     context.Context
	tx      pgx.Tx
	again   bool // it may have happened already
	d       *database
	tenant  string
	session specialist.SessionID
	owner   string // of what is held; "" if nothing is going to be
	quota   *spend.Quota
}

// turnOf runs do in a turn of the tenant of a scope; it may run it again, if the answer was lost. q is nil
// where nothing is going to be held, and do where only what was not said is to be said.
func (s *Store) turnOf(ctx context.Context, scope spend.Scope, q *spend.Quota, do func(*tenantTurn) error) error {
	t := tenantTurn{d: &s.database, tenant: scope.Tenant, session: parseSession(scope), quota: q}
	waits := time.Now()
	s.quotas.turns.Lock()
	defer s.quotas.turns.Unlock()
	if s.quotas.failed.After(waits) {
		return s.quotas.failure // of who waited for the database meanwhile
	}
	if q != nil {
		var err error
		if t.owner, err = s.holder(ctx); err != nil {
			return s.quotas.fail(err)
		}
	}
	ends, beside := s.quotas.take(scope.Tenant)
	if do == nil && len(ends) == 0 {
		return nil // somebody else has said it
	}
	err := s.quotas.lane.do(ctx, &job{alone: func(ctx context.Context, tx pgx.Tx, again bool) error {
		t.ctx, t.tx, t.again = ctx, tx, again
		if _, err := tx.Exec(ctx, lockTenant, s.database.lock, []byte(t.tenant)); err != nil {
			return err
		}
		if err := t.say(ends, beside); err != nil || do == nil {
			return err
		}
		return do(&t)
	}})
	if err != nil {
		s.later(scope.Tenant, ends...)
		s.quotas.unneeded(beside)
		return s.quotas.fail(err)
	}
	beside = nil
	for i := range ends {
		if ends[i].kind == chargeBeside {
			beside = append(beside, ends[i].hold.id)
		}
	}
	s.quotas.unneeded(beside)
	return nil
}

// fail notes that the database was waited for in vain, and returns the error. q.turns is held.
func (q *quotas) fail(err error) error {
	if errors.As(err, new(*unreachableError)) || errors.Is(err, session.ErrUnknown) {
		q.failed, q.failure = time.Now(), err
	}
	return err
}

// take takes what is to be said of a tenant, and the rows that are not needed any more.
func (q *quotas) take(tenant string) (ends []ending, beside [][16]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ends, beside = q.unsaid[tenant], q.beside
	delete(q.unsaid, tenant)
	q.beside = nil
	return ends, beside
}

// unneeded notes which rows of calls without a hold are to be removed.
func (q *quotas) unneeded(beside [][16]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.beside = append(q.beside, beside...)
}

// say writes how calls have ended. beside are the rows of calls without a hold that were said before: they
// are there only so that nothing that is sent again counts twice.
func (t *tenantTurn) say(ends []ending, beside [][16]byte) error {
	if len(ends)+len(beside) == 0 {
		return nil
	}
	var b pgx.Batch
	var used spend.Book
	count := func(e *ending) func(rows pgx.Rows) error {
		return func(rows pgx.Rows) error {
			for rows.Next() {
				var charged bool
				if err := rows.Scan(&charged); err != nil {
					return err
				}
				switch billed := e.hold.need.Billed(e.used.Clean()); {
				case e.kind == chargeHold:
					used = used.Plus(e.hold.need)
				case e.kind == settleHold && charged:
					used = used.Plus(billed.Above(e.hold.need))
				case e.kind == settleHold || e.kind == chargeBeside:
					used = used.Plus(billed)
				}
			}
			return rows.Err()
		}
	}
	for i := range ends {
		e := &ends[i]
		switch e.kind {
		case chargeHold:
			b.Queue(`UPDATE quota_holds SET charged=true WHERE id=$1 AND NOT charged RETURNING true`, e.hold.id).Query(count(e))
		case chargeBeside:
			b.Queue(`INSERT INTO quota_holds (id, tenant, session, call, owner, charged, calls, tokens_in, tokens_out, pico) VALUES ($1, $2, $3, '', '', true, 0, 0, 0, 0) ON CONFLICT DO NOTHING RETURNING true`,
				e.hold.id, []byte(t.tenant), [16]byte(e.session)).Query(count(e))
		default:
			b.Queue(`DELETE FROM quota_holds WHERE id=$1 RETURNING charged`, e.hold.id).Query(count(e))
		}
	}
	for _, id := range beside {
		b.Queue(`DELETE FROM quota_holds WHERE id=$1`, id)
	}
	if err := t.tx.SendBatch(t.ctx, &b).Close(); err != nil {
		return err
	}
	return t.add(used)
}

// add counts what was used now, in all windows of the tenant, and forgets the slots that have left them.
func (t *tenantTurn) add(used spend.Book) error {
	if used.Calls == 0 && used.TokensIn == 0 && used.TokensOut == 0 && used.Money == 0 {
		return nil
	}
	var b pgx.Batch
	b.Queue(`DELETE FROM quota q USING quota_windows w WHERE q.tenant=$1 AND w.tenant=$1 AND q.len=w.len AND q.step=w.step AND q.slot<=`+nowMsec+`/w.step-w.parts`, []byte(t.tenant))
	b.Queue(`INSERT INTO quota AS q (tenant, len, step, slot, calls, tokens, pico)
		SELECT tenant, len, step, `+nowMsec+`/step, $2::bigint, $3::bigint, $4::bigint FROM quota_windows WHERE tenant=$1 AND len>0 ORDER BY len, step
		ON CONFLICT (tenant, len, step, slot) DO UPDATE SET calls=least(q.calls::numeric+excluded.calls, 9223372036854775807)::bigint,
			tokens=least(q.tokens::numeric+excluded.tokens, 9223372036854775807)::bigint, pico=least(q.pico::numeric+excluded.pico, 9223372036854775807)::bigint`,
		[]byte(t.tenant), used.Calls, exact.AddSat(used.TokensIn, used.TokensOut), int64(used.Money))
	return t.tx.SendBatch(t.ctx, &b).Close()
}

// has reports whether there is a hold.
func (t *tenantTurn) has(id [16]byte) (there bool, err error) {
	err = t.tx.QueryRow(t.ctx, `SELECT EXISTS (SELECT FROM quota_holds WHERE id=$1)`, id).Scan(&there)
	return there, err
}

// room says why there is no room for calls, or nil.
func (t *tenantTurn) room(wave []*quotaHold) (refused, err error) {
	u, err := t.read()
	if err == nil && u.dead > 0 {
		if err = t.expire(); err == nil {
			u, err = t.read()
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !u.known:
		return session.ErrQuotaUnknown, nil
	case !u.open:
		if refused, err := t.open(); refused != nil || err != nil {
			return refused, err
		}
	}
	for _, h := range wave {
		if over := t.quota.Refuses(t.tenant, u.used, u.held, h.need); over != nil {
			return over, nil
		}
		u.held = u.held.Plus(h.need)
	}
	return nil, nil
}

// A use is what a tenant uses.
type use struct {
	known bool         // all windows are counted
	used  []spend.Book // of each window
	held  spend.Book
	dead  int64 // how many hold something of those who have ended
	open  bool  // the session has room
}

// read reads what the tenant uses.
func (t *tenantTurn) read() (u use, err error) {
	var b pgx.Batch
	spans := spansOf(t.quota)
	lens, steps, parts := spans.columns()
	u.known = true
	b.Queue(`SELECT k.tenant IS NOT NULL, u.calls, u.tokens, u.pico
		FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (len, step, parts, nth)
		LEFT JOIN quota_windows k ON k.tenant=$1 AND k.len=w.len AND k.step=w.step
		CROSS JOIN LATERAL (SELECT least(coalesce(sum(calls), 0), 9223372036854775807)::bigint AS calls, least(coalesce(sum(tokens), 0), 9223372036854775807)::bigint AS tokens,
			least(coalesce(sum(pico), 0), 9223372036854775807)::bigint AS pico
			FROM quota q WHERE q.tenant=$1 AND q.len=w.len AND q.step=w.step AND q.slot>`+nowMsec+`/w.step-w.parts) u ORDER BY w.nth`,
		[]byte(t.tenant), lens, steps, parts).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var known bool
			var calls, tokens, pico int64
			if err := rows.Scan(&known, &calls, &tokens, &pico); err != nil {
				return err
			}
			u.known = u.known && known
			u.used = append(u.used, spend.Book{Calls: calls, TokensIn: tokens, Money: exact.Money(pico)})
		}
		return rows.Err()
	})
	b.Queue(`SELECT least(coalesce(sum(calls), 0), 9223372036854775807)::bigint, least(coalesce(sum(tokens_in::numeric+tokens_out), 0), 9223372036854775807)::bigint,
		least(coalesce(sum(pico), 0), 9223372036854775807)::bigint, count(*) FILTER (WHERE o.name IS NULL)
		FROM quota_holds h LEFT JOIN owners o ON o.name=h.owner AND o.until>statement_timestamp() WHERE h.tenant=$1 AND NOT h.charged`, []byte(t.tenant)).QueryRow(func(row pgx.Row) error {
		var pico int64
		err := row.Scan(&u.held.Calls, &u.held.TokensIn, &pico, &u.dead)
		u.held.Money = exact.Money(pico)
		return err
	})
	b.Queue(`SELECT EXISTS (SELECT FROM quota_sessions WHERE session_id=$1 AND open)`, [16]byte(t.session)).QueryRow(func(row pgx.Row) error { return row.Scan(&u.open) })
	return u, t.tx.SendBatch(t.ctx, &b).Close()
}

// expire charges what those hold who have ended, as expected.
func (t *tenantTurn) expire() error {
	var calls, in, out, pico int64
	err := t.tx.QueryRow(t.ctx, `WITH x AS (UPDATE quota_holds h SET charged=true WHERE h.tenant=$1 AND NOT h.charged
			AND NOT EXISTS (SELECT FROM owners o WHERE o.name=h.owner AND o.until>statement_timestamp()) RETURNING calls, tokens_in, tokens_out, pico)
		SELECT least(coalesce(sum(calls), 0), 9223372036854775807)::bigint, least(coalesce(sum(tokens_in), 0), 9223372036854775807)::bigint,
			least(coalesce(sum(tokens_out), 0), 9223372036854775807)::bigint, least(coalesce(sum(pico), 0), 9223372036854775807)::bigint FROM x`, []byte(t.tenant)).Scan(&calls, &in, &out, &pico)
	if err != nil {
		return err
	}
	return t.add(spend.Book{Calls: calls, TokensIn: in, TokensOut: out, Money: exact.Money(pico)})
}

// insert holds what calls need.
func (t *tenantTurn) insert(wave []*quotaHold) error {
	var b pgx.Batch
	for _, h := range wave {
		b.Queue(`INSERT INTO quota_holds (id, tenant, session, call, owner, charged, calls, tokens_in, tokens_out, pico) VALUES ($1, $2, $3, $4, $5, false, $6, $7, $8, $9)`,
			h.id, []byte(t.tenant), [16]byte(t.session), []byte(h.name), t.owner, h.need.Calls, h.need.TokensIn, h.need.TokensOut, int64(h.need.Money))
	}
	return t.tx.SendBatch(t.ctx, &b).Close()
}

// cleared is how long a session that has ended may have room before others take it: so long may it take
// until one that goes on is committed.
const cleared = time.Minute
