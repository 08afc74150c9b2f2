package store

import (
	"context"
	"slices"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// How SQLite lists sessions. Each status a query allows is a query of its own, and SQLite
// merges them by the row's number, which is the order of creation: the index of a status
// (with the machine, the starter or the state before it) is in that order, so a page is read from where
// the cursor says, and no further. Where a subject, an id or a time is what narrows most,
// the matches are sorted instead. Those that wait for a human are listed in the order of
// another index, by since when they wait; of a few states, each is a query of its own.
//
// The numbers of the rows are found first, by indexes alone where they suffice, and only
// the rows of the page are read.

// A listing is a query in the making.
type listing struct {
	where []string
	args  []any
}

func (l *listing) and(condition string, args ...any) {
	l.where, l.args = append(l.where, condition), append(l.args, args...)
}

// List implements [session.SessionStore].
func (s *SQLite) List(ctx context.Context, q session.ListQuery) ([]session.Summary, error) {
	l, err := s.listing(ctx, &q)
	if err != nil {
		return nil, err
	}
	query, args := l.query(&q)
	list := []session.Summary{}
	var sum session.Summary
	var sessionID, status string
	for err := range scan(s.read.QueryContext(ctx, query, args...)).
		into(&sessionID, &sum.MachineName, &sum.MachineDigest, &status, &sum.CurrentState, &sum.Round,
			&sum.Sequence, &sum.CreatedAt, &sum.UpdatedAt, &sum.Code, &sum.Reason, &sum.Reviews, &sum.Subject, &sum.DueAt, &sum.CostUSD, &sum.Driver, &sum.Since) {
		if err != nil {
			return nil, err
		}
		if sum.SessionID, err = session.ParseID(sessionID); err != nil {
			return nil, &session.CorruptError{What: "the list of sessions", Problem: "a row has no id of a session"}
		}
		if err := sum.Status.UnmarshalText([]byte(status)); err != nil {
			return nil, &session.CorruptError{What: "the row of session " + sessionID, Problem: err.Error()}
		}
		list = append(list, sum)
	}
	return list, nil
}

// Live implements [session.SessionStore].
func (s *SQLite) Live(ctx context.Context) (list []session.LiveCount, err error) {
	var c session.LiveCount
	var status string
	for err := range scan(s.read.QueryContext(ctx, `SELECT (SELECT machine_name FROM machines WHERE id=machine), status, count(*), min(updated_at)
		FROM sessions INDEXED BY sessions_status WHERE status IN (?,?) GROUP BY machine, status`, session.Running.String(), session.NeedsHuman.String())).
		into(&c.MachineName, &status, &c.Sessions, &c.Oldest) {
		if err != nil {
			return nil, err
		}
		if err := c.Status.UnmarshalText([]byte(status)); err != nil {
			return nil, &session.CorruptError{What: "the rows of sessions", Problem: err.Error()}
		}
		list = append(list, c)
	}
	return list, nil
}

// listing makes of a query what each of its statuses has in common.
func (s *SQLite) listing(ctx context.Context, q *session.ListQuery) (l listing, err error) {
	after, at, err := q.Begin()
	if err != nil {
		return l, err
	}
	if after != (specialist.SessionID{}) {
		row, err := s.rowAt(ctx, after)
		if err != nil {
			return l, err
		}
		if column := projection.Ordering(q.Order); column != "" {
			l.and("(s."+column+", s.id)"+when(q.Desc, "<", ">")+"(?,?)", at, row)
		} else {
			l.and(when(q.Desc, "s.id<?", "s.id>?"), row)
		}
	}
	if q.ID != "" {
		l.and("s.session_id>=? AND s.session_id<?", q.ID, behind(q.ID))
	}
	if q.MachineName != "" {
		l.and("s.machine=(SELECT id FROM machines WHERE machine_name=?)", q.MachineName)
	}
	if q.State != "" {
		l.and("s.current_state=?", q.State)
	}
	if q.Code != "" {
		l.and("s.code=? AND s.code<>''", q.Code)
	}
	if q.Subject != "" {
		l.and("s.subject>=? AND s.subject<? AND s.subject<>''", q.Subject, behind(q.Subject))
	}
	if q.StartedBy != "" {
		l.and("s.started_by=? AND s.started_by<>''", q.StartedBy)
	}
	if q.CreatedAfter != 0 {
		l.and("s.created_at>?", q.CreatedAfter)
	}
	if q.UpdatedAfter != 0 {
		l.and("s.updated_at>?", q.UpdatedAfter)
	}
	if q.Reviews {
		l.and("s.reviews>0")
	}
	if q.Overdue != 0 {
		l.and("s.due_at>0 AND s.due_at<=?", q.Overdue)
	}
	if q.Timely != 0 {
		l.and("NOT (s.due_at>0 AND s.due_at<=?)", q.Timely)
	}
	if q.Order == session.BySince && len(q.Statuses) > 0 && !slices.Contains(q.Statuses, session.NeedsHuman) {
		l.and("s.id<0")
	}
	if q.Order == session.ByDue {
		l.and("s.due_at>0")
	}
	if q.WaitingAfter != 0 {
		l.and("s.since>?", q.WaitingAfter)
	}
	if q.Wake != 0 {
		l.and("s.timer_at>0 AND s.timer_at<=?", q.Wake)
	}
	if q.Places != nil && !eachPlace(q) {
		values := make([]string, len(q.Places))
		for i, p := range q.Places {
			values[i] = "(?,?)"
			l.args = append(l.args, p.State, p.MachineDigest)
		}
		l.and("(s.current_state, s.machine_digest) IN (" + when(len(values) > 0, "VALUES "+strings.Join(values, ","), "SELECT '', '' WHERE 0") + ")")
	}
	return l, nil
}

// behind returns the first text, by its bytes, behind all those that begin like this one.
func behind(prefix string) string {
	return prefix[:len(prefix)-1] + string([]byte{prefix[len(prefix)-1] + 1}) // no byte of a text is 255
}

func when(is bool, then, otherwise string) string {
	if is {
		return then
	}
	return otherwise
}

// mostPlaces is of how many places the sessions that wait are merged: of more they are sorted.
const mostPlaces = 64

// eachPlace reports whether the sessions that wait in each of its places are a query of its own.
func eachPlace(q *session.ListQuery) bool {
	return q.Order == session.BySince && len(q.Places) > 0 && len(q.Places) <= mostPlaces
}

// branches returns the queries of which a list is made, and their arguments.
func (l *listing) branches(q *session.ListQuery) (branches []string, args []any) {
	switch {
	case eachPlace(q):
		for i, p := range q.Places {
			if slices.Contains(q.Places[:i], p) {
				continue
			}
			args = append(append(args, p.State, p.MachineDigest), l.args...)
			branches = append(branches, l.branchOf(q, "INDEXED BY sessions_since_place", "s.status='needs_human' AND s.current_state=? AND s.machine_digest=?"))
		}
		return branches, args
	case q.Order == session.BySince && q.State == "" && q.Places == nil && q.MachineName == "" && q.Subject == "" && q.ID == "" && q.Code == "":
		return []string{l.branchOf(q, "INDEXED BY sessions_since", "s.status='needs_human'")}, l.args
	}
	statuses := q.Statuses
	if q.Order == session.BySince {
		statuses = []session.Status{session.NeedsHuman}
	}
	if len(statuses) == 0 {
		statuses = l.each(q)
	}
	for i, status := range statuses {
		if slices.Contains(statuses[:i], status) {
			continue
		}
		by, condition := by(q, status)
		if q.Awake != 0 && status == session.Running && by == "" {
			by, condition = "INDEXED BY sessions_awake", awake
			args = append(append(args, q.Awake, status.String()), l.args...)
			branches = append(branches, l.branchOf(q, "INDEXED BY sessions_timer", "s.timer_at>0 AND s.timer_at<=? AND s.code='timer' AND s.status=?"))
		}
		args = append(append(args, status.String()), l.args...)
		branches = append(branches, l.branchOf(q, by, condition+"s.status=?"))
	}
	if len(branches) == 0 {
		branches, args = []string{l.branchOf(q, "", "1")}, l.args
	}
	return branches, args
}

// query returns the query, and its arguments.
func (l *listing) query(q *session.ListQuery) (query string, args []any) {
	branches, args := l.branches(q)
	order := when(q.Desc, "DESC", "ASC")
	by := "id " + order
	if q.Order != session.ByCreation {
		by = "at " + order + ", " + by
	}
	limit := -1
	if q.Limit > 0 {
		limit = q.Limit
	}
	return `SELECT s.session_id, m.machine_name, s.machine_digest, s.status, s.current_state, s.round,
		s.sequence, s.created_at, s.updated_at, s.code, s.reason, s.reviews, s.subject, s.due_at, s.cost_pico_usd, s.driver, s.since FROM (` +
		strings.Join(branches, " UNION ALL ") + ` ORDER BY ` + by + ` LIMIT ?) p
		CROSS JOIN sessions s ON s.id=p.id CROSS JOIN machines m ON m.id=s.machine ORDER BY p.` + strings.Replace(by, ", ", ", p.", 1), append(args, limit)
}

// branchOf returns the query of the sessions that meet a condition, by an index if one is said.
func (l *listing) branchOf(q *session.ListQuery, index, condition string) string {
	columns := "s.id AS id"
	if column := projection.Ordering(q.Order); column != "" {
		columns += ", s." + column + " AS at"
	}
	return "SELECT " + columns + " FROM sessions s " + index + " WHERE " + strings.Join(append([]string{condition}, l.where...), " AND ")
}

// awake is the condition of the index of running sessions that wait for no timer.
const awake = "s.status='running' AND s.code<>'timer' AND "

// by returns the index to go by where SQLite, which does not know how many rows an index
// leaves, would take another one, and the condition of that index.
func by(q *session.ListQuery, status session.Status) (index, condition string) {
	switch {
	case q.Wake != 0:
		return "INDEXED BY sessions_timer", "s.timer_at>0 AND "
	case q.Overdue != 0 || q.Order == session.ByDue:
		return "INDEXED BY sessions_due", "s.due_at>0 AND "
	case status != session.Running && (q.State != "" || q.Places != nil) && q.Subject == "" && q.ID == "":
		return "INDEXED BY sessions_state", "s.status<>'running' AND "
	case !status.Live() && q.UpdatedAfter != 0 && q.Code == "" && q.Subject == "" && q.ID == "":
		return "INDEXED BY sessions_ended", "s.status NOT IN ('running', 'needs_human') AND "
	}
	return "", ""
}

// each returns the statuses of a query that names none, where the index to go by has them:
// none where it goes by another one.
func (l *listing) each(q *session.ListQuery) []session.Status {
	if q.MachineName == "" && q.StartedBy == "" && q.State == "" && q.UpdatedAfter == 0 && q.Places == nil || q.ID != "" || q.Subject != "" || q.Code != "" {
		return nil
	}
	return []session.Status{session.Running, session.NeedsHuman, session.Completed, session.Stopped, session.Failed}
}
