package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dialai/dialai/webhook"
)

// TestClientOfAnOutbound: what a library asks is under the policy, follows nothing, and reads
// no more than an answer may have.
func TestClientOfAnOutbound(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("x", webhook.MaxAnswer+1))
		}
	}))
	defer ts.Close()
	if _, err := webhook.NewOutbound(webhook.Policy{}, nil).Client().Get(ts.URL); err == nil || !strings.Contains(err.Error(), "DIALAI_WEBHOOK_ALLOW") {
		t.Errorf("a private address: %v", err)
	}
	c := webhook.OperatorOutbound(nil, ts.URL).Client()
	for path, want := range map[string]int{"/": 200, "/away": 302, "/long": 200} {
		r, err := c.Get(ts.URL + path)
		if err != nil || r.StatusCode != want {
			t.Fatalf("%s: %v, %v", path, r, err)
		}
		if _, err := io.ReadAll(r.Body); (err != nil) != (path == "/long") {
			t.Errorf("%s: %v", path, err)
		}
		r.Body.Close()
	}
}
