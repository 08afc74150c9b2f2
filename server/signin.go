package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/specialist"
)

// Signing in at a page. In exchange for a credential a browser gets a cookie, which no script
// reads, and a token, which the page keeps and sends along. One is worth nothing without the
// other: cookies know no port, so whoever listens at another port of the same computer is sent
// the desk's and may foist their own on it, but what a page keeps they cannot read or write.
//
// Both are random. Whom they stand for is in the control store, under a hash of the cookie and
// sealed with the two of them. So every process on that store knows a sign-in, nobody does once it
// is ended, and whoever reads the store can use none. A cookie that is itself the sealed credential
// would need a list of those that were ended, and open to whoever has the key of the server.
//
// With each request the credential is looked at anew: where it is revoked or has expired, what was
// begun with it is over, streams within the 5 seconds after which they ask. What an issuer has said
// of somebody holds for as long as the sign-in. A sign-in is over 8 hours after it began, or 30
// minutes after the last request; a stream that begins again by itself is no sign of life.
//
// A ticket is for one sign-in within a minute: it is forgotten in the commit that begins that. It
// is made with a credential, and not with a sign-in, which would never have to end.
//
// In the log the method of who is signed in is "cookie", but where everybody who can call is the
// same person: there the method goes on saying that it proves nothing (local, none).

const (
	signInLife = 8 * time.Hour
	signInIdle = 30 * time.Minute
	signInSeen = time.Minute // how exactly it is known when one was used last
	ticketLife = time.Minute
	deskHeader = "Dialai-Desk"
	maxCookies = 4 // of the desk's name that are looked at: those of other ports may come along
	deskCookie = "dialai-desk"

	sessionPath = "/desk/session"

	methodCookie  = "cookie"
	signInPurpose = "sign-in"
	ticketPurpose = "ticket"
)

// An identity is for whom a sign-in or a ticket is: who has a credential, or whom an issuer has named.
type identity struct {
	Credential string         `json:"credential,omitempty"`
	Issuer     string         `json:"issuer,omitempty"`
	Subject    string         `json:"subject,omitempty"`
	Claims     map[string]any `json:"claims,omitempty"`
}

// identified returns who that is, as of now.
func (s *Server) identified(ctx context.Context, i *identity) (*Principal, error) {
	if i.Issuer == "" {
		return s.config.Who.Authenticate(ctx, i.Credential)
	}
	if l := s.config.Login; l != nil && l.OIDC.Issuer == i.Issuer {
		return l.OIDC.principal(i.Subject, i.Claims), nil
	}
	return nil, ErrUnauthenticated
}

// A proof is what a request says of who sends it: a credential, or cookies and the token that
// belongs to one of them.
type proof struct {
	credential string
	cookies    []string
	token      string
}

func (s *Server) proofOf(r *http.Request) proof {
	p := proof{credential: bearer(r), token: r.Header.Get(deskHeader)}
	if p.token == "" || r.Header.Get("Authorization") != "" {
		return p
	}
	for _, c := range r.CookiesNamed(s.cookieName(r, deskCookie)) {
		if len(p.cookies) < maxCookies {
			p.cookies = append(p.cookies, c.Value)
		}
	}
	return p
}

// authenticate returns who proves who they are; ErrUnauthenticated is nobody.
func (s *Server) authenticate(ctx context.Context, sent proof) (p *Principal, err error) {
	for _, cookie := range sent.cookies {
		if p, err = s.signedIn(ctx, cookie, sent.token); !errors.Is(err, ErrUnauthenticated) {
			break
		}
	}
	if p == nil && (err == nil || errors.Is(err, ErrUnauthenticated)) {
		p, err = s.config.Who.Authenticate(ctx, sent.credential)
	}
	if err != nil {
		return nil, err
	}
	p.sent = sent
	return p, nil
}

// signedIn returns who has signed in with a cookie and a token.
func (s *Server) signedIn(ctx context.Context, cookie, token string) (*Principal, error) {
	at, i, err := s.unsealed(ctx, signInPurpose, cookie, token)
	if err != nil {
		return nil, err
	}
	if s.now() >= at.SeenAt+msec(signInIdle) {
		return nil, ErrUnauthenticated
	}
	p, err := s.identified(ctx, i)
	if err != nil {
		return nil, err
	}
	if p.signIn = at; !p.Anybody {
		p.Method = methodCookie
	}
	return p, nil
}

// unsealed returns a sign-in or a ticket that is not over, and for whom it is.
func (s *Server) unsealed(ctx context.Context, purpose, secret, token string) (*control.SignIn, *identity, error) {
	at, err := s.config.Control.SignIn(ctx, idOf(secret))
	if errors.Is(err, control.ErrNotFound) || err == nil && s.now() >= at.ExpiresAt {
		return nil, nil, ErrUnauthenticated
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := sealOf(secret, token).Open(purpose, at.Sealed)
	var i identity
	if err != nil || json.Unmarshal(text, &i) != nil {
		return nil, nil, ErrUnauthenticated
	}
	return &at, &i, nil
}

// sealed returns a sign-in or a ticket for somebody that is good for some time.
func (s *Server) sealed(purpose, secret, token string, i *identity, life time.Duration) (*control.SignIn, error) {
	text, err := json.Marshal(i)
	now := s.now()
	return &control.SignIn{ID: idOf(secret), Sealed: sealOf(secret, token).Seal(purpose, text), SeenAt: now, ExpiresAt: now + msec(life)}, err
}

// idOf returns under what a secret is kept, and sealOf what seals what is kept there. Neither
// tells the other.
func idOf(secret string) control.Hash { return control.HashOf("id of " + secret) }

func sealOf(secret, token string) seal.Key {
	return seal.Key(control.HashOf("seal of " + secret + " and " + token))
}

// newSecret returns 256 random bits.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func msec(d time.Duration) specialist.Time { return specialist.Time(d.Milliseconds()) }

// noteUse keeps that a sign-in is used. Where that cannot be written it ends sooner.
func (s *Server) noteUse(r *http.Request, p *Principal) {
	now := s.now()
	if p.signIn == nil || now < p.signIn.SeenAt+msec(signInSeen) || strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return
	}
	if err := s.config.Control.Commit(r.Context(), control.Changes{Seen: &control.SignInTime{ID: p.signIn.ID, At: now}}); err != nil {
		s.config.Log.Error("the use of a sign-in is not recorded", "id", requestID(r.Context()), "error", err)
	}
}

// cookieName returns the name of a cookie. Browsers take one with the prefix __Host- from nobody
// but this very host, and over TLS. Without TLS, which is for this computer's own address, Chromium
// takes one too, and Safari takes none that is Secure: there it has neither, so that all can sign in.
func (s *Server) cookieName(r *http.Request, name string) string {
	if s.secure(r) {
		return "__Host-" + name
	}
	return name
}

// secure reports whether a browser has sent a request over TLS, at least to a proxy.
func (s *Server) secure(r *http.Request) bool {
	return r.TLS != nil || len(s.config.Proxies) > 0 || overSocket(r) && strings.HasPrefix(s.config.PublicURL, "https:")
}

// setCookie sets a cookie that no script reads; a life of 0 ends it.
func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration, site http.SameSite) {
	c := &http.Cookie{Name: s.cookieName(r, name), Value: value, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: site, MaxAge: int(life.Seconds())}
	if life == 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// A signingIn is what a page sends to sign in: one of both.
type signingIn struct {
	Key    string `json:"key"`
	Ticket string `json:"ticket"`
}

// A signedInAs is what it is told.
type signedInAs struct {
	Token     string          `json:"token"` // to be sent in the header Dialai-Desk, and kept from others
	Subject   string          `json:"subject"`
	ExpiresAt specialist.Time `json:"expiresAt"`
	IdleMsec  int64           `json:"idleMsec"`
}

// signIn has a browser signed in from now on.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if wait := s.limits.login(r); wait > 0 {
		s.limitMet(r, wait, "login")
		writeProblem(w, r, tooMany(w, wait))
		return
	}
	in, problem := readSignIn(r)
	if problem != nil {
		writeProblem(w, r, problem)
		return
	}
	i, p, changes, err := s.takenUp(r, in)
	token, cookie := newSecret(), newSecret()
	if err == nil {
		changes.SignIn, err = s.sealed(signInPurpose, cookie, token, i, signInLife)
	}
	if err == nil {
		changes.Entries = []control.Entry{s.done(r, p, http.StatusOK)}
		err = s.config.Control.Commit(r.Context(), changes)
	}
	switch {
	case errors.Is(err, control.ErrNotFound), errors.Is(err, ErrUnauthenticated): // somebody else has used the ticket
		s.noteRefused(r)
		s.config.Metrics.AuthFailed(r.Context(), true)
		writeProblem(w, r, &api.Error{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "nobody is known by that", Hint: "a ticket is good for one minute, and once; dialai keys makes keys", ExitCode: 1})
		return
	case err != nil:
		writeProblem(w, r, s.problem(r.Context(), err))
		return
	}
	s.setCookie(w, r, deskCookie, cookie, signInLife, http.SameSiteStrictMode)
	s.setCookie(w, r, loginCookie, "", 0, http.SameSiteLaxMode)
	w.Header().Set("Content-Type", "application/json")
	_ = marshal(w, signedInAs{token, p.Subject, changes.SignIn.ExpiresAt, signInIdle.Milliseconds()}) // whoever has gone does not read it
}

// readSignIn reads what a page of this very origin sends.
func readSignIn(r *http.Request) (in signingIn, problem *api.Error) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return in, &api.Error{Status: http.StatusForbidden, Code: "cross_origin", Detail: "a page of another origin may not do this", Hint: "pages elsewhere call with a key", ExitCode: 1}
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return in, &api.Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "the body is no application/json", ExitCode: 2}
	}
	body, problem := readBody(r)
	if problem != nil {
		return in, problem
	}
	tidy, err := jsontext.Tidy(body)
	dec := json.NewDecoder(bytes.NewReader(tidy))
	dec.DisallowUnknownFields()
	if err != nil || dec.Decode(&in) != nil || (in.Key == "") == (in.Ticket == "") {
		return in, bad("bad_request", "the body is no object with a key or a ticket")
	}
	return in, nil
}

// takenUp returns who signs in, and what is to be changed besides: a ticket is used up.
func (s *Server) takenUp(r *http.Request, in signingIn) (i *identity, p *Principal, changes control.Changes, err error) {
	if i = (&identity{Credential: in.Key}); in.Ticket != "" {
		var at *control.SignIn
		if at, i, err = s.ticket(r, in.Ticket); err != nil {
			return nil, nil, changes, err
		}
		changes.SignOut = &at.ID
	}
	p, err = s.identified(r.Context(), i)
	return i, p, changes, err
}

// ticket returns a ticket: one that any browser may use, or one of a login that this one has begun.
func (s *Server) ticket(r *http.Request, secret string) (at *control.SignIn, i *identity, err error) {
	for _, browser := range []string{"", s.loginOf(r)} {
		if at, i, err = s.unsealed(r.Context(), ticketPurpose, secret, browser); err == nil {
			break
		}
	}
	return at, i, err
}

// done is what the audit log says of a request that is about a sign-in.
func (s *Server) done(r *http.Request, p *Principal, status int) control.Entry {
	e := s.entry(s.mux, r, p, nil)
	e.Tenant, e.Result = cmp.Or(e.Tenant, s.home), http.StatusText(status)
	return e
}

// signOut ends a sign-in.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	p := callerOf(r.Context())
	if p.signIn == nil {
		writeProblem(w, r, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "nobody is signed in", Hint: "a key is revoked by dialai keys revoke", ExitCode: 1})
		return
	}
	err := s.config.Control.Commit(r.Context(), control.Changes{SignOut: &p.signIn.ID, Entries: []control.Entry{s.done(r, p, http.StatusNoContent)}})
	if err != nil && !errors.Is(err, control.ErrNotFound) { // it was ended meanwhile
		writeProblem(w, r, s.problem(r.Context(), err))
		return
	}
	s.setCookie(w, r, deskCookie, "", 0, http.SameSiteStrictMode)
	w.WriteHeader(http.StatusNoContent)
}

type createTicketIn struct{ Body api.NewTicket }

type ticketOut struct{ Body api.Ticket }

// createTicket makes a ticket for who has a credential.
func (s *Server) createTicket(ctx context.Context, p *Principal, _ *createTicketIn) (*ticketOut, error) {
	if p.signIn != nil {
		return nil, forbidden("forbidden", "send a key", "who is signed in at a page makes no tickets")
	}
	secret, at, err := s.newTicket(p.sent.credential)
	if err != nil {
		return nil, err
	}
	out := &ticketOut{api.Ticket{ExpiresAt: at.ExpiresAt}}
	if err := s.shownOnce(ctx, control.Changes{SignIn: at}, http.StatusCreated, "", out.Body); err != nil {
		return nil, err
	}
	out.Body.Ticket = secret
	return out, nil
}

func (s *Server) newTicket(credential string) (secret string, at *control.SignIn, err error) {
	secret = newSecret()
	at, err = s.sealed(ticketPurpose, secret, "", &identity{Credential: credential}, ticketLife)
	return secret, at, err
}

// Ticket returns a ticket for who has a credential, with which a page signs in as them: once, and
// within a minute. It is in the audit log. The error is [ErrUnauthenticated], or that of the store.
func (s *Server) Ticket(ctx context.Context, credential string) (string, error) {
	p, err := s.config.Who.Authenticate(ctx, credential)
	if err != nil {
		return "", err
	}
	secret, at, err := s.newTicket(credential)
	if err != nil {
		return "", err
	}
	made := control.Entry{At: s.now(), Tenant: cmp.Or(p.Tenant, s.home), Subject: p.Subject, KeyID: p.KeyID, Method: p.Method, Operation: "ticket", Result: http.StatusText(http.StatusCreated)}
	return secret, s.config.Control.Commit(ctx, control.Changes{SignIn: at, Entries: []control.Entry{made}})
}
