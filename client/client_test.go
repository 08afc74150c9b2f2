package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// claims is a machine in which a service proposes and humans decide.
const claims = `{"machineName":"claims","initialState":"review","goalState":"paid",
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},
		{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

const localKey = "a-key-of-32-bytes-that-nobody-has"

// A place is a server in a test: a handler that carries its sessions on, and can be made to
// do other things first.
type place struct {
	*testing.T
	runner *runner.Runner
	server *server.Server
	// before answers a request in the place of the server; nil, or false, lets it through.
	before func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	slept []time.Duration
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t}
	carry := driver.New(driver.Config{})
	var web *server.Server
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Observer: func(c session.Change) {
		carry.Observer("default")(c)
		web.Observer("default")(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	web = server.New(server.Config{Tenants: []server.Tenant{{Name: "default", Runner: r}}, Checks: runner.Checks(), Control: control.NewMemory(), Who: server.Local(localKey)})
	p.runner, p.server = r, web
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- carry.Run(ctx, driver.Tenant{Name: "default", Runner: r}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.before == nil || !p.before(w, r) {
		p.server.Handler().ServeHTTP(w, r)
	}
}

// sleep is what clients of the place do between attempts: they only say for how long.
func (p *place) sleep(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slept = append(p.slept, d)
	return ctx.Err()
}

// open serves the place until the test ends, and returns a client of it.
func (p *place) open(c client.Config) *client.Client {
	p.Helper()
	at := httptest.NewServer(p)
	p.Cleanup(at.Close)
	c.BaseURL = at.URL
	return p.clientOf(c)
}

func (p *place) clientOf(c client.Config) *client.Client {
	p.Helper()
	if c.Key == "" {
		c.Key = localKey
	}
	if c.Sleep == nil {
		c.Sleep = p.sleep
	}
	d, err := client.New(c)
	if err != nil {
		p.Fatal(err)
	}
	return d
}

// start starts a session and has it come to its question.
func start(t *testing.T, d *client.Client) api.Session {
	t.Helper()
	got, err := d.Start(t.Context(), api.Start{Machine: json.RawMessage(claims), MetaJSON: json.RawMessage(`{"amount":120}`)}, client.Write{Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Settled || got.Session.Question == nil {
		t.Fatalf("the session does not wait for a human: %+v", got)
	}
	return got.Session
}

// ruling is what a human says to the question of a session.
func ruling(s api.Session, transition, who string) api.Ruling {
	return api.Ruling{TransitionName: transition, RoundID: s.Question.RoundID, QuestionDigest: s.Question.Digest, SpecialistID: who}
}

// all returns what is yielded, up to an error.
func all[T any](t *testing.T, list func(func(T, error) bool)) (items []T) {
	t.Helper()
	for item, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}

// TestOperations: each operation is answered with what it is about.
func TestOperations(t *testing.T) {
	d, ctx := newPlace(t).open(client.Config{}), t.Context()
	about, err := d.About(ctx)
	if err != nil || about.Caller.Subject != "local" {
		t.Errorf("about: %+v, %v", about, err)
	}
	valid, err := d.Validate(ctx, json.RawMessage(claims))
	if err != nil || valid.MachineName != "claims" {
		t.Errorf("validate: %+v, %v", valid, err)
	}
	file := api.MachineFile{Name: "claims.json", Text: claims}
	if got, err := d.ValidateFile(ctx, file); err != nil || got.MachineDigest != valid.MachineDigest {
		t.Errorf("validate: %+v, %v", got, err)
	}
	if got, err := d.DrawFile(ctx, api.Sketch{MachineFile: file}); err != nil || !json.Valid(got) {
		t.Errorf("draw: %s, %v", got, err)
	}
	if got, err := d.PublishFile(ctx, "claims", file, ""); err != nil || got.MachineDigest != valid.MachineDigest {
		t.Errorf("publish: %+v, %v", got, err)
	}
	s := start(t, d)
	m, err := d.Machine(ctx, "claims")
	if err != nil || m.MachineDigest != valid.MachineDigest {
		t.Errorf("machine: %+v, %v", m, err)
	}
	questions := all(t, d.Inbox(ctx, client.QuestionQuery{Human: "carol"}))
	if len(questions) != 1 || questions[0].Digest != s.Question.Digest {
		t.Fatalf("the inbox has %+v", questions)
	}
	if q, err := d.Question(ctx, questions[0].QuestionID, "carol"); err != nil || q.Digest != s.Question.Digest {
		t.Errorf("question: %+v, %v", q, err)
	}
	if q, err := d.Reveal(ctx, questions[0].QuestionID, api.Viewer{SpecialistID: "carol"}); err != nil || len(q.Proposals) != 2 {
		t.Errorf("reveal: %+v, %v", q, err)
	}
	if _, err := d.Evaluate(ctx, s.SessionID); err != nil {
		t.Error(err)
	}
	if tick, err := d.Step(ctx, s.SessionID, client.Write{}); err != nil || tick.Tick.Status != "needs_human" {
		t.Errorf("step: %+v, %v", tick, err)
	}
	if ran, err := d.Run(ctx, s.SessionID, 0, client.Write{}); err != nil || ran.Result.ExitCode != api.ExitHuman {
		t.Errorf("run: %+v, %v", ran, err)
	}
	fork, err := d.Fork(ctx, s.SessionID, api.Forking{Drive: true}, client.Write{})
	if err != nil || fork.Session.ForkedFrom == nil {
		t.Errorf("fork: %+v, %v", fork, err)
	}
	cancelled, err := d.Cancel(ctx, fork.Session.SessionID, api.Note{Note: "not wanted"}, client.Write{})
	if err != nil || cancelled.Session.Code != session.CodeCancelled {
		t.Errorf("cancel: %+v, %v", cancelled, err)
	}
	if resumed, err := d.Resume(ctx, fork.Session.SessionID, api.Resuming{Note: "wanted after all"}, client.Write{Wait: 10 * time.Second}); err != nil || resumed.Session.Status == session.Stopped {
		t.Errorf("resume: %+v, %v", resumed, err)
	}
	other := json.RawMessage(strings.Replace(claims, "Pay?", "Shall it be paid?", 1))
	if moved, err := d.Move(ctx, fork.Session.SessionID, api.Moving{Definition: other, Note: "clearer"}, client.Write{}); err != nil || moved.Session.MachineDigest == m.MachineDigest {
		t.Errorf("move: %+v, %v", moved, err)
	}
	if found := all(t, d.Sessions(ctx, client.SessionQuery{ID: s.SessionID[:8]})); len(found) != 1 || found[0].SessionID.String() != s.SessionID {
		t.Errorf("of the id %s: %+v", s.SessionID[:8], found)
	}
	if at, err := d.Await(ctx, s.SessionID, "carol", time.Second); err != nil || !at.Settled || at.Session.Question == nil {
		t.Errorf("await: %+v, %v", at, err)
	}
	s, err = d.Session(ctx, s.SessionID, "carol")
	if err != nil {
		t.Fatal(err)
	}
	ruled, err := d.Decide(ctx, s.SessionID, ruling(s, "pay", "carol"), client.Write{Wait: 10 * time.Second, IfSequence: s.Sequence})
	if err != nil || !ruled.Arbitration.Executed || ruled.Session.CurrentState != "paid" {
		t.Errorf("decide: %+v, %v", ruled, err)
	}
	if after, err := d.Retract(ctx, s.SessionID, api.Retracting{RoundID: s.CurrentRoundID, SpecialistID: "carol", Note: "by mistake"}, client.Write{}); err != nil || after.Session.History[0].Retracted == "" {
		t.Errorf("retract: %+v, %v", after, err)
	}
	sessions := all(t, d.Sessions(ctx, client.SessionQuery{Machine: "claims", Statuses: []string{"completed"}}))
	if len(sessions) != 1 || sessions[0].SessionID.String() != s.SessionID {
		t.Errorf("the list has %+v", sessions)
	}
	events := all(t, d.Log(ctx, s.SessionID, client.EventQuery{Kinds: []string{"executed"}}))
	if len(events) != 1 || events[0].Kind != "executed" {
		t.Errorf("the log has %+v", events)
	}
	if late := all(t, d.Log(ctx, s.SessionID, client.EventQuery{After: client.Now})); len(late) != 0 {
		t.Errorf("after now the log has %+v", late)
	}
}

// TestStreams: whoever follows many sessions and leaves goes on behind the last event that they
// have had, whichever connection it came over, and what the inbox tells has the question.
func TestStreams(t *testing.T) {
	d, ctx := newPlace(t).open(client.Config{}), t.Context()
	s := start(t, d)
	want := all(t, d.Log(ctx, s.SessionID, client.EventQuery{}))
	q := client.StreamQuery{After: "0"}
	for _, list := range []func(client.StreamQuery) iter.Seq2[client.StreamEvent[api.Event], error]{
		func(q client.StreamQuery) iter.Seq2[client.StreamEvent[api.Event], error] { return d.AllEvents(ctx, q) },
		func(q client.StreamQuery) iter.Seq2[client.StreamEvent[api.Event], error] {
			return d.MachineEvents(ctx, "claims", q)
		},
	} {
		var got []string
		for q.After = "0"; len(got) < len(want); {
			for e, err := range list(q) {
				if err != nil || e.ID == "" {
					t.Fatalf("after %d events: %+v, %v", len(got), e, err)
				}
				got, q.After = append(got, e.Event.Kind), e.ID
				break
			}
		}
		for i, kind := range got {
			if kind != want[i].Kind {
				t.Errorf("event %d is %s, and %s in the log", i, kind, want[i].Kind)
			}
		}
	}
	for e, err := range d.InboxEvents(ctx, "carol", client.StreamQuery{After: "0", Kinds: []string{"question.opened"}}) {
		if err != nil || e.Event.Question == nil || e.Event.Question.Digest != s.Question.Digest {
			t.Errorf("the inbox tells %+v, %v", e, err)
		}
		break
	}
	if err := first(d.AllEvents(ctx, client.StreamQuery{After: "nonsense"})); !errors.As(err, new(*client.Problem)) {
		t.Errorf("after nonsense: %v", err)
	}
}

// TestProgressWhileFollowed: whoever follows events is told how far jobs are, without an id.
func TestProgressWhileFollowed(t *testing.T) {
	d, ctx := newPlace(t).open(client.Config{}), t.Context()
	start(t, d)
	asked, told := "", api.Job{}
	for e, err := range d.AllEvents(ctx, client.StreamQuery{After: "0"}) {
		if err != nil {
			t.Fatal(err)
		}
		if asked == "" { // it follows
			j, err := d.CreateJob(ctx, api.NewJob{Kind: "backtest", BacktestJob: api.BacktestJob{MachineName: "claims"}}, client.Write{})
			if err != nil {
				t.Fatal(err)
			}
			asked = j.JobID
		}
		if e.Event.Kind != "job.progress" {
			continue
		}
		if err := json.Unmarshal(e.Event.Data, &told); err != nil || e.ID != "" || told.JobID != asked {
			t.Fatalf("told is %+v, %v", e, err)
		}
		if told.Status.Ended() {
			break
		}
	}
}

// TestPages: a list is yielded whole, whatever its pages are, and ends when it is left.
func TestPages(t *testing.T) {
	p := newPlace(t)
	d := p.open(client.Config{})
	for range 51 { // more than a page
		if _, err := d.Start(t.Context(), api.Start{Machine: json.RawMessage(claims)}, client.Write{}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	list := d.Sessions(t.Context(), client.SessionQuery{OldestFirst: true})
	for _, sum := range all(t, list) {
		ids = append(ids, sum.SessionID.String())
	}
	if n := len(all(t, list)); n != 51 {
		t.Errorf("gone through again it has %d sessions, want 51", n)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 51 {
		t.Errorf("%d sessions, want 51", len(slices.Compact(ids)))
	}
	calls := 0
	p.before = func(http.ResponseWriter, *http.Request) bool { calls++; return false }
	for range d.Sessions(t.Context(), client.SessionQuery{}) {
		break
	}
	if calls != 1 {
		t.Errorf("whoever leaves after the first has called %d times", calls)
	}
}

// TestProblems: what is refused is told by kind, code and exit code.
func TestProblems(t *testing.T) {
	p := newPlace(t)
	d, ctx := p.open(client.Config{}), t.Context()
	s := start(t, d)
	stale := ruling(s, "pay", "carol")
	stale.QuestionDigest = strings.Repeat("0", 64)
	misspelt := ruling(s, "payy", "carol")
	for _, c := range []struct {
		name string
		call func() error
		kind error
		code string
		exit int
	}{
		{"a question that has changed", func() error { _, err := d.Decide(ctx, s.SessionID, stale, client.Write{}); return err }, client.ErrStale, "stale_question", 1},
		{"another sequence", func() error {
			_, err := d.Decide(ctx, s.SessionID, ruling(s, "pay", "carol"), client.Write{IfSequence: 1})
			return err
		}, client.ErrStale, "stale_sequence", 1},
		{"a transition that is none", func() error { _, err := d.Decide(ctx, s.SessionID, misspelt, client.Write{}); return err }, client.ErrIllegal, "", 1},
		{"nobody who decides", func() error {
			_, err := d.Decide(ctx, s.SessionID, ruling(s, "pay", "bot"), client.Write{})
			return err
		}, client.ErrForbidden, "", 1},
		{"no session", func() error { _, err := d.Session(ctx, "00000000-0000-4000-8000-000000000000", ""); return err }, client.ErrNotFound, "not_found", 1},
		{"no machine", func() error {
			_, err := d.Start(ctx, api.Start{Machine: json.RawMessage(`{}`)}, client.Write{})
			return err
		}, nil, "invalid_machine", 2},
	} {
		err := c.call()
		var problem *client.Problem
		if !errors.As(err, &problem) || c.kind != nil && !errors.Is(err, c.kind) || c.code != "" && problem.Code != c.code || problem.ExitCode != c.exit {
			t.Errorf("%s: %+v", c.name, err)
		}
		for _, other := range []error{client.ErrUnauthenticated, client.ErrForbidden, client.ErrNotFound, client.ErrStale, client.ErrNotRunning, client.ErrIllegal, client.ErrGuard, client.ErrUnavailable} {
			if other != c.kind && errors.Is(err, other) {
				t.Errorf("%s is also: %v", c.name, other)
			}
		}
	}
	if len(p.slept) > 0 {
		t.Errorf("what is refused was asked again after %v", p.slept)
	}
	if _, err := p.open(client.Config{Key: "another"}).About(ctx); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("with another key: %v", err)
	}
}

// TestRetry: what may be asked again is, after as long as the server says or twice as long
// each time, and so often.
func TestRetry(t *testing.T) {
	answer := func(status int, header ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}
	}
	problem := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			io.WriteString(w, text)
		}
	}
	readAll := func(d *client.Client) error { _, err := d.About(t.Context()); return err }
	startOne := func(d *client.Client) error {
		_, err := d.Start(t.Context(), api.Start{Machine: json.RawMessage(claims)}, client.Write{})
		return err
	}
	takeBack := func(d *client.Client) error { _, err := d.Withdraw(t.Context(), "x", "y", "carol"); return err }
	for _, c := range []struct {
		name  string
		fails func(http.ResponseWriter, *http.Request)
		times int
		call  func(*client.Client) error
		want  []time.Duration // about; 0 is any, nil that nothing is asked again
		ok    bool
	}{
		{"a read while the server is busy", problem(503, `{"code":"store_busy","retryable":true}`), 2, readAll, []time.Duration{0, 0}, true},
		{"a start while the server is busy", problem(503, `{"code":"store_busy","retryable":true}`), 1, startOne, []time.Duration{0}, true},
		{"too many requests", answer(429, "Retry-After", "7"), 1, startOne, []time.Duration{7 * time.Second}, true},
		{"too long a time", answer(429, "Retry-After", "86400"), 1, readAll, []time.Duration{time.Minute}, true},
		{"something between that does not reach it", answer(502), 1, startOne, []time.Duration{0}, true},
		{"the same request under way", problem(409, `{"code":"in_progress","retryable":true}`), 1, startOne, []time.Duration{0}, true},
		{"for ever", answer(503), 99, readAll, []time.Duration{0, 0, 0}, false},
		{"a store that cannot be written", problem(503, `{"code":"store_read_only"}`), 1, startOne, nil, false},
		{"a quota", problem(429, `{"code":"quota_exceeded","retryable":true}`), 1, startOne, []time.Duration{0}, true},
		{"a conflict", problem(409, `{"code":"conflict","retryable":true}`), 1, startOne, []time.Duration{0}, true},
		{"what was decided meanwhile", problem(409, `{"code":"stale_round"}`), 1, startOne, nil, false},
		{"a fault", problem(500, `{"code":"internal"}`), 1, startOne, nil, false},
		{"what has no key", answer(503), 1, takeBack, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			left := c.times
			p.before = func(w http.ResponseWriter, r *http.Request) bool {
				if left--; left < 0 {
					return false
				}
				c.fails(w, r)
				return true
			}
			err := c.call(p.open(client.Config{}))
			if (err == nil) != c.ok {
				t.Errorf("it ends with %v", err)
			}
			if len(p.slept) != len(c.want) {
				t.Fatalf("the pauses were %v", p.slept)
			}
			for i, want := range c.want {
				if got := p.slept[i]; want != 0 && got != want || want == 0 && (got < 100*time.Millisecond<<i || got > 400*time.Millisecond<<i) {
					t.Errorf("pause %d was %s", i, got)
				}
			}
		})
	}
}

// A lossy transport does what it is asked and loses the answer, so many times.
type lossy struct {
	http.RoundTripper
	loses int
	keys  []string
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.keys = append(l.keys, r.Header.Get("Idempotency-Key"))
	res, err := l.RoundTripper.RoundTrip(r)
	if l.loses--; l.loses < 0 || err != nil {
		return res, err
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return nil, errors.New("connection reset")
}

// TestLostAnswer: a call of which the answer was lost has done its work once, and what it
// did is answered.
func TestLostAnswer(t *testing.T) {
	p := newPlace(t)
	lost := &lossy{http.DefaultTransport, 2, nil}
	d := p.open(client.Config{HTTP: &http.Client{Transport: lost}})
	s := start(t, d)
	sessions := all(t, d.Sessions(t.Context(), client.SessionQuery{}))
	if len(sessions) != 1 || sessions[0].SessionID.String() != s.SessionID {
		t.Errorf("there are %+v", sessions)
	}
	if keys := lost.keys[:3]; keys[0] == "" || keys[0] != keys[1] || keys[0] != keys[2] {
		t.Errorf("the keys were %q", keys)
	}
	lost.loses = 1
	if ruled, err := d.Decide(t.Context(), s.SessionID, ruling(s, "pay", "carol"), client.Write{}); err != nil || !ruled.Arbitration.Executed {
		t.Errorf("the ruling: %+v, %v", ruled, err)
	}
	if n := len(all(t, d.Log(t.Context(), s.SessionID, client.EventQuery{Kinds: []string{"executed"}}))); n != 1 {
		t.Errorf("it was executed %d times", n)
	}
	lost.keys = nil
	again, err := d.Start(t.Context(), api.Start{Machine: json.RawMessage(claims)}, client.Write{Key: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := d.Start(t.Context(), api.Start{Machine: json.RawMessage(claims)}, client.Write{Key: "mine"})
	if err != nil || twice.Session.SessionID != again.Session.SessionID || lost.keys[0] != "mine" {
		t.Errorf("with the same key: %+v, %v", twice, err)
	}
}

// TestKeyStaysHere: no other host is sent the key, wherever the server points.
func TestKeyStaysHere(t *testing.T) {
	var told []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	p := newPlace(t)
	p.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/v1":
			http.Redirect(w, r, elsewhere.URL+"/v1", http.StatusTemporaryRedirect)
		case "/v1/machines/claims":
			http.Redirect(w, r, "/v1/sessions", http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	d := p.open(client.Config{HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}})
	if _, err := d.About(t.Context()); err == nil || !strings.Contains(err.Error(), "another place") {
		t.Errorf("a redirect to another host: %v", err)
	}
	if _, err := d.Machine(t.Context(), "claims"); err != nil {
		t.Errorf("a redirect to the same host: %v", err)
	}
	if len(told) > 0 || len(p.slept) > 0 {
		t.Errorf("another host was told %q, after %v", told, p.slept)
	}
	for _, bad := range []string{"", "localhost:8420", "ftp://localhost", "http://", "http://carol:secret@localhost", "http://localhost?key=secret", "unix:"} {
		if _, err := client.New(client.Config{BaseURL: bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("the address %q: %v", bad, err)
		}
	}
}

// TestSocket: a server at a Unix socket is called like any other.
func TestSocket(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	at := &httptest.Server{Listener: l, Config: &http.Server{Handler: p}} //nolint:gosec // of a test
	at.Start()
	defer at.Close()
	start(t, p.clientOf(client.Config{BaseURL: "unix:" + path}))
}

// TestNoServer: what answers, but is no server of ours, is told as that.
func TestNoServer(t *testing.T) {
	p := newPlace(t)
	p.before = func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, "<html>"); return true }
	d := p.open(client.Config{})
	if _, err := d.About(t.Context()); err == nil || !strings.Contains(err.Error(), "not one of a dialai server") {
		t.Errorf("a page: %v", err)
	}
	for _, err := range d.Events(t.Context(), "x", client.EventQuery{}) {
		if err == nil || !strings.Contains(err.Error(), "not one of a dialai server") {
			t.Errorf("a page in place of a stream: %v", err)
		}
	}
	if len(p.slept) > 0 {
		t.Errorf("it was asked again after %v", p.slept)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := p.clientOf(client.Config{BaseURL: "http://" + l.Addr().String()}).About(t.Context()); err == nil || len(p.slept) != 3 {
		t.Errorf("nobody there: %v, after %v", err, p.slept)
	}
}

// TestEventsAcrossRestarts: a stream goes on over a server that ends in good order, one that
// is gone for a while and connections that break, and yields every event once.
func TestEventsAcrossRestarts(t *testing.T) {
	p := newPlace(t)
	address := ""
	serve := func() (stop func()) {
		l, err := net.Listen("tcp", max(address, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		ctx, cancel := context.WithCancel(t.Context())
		web := server.New(server.Config{Tenants: []server.Tenant{{Name: "default", Runner: p.runner}}, Checks: runner.Checks(), Control: control.NewMemory(), Who: server.Local(localKey)})
		done := make(chan error, 1)
		go func() { done <- web.Serve(ctx, server.Listening{Listeners: []net.Listener{l}, Grace: time.Second}) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	stop := serve()
	var pauses []time.Duration
	away := 0 // how many more attempts find nobody
	d := p.clientOf(client.Config{BaseURL: "http://" + address, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Sleep: func(ctx context.Context, d time.Duration) error {
		if pauses = append(pauses, d); away > 0 {
			if away--; away == 0 {
				stop = serve()
			}
		}
		return ctx.Err()
	}})
	defer func() { stop() }()
	s := start(t, p.open(client.Config{}))
	var seen []int64
	for e, err := range d.Events(t.Context(), s.SessionID, client.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, e.Seq); len(seen) > 1 && e.Seq != seen[len(seen)-2]+1 {
			t.Fatalf("the events are %v", seen)
		}
		if e.Seq == s.Sequence { // in the middle, and then the session goes on
			away = 3
			stop()
			if _, err := p.open(client.Config{}).Decide(t.Context(), s.SessionID, ruling(s, "pay", "carol"), client.Write{Wait: 10 * time.Second}); err != nil {
				t.Fatal(err)
			}
		}
	}
	now, err := d.Session(t.Context(), s.SessionID, "")
	if err != nil || now.Status != session.Completed || int64(len(seen)) != now.Sequence {
		t.Errorf("%d events of %d, %v", len(seen), now.Sequence, err)
	}
	if len(pauses) < 3 || pauses[0] != 2*time.Second {
		t.Errorf("the pauses were %v: the server says 2 s", pauses)
	}
	for range d.Events(t.Context(), s.SessionID, client.EventQuery{After: now.Sequence}) {
		t.Error("a session that has completed has more events")
	}
}

// script answers requests for a stream with texts, one after the other, and breaks the
// connection behind each.
func (p *place) script(texts ...string) (asked *[]string) {
	asked = &[]string{}
	var mu sync.Mutex // a request may come while the one before still ends
	p.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			return false
		}
		mu.Lock()
		*asked = append(*asked, r.Header.Get("Last-Event-ID"))
		text, more := "", len(texts) > 0
		if more {
			text, texts = texts[0], texts[1:]
		}
		mu.Unlock()
		if !more {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		if strings.HasSuffix(r.URL.Path, "x/events") {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
	return asked
}

// TestBrokenStreams: what arrives twice or in part is yielded once and whole.
func TestBrokenStreams(t *testing.T) {
	p := newPlace(t)
	asked := p.script("retry: 5000\n\nid: 1\nevent: created\ndata: {\"seq\":1}\n\nid: 2\nevent: asked\ndata: {\"se", "", ":\n\nid: 1\nevent: created\ndata: {\"seq\":1}\n\nid: 2\r\nevent: asked\r\ndata: {\r\ndata: \"seq\":2}\r\n\r\n", "event: end\ndata: {}\n\n")
	var seen []int64
	for e, err := range p.open(client.Config{}).Events(t.Context(), "s", client.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Seq)
	}
	if !slices.Equal(seen, []int64{1, 2}) || !slices.Equal(*asked, []string{"0", "1", "1", "2"}) {
		t.Errorf("seen %v, asked behind %v", seen, *asked)
	}
}

// TestStreamsEnd: a stream ends with the reason for which it cannot go on.
func TestStreamsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		want  error
	}{
		{"a permission that is gone", []string{"id: 1\nevent: created\ndata: {\"seq\":1}\n\n"}, client.ErrForbidden},
		{"a store that was put back", []string{"event: reset\ndata: {}\n\n"}, client.ErrReset},
		{"nothing but breaks", slices.Repeat([]string{"retry: 1\n\n"}, 50), io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.script(c.texts...)
			var last error
			for _, err := range p.open(client.Config{}).Events(t.Context(), "s", client.EventQuery{}) {
				last = err
			}
			if !errors.Is(last, c.want) || len(p.slept) > 10 {
				t.Errorf("it ends with %v after %v", last, p.slept)
			}
		})
	}
	t.Run("whoever has heard enough", func(t *testing.T) {
		p := newPlace(t)
		d := p.open(client.Config{})
		s := start(t, d)
		for range d.Events(t.Context(), s.SessionID, client.EventQuery{}) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for _, err := range d.Events(ctx, s.SessionID, client.EventQuery{}) {
			cancel()
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("whose context ends is told %v", last)
		}
	})
	t.Run("silence", func(t *testing.T) {
		p := newPlace(t)
		asked := p.script("retry: 1\n\n")
		d := p.open(client.Config{})
		d.SetSilent(50 * time.Millisecond)
		for _, err := range d.Events(t.Context(), "x", client.EventQuery{}) {
			if !errors.Is(err, client.ErrForbidden) {
				t.Error(err)
			}
		}
		if len(*asked) != 2 {
			t.Errorf("it was asked %d times", len(*asked))
		}
	})
}

// TestSecretStays: no error tells the key.
func TestSecretStays(t *testing.T) {
	d, err := client.New(client.Config{BaseURL: "http://127.0.0.1:1", Key: "a secret\nwith a line", Sleep: (&place{}).sleep})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.About(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

// calls are the operations of the document, each with the method that calls it.
var calls = map[string]func(ctx context.Context, c *client.Client) error{
	"about":            func(ctx context.Context, c *client.Client) error { _, err := c.About(ctx); return err },
	"list-machines":    func(ctx context.Context, c *client.Client) error { return first(c.Machines(ctx)) },
	"validate-machine": func(ctx context.Context, c *client.Client) error { _, err := c.Validate(ctx, nothing); return err },
	"get-machine":      func(ctx context.Context, c *client.Client) error { _, err := c.Machine(ctx, "m/1"); return err },
	"publish-machine": func(ctx context.Context, c *client.Client) error {
		_, err := c.Publish(ctx, "m/1", nothing, "digest")
		return err
	},
	"list-versions": func(ctx context.Context, c *client.Client) error { return first(c.Versions(ctx, "m/1")) },
	"get-version":   func(ctx context.Context, c *client.Client) error { _, err := c.Version(ctx, "m/1", "d"); return err },
	"draw-machine": func(ctx context.Context, c *client.Client) error {
		_, err := c.Draw(ctx, "m/1", "d", "dot")
		return err
	},
	"draw-file":        func(ctx context.Context, c *client.Client) error { _, err := c.DrawFile(ctx, api.Sketch{}); return err },
	"list-specialists": func(ctx context.Context, c *client.Client) error { return first(c.Specialists(ctx, "m/1")) },
	"register-specialist": func(ctx context.Context, c *client.Client) error {
		_, err := c.Register(ctx, "m/1", api.Registration{}, client.Write{})
		return err
	},
	"switch-specialist": func(ctx context.Context, c *client.Client) error {
		_, err := c.Switch(ctx, "m/1", "who/1", true, "")
		return err
	},
	"list-trust": func(ctx context.Context, c *client.Client) error { return first(c.Trust(ctx, "m/1", "s")) },
	"get-trust":  func(ctx context.Context, c *client.Client) error { return first(c.TrustOf(ctx, "m/1", "who/1")) },
	"list-trust-history": func(ctx context.Context, c *client.Client) error {
		return first(c.TrustHistory(ctx, "m/1", api.HistoryQuery{State: "s", SpecialistID: "who/1", By: "dates"}))
	},
	"get-calibration": func(ctx context.Context, c *client.Client) error {
		_, err := c.Calibration(ctx, "m/1", "s")
		return err
	},
	"list-spend": func(ctx context.Context, c *client.Client) error {
		return first(c.Spend(ctx, "m/1", api.SpendQuery{Since: "2026-01-01", Until: "2026-01-31", By: "day"}))
	},
	"list-alignment": func(ctx context.Context, c *client.Client) error { return first(c.Alignment(ctx, "m/1", "s")) },
	"get-metrics": func(ctx context.Context, c *client.Client) error {
		_, err := c.Metrics(ctx, "m/1", "s", 1.5)
		return err
	},
	"get-risk": func(ctx context.Context, c *client.Client) error { _, err := c.Risk(ctx, "m/1"); return err },
	"evaluate-specialist": func(ctx context.Context, c *client.Client) error {
		_, err := c.EvaluateSpecialist(ctx, "m/1", "who/1", 1, 2)
		return err
	},
	"list-collapse": func(ctx context.Context, c *client.Client) error { return first(c.Collapses(ctx, "m/1", "s")) },
	"get-collapse":  func(ctx context.Context, c *client.Client) error { _, err := c.Collapse(ctx, "m/1", "s/1"); return err },
	"promote-state": func(ctx context.Context, c *client.Client) error {
		_, err := c.Promote(ctx, "m/1", "s/1", api.Order{}, client.Write{})
		return err
	},
	"demote-state": func(ctx context.Context, c *client.Client) error {
		_, err := c.Demote(ctx, "m/1", "s/1", api.Order{}, client.Write{})
		return err
	},
	"freeze-state": func(ctx context.Context, c *client.Client) error {
		_, err := c.Freeze(ctx, "m/1", "s/1", api.Order{}, client.Write{})
		return err
	},
	"release-state": func(ctx context.Context, c *client.Client) error {
		_, err := c.Release(ctx, "m/1", "s/1", api.Order{}, client.Write{})
		return err
	},
	"list-machine-events": func(ctx context.Context, c *client.Client) error {
		return first(c.MachineLog(ctx, "m/1", 2, "full"))
	},
	"list-decisions": func(ctx context.Context, c *client.Client) error { return first(c.Decisions(ctx, "m/1", "s")) },
	"list-exemplars": func(ctx context.Context, c *client.Client) error { return first(c.Exemplars(ctx, "m/1", "s")) },
	"create-job": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateJob(ctx, api.NewJob{}, client.Write{})
		return err
	},
	"list-jobs": func(ctx context.Context, c *client.Client) error {
		return first(c.Jobs(ctx, client.JobQuery{Kind: "verify", Status: "done", OldestFirst: true}))
	},
	"get-job":    func(ctx context.Context, c *client.Client) error { _, err := c.Job(ctx, "j", time.Second); return err },
	"cancel-job": func(ctx context.Context, c *client.Client) error { _, err := c.CancelJob(ctx, "j"); return err },
	"get-job-result": func(ctx context.Context, c *client.Client) error {
		_, err := c.JobResult(ctx, "j")
		return err
	},
	"adopt-policy": func(ctx context.Context, c *client.Client) error {
		_, err := c.Adopt(ctx, "m/1", api.Adopting{}, client.Write{})
		return err
	},
	"dry-run": func(ctx context.Context, c *client.Client) error {
		_, err := c.DryRun(ctx, api.DryRunning{})
		return err
	},
	"check-steps": func(ctx context.Context, c *client.Client) error { _, err := c.Check(ctx, api.Checking{}); return err },

	"start-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Start(ctx, api.Start{}, client.Write{Wait: 1})
		return err
	},
	"list-sessions": func(ctx context.Context, c *client.Client) error {
		return first(c.Sessions(ctx, client.SessionQuery{ID: "i", Machine: "m", Statuses: []string{"running"}, State: "s", Code: "c", Subject: "s", Decider: "d", Overdue: true, Awake: true, Reviews: true, UpdatedAfter: time.Unix(1, 0), OldestFirst: true}))
	},
	"get-session": func(ctx context.Context, c *client.Client) error { _, err := c.Session(ctx, "id", "carol"); return err },
	"await-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Await(ctx, "id", "carol", 1)
		return err
	},
	"follow-events": func(ctx context.Context, c *client.Client) error {
		return notJSON(first(c.AllEvents(ctx, client.StreamQuery{After: "0", Kinds: []string{"ended"}, Payload: "none"})))
	},
	"follow-machine": func(ctx context.Context, c *client.Client) error {
		return notJSON(first(c.MachineEvents(ctx, "claims", client.StreamQuery{})))
	},
	"follow-inbox": func(ctx context.Context, c *client.Client) error {
		return notJSON(first(c.InboxEvents(ctx, "carol", client.StreamQuery{})))
	},
	"list-events": func(ctx context.Context, c *client.Client) error {
		return first(c.Log(ctx, "id", client.EventQuery{After: 1, Kinds: []string{"ended"}, Human: "carol", Payload: "none"}))
	},
	"get-guard-log": func(ctx context.Context, c *client.Client) error {
		return first(c.GuardLog(ctx, "id", 1, "digest", "carol"))
	},
	"explain-round": func(ctx context.Context, c *client.Client) error {
		_, err := c.Explain(ctx, "id", "1", "carol")
		return err
	},
	"list-session-decisions": func(ctx context.Context, c *client.Client) error { return first(c.SessionDecisions(ctx, "id")) },
	"list-agent-events": func(ctx context.Context, c *client.Client) error {
		return first(c.AgentLog(ctx, "id", 2, "full", "carol"))
	},
	"list-model-calls": func(ctx context.Context, c *client.Client) error { return first(c.ModelCalls(ctx, "id", "carol")) },
	"get-driver":       func(ctx context.Context, c *client.Client) error { _, err := c.Driver(ctx, "id"); return err },
	"step-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Step(ctx, "id", client.Write{Wait: 1})
		return err
	},
	"run-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Run(ctx, "id", 0, client.Write{})
		return err
	},
	"propose": func(ctx context.Context, c *client.Client) error {
		_, err := c.Propose(ctx, "id", api.Proposal{}, client.Write{Wait: 1, IfSequence: 1})
		return err
	},
	"evaluate": func(ctx context.Context, c *client.Client) error { _, err := c.Evaluate(ctx, "id"); return err },
	"arbitrate": func(ctx context.Context, c *client.Client) error {
		_, err := c.Arbitrate(ctx, "id", api.Arbitrating{}, client.Write{Wait: 1})
		return err
	},
	"resume-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Resume(ctx, "id", api.Resuming{}, client.Write{Wait: 1})
		return err
	},
	"raise-limits": func(ctx context.Context, c *client.Client) error {
		_, err := c.Raise(ctx, "id", api.Raising{}, client.Write{Wait: 1})
		return err
	},
	"cancel-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Cancel(ctx, "id", api.Note{}, client.Write{Wait: 1})
		return err
	},
	"fork-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Fork(ctx, "id", api.Forking{}, client.Write{Wait: 1})
		return err
	},
	"move-session": func(ctx context.Context, c *client.Client) error {
		_, err := c.Move(ctx, "id", api.Moving{}, client.Write{Wait: 1})
		return err
	},
	"retract-ruling": func(ctx context.Context, c *client.Client) error {
		_, err := c.Retract(ctx, "id", api.Retracting{}, client.Write{Wait: 1})
		return err
	},
	"decide": func(ctx context.Context, c *client.Client) error {
		_, err := c.Decide(ctx, "id", api.Ruling{}, client.Write{Wait: 1})
		return err
	},
	"execute": func(ctx context.Context, c *client.Client) error {
		_, err := c.Execute(ctx, "id", api.Ruling{}, client.Write{Wait: 1})
		return err
	},
	"withdraw-ruling": func(ctx context.Context, c *client.Client) error {
		_, err := c.Withdraw(ctx, "id", "round", "carol")
		return err
	},

	"list-inbox": func(ctx context.Context, c *client.Client) error {
		if _, err := c.Quarantined(ctx, "m"); err != nil {
			return err
		}
		return first(c.Inbox(ctx, client.QuestionQuery{Machine: "m", State: "s", Code: "c", Human: "h", As: "a", Unclaimed: true, Mine: true, Subject: "r"}))
	},
	"get-question": func(ctx context.Context, c *client.Client) error { _, err := c.Question(ctx, "q", "carol"); return err },
	"claim-question": func(ctx context.Context, c *client.Client) error {
		_, err := c.Claim(ctx, "q", api.Viewer{})
		if err == nil {
			_, err = c.Assign(ctx, "q", api.Claiming{For: "dave", Note: "please"})
		}
		return err
	},
	"unclaim-question": func(ctx context.Context, c *client.Client) error { return c.Unclaim(ctx, "q") },
	"reveal-question": func(ctx context.Context, c *client.Client) error {
		_, err := c.Reveal(ctx, "q", api.Viewer{})
		return err
	},
	"list-reviews": func(ctx context.Context, c *client.Client) error {
		return first(c.Reviews(ctx, client.ReviewQuery{Machine: "m", Session: "id", Human: "carol"}))
	},
	"reveal-review": func(ctx context.Context, c *client.Client) error {
		_, err := c.RevealReview(ctx, "q", api.Viewer{})
		return err
	},
	"list-humans": func(ctx context.Context, c *client.Client) error {
		_, err := c.HumansIn(ctx, "m/1", "s")
		return err
	},
	"review": func(ctx context.Context, c *client.Client) error {
		_, err := c.Review(ctx, "q", api.Reviewing{}, client.Write{IfSequence: 1})
		return err
	},

	"list-keys": func(ctx context.Context, c *client.Client) error { return first(c.Keys(ctx, true)) },
	"get-key":   func(ctx context.Context, c *client.Client) error { _, err := c.Key(ctx, "k"); return err },
	"create-ticket": func(ctx context.Context, c *client.Client) error {
		_, err := c.Ticket(ctx, api.NewTicket{For: "desk"}, client.Write{})
		return err
	},
	"create-key": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateKey(ctx, api.NewKey{}, client.Write{})
		return err
	},
	"list-webhooks":  func(ctx context.Context, c *client.Client) error { return first(c.Webhooks(ctx)) },
	"get-webhook":    func(ctx context.Context, c *client.Client) error { _, err := c.Webhook(ctx, "w/1"); return err },
	"delete-webhook": func(ctx context.Context, c *client.Client) error { return c.DeleteWebhook(ctx, "w/1") },
	"create-webhook": func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateWebhook(ctx, api.NewWebhook{URL: "https://example.com", Types: []string{"*"}}, client.Write{})
		return err
	},
	"change-webhook": func(ctx context.Context, c *client.Client) error {
		_, err := c.ChangeWebhook(ctx, "w/1", api.WebhookChange{Types: []string{"*"}})
		return err
	},
	"rotate-webhook": func(ctx context.Context, c *client.Client) error {
		_, err := c.RotateWebhook(ctx, "w/1", client.Write{})
		return err
	},
	"test-webhook": func(ctx context.Context, c *client.Client) error {
		_, err := c.TestWebhook(ctx, "w/1", client.Write{})
		return err
	},
	"replay-webhook": func(ctx context.Context, c *client.Client) error {
		_, err := c.ReplayWebhook(ctx, "w/1", 7, client.Write{})
		return err
	},
	"list-deliveries": func(ctx context.Context, c *client.Client) error { return first(c.Deliveries(ctx, "w/1", "dead")) },
	"redeliver": func(ctx context.Context, c *client.Client) error {
		_, err := c.Redeliver(ctx, "w/1", "msg_1", client.Write{})
		return err
	},
	"revoke-key": func(ctx context.Context, c *client.Client) error { _, err := c.RevokeKey(ctx, "k"); return err },
	"rotate-key": func(ctx context.Context, c *client.Client) error {
		_, err := c.RotateKey(ctx, "k", api.Rotation{}, client.Write{})
		return err
	},
	"answer-callback": func(ctx context.Context, c *client.Client) error {
		_, err := c.AnswerCallback(ctx, "s.a/1", "token", api.LateAnswer{TransitionName: "go"})
		return err
	},
	"list-audit": func(ctx context.Context, c *client.Client) error { return first(c.Audit(ctx, "local", true)) },
	"get-store":  func(ctx context.Context, c *client.Client) error { _, err := c.Store(ctx); return err },
}

var nothing = json.RawMessage("{}")

// first returns the error that a list begins with.
func first[T any](list func(func(T, error) bool)) (err error) {
	list(func(_ T, e error) bool { err = e; return false })
	return err
}

// notJSON is the error of a stream that is none, as that of another error.
func notJSON(err error) error {
	if err != nil && strings.Contains(err.Error(), "GET /v1/") {
		return nil // the request was sent, and its answer is no stream
	}
	return errors.Join(errors.New("a stream that is none is taken for one"), err)
}

// TestEveryOperation: each operation of the document has a method, which sends its method, its
// path, a body where it takes one, and nothing that the document does not know.
func TestEveryOperation(t *testing.T) {
	text, err := os.ReadFile("../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	type described struct {
		OperationID string
		Parameters  []struct{ Name, In string }
		RequestBody json.RawMessage
	}
	var document struct {
		Paths map[string]map[string]described
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var got *http.Request
	var body []byte
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, "{}")
	}))
	t.Cleanup(at.Close)
	c, err := client.New(client.Config{BaseURL: at.URL})
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for path, methods := range document.Paths {
		for method, o := range methods {
			call := calls[o.OperationID]
			if call == nil {
				t.Errorf("%s (%s %s) has no method", o.OperationID, method, path)
				continue
			}
			known++
			if err := call(t.Context(), c); err != nil {
				t.Errorf("%s: %v", o.OperationID, err)
			}
			if m := regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "[^/]+") + "$"); !strings.EqualFold(got.Method, method) || !m.MatchString(got.URL.EscapedPath()) {
				t.Errorf("%s is %s %s, and the client sends %s %s", o.OperationID, method, path, got.Method, got.URL.EscapedPath())
			}
			if takes := len(o.RequestBody) > 0; takes != (len(body) > 0) {
				t.Errorf("%s: the client sends %q, and the operation takes a body: %v", o.OperationID, body, takes)
			}
			for name := range got.URL.Query() {
				if !slices.ContainsFunc(o.Parameters, func(p struct{ Name, In string }) bool { return p.In == "query" && p.Name == name }) {
					t.Errorf("%s: the client sends %s, which the document does not know", o.OperationID, name)
				}
			}
		}
	}
	if known != len(calls) {
		t.Errorf("the document has %d of the %d operations of the client", known, len(calls))
	}
}
