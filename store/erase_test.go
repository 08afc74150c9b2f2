package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

// spoken returns a store with sessions of others, and one in which everything was said; ended says whether that and its
// fork have ended.
func spoken(t *testing.T, forkEnded bool) (a *aStore, id, fork specialist.SessionID) {
	a, _ = ended(t)
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		is := storetest.Speak(t, s, forkEnded)
		a.ids = append(a.ids, is.ID, is.Fork, is.Other)
		id, fork = is.ID, is.Fork
	})
	return a, id, fork
}

func eraseOf(id specialist.SessionID) store.EraseOptions { return storetest.EraseOf(id) }

// TestEraseContract holds a file to the suite of erasing.
func TestEraseContract(t *testing.T) {
	storetest.RunErase(t, func(t *testing.T) storetest.EraseMaker {
		return eraseMaker(filepath.Join(t.TempDir(), "dialai.db"))
	})
}

// eraseMaker returns stores in a file in which sessions are erased.
func eraseMaker(path string) storetest.EraseMaker {
	check := func(report store.Report, err error) error {
		if err == nil && report.Difference != nil {
			err = report.Difference
		}
		return err
	}
	return storetest.EraseMaker{
		Open: func(t *testing.T) storetest.EraseStore {
			s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{Plain: true, BusyTimeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Found: func(t *testing.T, words []string) []string { return foundIn(t, words, path, path+"-wal") },
		Verify: func(t *testing.T, s storetest.EraseStore) error {
			return check(s.(*store.SQLite).Verify(t.Context(), session.NewPrograms()))
		},
		Rebuild: func(t *testing.T, s storetest.EraseStore) error {
			return check(s.(*store.SQLite).Rebuild(t.Context(), session.NewPrograms(), store.RebuildOptions{}))
		},
		FoundIn: func(t *testing.T, words []string, path string) []string { return foundIn(t, words, path, path+"-wal") },
		File:    archiveFile,
		Reading: func(t *testing.T) func() {
			db := openRaw(t, path)
			conn, err := db.Conn(t.Context())
			if err == nil {
				_, err = conn.ExecContext(t.Context(), `BEGIN`)
			}
			var n int
			if err == nil {
				err = conn.QueryRowContext(t.Context(), `SELECT count(*) FROM log`).Scan(&n)
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := errors.Join(conn.Close(), db.Close()); err != nil {
					t.Error(err)
				}
			}
		},
	}
}

// foundIn returns which words stand in the bytes of files.
func foundIn(t *testing.T, words []string, files ...string) (found []string) {
	t.Helper()
	for _, word := range words {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte(word)) {
				found = append(found, word)
				break
			}
		}
	}
	return found
}

// words returns which of the words stand in the bytes of the files.
func (a *aStore) words(paths ...string) (found []string) {
	a.Helper()
	for _, path := range paths {
		for _, file := range []string{path, path + "-wal"} {
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				a.Fatal(err)
			}
			for _, word := range storetest.Said {
				if bytes.Contains(data, []byte(word)) {
					found = append(found, filepath.Base(file)+" "+word)
				}
			}
		}
	}
	return found
}

// opened is with for a store that keeps events readable, so that words are found that are there.
func (a *aStore) opened(f func(r *runner.Runner, s *store.SQLite)) {
	a.Helper()
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{Plain: true})
	a.ok(err)
	r, err := runner.New(runner.Config{Store: s})
	a.ok(err)
	f(r, s)
	a.ok(s.Close())
}

// TestErase: what was said is nowhere in the file; what happened and what it taught stays, and is verified and
// rebuilt; the rest of the store is as it was.
func TestErase(t *testing.T) {
	a, id, fork := spoken(t, true)
	report := a.rebuild(false)
	if report.Difference != nil {
		t.Fatal(report.Difference)
	}
	a.exec(`UPDATE log SET events=CAST(unpacked(events) AS BLOB)`) // so that words can be found
	if found := a.words(a.path); len(found) < len(storetest.Said) {
		t.Fatalf("only these are there before: %v", found)
	}
	others, _ := a.logs(a.path)
	db := openRaw(t, a.path)
	before := map[string]string{}
	tables := []string{`alignment ORDER BY 1, 2, 3`, `lessons ORDER BY id`, `roster_log`, `definitions`}
	for _, table := range tables {
		var b strings.Builder
		a.ok(writeRows(&b, db, `SELECT * FROM `+table))
		before[table] = b.String()
	}
	a.ok(db.Close())
	a.opened(func(r *runner.Runner, s *store.SQLite) {
		head, err := s.Head(a.ctx)
		a.ok(err)
		may, err := s.Erasable(a.ctx, eraseOf(id))
		a.ok(err)
		done, err := s.Erase(a.ctx, eraseOf(id))
		a.ok(err)
		if fmt.Sprint(may) != fmt.Sprint(done) || len(done.Sessions) != 2 || done.Sessions[0].SessionID != fork.String() || done.Sessions[1].Audit != 2 || done.Sessions[1].AgentLog != 1 || done.Sessions[1].Records < 3 {
			t.Errorf("erased: %+v, would: %+v", done, may)
		}
		if found := a.words(a.path); len(found) > 0 { // while it is open: also in the write-ahead log
			t.Errorf("still there: %v", found)
		}
		if report, err := s.Verify(a.ctx, session.NewPrograms(), head); err != nil || report.Difference != nil {
			t.Errorf("verified against the head from before: %v %v", err, report.Difference)
		}
		for _, one := range []specialist.SessionID{id, fork} {
			now, err := r.Session(a.ctx, one)
			if a.ok(err); now.Status != session.Completed || !now.Erased() || !strings.HasPrefix(now.Subject(), "[erased ") {
				t.Errorf("session is %v, subject %q", now.Status, now.Subject())
			}
			if _, err := r.Fork(a.ctx, one, runner.Forking{At: 2}); !errors.Is(err, runner.ErrNotRunning) {
				t.Errorf("forked: %v", err)
			}
		}
		exemplars, err := s.Exemplars(a.ctx, "talking", "", 0)
		if a.ok(err); len(exemplars) != 0 {
			t.Errorf("exemplars: %v", exemplars)
		}
		again, err := s.Erase(a.ctx, eraseOf(id))
		if a.ok(err); len(again.Sessions) != 0 {
			t.Errorf("erased again: %+v", again)
		}
	})
	a.opened(func(r *runner.Runner, s *store.SQLite) { // folded anew
		_, err := r.Session(a.ctx, id)
		a.ok(err)
	})
	a.whole(a.path)
	db = openRaw(t, a.path)
	for _, table := range tables {
		var b strings.Builder
		if a.ok(writeRows(&b, db, `SELECT * FROM `+table)); b.String() != before[table] {
			t.Errorf("%s: %s", table, firstDifference(before[table], b.String()))
		}
	}
	a.ok(db.Close())
	now, _ := a.logs(a.path)
	for _, one := range a.ids {
		if one != id && one != fork && now[one] != others[one] {
			t.Errorf("the log of another session is other: %s", firstDifference(others[one], now[one]))
		}
	}
	dump := a.dump()
	if report := a.rebuild(false); report.Difference != nil {
		t.Fatal(report.Difference)
	}
	if rebuilt := a.dump(); rebuilt != dump {
		t.Errorf("rebuilt it is another one: %s", firstDifference(dump, rebuilt))
	}
	a.whole(a.path)
	if found := a.words(a.path); len(found) > 0 {
		t.Errorf("rebuilt: %v", found)
	}
}

// TestEraseRefused: nothing is changed where a fork lives, where the log is damaged, in an archive, of what is not there, and by
// looking.
func TestEraseRefused(t *testing.T) {
	a, id, fork := spoken(t, false)
	a.with(func(r *runner.Runner, _ *store.SQLite) { // one of the fork has ended, and would come first
		forked, err := r.Fork(a.ctx, fork, runner.Forking{})
		a.ok(err)
		_, err = r.Step(a.ctx, forked.ID)
		a.ok(err)
		_, err = r.Decide(a.ctx, runner.Ruling{SessionID: forked.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "x"})
		a.ok(err)
	})
	dump := a.dump()
	with := func(what string, o store.EraseOptions, wrong func(err error) bool) {
		t.Helper()
		a.with(func(_ *runner.Runner, s *store.SQLite) {
			for _, err := range []error{func() error { _, err := s.Erasable(a.ctx, o); return err }(), func() error { _, err := s.Erase(a.ctx, o); return err }()} {
				if err == nil || !wrong(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
		if now := a.dump(); now != dump {
			t.Errorf("%s: %s", what, firstDifference(dump, now))
		}
	}
	with("a fork lives", eraseOf(id), func(err error) bool {
		live, ok := errors.AsType[*store.EraseLiveError](err)
		return ok && live.ID == fork.String() && live.ForkedFrom == id.String()
	})
	with("unknown", eraseOf(specialist.SessionID{1}), func(err error) bool { return errors.Is(err, session.ErrNotFound) })
	nobody := eraseOf(specialist.SessionID{})
	nobody.Subject = "wordsubject"
	with("no such subject", nobody, func(err error) bool { return errors.Is(err, session.ErrNotFound) })
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		_, err := r.Decide(a.ctx, runner.Ruling{SessionID: fork, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "x"})
		a.ok(err)
	})
	dump = a.dump()
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		may, err := s.Erasable(a.ctx, eraseOf(id))
		if a.ok(err); len(may.Sessions) != 3 {
			t.Errorf("it would erase %+v", may)
		}
	})
	if now := a.dump(); now != dump {
		t.Errorf("looking has changed it: %s", firstDifference(dump, now))
	}
	a.exec(`UPDATE log SET events=CAST(replace(unpacked(events), 'wordruling', 'wordrulinx') AS BLOB) WHERE instr(unpacked(events), 'wordruling')>0`)
	dump = a.dump()
	with("damaged", eraseOf(id), func(err error) bool {
		_, ok := errors.AsType[*session.CorruptError](err)
		return ok && strings.Contains(err.Error(), "hash")
	})
}

// TestEraseTampered: whatever is altered of an erased record, entry or proof is found.
func TestEraseTampered(t *testing.T) {
	a, id, _ := spoken(t, true)
	a.exec(`UPDATE log SET events=CAST(unpacked(events) AS BLOB)`)
	whole, err := os.ReadFile(a.path)
	a.ok(err)
	a.opened(func(_ *runner.Runner, s *store.SQLite) {
		_, err := s.Erase(a.ctx, eraseOf(id))
		a.ok(err)
	})
	erased, err := os.ReadFile(a.path)
	a.ok(err)
	found := func(what string) {
		t.Helper()
		if report := a.verify(); report.Difference == nil || report.Difference.Repaired {
			t.Errorf("%s: not found: %v", what, report.Difference)
		}
		a.ok(os.WriteFile(a.path, erased, 0o600))
	}
	row := a.column(`SELECT id FROM sessions WHERE session_id='` + id.String() + `'`)
	for _, table := range []struct{ name, column, which string }{
		{"log", "events", "session=" + row}, {"agent_log", "event", "session=" + row}, {"llm_audit", "entry", "session_id='" + id.String() + "'"},
	} {
		ids := strings.Split(a.column(`SELECT group_concat(id) FROM (SELECT id FROM `+table.name+` WHERE `+table.which+` ORDER BY id)`), ",")
		for _, place := range ids {
			size := len(a.column(`SELECT ` + table.column + ` FROM ` + table.name + ` WHERE id=` + place))
			step := 1 + size/6
			for at := 1; at <= size; at += step {
				kind := map[string]string{"log": "BLOB"}[table.name]
				if kind == "" {
					kind = "TEXT"
				}
				a.exec(fmt.Sprintf(`UPDATE %[1]s SET %[2]s=CAST(substr(CAST(%[2]s AS TEXT), 1, %[3]d-1) || CASE substr(CAST(%[2]s AS TEXT), %[3]d, 1) WHEN 'e' THEN 'f' ELSE 'e' END || substr(CAST(%[2]s AS TEXT), %[3]d+1) AS %[4]s) WHERE id=%[5]s`,
					table.name, table.column, at, kind, place))
				found(fmt.Sprintf("byte %d of %s %s", at, table.name, place))
			}
			a.exec(fmt.Sprintf(`UPDATE %s SET hash=CAST(CASE substr(hash, 1, 1) WHEN x'00' THEN x'01' ELSE x'00' END || substr(hash, 2) AS BLOB) WHERE id=%s`, table.name, place))
			found(fmt.Sprintf("hash of %s %s", table.name, place))
		}
		// what was there before is put back
		a.ok(os.WriteFile(a.path, whole, 0o600))
		db := openRaw(t, a.path)
		was := map[string]string{}
		for _, place := range ids {
			var text string
			if err := db.QueryRow(`SELECT CAST(` + table.column + ` AS TEXT) FROM ` + table.name + ` WHERE id=` + place).Scan(&text); err == nil {
				was[place] = text
			}
		}
		a.ok(db.Close())
		a.ok(os.WriteFile(a.path, erased, 0o600))
		for _, place := range ids {
			if text := was[place]; text != "" && text != a.column(`SELECT CAST(`+table.column+` AS TEXT) FROM `+table.name+` WHERE id=`+place) {
				cast := "?"
				if table.name == "log" {
					cast = "CAST(? AS BLOB)"
				}
				a.exec(`UPDATE `+table.name+` SET `+table.column+`=`+cast+` WHERE id=`+place, text)
				found("put back " + table.name + " " + place)
			}
		}
	}
	a.whole(a.path)
}

// TestEraseRemembered: what a server keeps of an erased session goes, what it keeps of others stays.
func TestEraseRemembered(t *testing.T) {
	a, id, fork := spoken(t, true)
	path := store.ControlPath(a.path)
	c, err := store.OpenControl(a.ctx, path, store.SQLiteOptions{})
	a.ok(err)
	a.ok(c.Close())
	db := openRaw(t, path)
	const webhook = `INSERT INTO deliveries (delivery_id, webhook, type, body, created_at, next_at) VALUES (?, 1, 'x', ?, 1, 1)`
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := db.Exec(query, args...)
		a.ok(err)
	}
	for i, of := range []string{id.String(), fork.String(), a.ids[0].String()} {
		exec(`INSERT INTO receipts (key, body, at, process, turn, status, location, answer) VALUES (?, x'01', 1, 'p', 1, 201, ?, NULL)`, []byte{byte(i)}, "/v1/sessions/"+of)
		exec(`INSERT INTO receipts (key, body, at, process, turn, status, answer) VALUES (?, x'01', 1, 'p', 1, 200, ?)`, []byte{byte(i), 1}, []byte(`{"id":"`+of+`","reasoning":"wordruling"}`))
		exec(webhook, fmt.Sprint("d", i), `{"sessionId":"`+of+`","text":"wordproposal"}`)
		exec(`INSERT INTO results (job, result, finding) VALUES (?, ?, NULL)`, i+1, []byte("session "+of+" wordreason"))
		exec(`INSERT INTO claims (tenant, question_id, subject, specialist_id, at, expires_at, note) VALUES ('', ?, 's', 'h', 1, 2, 'wordnote')`, of+".round")
	}
	exec(`INSERT INTO receipts (key, body, at, process, turn) VALUES (x'09', x'01', 1, 'p', 1)`) // begun
	a.ok(db.Close())
	count := func() (n int) {
		db := openRaw(t, path)
		defer db.Close()
		a.ok(db.QueryRow(`SELECT (SELECT count(*) FROM receipts) + (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM results) + (SELECT count(*) FROM claims)`).Scan(&n))
		return n
	}
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		may, err := s.Erasable(a.ctx, eraseOf(id))
		if a.ok(err); may.Remembered != 10 || count() != 16 {
			t.Errorf("it would delete %d of %d rows", may.Remembered, count())
		}
		done, err := s.Erase(a.ctx, eraseOf(id))
		if a.ok(err); done.Remembered != 10 || count() != 6 {
			t.Errorf("it has deleted %d rows, and left %d", done.Remembered, count())
		}
	})
	data, err := os.ReadFile(path)
	a.ok(err)
	for _, gone := range []string{id.String(), fork.String()} {
		if bytes.Contains(data, []byte(gone)) {
			t.Errorf("%s is still named in the file", gone)
		}
	}
}
