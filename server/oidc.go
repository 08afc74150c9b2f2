package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/issuer"
)

// People whom an issuer of OpenID Connect knows call with the tokens that it gives them. What a
// token may do is in the settings: which value of which claim gives which role with which
// machines. As which human its owner rules is in one claim of it, or in the role. A token without
// such a claim may do nothing. While the issuer cannot be asked for its keys, nobody with a token
// gets in (503, issuer_unavailable).

// An OIDC says whose tokens are taken, and what they are good for.
type OIDC struct {
	Issuer   string // its address, exactly as its tokens have it
	Audience string // what its tokens for this server are made out to; "" takes none from callers
	Client   string // as what it knows this server, where people log in; "" has nobody log in
	Roles    []OIDCRole
	// HumanClaim names the claim with the id of the human as whom the owner of a token rules; ""
	// is none.
	HumanClaim string
}

// An OIDCRole is what a value of a claim is good for. A claim may hold one text or a list of
// them; a dot in its name leads into an object, where no claim has the whole name.
type OIDCRole struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
	// Tenant is that of who has the value; "" means "default". The first of the roles that somebody
	// has says whose they are; those of other tenants are nothing to them.
	Tenant string `json:"tenant,omitempty"`
	control.Grant
}

// Check returns what is wrong, nil if nothing is.
func (o *OIDC) Check() error {
	at, err := url.Parse(o.Issuer)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.RawQuery != "" || at.User != nil:
		return fmt.Errorf("the issuer %q is no address such as https://login.example.com", o.Issuer)
	case at.Scheme == "http" && !loopback(at.Hostname()):
		return fmt.Errorf("the issuer %s is not reached by https: who is in between could let anybody in", o.Issuer)
	case o.Audience == "" && o.Client == "":
		return errors.New("the audience is missing: tokens that are meant for others would be taken")
	case len(o.Roles) == 0:
		return errors.New("oidcRoles is missing: no token could do anything")
	}
	for i, r := range o.Roles {
		if r.Claim == "" || r.Value == "" {
			return fmt.Errorf("oidcRoles %d: claim and value are needed", i+1)
		}
		if grant := r.grant("somebody"); o.HumanClaim == "" {
			err = r.Grant.Check()
		} else {
			err = grant.Check()
		}
		if err != nil {
			return fmt.Errorf("oidcRoles %d: %w", i+1, err)
		}
	}
	return nil
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// grant returns what the role grants to a human; "" is none in particular.
func (r *OIDCRole) grant(human string) control.Grant {
	g := r.Grant
	if human != "" && (g.Role == control.Human || g.Role == control.Admin) && !slices.Contains(g.Humans, human) {
		g.Humans = append(slices.Clip(g.Humans), human)
	}
	return g
}

// TokenVerifier verifies tokens, as package internal/issuer does: the subject of one and all that
// it says. The error is issuer.ErrToken, or wraps issuer.ErrUnavailable.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (subject string, claims map[string]any, err error)
}

// Issued returns who has a token of an issuer. The error is that of Check.
func Issued(o OIDC, tokens TokenVerifier) (Authenticator, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return authenticatorFunc(func(ctx context.Context, credential string) (*Principal, error) {
		subject, claims, err := tokens.Verify(ctx, credential)
		switch {
		case errors.Is(err, issuer.ErrUnavailable):
			return nil, issuerUnavailable()
		case err != nil:
			return nil, ErrUnauthenticated
		}
		return o.principal(subject, claims), nil
	}), nil
}

// issuerUnavailable is the refusal of who is known only to an issuer that cannot be asked.
func issuerUnavailable() *api.Error {
	return &api.Error{Status: http.StatusServiceUnavailable, Code: "issuer_unavailable", Detail: issuer.ErrUnavailable.Error(), Hint: "try again; a key of dialai keys works all the same", Retryable: true, ExitCode: 1}
}

// principal returns whom a token stands for.
func (o *OIDC) principal(subject string, claims map[string]any) *Principal {
	name, _ := claims["name"].(string) // of OpenID Connect Core 1.0, 5.1; that it is one they may choose does no harm
	p := &Principal{Subject: "oidc:" + o.Issuer + "#" + subject, Name: name, Method: "oidc"}
	human, _ := claimOf(claims, o.HumanClaim).(string)
	for _, r := range o.Roles {
		if tenant := cmp.Or(r.Tenant, defaultTenant); has(claimOf(claims, r.Claim), r.Value) && tenant == cmp.Or(p.Tenant, tenant) {
			p.Tenant, p.Grants = tenant, append(p.Grants, r.grant(human))
		}
	}
	p.Tenant = cmp.Or(p.Tenant, defaultTenant)
	return p
}

// claimOf returns a claim; nil if there is none.
func claimOf(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok || name == "" {
		return v
	}
	head, rest, deeper := strings.Cut(name, ".")
	inner, ok := claims[head].(map[string]any)
	if !deeper || !ok {
		return nil
	}
	return claimOf(inner, rest)
}

// has reports whether a claim is a text, or has it in its list.
func has(claim any, text string) bool {
	if list, ok := claim.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return one == any(text) })
	}
	return claim == any(text)
}

// A protectedResource says where tokens for this server come from, as RFC 9728 has it.
type protectedResource struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Servers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
}

const resourcePath = "/.well-known/oauth-protected-resource"

// describeResource answers which issuer's tokens are taken, for the API and for /mcp.
func (s *Server) describeResource(w http.ResponseWriter, r *http.Request) {
	if s.config.Issuer == "" {
		writeProblem(w, r, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "tokens of an issuer are not taken here", Hint: "keys are, see dialai keys"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	marshal(w, protectedResource{Resource: s.base(r) + strings.TrimPrefix(r.URL.Path, resourcePath), Name: "dialai", Servers: []string{s.config.Issuer}, Methods: []string{"header"}})
}

// base is the address under which a request has reached the server.
func (s *Server) base(r *http.Request) string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	scheme := "http"
	if s.secure(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// challenge is what a request without a credential that is known is answered with.
func (s *Server) challenge(r *http.Request) string {
	if s.config.Issuer == "" {
		return `Bearer realm="dialai"`
	}
	path := resourcePath
	if r.URL.Path == "/mcp" {
		path += "/mcp"
	}
	return fmt.Sprintf(`Bearer realm="dialai", resource_metadata=%q`, s.base(r)+path)
}
