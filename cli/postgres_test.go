package cli_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/internal/pgtest"
)

// TestScriptPostgres runs the scripts in testdata/postgres, each with an empty database of its own: DATABASE_URL is its
// address, PLAIN that without the password, and SECRET the password.
func TestScriptPostgres(t *testing.T) {
	p := scripts()
	p.Dir = "testdata/postgres"
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts (%v)", err)
	}
	addresses := map[string]string{}
	for _, file := range files {
		addresses["script-"+strings.TrimSuffix(filepath.Base(file), ".txtar")] = pgtest.Database(t)
	}
	here := p.Setup
	p.Setup = func(e *testscript.Env) error {
		u, err := url.Parse(addresses[filepath.Base(e.WorkDir)])
		if err != nil {
			return err
		}
		e.Setenv("DATABASE_URL", u.String())
		secret, _ := u.User.Password()
		u.User = url.User(u.User.Username())
		e.Setenv("PLAIN", u.String())
		e.Setenv("SECRET", secret)
		return here(e)
	}
	testscript.Run(t, p)
}
