package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A served is a server that is the real program, and who calls it.
type served struct {
	*desk
	cmd  *exec.Cmd
	url  string
	key  string
	logs *lines
}

// lines are what a process that runs has written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns all.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve starts the server, and returns once it listens.
func (d *desk) serve(args ...string) *served {
	d.Helper()
	s := &served{desk: d, cmd: d.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, args...)...), logs: &lines{}}
	out, err := s.cmd.StdoutPipe()
	d.must(err)
	s.cmd.Stderr = s.logs
	d.must(s.cmd.Start())
	d.Cleanup(func() { s.cmd.Process.Kill() })
	var told struct {
		URLs    []string
		KeyFile string
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&told); err != nil {
		s.cmd.Wait()
		d.Fatalf("the server does not start: %v\n%s", err, s.logs)
	}
	if s.url = told.URLs[0]; told.KeyFile != "" {
		text, err := os.ReadFile(told.KeyFile)
		d.must(err)
		s.key = strings.TrimSpace(string(text))
	}
	return s
}

// end ends the server with a signal, and says with which code it did.
func (s *served) end(signal os.Signal, want int) {
	s.Helper()
	s.must(s.cmd.Process.Signal(signal))
	err := s.cmd.Wait()
	if signal == syscall.SIGKILL {
		return
	}
	s.exits(err, want, bytes.NewBufferString(s.logs.String()))
}

// call sends a request; v, unless nil, is what the answer is read into.
func (s *served) call(want int, method, path string, body any, v any, header ...string) http.Header {
	s.Helper()
	text, err := json.Marshal(body)
	s.must(err)
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, bytes.NewReader(text))
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	s.must(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	s.must(err)
	if resp.StatusCode != want {
		s.Fatalf("%s %s: %d, want %d: %s\n%s", method, path, resp.StatusCode, want, answer, s.logs)
	}
	if v != nil {
		s.must(json.Unmarshal(answer, v))
	}
	return resp.Header
}

// A shown is what a test looks at of a session.
type shown struct {
	Settled bool
	Session struct {
		SessionID, Status, CurrentState string
		Question                        struct{ RoundID, Digest string }
	}
}

// waits starts a session and waits for its question.
func (s *served) waits(key string) shown {
	s.Helper()
	var got shown
	s.call(201, "POST", "/v1/sessions?wait=20s", map[string]any{"machine": json.RawMessage(question)}, &got, "Idempotency-Key", key)
	if !got.Settled || got.Session.Status != "needs_human" {
		s.Fatalf("the session does not come to its question: %+v\n%s", got, s.logs)
	}
	return got
}

// rules gives carol's word.
func (s *served) rules(want int, q shown, v any, header ...string) {
	s.Helper()
	s.call(want, "POST", "/v1/sessions/"+q.Session.SessionID+"/decisions?wait=20s", map[string]any{
		"transitionName": "on", "roundId": q.Session.Question.RoundID, "questionDigest": q.Session.Question.Digest,
	}, v, header...)
}

// TestReread: SIGHUP has the settings and the tokens read again; what is wrong in them changes
// nothing, and nothing else ends the server.
func TestReread(t *testing.T) {
	d := newDesk(t)
	write := func(name, text string) string {
		path := filepath.Join(d.dir, name)
		d.must(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	token := func(credential string) string {
		return fmt.Sprintf(`[{"id":"ci","hash":"sha256:%x","role":"viewer","machines":["*"]}]`, sha256.Sum256([]byte(credential)))
	}
	tokens, config := write("tokens.json", token("the-first-token")), write("server.yaml", "rateRead: 1\n")
	d.env = append(d.env, "DIALAI_TOKENS_FILE="+tokens)
	s := d.serve("--config", config)
	answered := func(key string) int {
		s.key = key
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1", nil)
		d.must(err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		d.must(err)
		resp.Body.Close()
		return resp.StatusCode
	}
	if first, second, third := answered("the-first-token"), answered("the-first-token"), answered("the-first-token"); first != 200 || second != 200 || third != 429 {
		t.Errorf("at one in a second, three at once are answered %d, %d, %d", first, second, third)
	}
	until := func(key string, want int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); answered(key) != want; {
			if time.Now().After(end) {
				t.Fatalf("%s is answered %d, not %d\n%s", key, answered(key), want, s.logs)
			}
		}
	}
	write("tokens.json", token("the-second-token"))
	write("server.yaml", "rateRead: 0\n")
	d.must(s.cmd.Process.Signal(syscall.SIGHUP))
	until("the-second-token", 200)
	write("tokens.json", "[{}]")
	write("server.yaml", "rateRead: fast\n")
	d.must(s.cmd.Process.Signal(syscall.SIGHUP))
	for end := time.Now().Add(20 * time.Second); !strings.Contains(s.logs.String(), "server.yaml:1:11"); { // with any number in a second, as before
		if got := answered("the-second-token"); got != 200 || time.Now().After(end) {
			t.Fatalf("with files that are wrong: %d\n%s", got, s.logs)
		}
	}
	s.end(syscall.SIGTERM, 0)
	for _, want := range []string{"tokens.json:1:2", "server.yaml:1:11", "read again"} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, s.logs)
		}
	}
}

// TestServe is the day of a server: sessions come to their questions by themselves, commands
// see the same store, a crash loses nothing and does nothing twice, and SIGTERM ends it well.
func TestServe(t *testing.T) {
	d := newDesk(t)
	s := d.serve()
	first := s.waits("first")
	if out, _ := d.run(0, "inbox", "--quiet"); !strings.HasPrefix(out, first.Session.SessionID) {
		t.Errorf("the inbox of the command line has %q", out)
	}
	var after shown
	if s.rules(200, first, &after); !after.Settled || after.Session.Status != "completed" {
		t.Errorf("after the ruling: %+v", after)
	}
	second := s.waits("second")
	s.end(syscall.SIGKILL, 0)

	s = d.serve()
	if again := s.waits("second"); again.Session.SessionID != second.Session.SessionID {
		t.Errorf("sent again to another process, the request started %s beside %s", again.Session.SessionID, second.Session.SessionID)
	}
	d.run(0, "decide", second.Session.SessionID, "on", "--quiet") // at a terminal, meanwhile
	s.rules(409, second, nil)
	var list struct{ Items []struct{ Status string } }
	if s.call(200, "GET", "/v1/sessions?machine=question", nil, &list); len(list.Items) != 2 || list.Items[0].Status != "completed" || list.Items[1].Status != "completed" {
		t.Errorf("the list has %+v", list.Items)
	}
	s.call(404, "GET", "/v1/sessions/%C2%9B%E2%80%AE", nil, nil)
	info, err := os.Stat(filepath.Join(filepath.Dir(d.store), "server-key"))
	d.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the server has the mode %s", info.Mode())
	}
	s.end(syscall.SIGTERM, 0)
	if log := s.logs.String(); strings.ContainsAny(log, "\u009b\u202e") || !strings.Contains(log, `\u009b\u202e`) {
		t.Errorf("of what hides, the log shows %q", log)
	}
	d.run(0, "store", "verify")
}

// TestStandby: of two servers on one store one carries sessions on, and the other takes over
// when it is killed.
func TestStandby(t *testing.T) {
	d := newDesk(t)
	mode := func(s *served) string {
		var ready struct{ Checks struct{ Driver string } }
		s.call(200, "GET", "/readyz", nil, &ready)
		return ready.Checks.Driver
	}
	a := d.serve()
	a.waits("a")
	b := d.serve()
	b.waits("b") // which a carries on
	if mode(a) != "driving" || mode(b) != "standby" {
		t.Errorf("a is %s and b %s, want driving and standby", mode(a), mode(b))
	}
	a.end(syscall.SIGKILL, 0)
	b.waits("c")
	if mode(b) != "driving" {
		t.Errorf("after a is gone, b is %s", mode(b))
	}
	b.end(os.Interrupt, 0)
}

// TestServeRefuses: what would let others in, or cannot be used, does not start.
func TestServeRefuses(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, 2, "needs keys and TLS"},
		{[]string{"--listen", "0.0.0.0:0", "--auth", "keys"}, 2, "needs keys and TLS"},
		{[]string{"--listen", ":0"}, 2, "needs keys and TLS"},
		{[]string{"--listen", "[::]:0", "--auth", "none"}, 2, "needs keys and TLS"},
		{[]string{"--listen", "example.com:0"}, 2, "needs keys and TLS"},
		{[]string{"--listen", "8420"}, 2, "not HOST:PORT"},
		{[]string{"--cors-origin", "*"}, 2, "not the origin of a page"},
		{[]string{"--auth", "key"}, 2, `did you mean "keys"`},
		{[]string{"--tls-cert", "c.pem"}, 2, "one needs the other"},
		{[]string{"--listen", "127.0.0.1:0", "--tls-cert", "c.pem", "--tls-key", "k.pem"}, 2, "c.pem"},
	} {
		if _, stderr := d.run(c.code, append([]string{"serve"}, c.args...)...); !strings.Contains(stderr, c.says) {
			t.Errorf("serve %q says %q, want %q", c.args, stderr, c.says)
		}
	}
	s := d.serve()
	_, stderr := d.run(1, "serve", "--listen", strings.TrimPrefix(s.url, "http://"))
	if !strings.Contains(stderr, "address already in use") {
		t.Errorf("on a port that is taken, serve says %q", stderr)
	}
	d.must(os.Chmod(filepath.Join(filepath.Dir(d.store), "server-key"), 0o644))
	if _, stderr := d.run(1, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(stderr, "can be read by others") {
		t.Errorf("with a key that others can read, serve says %q", stderr)
	}
	s.end(syscall.SIGTERM, 0)
}

// TestServeOverSocket: a Unix socket has no name, so none is asked for.
func TestServeOverSocket(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.dir, "s")
	cmd := d.command("serve", "--listen", "unix:"+path, "--quiet")
	d.must(cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	client := &http.Client{Transport: &http.Transport{DialContext: dialSocket(path)}}
	deadline := time.Now().Add(20 * time.Second)
	for {
		resp, err := client.Get("http://anything/readyz")
		if err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	resp, err := client.Get("http://anything/v1")
	d.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
	info, err := os.Stat(path)
	d.must(err)
	if got := fmt.Sprint(info.Mode().Perm()); got != "-rw-------" {
		t.Errorf("the socket has the mode %s", got)
	}
	d.must(cmd.Process.Signal(syscall.SIGTERM))
	d.exits(cmd.Wait(), 0)
}

func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}
