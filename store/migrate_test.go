package store_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestUpgrade: a store of the version before has the index after it was opened, loses
// nothing, and lists recent sessions by it.
func TestUpgrade(t *testing.T) {
	a := newStore(t)
	var before []session.Summary
	a.with(func(r *runner.Runner, s *store.SQLite) {
		var err error
		before, err = s.List(a.ctx, session.ListQuery{Since: 1})
		a.ok(err)
	})
	a.exec(`DROP TABLE migrations; DROP TABLE gaps; ALTER TABLE llm_audit DROP COLUMN hash; DROP INDEX sessions_ended; DELETE FROM goose_db_version WHERE version_id>3`)
	names, err := store.Migrate(a.ctx, a.path)
	if a.ok(err); len(names) != 2 || !strings.Contains(names[0], "0004") {
		t.Errorf("applied were %v", names)
	}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		after, err := s.List(a.ctx, session.ListQuery{Since: 1})
		if a.ok(err); len(after) != len(a.ids) || len(before) != len(after) || after[0] != before[0] {
			t.Errorf("listed are %+v, before it were %+v", after, before)
		}
		report, err := s.Verify(a.ctx, session.NewPrograms())
		if a.ok(err); report.Difference != nil {
			t.Errorf("verified: %+v", report.Difference)
		}
	})
	if plan := a.plan(`SELECT id FROM sessions s WHERE ` + store.Recent); !strings.Contains(plan, "sessions_ended (updated_at>?)") || !strings.Contains(plan, "sessions_live") || strings.Contains(plan, "SCAN s\n") {
		t.Errorf("recent sessions are found by\n%s", plan)
	}
}

// plan returns how SQLite goes about a query with one argument.
func (a *aStore) plan(query string) (text string) {
	a.Helper()
	db, err := sql.Open("sqlite", a.path)
	a.ok(err)
	defer db.Close()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, 1)
	a.ok(err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		a.ok(rows.Scan(&id, &parent, &unused, &detail))
		text += detail + "\n"
	}
	a.ok(rows.Err())
	return text
}
