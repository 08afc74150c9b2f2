package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

const token = "secret"

// start runs the real program and returns the address it prints.
func start(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "webhook-arbiter")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.Command(program, "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), "ARBITER_WEBHOOK_TOKEN="+token)
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
	return address
}

// run runs the sample machine against the arbiter at an address.
func run(t *testing.T, address, token, meta string) runner.Result {
	t.Helper()
	_, text, ok := machines.Read("webhook-arbiter")
	if !ok || !strings.Contains(string(text), "127.0.0.1:8790") {
		t.Fatal("the sample machine does not call the address that the example listens on")
	}
	m, err := machine.Parse("webhook-arbiter.json", []byte(strings.ReplaceAll(string(text), "127.0.0.1:8790", address)), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := webhook.ParsePolicy(address)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return token, name == "ARBITER_WEBHOOK_TOKEN" }
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: webhook.New(webhook.Config{Policy: policy, Lookup: lookup})})
	if err != nil {
		t.Fatal(err)
	}
	session, err := r.Start(t.Context(), m, runner.StartOptions{Meta: []byte(meta)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	result, err := r.Run(ctx, session.ID, runner.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestMachine(t *testing.T) {
	address := start(t)
	for _, c := range []struct{ token, meta, status, state, reason string }{
		{token, `{"purpose":"research"}`, "completed", "granted", ""},
		{token, `{"purpose":"sales"}`, "needs_human", "requested", "owner-rule says grant, privacy-rule says deny"},
		{"wrong", `{"purpose":"research"}`, "needs_human", "requested", "Webhook error (401): webhook-signature does not fit"},
	} {
		got := run(t, address, c.token, c.meta)
		if got.Status != c.status || got.Session.State.Name != c.state || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s with the token %s: %s in %s because of %q, want %s in %s because of %q",
				c.meta, c.token, got.Status, got.Session.State.Name, got.Reason, c.status, c.state, c.reason)
		}
	}
}

// signed returns a request as dialai sends it.
func signed(key string, at time.Time, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/arbitrate", strings.NewReader(body))
	r.Header.Set("Webhook-Id", "q1")
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Webhook-Signature", webhook.Sign([]byte(key), "q1", at, []byte(body)))
	return r
}

func TestHandler(t *testing.T) {
	const one = `{"proposals":[{"proposalId":"p1","specialistId":"a","transitionName":"grant"}],"more":1}`
	now := time.Now()
	change := func(f func(*http.Request)) *http.Request {
		r := signed(token, now, one)
		f(r)
		return r
	}
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		body    string
	}{
		"as dialai asks": {signed(token, now, one), 200, `{"consensusReached":true,"winningProposalId":"p1","reasoning":"all 1 agree on grant"}`},
		"no proposals":   {signed(token, now, `{}`), 200, `{"consensusReached":false,"reasoning":"nobody proposed anything"}`},
		"another key":    {signed("wrong", now, one), 401, "webhook-signature does not fit"},
		"too old":        {signed(token, now.Add(-6*time.Minute), one), 401, "away from now"},
		"too early":      {signed(token, now.Add(6*time.Minute), one), 401, "away from now"},
		"unsigned":       {change(func(r *http.Request) { r.Header = http.Header{} }), 401, `webhook-timestamp "" is not a number`},
		"only a token":   {change(func(r *http.Request) { r.Header = http.Header{}; r.SetBasicAuth("webhook-arbiter", token) }), 401, "is not a number"},
		"another id":     {change(func(r *http.Request) { r.Header.Set("Webhook-Id", "q2") }), 401, "webhook-signature does not fit"},
		"another body":   {change(func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(one + " ")) }), 401, "webhook-signature does not fit"},
		"another time":   {change(func(r *http.Request) { r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix()+1, 10)) }), 401, "webhook-signature does not fit"},
		"no JSON":        {signed(token, now, "grant"), 400, "invalid character"},
		"over 1 MiB":     {signed(token, now, strings.Repeat(" ", 1<<20+1)), 413, "request body too large"},
		"another method": {httptest.NewRequest(http.MethodGet, "/arbitrate", nil), 405, "Method Not Allowed"},
		"another path":   {httptest.NewRequest(http.MethodPost, "/", nil), 404, "not found"},
		"an empty key":   {signed("", now, one), 401, "webhook-signature does not fit"},
	} {
		w := httptest.NewRecorder()
		handler(token).ServeHTTP(w, c.request)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, c.status, c.body)
		}
		if kind := w.Header().Get("Content-Type"); c.status == 200 && kind != "application/json" {
			t.Errorf("%s: Content-Type %q", name, kind)
		}
	}
}

// Without a token there is nothing to check signatures with.
func TestNoToken(t *testing.T) {
	command := exec.Command("go", "run", ".", "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), "ARBITER_WEBHOOK_TOKEN=")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err == nil || !strings.Contains(out.String(), "ARBITER_WEBHOOK_TOKEN is not set") {
		t.Errorf("%v\n%s", err, &out)
	}
}
