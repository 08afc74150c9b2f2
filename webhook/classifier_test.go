package webhook_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
	"github.com/dialai/dialai/webhook"
)

func section(url string) *guard.ClassifierConfig {
	return &guard.ClassifierConfig{URL: url, TokenName: "MY_WEBHOOK_TOKEN", Model: "m", Timeout: time.Second}
}

// TestClassifier: the question and the answer, signed and with the token.
func TestClassifier(t *testing.T) {
	var body, user, password string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		user, password, _ = r.BasicAuth()
		if err := webhook.Verify([]byte(token), r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature"), b, time.Now()); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"verdict":"escalate","score":0.25,"code":"S1","costUSD":0.5,"numInputTokens":3}`)
	})
	c, err := client(t).Classifier(section(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Classify(bounded(t), guard.Classification{Stage: "args", Text: "a \"text\"", Meta: guard.ClassifierMeta{Task: "t", State: "s", Tool: "x", Model: "m", Turns: []string{"before"}}})
	want := guard.ClassifierAnswer{Verdict: verdict.Escalate, Score: 0.25, Code: "S1"}
	want.Usage = specialist.Usage{NumInputTokens: 3, Given: specialist.InputGiven}.WithCost(exact.Dollar / 2)
	if a != want || err != nil {
		t.Errorf("the answer is %+v (%v), want %+v", a, err, want)
	}
	if body != `{"stage":"args","text":"a \"text\"","meta":{"task_id":"t","state":"s","tool":"x","model":"m","turns":["before"]}}` || user != "dialai" || password != token {
		t.Errorf("it was asked %s by %q", body, user)
	}
}

// TestClassifierRepeats: a question that is asked again has the same key, also as another ask
// after the first was lost, so that a service can tell that from another question.
func TestClassifierRepeats(t *testing.T) {
	var keys []string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Webhook-Id"); got != r.Header.Get("Idempotency-Key") {
			t.Errorf("the id is %q, the key another", got)
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		_, _ = io.WriteString(w, `{"verdict":"ok","score":0}`)
	})
	c, err := client(t).Classifier(section(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct{ ask, text string }{{"one", "a text"}, {"two", "a text"}, {"three", "another"}} {
		ctx := specialist.WithCaller(bounded(t), specialist.Caller{AskID: q.ask})
		if _, err := c.Classify(ctx, guard.Classification{Stage: "output", Text: q.text}); err != nil {
			t.Fatal(err)
		}
	}
	if keys[0] != keys[1] || keys[1] == keys[2] || len(keys[0]) != 32 {
		t.Errorf("the keys are %q", keys)
	}
}

// TestClassifierErrors: everything that is no answer, and that the token is in
// no message.
func TestClassifierErrors(t *testing.T) {
	for _, x := range []struct {
		status     int
		body, want string
	}{
		{200, `{}`, "webhook answer: verdict is not one of ok, warn, retry, escalate and abort"},
		{200, `{"verdict":"fine"}`, "webhook answer: verdict is not one of ok, warn, retry, escalate and abort"},
		{200, `{"verdict":1}`, "webhook answer: verdict is not a string"},
		{200, `{"verdict":"ok","score":2}`, "webhook answer: score is not a number from 0 to 1"},
		{200, `{"verdict":"ok","code":[]}`, "webhook answer: code is not a string"},
		{200, `[]`, "webhook answer: it is not a JSON object"},
		{202, ``, "Webhook returned 202 Accepted: an answer is needed at once"},
		{403, token, "Webhook error (403): [REDACTED]"},
	} {
		c, err := client(t).Classifier(section(answering(t, x.status, x.body).URL))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Classify(bounded(t), guard.Classification{Stage: "output", Text: "x"})
		wantError(t, err, x.want)
	}
	for name, s := range map[string]*guard.ClassifierConfig{"no such variable": {URL: "https://a.example", TokenName: "NO_WEBHOOK_TOKEN"},
		"a variable of another kind": {URL: "https://a.example", TokenName: "DATABASE_URL"}, "a private address": {URL: "https://10.0.0.1", TokenName: "MY_WEBHOOK_TOKEN"}} {
		if _, err := client(t).Classifier(s); err == nil || strings.Contains(err.Error(), "db-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := client(t).Classifier(&guard.ClassifierConfig{Function: "f"}); c != nil || err != nil {
		t.Errorf("a section without an url: %v, %v", c, err)
	}
}
