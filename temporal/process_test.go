package temporal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/temporal"
)

// A service answers what it is asked, once it may, and counts under which keys it was asked.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	keys  []string
	asked chan string
	may   chan struct{} // closed: it answers
	said  func()        // called when the first answer is on its way; nil does nothing
}

func newService(t *testing.T) *service {
	s := &service{asked: make(chan string, 100), may: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		s.mu.Lock()
		s.keys = append(s.keys, key)
		s.mu.Unlock()
		s.asked <- key
		select {
		case <-s.may:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"transitionName":"finish","toState":"done","reasoning":"` + secretWord + `"}`))
			_ = http.NewResponseController(w).Flush()
			s.mu.Lock()
			said := s.said
			s.said = nil
			s.mu.Unlock()
			if said != nil {
				said()
			}
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A place is a store in a file with dialai-temporal, as it is built, on it.
type place struct {
	*server
	program string
	store   string
	env     []string
	listens string // the address of the newest server
	says    string // the file with what that prints
}

// builds is the folder of the program that all tests use.
var builds string

var build = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-o", builds, "./cmd/dialai-temporal").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if builds, err = os.MkdirTemp("", "temporal"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(builds)
		return m.Run()
	}())
}

func newPlace(t *testing.T, hook string) *place {
	t.Helper()
	p := &place{server: newServer(t), program: filepath.Join(builds, "dialai-temporal"), store: filepath.Join(t.TempDir(), "dialai.db")}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "DIALAI_WEBHOOK_ALLOW="+strings.TrimPrefix(hook, "http://"), "A_WEBHOOK_TOKEN=secret", "XDG_DATA_HOME="+t.TempDir())
	return p
}

// serve starts a server with a worker.
func (p *place) serve() *exec.Cmd {
	p.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Fatal(err)
	}
	p.listens = l.Addr().String()
	l.Close()
	cmd := exec.Command(p.program, "serve", "--listen", p.listens, "--store", p.store, "--temporal", p.address)
	cmd.Env = p.env
	var log bytes.Buffer
	cmd.Stderr = &log
	p.says = filepath.Join(p.TempDir(), "says")
	says, err := os.Create(p.says)
	if err != nil {
		p.Fatal(err)
	}
	defer says.Close()
	cmd.Stdout = says
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if p.Failed() {
			p.Logf("the server says\n%s", log.String())
		}
	})
	return cmd
}

// call runs a command on the store to its end and returns what it prints.
func (p *place) call(args ...string) string {
	p.Helper()
	return p.run(append(args, "--store", p.store)...)
}

func (p *place) run(args ...string) string {
	p.Helper()
	cmd := exec.Command(p.program, args...)
	cmd.Env = p.env
	var message bytes.Buffer
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("dialai-temporal %v: %v\n%s%s", args, err, out, message.String())
	}
	return string(out)
}

// begin starts a session that no pool drives.
func (p *place) begin(m *machine.Machine) *session.Session {
	p.Helper()
	s, r := p.open()
	defer s.Close()
	defer r.Close()
	one, err := r.Start(p.Context(), m, runner.StartOptions{Driver: session.DriverNone})
	if err != nil {
		p.Fatal(err)
	}
	return one
}

func (p *place) open() (*store.SQLite, *runner.Runner) {
	p.Helper()
	s, err := store.OpenSQLite(p.Context(), p.store, store.SQLiteOptions{})
	if err != nil {
		p.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: s, Resolver: &cast{}})
	if err != nil {
		p.Fatal(err)
	}
	return s, r
}

// ends waits for the end of the workflow, and returns the session.
func (p *place) ends(one *session.Session, status string) *session.Session {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 90*time.Second)
	defer cancel()
	s, r := p.open()
	defer s.Close()
	defer r.Close()
	id, err := (&temporal.Client{Temporal: p.client, Runner: r}).WorkflowID(ctx, one.ID)
	if err != nil {
		p.Fatal(err)
	}
	var result temporal.Result
	if err := p.client.GetWorkflow(ctx, id, "").Get(ctx, &result); err != nil {
		p.Fatal(err)
	}
	now, err := r.Session(ctx, one.ID)
	if err != nil || result.Status != status || now.Status.String() != status {
		p.Fatalf("the workflow ends with %+v, the session with %v, %v", result, now, err)
	}
	return now
}

// TestWorkerKilled: the process that makes an ask is killed while the service works, and another makes it, under the
// same key. The log is that of a session that nobody has disturbed.
func TestWorkerKilled(t *testing.T) {
	hook := newService(t)
	p := newPlace(t, hook.URL)
	text := strings.ReplaceAll(web("slow", "10m"), "https://x.example/", hook.URL)
	one := p.begin(machineOf(t, "", text, first))
	worker := p.serve()
	if out := p.call("adopt", one.ID.String(), "--temporal", p.address); !strings.Contains(out, "is driven by workflow dialai/") {
		t.Errorf("adopt says %s", out)
	}
	key := <-hook.asked
	if out := p.call("status", one.ID.String()[:8], "--temporal", p.address, "--json"); !strings.Contains(out, `"status":"waiting"`) || !strings.Contains(out, `"specialistId":"slow"`) {
		t.Errorf("the workflow stands at %s", out)
	}
	_ = worker.Process.Kill()
	_ = worker.Wait()
	p.serve()
	if again := <-hook.asked; again != key || key == "" {
		t.Errorf("asked again is %q, before %q", again, key)
	}
	close(hook.may)
	p.ends(one, "completed")
	p.undisturbed(one, 0)
}

// undisturbed fails the test unless the log is that of a session that nobody has disturbed, but that an ask was repeated so
// often, and the store is whole.
func (p *place) undisturbed(one *session.Session, repeats int) {
	p.Helper()
	var kinds []string
	repeated := 0
	for line := range strings.Lines(p.call("log", one.ID.String(), "--json")) {
		var e struct {
			Kind string
			Data struct {
				Asks []struct{ Repeat int }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.Fatal(err)
		}
		if len(e.Data.Asks) == 1 && e.Data.Asks[0].Repeat > 0 {
			repeated++
			continue
		}
		kinds = append(kinds, e.Kind)
	}
	if got, want := strings.Join(kinds, " "), "session_created round_opened driver_changed asked proposed judged gated executed ended"; got != want || repeated > repeats {
		p.Errorf("the log is %s, with %d repeats, want %s", got, repeated, want)
	}
	p.call("store", "verify")
}

// TestKilled kills what runs a session, and starts it again: its worker inside an advance, its worker between an answer and
// its commit, worker and Temporal while an ask is out. The service is asked under one key; the log is that of a session that
// nobody has disturbed.
func TestKilled(t *testing.T) {
	for _, c := range []struct {
		name, timeout string
		answers       bool // when it is killed
		temporal      bool // is killed as well
		repeats       int
	}{
		{"worker in advance", "25s", false, false, 1},
		{"worker with an answer in ask", "10m", true, false, 0},
		{"worker with an answer in advance", "25s", true, false, 1},
		{"worker and Temporal in ask", "10m", false, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			hook := newService(t)
			p := newPlace(t, hook.URL)
			one := p.begin(machineOf(t, "", strings.ReplaceAll(web("a", c.timeout), "https://x.example/", hook.URL), first))
			worker := p.serve()
			killed := make(chan struct{})
			kill := func() { _ = worker.Process.Kill(); _ = worker.Wait(); close(killed) }
			if c.answers {
				hook.said = kill
				close(hook.may)
			}
			p.call("adopt", one.ID.String(), "--temporal", p.address)
			key := <-hook.asked
			if !c.answers {
				kill()
			}
			<-killed
			if c.temporal {
				p.kill()
				p.start(program(t))
			}
			if !c.answers {
				close(hook.may)
			}
			p.serve()
			p.ends(one, "completed")
			p.undisturbed(one, c.repeats)
			hook.mu.Lock()
			defer hook.mu.Unlock()
			for _, k := range hook.keys {
				if k != key || key == "" {
					t.Errorf("asked was under %q", hook.keys)
				}
			}
		})
	}
}

// readiness waits until /readyz says that of Temporal.
func (p *place) readiness(want string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		var said struct {
			Status string
			Checks map[string]string
		}
		r, err := http.Get("http://" + p.listens + "/readyz")
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&said)
			r.Body.Close()
			if err == nil && said.Checks["temporal"] == want && said.Status == "ready" && r.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			p.Fatalf("/readyz says %+v, %v, want %s of Temporal", said, err, want)
		case <-again.C:
		}
	}
}

// TestTemporalDown: while Temporal is down /readyz says so, a ruling is taken, and the workflow goes on when it is back.
func TestTemporalDown(t *testing.T) {
	p := newPlace(t, "")
	one := p.begin(machineOf(t, "", human, half))
	p.serve()
	p.readiness("ok")
	p.call("adopt", one.ID.String(), "--temporal", p.address)
	p.workflow(one, needsHuman)
	p.kill()
	p.readiness("failing")
	if out := p.run("decide", one.ID.String(), "finish", "--as", "carol", "--server", "http://"+p.listens, "--key-file", filepath.Join(filepath.Dir(p.store), "server-key")); !strings.Contains(out, "complete") {
		t.Errorf("the ruling came to %s", out)
	}
	tries := time.NewTimer(6 * time.Second) // longer than one try to tell the workflow takes, which so has to be made again
	<-tries.C
	p.start(program(t))
	p.readiness("ok")
	p.ends(one, "completed")
}

// workflow waits until the workflow of a session stands so.
func (p *place) workflow(one *session.Session, is func(temporal.Status) bool) {
	p.Helper()
	st, r := p.open()
	defer st.Close()
	defer r.Close()
	(&site{server: p.server, c: &temporal.Client{Temporal: p.client, Runner: r}}).stands(one, is)
}

// TestCommandsWorkOnTheStore: a timer wakes the workflow, other commands show what came of it, and what is missing is said.
func TestCommandsWorkOnTheStore(t *testing.T) {
	p := newPlace(t, "")
	one := p.begin(machineOf(t, `,"due":{"in":"4s","then":"finish"}`, human, half))
	worker := p.serve()
	p.call("adopt", one.ID.String(), "--temporal", p.address)
	p.ends(one, "completed")
	if out := p.call("show", one.ID.String()); !strings.Contains(out, "completed") || !strings.Contains(out, "Driver:        temporal (dialai/") {
		t.Errorf("show says %s", out)
	}
	left, right := p.begin(machineOf(t, "", human, half)), p.begin(machineOf(t, "", human, half))
	out := p.call("adopt", "--all", "--temporal", p.address)
	for _, id := range []string{left.ID.String(), right.ID.String()} {
		if !strings.Contains(out, id+" is driven by workflow dialai/") || !strings.Contains(p.call("show", id, "--json"), `"driver":"temporal"`) {
			t.Errorf("adopt --all says %s", out)
		}
	}
	if strings.Contains(out, one.ID.String()) {
		t.Errorf("adopt --all takes what has ended: %s", out)
	}
	p.call("decide", left.ID.String(), "finish", "--as", "carol")
	_ = worker.Process.Signal(os.Interrupt)
	if err := worker.Wait(); err != nil && worker.ProcessState.ExitCode() != 130 {
		t.Errorf("the server ends with %v", err)
	}
	for _, c := range [][]string{{"adopt", one.ID.String()}, {"status", one.ID.String(), "--temporal-queue", "dialai"}} {
		cmd := exec.Command(p.program, append(c, "--store", p.store)...)
		cmd.Env = p.env
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "which se") {
			t.Errorf("dialai-temporal %v says %s, %v", c, out, err)
		}
	}
}

// TestServing: a server says where its sessions are in Temporal, also where that is down, and the commands say who asks for
// work there.
func TestServing(t *testing.T) {
	p := newPlace(t, "")
	_, port, _ := net.SplitHostPort(p.address)
	n, _ := strconv.Atoi(port)
	page := fmt.Sprintf("http://127.0.0.1:%d/namespaces/default/", n+1000)
	said := func(want string) {
		t.Helper()
		p.until(func() bool { text, _ := os.ReadFile(p.says); return strings.Contains(string(text), page) })
		if text, _ := os.ReadFile(p.says); !regexp.MustCompile(want).Match(text) {
			t.Errorf("the server says %s, want %s", text, want)
		}
	}
	queue := func() (q temporal.QueueStatus) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.call("status", "--temporal", p.address, "--json")), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	one := p.begin(machineOf(t, "", human, half))
	p.call("adopt", one.ID.String(), "--temporal", p.address)
	p.until(func() bool { return queue().Backlog == 1 }) // nobody takes it
	if out := p.call("status", "--temporal", p.address); !strings.Contains(out, "Pollers:     0\n") || !strings.Contains(out, "hint: nobody runs these sessions: dialai-temporal serve --temporal "+p.address+" does") {
		t.Errorf("status says %s", out)
	}
	worker := p.serve()
	said(`(?m)^  temporal at ` + p.address + `, namespace default, task queue dialai/[0-9a-f]{16}, no pollers before this one\n    ` + page + `task-queues/dialai%2F[0-9a-f]{16}$`)
	p.workflow(one, needsHuman)
	p.until(func() bool {
		q := queue()
		return len(q.Pollers) == 1 && q.Pollers[0].Workflows && q.Pollers[0].Activities && q.Backlog == 0
	})
	for args, want := range map[string]string{
		"status --json " + one.ID.String(): `"code":"no_proposals","wakeAt":0,"asks":\[\],"stored":\d+,`,
		"status":                           `(?m)^Temporal:    ` + p.address + `\nNamespace:   default\nTask queue:  dialai/[0-9a-f]{16}\nPage:        ` + page + `task-queues/dialai%2F[0-9a-f]{16}\nBacklog:     0\nPollers:     1\n  \d+@\S*  workflows and activities, asked \d+s ago$`,
		"status --temporal-ui https://temporal.example/": `(?m)^Page:        https://temporal.example/namespaces/default/task-queues/dialai%2F`,
		"status " + one.ID.String():                      `^Workflow:    dialai/[0-9a-f]{16}/` + one.ID.String() + `\nPage:        ` + page + `workflows/dialai%2F[0-9a-f]{16}%2F` + one.ID.String() + `\nNamespace:   default\nTask queue:  dialai/[0-9a-f]{16}\nPollers:     1\nStatus:      needs_human no_proposals\n`,
	} {
		if out := p.call(append(strings.Fields(args), "--temporal", p.address)...); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s says %s, want %s", args, out, want)
		}
	}
	_ = worker.Process.Signal(os.Interrupt)
	_ = worker.Wait()
	p.call("decide", one.ID.String(), "finish", "--as", "carol")
	silent := exec.Command(p.program, "status", one.ID.String(), "--temporal", p.address, "--store", p.store)
	silent.Env = p.env
	if out, err := silent.CombinedOutput(); err == nil || !regexp.MustCompile(`no worker says where its workflow stands, and \d+@\S* asked for work \d+s ago: dialai-temporal serve --temporal `+p.address+` is one`).Match(out) {
		t.Errorf("without a worker status says %s, %v", out, err)
	}
	p.serve()
	p.until(func() bool {
		return strings.Contains(p.call("status", one.ID.String(), "--temporal", p.address), " (the store is at ")
	})
	p.kill()
	p.store = filepath.Join(t.TempDir(), "other.db")
	p.serve()
	said(`(?m)^  temporal at ` + p.address + `, namespace default, task queue dialai/[0-9a-f]{16}, which does not answer: sessions there go on when it does$`)
	p.readiness("failing")
}

// TestGuide does what docs/temporal.md says, but for how the servers are started.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, "")
	dir := t.TempDir()
	cmd := exec.Command(p.program, "serve", "--listen", "127.0.0.1:0", "--temporal", p.address)
	cmd.Env = p.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	done := 0
	for _, block := range strings.Split(string(text), "```")[1:] {
		kind, code, _ := strings.Cut(block, "\n")
		switch {
		case kind == "json":
			if err := os.WriteFile(filepath.Join(dir, "expense.json"), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
		case kind == "sh" && strings.Contains(code, "adopt"):
			done++
			sh := exec.Command("sh", "-c", strings.ReplaceAll(code, "127.0.0.1:7233", p.address))
			sh.Dir, sh.Env = dir, append(p.env, "PATH="+filepath.Dir(p.program)+":"+os.Getenv("PATH"))
			out, err := sh.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			for _, want := range []string{"is driven by workflow dialai/", "Status:", "Session complete: paid"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("it does not say %q: %s", want, out)
				}
			}
		}
	}
	if done != 1 {
		t.Errorf("%d blocks were done", done)
	}
}
