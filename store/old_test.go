package store_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// sums are the checksums of the migrations. A migration that has run anywhere is
// never changed: what is wrong in it is repaired by another one.
const sums = `0001_sessions.sql 5674e06d5d95feddc66cc7c998fe64058b1d109713f5d6ac7345b05fcdb94dcd
0002_lessons.sql 98bce7db7cd32def2f99dfe2b4d227b21dfcd0db7ac19d20fceb5db2a3723495
0003_audit.sql da1dd37c176e403fb4523f02fdeb0039ec7936ec53a3d9acc811b52c85cca030
0004_ended.sql 02214c25a96f13d9380e74fbd7ef8e98243aad0e5b11dcfb723c43b255a95f42
0005_recorded.sql 17b4a3ecc4d06adf7fd49d0225b4890ff8a66858eb535173c8be3723b9b5aef3
0006_subject.sql 5ed02c3f84d2dc155b8ecee6180b6c734d38b38bc892a6c1ad075db9e03c5f2b
0007_lists.sql bfbf4f983f9bdd852ab76245d769ae03a9af70ecb7190914f989292f68e7957a
0008_due.sql 7743fbce322dba54411add8147655dd3220c7c4cd94d6a8ce40d9b3e5b0df91c
0009_started.sql e2c59176a3154b7c7da2184b99527ff42cfcc6e5564d203835f078567d1c622b
0010_agent_log.sql 37114e69e0ffd1820b3d319116a73d545bbb10d2549ec419bde460a18114271b
0011_packed.sql 67d056fef4d8ccb341ab36fb873307689f275525b4a7a4315e7e3f0c2103b6c3
0012_copied.sql dbdac0f00ae0547e3b92c9d728f80bff599f8a77047ed6ee9e4da669eb97030c
0013_ledger.sql a4c0e9c966192d3ceebc824d281a8c2ee5737151af35e0d18727b6fd17bd3ab3
0014_archived.sql eedcc8bee0637f1561a9ba75e92939af5d9e7c42e41ebf38140182ed8090507e
0015_copied.sql 80d15576f2eb8ba371d4480e59a9d46977c319c104eea930c44fa1ebcd10c7c1
0016_erased.sql 6094ebe51fcd3ccf26a5b11372f105aef6bd48513ab67429c6a316034beb8fa8
0017_snapshots.sql c8d2fb618c6d110a665bfd5895585a365877af23e8e731207519f2bbc9a7104d
0018_lesson_times.sql 7b542c53fb8c6133823cb6d8641019312df1bc7d3ee1240a05c161940f7d88e4
0019_driver.sql 5aec98fa3752308d2ffe263232c4c99aeda14b16a1753c2a59f6008799335a89
0020_since.sql b1546fb1c712869f7f0d569494ffd4318756602e48505dac59380d8dbfd64754
control/0001_control.sql 9321f8eaf4d88889e714721cb47b880a61bfc2e25fdafc4a43f5f899d6085cff
control/0002_webhooks.sql 0e24caeb4a3153ed7b52c820bf1f3246a047ba2c92c4bada3a34cb69d171b743
control/0003_step_times.sql 293cdd337158d4afac137b25f101a2ac211365ce60c787d44307a58248a90d6b
control/0004_jobs.sql 4c845a04729cc967566f6671751a2bab907ec0875b34cfaaf53d29aa9102fbd9
control/0005_bindings.sql 9475c3a9cf4a9e8dfa9cd7599982dd33bfe63d7c757fb0841700e528da8a59cd
control/0006_sign_ins.sql 0acbaa4d8cedc38dc33800fc8542cccc19574ff6aa2bac24c31b1fe764ba220a
control/0007_roster_cursor.sql f1228a808dbc3448e495a887f4f648b6f369c17c2f0936663cf2302ed55e855c
control/0008_assignments.sql 2407da6b3fd5c8189ecd03b2faa4e8f9240f8d04f2202b28e6f58170bd1ec201
control/0009_copied.sql 435f3c6a1b85a69b4b0bcc1ace2fe6a6961c662038bfdec7ff33b3208d38e6d2
replaced/0002_outcomes.sql 872212dba54c651704b0eb57444624ac69164d62086ccb81e4c5cef6369c0aef
`

// oldStores are stores of every schema there was; testdata/stores/README.md says how
// they were made.
func oldStores(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/stores/*.db.gz")
	if err != nil || len(files) < 9 {
		t.Fatalf("there are %d old stores: %v", len(files), err)
	}
	return files
}

// unpack writes an old store to a file of its own.
func unpack(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dialai.db")
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOldStores opens, verifies, goes on with and rebuilds stores of every schema,
// those whose second migration was another one included.
func TestOldStores(t *testing.T) {
	for _, file := range oldStores(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".db.gz"), func(t *testing.T) {
			a := &aStore{T: t, ctx: context.Background(), path: unpack(t, file)}
			before := a.column(`SELECT group_concat(hex(hash)) FROM log`)
			schema := a.column(`SELECT max(version_id) FROM goose_db_version`)
			names, err := store.Migrate(a.ctx, a.path, store.SQLiteOptions{})
			if now := a.column(`SELECT max(version_id) FROM goose_db_version`); err != nil || (len(names) == 0) != (schema == now) {
				t.Errorf("from schema %s to %s, %q were migrated: %v", schema, now, names, err)
			}
			if after := a.column(`SELECT group_concat(hex(hash)) FROM log`); after != before {
				t.Error("migrating changed the log")
			}
			if r := a.verify(); r.Difference != nil || r.Sessions < 4 {
				t.Fatalf("Verify = %+v, %v", r, r.Difference)
			}
			a.goOn()
			if r := a.verify(); r.Difference != nil {
				t.Fatalf("went on, Verify = %v", r.Difference)
			}
			rows := a.dump()
			if r := a.rebuild(false); r.Difference != nil {
				t.Fatalf("Rebuild = %v", r.Difference)
			}
			if r := a.verify(); r.Difference != nil {
				t.Fatalf("rebuilt, Verify = %v", r.Difference)
			}
			if again := a.dump(); again != rows {
				t.Errorf("rebuilt, the rows are others: %s", firstDifference(rows, again))
			}
		})
	}
}

// TestCopyGoesOn: a log that was being packed when its process ended is packed on by the next one; until
// then nobody takes it for one that is whole. Each record keeps its place, its hash and its events.
func TestCopyGoesOn(t *testing.T) {
	store.CopiesAtOnce(t, 3)
	for _, file := range oldStores(t) {
		a := &aStore{T: t, ctx: context.Background(), path: unpack(t, file)}
		const all = `SELECT group_concat(id || ' ' || session || ' ' || first || ' ' || at || ' ' || coalesce(decides, '') || ' ' || hex(hash) || ' ' || %s) FROM log`
		before := a.column(fmt.Sprintf(all, "events"))
		ctx, cancel := context.WithCancel(a.ctx)
		told := [][2]int64{}
		_, err := store.Migrate(ctx, a.path, store.SQLiteOptions{Migrating: func(_ string, done, of int64) {
			if told = append(told, [2]int64{done, of}); len(told) == 3 {
				cancel()
			}
		}})
		if err == nil || len(told) != 3 || told[2][0] != 6 {
			t.Fatalf("%s: ended after %v: %v", file, told, err)
		}
		if _, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "has to be migrated") {
			t.Errorf("%s is read as it is: %v", file, err)
		}
		var parts []string // that end
		_, err = store.Migrate(a.ctx, a.path, store.SQLiteOptions{Migrating: func(part string, done, of int64) {
			if part == "packing the log" {
				told = append(told, [2]int64{done, of})
			}
			if done == of {
				parts = append(parts, part)
			}
		}})
		a.ok(err)
		want := []string{"packing the log", "reading the log"}
		if a.column(`SELECT count(*) FROM sessions WHERE status='needs_human'`) != "0" {
			want = append(want, "reading since when sessions wait")
		}
		if !slices.Equal(parts, want) {
			t.Errorf("%s: told are %q, want %q", file, parts, want)
		}
		if told[3] != told[2] || told[len(told)-1][0] != told[0][1] || told[len(told)-1][1] != told[0][1] {
			t.Errorf("%s: of the rest was told %v", file, told)
		}
		if after := a.column(fmt.Sprintf(all, "unpacked(events)")); after != before {
			t.Errorf("%s: %s", file, firstDifference(before, after))
		}
		if r := a.verify(); r.Difference != nil {
			t.Errorf("%s: %v", file, r.Difference)
		}
	}
}

// TestPlain: a store that is to keep JSON does, and one that is not packs what is added; either reads
// the other's, and rebuilding packs what is not, or keeps it as it is.
func TestPlain(t *testing.T) {
	a := newStore(t)
	begin := func() (n string) { return a.column(`SELECT group_concat(hex(substr(events, 1, 1)), ' ') FROM log`) }
	packed := begin()
	if strings.Contains(packed, "5B") || !strings.Contains(packed, "01") {
		t.Fatalf("records begin with %s", packed)
	}
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{Plain: true})
	a.ok(err)
	r, err := runner.New(runner.Config{Store: s})
	a.ok(err)
	a.force(r, a.ids[1])
	a.ok(s.Close())
	if now := begin(); now != packed+" 5B" {
		t.Errorf("records begin with %s", now)
	}
	a.with(func(r *runner.Runner, _ *store.SQLite) { a.force(r, a.ids[1]) })
	if now := begin(); now != packed+" 5B 01" {
		t.Errorf("records begin with %s", now)
	}
	before := a.column(`SELECT group_concat(unpacked(events)) FROM log`)
	if rep := a.rebuild(false); rep.Difference != nil || begin() != packed+" 5B 01" {
		t.Errorf("rebuilt, records begin with %s: %v", begin(), rep.Difference)
	}
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		rep, err := s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{Repack: true})
		if a.ok(err); rep.Difference != nil {
			t.Error(rep.Difference)
		}
	})
	if now := begin(); now != packed+" 01 01" || a.column(`SELECT group_concat(unpacked(events)) FROM log`) != before {
		t.Errorf("repacked, records begin with %s", now)
	}
	if rep := a.verify(); rep.Difference != nil {
		t.Error(rep.Difference)
	}
}

// goOn rules on what waits, steps what runs, and resumes what was stopped.
func (a *aStore) goOn() {
	a.Helper()
	a.with(func(r *runner.Runner, s *store.SQLite) {
		list, err := s.List(a.ctx, session.ListQuery{})
		a.ok(err)
		ruled, moved := 0, 0
		for _, sum := range list {
			sess, err := r.Session(a.ctx, sum.SessionID)
			a.ok(err)
			switch before := sess.Sequence; sess.Status {
			case session.NeedsHuman:
				items, _, err := r.Inbox(a.ctx, session.ListQuery{}, "")
				a.ok(err)
				for _, item := range items {
					if item.SessionID == sum.SessionID.String() {
						_, err = r.Decide(a.ctx, runner.Ruling{SessionID: sess.ID, RoundID: sess.Key().ID(), SpecialistID: machine.SpecialistID(item.Humans[0]), TransitionName: item.Transitions[0].Name, Reasoning: "on"})
						a.ok(err)
						ruled++
					}
				}
			case session.Stopped, session.Running:
				if sess.Status == session.Stopped {
					_, err = r.Resume(a.ctx, sess.ID, runner.ResumeOptions{})
					a.ok(err)
				}
				tick, err := r.Step(a.ctx, sess.ID)
				if a.ok(err); tick.Session.Sequence == before {
					a.Errorf("session %s does not move", sum.SessionID)
				}
				moved++
			}
		}
		a.Logf("%d sessions, %d ruled on, %d moved", len(list), ruled, moved)
	})
}

// change changes the file, by a statement that says nothing of rows.
func (a *aStore) change(query string) {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	_, err := db.Exec(query)
	a.ok(err)
}

// column returns one text.
func (a *aStore) column(query string) (text string) {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	a.ok(db.QueryRow(query).Scan(&text))
	return text
}

// TestMigrationsAreFrozen: what has run in anybody's store is never changed.
func TestMigrationsAreFrozen(t *testing.T) {
	got := ""
	for _, m := range store.Migrations(t) {
		got += m + "\n"
	}
	if got != sums {
		t.Errorf("the migrations are\n%s, they were\n%s: add one, and change none", got, sums)
	}
}

// TestOtherMigrations: a file in which another migration ran is refused with both
// names, and so is one whose schema is not what its migrations make.
func TestOtherMigrations(t *testing.T) {
	newer := newStore(t)
	newer.exec(`UPDATE migrations SET name='0005_other.sql', sha256='ab12' WHERE version=5`)
	missing := newStore(t)
	missing.exec(`DELETE FROM migrations WHERE version=2`)
	old := &aStore{T: t, ctx: t.Context(), path: unpack(t, "testdata/stores/33e2563.db.gz")}
	old.change(`CREATE TABLE mine (text TEXT)`)
	short := &aStore{T: t, ctx: t.Context(), path: unpack(t, "testdata/stores/d849de3.db.gz")}
	short.change(`DROP INDEX sessions_live`)
	for _, c := range []struct{ path, want string }{
		{newer.path, "it was made by migration 0005_other.sql (sha256 ab12), this program has 0005_recorded.sql (sha256 "},
		{missing.path, "it was made by no record of migration 2, this program has 0002_lessons.sql"},
		{old.path, "its schema is not what the migrations 1 to 2 make: table mine of mine is none of ours"},
		{short.path, "its schema is not what the migrations 1 to 4 make: index sessions_live of sessions is missing"},
	} {
		s, err := store.OpenSQLite(t.Context(), c.path, store.SQLiteOptions{})
		if err == nil {
			s.Close()
		}
		var open *store.OpenError
		if !errors.As(err, &open) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: OpenSQLite = %v, want %q", c.path, err, c.want)
		}
	}
}
