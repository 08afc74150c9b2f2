package cli_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/cli"
)

// The scripts once more, against a server: the same commands, with --server, have the same
// output and exit codes, but that printed commands have --server.

// distantScripts are the scripts that hold at a server, whole. Others do not because of what
// they are about, beside those that never look into a store:
//
//   - webhook, missing, model, model_guards, audit, replay_own and cassettes set variables or start
//     services that the server, which runs already, would have to know;
//   - actors and trust print by commands that work here who acted, which is the server's subject;
//   - backtest adopts a promise in the store, which a process that runs meanwhile takes up when it
//     reads the lessons again, at a time of its own;
//   - second looks at what a server withholds though a run here would tell it: that a ruling
//     was taken back;
//   - approvals shows of a fork what was approved before, which no answer of a server has yet;
//   - explain, reviews and raise have cases that are told less at a server;
//   - look, simulate, program and usage are about the command line and stores.
var distantScripts = []string{
	"asking", "bad_input", "cancel", "due", "explain_case", "fork", "gone", "guard_demo", "guards_flag", "hostile", "human", "ids", "input", "ledger", "lists", "move",
	"next", "outside", "payload", "quoting", "redacted", "retract", "risk", "run", "shadow", "subject", "unpriced", "withheld", "write",
}

// atServer is where a script's programs work, in their environment; "" is here.
const atServer = "DIALAI_TEST_SERVER"

// atDistance runs dialai with --server if the environment says so, and returns its exit code.
// What is printed for that server is cut out, so that the expectations are the same.
func atDistance() (code int, done bool) {
	server := os.Getenv(atServer)
	if server == "" || len(os.Args) < 2 || slices.Contains([]string{"--version", "--help", "serve"}, os.Args[1]) {
		return 0, false
	}
	os.Unsetenv(atServer)
	name := os.Args[1]
	args := slices.Clone(os.Args[1:])
	if !cli.AtServer(name) || slices.ContainsFunc(args, isLocalFlag) {
		return 0, false
	}
	at := len(args)
	if i := slices.Index(args, "--"); i >= 0 {
		at = i
	}
	program := exec.Command(os.Args[0], slices.Insert(args, at, "--server", server)...) //nolint:gosec // it is this one
	var out, errs bytes.Buffer
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, &out, &errs
	err := program.Run()
	for _, s := range []struct {
		from *bytes.Buffer
		to   io.Writer
	}{{&out, os.Stdout}, {&errs, os.Stderr}} {
		text := bytes.ReplaceAll(s.from.Bytes(), []byte(" --server "+server), nil)
		s.to.Write(bytes.ReplaceAll(text, []byte(`"subject":"local","`), []byte(`"subject":"local:server","`)))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), true
	}
	if err != nil {
		panic(err)
	}
	return 0, true
}

// isLocalFlag reports whether a word is a flag that no command takes at a server: then it
// works on the store itself.
func isLocalFlag(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{"--store", "--prices", "--record", "--replay", "--shadow", "--guards", "--interactive", "-i", "--timeout", "--wait", "--machine", "--guard"}, name)
}

// TestScriptAtDistance runs the scripts of distantScripts against a server.
func TestScriptAtDistance(t *testing.T) {
	names := distantScripts
	if one := os.Getenv("DIALAI_SCRIPT"); one != "" {
		names = strings.Split(one, ",")
	}
	var list []string
	for _, name := range names {
		list = append(list, filepath.Join("testdata/script", name+".txtar"))
	}
	p := scripts()
	p.Dir, p.Files, p.UpdateScripts = "", list, false
	here := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := here(e); err != nil {
			return err
		}
		server, err := startServer(e.Vars, e.WorkDir, e.Defer)
		e.Setenv(atServer, server)
		return err
	}
	testscript.Run(t, p)
}

// serveScript starts dialai serve for a script that names it by --server.
func serveScript(ts *testscript.TestScript, _ bool, _ []string) {
	dir := ts.Getenv("WORK")
	server, err := startServer([]string{"XDG_DATA_HOME=" + ts.Getenv("XDG_DATA_HOME"), "HOME=" + dir, "PATH=" + ts.Getenv("PATH")}, dir, ts.Defer)
	ts.Check(err)
	ts.Setenv("SERVER", server)
}

// startServer starts dialai serve in a folder, and returns where it is.
func startServer(env []string, dir string, atEnd func(func())) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	serve := exec.Command(self, "serve", "--listen", "127.0.0.1:0", "--json", "--drive", cmp.Or(os.Getenv("DIALAI_SCRIPT_DRIVE"), "off"), "--log-level", "error") //nolint:gosec // it is this one
	serve.Args[0] = "dialai"
	serve.Env = append(slices.Clone(env), "DIALAI_WEBHOOK_ALLOW=127.0.0.1") // where the services of scripts are
	serve.Dir, serve.Stderr = dir, os.Stderr
	out, err := serve.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := serve.Start(); err != nil {
		return "", err
	}
	atEnd(func() {
		serve.Process.Signal(os.Interrupt)
		serve.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var serving struct{ URLs []string }
	if err := json.Unmarshal(line, &serving); err != nil {
		return "", err
	}
	return serving.URLs[0], nil
}
