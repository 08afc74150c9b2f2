package cli_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/internal/pgtest"
)

// TestScriptPostgres runs the scripts in testdata/postgres, each with an empty database of its own: DATABASE_URL is its
// address, PLAIN that without the password, and SECRET the password; "sql STATEMENT" runs a statement in it. That of standby has
// a server of its own with a standby, whose address is STANDBY: "follows" waits until that has what the server has.
func TestScriptPostgres(t *testing.T) {
	all, err := filepath.Glob("testdata/postgres/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if everyScript > 1 && name != "serve" {
			continue // one command after the other: what these do at once is raced in package postgres
		}
		t.Run(name, func(t *testing.T) {
			var address, standby string
			if name == "standby" {
				server := pgtest.Start(t, false)
				address = server.Database(t)
				standby = server.Standby(t, false).Of(address)
			} else {
				address = pgtest.Database(t)
			}
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			secret, _ := u.User.Password()
			u.User = url.User(u.User.Username())
			p := scripts()
			p.Dir, p.Files = "", []string{file}
			p.Cmds["sql"] = func(ts *testscript.TestScript, _ bool, args []string) {
				conn, err := pgx.Connect(t.Context(), address)
				ts.Check(err)
				defer conn.Close(t.Context())
				_, err = conn.Exec(t.Context(), strings.Join(args, " "))
				ts.Check(err)
			}
			p.Cmds["follows"] = func(ts *testscript.TestScript, _ bool, _ []string) {
				of, err := pgx.Connect(t.Context(), address)
				ts.Check(err)
				defer of.Close(t.Context())
				var end string
				ts.Check(of.QueryRow(t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&end))
				conn, err := pgx.Connect(t.Context(), standby)
				ts.Check(err)
				defer conn.Close(t.Context())
				for there := false; !there; {
					ts.Check(conn.QueryRow(t.Context(), `SELECT pg_last_wal_replay_lsn()>=$1::pg_lsn`, end).Scan(&there))
				}
			}
			here := p.Setup
			p.Setup = func(e *testscript.Env) error {
				e.Setenv("DATABASE_URL", address)
				e.Setenv("STANDBY", standby)
				e.Setenv("PLAIN", u.String())
				e.Setenv("SECRET", secret)
				return here(e)
			}
			testscript.Run(t, p)
		})
	}
}
