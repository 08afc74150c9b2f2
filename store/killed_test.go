package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

const killedStore = "DIALAI_KILLED_STORE"

// TestKilledProcess is no test: it is a process that TestKilled starts.
func TestKilledProcess(t *testing.T) {
	path := os.Getenv(killedStore)
	if path == "" {
		t.Skip("only for TestKilled")
	}
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{Plain: true})
	if err == nil {
		err = storetest.Killed(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKilled kills processes that archive and erase in a file.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	storetest.RunKilled(t, eraseMaker(path), 1, func(*testing.T) *exec.Cmd {
		p := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
		p.Env = []string{killedStore + "=" + path}
		return p
	})
}
