package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A taken is a session whose only ask is out in one process when another process
// takes it over. Its service takes $0.12 for each key, where the machine
// expects $0.60, and answers only when it is told to.
type taken struct {
	*testing.T
	dir, store string
	id         specialist.SessionID
	arrived    chan string   // the key of each request, as it comes
	answer     chan struct{} // closed when the service may answer
	copied     []byte        // the store, as it was before

	mu    sync.Mutex
	costs map[string]exact.Money // by key
}

const (
	takenCost     = 12 * exact.Dollar / 100
	takenEstimate = 60 * exact.Dollar / 100
	takenLimit    = 60 * exact.Dollar / 100
)

func newTaken(t *testing.T) *taken {
	dir := t.TempDir()
	k := &taken{T: t, dir: dir, store: filepath.Join(dir, "dialai.db"), arrived: make(chan string, 16), answer: make(chan struct{}), costs: map[string]exact.Money{}}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	m, err := machine.Parse("taken.json", []byte(fmt.Sprintf(`{"machineName":"taken","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b"}},"b":{}},
		"guards":{"budget":{"hard_limit_usd":%s}},"specialists":[
		{"role":"proposer","specialistId":"dear","strategyWebhookUrl":"%s/dear","webhookTokenName":"TAKEN_WEBHOOK_TOKEN","estimatedCostUSD":%s},
		{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}]}`,
		takenLimit, server.URL, takenEstimate)), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	inProcess(t, k.store, runner.Config{Resolver: loopback(t)}, func(r *runner.Runner, _ *store.SQLite) {
		s, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		k.id = s.ID
	})
	return k
}

// ServeHTTP is the service.
func (k *taken) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body) // or nobody notices that the caller is gone
	key := req.Header.Get("Idempotency-Key")
	k.mu.Lock()
	k.costs[key] = takenCost // the same key, the same charge
	k.mu.Unlock()
	k.arrived <- key
	select {
	case <-k.answer:
	case <-req.Context().Done():
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"transitionName": "on", "reasoning": "as always", "costUSD": json.Number(takenCost.String())})
}

// resume starts a process that goes on with the session, with a clock that is wrong.
func (k *taken) resume(wrong time.Duration) *exec.Cmd {
	k.Helper()
	cmd := k.command(wrong)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

func (k *taken) command(wrong time.Duration) *exec.Cmd {
	cmd := exec.Command(clocked, "resume", k.id.String(), "--store", k.store)
	cmd.Env = append(os.Environ(), "TAKEN_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1", "DIALAI_TEST_CLOCK="+wrong.String())
	return cmd
}

// request waits until a request has arrived.
func (k *taken) request() string {
	k.Helper()
	select {
	case key := <-k.arrived:
		return key
	case <-time.After(20 * time.Second):
		k.Fatal("no request arrives")
		return ""
	}
}

func (k *taken) wait(cmd *exec.Cmd) {
	k.Helper()
	if err := cmd.Wait(); err != nil {
		k.Errorf("%v: %v", cmd.Args[1:], err)
	}
}

// check holds what the session spent to what the service counted.
func (k *taken) check() {
	k.Helper()
	k.mu.Lock()
	counted := exact.Money(0)
	for _, cost := range k.costs {
		counted += cost
	}
	k.mu.Unlock()
	inProcess(k.T, k.store, runner.Config{}, func(r *runner.Runner, s *store.SQLite) {
		sess, err := r.Session(k.Context(), k.id)
		if err != nil {
			k.Fatal(err)
		}
		if spent := sess.Spent().Money; spent != counted || spent > takenLimit {
			k.Errorf("the session spent $%s of $%s, the service counts $%s", spent, takenLimit, counted)
		}
		if sess.Status != session.Completed || sess.Executed != 1 {
			k.Errorf("the session is %s after %d transitions", sess.Status, sess.Executed)
		}
	})
	out, err := exec.Command(program, "store", "verify", "--store", k.store).CombinedOutput()
	if err != nil {
		k.Errorf("store verify: %v\n%s", err, out)
	}
}

// TestStoppedWhileItsAskIsTakenOver stops a process with SIGSTOP while its service
// works. Another one, whose clock says that nobody can be waiting any more, asks
// again and is answered; then the first goes on and finds its own answer. The session
// has paid once: it was charged for an answer twice, or given back what it had never
// paid.
func TestStoppedWhileItsAskIsTakenOver(t *testing.T) {
	k := newTaken(t)
	first := k.resume(0)
	key := k.request()
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := k.resume(72 * time.Hour)
	if again := k.request(); again != key {
		t.Errorf("the ask has the key %s, taken over it has %s", key, again)
	}
	close(k.answer)
	k.wait(second)
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	k.wait(first)
	k.check()
}

// TestOwnersDeletedWhileAsksAreOut deletes the files that say who lives while an ask is
// out: another process takes it for lost.
func TestOwnersDeletedWhileAsksAreOut(t *testing.T) {
	k := newTaken(t)
	first := k.resume(0)
	key := k.request()
	owners, err := filepath.Glob(filepath.Join(k.store+".owners", strings.Repeat("?", 32)))
	if err != nil || len(owners) != 1 {
		t.Fatalf("the owners are %v (%v), want one", owners, err)
	}
	if err := os.Remove(owners[0]); err != nil {
		t.Fatal(err)
	}
	second := k.resume(0)
	if again := k.request(); again != key {
		t.Errorf("the ask has the key %s, taken over it has %s", key, again)
	}
	close(k.answer)
	k.wait(first)
	k.wait(second)
	k.check()
}

// TestTwoClocks runs every session in two processes at once, whose clocks are 144 hours
// apart: each takes the other's asks for overdue, or for asks of the future.
func TestTwoClocks(t *testing.T) {
	c := newCrash(t)
	c.budget = exact.Dollar / 2
	for range 3 {
		ids := c.start()
		for tries := 0; c.live(ids) > 0; tries++ {
			if tries > 20 {
				t.Fatal("sessions do not come to their end")
			}
			var commands []*exec.Cmd
			for _, id := range ids {
				for _, wrong := range []string{"72h", "-72h"} {
					cmd := exec.Command(clocked, "resume", id.String(), "--store", c.path)
					cmd.Env = append(c.env(), "DIALAI_TEST_CLOCK="+wrong)
					commands = append(commands, cmd)
				}
			}
			runAll(t, commands, func() time.Duration { return 0 }, "")
		}
		c.checkEnd(ids)
	}
	c.verify()
	if c.hook.total() == c.hook.asks() {
		t.Error("no ask was taken over: the test shows nothing")
	}
	t.Logf("%d calls for %d asks", c.hook.total(), c.hook.asks())
}

// TestStoreGoneWhileAnAskIsOut removes the store's files, or puts others in their
// place, while an ask is out. The process that is answered then says so, with exit
// code 1, and not that the session is complete.
func TestStoreGoneWhileAnAskIsOut(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		then  func(k *taken) error
	}{
		"removed":             {[]string{"", "-wal", "-shm"}, func(*taken) error { return nil }},
		"the log removed":     {[]string{"-wal"}, func(*taken) error { return nil }},
		"replaced by a copy":  {[]string{"", "-wal", "-shm"}, func(k *taken) error { return os.WriteFile(k.store, k.copied, 0o600) }},
		"replaced by nothing": {[]string{"", "-wal", "-shm"}, func(k *taken) error { return os.WriteFile(k.store, nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTaken(t)
			var err error
			if k.copied, err = os.ReadFile(k.store); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd := k.command(0)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			k.request()
			for _, suffix := range c.files {
				if err := os.Remove(k.store + suffix); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.then(k); err != nil {
				t.Fatal(err)
			}
			close(k.answer)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("it ends with %d, want 1", code)
			}
			if said := out.String(); !strings.Contains(said, "the store was removed or replaced while it was open") || !strings.Contains(said, "hint: ") || strings.Contains(said, "complete") {
				t.Errorf("it prints %s", said)
			}
		})
	}
}
