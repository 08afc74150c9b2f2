package server_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/issuer"
	"github.com/dialai/dialai/server"
)

// An idp is an issuer on loopback, with keys of several kinds.
type idp struct {
	*httptest.Server
	keys  map[jose.SignatureAlgorithm]crypto.Signer
	asked atomic.Int64
	down  atomic.Bool
	logins
}

func startIDP(t *testing.T) *idp {
	t.Helper()
	i := &idp{keys: map[jose.SignatureAlgorithm]crypto.Signer{}}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.keys[jose.RS256], i.keys[jose.PS256] = rsaKey, rsaKey
	if i.keys[jose.ES256], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	_, i.keys[jose.EdDSA], _ = ed25519.GenerateKey(rand.Reader)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if i.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/.well-known/openid-configuration" {
			json.NewEncoder(w).Encode(i.describe(i.URL))
			return
		}
		if r.URL.Path == "/token" {
			i.exchange(w, r)
			return
		}
		var set jose.JSONWebKeySet
		for alg, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: string(alg), Algorithm: string(alg), Use: "sig"})
		}
		json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(i.Close)
	return i
}

// token signs claims, as an algorithm has it.
func (i *idp) token(t *testing.T, alg jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	return signedBy(t, alg, jose.JSONWebKey{Key: i.keys[alg], KeyID: string(alg)}, claims)
}

func signedBy(t *testing.T, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	signature, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := signature.CompactSerialize()
	return text
}

// noon is when the tests of tokens are.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// claims are those of a good token; change says otherwise, nil leaves one out.
func (i *idp) claims(change map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "sub": "u-17", "aud": []string{"dialai", "other"}, "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "groups": []string{"staff", "finance"}, "employee": "carol"}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (i *idp) settings() server.OIDC {
	return server.OIDC{Issuer: i.URL, Audience: "dialai", HumanClaim: "employee", Roles: []server.OIDCRole{
		{Claim: "groups", Value: "finance", Grant: control.Grant{Role: control.Human, Machines: []string{"expense-*"}}},
		{Claim: "realm_access.roles", Value: "ops", Grant: control.Grant{Role: control.Operator, Machines: []string{"*"}}},
	}}
}

func issued(t *testing.T, i *idp, o server.OIDC) server.Authenticator {
	t.Helper()
	a, err := server.Issued(o, issuer.New(o.Issuer, o.Audience, i.Client(), func() time.Time { return noon }))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTokensOfAnIssuer(t *testing.T) {
	i := startIDP(t)
	a := issued(t, i, i.settings())
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		p, err := a.Authenticate(t.Context(), i.token(t, alg, i.claims(nil)))
		if err != nil || p.Subject != "oidc:"+i.URL+"#u-17" || p.Method != "oidc" || len(p.Grants) != 1 || !slices.Equal(p.Grants[0].Humans, []string{"carol"}) || p.Grants[0].Role != control.Human {
			t.Errorf("%s: %+v, %v", alg, p, err)
		}
	}
	if n := i.asked.Load(); n != 2 {
		t.Errorf("the issuer was asked %d times; once for its addresses and once for its keys will do", n)
	}
	p, err := a.Authenticate(t.Context(), i.token(t, jose.ES256, i.claims(map[string]any{"groups": "none", "realm_access": map[string]any{"roles": []string{"ops"}}})))
	if err != nil || len(p.Grants) != 1 || p.Grants[0].Role != control.Operator || len(p.Grants[0].Humans) != 0 {
		t.Errorf("a claim within an object: %+v, %v", p, err)
	}
	if p, err := a.Authenticate(t.Context(), i.token(t, jose.ES256, i.claims(map[string]any{"groups": nil}))); err != nil || len(p.Grants) != 0 {
		t.Errorf("without a claim that is worth something: %+v, %v", p, err)
	}
}

func TestTokensThatAreNotGood(t *testing.T) {
	i := startIDP(t)
	a := issued(t, i, i.settings())
	other, _ := rsa.GenerateKey(rand.Reader, 2048)
	public, _ := json.Marshal(jose.JSONWebKey{Key: i.keys[jose.RS256].Public()})
	good := i.token(t, jose.RS256, i.claims(nil))
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	for name, token := range map[string]string{
		"of another issuer":       i.token(t, jose.RS256, i.claims(map[string]any{"iss": "https://elsewhere.example.com"})),
		"for another server":      i.token(t, jose.RS256, i.claims(map[string]any{"aud": "other"})),
		"expired":                 i.token(t, jose.RS256, i.claims(map[string]any{"exp": at(-61 * time.Second)})),
		"without an end":          i.token(t, jose.RS256, i.claims(map[string]any{"exp": nil})),
		"not yet":                 i.token(t, jose.RS256, i.claims(map[string]any{"nbf": at(61 * time.Second)})),
		"made later":              i.token(t, jose.RS256, i.claims(map[string]any{"iat": at(61 * time.Second)})),
		"of nobody":               i.token(t, jose.RS256, i.claims(map[string]any{"sub": nil})),
		"by another key":          signedBy(t, jose.RS256, jose.JSONWebKey{Key: other, KeyID: "RS256"}, i.claims(nil)),
		"by the public key":       signedBy(t, jose.HS256, jose.JSONWebKey{Key: public, KeyID: "RS256"}, i.claims(nil)),
		"by no algorithm":         "eyJhbGciOiJub25lIn0." + strings.Split(good, ".")[1] + ".",
		"changed":                 strings.Replace(good, ".", ".e30.", 1)[:len(good)],
		"no token":                "a.b.c",
		"a key of another server": "dk_0123456789ab",
		"very long":               strings.Repeat("a", 20<<10) + ".b.c",
	} {
		if p, err := a.Authenticate(t.Context(), token); !errors.Is(err, server.ErrUnauthenticated) {
			t.Errorf("a token %s: %+v, %v", name, p, err)
		}
	}
	for name, change := range map[string]map[string]any{
		"that has just expired": {"exp": at(-59 * time.Second)},
		"that is about to hold": {"nbf": at(59 * time.Second), "iat": at(59 * time.Second)},
	} {
		if _, err := a.Authenticate(t.Context(), i.token(t, jose.RS256, i.claims(change))); err != nil {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}

func TestAnIssuerThatIsDownLetsNobodyIn(t *testing.T) {
	i := startIDP(t)
	now := noon
	a, err := server.Issued(i.settings(), issuer.New(i.URL, "dialai", i.Client(), func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	i.down.Store(true)
	token := i.token(t, jose.ES256, i.claims(nil))
	for range 3 {
		var problem *api.Error
		if p, err := a.Authenticate(t.Context(), token); !errors.As(err, &problem) || problem.Code != "issuer_unavailable" || problem.Status != 503 {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times at once", n)
	}
	i.down.Store(false)
	now = now.Add(6 * time.Second)
	if _, err := a.Authenticate(t.Context(), token); err != nil {
		t.Errorf("once it is there again: %v", err)
	}
}

func TestSettingsOfAnIssuer(t *testing.T) {
	good := server.OIDC{Issuer: "https://login.example.com", Audience: "dialai", HumanClaim: "employee", Roles: []server.OIDCRole{{Claim: "groups", Value: "finance", Grant: control.Grant{Role: control.Human, Machines: []string{"*"}}}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*server.OIDC){
		"no address":      func(o *server.OIDC) { o.Issuer = "login" },
		"https":           func(o *server.OIDC) { o.Issuer = "http://login.example.com" },
		"audience":        func(o *server.OIDC) { o.Audience = "" },
		"oidcRoles":       func(o *server.OIDC) { o.Roles = nil },
		"claim and value": func(o *server.OIDC) { o.Roles = []server.OIDCRole{{Claim: "groups"}} },
		"may rule as":     func(o *server.OIDC) { o.HumanClaim = "" },
		"role": func(o *server.OIDC) {
			o.Roles = []server.OIDCRole{{Claim: "a", Value: "b", Grant: control.Grant{Role: "boss", Machines: []string{"*"}}}}
		},
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAHumanWithATokenRules: the owner of a token rules as the human that it names, where that is
// one who decides, and nowhere else; the log says by whom and how that is known.
func TestAHumanWithATokenRules(t *testing.T) {
	i := startIDP(t)
	d := newDesk(t, deskOptions{config: server.Config{Who: issued(t, i, i.settings()), Issuer: i.URL, PublicURL: "https://dialai.example"}, drives: true})
	carol, erin := i.token(t, jose.ES256, i.claims(nil)), i.token(t, jose.ES256, i.claims(map[string]any{"employee": "erin"}))
	for machine, status := range map[string]int{strings.Replace(reviewed, "claims", "expense-claims", 1): 200, strings.Replace(reviewed, "claims", "claims-of-others", 1): 404} {
		s := d.start(machine)
		at := "/v1/sessions/" + s.SessionID
		d.wantAs(erin, map[int]int{200: 403, 404: 404}[status], "POST", at+"/decisions", ruling(s, "pay", "erin"))
		d.wantAs(erin, map[int]int{200: 403, 404: 404}[status], "POST", at+"/decisions", ruling(s, "pay", "carol"))
		d.wantAs(carol, status, "POST", at+"/decisions", ruling(s, "pay", "carol"))
		if status != 200 {
			continue
		}
		if events := d.want(200, "GET", at+"/events?kinds=executed", ""); !strings.Contains(string(events.body), `"subject":"oidc:`+i.URL+`#u-17","method":"oidc"`) {
			t.Errorf("the log has %s", events.body)
		}
	}
	for path, resource := range map[string]string{"/v1": "", "/mcp": "/mcp"} {
		r := d.do("x.y.z", "GET", path, "")
		if want := `resource_metadata="https://dialai.example/.well-known/oauth-protected-resource` + resource + `"`; path == "/v1" && (r.status != 401 || !strings.Contains(r.header.Get("WWW-Authenticate"), want)) {
			t.Errorf("%s without a token: %d, %s", path, r.status, r.header.Get("WWW-Authenticate"))
		}
		r = d.do("", "GET", "/.well-known/oauth-protected-resource"+resource, "")
		if want := `{"resource":"https://dialai.example` + resource + `","resource_name":"dialai","authorization_servers":["` + i.URL + `"],"bearer_methods_supported":["header"]}`; r.status != 200 || strings.TrimSpace(string(r.body)) != want {
			t.Errorf("about %q: %d %s", resource, r.status, r.body)
		}
	}
	if r := newDesk(t, deskOptions{}).do("", "GET", "/.well-known/oauth-protected-resource", ""); r.status != 404 {
		t.Errorf("without an issuer: %d", r.status)
	}
}

// TestTenantOfTokens: the first role that somebody has says whose they are, and roles of other
// tenants are nothing to them.
func TestTenantOfTokens(t *testing.T) {
	i := startIDP(t)
	o := i.settings()
	o.Roles = []server.OIDCRole{
		{Claim: "groups", Value: "finance", Tenant: "acme", Grant: control.Grant{Role: control.Viewer, Machines: []string{"expense-*"}}},
		{Claim: "groups", Value: "staff", Tenant: "beta", Grant: control.Grant{Role: control.Admin, Machines: []string{"*"}}},
	}
	who := issued(t, i, o)
	for groups, want := range map[string]string{"finance staff": "acme viewer", "staff": "beta admin", "none": "default "} {
		p, err := who.Authenticate(t.Context(), i.token(t, jose.RS256, i.claims(map[string]any{"groups": strings.Fields(groups)})))
		if err != nil {
			t.Fatal(err)
		}
		got := p.Tenant + " "
		for _, g := range p.Grants {
			got += string(g.Role)
		}
		if got != want || p.Installation {
			t.Errorf("who is in %s is %q, want %q", groups, got, want)
		}
	}
}
