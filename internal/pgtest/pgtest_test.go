package pgtest_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestDatabases: each test has a database of its own, and the password is asked for.
func TestDatabases(t *testing.T) {
	one, two := pgtest.Database(t), pgtest.Database(t)
	if one == two {
		t.Fatalf("both are %s", one)
	}
	exec(t, one, "CREATE TABLE t (i int)")
	exec(t, two, "CREATE TABLE t (i int)")
	if os.Getenv("DIALAI_TEST_POSTGRES") != "" {
		return
	}
	wrong, err := url.Parse(one)
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword("postgres", "wrong")
	if _, err := pgx.Connect(t.Context(), wrong.String()); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("with another password: %v", err)
	}
}

// TestCrash: what was committed is there after the server was killed and is back, at the same address.
func TestCrash(t *testing.T) {
	s := pgtest.Start(t, true)
	address := s.Database(t)
	exec(t, address, "CREATE TABLE t (i int)")
	s.Kill()
	if _, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("a server that was killed answers")
	}
	s.Restart(t)
	exec(t, address, "INSERT INTO t VALUES (1)")
}

// TestMissing: without programs of Postgres a test is skipped, and says what to do, or fails where there
// has to be one.
func TestMissing(t *testing.T) {
	for require, want := range map[string]string{"": "skipped: " + pgtest.Missing, "0": "skipped: " + pgtest.Missing, "1": "failed: " + pgtest.Missing} {
		t.Setenv("DIALAI_REQUIRE_POSTGRES", require)
		a := attempt{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			pgtest.StartIn(&a, "")
		}()
		if <-done; a.came != want {
			t.Errorf("with DIALAI_REQUIRE_POSTGRES=%q it is %q, want %q", require, a.came, want)
		}
	}
}

// An attempt is a test that is told to end, and says how.
type attempt struct {
	testing.TB
	came string
}

func (a *attempt) Skip(args ...any)  { a.end("skipped", args) }
func (a *attempt) Fatal(args ...any) { a.end("failed", args) }

func (a *attempt) end(how string, args []any) {
	a.came = how + ": " + fmt.Sprint(args...)
	runtime.Goexit()
}

// TestPrograms: the folder that the environment names comes before PATH, and that before those of
// Debian, of which the newest counts by its number.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "path"} {
		bin := filepath.Join(dir, version, "bin")
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "initdb"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	debian := filepath.Join(dir, "[0-9]*", "bin")
	for _, c := range []struct{ named, path, want string }{
		{"", filepath.Join(dir, "none"), filepath.Join(dir, "15", "bin")},
		{"", filepath.Join(dir, "path", "bin"), filepath.Join(dir, "path", "bin")},
		{"/named", filepath.Join(dir, "path", "bin"), "/named"},
	} {
		t.Setenv("DIALAI_PG_BIN", c.named)
		t.Setenv("PATH", c.path)
		if got := pgtest.Programs(debian); got != c.want {
			t.Errorf("named %q, with PATH %s, it is %s, want %s", c.named, c.path, got, c.want)
		}
	}
	t.Setenv("DIALAI_PG_BIN", "")
	t.Setenv("PATH", "")
	if got := pgtest.Programs(filepath.Join(dir, "none")); got != "" {
		t.Errorf("where there is none it is %s", got)
	}
}

func exec(t *testing.T, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
