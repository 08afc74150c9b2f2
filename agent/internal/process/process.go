// Package process runs the program of a coding agent: reads what it prints line by line,
// writes to it, and ends it with everything that it has started.
//
// An agent starts shells, and those start servers, in sessions and process groups of their
// own, which outlive it. So every process of a session carries a marker in its environment,
// DIALAI_SESSION=<id>, and is found by it, also by another run of the host (Marked). On Linux
// the program ends when the host does, however that ended: else it would go on, and cost,
// unwatched. Elsewhere the process group is all that can be ended.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Config says what to run.
type Config struct {
	Path string
	Args []string
	Dir  string
	Env  []string // beside the environment of the host, less what Without names
	// Without are names of the host's environment that the program is not to have.
	Without []string
	Session string // the marker

	// Line is called with each line that the program prints, without its end, by one goroutine;
	// the line is only lent. While Line runs, nothing more is read.
	Line func(line []byte)
	// Log is called with each line that it prints to stderr, by another goroutine.
	Log func(text string)
	// Grace is how long each step of Close waits for the program: 0 means 5 s.
	Grace time.Duration
}

// An Exit says how a program ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // its name, if one did
	Left   []int  // processes of the session that could not be ended
	Err    error  // why nothing more was read: ErrLineTooLong, or a fault of the pipe
}

// A Process is a running program. It may be used concurrently.
type Process struct {
	cfg    Config
	cmd    *exec.Cmd
	stdin  *writer
	stdout io.ReadCloser
	gone   chan struct{} // closed once exit is known
	died   chan struct{} // closed once the program itself has ended

	mu   sync.Mutex
	exit Exit
}

// Start starts a program.
func Start(cfg Config) (*Process, error) {
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Dir = cfg.Dir
	cmd.Env = environment(cfg)
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cfg: cfg, cmd: cmd, stdout: stdout, gone: make(chan struct{}), died: make(chan struct{})}
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Path, err)
	}
	p.stdin = newWriter(stdin)
	var read sync.WaitGroup
	read.Go(func() { p.readLines() })
	read.Go(func() { p.readLog(stderr) })
	go p.watch(&read, stdout, stderr)
	return p, nil
}

// live starts the program and waits for it in one thread, as long as which lives the program
// does at most.
func (p *Process) live(started chan<- error) {
	keepThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	state, err := p.cmd.Process.Wait()
	p.mu.Lock()
	p.exit.Code, p.exit.Signal = -1, ""
	if err == nil {
		p.exit.Code, p.exit.Signal = state.ExitCode(), signalOf(state)
	}
	p.mu.Unlock()
	close(p.died)
}

// settle is how long what is in a pipe is read for, once nobody should be left to write to it.
const settle = 2 * time.Second

// watch tidies up after the program: what it has left running is ended, and what it has printed
// is read to the end.
func (p *Process) watch(read *sync.WaitGroup, pipes ...io.ReadCloser) {
	<-p.died
	left := endAll(p.cfg.Session, p.cmd.Process.Pid, p.cfg.Grace)
	for _, pipe := range pipes {
		if d, ok := pipe.(interface{ SetReadDeadline(time.Time) error }); ok {
			_ = d.SetReadDeadline(time.Now().Add(settle)) // else it waits for whoever holds it open
		}
	}
	read.Wait()
	for _, pipe := range pipes {
		_ = pipe.Close()
	}
	p.stdin.abandon()
	p.mu.Lock()
	p.exit.Left = left
	p.mu.Unlock()
	close(p.gone)
}

// Gone is closed once the program has ended, all its lines were read, and Exit says how.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Exit says how the program ended, once it has.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Write writes a line to the program, after those written before. It does not wait for the
// program to read it: whoever writes may be the one who reads what the program says.
func (p *Process) Write(line []byte) error { return p.stdin.write(line) }

// Close ends the program and everything it has started, in steps, each of which it is given
// some time for: its stdin ends; its group is asked to end; all are killed. quiet is when it
// has heard that it is to stop (nil: it need not); now kills at once. Close returns when
// nothing is left, or with an error that names what is.
func (p *Process) Close(ctx context.Context, quiet <-chan struct{}, now bool) error {
	if !now {
		_ = p.within(ctx, quiet) || p.within(ctx, p.endInput()) || p.within(ctx, p.terminate())
	}
	p.kill()
	select {
	case <-p.gone:
	case <-ctx.Done():
		return fmt.Errorf("end %s: %w", p.cfg.Session, ctx.Err())
	}
	if left := p.Exit().Left; len(left) > 0 {
		return fmt.Errorf("processes %v of %s could not be ended", left, p.cfg.Session)
	}
	return nil
}

// within waits some time for a step to have its effect and reports whether the program has
// ended.
func (p *Process) within(ctx context.Context, step <-chan struct{}) (ended bool) {
	if step == nil {
		return false
	}
	timer := time.NewTimer(p.cfg.Grace)
	defer timer.Stop()
	select {
	case <-p.died:
		return true
	case <-step:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (p *Process) endInput() <-chan struct{} {
	p.stdin.close()
	return p.died
}

func (p *Process) terminate() <-chan struct{} {
	terminateGroup(p.cmd.Process.Pid)
	return p.died
}

func (p *Process) kill() {
	select {
	case <-p.died: // watch does the rest
	default:
		killTree(p.cmd.Process.Pid)
	}
}

func environment(cfg Config) (env []string) {
	without := append([]string{marker}, cfg.Without...)
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !slices.Contains(without, name) {
			env = append(env, e)
		}
	}
	return append(append(env, cfg.Env...), marker+"="+cfg.Session)
}

// marker is the name in the environment by which processes of a session are known.
const marker = "DIALAI_SESSION"

// readLines gives the program's lines to whoever runs it.
func (p *Process) readLines() {
	err := Lines(p.stdout, p.cfg.Line)
	if err == nil {
		return
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		p.mu.Lock()
		p.exit.Err = err
		p.mu.Unlock()
	}
	p.kill()
	_, _ = io.Copy(io.Discard, p.stdout)
}

// longestLog is how much is kept of a line of stderr.
const longestLog = 64 << 10

func (p *Process) readLog(stderr io.Reader) {
	r := lineReader{r: stderr, most: longestLog, cut: true}
	for {
		line, err := r.next()
		if text := p.Masked(string(bytes.ToValidUTF8(line, []byte("�")))); text != "" && p.cfg.Log != nil {
			p.cfg.Log(text)
		}
		if err != nil {
			return
		}
	}
}

// Masked is a text of the program without the values that the host gave it to keep.
func (p *Process) Masked(text string) string {
	for _, e := range p.cfg.Env {
		if _, value, _ := strings.Cut(e, "="); len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}

// shortestSecret is how long a value of the environment is that is not shown: shorter ones are
// switches.
const shortestSecret = 8
