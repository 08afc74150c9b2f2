package issuer

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Somebody logs in with a browser: it is sent to the issuer and comes back with a code, which this
// server changes for a token that says who it is (OpenID Connect, code flow). The answer counts if
// it belongs to what this browser was sent with (state), the code was asked for by who has the
// verifier of it (PKCE, S256), the token was made for this login (nonce) and for this client, and
// the answer comes from this issuer (iss, RFC 9207), where it says from whom. A code is sent once.

// ErrLogin is wrapped where a login has not come about.
var ErrLogin = errors.New("nobody has logged in")

// exchangeTime is how long the issuer may take to change a code for a token.
const exchangeTime = 10 * time.Second

// A Login has people log in at an issuer. It may be used concurrently.
type Login struct {
	tokens     *Verifier // of tokens that are made out to the client
	id, secret string
}

// NewLogin returns a Login as a client that the issuer knows by an id, and a secret if it is not
// "". It asks the issuer through client. now is the clock; nil means time.Now.
func NewLogin(issuer, id, secret string, client *http.Client, now func() time.Time) *Login {
	return &Login{New(issuer, id, client, now), id, secret}
}

// An Attempt is one time that somebody logs in. Nobody but their browser and this server may know it.
type Attempt struct {
	Redirect string `json:"redirect"` // where the browser comes back to
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// NewAttempt returns an attempt of somebody who is to come back to an address.
func NewAttempt(redirect string) Attempt {
	return Attempt{redirect, rand.Text(), rand.Text(), oauth2.GenerateVerifier()}
}

// Address returns where a browser goes to log in. The error wraps ErrUnavailable.
func (l *Login) Address(a Attempt) (string, error) {
	provider, err := l.tokens.asked()
	if err != nil {
		return "", err
	}
	return l.config(provider, a).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// described is what an issuer says of itself beside its addresses.
type described struct {
	SaysIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	Methods    []string `json:"token_endpoint_auth_methods_supported"`
}

// config says how the issuer is asked. How the client shows its secret is never tried out: a code
// would be sent twice.
func (l *Login) config(provider *oidc.Provider, a Attempt) *oauth2.Config {
	var says described
	_ = provider.Claims(&says) // what it does not say goes without
	c := &oauth2.Config{ClientID: l.id, ClientSecret: l.secret, Endpoint: provider.Endpoint(), RedirectURL: a.Redirect, Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if l.secret == "" || slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c
}

// Finish returns who has logged in (sub) and all that the issuer says of them, from what a browser
// has come back with. The error wraps ErrLogin or ErrUnavailable.
func (l *Login) Finish(ctx context.Context, a Attempt, answer url.Values) (subject string, claims map[string]any, err error) {
	provider, err := l.tokens.asked()
	if err != nil {
		return "", nil, err
	}
	if err := l.check(provider, a, answer); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, l.tokens.client), exchangeTime)
	defer cancel()
	got, err := l.config(provider, a).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < http.StatusInternalServerError {
		return "", nil, fmt.Errorf("%w: the issuer does not take the code", ErrLogin)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	token, _ := got.Extra("id_token").(string)
	subject, claims, err = l.tokens.Verify(ctx, token)
	nonce, _ := claims["nonce"].(string)
	party, others := claims["azp"]
	switch {
	case errors.Is(err, ErrUnavailable):
		return "", nil, err
	case err != nil:
		return "", nil, fmt.Errorf("%w: %w", ErrLogin, err)
	case !same(nonce, a.Nonce), others && party != any(l.id):
		return "", nil, fmt.Errorf("%w: the token is of another login", ErrLogin)
	}
	return subject, claims, nil
}

// check returns why an answer is not one to an attempt that has come about.
func (l *Login) check(provider *oidc.Provider, a Attempt, answer url.Values) error {
	var says described
	_ = provider.Claims(&says)
	switch {
	case !same(answer.Get("state"), a.State):
		return fmt.Errorf("%w: the answer is to another request (state)", ErrLogin)
	case (says.SaysIssuer || answer.Has("iss")) && answer.Get("iss") != l.tokens.issuer:
		return fmt.Errorf("%w: the answer is of another issuer (iss)", ErrLogin)
	case answer.Has("error"):
		return fmt.Errorf("%w: the issuer answers %.40q", ErrLogin, answer.Get("error"))
	case answer.Get("code") == "":
		return fmt.Errorf("%w: the answer has no code", ErrLogin)
	}
	return nil
}

// same reports whether a text is a secret. How long it takes says nothing about it.
func same(text, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(text), []byte(secret)) == 1
}
