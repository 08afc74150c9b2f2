package cli_test

import (
	"context"
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// startStored starts a session of a definition as the program did before it knew the
// rule by which it refuses the file today.
func startStored(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: stored FILE STORE")
	}
	text := []byte(ts.ReadFile(args[0]))
	if _, err := machine.Parse(args[0], text, runner.Checks()); err == nil {
		ts.Fatalf("%s can be loaded, so nothing is shown", args[0])
	}
	m, err := machine.Parse(args[0], text, session.StoredChecks())
	ts.Check(err)
	program, err := session.NewProgram(m)
	ts.Check(err)
	s, err := store.OpenSQLite(context.Background(), ts.MkAbs(args[1]), store.SQLiteOptions{})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	const now = specialist.Time(1_700_000_000_000)
	sess := &session.Session{ID: specialist.SessionID{6: 0x40, 8: 0x80, 15: 1}, Program: program, State: m.Initial(), CreatedAt: now, UpdatedAt: now, Round: 1, Sequence: 2}
	ts.Check(s.Commit(context.Background(), &session.Change{After: sess, First: 1, Events: session.OpeningEvents(sess)}))
}

// startNamed starts sessions of a machine file with ids of its own.
func startNamed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: named FILE STORE ID...")
	}
	m, err := machine.Parse(args[0], []byte(ts.ReadFile(args[0])), runner.Checks())
	ts.Check(err)
	s, err := store.OpenSQLite(context.Background(), ts.MkAbs(args[1]), store.SQLiteOptions{})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	r, err := runner.New(runner.Config{Store: s})
	ts.Check(err)
	for _, text := range args[2:] {
		id, err := session.ParseID(text)
		ts.Check(err)
		_, err = r.Start(context.Background(), m, runner.StartOptions{ID: id, Defaults: true})
		ts.Check(err)
	}
}

// makeNewer has a newer version of the program have migrated a file.
func makeNewer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: newer FILE")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	_, err = db.Exec(`INSERT INTO goose_db_version (version_id, is_applied, tstamp) VALUES (9999, 1, '')`)
	ts.Check(err)
}
