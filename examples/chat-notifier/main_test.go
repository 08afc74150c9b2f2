package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A channel is a chat channel: what was posted to it.
type channel struct {
	*httptest.Server
	mu    sync.Mutex
	down  bool
	texts []string
	news  chan string
}

func newChannel(t *testing.T) *channel {
	c := &channel{news: make(chan string, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var said struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil || r.Method != http.MethodPost || r.URL.Path != "/services/T0/B0" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if c.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.texts = append(c.texts, said.Text)
		c.news <- said.Text
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *channel) address() string { return c.URL + "/services/T0/B0" }

// start runs the real program and returns the address that it prints.
func start(t *testing.T, secret, chat string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "chat-notifier")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.Command(program, "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), "DIALAI_WEBHOOK_SECRET="+secret, "CHAT_WEBHOOK_URL="+chat)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("it says %q, %v", line, err)
	}
	return "http://" + address + "/"
}

// claims is a machine in which a human decides.
const claims = `{"machineName":"claims","initialState":"review","goalState":"paid",
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

// TestPosts: a question of a session is posted to the channel, with the link to its page, by the
// real program and the real deliverer.
func TestPosts(t *testing.T) {
	chat := newChannel(t)
	key, remembers := seal.NewKey(), control.NewMemory()
	r, err := runner.New(runner.Config{Store: store.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := webhook.ParsePolicy("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	maker := notify.Maker{Seal: key, Policy: policy}
	hook, secret, err := maker.New(api.NewWebhook{URL: "http://127.0.0.1:9", Types: []string{"*"}}, control.Webhook{Tenant: "default"})
	if err != nil {
		t.Fatal(err)
	}
	hook.URL = start(t, secret, chat.address())
	if err := remembers.Commit(t.Context(), control.Changes{Webhook: &hook}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- notify.New(notify.Config{Control: remembers, Seal: key, Policy: policy, PublicURL: "https://desk.example"}).Run(ctx, notify.Tenant{Name: "default", Runner: r})
	}()
	m, err := machine.Parse("claims", []byte(claims), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), s.ID, runner.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("claims: a human must decide in state review (no_proposals)\nhttps://desk.example/desk/q/%s.%s", s.ID, s.Key().ID())
	if got := <-chat.news; got != want {
		t.Errorf("posted is %q, want %q", got, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(chat.texts) != 1 {
		t.Errorf("posted are %q", chat.texts)
	}
}

// send sends a message as dialai does, and returns the status of the answer.
func send(t *testing.T, n http.Handler, key, id, body string) int {
	t.Helper()
	k, err := webhook.Key(key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	r.Header.Set("webhook-signature", webhook.Sign(k, id, now, []byte(body)))
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	return w.Code
}

// TestTakes: each message is posted once, in its words; what cannot be posted is asked for
// again; what was not signed by dialai, or is no message, is refused.
func TestTakes(t *testing.T) {
	chat := newChannel(t)
	n, err := newNotifier(secret, chat.address())
	if err != nil {
		t.Fatal(err)
	}
	question := `{"type":"session.needs_human","data":{"machineName":"claims","sessionId":"5f","state":"review","code":"audit","url":"https://desk.example/desk/q/5f.6f"}}`
	chat.down = true
	for _, c := range []struct {
		key, id, body string
		status        int
	}{
		{secret, "m1", question, 502},
		{secret, "m1", question, 204},
		{secret, "m1", question, 204}, // sent again: posted once
		{secret, "m2", `{"type":"question.reminder","data":{"machineName":"claims","sessionId":"5f","state":"review"}}`, 204},
		{secret, "m3", `{"type":"webhook.test","data":{}}`, 204},
		{secret, "m4", `{"type":"session.completed","data":{"machineName":"claims"}}`, 204},
		{secret, "m5", `{"type":`, 400},
		{"whsec_AAAA", "m6", question, 401},
		{secret, "m7", strings.Repeat("x", 1<<20+1), 413},
	} {
		if got := send(t, n, c.key, c.id, c.body); got != c.status {
			t.Errorf("%s %.60s is answered %d, want %d", c.id, c.body, got, c.status)
		}
		chat.down = false
	}
	want := []string{"claims: a human must decide in state review (audit)\nhttps://desk.example/desk/q/5f.6f", "claims: the question in state review will be due\ndialai decide 5f", "dialai posts here when a human must decide"}
	if !slices.Equal(chat.texts, want) {
		t.Errorf("posted are %q, want %q", chat.texts, want)
	}
}

// TestSettings: without a secret and a channel it says which is missing.
func TestSettings(t *testing.T) {
	for want, c := range map[string][2]string{"DIALAI_WEBHOOK_SECRET": {"", "https://example.com"}, "CHAT_WEBHOOK_URL": {secret, ""}} {
		if _, err := newNotifier(c[0], c[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
