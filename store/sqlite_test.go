package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

const small = `{ "machineName": "small", "initialState": "a", "goalState": "z",
	"states": { "a": { "transitions": { "on": "a", "stop": "z" } }, "z": {} },
	"specialists": [ { "role": "proposer", "specialistId": "p", "strategyFnName": "lastAvailable" }, { "role": "proposer", "specialistId": "h", "isHuman": true },
		{ "role": "arbiter", "specialistId": "x" } ] }`

// aStore is a file with some sessions in it, forced decisions among them.
type aStore struct {
	*testing.T
	ctx  context.Context
	path string
	ids  []specialist.SessionID
}

func newStore(t *testing.T) *aStore {
	a := &aStore{T: t, ctx: context.Background(), path: filepath.Join(t.TempDir(), "dialai.db")}
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		m, err := machine.Parse("small.json", []byte(small), runner.Checks())
		a.ok(err)
		for range 3 {
			s, err := r.Start(a.ctx, m, runner.StartOptions{})
			a.ok(err)
			a.ids = append(a.ids, s.ID)
			for range 4 {
				_, _, err := r.Propose(a.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "p"})
				a.ok(err)
				a.force(r, s.ID)
			}
		}
		a.ok(r.Disable(a.ctx, "small", "p"))
		a.ok(r.Enable(a.ctx, "small", "p"))
	})
	return a
}

func (a *aStore) ok(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *aStore) force(r *runner.Runner, id specialist.SessionID) {
	a.Helper()
	res, err := r.Decide(a.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on", Reasoning: "go on"})
	a.ok(err)
	if !res.Executed {
		a.Fatal(res.GuardReason)
	}
}

func (a *aStore) with(f func(r *runner.Runner, s *store.SQLite)) {
	a.Helper()
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{BusyTimeout: 100 * time.Millisecond})
	a.ok(err)
	defer func() { a.ok(s.Close()) }()
	r, err := runner.New(runner.Config{Store: s})
	a.ok(err)
	f(r, s)
}

// exec changes the file behind the store's back.
func (a *aStore) exec(query string, args ...any) {
	a.Helper()
	db, err := sql.Open("sqlite", a.path)
	a.ok(err)
	defer db.Close()
	result, err := db.Exec(query, args...)
	a.ok(err)
	if n, err := result.RowsAffected(); err == nil && n == 0 && !strings.HasPrefix(query, "PRAGMA") {
		a.Fatalf("%s changed nothing", query)
	}
}

func (a *aStore) verify() (report store.Report) {
	a.Helper()
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var err error
		report, err = s.Verify(a.ctx, session.NewPrograms())
		a.ok(err)
	})
	return report
}

func (a *aStore) rebuild(acceptCut bool) (report store.Report) {
	a.Helper()
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var err error
		report, err = s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{AcceptCut: acceptCut})
		a.ok(err)
	})
	return report
}

func TestVerifyClean(t *testing.T) {
	a := newStore(t)
	if r := a.verify(); r.Difference != nil || r.Sessions != 3 || r.Records != 3*(1+4*2)+2 {
		t.Fatalf("Verify of an untouched store = %+v, %v", r, r.Difference)
	}
}

// TestVerifyFlippedByte flips every byte of one record, one at a time: whichever
// it is, verify names the record, or a later one if it was a link of the chain.
func TestVerifyFlippedByte(t *testing.T) {
	a := newStore(t)
	var events, hash []byte
	db, err := sql.Open("sqlite", a.path)
	a.ok(err)
	defer db.Close()
	const row = 5
	a.ok(db.QueryRow(`SELECT events, hash FROM log WHERE id=?`, row).Scan(&events, &hash))
	for _, c := range []struct {
		column string
		data   []byte
		step   int
	}{{"events", events, 3}, {"hash", hash, 3}} {
		for i := 0; i < len(c.data); i += c.step * fewer {
			flipped := append([]byte(nil), c.data...)
			flipped[i] ^= 1
			set := func(v []byte) {
				_, err := db.Exec(fmt.Sprintf(`UPDATE log SET %s=? WHERE id=?`, c.column), v, row)
				a.ok(err)
			}
			set(flipped)
			if r := a.verify(); r.Difference == nil || !r.Difference.InLog || r.Difference.Seq == 0 {
				t.Fatalf("byte %d of %s flipped, and Verify = %v", i, c.column, r.Difference)
			}
			set(c.data)
		}
	}
	if r := a.verify(); r.Difference != nil {
		t.Fatalf("mended again, Verify = %v", r.Difference)
	}
}

// TestVerifyDamage damages the file in every way it can be, and says what verify
// and rebuild must make of it.
func TestVerifyDamage(t *testing.T) {
	for i, c := range []struct {
		name, query string
		in          string // what verify must mention
		mended      bool   // by rebuild
	}{
		{"a record is gone", `DELETE FROM log WHERE id=5`, "removed or altered", false},
		{"the tail is cut off", `DELETE FROM log WHERE session=2 AND first=(SELECT max(first) FROM log WHERE session=2)`, "cut off", false},
		{"a whole log is gone", `DELETE FROM log WHERE session=2`, "its log is gone", false},
		{"two records change places", `UPDATE log SET id=id+1000 WHERE id=5; UPDATE log SET id=id-1 WHERE id=6; UPDATE log SET id=6 WHERE id=1005`, "", false},
		{"the number of a first event is altered", `UPDATE log SET first=first+1000 WHERE id=5`, "beside the record at place 5", true},
		{"a time is altered", `UPDATE log SET at=at+1 WHERE id=6`, "beside the record at place 6", true},
		{"a session is gone", `DELETE FROM log WHERE session=2; DELETE FROM sessions WHERE id=2`, "hold no record any more", false},
		{"a roster record is altered", `UPDATE roster_log SET events=replace(events, 'disabled', 'enabled_') WHERE first=1`, "altered", false},
		{"a definition is altered", `UPDATE definitions SET definition=replace(definition, 'lastAvailable', 'firstAvailable')`, "digest", false},
		{"a definition is gone", `DELETE FROM definitions`, "not stored", false},
		{"a status is altered", `UPDATE sessions SET status='completed' WHERE id=1`, "row in sessions", true},
		{"a sequence is lowered", `UPDATE sessions SET sequence=sequence-1 WHERE id=1`, "row in sessions", true},
		{"a session's row is gone", `DELETE FROM sessions WHERE id=2`, "rows", true},
		{"a driver is altered", `UPDATE sessions SET driver='temporal' WHERE id=2`, "row in sessions", true},
		{"a wait is altered", `UPDATE sessions SET since=1 WHERE id=2`, "row in sessions", true},
		{"spend is altered", `UPDATE sessions SET cost_pico_usd=5 WHERE id=3`, "row in sessions", true},
		{"trust is inflated", `UPDATE alignment SET matching=total`, "alignment", true},
		{"trust is gone", `DELETE FROM alignment`, "alignment", true},
		{"a lesson is altered", `UPDATE lessons SET lesson=replace(lesson, 'truth', 'pick') WHERE id=(SELECT min(id) FROM lessons)`, "lessons", true},
		{"a lesson is gone", `DELETE FROM lessons WHERE id=(SELECT max(id) FROM lessons)`, "lessons", true},
		{"a lesson is invented", `INSERT INTO lessons (lesson) VALUES ('{}')`, "lessons", true},
		{"an exemplar is altered", `UPDATE exemplars SET exemplar=replace(exemplar, 'go on', 'stop!') WHERE id=3`, "exemplars", true},
		{"an exemplar is gone", `DELETE FROM exemplars WHERE id=3`, "exemplars", true},
		{"an exemplar is invented", `INSERT INTO exemplars (machine, state, exemplar) VALUES (1, 'a', '{}')`, "exemplars", true},
		{"trust is older than what was learned", `UPDATE machines SET trust_version=trust_version-1`, "trust version", true},
		{"a decision is unmarked", `UPDATE log SET decides=NULL WHERE decides IS NOT NULL`, "decides", true},
		{"a comment of the schema is altered", `PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(sql, 'a JSON array', 'b JSON array') WHERE name='log'`, "a comment or a blank in the text that made table log", true},
		{"a migration is listed as undone", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 0)`, "it does not list the migrations", false},
		{"a decision is invented", `UPDATE log SET decides=1 WHERE first=1`, "decides", true},
	} {
		if i%(1+fewer/6) != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			a := newStore(t)
			a.exec(c.query)
			r := a.verify()
			if r.Difference == nil || !strings.Contains(r.Difference.Error(), c.in) {
				t.Fatalf("Verify = %v, want a difference about %q", r.Difference, c.in)
			}
			rebuilt := a.rebuild(false)
			if mended := rebuilt.Difference == nil; mended != c.mended {
				t.Fatalf("Rebuild = %v, want mended = %t", rebuilt.Difference, c.mended)
			}
			if after := a.verify(); (after.Difference == nil) != c.mended {
				t.Fatalf("after Rebuild, Verify = %v", after.Difference)
			}
		})
	}
}

// TestVerifyAgentLogs: whatever becomes of an entry of an agent_log, verify names the session
// and the entry, also after a rebuild.
func TestVerifyAgentLogs(t *testing.T) {
	for name, query := range map[string]string{
		"altered":                              `UPDATE agent_log SET event=replace(event, 'two', 'TWO') WHERE id=2`,
		"its hash altered":                     `UPDATE agent_log SET hash=zeroblob(32) WHERE id=2`,
		"removed":                              `DELETE FROM agent_log WHERE id=2`,
		"removed, and no gap left":             `DELETE FROM agent_log WHERE id=2; UPDATE agent_log SET id=id-1, seq=2 WHERE id=3; UPDATE agent_log SET id=3 WHERE id=4`,
		"renumbered":                           `UPDATE agent_log SET seq=7 WHERE id=2`,
		"moved to another session":             `UPDATE agent_log SET session=3, seq=1 WHERE id=2`,
		"moved to no session, alone":           `UPDATE agent_log SET session=9, seq=1 WHERE id=2`,
		"all of a session moved to another":    `UPDATE agent_log SET session=3 WHERE session=1`,
		"all of a session moved to no session": `UPDATE agent_log SET session=9 WHERE session=1`,
	} {
		t.Run(name, func(t *testing.T) {
			a := newStore(t)
			a.with(func(_ *runner.Runner, s *store.SQLite) {
				for row, texts := range [][]string{{"one", "two", "three"}, {"other"}} {
					id, err := session.ParseID(a.column(fmt.Sprintf(`SELECT session_id FROM sessions WHERE id=%d`, row+1)))
					a.ok(err)
					for i, text := range texts {
						a.ok(s.AppendAgentLog(a.ctx, id, int64(i), session.AgentEvent{Kind: "note", Data: []byte(`{"text":"` + text + `"}`)}))
					}
				}
			})
			if r := a.verify(); r.Difference != nil {
				t.Fatalf("untouched, Verify = %v", r.Difference)
			}
			a.exec(query)
			for range 2 {
				if d := a.verify().Difference; d == nil || d.Kind != "agent_log" || d.Stream == "" || d.Seq == 0 || d.Repaired {
					t.Errorf("Verify = %+v, want a difference of an agent_log", d)
				}
				a.rebuild(false)
			}
		})
	}
}

// TestVerifySaysWhatItDoesNotCompare: what no record says passes, but not unsaid. A rebuild
// that changes nothing leaves no record, and raises the version of trust by one.
func TestVerifySaysWhatItDoesNotCompare(t *testing.T) {
	a := newStore(t)
	if r := a.rebuild(false); r.Difference != nil {
		t.Fatal(r.Difference)
	}
	a.exec(`UPDATE machines SET trust_version=trust_version+1`)
	a.exec(`UPDATE goose_db_version SET tstamp='2026-11-22 19:36:34'`)
	r := a.verify()
	if r.Difference != nil {
		t.Fatal(r.Difference)
	}
	for _, unsaid := range []string{"how often trust was rebuilt", "when migrations ran"} {
		if !strings.Contains(strings.Join(r.Unknown, "\n"), unsaid) {
			t.Errorf("it does not say that it cannot know %s: %q", unsaid, r.Unknown)
		}
	}
}

// TestVerifyNamesEverything: no difference is about something without a name, also where a
// definition says no name.
func TestVerifyNamesEverything(t *testing.T) {
	const nameless = `{"states":{}}`
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(nameless)))
	for query, want := range map[string]string{
		`UPDATE definitions SET definition='{"machineNa'`:                                                                "definition ",
		`INSERT INTO definitions (machine_digest, machine, definition) VALUES ('` + digest + `', 1, '` + nameless + `')`: "definition " + digest + ": it names no machine",
	} {
		a := newStore(t)
		a.exec(query)
		r := a.verify()
		if r.Difference == nil || !strings.Contains(r.Difference.Error(), want) {
			t.Errorf("%s: %v", query, r.Difference)
		}
		for _, d := range r.Differences {
			if strings.HasPrefix(d.What, " ") || strings.TrimSpace(d.Stream) == "" {
				t.Errorf("%s: what is damaged has no name: %v", query, d)
			}
		}
	}
}

func TestRebuildAcceptsCut(t *testing.T) {
	a := newStore(t)
	a.exec(`DELETE FROM log WHERE session=2 AND first=(SELECT max(first) FROM log WHERE session=2)`)
	if r := a.rebuild(true); r.Difference != nil {
		t.Fatalf("Rebuild = %v", r.Difference)
	}
	if r := a.verify(); r.Difference != nil {
		t.Fatalf("Verify = %v", r.Difference)
	}
	a.with(func(r *runner.Runner, _ *store.SQLite) { a.force(r, a.ids[1]) }) // and the session goes on
}

// TestLoadRefusesDamage proves that no session goes on from a log that was
// altered.
func TestLoadRefusesDamage(t *testing.T) {
	for _, query := range []string{
		`UPDATE log SET events=CAST(replace(unpacked(events), 'go on', 'goes on') AS BLOB) WHERE session=1 AND unpacked(events) LIKE '%go on%'`,
		`DELETE FROM log WHERE session=1 AND first>1`,
		`UPDATE sessions SET sequence=sequence+1 WHERE id=1`,
		`UPDATE sessions SET head=zeroblob(32) WHERE id=1`,
	} {
		a := newStore(t)
		a.exec(query)
		a.with(func(r *runner.Runner, _ *store.SQLite) {
			var corrupt *session.CorruptError
			if _, err := r.Step(a.ctx, a.ids[0]); !errors.As(err, &corrupt) {
				t.Errorf("after %s, Step = %v, want a CorruptError", query, err)
			}
			if _, err := r.Step(a.ctx, a.ids[1]); err != nil {
				t.Errorf("another session is touched by it: %v", err)
			}
		})
	}
}

// TestNewerRecord: a session to which a newer version has written is refused as that, whichever part of it is new, and
// is not taken for damaged; others go on.
func TestNewerRecord(t *testing.T) {
	for what, events := range map[string]string{
		"event 27 is of the kind \"foretold\"": `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"foretold","sure":true}]`,
		"it is packed in form 7":               "\x07packed",
		"event 27 has the driver \"cron\"":     `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"driver_changed","data":{"driver":"cron"}}]`,
		"event 27 has the review \"appeal\"":   `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"reviewed","data":{"review":"appeal"}}]`,
		"event 27 has the decision \"lot\"":    `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"executed","data":{"decision":"lot","transitionName":"drawn"}}]`,
		"event 27 has the role \"oracle\"":     `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"asked","data":{"asks":[{"role":"oracle"}]}}]`,
	} {
		a := newStore(t)
		id := a.ids[0].String()
		var head session.Hash
		a.with(func(r *runner.Runner, s *store.SQLite) {
			is, err := s.Load(a.ctx, session.NewPrograms(), a.ids[0])
			a.ok(err)
			if head = *is.Head; is.Sequence != 26 {
				t.Fatalf("the session is at event %d", is.Sequence)
			}
		})
		hash := session.Chain(head, id, []byte(events))
		a.exec(`INSERT INTO log (session, first, at, events, hash) VALUES (1, 27, 1, ?, ?)`, []byte(events), hash[:])
		a.exec(`UPDATE sessions SET sequence=27, head=? WHERE id=1`, hash[:])
		a.with(func(r *runner.Runner, _ *store.SQLite) {
			_, err := r.Step(a.ctx, a.ids[0])
			newer, ok := errors.AsType[*session.NewerError](err)
			if !ok || newer.Has != what || newer.What != "the log of session "+id || !errors.As(err, new(*session.CorruptError)) || strings.Contains(err.Error(), "damaged") {
				t.Errorf("Step = %v, want %q", err, what)
			}
			if _, err := r.Step(a.ctx, a.ids[1]); err != nil {
				t.Errorf("another session is touched by it: %v", err)
			}
		})
		d := a.verify().Difference
		if d == nil || d.Kind != "newer" || d.Stream != id || d.InLog || d.Repaired || !strings.HasSuffix(d.Error(), "update the program; then look again") {
			t.Errorf("Verify = %+v", d)
		}
		if r := a.rebuild(true); r.Difference == nil || r.Difference.Kind != "newer" {
			t.Errorf("a rebuild says %+v", r.Difference)
		}
	}
}

// TestValueMissing: that an event has not the value which all of its kind have, no version has written.
func TestValueMissing(t *testing.T) {
	a := newStore(t)
	var is *session.Session
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		var err error
		is, err = r.Session(a.ctx, a.ids[0])
		a.ok(err)
	})
	events := `[{"seq":27,"at":"2026-11-22T00:00:00Z","kind":"reviewed","data":{}}]`
	hash := session.Chain(*is.Head, is.ID.String(), []byte(events))
	a.exec(`INSERT INTO log (session, first, at, events, hash) VALUES (1, 27, 1, ?, ?)`, []byte(events), hash[:])
	a.exec(`UPDATE sessions SET sequence=27, head=? WHERE id=1`, hash[:])
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		if _, err := r.Step(a.ctx, is.ID); errors.As(err, new(*session.NewerError)) || !errors.As(err, new(*session.CorruptError)) {
			t.Errorf("Step = %v", err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE notes (text TEXT)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	before, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	newer := newStore(t)
	newer.exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
	file := write("file", "")
	for _, c := range []struct{ name, path, want string }{
		{"garbage", write("garbage.db", strings.Repeat("not a database ", 100)), "not a SQLite database"},
		{"another program's", foreign, "another program"},
		{"newer", newer.path, "newer version of dialai"},
		{"a directory", dir, "it is a directory, not a file"},
		{"a device", os.DevNull, "it is not a regular file, as a device or a pipe is not"},
		{"a file for a directory", filepath.Join(file, "x.db"), "not a directory"},
		{"SQLite's memory", ":memory:", "not the path of a file"},
		{"no path", "", "not the path of a file"},
	} {
		_, err := store.OpenSQLite(context.Background(), c.path, store.SQLiteOptions{})
		var open *store.OpenError
		if !errors.As(err, &open) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: OpenSQLite = %v, want an OpenError about %q", c.name, err, c.want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "garbage.db")); err != nil || !strings.HasPrefix(string(data), "not a database") {
		t.Errorf("the refused file was changed: %.20q (%v)", data, err)
	}
	if after, err := os.ReadFile(foreign); err != nil || !bytes.Equal(before, after) {
		t.Errorf("another program's file was changed (%v)", err)
	}
}

// TestNothingForANumber reads a record whose session a flipped byte has made NULL.
func TestNothingForANumber(t *testing.T) {
	a := newStore(t)
	a.exec(`PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql=replace(sql, 'session INTEGER NOT NULL', 'session INTEGER') WHERE name='log'`)
	a.exec(`UPDATE log SET session=NULL WHERE id=5`)
	if r := a.verify(); r.Difference == nil || r.Difference.Kind != "schema" {
		t.Errorf("Verify = %v, want a difference in the schema", r.Difference)
	}
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		var corrupt *session.CorruptError
		for _, err := range s.Log(a.ctx, "", 0) {
			if err != nil && !errors.As(err, &corrupt) {
				t.Errorf("Log = %v", err)
			}
		}
	})
}

func TestTruncatedFile(t *testing.T) {
	a := newStore(t)
	a.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	info, err := os.Stat(a.path)
	a.ok(err)
	a.ok(os.Truncate(a.path, info.Size()/2))
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
	if err == nil {
		_, err = s.Verify(a.ctx, session.NewPrograms())
		s.Close()
	}
	var corrupt *session.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("half a file = %v, want a CorruptError", err)
	}
}

// TestEmptyFileBecomesAStore: a file that is empty and that everybody may read becomes a store that only its owner may; whom its mode lets
// in otherwise stays, as does that of a store.
func TestEmptyFileBecomesAStore(t *testing.T) {
	open := func(path string) os.FileMode {
		t.Helper()
		s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.Stat(path)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return is.Mode().Perm()
	}
	for before, want := range map[os.FileMode]os.FileMode{0o644: 0o600, 0o666: 0o600, 0o640: 0o640, 0o600: 0o600} {
		path := filepath.Join(t.TempDir(), "dialai.db")
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, before)); err != nil {
			t.Fatal(err)
		}
		if is := open(path); is != want {
			t.Errorf("an empty file of mode %o is a store of mode %o, want %o", before, is, want)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if is := open(path); is != 0o644 {
			t.Errorf("a store of mode 644 has mode %o once it was opened", is)
		}
	}
}

// TestDiskFull fills the disk: the commit fails with its name, nothing that was
// stored is lost, and once there is room the session goes on.
func TestDiskFull(t *testing.T) {
	a := newStore(t)
	a.with(func(r *runner.Runner, s *store.SQLite) {
		a.ok(s.WriterExec(`PRAGMA max_page_count=1`)) // as many as there are
		var err error
		for i := 0; err == nil && i < 1000; i++ {
			_, err = r.Decide(a.ctx, runner.Ruling{SessionID: a.ids[0], RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on", Reasoning: strings.Repeat("x", 4000)})
		}
		if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), ", for "+a.path) {
			t.Fatalf("on a full disk Decide = %v, want ErrFull, and the file", err)
		}
		before, err := r.Session(a.ctx, a.ids[0])
		a.ok(err)
		a.ok(s.WriterExec(`PRAGMA max_page_count=1000000`))
		a.force(r, a.ids[0])
		after, err := r.Session(a.ctx, a.ids[0])
		a.ok(err)
		if after.Executed != before.Executed+1 {
			t.Fatalf("the session went from %d to %d transitions", before.Executed, after.Executed)
		}
	})
	if r := a.verify(); r.Difference != nil {
		t.Fatal(r.Difference)
	}
}

func TestLockedByAnother(t *testing.T) {
	a := newStore(t)
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		db, err := sql.Open("sqlite", a.path)
		a.ok(err)
		defer db.Close()
		conn, err := db.Conn(a.ctx)
		a.ok(err)
		_, err = conn.ExecContext(a.ctx, `BEGIN IMMEDIATE`)
		a.ok(err)
		_, err = r.Decide(a.ctx, runner.Ruling{SessionID: a.ids[0], RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on"})
		if !errors.Is(err, session.ErrBusy) {
			t.Fatalf("on a locked store Decide = %v, want ErrBusy", err)
		}
		_, err = conn.ExecContext(a.ctx, `ROLLBACK`)
		a.ok(err)
		a.ok(conn.Close())
		a.force(r, a.ids[0])
	})
}

// TestTwoProcesses has two stores over one file, as two processes would: what one
// commits the other sees, trust and rosters included, although both cache.
func TestTwoProcesses(t *testing.T) {
	a := newStore(t)
	a.with(func(r1 *runner.Runner, s1 *store.SQLite) {
		a.with(func(r2 *runner.Runner, s2 *store.SQLite) {
			look := func(r *runner.Runner, s *store.SQLite) string {
				session, err := r.Session(a.ctx, a.ids[0])
				a.ok(err)
				book, err := s.Book(a.ctx, "small")
				a.ok(err)
				roster, err := s.Roster(a.ctx, "small")
				a.ok(err)
				return fmt.Sprint(session.Sequence, book.Records("small"), roster.Sequence, roster.Off)
			}
			for i := range 6 {
				writer := r1
				if i%2 == 1 {
					writer = r2
				}
				_, _, err := writer.Propose(a.ctx, runner.Submission{SessionID: a.ids[0], RoundID: runner.CurrentRound, SpecialistID: "p"})
				a.ok(err)
				a.force(writer, a.ids[0])
				a.ok(writer.Disable(a.ctx, "small", "h"))
				a.ok(writer.Enable(a.ctx, "small", "h"))
				if one, two := look(r1, s1), look(r2, s2); one != two {
					t.Fatalf("after write %d one sees\n%s\nthe other\n%s", i, one, two)
				}
			}
		})
	})
}

func TestMigrateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dialai.db")
	var wg sync.WaitGroup
	var mu sync.Mutex
	applied := 0
	for range 8 {
		wg.Go(func() {
			names, err := store.Migrate(context.Background(), path, store.SQLiteOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			applied += len(names)
		})
	}
	wg.Wait()
	all, err := filepath.Glob("migrations/*.sql")
	if err != nil || applied != len(all) {
		t.Fatalf("eight at once applied %d migrations, want %d (%v)", applied, len(all), err)
	}
}

func TestHostilePath(t *testing.T) {
	for _, name := range []string{"a b.db", "ä#?%41&mode=memory.db", "file:x.db", "-x.db", "'quoted'.db"} {
		path := filepath.Join(t.TempDir(), name)
		s, err := store.OpenSQLite(context.Background(), path, store.SQLiteOptions{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: the file is not there: %v", name, err)
		}
	}
}

func TestClosed(t *testing.T) {
	a := newStore(t)
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
	a.ok(err)
	r, err := runner.New(runner.Config{Store: s})
	a.ok(err)
	a.ok(s.Close())
	if _, err := r.Step(a.ctx, a.ids[0]); err == nil {
		t.Error("Step on a closed store succeeds")
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice = %v", err)
	}
}

// TestCloseLeavesOneFile: a closed store is one file, fit to be copied.
func TestCloseLeavesOneFile(t *testing.T) {
	a := newStore(t)
	for _, rest := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(a.path + rest); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", rest, err)
		}
	}
	moved := filepath.Join(t.TempDir(), "copy.db")
	data, err := os.ReadFile(a.path)
	a.ok(err)
	a.ok(os.WriteFile(moved, data, 0o600))
	s, err := store.OpenSQLite(a.ctx, moved, store.SQLiteOptions{})
	a.ok(err)
	defer s.Close()
	report, err := s.Verify(a.ctx, session.NewPrograms())
	if err != nil || report.Difference != nil || report.Sessions != len(a.ids) {
		t.Errorf("the copy: %+v, %v", report, err)
	}
}

// TestOpenTogether opens a store that does not exist from many sides at once.
func TestOpenTogether(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "new.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// TestLinks opens one file under two names: an owner lives under both, or an ask
// would be repeated while its answer is waited for.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	path, link, early := filepath.Join(dir, "real", "dialai.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "early.db")
	for _, l := range []string{link, early} {
		if err := os.Symlink(path, l); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var stores []*store.SQLite
	for _, p := range []string{early, path, link} { // there is no file yet when the first is opened
		s, err := store.OpenSQLite(t.Context(), p, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	owner, err := stores[0].Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Release()
	for _, s := range stores {
		if alive, err := s.Alive(t.Context(), owner.Name()); err != nil || !alive {
			t.Errorf("%s: the owner is alive: %t, %v", s.Path(), alive, err)
		}
	}
}

// What sessions say, and the secret of audits, is for the owner of a store alone;
// a mode that somebody has given a file stays.
func TestFileMode(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "new", "store.db")
	for _, want := range []os.FileMode{0o600, 0o640} {
		s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
		if err := errors.Join(s.Close(), os.Chmod(path, 0o640)); err != nil {
			t.Fatal(err)
		}
	}
}

// One session that is damaged does not hide the questions of the others.
func TestInboxOfADamagedStore(t *testing.T) {
	a := newStore(t)
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		a.ok(r.Disable(a.ctx, "small", "p")) // so that everybody waits
		for _, id := range a.ids {
			_, err := r.Step(a.ctx, id)
			a.ok(err)
		}
	})
	a.exec(`DELETE FROM log WHERE session=2 AND first>3`)
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		items, _, err := r.Inbox(a.ctx, session.ListQuery{}, "")
		if len(items) != 2 || items[0].SessionID != a.ids[0].String() || items[1].SessionID != a.ids[2].String() {
			t.Errorf("Inbox = %+v", items)
		}
		var damaged *session.CorruptError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), a.ids[1].String()) {
			t.Errorf("the error is %v", err)
		}
		gone, cancel := context.WithCancel(a.ctx)
		cancel()
		if _, _, err := r.Inbox(gone, session.ListQuery{}, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled Inbox: %v", err)
		}
	})
}

// TestDamageIsSaidOnce: an error about a log does not repeat itself on its way.
func TestDamageIsSaidOnce(t *testing.T) {
	a := newStore(t)
	a.exec(`UPDATE log SET events=CAST(replace(unpacked(events), '"machineName":"', '"machineName":"x') AS BLOB) WHERE session=1 AND first=1`)
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		_, err := explain.Round(a.ctx, r, a.ids[0], "")
		if err == nil || strings.Count(err.Error(), "is damaged") != 1 {
			t.Errorf("explaining a damaged session: %v", err)
		}
	})
}

func TestDirectoryAsStore(t *testing.T) {
	dir := t.TempDir()
	want := "store " + dir + ": it is a directory, not a file"
	if _, err := store.OpenSQLite(t.Context(), dir, store.SQLiteOptions{}); err == nil || err.Error() != want {
		t.Errorf("OpenSQLite = %v, want %s", err, want)
	}
	if _, err := store.Migrate(t.Context(), dir, store.SQLiteOptions{}); err == nil || err.Error() != want {
		t.Errorf("Migrate = %v, want %s", err, want)
	}
}
