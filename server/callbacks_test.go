package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

// A later is a service that says to every question that it will answer later.
type later struct{ asked []http.Header }

func (l *later) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked = append(l.asked, r.Header.Clone())
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// lateMachine asks one service, whose answer executes.
const lateMachine = `{"machineName":"late","initialState":"open","goalState":"done","states":{"open":{"transitions":{"go":"done","wait":"open"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"slow","strategyWebhookUrl":"http://127.0.0.1:9/ask","webhookTokenName":"A_WEBHOOK_TOKEN"%s},
		{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

const lateSecret = "whsec_c2VjcmV0LW9mLWEtc2VydmljZQ=="

// lateDesk is a desk that has asked a service, with a store, nil for one in memory; it returns where that answers, and with what.
func lateDesk(t *testing.T, secret string, in session.Store) (d *desk, path, token string, l *later) {
	t.Helper()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"A_WEBHOOK_TOKEN": "token", "A_WEBHOOK_SECRET": lateSecret}[name]
		return value, ok
	}
	policy, err := webhook.ParsePolicy("127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	l = &later{}
	hooks := webhook.New(webhook.Config{Policy: policy, Lookup: lookup, Transport: l})
	d = newDesk(t, deskOptions{
		store:     in,
		config:    server.Config{Variable: func(name string) string { value, _ := lookup(name); return value }},
		configure: func(c *runner.Config) { c.Resolver, c.PublicURL = hooks, "https://dialai.example" },
	})
	d.late(secret)
	h := l.asked[0]
	u, err := url.Parse(h.Get("Dialai-Callback-Url"))
	if err != nil {
		t.Fatal(err)
	}
	return d, u.Path, h.Get("Dialai-Callback-Token"), l
}

// late starts a session that waits for the service.
func (d *desk) late(secret string) {
	d.Helper()
	m, err := machine.Parse("late.json", fmt.Appendf(nil, lateMachine, secret), runner.Checks())
	if err != nil {
		d.Fatal(err)
	}
	at, err := d.runner.Start(d.Context(), m, runner.StartOptions{})
	if err == nil {
		var r runner.Result
		if r, err = d.runner.Run(d.Context(), at.ID, runner.RunOptions{}); err == nil && r.Status != runner.WaitingStatus {
			d.Fatalf("the session is %s (%s)", r.Status, r.Reason)
		}
	}
	if err != nil {
		d.Fatal(err)
	}
}

// callback sends an answer with no key but a token.
func (d *desk) callback(status int, code, path, token, body string, header ...string) *reply {
	d.Helper()
	r := d.do(token, "POST", path, body, header...)
	if r.status != status || r.code() != code {
		d.Errorf("POST %s %s: %d %s, want %d %s", path, body, r.status, r.body, status, code)
	}
	return r
}

// TestCallbacks: an answer that comes later counts once, the same one again is said to be
// there, and whatever does not fit is refused: strangers learn nothing, and what cannot be
// read uses no token up.
func TestCallbacks(t *testing.T) {
	d, path, token, l := lateDesk(t, "", nil)
	d.from = "192.0.2.1"
	first := d.callback(403, "bad_callback", path, "wrong", `{"transitionName":"go"}`)
	for _, p := range []string{"/v1/callbacks/nonsense", path[:len(path)-1] + "x", "/v1/callbacks/00000000-0000-4000-8000-000000000000.x"} {
		if r := d.callback(403, "bad_callback", p, token, `{"transitionName":"go"}`); !strings.Contains(string(first.body), `"detail":"this callback is not valid"`) || r.status != first.status {
			t.Errorf("%s tells %s, and a wrong token %s", p, r.body, first.body)
		}
	}
	d.callback(400, "bad_answer", path, token, `{"transitionName":`)
	d.callback(413, "too_large", path, token, `{"transitionName":"`+strings.Repeat("x", 1<<20)+`"}`)
	var got struct {
		ProposalID, RoundID string
		Settled, Repeated   bool
	}
	cost := exact.Money(5)
	text, err := json.Marshal(api.LateAnswer{TransitionName: "go", Reasoning: "at last", Model: "m", ToolCalls: []specialist.ToolCall{{Name: "look"}}, Cost: api.Cost{CostUSD: &cost}})
	if err != nil {
		t.Fatal(err)
	}
	d.callback(200, "", path, token, string(text)).into(t, &got)
	if got.ProposalID == "" || got.RoundID == "" || got.Repeated {
		t.Errorf("the answer is answered with %+v", got)
	}
	was := got.ProposalID
	d.audits(path, got.RoundID, "specialist:slow", "callback", "Bad Request", "Request Entity Too Large", "OK")
	d.callback(200, "", path, token, `{"reasoning":"at last","transitionName":"go"}`).into(t, &got)
	if !got.Repeated || got.ProposalID != was {
		t.Errorf("the same again is answered with %+v", got)
	}
	d.callback(409, "callback_used", path, token, `{"transitionName":"wait"}`)

	d.late("")
	other := l.asked[1]
	second := strings.TrimPrefix(other.Get("Dialai-Callback-Url"), "https://dialai.example")
	d.callback(403, "bad_callback", second, token, `{"transitionName":"go"}`)
	d.callback(422, "illegal_answer", second, other.Get("Dialai-Callback-Token"), `{"transitionName":"nowhere"}`)
	d.callback(409, "callback_used", second, other.Get("Dialai-Callback-Token"), `{"transitionName":"go"}`)

	d.late("")
	gone := l.asked[2]
	third := strings.TrimPrefix(gone.Get("Dialai-Callback-Url"), "https://dialai.example")
	id, _, _ := strings.Cut(strings.TrimPrefix(third, "/v1/callbacks/"), ".")
	d.from = ""
	d.want(200, "POST", "/v1/sessions/"+id+"/cancel", `{"note":"not wanted"}`)
	d.callback(410, "round_over", third, gone.Get("Dialai-Callback-Token"), `{"transitionName":"go","costUSD":0.5}`)
}

// audits checks what the audit log has of a path: for each request an entry before and one
// with its result.
func (d *desk) audits(path, round, subject, method string, results ...string) {
	d.Helper()
	records, err := d.control.Audit(d.Context(), control.Query{})
	if err != nil {
		d.Fatal(err)
	}
	begun := ""
	for _, r := range records {
		e, err := r.Entry()
		if err != nil {
			d.Fatal(err)
		}
		if e.Target != path {
			continue
		}
		if e.RoundID != round || e.Subject != subject || e.Method != method || e.Address == "" || e.Operation != "POST /v1/callbacks/{callback}" || e.Tenant != "default" {
			d.Errorf("the log says %+v", e)
		}
		if e.Result == "" {
			begun = e.RequestID
			continue
		}
		if begun != e.RequestID || len(results) == 0 || e.Result != results[0] {
			d.Fatalf("the log says %+v after %q, want results %q", e, begun, results)
		}
		results = results[1:]
	}
	if len(results) > 0 {
		d.Errorf("the log has no request that came to %q", results)
	}
}

// A countingStore counts how often a session is looked for.
type countingStore struct {
	session.Store
	looks atomic.Int64
}

// Load returns a session.
func (s *countingStore) Load(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Session, error) {
	s.looks.Add(1)
	return s.Store.Load(ctx, programs, id)
}

// TestForgedCallbacks: wrong tokens are bounded by their address before anything is looked for,
// and are counted in the audit log; right ones are not bounded, however many there are.
func TestForgedCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := &countingStore{Store: store.NewMemory()}
		d, path, token, l := lateDesk(t, "", counts)
		d.from = "192.0.2.1"
		before := counts.looks.Load()
		for range 10 {
			d.callback(403, "bad_callback", path, "wrong", `{"transitionName":"go"}`)
		}
		if n := counts.looks.Load() - before; n != 10 {
			t.Fatalf("10 forged callbacks had %d sessions looked for: the test counts nothing", n)
		}
		for range 20 {
			if r := d.callback(429, "rate_limited", path, "wrong", `{"transitionName":"go"}`); r.header.Get("Retry-After") != "1" {
				t.Errorf("it is not said when to try again: %v", r.header)
			}
		}
		if n := counts.looks.Load() - before; n != 10 {
			t.Errorf("what comes too often had %d sessions looked for", n-10)
		}
		d.want(200, "GET", "/v1", "") // whoever has a key is not behind them

		d.from = "192.0.2.2"
		d.callback(200, "", path, token, `{"transitionName":"go"}`)
		for range 40 { // at once, of a service that has much to say
			d.late("")
			h := l.asked[len(l.asked)-1]
			d.callback(200, "", strings.TrimPrefix(h.Get("Dialai-Callback-Url"), "https://dialai.example"), h.Get("Dialai-Callback-Token"), `{"transitionName":"go"}`)
		}
		d.from = "192.0.2.1"
		time.Sleep(200 * time.Millisecond)
		d.callback(403, "bad_callback", path, "wrong", `{"transitionName":"go"}`)
		d.callback(429, "rate_limited", path, "wrong", `{"transitionName":"go"}`)

		d.serve()
		time.Sleep(time.Minute)
		synctest.Wait()
		found := int64(0)
		records, err := d.control.Audit(t.Context(), control.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if e, err := r.Entry(); err == nil && e.Operation == "unauthenticated" && e.Address == "192.0.2.1" {
				found += e.Count
			}
		}
		if found != 11 {
			t.Errorf("of 11 forged callbacks the audit log counts %d", found)
		}
	})
}

// TestCallbackTooLate: an answer that comes when its time is up changes nothing, but what it has
// cost is recorded.
func TestCallbackTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, path, token, _ := lateDesk(t, "", nil)
		id, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/callbacks/"), ".")
		time.Sleep(25 * time.Hour)
		d.want(200, "POST", "/v1/sessions/"+id+"/step", "")
		for range 2 {
			d.callback(410, "round_over", path, token, `{"transitionName":"go","costUSD":0.625}`)
		}
		if r := d.want(200, "GET", "/v1/sessions/"+id+"/events", ""); strings.Count(string(r.body), `"costUSD":0.625`) != 1 {
			t.Errorf("of the cost the log says %s", r.body)
		}
	})
}

// TestSignedCallbacks: where the machine names a secret, only who signs with it answers.
func TestSignedCallbacks(t *testing.T) {
	d, path, token, _ := lateDesk(t, `,"webhookSecretName":"A_WEBHOOK_SECRET"`, nil)
	const body = `{"transitionName":"go"}`
	signed := func(secret string, at time.Time) []string {
		key, err := webhook.Key(secret)
		if err != nil {
			t.Fatal(err)
		}
		stamp := strconv.FormatInt(at.Unix(), 10)
		return []string{"Webhook-Id", "msg_1", "Webhook-Timestamp", stamp, "Webhook-Signature", webhook.Sign(key, "msg_1", at, []byte(body))}
	}
	d.callback(401, "bad_signature", path, token, body)
	d.callback(401, "bad_signature", path, token, body, signed("whsec_b3RoZXI=", time.Now())...)
	d.callback(401, "bad_signature", path, token, body, signed(lateSecret, time.Now().Add(-time.Hour))...)
	d.callback(403, "bad_callback", path, "wrong", body, signed(lateSecret, time.Now())...)
	d.callback(200, "", path, token, body, signed(lateSecret, time.Now())...)
}
