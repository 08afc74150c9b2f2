package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/internal/pgtest"
)

// newDatabase returns a desk whose store is in a database of Postgres, and the password in its address.
func newDatabase(t *testing.T) (d *desk, secret string) {
	t.Helper()
	d = newDesk(t)
	d.store = pgtest.Start(t, true).Database(t)
	d.env = append(d.env, "XDG_DATA_HOME="+d.dir, "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
	secret, _, _ = strings.Cut(strings.TrimPrefix(d.store, "postgres://postgres:"), "@")
	return d, secret
}

// drives waits until a server says how it drives, and returns for how long.
func (s *served) drives(mode string, within time.Duration) time.Duration {
	s.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var ready struct{ Checks map[string]string }
		s.call(200, "GET", "/readyz", nil, &ready)
		switch {
		case ready.Checks["driver"] == mode:
			return time.Since(began)
		case time.Since(began) > within:
			s.Fatalf("after %s it is %v, not %s\n%s", within, ready.Checks, mode, s.logs)
		}
	}
}

// ended follows the stream of a server, and sends the id of each session that ends.
func (s *served) ended(ctx context.Context) <-chan string {
	ids := make(chan string, 100)
	c, err := client.New(client.Config{BaseURL: s.url, Key: s.key})
	s.must(err)
	go func() {
		for e, err := range c.AllEvents(ctx, client.StreamQuery{After: "0", Kinds: []string{"ended"}}) {
			if err != nil {
				return
			}
			ids <- e.Event.SessionID
		}
	}()
	return ids
}

// A hook is an address that is told what happens: how often of what, by the id of each message.
type hook struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string]string // "type session" by id
	came chan string       // "type session" of each that is new
}

func newHook(t *testing.T) *hook {
	h := &hook{told: map[string]string{}, came: make(chan string, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Type string
			Data struct{ SessionID string }
		}
		if json.Unmarshal(body, &m) != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		id := r.Header.Get("Webhook-Id")
		if h.told[id] == "" {
			h.told[id] = m.Type + " " + m.Data.SessionID
			h.came <- h.told[id]
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// until returns once something has come.
func (d *desk) until(c <-chan string, want string) {
	d.Helper()
	for timeout := time.After(60 * time.Second); ; {
		select {
		case got := <-c:
			if got == want {
				return
			}
		case <-timeout:
			d.Fatalf("%q does not come", want)
		}
	}
}

// TestServersShareDatabase is two servers over one database. Both drive, and one delivers; what is ruled through
// either is carried on, and both tell what happens. When the one that delivers is killed, the other takes
// over in time: what was ruled meanwhile goes on, webhooks are told of it, and what was answered stays so.
func TestServersShareDatabase(t *testing.T) {
	d, secret := newDatabase(t)
	h := newHook(t)
	d.run(0, "webhooks", "create", h.URL, "--type", "session.completed", "--quiet")
	first := d.serve()
	first.drives("driving", 20*time.Second)
	second := d.serve()
	second.drives("driving", 20*time.Second)
	if first.key != second.key {
		t.Fatal("the servers have different keys of this computer")
	}

	one := first.waits("one")
	atFirst, atSecond := first.ended(t.Context()), second.ended(t.Context())
	var done shown
	second.rules(200, one, &done)
	if done.Session.Status != "completed" {
		t.Errorf("ruled through the other server, it is %+v", done)
	}
	d.until(atFirst, one.Session.SessionID)
	d.until(atSecond, one.Session.SessionID)
	d.until(h.came, "session.completed "+one.Session.SessionID)

	two, three := second.waits("two"), first.waits("three")
	first.end(syscall.SIGKILL, 0)
	killed := time.Now()
	second.rules(200, two, &done) // while nobody knows that the other is gone
	d.until(h.came, "session.completed "+two.Session.SessionID)
	if took := time.Since(killed); took > 42*time.Second {
		t.Errorf("the other takes over after %s", took)
	}
	second.rules(200, three, &done)
	d.until(atSecond, three.Session.SessionID)
	d.until(h.came, "session.completed "+three.Session.SessionID)
	second.waits("four")
	if got := second.waits("three"); got.Session.SessionID != three.Session.SessionID {
		t.Errorf("a request that the other had answered is answered with another session, %+v", got)
	}
	second.end(syscall.SIGTERM, 0)

	if out, _ := d.run(0, "store", "verify"); !strings.Contains(out, "no difference") {
		t.Errorf("it is %s", out)
	}
	if logs := first.logs.String() + second.logs.String(); strings.Contains(logs, secret) {
		t.Errorf("a log has the password:\n%s", logs)
	}
}

// TestServersShareQuota is two servers over one database whose tenant may have two sessions at a time: no more
// are started, through whichever server. One that ends through the other one makes room.
func TestServersShareQuota(t *testing.T) {
	d, _ := newDatabase(t)
	config := filepath.Join(d.dir, "serve.yaml")
	d.must(os.WriteFile(config, []byte("tenants:\n  default: { quota: { maxSessions: 2, windows: [{ length: 24h, calls: 1000 }] } }\n"), 0o600))
	first, second := d.serve("--config", config), d.serve("--config", config)
	start := func(s *served, want int) (got shown) {
		t.Helper()
		s.call(want, "POST", "/v1/sessions?wait=20s", map[string]any{"machine": json.RawMessage(question)}, &got)
		return got
	}
	one := start(first, 201)
	start(second, 201)
	start(first, 429)
	start(second, 429)
	var ruled shown
	second.call(200, "POST", "/v1/sessions/"+one.Session.SessionID+"/decisions?wait=20s", map[string]any{
		"transitionName": "on", "roundId": one.Session.Question.RoundID, "questionDigest": one.Session.Question.Digest,
	}, &ruled)
	if ruled.Session.Status != "completed" {
		t.Fatalf("the session that was ruled comes to %+v", ruled)
	}
	start(first, 201)
	start(second, 429)
	for _, s := range []*served{first, second} {
		s.end(os.Interrupt, 0)
	}
}
