package postgres_test

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// A said is what an error of opening has to say.
type said struct{ problem, advice string }

// says fails unless an error names the database of an address, and says what is wrong and what to do, without the password or what
// Postgres has said. ROLE stands for a role.
func (s said) says(t testing.TB, err error, address, role string) {
	t.Helper()
	u, parsed := url.Parse(address)
	if parsed != nil {
		t.Fatal(parsed)
	}
	var advised interface{ Advice() string }
	if !errors.As(err, &advised) {
		t.Errorf("the error is %v, want %q", err, s.problem)
		return
	}
	problem, advice := strings.ReplaceAll(s.problem, "ROLE", role), strings.ReplaceAll(s.advice, "ROLE", role)
	if text := err.Error(); !strings.Contains(text, "postgres://"+u.Host+u.Path) || !strings.Contains(text, problem) || strings.Contains(text, "SQLSTATE") {
		t.Errorf("the error is %q, want %q", text, problem)
	}
	if !strings.Contains(advised.Advice(), advice) {
		t.Errorf("of %v it advises %q, want %q", err, advised.Advice(), advice)
	}
	if password, _ := u.User.Password(); strings.Contains(err.Error()+advised.Advice(), password) {
		t.Errorf("the password is in %v (%s)", err, advised.Advice())
	}
}

// TestRights: whoever lacks a right is told the role, what it may not do, and the GRANT that is missing, whatever it wants.
func TestRights(t *testing.T) {
	server := pgtest.Start(t, false) // roles are of a server
	address := server.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	id := teach(t, r, m)
	if _, err := postgres.Migrate(t.Context(), address, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	exec(t, address, `DO $$ BEGIN EXECUTE 'REVOKE CONNECT ON DATABASE '||current_database()||' FROM public'; END $$`)
	// as makes a role with some rights, and returns its name and the address for it.
	as := func(grants ...string) (role, its string) {
		role = "r_" + strings.ToLower(rand.Text()[:10])
		exec(t, address, `CREATE ROLE `+role+` LOGIN PASSWORD 'secret'`)
		for _, grant := range grants {
			exec(t, address, strings.ReplaceAll(grant, "ROLE", role))
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, "secret")
		return role, u.String()
	}
	const (
		connect = `DO $$ BEGIN EXECUTE 'GRANT CONNECT ON DATABASE '||current_database()||' TO ROLE'; END $$`
		create  = `DO $$ BEGIN EXECUTE 'GRANT CREATE ON DATABASE '||current_database()||' TO ROLE'; END $$`
		usage   = `GRANT USAGE ON SCHEMA dialai, dialai_control TO ROLE`
		reads   = `GRANT SELECT ON ALL TABLES IN SCHEMA dialai, dialai_control TO ROLE; GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA dialai TO ROLE`
		writes  = `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dialai, dialai_control TO ROLE`
	)
	for _, c := range []struct {
		name   string
		grants []string
		want   said
	}{
		{"no CONNECT", nil, said{"the role ROLE may not connect to the database", " TO ROLE; docs/postgres.md"}},
		{"no USAGE", []string{connect}, said{"the role ROLE may not use the schema dialai", "GRANT USAGE ON SCHEMA dialai"}},
		{"no USAGE, and may make others", []string{connect, create}, said{"the role ROLE may not use the schema dialai", "as postgres, in the database "}},
		{"no SELECT", []string{connect, usage}, said{"the role ROLE may not read the tables ", "GRANT SELECT ON ALL TABLES IN SCHEMA dialai"}},
	} {
		role, its := as(c.grants...)
		for _, o := range []postgres.Options{{}, {Existing: true}, {Existing: true, Standby: true}} {
			_, err := postgres.Open(t.Context(), its, o)
			c.want.says(t, err, its, role)
			_, err = postgres.OpenControl(t.Context(), its, o)
			c.want.says(t, err, its, role)
		}
		_, err := postgres.Migrate(t.Context(), its, postgres.Options{})
		c.want.says(t, err, its, role)
		if t.Failed() {
			t.Fatal(c.name)
		}
	}

	role, its := as(connect, usage, reads)
	reader := open(t, its, postgres.Options{Existing: true})
	if _, err := reader.Load(t.Context(), session.NewPrograms(), id); err != nil {
		t.Error(err)
	}
	proven(t, reader)
	by, err := runner.New(runner.Config{Store: reader})
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	_, err = by.Start(t.Context(), m, runner.StartOptions{})
	said{"the role ROLE may not write to the tables ", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dialai TO ROLE"}.says(t, err, its, role)
	if !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("it is %v, want ErrReadOnly", err)
	}

	role, its = as(connect, usage, reads, writes, `REVOKE USAGE ON SEQUENCE dialai.place FROM ROLE`)
	by, err = runner.New(runner.Config{Store: open(t, its, postgres.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	_, err = by.Start(t.Context(), m, runner.StartOptions{})
	said{"the role ROLE may not draw from the sequence place (USAGE)", "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA dialai TO ROLE"}.says(t, err, its, role)

	role, its = as(connect, usage, reads, writes)
	worker := open(t, its, postgres.Options{})
	owner := said{"the role ROLE does not own its tables: postgres does", "do it as postgres"}
	_, err = worker.Rebuild(t.Context(), session.NewPrograms(), nil)
	owner.says(t, err, its, role)
	_, err = worker.Archive(t.Context(), store.ArchiveOptions{To: t.TempDir() + "/old.db", Before: 1 << 60})
	owner.says(t, err, its, role)
	_, err = reader.Erase(t.Context(), store.EraseOptions{Session: id})
	if err == nil || !strings.Contains(err.Error(), "does not own its tables") {
		t.Errorf("to erase as who only reads = %v", err)
	}
	other := strings.Replace(its, "?", "?schema=mine&", 1)
	_, err = postgres.Open(t.Context(), other, postgres.Options{})
	said{"the role ROLE may not make the schema mine", "GRANT CREATE ON DATABASE "}.says(t, err, its, role)
	exec(t, address, `CREATE SCHEMA mine; GRANT USAGE ON SCHEMA mine TO public`)
	_, err = postgres.Open(t.Context(), other, postgres.Options{})
	said{"the role ROLE may not make tables in the schema mine", "GRANT CREATE ON SCHEMA mine TO ROLE"}.says(t, err, its, role)
	exec(t, address, `DELETE FROM dialai.goose_db_version WHERE version_id=11; DROP INDEX dialai.sessions_since; ALTER TABLE dialai.sessions DROP COLUMN since`)
	_, err = postgres.Open(t.Context(), its, postgres.Options{})
	said{"the store is of an older version, and the role ROLE does not own its tables: postgres does", "run dialai migrate once as postgres"}.says(t, err, its, role)
}

// TestTables: a schema whose tables are not those of its migrations is told so, with what is missing; and one with tables of
// another program is left as it is.
func TestTables(t *testing.T) {
	const whole = "restore the database from a backup, or begin another store in another schema: ?schema=NAME in the address"
	foreign := func(tables string) said {
		return said{"the schema dialai holds tables of another program: " + tables, "keep the store in another schema, ?schema=NAME in the address"}
	}
	const list = `CREATE TABLE dialai.goose_db_version (id serial PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp DEFAULT now()); `
	for _, c := range []struct {
		name   string
		made   bool // the store is made before
		breaks string
		want   said
	}{
		{"a table is gone", true, `DROP TABLE dialai.exemplars CASCADE`, said{"the schema dialai lacks exemplars, which migration 0001_store.sql has made", whole}},
		{"a column is gone", true, `ALTER TABLE dialai.sessions DROP COLUMN since`, said{"the schema dialai lacks sessions.since, which migration 0011_since.sql has made", whole}},
		{"several are gone", true, `DROP TABLE dialai.quota, dialai.quota_windows, dialai.quota_holds, dialai.quota_sessions, dialai.sessions CASCADE`, said{"the schema dialai lacks quota, quota_holds, quota_sessions and 2 more, which ", whole}},
		{"meta is gone", true, `DROP TABLE dialai.meta CASCADE`, said{"the schema dialai lacks meta, ", whole}},
		{"meta is empty", true, `INSERT INTO dialai.log (session, first, at, events, hash) VALUES (1, 1, 0, '', ''); DELETE FROM dialai.meta`, said{"the table meta of the schema dialai is empty, and the log is not", "restore the database from a backup"}},
		{"the list is gone", true, `DROP TABLE dialai.goose_db_version`, said{"the schema dialai lacks its list of migrations, the table goose_db_version", whole}},
		{"the list is behind", true, `DELETE FROM dialai.goose_db_version WHERE version_id IN (7, 11)`, said{"but its list of migrations (goose_db_version) lacks migration 0007_quota.sql, which makes it", whole}},
		{"the list is behind by columns", true, `DELETE FROM dialai.goose_db_version WHERE version_id>8`, said{"but its list of migrations (goose_db_version) lacks migration 0009_clock.sql, which makes it", whole}},
		{"the list is alone", false, `CREATE SCHEMA dialai; ` + list + `INSERT INTO dialai.goose_db_version (version_id, is_applied) SELECT n, true FROM generate_series(0, 11) n`,
			said{"the schema dialai has a list of migrations (goose_db_version), but none of the tables that they make", "DROP SCHEMA dialai CASCADE and run dialai migrate"}},
		{"the list is empty", true, `DELETE FROM dialai.goose_db_version`, said{"the schema dialai has a list of migrations (goose_db_version) that is not whole", whole}},
		{"another program's tables", false, `CREATE SCHEMA dialai; CREATE TABLE dialai.orders (id serial PRIMARY KEY); CREATE VIEW dialai.many AS SELECT 1`, foreign("many and orders")},
		{"another program's, called as ours", false, `CREATE SCHEMA dialai; CREATE TABLE dialai.sessions (id text); CREATE TABLE dialai.meta (name text)`, foreign("meta and sessions")},
		{"another program's list", false, `CREATE SCHEMA dialai; ` + list + `CREATE TABLE dialai.users (id int); INSERT INTO dialai.goose_db_version (version_id, is_applied) VALUES (0, true), (1, true), (2, true)`, foreign("users")},
		{"another program's list of another form", false, `CREATE SCHEMA dialai; CREATE TABLE dialai.goose_db_version (version text); CREATE TABLE dialai.users (id int)`, foreign("users")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Database(t)
			if c.made {
				s, err := postgres.Open(t.Context(), address, postgres.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			exec(t, address, c.breaks)
			has := ask[string](t, address, relations)
			for _, o := range []postgres.Options{{}, {Existing: true}, {Existing: true, Standby: true}} {
				s, err := postgres.Open(t.Context(), address, o)
				if err == nil { // what is missing is not needed to open it
					_, err = s.Verify(t.Context(), session.NewPrograms(), nil)
					if closed := s.Close(); closed != nil {
						t.Error(closed)
					}
				}
				c.want.says(t, err, address, "")
			}
			if is := ask[string](t, address, relations); is != has {
				t.Errorf("the schema has %s now, and had %s", is, has)
			}
		})
	}
}

// relations is the query for what is in the schema.
const relations = `SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace='dialai'::regnamespace`

// TestInterruptedMigration: where making a store was interrupted, whoever comes next goes on; one that a newer version has migrated
// is opened as long as that says so.
func TestInterruptedMigration(t *testing.T) {
	const list = `CREATE SCHEMA dialai; CREATE TABLE dialai.goose_db_version (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now())`
	for name, before := range map[string]string{
		"the schema": `CREATE SCHEMA dialai`, "its list": list + `; INSERT INTO dialai.goose_db_version (version_id, is_applied) VALUES (0, true)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Database(t)
			exec(t, address, before)
			if _, err := postgres.Open(t.Context(), address, postgres.Options{Existing: true}); !errors.Is(err, postgres.ErrNone) {
				t.Errorf("to open what is not made = %v, want ErrNone", err)
			}
			proven(t, open(t, address, postgres.Options{}))
		})
	}
	t.Run("by a newer version", func(t *testing.T) { // which may have taken away what this one does not need
		t.Parallel()
		address := pgtest.Database(t)
		open(t, address, postgres.Options{})
		exec(t, address, `INSERT INTO dialai.goose_db_version (version_id, is_applied) VALUES (9999, true); DROP TABLE dialai.erasing`)
		open(t, address, postgres.Options{})
	})
	t.Run("its row", func(t *testing.T) {
		t.Parallel()
		address := pgtest.Database(t)
		open(t, address, postgres.Options{})
		exec(t, address, `DELETE FROM dialai.meta`)
		proven(t, open(t, address, postgres.Options{}))
	})
}

// TestGone: what is dropped while a store is open is told as gone, and where a database never was it is said how to make it.
func TestGone(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	exec(t, address, `DROP SCHEMA dialai CASCADE`)
	_, err := s.Live(t.Context())
	said{"the schema dialai is gone: somebody has dropped it", "restore it from a backup"}.says(t, err, address, "")
	var public interface{ Public() string }
	if !errors.Is(err, store.ErrReplaced) || !errors.As(err, &public) || public.Public() != "the database of the store, or its schema there, was dropped" {
		t.Errorf("it is %v, want ErrReplaced", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/nosuch"
	_, err = postgres.Open(t.Context(), u.String(), postgres.Options{})
	said{"there is no database nosuch", "createdb nosuch"}.says(t, err, u.String(), "")
	if errors.Is(err, store.ErrReplaced) {
		t.Errorf("that there never was a database is told as if it was removed: %v", err)
	}
}

// TestTablesOfControl: what a server remembers is not read where a table of it is missing.
func TestTablesOfControl(t *testing.T) {
	address := pgtest.Database(t)
	if _, err := postgres.Migrate(t.Context(), address, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	exec(t, address, `DROP TABLE dialai_control.keys CASCADE`)
	for _, o := range []postgres.Options{{}, {Existing: true, Standby: true}} {
		_, err := postgres.OpenControl(t.Context(), address, o)
		said{"the schema dialai_control lacks keys, which migration 0001_control.sql has made", "restore the database from a backup"}.says(t, err, address, "")
	}
}
