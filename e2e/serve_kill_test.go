package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

var serverKills = flag.Int("server-kills", 5, "how many servers TestServerKilled kills")

// port returns a port of this computer that nobody listens at.
func port(t *testing.T) string {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	return at.Addr().String()
}

// A load is clients that start sessions and rule on them, while their server is killed.
type load struct {
	*desk
	at     string
	args   []string
	done   chan struct{} // gets one for each effect that was acknowledged
	enough chan struct{} // closed when nothing more is to be begun

	mu      sync.Mutex
	started map[string]string // the session that was started, by the Idempotency-Key
	events  map[string]int    // how often each came to the stream
	told    map[string]string // the body of each message, by its id
	arrived int
}

// server serves at the same address as before.
func (l *load) server() *served {
	return l.desk.serve(append([]string{"--listen", l.at}, l.args...)...)
}

// client calls whoever serves; it waits a little for who does not.
func (l *load) client(key string) *client.Client {
	c, err := client.New(client.Config{BaseURL: "http://" + l.at, Key: key, Sleep: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
			return nil
		}
	}})
	l.must(err)
	return c
}

// until makes a call, again and again while the server is not there.
func until[T any](l *load, call func() (T, error)) (answer T, ok bool) {
	for end := time.Now().Add(2 * time.Minute); ; {
		answer, err := call()
		problem, refused := errors.AsType[*client.Problem](err)
		switch {
		case err == nil:
			l.done <- struct{}{}
			return answer, true
		case refused && !problem.Retryable && problem.Status < 500, time.Now().After(end):
			l.Errorf("a call comes to %v", err)
			return answer, false
		}
	}
}

// starts has a session started under one key after the other, until it is enough.
func (l *load) starts(who int, each func(once client.Write) (ok bool)) {
	for n := 0; ; n++ {
		select {
		case <-l.enough:
			return
		default:
		}
		if !each(client.Write{Key: fmt.Sprintf("%d-%d", who, n), Wait: 20 * time.Second}) {
			return
		}
	}
}

// begun remembers which session was started under a key.
func (l *load) begun(key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started[key] = id
}

// works starts sessions and rules on them, one after the other.
func (l *load) works(who int, key string) {
	c := l.client(key)
	l.starts(who, func(once client.Write) bool {
		s, ok := until(l, func() (api.Settled, error) {
			s, err := c.Start(l.Context(), api.Start{Machine: json.RawMessage(question)}, once)
			if err == nil && s.Session.Question == nil { // it was answered before, when it was not settled yet
				s, err = c.Await(l.Context(), s.Session.SessionID, "", 20*time.Second)
			}
			return s, err
		})
		if !ok {
			return false
		}
		l.begun(once.Key, s.Session.SessionID)
		q := s.Session.Question
		if q == nil { // a ruling of the same key was recorded, and its answer lost
			return true
		}
		_, ok = until(l, func() (api.Ruled, error) {
			return c.Decide(l.Context(), s.Session.SessionID, api.Ruling{TransitionName: "on", RoundID: q.RoundID, QuestionDigest: q.Digest}, client.Write{Key: once.Key + "-ruling", Wait: 20 * time.Second})
		})
		return ok
	})
}

// follows reads the stream of everything, over all servers. It waits for the next one as long
// as any client does: on a computer that is busy it comes late.
func (l *load) follows(ctx context.Context, key string) {
	c, err := client.New(client.Config{BaseURL: "http://" + l.at, Key: key})
	l.must(err)
	for e, err := range c.AllEvents(ctx, client.StreamQuery{After: "0"}) {
		if err != nil {
			if ctx.Err() == nil {
				l.Errorf("the stream ends: %v", err)
			}
			return
		}
		l.mu.Lock()
		l.events[fmt.Sprintf("%s %d %s", e.Event.SessionID, e.Event.Seq, e.Event.Kind)]++
		l.mu.Unlock()
	}
}

// ServeHTTP is told by a webhook.
func (l *load) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was killed
	}
	var m struct {
		Type string
		Data struct {
			SessionID string
			Seq       int64
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		l.Errorf("a message is %s: %v", body, err)
	}
	what := fmt.Sprintf("%s %d %s", m.Data.SessionID, m.Data.Seq, m.Type)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived++
	id := r.Header.Get("Webhook-Id")
	if before, known := l.told[what]; known && before != id {
		l.Errorf("%s has the ids %s and %s", what, before, id)
	}
	l.told[what] = id
}

// TestServerKilled kills the server with SIGKILL again and again, while eight clients start
// sessions and rule on them. Nothing that was acknowledged is lost, and nothing happens twice;
// a stream that goes on has each event once; a webhook is told of each session at least once,
// and always with the same id.
func TestServerKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	l := &load{desk: newDesk(t), at: port(t), args: []string{"--rate-read", "0", "--rate-write", "0"}, done: make(chan struct{}), enough: make(chan struct{}),
		started: map[string]string{}, events: map[string]int{}, told: map[string]string{}}
	hook := httptest.NewServer(l)
	defer hook.Close()
	l.env = append(l.env, "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
	s := l.server()
	if _, err := l.client(s.key).CreateWebhook(t.Context(), api.NewWebhook{URL: hook.URL, Types: []string{"session.completed"}}, client.Write{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reads, work sync.WaitGroup
	reads.Go(func() { l.follows(ctx, s.key) })
	for who := range 8 {
		work.Go(func() { l.works(who, s.key) })
	}
	for range *serverKills {
		for range 3 + rng.IntN(30) {
			select {
			case <-l.done:
			case <-time.After(2 * time.Minute):
				t.Fatalf("nothing goes on any more:\n%s", s.logs)
			}
		}
		s.end(syscall.SIGKILL, 0)
		s = l.server()
	}
	close(l.enough)
	go func() {
		for range l.done {
		}
	}()
	work.Wait()
	ids, written := l.written()
	l.settles(s, ids, written)
	cancel()
	reads.Wait()
	s.end(syscall.SIGTERM, 0)
	l.run(0, "store", "verify")
	t.Logf("%d servers killed, %d sessions, %d events, %d messages for %d", *serverKills, len(ids), len(written), l.arrived, len(l.told))
}

// written returns what the store has: sessions, and events.
func (l *load) written() (ids map[string]int, events map[string]bool) {
	ids, events = map[string]int{}, map[string]bool{}
	inProcess(l.T, l.store, runner.Config{}, func(_ *runner.Runner, s *store.SQLite) {
		for e, err := range s.Log(l.Context(), "", 0) {
			l.must(err)
			raw, err := session.DecodeRaw(e.Events)
			l.must(err)
			for i, r := range raw {
				events[fmt.Sprintf("%s %d %s", e.Session, e.First+int64(i), r.Kind)] = true
				if r.Kind == session.KindExecuted {
					ids[e.Session.String()]++
				} else {
					ids[e.Session.String()] += 0
				}
			}
		}
	})
	return ids, events
}

// settles checks what there is, once everything has arrived.
func (l *load) settles(s *served, ids map[string]int, written map[string]bool) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for end := time.Now().Add(time.Minute); (len(l.events) < len(written) || len(l.told) < len(ids)) && time.Now().Before(end); {
		l.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		l.mu.Lock()
	}
	acknowledged := map[string]bool{}
	for key, id := range l.started {
		if acknowledged[id] {
			l.Errorf("%s is the session of two keys, %s is one", id, key)
		}
		acknowledged[id] = true
	}
	for id, executed := range ids {
		if executed != 1 || !acknowledged[id] {
			l.Errorf("session %s was executed %d times, and was acknowledged: %v", id, executed, acknowledged[id])
		}
	}
	for id := range acknowledged {
		if _, is := ids[id]; !is {
			l.Errorf("session %s was acknowledged, and is lost", id)
		}
	}
	for e := range written {
		if l.events[e] != 1 {
			l.Errorf("event %s came %d times to the stream", e, l.events[e])
		}
	}
	if len(l.events) != len(written) || len(l.told) != len(ids) {
		l.Errorf("of %d events %d came to the stream, of %d sessions the webhook was told %d\n%s", len(written), len(l.events), len(ids), len(l.told), s.logs)
	}
}

// A laterService says that it will answer later.
type laterService struct {
	mu    sync.Mutex
	asked []http.Header
}

// ServeHTTP takes a question.
func (l *laterService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, r.Header.Clone())
	w.WriteHeader(http.StatusAccepted)
}

// TestLaterAnswerOverKills kills the server, or the service, between the service's promise to
// answer later and its answer. Kept by the service, its answer counts once, however often it is
// sent, at whichever server; forgotten by it, the session goes on without it when its time is up.
func TestLaterAnswerOverKills(t *testing.T) {
	d, at := newDesk(t), port(t)
	d.env = append(d.env, "A_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1", "DIALAI_PUBLIC_URL=http://"+at)
	service := &laterService{}
	hook := httptest.NewServer(service)
	defer hook.Close()
	serve := func() *served { return d.serve("--listen", at) }
	machine := func(timeout string) string {
		return fmt.Sprintf(`{"machineName":"later","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b","off":"b"}},"b":{}},"solicit":{"asyncTimeout":%q},"specialists":[
			{"role":"proposer","specialistId":"slow","strategyWebhookUrl":"%s","webhookTokenName":"A_WEBHOOK_TOKEN"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`, timeout, hook.URL)
	}
	start := func(s *served, timeout string) (got shown) {
		t.Helper()
		s.call(201, "POST", "/v1/sessions?wait=20s", map[string]any{"machine": json.RawMessage(machine(timeout))}, &got)
		if got.Session.Status != "running" || !got.Settled {
			t.Fatalf("the session does not wait for the answer: %+v\n%s", got, s.logs)
		}
		return got
	}
	answer := func(s *served, status int, h http.Header, body map[string]string) (got struct {
		ProposalID        string
		Repeated, Settled bool
	}) {
		t.Helper()
		s.key = h.Get("Dialai-Callback-Token")
		s.call(status, "POST", strings.TrimPrefix(h.Get("Dialai-Callback-Url"), "http://"+at), body, &got)
		return got
	}
	stands := func(s *served, id, status string) {
		t.Helper()
		var got struct{ Session struct{ Status string } }
		if s.call(200, "GET", "/v1/sessions/"+id+"/settled?wait=20s", nil, &got); got.Session.Status != status {
			t.Errorf("the session is %s, want %s\n%s", got.Session.Status, status, s.logs)
		}
	}
	s := serve()
	local := s.key
	kept, forgotten := start(s, "1h"), start(s, "6s")
	s.end(syscall.SIGKILL, 0)

	s = serve()
	first := answer(s, 200, service.asked[0], map[string]string{"transitionName": "on"})
	if first.ProposalID == "" || first.Repeated {
		t.Errorf("the answer is answered %+v", first)
	}
	s.end(syscall.SIGKILL, 0) // and who knows whether the service has heard that

	s = serve()
	if again := answer(s, 200, service.asked[0], map[string]string{"transitionName": "on"}); again.ProposalID != first.ProposalID || !again.Repeated {
		t.Errorf("sent again it is answered %+v, and was %+v", again, first)
	}
	answer(s, 409, service.asked[0], map[string]string{"transitionName": "off"})
	s.key = local
	stands(s, kept.Session.SessionID, "completed")
	var after shown
	for end := time.Now().Add(30 * time.Second); after.Session.Status != "needs_human"; { // nobody else can be asked
		if time.Now().After(end) {
			t.Fatalf("the session waits on for an answer that was forgotten: %+v\n%s", after, s.logs)
		}
		time.Sleep(50 * time.Millisecond)
		s.call(200, "GET", "/v1/sessions/"+forgotten.Session.SessionID, nil, &after.Session)
	}
	answer(s, 410, service.asked[1], map[string]string{"transitionName": "on"})
	if n := len(service.asked); n != 2 {
		t.Errorf("the service was asked %d times for two answers", n)
	}
	s.end(syscall.SIGTERM, 0)
	d.run(0, "store", "verify")
}
