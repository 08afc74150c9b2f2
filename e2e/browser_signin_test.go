package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestBrowserSignIn: a page at another port of 127.0.0.1 is sent the cookie of who has signed in,
// and can put its own beside it; it reads nothing with that, and keeps nobody from anything.
func TestBrowserSignIn(t *testing.T) {
	b := newBrowser(t)
	d := newDesk(t)
	var mu sync.Mutex
	stolen := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = r.Header.Get("Cookie")
		w.Header().Set("Content-Type", "text/html")
		w.Header().Add("Set-Cookie", "dialai-desk=foisted; Path=/v1/sessions")
		io.WriteString(w, "<title>a page</title>")
	}))
	t.Cleanup(elsewhere.Close)
	s := d.serve("--rate-read", "0", "--rate-write", "0")
	begun := s.waits("before").Session.SessionID
	b.visit(s.url + "/healthz") // from here on the page is of the server's origin
	signIn := map[string]any{"method": "POST", "body": `{"key":"` + s.key + `"}`, "headers": map[string]string{"Content-Type": "application/json"}}
	if got := b.fetch("/desk/session", signIn); got.Status != 200 || !strings.Contains(got.Text, `"token"`) {
		t.Fatalf("signing in comes to %+v", got)
	}
	keep := `(async () => { const r = await fetch("/desk/session", %s); localStorage.setItem("desk", (await r.json()).token); return document.cookie; })()`
	if seen := evaluated[string](b, keep, signIn); seen != "" {
		t.Errorf("scripts of the page see the cookie: %s", seen)
	}
	reads := func(with bool) fetched {
		t.Helper()
		return evaluated[fetched](b, `(async () => {
			const r = await fetch("/v1/sessions", { headers: %v ? { "Dialai-Desk": localStorage.getItem("desk") } : {} });
			return { Failed: "", Type: r.type, Status: r.status, Text: await r.text() };
		})()`, with)
	}
	if got := reads(true); got.Status != 200 || !strings.Contains(got.Text, begun) {
		t.Errorf("who is signed in reads %+v", got)
	}
	if got := reads(false); got.Status != 401 || strings.Contains(got.Text, begun) {
		t.Errorf("with the cookie alone they read %+v", got)
	}

	b.visit(elsewhere.URL)
	mu.Lock()
	cookie := stolen
	mu.Unlock()
	if !strings.Contains(cookie, "dialai-desk=") {
		t.Errorf("another port is sent %q: cookies know the port after all?", cookie)
	}
	if got := evaluated[string](b, `document.cookie + localStorage.getItem("desk")`); got != "null" {
		t.Errorf("its page sees %q", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/sessions", nil)
	d.must(err)
	req.Header.Set("Cookie", cookie)
	answer, err := http.DefaultClient.Do(req)
	d.must(err)
	answer.Body.Close()
	if answer.StatusCode != 401 {
		t.Errorf("with the cookie that its server was sent it reads %s", answer.Status)
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions/" + begun, "/v1/events?after=0", "/mcp", "/desk/session"} {
		for _, init := range []map[string]any{
			{"credentials": "include"}, {"credentials": "include", "mode": "no-cors"}, {"credentials": "include", "headers": map[string]string{"Dialai-Desk": "x"}},
			{"credentials": "include", "method": "POST", "mode": "no-cors", "body": signIn["body"]}, {"credentials": "include", "method": "DELETE"},
		} {
			if got := b.fetch(s.url+path, init); got.Failed == "" && (got.Type != "opaque" || got.Text != "") {
				t.Errorf("its page reads of %s %+v", path, got)
			}
		}
	}
	b.visit(s.url + "/healthz")
	if got := reads(true); got.Status != 200 || !strings.Contains(got.Text, begun) {
		t.Errorf("with a cookie of another port beside it who is signed in reads %+v", got)
	}
	if got := evaluated[int](b, `fetch("/desk/session", { method: "DELETE", headers: { "Dialai-Desk": localStorage.getItem("desk") } }).then((r) => r.status)`); got != 204 {
		t.Errorf("signing out comes to %d", got)
	}
	if got := reads(true); got.Status != 401 && got.Status != 429 { // strangers are bounded by their address
		t.Errorf("signed out they read %+v", got)
	}
	b.visit(elsewhere.URL)
	if mu.Lock(); strings.Contains(stolen, "dialai-desk=") {
		t.Errorf("the browser keeps %s", stolen)
	}
	mu.Unlock()
}
