package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/issuer"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/specialist"
)

// Logging in at an issuer, with a browser. GET /desk/login sends it there, with a cookie that has,
// sealed, what its answer must fit; nothing is kept here. It comes back with a code to GET
// /desk/login/callback. Package issuer says what the answer must be like. Who has logged in gets a
// ticket, in the fragment of the address of the page, which no server is sent and no log has. The
// page signs in with it, as with any other; but only the browser that has begun the login can: a
// link with the ticket of somebody else signs nobody in.

// A Login has people log in at an issuer.
type Login struct {
	OIDC   OIDC // what they are then good for
	Issuer *issuer.Login
	Key    seal.Key // of all processes that a browser may reach
}

const (
	loginCookie   = "dialai-login"
	loginPurpose  = "login"
	loginLife     = 10 * time.Minute
	callbackLogin = "/desk/login/callback"
)

// A loggingIn is what the browser of somebody who logs in keeps for the server.
type loggingIn struct {
	issuer.Attempt
	Until specialist.Time `json:"until"`
}

// beginLogin sends a browser to the issuer.
func (s *Server) beginLogin(w http.ResponseWriter, r *http.Request) {
	l := s.config.Login
	if l == nil {
		writeProblem(w, r, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "nobody logs in at an issuer here", Hint: "--oidc-client of dialai serve has them; a key signs in, too", ExitCode: 1})
		return
	}
	if wait := s.limits.stranger(r); wait > 0 {
		s.limitMet(r, wait, "stranger")
		writeProblem(w, r, tooMany(w, wait))
		return
	}
	a := loggingIn{issuer.NewAttempt(s.base(r) + callbackLogin), s.now() + msec(loginLife)}
	text, err := json.Marshal(a)
	var address string
	if err == nil {
		address, err = l.Issuer.Address(a.Attempt)
	}
	if err != nil {
		writeProblem(w, r, s.loginProblem(r, err))
		return
	}
	s.setCookie(w, r, loginCookie, l.Key.Seal(loginPurpose, text), loginLife, http.SameSiteLaxMode)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// loginOf returns the cookie of a login that a browser has begun, "" if there is none.
func (s *Server) loginOf(r *http.Request) string {
	c, err := r.Cookie(s.cookieName(r, loginCookie))
	if err != nil {
		return ""
	}
	return c.Value
}

// endLogin takes what a browser has come back with, and sends it to the page with a ticket.
func (s *Server) endLogin(w http.ResponseWriter, r *http.Request) {
	l := s.config.Login
	if l == nil {
		s.beginLogin(w, r) // which says so
		return
	}
	if wait := s.limits.login(r); wait > 0 {
		s.limitMet(r, wait, "login")
		writeProblem(w, r, tooMany(w, wait))
		return
	}
	browser := s.loginOf(r)
	text, err := l.Key.Open(loginPurpose, browser)
	var a loggingIn
	if err != nil || json.Unmarshal(text, &a) != nil || s.now() >= a.Until {
		err = issuer.ErrLogin
	}
	var subject string
	var claims map[string]any
	if err == nil {
		subject, claims, err = l.Issuer.Finish(r.Context(), a.Attempt, r.URL.Query())
	}
	if err != nil {
		writeProblem(w, r, s.loginProblem(r, err))
		return
	}
	p := l.OIDC.principal(subject, claims)
	if len(p.Grants) == 0 {
		writeProblem(w, r, forbidden("forbidden", "oidcRoles of the settings say what claims are good for", "%s has logged in, and no role here", p.Subject))
		return
	}
	secret := newSecret()
	at, err := s.sealed(ticketPurpose, secret, browser, &identity{Issuer: l.OIDC.Issuer, Subject: subject, Claims: claims}, ticketLife)
	if err == nil {
		err = s.config.Control.Commit(r.Context(), control.Changes{SignIn: at, Entries: []control.Entry{s.done(r, p, http.StatusSeeOther)}})
	}
	if err != nil {
		writeProblem(w, r, s.problem(r.Context(), err))
		return
	}
	http.Redirect(w, r, "/desk/#t="+secret, http.StatusSeeOther)
}

// loginProblem says why nobody has logged in.
func (s *Server) loginProblem(r *http.Request, err error) *api.Error {
	switch {
	case errors.Is(err, issuer.ErrUnavailable):
		return issuerUnavailable()
	case errors.Is(err, issuer.ErrLogin):
		s.noteRefused(r)
		s.config.Metrics.AuthFailed(r.Context(), true)
		return &api.Error{Status: http.StatusForbidden, Code: "login_refused", Detail: err.Error(), Hint: "begin again at /desk/login: a login takes ten minutes at most, in one browser", ExitCode: 1}
	}
	return s.problem(r.Context(), err)
}
