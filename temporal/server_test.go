package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"log/slog"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/temporal"
)

// program returns the program of Temporal.
func program(t testing.TB) string {
	t.Helper()
	path := os.Getenv("DIALAI_TEMPORAL_CLI")
	if path == "" {
		path = filepath.Join("..", ".tools", "temporal")
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	const why = "no Temporal here: GOBIN=$PWD/.tools go install github.com/temporalio/cli/cmd/temporal@v1.5.1 in the root of the repository builds it in some minutes, or DIALAI_TEMPORAL_CLI names one"
	if os.Getenv("DIALAI_REQUIRE_TEMPORAL") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// A server is a server of Temporal on loopback, which keeps its state in a file.
type server struct {
	testing.TB
	address string
	file    string
	process *exec.Cmd
	client  client.Client
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{TB: t, file: filepath.Join(t.TempDir(), "temporal.db")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	l.Close()
	s.start(program(t))
	t.Cleanup(s.kill)
	return s
}

// start starts the server, and waits until it answers.
func (s *server) start(program string) {
	s.Helper()
	_, port, _ := net.SplitHostPort(s.address)
	s.process = exec.Command(program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--db-filename", s.file, "--log-level", "never")
	if err := s.process.Start(); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := client.DialContext(ctx, client.Options{HostPort: s.address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		if err == nil {
			if s.client != nil {
				c.Close() // that of before connects again
				return
			}
			s.client = c
			s.Cleanup(c.Close)
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("Temporal does not answer: %v", err)
		case <-again.C:
		}
	}
}

func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// A site is a store with who is asked there, and workers.
type site struct {
	*server
	cast   *cast
	store  session.Store
	c      *temporal.Client
	queue  string
	tenant string // of the Runners that are made from now on
}

func (s *server) site(says func(context.Context, specialist.Question) (string, error)) *site {
	at := &site{server: s, cast: &cast{says: says}, store: store.NewMemory(), queue: strings.ReplaceAll(s.Name(), "/", "-")}
	at.c = &temporal.Client{Temporal: s.client, Runner: at.runner(), Queue: at.queue}
	return at
}

func (s *site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) runner() *runner.Runner {
	s.Helper()
	tenant := s.tenant
	r, err := runner.New(runner.Config{Store: s.store, Resolver: s.cast, Tenant: func(*machine.Machine, json.RawMessage) string { return tenant }})
	s.ok(err)
	s.Cleanup(func() { s.ok(r.Close()) })
	return r
}

// worker starts a worker, with a Runner of its own.
func (s *site) worker() worker.Worker {
	s.Helper()
	w, err := (&temporal.Client{Temporal: s.client, Runner: s.runner(), Queue: s.queue}).NewWorker(s.Context())
	s.ok(err)
	s.ok(w.Start())
	return w
}

func (s *site) begin(m *machine.Machine) *session.Session {
	s.Helper()
	one, err := s.c.Runner.Start(s.Context(), m, runner.StartOptions{Driver: session.DriverNone})
	s.ok(err)
	_, err = s.c.Adopt(s.Context(), one.ID, nil)
	s.ok(err)
	return one
}

// ended waits for the end of the workflow of a session.
func (s *site) ended(one *session.Session, status string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 90*time.Second)
	defer cancel()
	id, err := s.c.WorkflowID(ctx, one.ID)
	s.ok(err)
	var r temporal.Result
	s.ok(s.client.GetWorkflow(ctx, id, "").Get(ctx, &r))
	if now := s.now(one); r.Status != status || now.Status.String() != status {
		s.Errorf("the workflow ends with %+v, the session is %s", r, now.Status)
	}
}

func (s *site) now(one *session.Session) *session.Session {
	s.Helper()
	now, err := s.c.Runner.Session(s.Context(), one.ID)
	s.ok(err)
	return now
}

// stands waits until the workflow says so.
func (s *site) stands(one *session.Session, is func(temporal.Status) bool) temporal.Status {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		at, err := s.c.Status(ctx, one.ID)
		if err == nil && is(at) {
			return at
		}
		select {
		case <-ctx.Done():
			s.Fatalf("the workflow stands at %+v, %v, its history is %v", at, err, s.kinds(one))
		case <-again.C:
		}
	}
}

func (s *site) workflowID(one *session.Session) string {
	s.Helper()
	id, err := s.c.WorkflowID(s.Context(), one.ID)
	s.ok(err)
	return id
}

func needsHuman(at temporal.Status) bool { return at.Status == "needs_human" }

// kinds returns the kinds of the events of the newest run of a session, and why tasks have failed.
func (s *site) kinds(one *session.Session) (list []string) {
	events := s.client.GetWorkflowHistory(context.WithoutCancel(s.Context()), s.workflowID(one), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return append(list, err.Error())
		}
		list = append(list, e.EventType.String()+e.GetWorkflowTaskFailedEventAttributes().GetFailure().GetMessage())
	}
	return list
}

// TestServerToTheEnd: a session with two long asks, a short one and a human ends as on a pool, and asks each once.
func TestServerToTheEnd(t *testing.T) {
	s := newServer(t).site(says("again"))
	defer s.worker().Stop()
	one := s.begin(machineOf(t, `,"quorum":3`, web("a", "10m"), web("b", "20m"), web("quick", "5s"), human, half))
	at := s.stands(one, needsHuman)
	s.cast.askedOnce(t, 3)
	ruling := seen(t, s.c.Runner, one, temporal.Ruling{RoundID: at.RoundID, Sequence: at.Sequence, SpecialistID: "carol", TransitionName: "finish"})
	for range 2 { // the same update twice is done once
		done, err := s.c.Decide(t.Context(), one.ID, "key", ruling)
		if s.ok(err); !done.Executed {
			t.Errorf("the ruling came to %+v", done)
		}
	}
	s.ended(one, "completed")
	if now := s.now(one); now.Executed != 1 || !now.Last().How.Ruling() {
		t.Errorf("executed are %d", now.Executed)
	}
	h := s.history(one, "human")
	t.Logf("%d events", len(h.Events))
	if id, err := s.c.Adopt(t.Context(), one.ID, nil); err != nil { // a workflow of what has ended ends at once
		t.Errorf("adopting it again: %s, %v", id, err)
	}
	s.ended(one, "completed")
}

// TestServerRefusesUpdates before anything is in the history, or says what the engine says.
func TestServerRefusesUpdates(t *testing.T) {
	s := newServer(t).site(nil)
	defer s.worker().Stop()
	one := s.begin(machineOf(t, "", human, half))
	at := s.stands(one, needsHuman)
	before := len(s.history(one, "waiting").Events)
	if _, err := s.c.Decide(t.Context(), one.ID, "", seen(t, s.c.Runner, one, temporal.Ruling{RoundID: "another", SpecialistID: "carol", TransitionName: "finish"})); err == nil || !strings.Contains(err.Error(), "the open round is") {
		t.Errorf("a ruling of another round: %v", err)
	}
	if after := len(s.history(one, "waiting").Events); after != before {
		t.Errorf("a refused update takes %d events", after-before)
	}
	if done, err := s.c.Decide(t.Context(), one.ID, "", seen(t, s.c.Runner, one, temporal.Ruling{RoundID: at.RoundID, SpecialistID: "mallory", TransitionName: "finish"})); err != nil || done.Executed || done.Code == "" {
		t.Errorf("a ruling of nobody: %+v, %v", done, err)
	}
	// Past Temporal, with no worker at that moment.
	_, err := s.c.Runner.Decide(t.Context(), runner.Ruling{SessionID: one.ID, RoundID: at.RoundID, SpecialistID: "carol", TransitionName: "finish"})
	s.ok(err)
	s.ok(s.c.Changed(t.Context(), one.ID, s.now(one).Sequence))
	s.ended(one, "completed")
	s.history(one, "elsewhere")
}

// TestServerLosesWorkflows: a workflow that is terminated while an ask is out is adopted, and one
// whose history is long goes on as a new run.
func TestServerLosesWorkflows(t *testing.T) {
	gone := make(chan struct{})
	s := newServer(t).site(func(ctx context.Context, q specialist.Question) (string, error) {
		select {
		case <-gone:
			return "finish", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	defer s.worker().Stop()
	one := s.begin(machineOf(t, "", web("slow", "10m"), first))
	s.stands(one, func(at temporal.Status) bool { return len(at.Asks) == 1 })
	id, err := s.c.WorkflowID(t.Context(), one.ID)
	s.ok(err)
	s.ok(s.client.TerminateWorkflow(t.Context(), id, "", "a test"))
	if s.now(one).Status != session.Running {
		t.Error("the session has changed")
	}
	_, err = s.c.Adopt(t.Context(), one.ID, nil)
	s.ok(err)
	close(gone)
	s.ended(one, "completed")
	s.cast.askedOnce(t, 1)
	s.history(one, "adopted")

	two := s.begun(machineOf(t, "", human, half), temporal.WorkflowName, temporal.Input{MostEvents: 10})
	id = s.workflowID(two)
	first, err := s.client.DescribeWorkflowExecution(t.Context(), id, "")
	s.ok(err)
	began := first.WorkflowExecutionInfo.Execution.RunId
	for n := range 3 {
		at := s.stands(two, needsHuman)
		_, err := s.c.Decide(t.Context(), two.ID, fmt.Sprint(n), seen(t, s.c.Runner, two, temporal.Ruling{RoundID: at.RoundID, Sequence: at.Sequence, SpecialistID: "carol", TransitionName: "again"}))
		s.ok(err)
		s.stands(two, func(now temporal.Status) bool { return now.RoundID != at.RoundID })
	}
	now, err := s.client.DescribeWorkflowExecution(t.Context(), id, "")
	if s.ok(err); now.WorkflowExecutionInfo.Execution.RunId == began || s.now(two).Executed != 3 {
		t.Errorf("the run is the first still, executed are %d", s.now(two).Executed)
	}
}

// until waits for what comes soon.
func (s *server) until(is func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			s.Fatal("it does not come to that")
		case <-again.C:
		}
	}
}

// TestServerOfTwoVersions: workers of this version and of a former one share a queue. Whoever begins a workflow, and
// whoever gets its tasks, it goes on, also when the former ones are gone.
func TestServerOfTwoVersions(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprintf("before fewer events %t", before), func(t *testing.T) {
			t.Parallel() // they wait, most of the time
			twoVersions(t, before)
		})
	}
}

func twoVersions(t *testing.T, before bool) {
	s := newServer(t).site(func(context.Context, specialist.Question) (string, error) { return "", errors.New("down") })
	defer s.worker().Stop()
	former, err := (&temporal.Client{Temporal: s.client, Runner: s.runner(), Queue: s.queue}).NewFormerWorker(t.Context(), before)
	s.ok(err)
	s.ok(former.Start())
	m := machineOf(t, "", web("a", "10m"), human, half)
	var list []*session.Session
	for range 2 {
		list = append(list, s.begin(m), s.begun(m, temporal.FormerWorkflowName, temporal.Input{}))
	}
	for n, transition := range []string{"again", "again", "finish"} {
		for _, one := range list {
			at := s.stands(one, func(at temporal.Status) bool { return needsHuman(at) && at.RoundID == s.now(one).Key().ID() })
			done, err := s.c.Decide(t.Context(), one.ID, fmt.Sprint(n), seen(t, s.c.Runner, one, temporal.Ruling{RoundID: at.RoundID, SpecialistID: "carol", TransitionName: transition}))
			if s.ok(err); !done.Executed {
				t.Errorf("ruling %d came to %+v", n, done)
			}
		}
		if n == 1 {
			former.Stop()
		}
	}
	for _, one := range list {
		s.ended(one, "completed")
		if now := s.now(one); now.Executed != 3 {
			t.Errorf("executed are %d", now.Executed)
		}
	}
	s.cast.askedOnce(t, 3*len(list))
}

// begun starts a session, and a workflow of it of that type as others than Adopt do.
func (s *site) begun(m *machine.Machine, workflowName string, in temporal.Input) *session.Session {
	s.Helper()
	one, err := s.c.Runner.Start(s.Context(), m, runner.StartOptions{Driver: session.DriverNone})
	s.ok(err)
	queue, err := s.c.TaskQueue(s.Context())
	s.ok(err)
	in.SessionID = one.ID.String()
	_, err = s.client.ExecuteWorkflow(s.Context(), client.StartWorkflowOptions{ID: s.workflowID(one), TaskQueue: queue}, workflowName, in)
	s.ok(err)
	return one
}

// TestServerKilled: the server of Temporal is killed while an ask is out, the answer is recorded all the same, and
// the session goes on when it is back on its file.
func TestServerKilled(t *testing.T) {
	back := make(chan struct{})
	s := newServer(t).site(func(ctx context.Context, q specialist.Question) (string, error) {
		select {
		case <-back:
			return "finish", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	defer s.worker().Stop()
	one := s.begin(machineOf(t, "", web("slow", "10m"), first))
	s.stands(one, func(at temporal.Status) bool { return len(at.Asks) == 1 })
	s.kill()
	close(back)
	s.start(program(t))
	s.ended(one, "completed")
	s.cast.askedOnce(t, 1)
}
