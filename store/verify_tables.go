package store

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/store/internal/projection"
)

// The third layer of Verify: each column of each table that follows from logs and
// definitions, held to what verify_logs.go has found: sessions, alignments, exemplars,
// lessons, gaps, snapshots. Whatever differs here rebuild can repair, so each check ends at its
// first difference. Rows are read without an index, so that a damaged one hides none,
// and counted, so that one that is missing or too many is found as well.
//
// Where a log itself is damaged its session is passed over: that is the difference to
// report.

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
		{inRows, "ledger_snapshots", a.compareSnapshots},
		{inRows, "snapshots", a.compareSessionSnapshots},
	}
}

// all goes through every row of a table: its number, then the columns. It uses no index: a
// damaged one hides nothing.
func (r reader) all(ctx context.Context, table string, columns []string, fields []any) iter.Seq[error] {
	return scan(r.q.QueryContext(ctx, "SELECT id, "+strings.Join(columns, ", ")+" FROM "+table+" NOT INDEXED ORDER BY id")).into(fields...)
}

// compareMachines finds a version of trust that is lower than what was learned: caches
// would take old trust for new.
func (a *audit) compareMachines(ctx context.Context) error {
	var id, version, n int64
	return each(a.all(ctx, "machines", []string{"trust_version"}, []any{&id, &version}), func() error {
		if n++; id != n || version < a.learned[a.machines[id]] {
			return differs(inRows, "machines", "row %d has the trust version %d, and %d records taught something", id, version, a.learned[a.machines[id]])
		}
		return nil
	})
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
	seen := 0
	var id, machine int64
	var got projection.Session
	var head []byte
	err := each(a.all(ctx, "sessions", projection.SessionColumns, got.Fields([]any{&id}, &machine, &head)), func() error {
		got.Machine = a.machines[machine]
		want, _ := a.read.Session(id)
		if !want.Folded {
			return nil // its log is damaged, or gone
		}
		if got != want.Session || string(head) != string(want.Head[:]) {
			what := cmp.Or(spentDifference(got, want.Session, want.Taken), "its row in sessions is not what its log says")
			return differs(inRows, want.ID, "%s", what)
		}
		seen++
		return nil
	})
	if folded := a.read.Folded(); err == nil && seen != folded {
		return differs(inRows, "sessions", "there are %d rows for %d logs", seen, folded)
	}
	return err
}

// alignment returns the rows as they should be, in order.
func (a *audit) alignment() (list []projection.Alignment) {
	for _, name := range slices.Sorted(maps.Keys(a.tallies)) {
		list = append(list, projection.AlignmentOf(name, a.tallies[name])...)
	}
	return list
}

func (a *audit) compareAlignment(ctx context.Context) error {
	stored := map[projection.Alignment]bool{}
	var machine int64
	var r projection.Alignment
	for err := range scan(a.q.QueryContext(ctx, `SELECT `+strings.Join(projection.AlignmentColumns, ", ")+` FROM alignment`)).into(r.Fields(nil, &machine)...) {
		if err != nil {
			return err
		}
		r.Machine = a.machines[machine]
		stored[r] = true
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
	next, stop := iter.Pull(a.read.Exemplars())
	defer stop()
	n := 0
	var id, machine int64
	var got projection.Exemplar
	err := each(a.all(ctx, "exemplars", projection.ExemplarColumns, got.Fields([]any{&id}, &machine)), func() error {
		got.Machine = a.machines[machine]
		if want, is := next(); is && (id != int64(n)+1 || got != want) {
			return differs(inRows, "exemplars", "row %d is not what the logs say", id)
		}
		n++
		return nil
	})
	if all := a.read.CountExemplars(); err == nil && n != all {
		return differs(inRows, "exemplars", "there are %d, the logs have %d", n, all)
	}
	return err
}

// compareLessons holds what the ledger is made of against the logs.
func (a *audit) compareLessons(ctx context.Context) error {
	n := 0
	var id, at int64
	var stored string
	err := each(a.all(ctx, "lessons", []string{"lesson", "at"}, []any{&id, &stored, &at}), func() error {
		if want, known := a.read.Lesson(id); !known || stored != want.Text || at != want.At {
			return a.lostLesson(ctx, id, known)
		}
		n++
		return nil
	})
	if all := a.read.CountLessons(); err == nil && n != all {
		return differs(inRows, "lessons", "there are %d, the logs have %d", n, all)
	}
	return err
}

// lostLesson says what is wrong with a lesson that is not as it should be. One of a session that was archived is damage: what is
// kept of that says no more what it has taught.
func (a *audit) lostLesson(ctx context.Context, id int64, known bool) error {
	var archived bool
	if err := a.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM archived_records WHERE agents=0 AND place=?)`, id).Scan(&archived); err != nil {
		return err
	}
	if archived {
		return differs(inArchived, "archived", "lesson %d is of a session that was archived, of which its row is gone or altered", id)
	}
	return differs(inRows, "lessons", "lesson %d is not what the logs say", id)
}

// compareGaps finds gaps that are recorded and are none.
func (a *audit) compareGaps(ctx context.Context) error {
	var wrong int64
	err := a.q.QueryRowContext(ctx, `SELECT count(*) FROM gaps g LEFT JOIN (`+emptyPlaces(logPlaces)+`) e ON e.place=g.place AND e.last=g.last WHERE e.place IS NULL`).Scan(&wrong)
	if err == nil && wrong > 0 {
		return differs(inRows, "gaps", "%d gaps are recorded that are none", wrong)
	}
	return err
}
