package transfer_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/transfer"
	"github.com/dialai/dialai/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const learning = `{ "machineName": "learning", "initialState": "a", "goalState": "z", "audit": { "rate": 1 },
	"states": { "a": { "prompt": "On?", "transitions": { "on": "a", "stop": "z" } }, "z": {} },
	"specialists": [ { "role": "proposer", "specialistId": "p", "strategyFnName": "lastAvailable" }, { "role": "proposer", "specialistId": "h", "isHuman": true },
		{ "role": "arbiter", "specialistId": "x", "strategyFnName": "bayes", "threshold": 0.8 } ] }`

// A closable is any store that can be copied.
type closable interface {
	session.Store
	io.Closer
	store.Copyable
	Epoch(ctx context.Context) (string, error)
}

// A world is a store that is used.
type world struct {
	testing.TB
	s   closable
	r   *runner.Runner
	m   *machine.Machine
	ids []specialist.SessionID
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// use returns a store as somebody uses it.
func use(t testing.TB, s closable) *world {
	t.Helper()
	w := &world{TB: t, s: s}
	var err error
	w.r, err = runner.New(runner.Config{Store: s})
	w.ok(err)
	t.Cleanup(func() { w.r.Close() })
	w.m, err = machine.Parse("learning.json", []byte(learning), runner.Checks())
	w.ok(err)
	return w
}

// decide has a human decide, and says in which round.
func (w *world) decide(id specialist.SessionID, transition, why string) (round string) {
	w.Helper()
	now, err := w.r.Session(w.Context(), id)
	w.ok(err)
	_, err = w.r.Decide(w.Context(), runner.Ruling{SessionID: id, RoundID: now.Key().ID(), SpecialistID: "h", TransitionName: transition, Reasoning: why})
	w.ok(err)
	return now.Key().ID()
}

// live has sessions begin, learn, be forked, moved and taken back, end, and agents and models work for them.
func (w *world) live(n int) {
	w.Helper()
	ctx := w.Context()
	for i := range n {
		started, err := w.r.Start(ctx, w.m, runner.StartOptions{})
		w.ok(err)
		id := started.ID
		_, err = w.r.Step(ctx, id)
		w.ok(err)
		round := w.decide(id, "on", "go \x00 on, \U0001f600 é")
		if i%2 == 0 {
			_, err = w.r.Step(ctx, id)
			w.ok(err)
			_, err = w.r.Retract(ctx, runner.Retracting{SessionID: id, RoundID: round, SpecialistID: "h", Note: "no"})
			w.ok(err)
		}
		w.ok(w.s.AppendAgentLog(ctx, id, 0, session.AgentEvent{At: 1, Kind: "opened", Data: []byte(`{"agent":"claude"}`)}))
		w.ok(w.s.AppendAudit(ctx, specialist.AuditEntry{AuditEntryID: fmt.Sprint("entry ", i), SessionID: id.String(), SpecialistID: "ai", RequestBody: "a\x00b", Attempt: 1, Purpose: "ask"}))
		if i%3 == 0 {
			fork, err := w.r.Fork(ctx, id, runner.Forking{})
			w.ok(err)
			w.decide(fork.ID, "on", "")
			next, err := machine.Parse("learning.json", []byte(strings.Replace(string(w.m.JSON()), `"stop":`, `"stay":"a","stop":`, 1)), runner.Checks())
			w.ok(err)
			_, err = w.r.Move(ctx, fork.ID, next, runner.Moving{Actor: session.LocalActor("op"), Note: "more choice"})
			w.ok(err)
			w.ids = append(w.ids, fork.ID)
		}
		w.ok(w.s.AppendAgentLog(ctx, id, 1, session.AgentEvent{At: 2, Kind: "note", Data: []byte(`{"text":"done\u0000"}`)}))
		if i != 1 {
			w.decide(id, "stop", "enough")
		}
		w.ids = append(w.ids, id)
		_, err = w.r.Register(ctx, []string{"learning", "other é"}[i%2], machine.Specialist{Role: machine.Proposer, SpecialistID: fmt.Sprint("late ", started.ID), StrategyFnName: "random"}, nil)
		w.ok(err)
	}
}

// archived moves sessions that have ended to another file.
func (w *world) archived() {
	w.Helper()
	done, err := w.s.(*store.SQLite).Archive(w.Context(), store.ArchiveOptions{Before: specialist.Time(1) << 50, To: filepath.Join(w.TempDir(), "archive.db"), At: 7, Programs: session.NewPrograms()})
	if w.ok(err); done.Sessions == 0 || done.Kept == 0 {
		w.Fatalf("archived were %+v", done)
	}
}

// sqlite opens a file until the test ends.
func sqlite(t testing.TB, path string) *store.SQLite {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{Copy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// file opens an empty file until the test ends.
func file(t testing.TB) *store.SQLite { return sqlite(t, filepath.Join(t.TempDir(), "dialai.db")) }

// dump returns all that is in a file, but for how often something was written and how far copies came.
func dump(t testing.TB, s *store.SQLite) string {
	t.Helper()
	db, err := sql.Open("sqlite", s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var b strings.Builder
	for _, query := range []string{`SELECT * FROM log ORDER BY id`, `SELECT * FROM roster_log ORDER BY id`, `SELECT * FROM definitions ORDER BY id`, `SELECT id, machine_name FROM machines ORDER BY id`,
		`SELECT * FROM sessions ORDER BY id`, `SELECT * FROM alignment ORDER BY machine, specialist_id, state`, `SELECT * FROM exemplars ORDER BY id`, `SELECT * FROM lessons ORDER BY id`, `SELECT * FROM secrets ORDER BY name`,
		`SELECT * FROM llm_audit ORDER BY id`, `SELECT * FROM agent_log ORDER BY id`, `SELECT * FROM gaps ORDER BY place`, `SELECT * FROM archived_records ORDER BY 1, 2`, `SELECT * FROM archived ORDER BY session_id`, `SELECT * FROM copying`} {
		fmt.Fprintf(&b, "-- %s\n", query)
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%q\n", values)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// equal fails unless two texts are the same.
func equal(t testing.TB, got, want string) {
	t.Helper()
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("line %d is\n%.600s\nwant\n%.600s", i+1, b[i], a[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("there are %d lines, want %d", len(b), len(a))
	}
}

// copyTo copies a store.
func copyTo(t testing.TB, from, to store.Copyable, o transfer.Options) transfer.Report {
	t.Helper()
	done, err := store.CopyStore(t.Context(), from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestFiles: a copy of a file has the same rows, each as it was.
func TestFiles(t *testing.T) {
	w := use(t, file(t))
	w.live(7)
	w.archived()
	w.live(2)
	to := file(t)
	copyTo(t, w.s, to, transfer.Options{}.InBatches(5))
	equal(t, dump(t, to), dump(t, w.s.(*store.SQLite)))
}

// database opens an empty store in a database until the test ends.
func database(t testing.TB) *postgres.Store {
	return schema(t, pgtest.Database(t), postgres.Options{Copy: true})
}

// schema opens a store in a database until the test ends.
func schema(t testing.TB, address string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sound fails unless a store verifies.
func sound(t testing.TB, s closable) {
	t.Helper()
	var report store.Report
	var err error
	switch s := s.(type) {
	case *store.SQLite:
		report, err = s.Verify(t.Context(), session.NewPrograms())
	case *postgres.Store:
		report, err = s.Verify(t.Context(), session.NewPrograms(), nil)
	}
	if err != nil || report.Difference != nil {
		t.Fatalf("%T: %v %v", s, err, report.Difference)
	}
}

// TestThereAndBack: a file that was copied to a database, to another one and back has the same rows, each as it
// was, and the copy in between is used like every other store.
func TestThereAndBack(t *testing.T) {
	w := use(t, file(t))
	w.live(7)
	w.archived()
	w.live(2)
	there, next, back := database(t), database(t), file(t)
	done := copyTo(t, w.s, there, transfer.Options{}.InBatches(5))
	copyTo(t, there, next, transfer.Options{}.InBatches(7))
	copyTo(t, next, back, transfer.Options{}.InBatches(3))
	equal(t, dump(t, back), dump(t, w.s.(*store.SQLite)))
	head, err := w.s.(*store.SQLite).Head(t.Context())
	w.ok(err)
	if now, err := back.Head(t.Context()); err != nil || now != head {
		t.Errorf("the head is %s (%v), want %s", now, err, head)
	}
	if done.Sessions == 0 || done.Records == 0 || done.From != w.s.(*store.SQLite).Path() || !strings.HasPrefix(done.To, "postgres://") || strings.Contains(done.To, "@") {
		t.Errorf("reported is %+v", done)
	}
	epoch, err := w.s.Epoch(t.Context())
	w.ok(err)
	tally := func(s closable) []byte {
		counted, err := stats.NewFollower(s, session.NewPrograms()).Of(t.Context(), w.m.Name())
		w.ok(err)
		return stats.Snapshot(w.m.Name(), 0, counted).Body
	}
	counted := tally(w.s)
	for _, s := range []closable{there, next, back} {
		if !bytes.Equal(tally(s), counted) {
			t.Errorf("%T: decisions, archived ones among them, come to something else", s)
		}
		w.ok(stats.NewFollower(s, session.NewPrograms()).Keep(t.Context(), w.m.Name()))
		if got, err := s.Epoch(t.Context()); err != nil || got != epoch {
			t.Errorf("the epoch is %q (%v), want %q", got, err, epoch)
		}
		used := use(t, s)
		used.live(3)
		sound(t, s)
	}
}
