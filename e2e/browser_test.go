package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dialai/dialai/desk/desktest"
)

// What a page can do in a real browser, Chromium: .ci/browser installs it. The server of these
// tests asks for no key, so nothing but what it knows of browsers keeps a page from it.

// A browser shows pages. Names that end in .example lead to this computer, as those of an attacker
// may (DNS rebinding).
type browser struct {
	*testing.T
	ctx context.Context
}

// newBrowser starts Chromium.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	allocator, end := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(desktest.Program(t)), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), chromedp.Flag("no-proxy-server", true))...)
	t.Cleanup(end)
	ctx, close := chromedp.NewContext(allocator)
	t.Cleanup(close)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return &browser{t, ctx}
}

// visit shows a page, and returns its text.
func (b *browser) visit(address string) string {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(address)); err != nil {
		b.Fatalf("%s: %v", address, err)
	}
	return evaluated[string](b, `document.documentElement.innerText`)
}

// evaluated is what a script of the page comes to, once it is known.
func evaluated[T any](b *browser, script string, args ...any) T {
	b.Helper()
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			b.Fatal(err)
		}
		args[i] = string(text)
	}
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](fmt.Sprintf(script, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", script, err)
	}
	return out
}

// A fetched is what a page has got.
type fetched struct {
	Failed string
	Type   string // of the answer: opaque is one that the page cannot read
	Status int
	Text   string
}

func (b *browser) fetch(address string, init map[string]any) fetched {
	b.Helper()
	return evaluated[fetched](b, `(async () => {
		try {
			const answer = await fetch(%s, %s);
			return { Failed: "", Type: answer.type, Status: answer.status, Text: await answer.text() };
		} catch (e) { return { Failed: String(e), Type: "", Status: 0, Text: "" }; }
	})()`, address, init)
}

// submit posts a form with one field, and returns once there is an answer.
func (b *browser) submit(address, encoding, name, value string) {
	b.Helper()
	evaluated[bool](b, `new Promise((done) => {
		const frame = document.createElement("iframe"), form = document.createElement("form"), field = document.createElement("input");
		frame.name = "f" + Math.random();
		Object.assign(form, { method: "post", action: %s, enctype: %s, target: frame.name });
		Object.assign(field, { type: "hidden", name: %s, value: %s });
		form.append(field);
		document.body.append(frame, form);
		frame.addEventListener("load", () => done(true));
		form.submit();
	})`, address, encoding, name, value)
}

// follow listens to a stream, until it has had an event of a kind or an error.
func (b *browser) follow(address, kind string, options map[string]any) string {
	b.Helper()
	return evaluated[string](b, `new Promise((done) => {
		const source = new EventSource(%s, %s);
		const end = (text) => { source.close(); done(text); };
		source.addEventListener(%s, (e) => end(e.data));
		source.addEventListener("error", () => end("error"));
	})`, address, options, kind)
}

// TestBrowser: what a page elsewhere sends changes nothing and is told nothing, whichever way it
// sends it and whatever name it goes by; a page that the server lists may call.
func TestBrowser(t *testing.T) {
	b := newBrowser(t)
	d := newDesk(t)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<title>a page</title>")
	}))
	t.Cleanup(pages.Close)
	at := func(name, base string) string {
		u, err := url.Parse(base)
		d.must(err)
		return "http://" + name + ":" + u.Port()
	}
	evil, friend := at("evil.example", pages.URL), at("friend.example", pages.URL)
	s := d.serve("--auth", "none", "--cors-origin", friend, "--rate-read", "0", "--rate-write", "0")
	begun := s.waits("before").Session.SessionID
	start := `{"machine":` + question + `,"metaJson":{"x":"=y"}}` // a form whose field ends before = sends it as it is
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_session","arguments":` + start + `}}`
	bodies := map[string]string{"/v1/sessions": start, "/v1/sessions/" + begun + "/cancel": `{"note":"=y"}`, "/mcp": call, "/": call, "/v1/keys": `{"grants":[{"role":"admin","machines":["*"]}],"name":"=y"}`}
	unchanged := func(what string) {
		t.Helper()
		var sessions, keys struct {
			Items []struct{ Status string }
		}
		s.call(200, "GET", "/v1/sessions", nil, &sessions)
		s.call(200, "GET", "/v1/keys", nil, &keys)
		if len(sessions.Items) != 1 || sessions.Items[0].Status != "needs_human" || len(keys.Items) != 0 {
			t.Errorf("%s: there are %+v, %+v", what, sessions.Items, keys.Items)
		}
	}

	if text := b.visit(at("rebound.example", s.url) + "/v1"); !strings.Contains(text, `"bad_host"`) {
		t.Errorf("under another name it shows %q", text)
	}
	b.visit(at("rebound.example", s.url) + "/healthz") // which any name has: from here on the page is of the server's own origin
	for path, body := range bodies {
		if got := b.fetch(path, map[string]any{"method": "POST", "body": body, "headers": map[string]string{"Content-Type": "application/json", "Authorization": "Bearer x"}}); got.Status != 421 || !strings.Contains(got.Text, "bad_host") {
			t.Errorf("a name that leads here posts to %s: %+v", path, got)
		}
	}
	if got := b.fetch("/v1/sessions", nil); got.Status != 421 || strings.Contains(got.Text, begun) {
		t.Errorf("a name that leads here reads %+v", got)
	}
	unchanged("another name")

	b.visit(evil)
	for path, body := range bodies {
		name, value, _ := strings.Cut(body, "=")
		for _, encoding := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
			b.submit(s.url+path, encoding, name, value)
		}
		b.fetch(s.url+path, map[string]any{"method": "POST", "mode": "no-cors", "body": body, "headers": map[string]string{"Content-Type": "text/plain"}})
		for _, init := range []map[string]any{
			{"mode": "no-cors"}, {"mode": "no-cors", "credentials": "include"}, {"credentials": "include"},
			{"credentials": "include", "headers": map[string]string{"Content-Type": "application/json"}},
			{"headers": map[string]string{"Content-Type": "application/json", "Authorization": "Bearer x"}},
		} {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				if init["mode"] == "no-cors" && method != "POST" {
					continue
				}
				init["method"], init["body"] = method, body
				if got := b.fetch(s.url+path, init); got.Failed == "" && (got.Type != "opaque" || got.Text != "" || got.Status != 0) {
					t.Errorf("a page elsewhere sends %v to %s, and reads %+v", init, path, got)
				}
			}
		}
	}
	unchanged("a page elsewhere")
	for _, path := range []string{"/v1/sessions", "/v1/sessions/" + begun, "/v1/inbox", "/openapi.json", "/mcp"} {
		for _, init := range []map[string]any{{}, {"credentials": "include"}, {"mode": "no-cors"}, {"headers": map[string]string{"Authorization": "Bearer x"}}} {
			if got := b.fetch(s.url+path, init); got.Failed == "" && (got.Type != "opaque" || got.Text != "") {
				t.Errorf("a page elsewhere reads of %s %+v", path, got)
			}
		}
	}
	if got := b.follow(s.url+"/v1/events?after=0", "session_created", nil); got != "error" {
		t.Errorf("a page elsewhere follows %s", got)
	}

	b.visit(friend)
	if got := b.fetch(s.url+"/v1/sessions", map[string]any{"headers": map[string]string{"Authorization": "Bearer x"}}); got.Status != 200 || got.Type != "cors" || !strings.Contains(got.Text, begun) {
		t.Errorf("a page that is listed reads %+v", got)
	}
	if got := b.fetch(s.url+"/v1/sessions", map[string]any{"credentials": "include"}); got.Failed == "" {
		t.Errorf("with cookies a page that is listed reads %+v", got)
	}
	if got := b.follow(s.url+"/v1/events?after=0", "session_created", nil); !strings.Contains(got, begun) {
		t.Errorf("a page that is listed follows %s", got)
	}
	if got := b.follow(s.url+"/v1/events?after=0", "session_created", map[string]any{"withCredentials": true}); got != "error" {
		t.Errorf("with cookies a page that is listed follows %s", got)
	}
	unchanged("reading")
	if got := b.fetch(s.url+"/v1/sessions", map[string]any{"method": "POST", "body": start, "headers": map[string]string{"Content-Type": "application/json", "Idempotency-Key": "k"}}); got.Status != 201 {
		t.Errorf("a page that is listed starts %+v", got)
	}
}
