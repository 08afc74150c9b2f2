package postgres

import (
	"context"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// What quotas have counted is held to what the logs say of the same windows, and both are told where they
// differ. Neither is wrong for that: they are taken at other moments, by other clocks, and what nobody
// has said is counted as expected. What cannot be, such as a count below zero, is a difference.

// quotaAudit is what the logs of sessions under quotas say.
type quotaAudit struct {
	now     int64                           // by the clock of the database, in ms
	windows map[string]spans                // of each tenant, the longest one last
	slots   map[string]map[spend.Span]slots // of each tenant and window
}

// readQuotas reads which windows are to be summed up.
func (a *audit) readQuotas(ctx context.Context) error {
	q := &a.quotas
	q.windows, q.slots = map[string]spans{}, map[string]map[spend.Span]slots{}
	if err := a.tx.QueryRow(ctx, `SELECT `+nowMsec).Scan(&q.now); err != nil {
		return err
	}
	var tenant []byte
	var w spend.Span
	return a.each(ctx, `SELECT tenant, len, step, parts FROM quota_windows WHERE len>0 AND step>0 ORDER BY tenant, len, step`, []any{&tenant, &w.Msec, &w.Step, &w.Parts}, func() {
		q.windows[string(tenant)] = append(q.windows[string(tenant)], w)
		if q.slots[string(tenant)] == nil {
			q.slots[string(tenant)] = map[spend.Span]slots{}
		}
		q.slots[string(tenant)][w] = slots{}
	})
}

// account has what a session spends be added up while its log is folded, if it could be in a window.
func (q *quotaAudit) account(row *sessionRow, f *session.Folder) {
	windows := q.windows[string(row.tenant)]
	if row.tenant == nil || len(windows) == 0 {
		return
	}
	longest, of := windows[len(windows)-1], q.slots[string(row.tenant)]
	tenants.Account(f, specialist.Time(max(0, q.now-longest.Msec-longest.Step)), func(s spend.Spending) {
		for _, w := range windows {
			of[w].add(w, s, q.now)
		}
	})
}

// checkQuotas looks for counts that cannot be, and tells which are not what the logs say.
func (a *audit) checkQuotas(ctx context.Context) error {
	var tenant []byte
	var what string
	err := a.each(ctx, `SELECT tenant, 'a negative count in the window of ' || len || ' ms' FROM quota WHERE least(calls, tokens, pico)<0
		UNION ALL SELECT tenant, 'what a call holds is negative' FROM quota_holds WHERE least(calls, tokens_in, tokens_out, pico)<0
		UNION ALL SELECT tenant, 'a count of what is still to come in the window of ' || len || ' ms' FROM quota WHERE slot>`+nowMsec+`/step+1
		UNION ALL SELECT q.tenant, 'a count in a window of ' || q.len || ' ms that is none' FROM quota q WHERE NOT EXISTS (SELECT FROM quota_windows w WHERE w.tenant=q.tenant AND w.len=q.len AND w.step=q.step)
		UNION ALL SELECT tenant, 'a window of ' || len || ' ms is divided otherwise' FROM quota_windows WHERE NOT (len=0 AND step=1 AND parts=0 OR len>0 AND step=len AND parts=1 OR len>0 AND step=greatest((len+59)/60, 1) AND parts=(len+step-1)/step+1)`,
		[]any{&tenant, &what}, func() { a.differs(inRows, "quota", 0, "of tenant %q there is %s", tenant, what) })
	if err != nil {
		return err
	}
	q := &a.quotas
	var w spend.Span
	var counted store.QuotaUse
	var pico int64
	return a.each(ctx, `SELECT w.tenant, w.len, w.step, w.parts, least(coalesce(sum(q.calls), 0), 9223372036854775807)::bigint, least(coalesce(sum(q.tokens), 0), 9223372036854775807)::bigint, least(coalesce(sum(q.pico), 0), 9223372036854775807)::bigint
		FROM quota_windows w LEFT JOIN quota q ON q.tenant=w.tenant AND q.len=w.len AND q.step=w.step AND q.slot>$1::bigint/nullif(w.step, 0)-w.parts
		WHERE w.len>0 AND w.step>0 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3`, []any{&tenant, &w.Msec, &w.Step, &w.Parts, &counted.Calls, &counted.Tokens, &pico}, func() {
		counted.CostUSD = exact.Money(pico)
		if logged := q.logged(string(tenant), w); logged != counted {
			a.report.Quotas = append(a.report.Quotas, store.QuotaCount{Tenant: string(tenant), WindowMsec: w.Msec, Counted: counted, Logged: logged})
		}
	}, q.now)
}

// logged returns what the logs say was spent in a window.
func (q *quotaAudit) logged(tenant string, w spend.Span) (use store.QuotaUse) {
	for _, used := range q.slots[tenant][w] {
		use.Calls = exact.AddSat(use.Calls, used.Calls)
		use.Tokens = exact.AddSat(use.Tokens, exact.AddSat(used.TokensIn, used.TokensOut))
		use.CostUSD = use.CostUSD.Add(used.Money)
	}
	return use
}
