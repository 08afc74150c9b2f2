package server_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/issuer"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/server"
)

// logins are those at an issuer: what it gives for a code, once.
type logins struct {
	mu       sync.Mutex
	codes    map[string]login
	saysFrom bool     // it says in its answers from whom they are
	methods  []string // by which a client shows its secret
	broken   int      // the status that is answered to codes; 0 is that of their own
}

// A login is one that has come about at the issuer.
type login struct{ challenge, redirect, token string }

// describe is what the issuer says of itself.
func (l *logins) describe(at string) map[string]any {
	return map[string]any{"issuer": at, "jwks_uri": at + "/keys", "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
		"authorization_response_iss_parameter_supported": l.saysFrom, "token_endpoint_auth_methods_supported": l.methods}
}

// exchange gives the token for a code to the client that has asked for it.
func (l *logins) exchange(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	code, known := l.codes[r.FormValue("code")]
	delete(l.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case l.broken != 0:
		w.WriteHeader(l.broken)
	case id != "desk" || secret != "s3cret", basic == (len(l.methods) > 0):
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]any{"error": "invalid_client"})
	case !known || code.redirect != r.FormValue("redirect_uri") || code.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || r.FormValue("grant_type") != "authorization_code":
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant"})
	default:
		json.NewEncoder(w).Encode(map[string]any{"access_token": "of no use here", "token_type": "Bearer", "expires_in": 60, "id_token": code.token})
	}
}

// loginDesk is a server at which people log in at an issuer.
func loginDesk(t *testing.T) (*desk, *idp, seal.Key) {
	t.Helper()
	i := startIDP(t)
	i.codes = map[string]login{}
	o, key := i.settings(), seal.NewKey()
	o.Audience, o.Client = "", "desk"
	d := newDesk(t, deskOptions{drives: true, config: server.Config{Issuer: o.Issuer, Login: &server.Login{OIDC: o, Key: key,
		Issuer: issuer.NewLogin(i.URL, "desk", "s3cret", i.Client(), func() time.Time { return noon })}}})
	return d, i, key
}

// A leaving is a browser that was sent to the issuer: its cookie, and what it was sent with.
type leaving struct {
	cookie string
	asked  url.Values
}

func (d *desk) leaves(i *idp) leaving {
	d.Helper()
	r := d.do("", "GET", "/desk/login", "")
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil || r.status != 303 || !strings.HasPrefix(to.String(), i.URL+"/authorize?") {
		d.Fatalf("a login begins with %d to %v: %s", r.status, to, r.body)
	}
	return leaving{pairOf(r, "dialai-login"), to.Query()}
}

// logsIn has the issuer log somebody in, and returns what their browser comes back with. Claims
// that change says are others.
func (i *idp) logsIn(t *testing.T, l leaving, change map[string]any) url.Values {
	t.Helper()
	claims := map[string]any{"aud": "desk", "nonce": l.asked.Get("nonce")}
	maps.Copy(claims, change)
	return i.answers(l, i.token(t, jose.RS256, i.claims(claims)))
}

// answers keeps a token for a code.
func (i *idp) answers(l leaving, token string) url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := "code " + l.asked.Get("state")
	i.codes[code] = login{l.asked.Get("code_challenge"), l.asked.Get("redirect_uri"), token}
	return url.Values{"code": {code}, "state": {l.asked.Get("state")}}
}

// comesBack is a browser that comes back from the issuer.
func (d *desk) comesBack(cookie string, with url.Values) *reply {
	d.Helper()
	return d.do("", "GET", "/desk/login/callback?"+with.Encode(), "", "Cookie", cookie)
}

// ticketOf returns the ticket with which a browser is sent to the page, "" if it is not.
func ticketOf(r *reply) string {
	ticket, ok := strings.CutPrefix(r.header.Get("Location"), "/desk/#t=")
	if !ok || r.status != 303 {
		return ""
	}
	return ticket
}

// TestLoggingIn: who logs in at the issuer is signed in as whom its claims name, with the roles that
// they are good for, and rules so; only in the browser that has begun it.
func TestLoggingIn(t *testing.T) {
	d, i, _ := loginDesk(t)
	l := d.leaves(i)
	for name, want := range map[string]string{"response_type": "code", "client_id": "desk", "redirect_uri": "http://localhost/desk/login/callback", "code_challenge_method": "S256", "scope": "openid profile email"} {
		if got := l.asked.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	r := d.do("", "GET", "/desk/login", "")
	if set := r.header.Get("Set-Cookie"); !strings.HasPrefix(set, "dialai-login=") || !strings.HasSuffix(set, "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax") || strings.Contains(set, l.asked.Get("nonce")) || r.header.Get("Cache-Control") != "no-store" || r.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the cookie of a login is %s, with %v", set, r.header)
	}
	if again := d.leaves(i); again.cookie == l.cookie || again.asked.Get("state") == l.asked.Get("state") || again.asked.Get("nonce") == l.asked.Get("nonce") || again.asked.Get("code_challenge") == l.asked.Get("code_challenge") {
		t.Errorf("two logins have something in common: %v", again)
	}

	r = d.comesBack(l.cookie, i.logsIn(t, l, nil))
	ticket := ticketOf(r)
	if ticket == "" {
		t.Fatalf("who has logged in is sent to %q with %d: %s", r.header.Get("Location"), r.status, r.body)
	}
	use := `{"ticket":"` + ticket + `"}`
	for name, header := range map[string][]string{"another browser": nil, "the browser of another login": {"Cookie", d.leaves(i).cookie}} {
		if _, r := d.signIn(use, header...); r.status != 401 {
			t.Errorf("%s signs in with the ticket: %d", name, r.status)
		}
	}
	p, r := d.signIn(use, "Cookie", l.cookie)
	if p.subject != "oidc:"+i.URL+"#u-17" {
		t.Fatalf("signed in is %+v: %s", p, r.body)
	}
	if _, r := d.signIn(use, "Cookie", l.cookie); r.status != 401 {
		t.Errorf("again: %d", r.status)
	}
	s := d.start(strings.Replace(reviewed, "claims", "expense-claims", 1))
	at := "/v1/sessions/" + s.SessionID
	d.wantAs("", 403, "POST", at+"/decisions", ruling(s, "pay", "dave"), p.with()...)
	d.wantAs("", 200, "POST", at+"/decisions", ruling(s, "pay", "carol"), p.with()...)
	if events := d.want(200, "GET", at+"/events?kinds=executed", ""); !strings.Contains(string(events.body), `"subject":"`+p.subject+`","method":"cookie"`) {
		t.Errorf("the log has %s", events.body)
	}
	audited := d.want(200, "GET", "/v1/audit?subject="+url.QueryEscape(p.subject), "")
	for _, want := range []string{`"operation":"GET /desk/login/callback"`, `"operation":"POST /desk/session"`} {
		if !strings.Contains(string(audited.body), want) {
			t.Errorf("the audit log lacks %s: %s", want, audited.body)
		}
	}
	d.wantAs("", 204, "DELETE", "/desk/session", "", p.with()...)
}

// TestLoginsThatAreNotGood: nobody is logged in by an answer that is not the one to what their
// browser was sent with, from this issuer, for this client, and new.
func TestLoginsThatAreNotGood(t *testing.T) {
	d, i, _ := loginDesk(t)
	set := func(name, value string) func(url.Values) {
		return func(v url.Values) { v.Set(name, value) }
	}
	other := d.leaves(i)
	theirs := i.logsIn(t, other, nil)
	for name, c := range map[string]struct {
		cookie func(leaving) string
		claims map[string]any
		change func(url.Values)
	}{
		"another state":                   {change: set("state", "x")},
		"no state":                        {change: set("state", "")},
		"the state of another login":      {change: set("state", other.asked.Get("state"))},
		"the code of another login":       {change: set("code", theirs.Get("code"))},
		"a link to the login of another":  {change: func(v url.Values) { maps.Copy(v, theirs) }},
		"no code":                         {change: set("code", "")},
		"a code that nobody has":          {change: set("code", "x")},
		"another issuer":                  {change: set("iss", "https://evil.example")},
		"an error":                        {change: set("error", "access_denied")},
		"another nonce":                   {claims: map[string]any{"nonce": "x"}},
		"no nonce":                        {claims: map[string]any{"nonce": nil}},
		"a token for another client":      {claims: map[string]any{"aud": "dialai"}},
		"a token that another may use":    {claims: map[string]any{"aud": []string{"desk", "other"}, "azp": "other"}},
		"a token of another issuer":       {claims: map[string]any{"iss": "https://evil.example"}},
		"a token that has expired":        {claims: map[string]any{"exp": noon.Add(-time.Hour).Unix()}},
		"a token of nobody":               {claims: map[string]any{"sub": nil}},
		"no cookie":                       {cookie: func(leaving) string { return "" }},
		"the cookie of another login":     {cookie: func(leaving) string { return other.cookie }},
		"a cookie that is cut":            {cookie: func(l leaving) string { return l.cookie[:len(l.cookie)-1] }},
		"a cookie that was not made here": {cookie: func(leaving) string { return "dialai-login=" + seal.NewKey().Seal("login", []byte("{}")) }},
	} {
		d.fromElsewhere()
		l := d.leaves(i)
		answer := i.logsIn(t, l, c.claims)
		if c.change != nil {
			c.change(answer)
		}
		cookie := l.cookie
		if c.cookie != nil {
			cookie = c.cookie(l)
		}
		if r := d.comesBack(cookie, answer); r.status != 403 || r.code() != "login_refused" || strings.Contains(r.header.Get("Set-Cookie"), "dialai-desk=") {
			t.Errorf("%s: %d %s to %q", name, r.status, r.body, r.header.Get("Location"))
		}
	}
	good := strings.Split(i.token(t, jose.RS256, i.claims(map[string]any{"aud": "desk"})), ".")
	for name, token := range map[string]string{"by no algorithm": "eyJhbGciOiJub25lIn0." + good[1] + ".", "no token": "", "unsigned": good[0] + "." + good[1] + "."} {
		d.fromElsewhere()
		l := d.leaves(i)
		if r := d.comesBack(l.cookie, i.answers(l, token)); r.status != 403 || r.code() != "login_refused" {
			t.Errorf("a token %s: %d %s", name, r.status, r.body)
		}
	}
}

// TestLoginsTakeTenMinutes: an answer counts as long as what the browser keeps does, and if that has
// a state.
func TestLoginsTakeTenMinutes(t *testing.T) {
	d, i, key := loginDesk(t)
	sum := sha256.Sum256([]byte("v"))
	for _, c := range []struct {
		state string
		until time.Duration
		good  bool
	}{{"s", time.Minute, true}, {"s", -time.Second, false}, {"", time.Minute, false}} {
		l := leaving{asked: url.Values{"state": {c.state}, "nonce": {"n"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "redirect_uri": {"http://localhost/"}}}
		kept, err := json.Marshal(map[string]any{"redirect": "http://localhost/", "state": c.state, "nonce": "n", "verifier": "v", "until": time.Now().Add(c.until)})
		if err != nil {
			t.Fatal(err)
		}
		if r := d.comesBack("dialai-login="+key.Seal("login", kept), i.logsIn(t, l, nil)); (ticketOf(r) != "") != c.good {
			t.Errorf("%+v: %d %s", c, r.status, r.body)
		}
	}
}

// fromElsewhere has what follows come from an address that nothing has come from.
func (d *desk) fromElsewhere() { d.from = fmt.Sprintf("2001:db8::%x", rand.Uint32()) }

// TestLoginAnsweredTwice: an answer that comes again signs nobody in, since the issuer takes a code
// once.
func TestLoginAnsweredTwice(t *testing.T) {
	d, i, _ := loginDesk(t)
	l := d.leaves(i)
	answer := i.logsIn(t, l, nil)
	if ticketOf(d.comesBack(l.cookie, answer)) == "" {
		t.Error("it does not come about at first")
	}
	if r := d.comesBack(l.cookie, answer); r.status != 403 {
		t.Errorf("again: %d %s", r.status, r.body)
	}
}

// TestLoginsByIssuer: issuers that say from whom an answer is have to, those that take the secret
// of a client in the body get it there, and one that is down is another thing than a refusal.
func TestLoginsByIssuer(t *testing.T) {
	d, i, _ := loginDesk(t)
	i.saysFrom, i.methods = true, []string{"client_secret_post"}
	l := d.leaves(i)
	if r := d.comesBack(l.cookie, i.logsIn(t, l, nil)); r.status != 403 {
		t.Errorf("an answer that does not say from whom: %d", r.status)
	}
	answer := i.logsIn(t, l, nil)
	answer.Set("iss", i.URL)
	if r := d.comesBack(l.cookie, answer); ticketOf(r) == "" {
		t.Errorf("one that does: %d %s", r.status, r.body)
	}
	i.broken = http.StatusBadGateway
	if r := d.comesBack(l.cookie, answer); r.status != 503 || r.code() != "issuer_unavailable" {
		t.Errorf("while the issuer is down: %d %s", r.status, r.body)
	}
	i.broken = 0
	answer = i.logsIn(t, l, map[string]any{"groups": "none"})
	answer.Set("iss", i.URL)
	if r := d.comesBack(l.cookie, answer); r.status != 403 || r.code() != "forbidden" {
		t.Errorf("who has no role: %d %s", r.status, r.body)
	}
	down := startIDP(t)
	down.down.Store(true)
	o := down.settings()
	o.Client = "desk"
	e := newDesk(t, deskOptions{config: server.Config{Login: &server.Login{OIDC: o, Issuer: issuer.NewLogin(down.URL, "desk", "", down.Client(), nil)}}})
	if r := e.do("", "GET", "/desk/login", ""); r.status != 503 || r.code() != "issuer_unavailable" {
		t.Errorf("at an issuer that is down: %d %s", r.status, r.body)
	}
	for _, path := range []string{"/desk/login", "/desk/login/callback?code=x&state=y"} {
		if r := newDesk(t, deskOptions{}).do("", "GET", path, ""); r.status != 404 {
			t.Errorf("%s without an issuer: %d", path, r.status)
		}
	}
}

// TestLoginsOfAnotherIssuer: what an issuer has said of somebody is worth nothing at a server that
// goes by another, or by none.
func TestLoginsOfAnotherIssuer(t *testing.T) {
	d, i, _ := loginDesk(t)
	l := d.leaves(i)
	p, _ := d.signIn(`{"ticket":"`+ticketOf(d.comesBack(l.cookie, i.logsIn(t, l, nil)))+`"}`, "Cookie", l.cookie)
	var about api.About
	d.wantAs("", 200, "GET", "/v1", "", p.with()...).into(t, &about)
	if about.Caller.Method != "cookie" || cmp.Or(about.Caller.Humans...) != "carol" {
		t.Errorf("they are %+v", about.Caller)
	}
	none := newDesk(t, deskOptions{control: d.control})
	none.wantAs("", 401, "GET", "/v1", "", p.with()...)
	o := i.settings()
	o.Issuer = "https://elsewhere.example"
	elsewhere := newDesk(t, deskOptions{control: d.control, config: server.Config{Login: &server.Login{OIDC: o}}})
	elsewhere.wantAs("", 401, "GET", "/v1", "", p.with()...)
	fewer := i.settings()
	fewer.Roles = []server.OIDCRole{{Claim: "groups", Value: "others", Grant: control.Grant{Role: control.Viewer, Machines: []string{"*"}}}}
	changed := newDesk(t, deskOptions{control: d.control, config: server.Config{Login: &server.Login{OIDC: fewer}}})
	changed.wantAs("", 403, "GET", "/v1", "", p.with()...)
}
