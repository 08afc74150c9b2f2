package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server"
)

// A page is one at which somebody is signed in: its cookie, and the token that it keeps.
type page struct{ cookie, token, subject string }

// with are the headers of a request of the page.
func (p page) with() []string { return []string{"Cookie", p.cookie, "Dialai-Desk", p.token} }

// signIn signs in with what a body has.
func (d *desk) signIn(body string, header ...string) (page, *reply) {
	d.Helper()
	r := d.do("", "POST", "/desk/session", body, header...)
	if r.status != 200 {
		return page{}, r
	}
	var said struct{ Token, Subject string }
	r.into(d.T, &said)
	return page{pairOf(r, "dialai-desk"), said.Token, said.Subject}, r
}

// signedIn signs in with a key.
func (d *desk) signedIn(key string) page {
	d.Helper()
	p, r := d.signIn(fmt.Sprintf(`{"key":%q}`, key))
	if p.token == "" || p.cookie == "" {
		d.Fatalf("nobody is signed in: %d %s %v", r.status, r.body, r.header)
	}
	return p
}

// pairOf returns a cookie that is set, as it is sent: name=value.
func pairOf(r *reply, name string) string {
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if c.Name == name && c.Value != "" {
			return c.Name + "=" + c.Value
		}
	}
	return ""
}

// ticket makes a ticket with a key.
func (d *desk) ticket(key string) string {
	d.Helper()
	var made api.Ticket
	d.wantAs(key, 201, "POST", "/v1/tickets", `{"for":"desk"}`).into(d.T, &made)
	return made.Ticket
}

func TestSigningIn(t *testing.T) {
	d := newDesk(t, deskOptions{})
	key := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	s := d.begin(reviewed)
	p, r := d.signIn(`{"key":"` + key + `"}`)
	set := strings.Join(r.header.Values("Set-Cookie"), "\n")
	if !strings.HasPrefix(set, "dialai-desk=") || !strings.Contains(set, "; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict\n") {
		t.Errorf("the cookie is %s", set)
	}
	if strings.Contains(p.cookie+string(r.body)+set, key) || strings.Contains(set, p.token) || len(p.token) != 43 || len(p.cookie) != len("dialai-desk=")+43 || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("it is answered %s with %v", r.body, r.header)
	}
	var about api.About
	d.wantAs("", 200, "GET", "/v1", "", p.with()...).into(t, &about)
	if about.Caller.Method != "cookie" || about.Caller.Subject != p.subject || !strings.HasPrefix(p.subject, "key:") || fmt.Sprint(about.Caller.Humans) != "[carol]" {
		t.Errorf("who is signed in is %+v", about.Caller)
	}

	other := d.signedIn(localKey)
	rulesIn := "/v1/sessions/" + s.SessionID + "/decisions"
	for name, header := range map[string][]string{
		"the cookie alone":         {"Cookie", p.cookie},
		"the token alone":          {"Dialai-Desk", p.token},
		"the token of another":     {"Cookie", p.cookie, "Dialai-Desk", other.token},
		"the cookie of another":    {"Cookie", other.cookie, "Dialai-Desk", p.token},
		"the cookie as the token":  {"Cookie", p.cookie, "Dialai-Desk", strings.TrimPrefix(p.cookie, "dialai-desk=")},
		"the token as the cookie":  {"Cookie", "dialai-desk=" + p.token, "Dialai-Desk", p.token},
		"a cookie of TLS":          {"Cookie", "__Host-" + p.cookie, "Dialai-Desk", p.token},
		"another Authorization":    {"Cookie", p.cookie, "Dialai-Desk", p.token, "Authorization", "Basic YTpi"},
		"a key that nobody has":    {"Cookie", p.cookie, "Dialai-Desk", p.token, "Authorization", "Bearer x"},
		"the cookie as a key":      {"Authorization", "Bearer " + strings.TrimPrefix(p.cookie, "dialai-desk=")},
		"the cookie, cut":          {"Cookie", p.cookie[:len(p.cookie)-1], "Dialai-Desk", p.token},
		"the token in the address": {"Cookie", p.cookie},
	} {
		for _, request := range [][2]string{{"GET", "/v1"}, {"GET", "/v1/sessions?" + deskHeaderQuery(name, p)}, {"GET", "/v1/events"}, {"POST", rulesIn}, {"POST", "/mcp"}, {"DELETE", "/desk/session"}} {
			d.fromElsewhere() // strangers are bounded by their address
			if r := d.do("", request[0], request[1], "", header...); r.status != 401 || strings.Contains(string(r.body), s.SessionID) {
				t.Errorf("with %s %s %s is %d: %s", name, request[0], request[1], r.status, r.body)
			}
		}
	}
	d.from = ""
	d.wantAs("", 200, "GET", "/desk/", "", "Cookie", p.cookie)
	d.wantAs("", 200, "GET", "/v1", "", "Dialai-Desk", p.token, "Cookie", "dialai-desk=foisted; "+other.cookie+"; "+p.cookie) // by a page of another port

	d.wantAs("", 204, "DELETE", "/desk/session", "", p.with()...)
	for range 2 {
		d.wantAs("", 401, "GET", "/v1", "", p.with()...)
		d.wantAs("", 401, "DELETE", "/desk/session", "", p.with()...)
	}
	d.wantAs("", 200, "GET", "/v1", "", other.with()...)
	d.wantAs(key, 404, "DELETE", "/desk/session", "")
	d.wantAs(key, 200, "GET", "/v1", "")
}

// deskHeaderQuery is a query that would be the header, if anything took it from there.
func deskHeaderQuery(name string, p page) string {
	if name == "the token in the address" {
		return "Dialai-Desk=" + p.token
	}
	return ""
}

// TestCookieOverTLS: over TLS, to a proxy too, the cookie is one that no other host and no plain
// connection can set.
func TestCookieOverTLS(t *testing.T) {
	d := newDesk(t, deskOptions{})
	r := httptest.NewRequestWithContext(t.Context(), "POST", "https://localhost/desk/session", strings.NewReader(`{"key":"`+localKey+`"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if set := w.Header().Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-dialai-desk=") || !strings.HasSuffix(set, "; Path=/; Max-Age=28800; HttpOnly; Secure; SameSite=Strict") {
		t.Errorf("the cookie is %s", set)
	}
}

// TestSigningInAnew: nothing that a browser had before is good for who has signed in.
func TestSigningInAnew(t *testing.T) {
	d := newDesk(t, deskOptions{})
	foisted := "dialai-desk=" + strings.Repeat("A", 43)
	p, _ := d.signIn(`{"key":"`+localKey+`"}`, "Cookie", foisted, "Dialai-Desk", "B")
	if p.cookie == foisted || p.token == "B" {
		t.Errorf("what was foisted is taken: %+v", p)
	}
	d.wantAs("", 401, "GET", "/v1", "", "Cookie", foisted, "Dialai-Desk", p.token)
	d.wantAs("", 401, "GET", "/v1", "", "Cookie", foisted, "Dialai-Desk", "B")
	if q := d.signedIn(localKey); q.cookie == p.cookie || q.token == p.token {
		t.Errorf("two sign-ins are %+v and %+v", p, q)
	}
}

func TestSignInsThatAreRefused(t *testing.T) {
	d := newDesk(t, deskOptions{config: server.Config{Origins: []string{"https://friend.example"}}})
	good := `{"key":"` + localKey + `"}`
	for _, c := range []struct {
		status int
		body   string
		header []string
	}{
		{401, `{"key":"wrong"}`, nil},
		{401, `{"ticket":"wrong"}`, nil},
		{400, `{}`, nil},
		{400, `{"key":"","ticket":""}`, nil},
		{400, `{"key":"` + localKey + `","ticket":"x"}`, nil},
		{400, `{"key":"` + localKey + `","more":1}`, nil},
		{400, `{"key":"x","key":"` + localKey + `"}`, nil},
		{400, `{"key":["` + localKey + `"]}`, nil},
		{400, good + good, nil},
		{415, good, []string{"Content-Type", "text/plain"}},
		{415, "key=" + localKey, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{403, good, []string{"Origin", "http://evil.example"}},
		{403, good, []string{"Origin", "http://localhost:81"}},
		{403, good, []string{"Origin", "null"}},
		{403, good, []string{"Sec-Fetch-Site", "same-site"}},
		{403, good, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, good, []string{"Origin", "https://friend.example"}},
		{413, `{"key":"` + strings.Repeat("x", 1<<20) + `"}`, nil},
		{200, good, []string{"Origin", "http://localhost"}},
		{200, good, []string{"Origin", "http://localhost", "Sec-Fetch-Site", "same-origin"}},
	} {
		d.fromElsewhere()
		if _, r := d.signIn(c.body, c.header...); r.status != c.status || r.status != 200 && len(r.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%.60s %v: %d, want %d: %s", c.body, c.header, r.status, c.status, r.body)
		}
	}
	if r := d.do("", "GET", "/desk/session", ""); r.status != 405 && r.status != 404 {
		t.Errorf("GET: %d", r.status)
	}
	for _, name := range []string{"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers"} {
		r := d.do("", "OPTIONS", "/v1/sessions", "", "Origin", "https://friend.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "Dialai-Desk")
		if strings.Contains(strings.ToLower(r.header.Get(name)), "true") || strings.Contains(r.header.Get(name), "Dialai-Desk") {
			t.Errorf("a page elsewhere may send cookies: %v", r.header)
		}
	}
}

// TestLoginsAreRated: an address has ten attempts a minute, right or wrong; another has its own.
func TestLoginsAreRated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		for i := range 12 {
			want := 401
			if i >= 10 {
				want = 429
			}
			if r := d.do("", "POST", "/desk/session", `{"key":"wrong"}`); r.status != want || want == 429 && r.header.Get("Retry-After") == "" {
				t.Errorf("attempt %d: %d %s", i+1, r.status, r.body)
			}
		}
		if _, r := d.signIn(`{"key":"` + localKey + `"}`); r.status != 429 {
			t.Errorf("the right key after ten attempts: %d", r.status)
		}
		d.from = "192.0.2.99"
		d.signedIn(localKey)
		d.from = ""
		time.Sleep(6 * time.Second)
		d.signedIn(localKey)
	})
}

// TestSignInsEnd: a sign-in is over half an hour after it was used last, eight hours after it
// began, and as soon as the key is that it was begun with. A stream does not count as use.
func TestSignInsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		good := func(p page, is bool) {
			t.Helper()
			status := map[bool]int{true: 200, false: 401}[is]
			d.wantAs("", status, "GET", "/v1", "", p.with()...)
		}
		idle, used := d.signedIn(localKey), d.signedIn(localKey)
		for range 23 {
			time.Sleep(20 * time.Minute)
			good(used, true)
		}
		good(idle, false)
		good(used, true)
		time.Sleep(20*time.Minute - time.Second)
		good(used, true)
		time.Sleep(time.Second)
		good(used, false)

		for _, c := range []struct {
			after time.Duration
			is    bool
		}{{30*time.Minute - time.Millisecond, true}, {30 * time.Minute, false}} {
			p := d.signedIn(localKey)
			time.Sleep(c.after)
			good(p, c.is)
		}
		watched := d.signedIn(localKey)
		for range 3 {
			time.Sleep(10*time.Minute - time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			go d.follow(ctx, watched)
			synctest.Wait()
			cancel()
		}
		time.Sleep(3 * time.Second)
		good(watched, false)

		var made api.MadeKey
		d.want(201, "POST", "/v1/keys", `{"name":"ann","grants":[{"role":"viewer","machines":["*"]}],"expiresAt":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`).into(t, &made)
		expires, revoked := d.signedIn(made.Credential), d.signedIn(made.Credential)
		for range 3 {
			time.Sleep(19 * time.Minute)
			good(expires, true)
			good(revoked, true)
		}
		time.Sleep(3 * time.Minute)
		good(expires, false)
		d.want(201, "POST", "/v1/keys", `{"name":"bob","grants":[{"role":"viewer","machines":["*"]}]}`).into(t, &made)
		revoked = d.signedIn(made.Credential)
		ticket := d.ticket(made.Credential)
		good(revoked, true)
		d.want(200, "DELETE", "/v1/keys/"+made.KeyID, "")
		good(revoked, false)
		if _, r := d.signIn(`{"ticket":"` + ticket + `"}`); r.status != 401 {
			t.Errorf("a ticket of a key that is revoked: %d", r.status)
		}
	})
}

// follow follows the events of all sessions until the stream ends; when, it returns.
func (d *desk) follow(ctx context.Context, p page) time.Time {
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/events", nil)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Cookie", p.cookie)
	r.Header.Set("Dialai-Desk", p.token)
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if w.Code != 200 {
		d.Errorf("the stream is answered with %d: %s", w.Code, w.Body)
	}
	return time.Now()
}

// TestSignInEndsStreams: a stream ends within 5 seconds of the end of the sign-in, however that
// came: ended, at another server too, its key revoked, or idle.
func TestSignInEndsStreams(t *testing.T) {
	for name, end := range map[string]func(d, other *desk, p page, key string){
		"ended":                   func(d, _ *desk, p page, _ string) { d.wantAs("", 204, "DELETE", "/desk/session", "", p.with()...) },
		"ended at another server": func(_, o *desk, p page, _ string) { o.wantAs("", 204, "DELETE", "/desk/session", "", p.with()...) },
		"revoked":                 func(d, _ *desk, _ page, key string) { d.want(200, "DELETE", "/v1/keys/"+key, "") },
		"idle":                    func(*desk, *desk, page, string) { time.Sleep(30*time.Minute - 7*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, deskOptions{})
				other := newDesk(t, deskOptions{control: d.control})
				var made api.MadeKey
				d.want(201, "POST", "/v1/keys", `{"name":"ann","grants":[{"role":"operator","machines":["*"]}]}`).into(t, &made)
				p, stays := d.signedIn(made.Credential), d.signedIn(localKey)
				ended := make(chan time.Time, 2)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { ended <- d.follow(ctx, p) }()
				if name != "idle" {
					go func() { d.follow(ctx, stays) }()
				}
				time.Sleep(7 * time.Second)
				if len(ended) != 0 {
					t.Fatal("the stream ends at once")
				}
				end(d, other, p, made.KeyID)
				over := time.Now()
				if at := <-ended; at.Sub(over) > 5*time.Second {
					t.Errorf("it ends after %v", at.Sub(over))
				}
				d.wantAs("", 401, "GET", "/v1", "", p.with()...)
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestTickets: a ticket signs one browser in, at any server on the store, as who has made it.
func TestTickets(t *testing.T) {
	d := newDesk(t, deskOptions{})
	other := newDesk(t, deskOptions{control: d.control})
	key := d.key(control.Grant{Role: control.Viewer})
	first := d.wantAs(key, 201, "POST", "/v1/tickets", `{"for":"desk"}`, "Idempotency-Key", "k")
	again := d.wantAs(key, 201, "POST", "/v1/tickets", `{"for":"desk"}`, "Idempotency-Key", "k")
	var made, kept api.Ticket
	first.into(t, &made)
	if again.into(t, &kept); made.Ticket == "" || kept.Ticket != "" || kept.ExpiresAt != made.ExpiresAt {
		t.Errorf("asked for again it is %+v, at first %+v", kept, made)
	}
	use := `{"ticket":"` + made.Ticket + `"}`
	d.wantAs("", 401, "GET", "/v1", "", "Cookie", "dialai-desk="+made.Ticket, "Dialai-Desk", "x")
	d.wantAs(made.Ticket, 401, "GET", "/v1", "")
	p, r := other.signIn(use)
	if p.token == "" || !strings.HasPrefix(p.subject, "key:") {
		t.Fatalf("a ticket signs in %+v: %s", p, r.body)
	}
	d.wantAs("", 200, "GET", "/v1", "", p.with()...)
	for _, at := range []*desk{d, other} {
		if _, r := at.signIn(use); r.status != 401 {
			t.Errorf("used again it is answered with %d: %s", r.status, r.body)
		}
	}
	d.wantAs("", 403, "POST", "/v1/tickets", `{"for":"desk"}`, p.with()...)
	if _, r := d.signIn(`{"ticket":"` + strings.TrimPrefix(p.cookie, "dialai-desk=") + `"}`); r.status != 401 {
		t.Errorf("a cookie as a ticket: %d", r.status)
	}
	for _, body := range []string{`{}`, `{"for":"all"}`, `{"for":"desk","life":"1y"}`, ``} {
		if r := d.do(key, "POST", "/v1/tickets", body); r.status != 400 {
			t.Errorf("%s makes %d %s", body, r.status, r.body)
		}
	}
	d.wantAs("", 401, "POST", "/v1/tickets", `{"for":"desk"}`)

	use = `{"ticket":"` + d.ticket(key) + `"}`
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		at := []*desk{d, other}[i%2].handler
		all.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/desk/session", strings.NewReader(use))
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i)
			w := httptest.NewRecorder()
			if at.ServeHTTP(w, r); w.Code == 200 {
				won.Add(1)
			} else if w.Code != 401 {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
	if all.Wait(); won.Load() != 1 {
		t.Errorf("%d of 32 sign in with one ticket", won.Load())
	}
}

func TestTicketsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		for _, c := range []struct {
			after  time.Duration
			status int
		}{{time.Minute - time.Millisecond, 200}, {time.Minute, 401}} {
			ticket := d.ticket(localKey)
			time.Sleep(c.after)
			if _, r := d.signIn(`{"ticket":"` + ticket + `"}`); r.status != c.status {
				t.Errorf("after %v it is answered with %d, want %d", c.after, r.status, c.status)
			}
		}
	})
}

// TestRulingBySignIn: who is signed in rules as the human of their key, and the logs say how they
// are known; where anybody may name any human, that it proves nothing.
func TestRulingBySignIn(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	key := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	for _, c := range []struct {
		page
		method string
	}{{d.signedIn(key), "cookie"}, {d.signedIn(localKey), "local"}} {
		s := d.start(strings.Replace(reviewed, "claims", "claims-"+c.method, 1)) // of which nobody has learned anything
		at := "/v1/sessions/" + s.SessionID
		if c.method == "cookie" {
			d.wantAs("", 403, "POST", at+"/decisions", ruling(s, "pay", "dave"), c.with()...)
		}
		d.wantAs("", 200, "POST", at+"/decisions", ruling(s, "pay", "carol"), c.with()...)
		actor := fmt.Sprintf(`"subject":%q,"method":%q`, c.subject, c.method)
		if events := d.want(200, "GET", at+"/events?kinds=executed", ""); !strings.Contains(string(events.body), actor) {
			t.Errorf("the log has %s, want %s", events.body, actor)
		}
		records, err := d.control.Audit(t.Context(), control.Query{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, r := range records {
			var e control.Entry
			if err := json.Unmarshal(r.Data, &e); err != nil {
				t.Fatal(err)
			}
			if e.Subject == c.subject && strings.HasPrefix(e.Target, at) && e.Method == c.method || e.Subject == c.subject && e.Operation == "POST /desk/session" && e.Result == "OK" {
				found[e.Operation]++
			}
		}
		if found["POST /desk/session"] != 1 || found["POST /v1/sessions/{id}/decisions"] < 2 {
			t.Errorf("the audit log has of %s %v", c.subject, found)
		}
	}
}

// TestStoreOfSignIns: what is kept of a sign-in tells nothing of the credential, cookie or token.
func TestStoreOfSignIns(t *testing.T) {
	kept := &keeps{Store: control.NewMemory()}
	d := newDesk(t, deskOptions{control: kept})
	p := d.signedIn(localKey)
	for _, secret := range []string{localKey, p.token, strings.TrimPrefix(p.cookie, "dialai-desk="), d.ticket(localKey)} {
		if strings.Contains(fmt.Sprintf("%s %+v", kept.sealed, kept.entries), secret) {
			t.Errorf("the store has %s", secret)
		}
	}
	if len(kept.sealed) != 2 {
		t.Errorf("it has %d sign-ins", len(kept.sealed))
	}
}

// keeps is a store that notes what it is given of sign-ins.
type keeps struct {
	control.Store
	sealed  []string
	entries []control.Entry
}

func (k *keeps) Commit(ctx context.Context, c control.Changes) error {
	if c.SignIn != nil {
		k.sealed = append(k.sealed, c.SignIn.Sealed)
	}
	k.entries = append(k.entries, c.Entries...)
	return k.Store.Commit(ctx, c)
}

// TestTicketOfTheServer: a ticket that the server itself makes is for who has a credential, once,
// and the audit log has who that is and not the ticket.
func TestTicketOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		if secret, err := d.server.Ticket(d.Context(), "nobody's"); !errors.Is(err, server.ErrUnauthenticated) || secret != "" {
			t.Errorf("nobody gets %q (%v)", secret, err)
		}
		ticket := func() string {
			secret, err := d.server.Ticket(d.Context(), localKey)
			if err != nil {
				t.Fatal(err)
			}
			return `{"ticket":"` + secret + `"}`
		}
		once, late := ticket(), ticket()
		if p, r := d.signIn(once); p.subject != "local" {
			t.Errorf("who signs in is %d %s", r.status, r.body)
		}
		if _, r := d.signIn(once); r.status != 401 {
			t.Errorf("a second time: %d", r.status)
		}
		time.Sleep(time.Minute)
		if _, r := d.signIn(late); r.status != 401 {
			t.Errorf("after a minute: %d", r.status)
		}
		if found := d.logged("ticket"); len(found) != 2 || found[0].Subject != "local" || found[0].Method != "local" || found[0].Tenant != "default" || found[0].Result != "Created" {
			t.Errorf("the audit log has %+v", found)
		}
	})
}
