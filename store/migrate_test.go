package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// TestUpgrade: a store of the version before has the index after it was opened, loses
// nothing, and lists recent sessions by it.
func TestUpgrade(t *testing.T) {
	a := newStore(t)
	var before []session.Summary
	a.with(func(r *runner.Runner, s *store.SQLite) {
		program, err := s.Load(a.ctx, session.NewPrograms(), a.ids[0])
		a.ok(err)
		_, err = r.Start(a.ctx, program.Machine(), runner.StartOptions{Driver: session.DriverNone})
		a.ok(err)
		waiting, err := machine.Parse("waiting.json", []byte(`{"machineName":"waiting","initialState":"open","goalState":"done","states":{"open":{"transitions":{"go":"done"}},"done":{}},
			"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`), runner.Checks())
		a.ok(err)
		asked, err := r.Start(a.ctx, waiting, runner.StartOptions{})
		a.ok(err)
		_, err = r.Step(a.ctx, asked.ID)
		a.ok(err)
		for i, drivers := range [][]session.Driver{{session.DriverTemporal}, {session.DriverTemporal, session.DriverPool}, {session.DriverTemporal, session.DriverNone}} {
			for _, d := range drivers {
				_, err := r.SetDriver(a.ctx, a.ids[i], d, nil)
				a.ok(err)
			}
		}
		before, err = s.List(a.ctx, session.ListQuery{})
		a.ok(err)
	})
	a.exec(`ALTER TABLE log RENAME TO packed; DROP INDEX log_session; DROP INDEX log_decides;
		CREATE TABLE log ( id INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, decides INTEGER, at INTEGER NOT NULL, events TEXT NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL ) STRICT;
		CREATE UNIQUE INDEX log_session ON log (session, first); CREATE INDEX log_decides ON log (decides, id) WHERE decides IS NOT NULL;
		INSERT INTO log SELECT id, session, first, decides, at, unpacked(events), coalesce((SELECT hash FROM packed p WHERE p.session=packed.session AND p.first<packed.first ORDER BY p.first DESC LIMIT 1), zeroblob(32)), hash FROM packed;
		DROP TABLE packed;
		DROP TABLE snapshots; DROP TABLE erasing; DROP TABLE copying; DROP TABLE copied; DROP TABLE agent_log; DROP TABLE ledger_snapshots; DROP TABLE migrations; DROP TABLE gaps; DROP TABLE archived; DROP TABLE archived_records; ALTER TABLE llm_audit DROP COLUMN hash; DROP INDEX sessions_ended; DROP INDEX sessions_status; DROP INDEX sessions_machine; DROP INDEX sessions_state; DROP INDEX sessions_code; DROP INDEX sessions_subject; DROP INDEX sessions_due; DROP INDEX sessions_timer; DROP INDEX sessions_awake; DROP INDEX sessions_started; ALTER TABLE lessons DROP COLUMN at; ALTER TABLE sessions DROP COLUMN started_by; ALTER TABLE sessions DROP COLUMN driver; DROP INDEX sessions_since; DROP INDEX sessions_since_place; ALTER TABLE sessions DROP COLUMN since; ALTER TABLE sessions DROP COLUMN due_at; ALTER TABLE sessions DROP COLUMN timer_at; ALTER TABLE sessions DROP COLUMN subject; CREATE INDEX sessions_live ON sessions (id) WHERE status IN ('running', 'needs_human'); DELETE FROM goose_db_version WHERE version_id>3`)
	names, err := store.Migrate(a.ctx, a.path, store.SQLiteOptions{})
	if a.ok(err); len(names) != 17 || !strings.Contains(names[0], "0004") {
		t.Errorf("applied were %v", names)
	}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		after, err := s.List(a.ctx, session.ListQuery{})
		if a.ok(err); len(after) != len(a.ids)+2 || !slices.Equal(after, before) || !slices.ContainsFunc(after, func(s session.Summary) bool { return s.Since != 0 }) {
			t.Errorf("listed are %+v, before it were %+v", after, before)
		}
		report, err := s.Verify(a.ctx, session.NewPrograms())
		if a.ok(err); report.Difference != nil {
			t.Errorf("verified: %+v", report.Difference)
		}
	})
}

// TestListsGoByIndexes: whatever a list filters by, SQLite goes to it by an index, in the
// order of creation where what is left may be long, and reads no more rows than it shows.
func TestListsGoByIndexes(t *testing.T) {
	a := newStore(t)
	waiting, ended := []session.Status{session.NeedsHuman}, []session.Status{session.Completed, session.Failed}
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		for _, c := range []struct {
			query  session.ListQuery
			by     string
			sorted bool // what is left is put in order
		}{
			{session.ListQuery{Limit: 50, Desc: true}, "SCAN s", false},
			{session.ListQuery{Limit: 50, After: cursorAfter(session.ListQuery{}, a.ids[0])}, "(rowid>?)", false},
			{session.ListQuery{Limit: 50, Statuses: waiting, Desc: true}, "sessions_status (status=?)", false},
			{session.ListQuery{Limit: 50, Statuses: session.LiveStatuses()}, "sessions_status (status=?)", false},
			{session.ListQuery{Limit: 50, Statuses: waiting, After: cursorAfter(session.ListQuery{Statuses: waiting}, a.ids[0])}, "sessions_status (status=? AND rowid>?)", false},
			{session.ListQuery{Limit: 50, MachineName: "a"}, "sessions_machine (machine=? AND status=?)", false},
			{session.ListQuery{Limit: 50, MachineName: "a", Statuses: ended, Desc: true}, "sessions_machine (machine=? AND status=?)", false},
			{session.ListQuery{Limit: 50, State: "a", Statuses: waiting}, "COVERING INDEX sessions_state (current_state=? AND status=?)", true},
			{session.ListQuery{Limit: 50, Code: "a"}, "sessions_code (code=?)", false},
			{session.ListQuery{Limit: 50, Subject: "a"}, "sessions_subject (subject>? AND subject<?)", true},
			{session.ListQuery{Limit: 50, StartedBy: "a", Desc: true}, "sessions_started (started_by=? AND status=?)", false},
			{session.ListQuery{Limit: 50, StartedBy: "a", Statuses: ended}, "sessions_started (started_by=? AND status=?)", false},
			{session.ListQuery{Limit: 50, Reviews: true}, "sessions_reviews", false},
			{session.ListQuery{Limit: 50, UpdatedAfter: 1, Statuses: ended}, "sessions_ended (updated_at>?)", true},
			{session.ListQuery{Limit: 50, ID: "0a"}, "(session_id>? AND session_id<?)", true},
			{session.ListQuery{Limit: 50, Order: session.BySince}, "sessions_since\n", false},
			{session.ListQuery{Limit: 50, Order: session.BySince, Desc: true, Timely: 9}, "sessions_since\n", false},
			{session.ListQuery{Limit: 50, Order: session.BySince, After: afterSince(a.ids[0])}, "sessions_since (since>?)", false},
			{session.ListQuery{Limit: 50, Order: session.BySince, Places: []session.Place{{MachineDigest: "a", State: "b"}, {MachineDigest: "a", State: "c"}}}, "sessions_since_place (current_state=? AND machine_digest=?)", false},
			{session.ListQuery{Limit: 50, Order: session.BySince, MachineName: "a"}, "sessions_machine (machine=? AND status=?)", true},
			{session.ListQuery{Limit: 50, Order: session.ByDue, Overdue: 1, Statuses: waiting}, "sessions_due (due_at>? AND due_at<?)", true},
			{session.ListQuery{Limit: 50, Places: []session.Place{{MachineDigest: "a", State: "b"}}, Statuses: waiting}, "COVERING INDEX sessions_state (current_state=? AND status=? AND machine_digest=?)", true},
		} {
			plan := s.Plan(t, c.query)
			if !strings.Contains(plan, c.by) || strings.Contains(plan, "TEMP B-TREE") != c.sorted || strings.Contains(plan, "SCAN s\n") != (c.by == "SCAN s") {
				t.Errorf("%+v is listed by\n%s\nwant %s", c.query, plan, c.by)
			}
		}
	})
}

func afterSince(id specialist.SessionID) session.Cursor {
	return (&session.ListQuery{Order: session.BySince}).CursorAfter(id, 5)
}

func cursorAfter(q session.ListQuery, id specialist.SessionID) session.Cursor {
	return q.CursorAfter(id, 0)
}
