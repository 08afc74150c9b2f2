package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/store/internal/projection"
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

// allRows returns the query of every row of a table, without an index: a damaged one
// hides nothing.
func allRows(table string, columns []string) string {
	return "SELECT id, " + strings.Join(columns, ", ") + " FROM " + table + " NOT INDEXED ORDER BY id"
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
	rows, err := a.q.QueryContext(ctx, allRows("sessions", projection.SessionColumns))
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var id, machine int64
		var got projection.Session
		var head []byte
		if err := rows.Scan(got.Fields([]any{&id}, &machine, &head)...); err != nil {
			return err
		}
		got.Machine = a.machines[machine]
		want, folded := a.sessions[id]
		if !folded {
			continue // its log is damaged, or gone
		}
		if got != want.Session || string(head) != string(want.head[:]) {
			what := cmp.Or(spentDifference(got, want.Session, a.taken[id]), "its row in sessions is not what its log says")
			return differs(inRows, want.ID, "%s", what)
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

// alignment returns the rows as they should be, in order.
func (a *audit) alignment() (list []projection.Alignment) {
	for _, name := range slices.Sorted(maps.Keys(a.tallies)) {
		list = append(list, projection.AlignmentOf(name, a.tallies[name])...)
	}
	return list
}

func (a *audit) compareAlignment(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT `+strings.Join(projection.AlignmentColumns, ", ")+` FROM alignment`)
	if err != nil {
		return err
	}
	defer rows.Close()
	stored := map[projection.Alignment]bool{}
	for rows.Next() {
		var machine int64
		var r projection.Alignment
		if err := rows.Scan(r.Fields(nil, &machine)...); err != nil {
			return err
		}
		r.Machine = a.machines[machine]
		stored[r] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	want := a.alignment()
	for _, r := range want {
		if !stored[r] {
			return differs(inRows, r.Machine, "alignment of %s is not what the logs say", r.Specialist)
		}
	}
	if len(stored) != len(want) {
		return differs(inRows, "alignment", "there are %d rows, the logs have %d", len(stored), len(want))
	}
	return nil
}

// compareExemplars holds exemplars against the logs: their rows are numbered from 1.
func (a *audit) compareExemplars(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, allRows("exemplars", projection.ExemplarColumns))
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id, machine int64
		var got projection.Exemplar
		if err := rows.Scan(got.Fields([]any{&id}, &machine)...); err != nil {
			return err
		}
		got.Machine = a.machines[machine]
		if n < len(a.exemplars) && (id != int64(n)+1 || got != a.exemplars[n].Exemplar) {
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
