package store_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// openRaw opens a file without the store, one connection.
func openRaw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// dump returns every row of every table, but for what only counts how often it was
// written.
func (a *aStore) dump() string {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	var b strings.Builder
	for _, query := range []string{
		`SELECT * FROM log ORDER BY id`, `SELECT * FROM roster_log ORDER BY id`, `SELECT * FROM definitions ORDER BY id`,
		`SELECT id, machine_name FROM machines ORDER BY id`, `SELECT * FROM sessions ORDER BY id`, `SELECT * FROM alignment ORDER BY machine, specialist_id, state`,
		`SELECT * FROM exemplars ORDER BY id`, `SELECT * FROM lessons ORDER BY id`, `SELECT * FROM secrets ORDER BY name`,
		`SELECT * FROM llm_audit ORDER BY id`, `SELECT * FROM agent_log ORDER BY id`, `SELECT * FROM gaps ORDER BY place`, `SELECT * FROM archived_records ORDER BY 1, 2`, `SELECT * FROM archived ORDER BY session_id`, `SELECT * FROM migrations ORDER BY version`,
		`SELECT id, version_id, is_applied FROM goose_db_version ORDER BY id`,
	} {
		fmt.Fprintf(&b, "-- %s\n", query)
		a.ok(writeRows(&b, db, query))
	}
	return b.String()
}

func writeRows(b *strings.Builder, db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		fmt.Fprintf(b, "%q\n", values)
	}
	return rows.Err()
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(one, two string) string {
	a, b := strings.Split(one, "\n"), strings.Split(two, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%.400s\n%.400s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, %d lines", len(a), len(b))
}

// look returns all that reading a store can tell: what every command prints comes
// from there. An error is part of it.
func look(t testing.TB, path string) string {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		return fmt.Sprintf("open: %v\n", err)
	}
	defer s.Close()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		return fmt.Sprintf("runner: %v\n", err)
	}
	b := &looker{t: t, s: s, r: r}
	b.lists()
	b.machines()
	b.sessions()
	return b.String()
}

type looker struct {
	strings.Builder
	t    testing.TB
	s    *store.SQLite
	r    *runner.Runner
	list []session.Summary
}

// say prints values as JSON after a name.
func (b *looker) say(name string, err error, values ...any) {
	data, failed := json.Marshal(values)
	if failed != nil {
		data = fmt.Append(nil, values...)
	}
	fmt.Fprintf(b, "%s: %s %v\n", name, data, err)
}

func (b *looker) lists() {
	ctx := b.t.Context()
	for i, q := range []session.ListQuery{{}, {Statuses: session.LiveStatuses()}, {Statuses: []session.Status{session.NeedsHuman}}, {Reviews: true}, {UpdatedAfter: 1}, {Limit: 2, Desc: true}} {
		list, err := b.s.List(ctx, q)
		b.say("list", err, q, list)
		if i == 0 {
			b.list = list
		}
	}
	items, _, err := b.r.Inbox(ctx, session.ListQuery{}, "")
	b.say("inbox", err, items)
	reviews, _, err := b.r.Reviews(ctx, session.ListQuery{}, "")
	b.say("reviews", err, reviews)
	secret, err := b.s.Secret(ctx)
	b.say("secret", err, secret)
	for l, err := range b.s.Lessons(ctx, 0) {
		b.say("lesson", err, l, l.Seq)
	}
	for e, err := range b.s.Log(ctx, "", 0) {
		b.say("log", err, e.Place, e.Session, e.MachineName, e.First, string(e.Events))
	}
}

func (b *looker) machines() {
	ctx, seen := b.t.Context(), map[string]bool{}
	for _, sum := range b.list {
		name := sum.MachineName
		if seen[name] {
			continue
		}
		seen[name] = true
		list, err := b.s.List(ctx, session.ListQuery{MachineName: name})
		b.say("list of "+name, err, list)
		definitions, err := b.s.Definitions(ctx, name)
		b.say("definitions", err, definitions)
		book, err := b.s.Book(ctx, name)
		if err == nil {
			b.say("book", err, book.Records(name))
		}
		for _, state := range []string{"", "a"} {
			exemplars, err := b.s.Exemplars(ctx, name, machine.StateName(state), 0)
			b.say("exemplars "+state, err, exemplars)
		}
		n, err := b.s.DecidedSince(ctx, name, 1, 100)
		b.say("decided", err, n)
		for ref, err := range b.s.Decided(ctx, name) {
			b.say("decision", err, ref)
		}
		roster, err := b.s.Roster(ctx, name)
		b.say("roster", err, roster)
		for rec, err := range b.s.RosterRecords(ctx, name, 0) {
			b.say("roster record", err, rec.First, string(rec.Events), rec.Prev, rec.Hash)
		}
	}
}

func (b *looker) sessions() {
	ctx := b.t.Context()
	for _, sum := range b.list {
		sess, err := b.r.Session(ctx, sum.SessionID)
		b.say("session "+sum.SessionID.String(), err, sess != nil)
		if err != nil {
			continue
		}
		b.say("state", nil, session.Summarize(sess), sess.Spent())
		for rec, err := range b.s.Records(ctx, sess.ID, 0) {
			b.say("record", err, rec.First, string(rec.Events), rec.Prev, rec.Hash)
		}
		for e, err := range b.s.Audit(ctx, sess.ID) {
			b.say("audit", err, e)
		}
	}
}
