package cli_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/cli/internal/render"
)

// The scripts once more, at a server: the same commands, with --server, have the same output
// and exit codes, but that printed commands have --server. Each script has a server of the
// store that it uses, which nobody but commands carries on (--drive off), and another one
// where it sets other variables or names another store: what the environment says of services,
// models and prices it says to the server. Flags that no command takes at a server have it
// work on that store itself.

// notAtServer are the scripts that do not run a second time, and why.
var notAtServer = map[string]string{
	"agents_check": "it has no store, and its agents are here",
	"analyze":      "it reads files only",
	"archive":      "a store is archived where it is",
	"backup":       "a backup is written where the store is",
	"copy":         "a store is copied where it is",
	"bench":        "it plays with made-up voters, and has no store",
	"bridge":       "it has no store, and its agents are here",
	"budget":       "it reads files only",
	"check_at":     "it is about --server itself, and the guards that it knows",
	"check":        "it judges steps by a file of guards, and has no store",
	"distance":     "it is about --server itself, and runs there already",
	"gone":         "it is about the memory store, which ends with its process",
	"erase":        "a store is erased where it is",
	"newer":        "the file of a store is altered, which a server has open",
	"graph_output": "it draws files only",
	"guard_demo":   "it has no store",
	"guards_lint":  "it reads files only",
	"keys":         "it is about the file of keys, which is made before there is a server",
	"lint_cases":   "it reads files only",
	"program":      "it is about the command line: no store is made before all of it is understood, and a server has made one",
	"serve":        "it is about the server itself",
	"simulate":     "it plays with made-up voters, and has no store",
	"usage":        "it is about the command line, as program is",
	"vectors":      "it reads files only",
	"webhooks":     "it is about the file in which a server remembers, and about --server itself",
}

// atServer is where a script's programs ask for a server, in their environment; "" is here.
const atServer = "DIALAI_TEST_SERVERS"

// A wanted server is what a program of a script asks for.
type wanted struct {
	Program string   // dialai, or a program of one's own
	Env     []string // that says something to a server
	Args    []string // of dialai serve
	Dir     string
}

// An offer is the answer.
type offer struct {
	URL   string
	Usage bool // no server understands the environment, so the command says what is wrong
	Err   string
}

// atDistance runs dialai with --server if the environment says so, and returns its exit code.
// What is printed for that server is put as it is here, so that the expectations are the same.
func atDistance(run func(args []string) int) (code int, done bool) {
	servers := os.Getenv(atServer)
	if servers == "" || len(os.Args) < 2 || slices.Contains([]string{"--version", "--help", "serve"}, os.Args[1]) {
		return 0, false
	}
	os.Unsetenv(atServer)
	args := slices.Clone(os.Args[1:])
	in := wanted{Program: filepath.Base(os.Args[0]), Env: slices.DeleteFunc(os.Environ(), func(v string) bool { return !saysToServer.MatchString(v) })}
	in.Dir, _ = os.Getwd()
	if args[0] == "store" && slices.Contains(args, "head") { // which no server tells
		return 0, false
	}
	if strings.HasPrefix(args[0], "__") || !cli.AtServer(args[0]) || slices.ContainsFunc(args, func(word string) bool { return isLocalFlag(args[0], word) }) {
		return 0, false
	}
	store := takeFlag(&args, "--store")
	path := storeOf(store)
	if path == "" {
		return 0, false
	}
	if _, err := os.Stat(path); err != nil && args[0] != "run" && !strings.Contains(args[0], ".") { // a server would make it
		return 0, false
	}
	if store != "" {
		in.Args = append(in.Args, "--store", store)
	}
	if prices := takeFlag(&args, "--prices"); prices != "" {
		in.Args = append(in.Args, "--prices", prices)
	}
	at := ask(servers, in)
	if at.Usage {
		return 0, false
	}
	if at.Err != "" {
		panic(at.Err)
	}
	words := []string{"--server=" + at.URL, "--key-file=" + filepath.Join(filepath.Dir(path), "server-key")}
	return runFor(run, slices.Insert(args, 1, words...), at.URL, store), true
}

// runFor runs dialai with its output as it is of a store here, and returns the exit code.
func runFor(run func(args []string) int, args []string, server, store string) (code int) {
	var out, errs bytes.Buffer
	captured(&os.Stdout, &out, func() { captured(&os.Stderr, &errs, func() { code = run(args) }) })
	here := ""
	if store != "" {
		here = " --store " + render.Quote(store)
	}
	for _, s := range []struct {
		from *bytes.Buffer
		to   io.Writer
	}{{&out, os.Stdout}, {&errs, os.Stderr}} {
		text := s.from.Bytes()
		if server != "" {
			text = bytes.ReplaceAll(text, []byte(" --server "+server), []byte(here))
		}
		s.to.Write(subjectAtServer.ReplaceAll(text, []byte("${1}local:server$2")))
	}
	return code
}

// captured has into have what is written to a file of this process while do runs.
func captured(file **os.File, into *bytes.Buffer, do func()) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	was, read := *file, make(chan struct{})
	go func() {
		defer close(read)
		_, _ = into.ReadFrom(r) // up to the end, which is ours
	}()
	*file = w
	do()
	*file = was
	w.Close()
	<-read
}

// subjectAtServer matches as whom a server knows whoever has the key of the computer.
var subjectAtServer = regexp.MustCompile(`("subject":"|\(|Moved by )local("|\)| )`)

// storeOf returns the path of the store that a name means, "" for one in memory.
func storeOf(name string) string {
	switch {
	case name == "env":
		name = os.Getenv("DATABASE_URL")
		if !strings.HasPrefix(name, "sqlite:") {
			return ""
		}
	case name == "":
		return filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(os.Getenv("HOME"), ".local", "share")), "dialai", "dialai.db")
	case name == "memory:":
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, "sqlite:"), "//")
}

// saysToServer matches the variables that may say something to a server.
var saysToServer = regexp.MustCompile(`^(HOME|PATH|TMPDIR|GORACE|DATABASE_URL|XDG_DATA_HOME|OTEL_\w+|\w*(DIALAI|WEBHOOK|TOKEN|API_KEY|OLLAMA|HOOK)\w*)=`)

// takeFlag takes a flag out of a command line, and returns what it is given.
func takeFlag(args *[]string, flag string) string {
	for i, word := range *args {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			*args = slices.Delete(*args, i, i+1)
			return value
		}
		if word == flag && i+1 < len(*args) {
			value := (*args)[i+1]
			*args = slices.Delete(*args, i, i+2)
			return value
		}
	}
	return ""
}

// isLocalFlag reports whether a word is a flag that a command does not take at a server, or a store
// that none can have: then it works on the store itself.
func isLocalFlag(command, word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return (name != "--guards" || command != "backtest") && slices.Contains([]string{"--record", "--replay", "--shadow", "--guards", "--interactive", "-i", "--timeout", "--wait", "--server", "--remote"}, name)
}

// servers are those of a script.
type servers struct {
	dir     string
	running map[string]offer
	atEnd   func(func())
	asked   atomic.Int64
}

// ask asks the servers of a script, which are at a socket, for one.
func ask(socket string, in wanted) (out offer) {
	c, err := net.Dial("unix", socket)
	if err == nil {
		defer c.Close()
		if err = json.NewEncoder(c).Encode(in); err == nil {
			err = json.NewDecoder(c).Decode(&out)
		}
	}
	if err != nil {
		panic(err)
	}
	return out
}

// serve answers those who ask, one after the other.
func (s *servers) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var in wanted
		if json.NewDecoder(c).Decode(&in) == nil {
			json.NewEncoder(c).Encode(s.of(in))
		}
		c.Close()
	}
}

// of returns the server that somebody wants, which runs from the first time on.
func (s *servers) of(in wanted) offer {
	s.asked.Add(1)
	key, _ := json.Marshal(in)
	if o, is := s.running[string(key)]; is {
		return o
	}
	o := offer{}
	var err error
	o.URL, err = startServer(in.Program, in.Env, in.Dir, s.atEnd, in.Args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
		o.Usage = true
	} else if err != nil {
		o.Err = err.Error()
	}
	s.running[string(key)] = o
	return o
}

// TestScriptAtDistance runs the scripts at servers.
func TestScriptAtDistance(t *testing.T) {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var list []string
	for i, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		names[name] = true
		if one := os.Getenv("DIALAI_SCRIPT"); notAtServer[name] == "" && one == "" && i%everyScript == 0 || slices.Contains(strings.Split(one, ","), name) {
			list = append(list, path)
		}
	}
	for name := range notAtServer {
		if !names[name] {
			t.Errorf("%s is no script, and is listed as one that does not run at a server", name)
		}
	}
	p := scripts()
	p.Dir, p.Files, p.UpdateScripts = "", list, false
	p.Condition = func(string) (bool, error) { return false, nil } // here
	here := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := here(e); err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "dialai") // the path of a socket has little room
		if err != nil {
			return err
		}
		socket := filepath.Join(dir, "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		s := &servers{dir: e.WorkDir, running: map[string]offer{}, atEnd: e.Defer}
		go s.serve(l)
		e.Defer(func() {
			l.Close()
			os.RemoveAll(dir)
			if s.asked.Load() == 0 {
				t.Errorf("%s: no command of it works at a server; list it in notAtServer, with the reason", e.WorkDir)
			}
		})
		e.Setenv(atServer, socket)
		return nil
	}
	testscript.Run(t, p)
}

// serveScript starts dialai serve for a script that names it by --server.
func serveScript(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.Getenv("WORK")
	server, err := startServer("dialai", []string{"DIALAI_WEBHOOK_ALLOW=127.0.0.1", "XDG_DATA_HOME=" + ts.Getenv("XDG_DATA_HOME"), "HOME=" + dir, "PATH=" + ts.Getenv("PATH")}, dir, ts.Defer, args...)
	ts.Check(err)
	ts.Setenv("SERVER", server)
}

// startServer has a program serve in a folder, and returns where it is.
func startServer(program string, env []string, dir string, atEnd func(func()), args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	serve := exec.Command(self, "serve", "--listen", "127.0.0.1:0", "--json", "--drive", cmp.Or(os.Getenv("DIALAI_SCRIPT_DRIVE"), "off"), "--log-level", "error") //nolint:gosec // it is this one
	serve.Args[0] = program
	serve.Args = append(serve.Args, args...)
	serve.Env, serve.Dir, serve.Stderr = slices.Clone(env), dir, os.Stderr
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
		return "", cmp.Or(serve.Wait(), err)
	}
	var serving struct{ URLs []string }
	if err := json.Unmarshal(line, &serving); err != nil {
		return "", err
	}
	return serving.URLs[0], nil
}
