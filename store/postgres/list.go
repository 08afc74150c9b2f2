package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// How sessions are listed: in the order of their numbers, which is that of creation, or of a moment and then
// of their numbers, from where the cursor says. What changes with every commit is in no index, and is looked at row by row.

// A listing is a query in the making.
type listing struct {
	where []string
	args  []any
}

// arg adds an argument and returns its name.
func (l *listing) arg(value any) string {
	l.args = append(l.args, value)
	return "$" + strconv.Itoa(len(l.args))
}

// and adds a condition, in which each ? is the next of the arguments.
func (l *listing) and(condition string, args ...any) {
	for _, a := range args {
		condition = strings.Replace(condition, "?", l.arg(a), 1)
	}
	l.where = append(l.where, condition)
}

// List implements [session.SessionStore].
func (s *Store) List(ctx context.Context, q session.ListQuery) ([]session.Summary, error) {
	l, err := s.listing(ctx, &q)
	if err != nil {
		return nil, err
	}
	text := `SELECT s.session_id, m.machine_name, d.machine_digest, s.status, s.current_state, s.round, s.sequence, s.created_at, s.updated_at,
		s.code, s.reason, s.reviews, s.subject, s.due_at, s.cost_pico_usd, s.driver, s.since
		FROM sessions s JOIN machines m ON m.id=s.machine JOIN definitions d ON d.id=s.definition`
	if len(l.where) > 0 {
		text += " WHERE " + strings.Join(l.where, " AND ")
	}
	direction := map[bool]string{true: " DESC"}[q.Desc]
	if column := projection.Ordering(q.Order); column != "" {
		text += " ORDER BY s." + column + direction + ", s.id" + direction
	} else {
		text += " ORDER BY s.id" + direction
	}
	if q.Limit > 0 {
		text += " LIMIT " + l.arg(q.Limit)
	}
	return query(ctx, s, summary, text, l.args...)
}

func summary(row pgx.CollectableRow) (sum session.Summary, err error) {
	var status int16
	var reason, subject []byte
	var cost int64
	err = row.Scan((*[16]byte)(&sum.SessionID), &sum.MachineName, &sum.MachineDigest, &status, &sum.CurrentState, &sum.Round, &sum.Sequence, (*int64)(&sum.CreatedAt), (*int64)(&sum.UpdatedAt),
		&sum.Code, &reason, &sum.Reviews, &subject, (*int64)(&sum.DueAt), &cost, (*string)(&sum.Driver), (*int64)(&sum.Since))
	sum.Reason, sum.Subject, sum.CostUSD, sum.Status = string(reason), string(subject), exact.Money(cost), session.Status(status)
	return sum, err
}

// Live implements [session.SessionStore].
func (s *Store) Live(ctx context.Context) ([]session.LiveCount, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (c session.LiveCount, err error) {
		var status int16
		err = row.Scan(&c.MachineName, &status, &c.Sessions, (*int64)(&c.Oldest))
		c.Status = session.Status(status)
		return c, err
	}, `SELECT m.machine_name, s.status, count(*), min(s.updated_at) FROM sessions s JOIN machines m ON m.id=s.machine
		WHERE s.status<2 GROUP BY m.machine_name, s.status`)
}

// listing makes the conditions of a query.
func (s *Store) listing(ctx context.Context, q *session.ListQuery) (l listing, err error) {
	after, at, err := q.Begin()
	if err != nil {
		return l, err
	}
	if after != (specialist.SessionID{}) {
		row, err := s.rowAt(ctx, after)
		if err != nil {
			return l, err
		}
		behind := map[bool]string{false: ">", true: "<"}[q.Desc]
		if column := projection.Ordering(q.Order); column != "" {
			l.and("(s."+column+", s.id)"+behind+"(?::bigint, ?::bigint)", int64(at), row)
		} else {
			l.and("s.id"+behind+"?", row)
		}
	}
	l.statuses(q)
	l.what(q)
	l.when(q)
	return l, nil
}

// statuses leaves only those with one of the statuses of a query.
func (l *listing) statuses(q *session.ListQuery) {
	if len(q.Statuses) == 0 {
		return
	}
	list, live := make([]int16, len(q.Statuses)), true
	for i, status := range q.Statuses {
		list[i], live = int16(status), live && status.Live()
	}
	l.and("s.status=ANY(?)", list)
	if live {
		l.and("s.status<2") // so an index that holds no others is seen to fit
	}
}

// what leaves only those that are what a query says.
func (l *listing) what(q *session.ListQuery) {
	if q.ID != "" {
		from, to, ok := between(q.ID)
		if l.and("s.session_id BETWEEN ? AND ?", from, to); !ok {
			l.and("false")
		}
	}
	if q.MachineName != "" {
		l.and("s.machine=(SELECT id FROM machines WHERE machine_name=?)", q.MachineName)
	}
	if q.State != "" {
		l.and("s.current_state=?", q.State)
	}
	if q.Code != "" {
		l.and("s.code=?", q.Code)
	}
	if q.Subject != "" {
		l.and("substring(s.subject FROM 1 FOR ?::int)=?", len(q.Subject), []byte(q.Subject))
	}
	if q.StartedBy != "" {
		l.and("s.started_by=?", []byte(q.StartedBy))
	}
	if q.Reviews {
		l.and("s.reviews>0")
	}
	if q.Places != nil {
		states, digests := make([]string, len(q.Places)), make([]string, len(q.Places))
		for i, p := range q.Places {
			states[i], digests[i] = p.State, p.MachineDigest
		}
		l.and("(s.current_state, d.machine_digest) IN (SELECT * FROM unnest(?::text[], ?::text[]))", states, digests)
	}
}

// when leaves only those to which something has happened, or is to happen, when a query says.
func (l *listing) when(q *session.ListQuery) {
	if q.CreatedAfter != 0 {
		l.and("s.created_at>?", int64(q.CreatedAfter))
	}
	if q.UpdatedAfter != 0 {
		l.and("s.updated_at>?", int64(q.UpdatedAfter))
		if len(q.Statuses) > 0 && !anyLive(q.Statuses) {
			l.and("s.ended_at>?", int64(q.UpdatedAfter)) // which is in an index
		}
	}
	if q.Overdue != 0 {
		l.and("s.due_at>0 AND s.due_at<=?", int64(q.Overdue))
	}
	if q.Timely != 0 {
		l.and("NOT (s.due_at>0 AND s.due_at<=?)", int64(q.Timely))
	}
	if q.Order == session.BySince {
		l.and("s.status=1") // as its index has it
	}
	if q.Order == session.ByDue {
		l.and("s.due_at>0")
	}
	if q.WaitingAfter != 0 {
		l.and("s.status=1 AND s.since>?", int64(q.WaitingAfter))
	}
	if q.Wake != 0 {
		l.and("s.timer_at>0 AND s.timer_at<=?", int64(q.Wake))
	}
	if q.Awake != 0 {
		l.and("NOT (s.status=? AND s.code=? AND s.timer_at>?)", int16(session.Running), session.CodeTimer, int64(q.Awake))
	}
}

func anyLive(list []session.Status) bool {
	for _, status := range list {
		if status.Live() {
			return true
		}
	}
	return false
}

// between returns the first and the last id that begin like a text, and whether any can.
func between(prefix string) (from, to [16]byte, ok bool) {
	const first, last = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if len(prefix) > len(first) || prefix != strings.ToLower(prefix) {
		return from, to, false
	}
	least, err := session.ParseID(prefix + first[len(prefix):])
	if err != nil {
		return from, to, false
	}
	most, err := session.ParseID(prefix + last[len(prefix):])
	return least, most, err == nil
}
