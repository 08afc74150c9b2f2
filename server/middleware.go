package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/desk"
	"github.com/dialai/dialai/internal/packs"
)

// What every request goes through before its operation, in this order: a panic becomes a problem,
// the request gets an id, a foreign Host and a foreign page are refused, sizes and rates are
// bounded, the caller is found. Permission, idempotency and the audit log belong to operations
// (operations.go, audit_write.go). A test walks all routes for a missing link.

type requestKey struct{}

// requestID returns the id of a request.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// newID returns an id that nothing else has.
func newID() string { return uuid.NewString() }

// wrap puts around the operations what every request goes through.
func (s *Server) wrap() http.Handler {
	origins := http.NewCrossOriginProtection()
	for _, o := range s.config.Origins {
		_ = origins.AddTrustedOrigin(o) // the command has checked them
	}
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, &api.Error{Status: http.StatusForbidden, Code: "cross_origin", Detail: "a page of another origin may not do this", Hint: "--cors-origin lets the pages of an origin call, with a key"})
	}))
	h := s.authenticated(s.ofTenant(s.inner))
	h = s.sized(h)
	h = s.fromOrigin(origins.Handler(h))
	h = s.behindProxy(s.atHost(h))
	return s.logged(s.recovered(h))
}

// A seenWriter remembers the status of an answer.
type seenWriter struct {
	http.ResponseWriter
	status int
	then   func() // streams, once all around the operation has returned
}

func (w *seenWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write gives whoever reads the answer some time for each part of it.
func (w *seenWriter) Write(text []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(answerWrite)) // not every writer has one
	return w.ResponseWriter.Write(text)
}

// Unwrap lets an http.ResponseController find what is beneath.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recovered answers a request whose work came to a panic, and tells the log where.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil || v == http.ErrAbortHandler {
				return
			}
			s.config.Log.Error("panic", "id", requestID(r.Context()), "value", packs.Redact(fmt.Sprint(v)), "stack", string(debug.Stack()))
			if seen, ok := w.(*seenWriter); ok && seen.status == 0 {
				writeProblem(w, r, internalProblem())
			}
		}()
		next.ServeHTTP(w, r)
		if seen, ok := w.(*seenWriter); ok && seen.then != nil {
			seen.then()
		}
	})
}

// streaming has what is answered with streamed by f, as soon as the operation and all around
// it has returned: what a stream keeps for half an hour is its stack, and that is half as large.
func streaming(c huma.Context, f func()) {
	_, w := unwrap(c)
	if seen, ok := w.(*seenWriter); ok {
		seen.then = f
		return
	}
	f()
}

// atHost refuses requests for names that are not the server's: a page elsewhere may have
// its own name lead here.
func (s *Server) atHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		health := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		if len(s.config.Hosts) > 0 && !health && !overSocket(r) && !slices.Contains(s.config.Hosts, hostOf(r.Host)) {
			writeProblem(w, r, &api.Error{Status: http.StatusMisdirectedRequest, Code: "bad_host", Detail: "this server does not go by that name", Hint: "--host NAME makes it one of its names"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// behindProxy refuses who does not come through a proxy, where there are some, and has the
// request be that of whom the proxy speaks for.
func (s *Server) behindProxy(next http.Handler) http.Handler {
	if len(s.config.Proxies) == 0 {
		return next
	}
	proxy := func(address string) bool {
		ip, err := netip.ParseAddr(strings.TrimSpace(address))
		return err == nil && slices.ContainsFunc(s.config.Proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !overSocket(r) && !proxy(addressOf(r)) {
			writeProblem(w, r, &api.Error{Status: http.StatusForbidden, Code: "not_through_proxy", Detail: "this server is called through its proxy", Hint: "--behind-proxy says where that is"})
			return
		}
		r = r.Clone(r.Context())
		if hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ","); !overSocket(r) {
			for _, hop := range slices.Backward(hops) {
				if hop = strings.TrimSpace(hop); hop == "" {
					break
				}
				if r.RemoteAddr = hop; !proxy(hop) {
					break // what is before it, anybody may have written
				}
			}
		}
		if host := r.Header.Get("X-Forwarded-Host"); host != "" {
			r.Host = host
		}
		next.ServeHTTP(w, r)
	})
}

// overSocket reports whether a request came over a Unix socket, which has no name.
func overSocket(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return at != nil && at.Network() == "unix"
}

// hostOf returns the name in a Host header, without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// fromOrigin answers the questions of browsers whether a page may call.
func (s *Server) fromOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || !slices.Contains(s.config.Origins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Dialai-Request-Id, ETag, Location, Retry-After, Idempotency-Replayed")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "+tenantHeader)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sized refuses what is too large to be meant.
func (s *Server) sized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > 8<<10 {
			writeProblem(w, r, &api.Error{Status: http.StatusRequestURITooLong, Code: "uri_too_long", Detail: "the address is longer than 8 KiB"})
			return
		}
		if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
			writeProblem(w, r, &api.Error{Status: http.StatusUnsupportedMediaType, Code: "bad_encoding", Detail: "bodies are not compressed here"})
			return
		}
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every writer has one
		}
		if len(r.TransferEncoding) > 0 { // it may have said a length, too: whoever is between may see another end of it
			w.Header().Set("Connection", "close")
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody+1) // one more, for who reads it to tell
		next.ServeHTTP(w, r)
	})
}

// keyless are the paths for which nobody has to say who they are.
func keyless(r *http.Request) bool {
	path := r.URL.Path
	if path == sessionPath && r.Method == http.MethodDelete {
		return false
	}
	return path == "/healthz" || path == "/readyz" || strings.HasPrefix(path, "/openapi") || path == "/machine.schema.json" || strings.HasPrefix(path, "/problems/") || isCallback(path) || path == "/dashboard" || strings.HasPrefix(path, "/.well-known/") || strings.HasPrefix(path, desk.Path) || wantsPage(r)
}

// authenticated finds out who calls.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless(r) {
			next.ServeHTTP(w, r)
			return
		}
		if methodOfDIAL(w, r) {
			return
		}
		sent := s.proofOf(r)
		p, err := s.authenticate(r.Context(), sent)
		wait := time.Duration(0)
		switch {
		case err == nil:
			wait = s.limits.request(p, r)
			s.limitMet(r, wait, "")
			s.noteUse(r, p)
		case errors.Is(err, ErrUnauthenticated):
			s.noteRefused(r)
			wait = s.limits.stranger(r)
			s.config.Metrics.AuthFailed(r.Context(), r.Header.Get("Authorization") != "" || len(sent.cookies) > 0)
			s.limitMet(r, wait, "stranger")
		}
		if wait > 0 {
			writeProblem(w, r, tooMany(w, wait))
			return
		}
		if errors.Is(err, ErrUnauthenticated) && forDIAL(r.URL.Path) {
			unknownToDIAL(w, r)
			return
		}
		if errors.Is(err, ErrUnauthenticated) {
			w.Header().Set("WWW-Authenticate", s.challenge(r))
			if s.config.Login != nil {
				w.Header().Set("Link", `</desk/login>; rel="login"`)
			}
			writeProblem(w, r, &api.Error{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "no key was sent that is known here",
				Hint: "Authorization: Bearer KEY; dialai serve says where the key of this computer is, and dialai keys makes others; a page whose sign-in is over signs in again"})
			return
		}
		if err != nil {
			writeProblem(w, r, s.problem(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

// bearer returns the credential of a request, "" if there is none.
func bearer(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}
