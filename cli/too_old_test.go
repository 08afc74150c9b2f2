package cli_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
)

// TestTooOld: once a store is for newer versions only, a process that only serves and one that waits for a timer notice
// it, end in good order, say why, and exit with code 75.
func TestTooOld(t *testing.T) {
	address, dir := pgtest.Database(t), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const waits = `{"machineName": "waits", "initialState": "a", "goalState": "b",
		"states": {"a": {"due": {"in": "720h", "then": "go"}, "transitions": {"go": "b"}}, "b": {}},
		"specialists": [{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`
	if err := os.WriteFile(filepath.Join(dir, "waits.json"), []byte(waits), 0o600); err != nil {
		t.Fatal(err)
	}
	type process struct {
		*exec.Cmd
		out *bufio.Reader
		err bytes.Buffer
	}
	var all []*process
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--drive", "off", "--json"},
		{"run", "waits.json", "--wait", "--json"},
	} {
		p := &process{Cmd: exec.Command(self, append(args, "--store", address)...)}
		p.Args[0], p.Env, p.Dir, p.Stderr = "dialai", []string{"XDG_DATA_HOME=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}, dir, &p.err
		out, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill(); p.Wait() })
		p.out, all = bufio.NewReader(out), append(all, p)
		if line, err := p.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"v":1,`) {
			t.Fatalf("dialai %v says %q (%v): %s", args, line, err, p.err.String())
		}
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE dialai.meta SET min_writer=99; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		io.Copy(io.Discard, p.out)
		if p.Wait(); p.ProcessState.ExitCode() != 75 || !strings.Contains(p.err.String(), "it is of form 99, which a newer version of dialai has written; update the program") {
			t.Errorf("%v has ended with %v and said %s", p.Args, p.ProcessState, &p.err)
		}
	}
}
