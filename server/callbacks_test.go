package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
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

// lateDesk is a desk that has asked a service; it returns where that answers, and with what.
func lateDesk(t *testing.T, secret string) (d *desk, path, token string, l *later) {
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
	d, path, token, l := lateDesk(t, "")
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
	d.callback(200, "", path, token, `{"transitionName":"go","reasoning":"at last"}`).into(t, &got)
	if got.ProposalID == "" || got.RoundID == "" || got.Repeated {
		t.Errorf("the answer is answered with %+v", got)
	}
	was := got.ProposalID
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

// TestSignedCallbacks: where the machine names a secret, only who signs with it answers.
func TestSignedCallbacks(t *testing.T) {
	d, path, token, _ := lateDesk(t, `,"webhookSecretName":"A_WEBHOOK_SECRET"`)
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
