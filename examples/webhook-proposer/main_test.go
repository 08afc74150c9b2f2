package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
	program := filepath.Join(t.TempDir(), "webhook-proposer")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.Command(program, "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), "REVIEW_WEBHOOK_TOKEN="+token)
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

// run runs the sample machine against the proposers at an address.
func run(t *testing.T, address, token, meta string) runner.Result {
	t.Helper()
	_, text, ok := machines.Read("code-review")
	if !ok || !strings.Contains(string(text), "127.0.0.1:8787") {
		t.Fatal("the sample machine does not call the address that the example listens on")
	}
	m, err := machine.Parse("code-review.json", []byte(strings.ReplaceAll(string(text), "127.0.0.1:8787", address)), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := webhook.ParsePolicy(address)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return token, name == "REVIEW_WEBHOOK_TOKEN" }
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
		{token, `{"tests":"passed","lines":40}`, "completed", "merged", ""},
		{token, `{"tests":"passed","lines":200}`, "completed", "merged", ""},
		{token, `{"tests":"passed","lines":201}`, "needs_human", "open", ""}, // they differ
		{token, `{"tests":"failed","lines":40}`, "needs_human", "open", ""},
		{token, `{"tests":"failed","lines":900}`, "needs_human", "changes", ""}, // only a human goes on
		{"wrong", `{"tests":"passed","lines":40}`, "needs_human", "open", "No proposals"},
	} {
		got := run(t, address, c.token, c.meta)
		if got.Status != c.status || got.Session.State.Name != c.state || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s with the token %s: %s in %s because of %q, want %s in %s because of %q",
				c.meta, c.token, got.Status, got.Session.State.Name, got.Reason, c.status, c.state, c.reason)
		}
	}
}

func TestHandler(t *testing.T) {
	const passed = `{"metaJson":{"tests":"passed","lines":40},"more":1}`
	ask := func(path, user, password, body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.SetBasicAuth(user, password)
		return r
	}
	unsigned := func(header string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/tests", strings.NewReader(passed))
		r.Header.Set("Authorization", header)
		return r
	}
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		body    string
	}{
		"the tests":         {ask("/tests", "code-review", token, passed), 200, `{"transitionName":"merge","reasoning":"all tests pass"}`},
		"the tests fail":    {ask("/tests", "code-review", token, `{}`), 200, `"request_changes","reasoning":"the tests do not pass"`},
		"the review":        {ask("/review", "code-review", token, passed), 200, `{"transitionName":"merge","reasoning":"40 lines, easy to read","costUSD":0.012}`},
		"a large change":    {ask("/review", "code-review", token, `{"metaJson":{"lines":201}}`), 200, `"request_changes","reasoning":"201 lines are too many for one change"`},
		"no credentials":    {httptest.NewRequest(http.MethodPost, "/tests", strings.NewReader(passed)), 401, "wrong token"},
		"a wrong token":     {ask("/tests", "code-review", "wrong", passed), 401, "wrong token"},
		"part of the token": {ask("/review", "code-review", token[:3], passed), 401, "wrong token"},
		"no token":          {ask("/review", "code-review", "", passed), 401, "wrong token"},
		"the token as user": {ask("/tests", token, "", passed), 401, "wrong token"},
		"as a bearer":       {unsigned("Bearer " + token), 401, "wrong token"},
		"no base64":         {unsigned("Basic " + token), 401, "wrong token"},
		"no JSON":           {ask("/tests", "code-review", token, "merge"), 400, "invalid character"},
		"wrong types":       {ask("/review", "code-review", token, `{"metaJson":{"lines":"many"}}`), 400, "cannot unmarshal"},
		"over 1 MiB":        {ask("/tests", "code-review", token, strings.Repeat(" ", 1<<20+1)), 400, "request body too large"},
		"another method":    {httptest.NewRequest(http.MethodGet, "/tests", nil), 405, "Method Not Allowed"},
		"another path":      {ask("/", "code-review", token, passed), 404, "not found"},
	} {
		w := httptest.NewRecorder()
		handler(token).ServeHTTP(w, c.request)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, c.status, c.body)
		}
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s: the answer tells the token: %s", name, w.Body)
		}
	}
}

// Without a token there is nothing to compare with.
func TestNoToken(t *testing.T) {
	command := exec.Command("go", "run", ".", "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), "REVIEW_WEBHOOK_TOKEN=")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err == nil || !strings.Contains(out.String(), "REVIEW_WEBHOOK_TOKEN is not set") {
		t.Errorf("%v\n%s", err, &out)
	}
}
