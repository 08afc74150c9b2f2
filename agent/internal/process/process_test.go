//go:build unix

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// The programs are this test binary, run again: program says as which of them.
const program = "DIALAI_TEST_PROGRAM"

var programs = map[string]func(args []string){
	"echo":     func([]string) { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"print":    printBack,
	"stubborn": stubborn,
	"polite":   polite,
	"exit":     func([]string) { os.Exit(3) },
	"stderr":   func([]string) { fmt.Fprintln(os.Stderr, "key is "+os.Getenv("API_KEY")); os.Stderr.WriteString("end") },
	"family":   family,
	"hold":     hold,
	"stream":   stream,
	"host":     host,
}

// runEnv tells the programs of which run of the tests they are: sessions of no other may have the
// same id.
const runEnv = "DIALAI_TEST_RUN"

func session(name string) string { return name + "-" + os.Getenv(runEnv) }

func TestMain(m *testing.M) {
	if run, ok := programs[os.Getenv(program)]; ok {
		run(os.Args[1:])
		os.Exit(0)
	}
	_ = os.Setenv(runEnv, strconv.Itoa(os.Getpid()))
	os.Exit(m.Run())
}

// printBack prints a file byte by byte groups that split its lines anywhere.
func printBack(args []string) {
	text, _ := os.ReadFile(args[0])
	r := rand.New(rand.NewPCG(1, 2))
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(70_000))
		_, _ = os.Stdout.Write(text[:n])
		text = text[n:]
	}
}

func stubborn([]string) {
	c := deaf()
	fmt.Println("ready")
	for range c {
	}
}

// deaf takes signals, so that they do not end the program.
func deaf() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return c
}

// polite ends by SIGTERM, not at the end of its input.
func polite([]string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	fmt.Println("ready")
	<-c
	os.Exit(7)
}

// family starts a process in a session of its own, which holds a file open, and waits until
// that does. With "bare" it has no marker, with "exit" its parent does not wait for it.
func family(args []string) {
	self, _ := os.Executable()
	child := exec.Command(self, args[0])
	child.Env = append(os.Environ(), program+"=hold")
	if args[1] == "bare" {
		child.Env = []string{program + "=hold"}
	}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	_, _ = out.Read(make([]byte, 1))
	fmt.Println("ready")
	if args[1] == "exit" {
		os.Exit(1)
	}
	stubborn(nil)
}

// hold keeps a fifo open for writing, whatever it is sent but SIGKILL.
func hold(args []string) {
	c := deaf()
	f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	fmt.Println("held")
	defer runtime.KeepAlive(f)
	for range c {
	}
}

// stream prints as many MB of lines as it is told.
func stream(args []string) {
	mb, _ := strconv.Atoi(args[0])
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	for range mb << 20 / len(line) {
		_, _ = w.Write(line)
	}
	_ = w.Flush()
}

// host is a host that starts a program and waits.
func host(args []string) {
	p, err := process.Start(config("s/host", "family", args...))
	if err != nil {
		panic(err)
	}
	<-p.Gone()
}

// grace is long enough for a program to do what it does at once, on a busy machine.
const grace = 500 * time.Millisecond

func config(of, name string, args ...string) process.Config {
	self, _ := os.Executable()
	return process.Config{Path: self, Args: args, Env: []string{program + "=" + name, "GORACE=atexit_sleep_ms=0"}, Session: session(of), Grace: grace,
		Line: func(line []byte) { fmt.Println(string(line)) }}
}

// A running program, and its lines as they come.
type running struct {
	*process.Process
	t     *testing.T
	lines chan string
}

func start(t *testing.T, cfg process.Config) *running {
	t.Helper()
	r := &running{t: t, lines: make(chan string, 100)}
	cfg.Line = func(line []byte) { r.lines <- string(line) }
	p, err := process.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Process = p
	t.Cleanup(func() { _ = p.Close(context.Background(), nil, true) })
	return r
}

func (r *running) expect(want string) {
	r.t.Helper()
	if got := <-r.lines; got != want {
		r.t.Fatalf("line %q, want %q", got, want)
	}
}

// close ends the program and reports how it ended and how long that took.
func (r *running) close(now bool) (process.Exit, time.Duration) {
	r.t.Helper()
	began := time.Now()
	if err := r.Close(context.Background(), nil, now); err != nil {
		r.t.Fatal(err)
	}
	return r.Exit(), time.Since(began)
}

// TestEcho: what is written comes back in order, and the program ends with its input.
func TestEcho(t *testing.T) {
	cfg := config("s/echo", "echo")
	cfg.Grace = time.Minute
	p := start(t, cfg)
	for i := range 50 {
		if err := p.Write(fmt.Append(nil, "line ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		p.expect(fmt.Sprint("line ", i))
	}
	if exit, _ := p.close(false); exit.Code != 0 || exit.Signal != "" {
		t.Errorf("%+v", exit)
	}
	if err := p.Write([]byte("x")); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("write to what has ended: %v", err)
	}
}

// TestSplitLines: lines come whole, however they were printed: giant ones, empty ones, with a
// carriage return, and the last without an end.
func TestSplitLines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("%d %s", i, strings.Repeat("é", r.IntN(40_000))))
	}
	want = append(want, strings.Repeat("g", 5<<20), "after the giant", `{"no": "end"`)
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Replace(strings.Join(want, "\n"), "\n", "\r\n\n\n", 7)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, config("s/print", "print", path))
	for i, w := range want {
		if got := <-p.lines; got != w {
			t.Fatalf("line %d has %d bytes, want %d", i, len(got), len(w))
		}
	}
	<-p.Gone()
	if exit := p.Exit(); exit.Code != 0 || exit.Err != nil {
		t.Errorf("%+v", exit)
	}
}

// TestLineTooLong: beyond 64 MiB a line is no line: the program is ended, and it is said why.
func TestLineTooLong(t *testing.T) {
	r := io.MultiReader(strings.NewReader("one\n"), io.LimitReader(endless{}, 70<<20))
	var lines int
	err := process.Lines(r, func([]byte) { lines++ })
	if !errors.Is(err, process.ErrLineTooLong) || lines != 1 {
		t.Errorf("%d lines, then %v", lines, err)
	}
	r = io.MultiReader(io.LimitReader(endless{}, 64<<20), strings.NewReader("\ntwo"))
	lines = 0
	if err := process.Lines(r, func([]byte) { lines++ }); err != nil || lines != 2 {
		t.Errorf("%d lines, then %v", lines, err)
	}
}

// FuzzLines: lines are what stands between the ends of lines, however they are read.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), uint8(1))
	f.Add(bytes.Repeat([]byte("x\n"), 70_000), uint8(255))
	f.Fuzz(func(t *testing.T, text []byte, at uint8) {
		var want, got []string
		for _, line := range bytes.Split(text, []byte("\n")) {
			want = append(want, string(line))
		}
		if err := process.Lines(&chunks{text, int(at) + 1}, func(line []byte) { got = append(got, string(line)) }); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			want[i] = strings.TrimSuffix(w, "\r")
		}
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		if n := len(text); n > 0 && text[n-1] == '\r' { // no end of a line follows, so it is a part of it
			return
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}

// chunks reads some bytes at a time.
type chunks struct {
	rest []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.n, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestExit: how a program ended is known, and Close after that does nothing.
func TestExit(t *testing.T) {
	p := start(t, config("s/exit", "exit"))
	<-p.Gone()
	if exit, _ := p.close(false); exit.Code != 3 {
		t.Errorf("%+v", exit)
	}
	if _, err := process.Start(process.Config{Path: "/no/such/program"}); err == nil {
		t.Error("what is not there was started")
	}
}

// TestLadder: a program is given time to end at each step, and is killed at last.
func TestLadder(t *testing.T) {
	for name, c := range map[string]struct {
		now    bool
		code   int
		signal string
		least  time.Duration
	}{
		"polite":   {false, 7, "", grace},
		"stubborn": {false, -1, "killed", 2 * grace},
		"now":      {true, -1, "killed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, config("s/"+name, map[bool]string{true: "stubborn", false: name}[c.now]))
			p.expect("ready")
			exit, took := p.close(c.now)
			if exit.Code != c.code || exit.Signal != c.signal || took < c.least {
				t.Errorf("%+v after %v", exit, took)
			}
		})
	}
}

// TestQuiet: the program is first given time to hear that it is to stop.
func TestQuiet(t *testing.T) {
	cfg := config("s/quiet", "echo")
	cfg.Grace = time.Minute
	p := start(t, cfg)
	quiet := make(chan struct{})
	closed := make(chan error)
	go func() { closed <- p.Close(context.Background(), quiet, false) }()
	if err := p.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	p.expect("still here")
	close(quiet)
	if err := <-closed; err != nil || p.Exit().Code != 0 {
		t.Errorf("%v, %+v", err, p.Exit())
	}
}

// TestNothingLeft: whatever a program has started is ended with it, also in a session of its
// own, without the marker while the program lives, and after the program has crashed.
func TestNothingLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what left its group is found on Linux only")
	}
	for _, how := range []string{"marked", "bare", "exit"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			held := fifo(t)
			p := start(t, config("s/family/"+how, "family", held.path, how))
			f := held.open()
			p.expect("ready")
			if how == "exit" {
				<-p.Gone()
			}
			p.close(false)
			f.ended()
		})
	}
}

// TestHostKilled: when the host is killed its programs end; what they had started is found by
// its marker, and is ended by the next host that is told to.
func TestHostKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a program outlives its host but on Linux")
	}
	held := fifo(t)
	self, _ := os.Executable()
	h := exec.Command(self, held.path, "marked")
	h.Env = append(os.Environ(), program+"=host")
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	f := held.open()
	lines := bufio.NewScanner(out)
	lines.Scan() // ready
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.Wait()
	left := process.Leftovers(session("s/host"))
	for until := time.Now().Add(10 * time.Second); len(left) > 1 && time.Now().Before(until); { // the program ends a moment later
		left = process.Leftovers(session("s/host"))
	}
	if len(left) != 1 {
		t.Fatalf("left are %v, want what the program had started", left)
	}
	if left := process.End(session("s/host"), time.Second); len(left) > 0 {
		t.Errorf("%v are still there", left)
	}
	f.ended()
}

// TestLog: stderr is told line by line, without what the host gave the program to keep.
func TestLog(t *testing.T) {
	cfg := config("s/log", "stderr")
	cfg.Env = append(cfg.Env, "API_KEY=sk-0123456789")
	var mu sync.Mutex
	var got []string
	cfg.Log = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, text)
	}
	p := start(t, cfg)
	<-p.Gone()
	if want := []string{"key is ***", "end"}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}

// A fifoFile tells whether somebody holds it open.
type fifoFile struct {
	t    *testing.T
	path string
	f    *os.File
}

func fifo(t *testing.T) *fifoFile {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return &fifoFile{t: t, path: path}
}

func (f *fifoFile) open() *fifoFile {
	var err error
	if f.f, err = os.Open(f.path); err != nil { // waits for whoever writes
		f.t.Fatal(err)
	}
	return f
}

// ended checks that nobody holds it open any more.
func (f *fifoFile) ended() {
	f.t.Helper()
	if err := f.f.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.f.Read(make([]byte, 1)); err != io.EOF {
		f.t.Errorf("somebody is left: %v", err)
	}
}

// BenchmarkStream reads 100 MB from a program. It must take no more than a second, and no more
// than 20 MB of memory.
func BenchmarkStream(b *testing.B) {
	const mb = 100
	b.SetBytes(mb << 20)
	for b.Loop() {
		var n int
		cfg := config("s/stream", "stream", strconv.Itoa(mb))
		cfg.Line = func(line []byte) { n += len(line) + 1 }
		p, err := process.Start(cfg)
		if err != nil {
			b.Fatal(err)
		}
		<-p.Gone()
		if n < mb<<20-2000 {
			b.Fatalf("%d bytes", n)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/(1<<20), "heap-MB")
}
