package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/dialai/dialai/session"
)

// following returns the checks of what follows from logs and definitions: each column
// of each row.
func (a *audit) following() []check {
	return []check{
		{inRows, "machines", a.compareMachines},
		{inRows, "definitions", a.compareNames},
		{inRows, "sessions", a.compareSessions},
		{inRows, "alignment", a.compareAlignment},
		{inRows, "exemplars", a.compareExemplars},
		{inRows, "lessons", a.compareLessons},
		{inRows, "gaps", a.compareGaps},
	}
}

// sessionRow is a row of sessions as it is stored, or as it should be.
type sessionRow struct {
	SessionID, Machine, Digest, Status, State                    string
	Round, Attempt, Sequence, Transitions                        int64
	Code, Reason                                                 string
	CreatedAt, UpdatedAt, Calls, InputTokens, OutputTokens, Pico int64
	Reviews                                                      int64
	Head                                                         string
}

// rowOf returns the row of a session whose log ends with a hash.
func rowOf(s *session.Session, head session.Hash) sessionRow {
	o, spent := s.Outcome(), s.Spent()
	return sessionRow{
		s.ID.String(), s.Machine().Name(), s.Machine().Digest(), s.Status.String(), s.State.Name,
		int64(s.Round), int64(s.Attempt), s.Sequence, int64(s.Executed), o.Code, o.Reason,
		int64(s.CreatedAt), int64(s.UpdatedAt), spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money), int64(len(s.Reviews())), string(head[:]),
	}
}

// compareMachines finds a version of trust that is lower than what was learned: caches
// would take old trust for new.
func (a *audit) compareMachines(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT id, trust_version FROM machines NOT INDEXED ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for n := int64(1); rows.Next(); n++ {
		var id, version int64
		if err := rows.Scan(&id, &version); err != nil {
			return err
		}
		if name := a.machines[id]; id != n || version < a.learned[name] {
			return differs(inRows, "machines", "row %d has the trust version %d, and %d records taught something", id, version, a.learned[name])
		}
	}
	return rows.Err()
}

// compareNames finds sessions of machines that have no row, and rows of machines that
// are there twice.
func (a *audit) compareNames(context.Context) error {
	if len(a.rows) != len(a.machines) {
		return differs(inRows, "machines", "there are %d rows for %d names", len(a.machines), len(a.rows))
	}
	for _, d := range a.definitions {
		if _, ok := a.rows[d.name]; !ok && d.name != "" { // else it is damaged itself
			return differs(inRows, "machines", "%s has no row", d.name)
		}
	}
	return nil
}

// compareSessions holds the rows of sessions against the logs.
func (a *audit) compareSessions(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT id, session_id, machine, machine_digest, status, current_state, round, attempt, sequence, transitions,
		code, reason, created_at, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, reviews, head FROM sessions NOT INDEXED ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var id, machine int64
		var got sessionRow
		var head []byte
		if err := rows.Scan(&id, &got.SessionID, &machine, &got.Digest, &got.Status, &got.State, &got.Round, &got.Attempt, &got.Sequence, &got.Transitions,
			&got.Code, &got.Reason, &got.CreatedAt, &got.UpdatedAt, &got.Calls, &got.InputTokens, &got.OutputTokens, &got.Pico, &got.Reviews, &head); err != nil {
			return err
		}
		got.Head, got.Machine = string(head), a.machines[machine]
		want, folded := a.sessions[id]
		if !folded {
			continue // its log is damaged, or gone
		}
		if got != want {
			what := cmp.Or(spentDifference(got, want, a.taken[id]), "its row in sessions is not what its log says")
			return differs(inRows, want.SessionID, "%s", what)
		}
		seen++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if seen != len(a.sessions) {
		return differs(inRows, "sessions", "there are %d rows for %d logs", seen, len(a.sessions))
	}
	return nil
}

// An alignmentRow is a row of alignment.
type alignmentRow struct {
	machine                  int64
	specialist, state        string
	matching, total, updated int64
}

// alignment returns the rows as they should be, in order.
func (a *audit) alignment() (list []alignmentRow) {
	for _, name := range slices.Sorted(maps.Keys(a.tallies)) {
		for _, r := range a.tallies[name].Records(name) {
			list = append(list, alignmentRow{a.rows[name], r.SpecialistID, r.State, r.MatchingChoices, r.TotalComparisons, int64(r.LastUpdated)})
		}
	}
	return list
}

func (a *audit) compareAlignment(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT machine, specialist_id, state, matching, total, updated_at FROM alignment`)
	if err != nil {
		return err
	}
	defer rows.Close()
	stored := map[alignmentRow]bool{}
	for rows.Next() {
		var r alignmentRow
		if err := rows.Scan(&r.machine, &r.specialist, &r.state, &r.matching, &r.total, &r.updated); err != nil {
			return err
		}
		stored[r] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	want := a.alignment()
	for _, r := range want {
		if !stored[r] {
			return differs(inRows, a.machines[r.machine], "alignment of %s is not what the logs say", r.specialist)
		}
	}
	if len(stored) != len(want) {
		return differs(inRows, "alignment", "there are %d rows, the logs have %d", len(stored), len(want))
	}
	return nil
}

// compareExemplars holds exemplars against the logs: their rows are numbered from 1.
func (a *audit) compareExemplars(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT id, machine, state, exemplar FROM exemplars NOT INDEXED ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id, machine int64
		var state, stored string
		if err := rows.Scan(&id, &machine, &state, &stored); err != nil {
			return err
		}
		if n >= len(a.exemplars) {
			continue
		}
		want := a.exemplars[n].exemplar
		if id != int64(n)+1 || machine != a.rows[want.MachineName] || state != want.State || stored != string(want.Append(nil)) {
			return differs(inRows, "exemplars", "row %d is not what the logs say", id)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != len(a.exemplars) {
		return differs(inRows, "exemplars", "there are %d, the logs have %d", n, len(a.exemplars))
	}
	return nil
}

// compareLessons holds what the ledger is made of against the logs.
func (a *audit) compareLessons(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT id, lesson FROM lessons NOT INDEXED ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id int64
		var stored string
		if err := rows.Scan(&id, &stored); err != nil {
			return err
		}
		if want, known := a.lessons[id]; !known || stored != want {
			return differs(inRows, "lessons", "lesson %d is not what the logs say", id)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != len(a.lessons) {
		return differs(inRows, "lessons", "there are %d, the logs have %d", n, len(a.lessons))
	}
	return nil
}

// compareGaps finds gaps that are recorded and are none.
func (a *audit) compareGaps(ctx context.Context) error {
	var wrong int64
	err := a.q.QueryRowContext(ctx, `SELECT count(*) FROM gaps g LEFT JOIN (`+emptyPlaces+`) e ON e.place=g.place AND e.last=g.last WHERE e.place IS NULL`).Scan(&wrong)
	if err == nil && wrong > 0 {
		return differs(inRows, "gaps", "%d gaps are recorded that are none", wrong)
	}
	return err
}
