package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/packs"
)

// What can be seen of a server from outside: of each request a line in the log, a span and a
// count, all by its route and its ids and never by what is in it; /metrics; and whether the
// server is ready.

// routeOf returns the route of a request: a pattern with the names of what it stands for, or
// "other".
func (s *Server) routeOf(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	if pattern == "/" || pattern == "" {
		return "other"
	}
	return pattern
}

// logged gives a request its id, and tells of it when it is answered.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, id := time.Now(), newID()
		h := w.Header()
		h.Set("Dialai-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		route, ctx, traceID, endSpan := s.routeOf(r), r.Context(), "", func(string, int) {}
		if s.config.Spans != nil {
			ctx, traceID, endSpan = s.config.Spans.Request(r)
		}
		counted := s.config.Metrics.Request(ctx)
		seen := &seenWriter{ResponseWriter: w}
		defer func() {
			status, took := cmp.Or(seen.status, http.StatusOK), time.Since(began)
			counted(route, r.Method, status, strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"), took)
			endSpan(r.Method+" "+route, status)
			s.config.Log.LogAttrs(ctx, slog.LevelInfo, "request", attributesOf(r, id, traceID, status, took)...)
		}()
		next.ServeHTTP(seen, r.WithContext(context.WithValue(ctx, requestKey{}, id)))
	})
}

// attributesOf returns what the log says of a request: no text, and of its path no more than
// what is no secret.
func attributesOf(r *http.Request, id, traceID string, status int, took time.Duration) []slog.Attr {
	list := []slog.Attr{slog.String("id", id), slog.String("method", r.Method), slog.String("path", packs.Redact(r.URL.Path)), slog.Int("status", status), slog.Duration("took", took)}
	if traceID != "" {
		list = append(list, slog.String("trace", traceID))
	}
	session, round := subjectOf(r.URL.Path)
	if session != "" {
		list = append(list, slog.String("session", session))
	}
	if round != "" {
		list = append(list, slog.String("round", round))
	}
	return list
}

// subjectOf returns the session and the round that a path names, "" where it names none.
func subjectOf(path string) (session, round string) {
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	if len(parts) < 2 {
		return "", ""
	}
	switch parts[0] {
	case "sessions":
		return shownID(parts[1]), ""
	case "inbox", "reviews":
		session, round, ok := strings.Cut(parts[1], ".")
		if !ok {
			return "", ""
		}
		return shownID(session), shownID(round)
	}
	return "", ""
}

// shownID returns an id for the log; "" for what is none.
func shownID(text string) string {
	if len(text) > 64 || strings.Trim(text, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return text
}

// limitMet counts a request that comes too often: of a kind, or by what it does.
func (s *Server) limitMet(r *http.Request, wait time.Duration, kind string) {
	if wait <= 0 {
		return
	}
	if kind == "" {
		kind = "write"
		if reads(r) {
			kind = "read"
		}
	}
	s.config.Metrics.RateLimited(r.Context(), kind)
}

// serveMetrics shows the metrics to whoever may read all machines.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	p := callerOf(r.Context())
	switch {
	case s.metricsApart.Load():
		writeProblem(w, r, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "the metrics are shown at an address of their own", Hint: "--metrics-listen says which"})
	case p == nil:
		writeProblem(w, r, s.problem(r.Context(), ErrUnauthenticated))
	case !p.may(mayRead, ""):
		writeProblem(w, r, s.problem(r.Context(), mayNot(p, mayRead, "")))
	case len(s.tenants) > 1 && !p.Installation:
		writeProblem(w, r, forbidden("forbidden", "--metrics-listen shows them at an address of their own", "the metrics are of all tenants, and %s is of one", p.Subject))
	default:
		s.config.Metrics.ServeHTTP(w, r)
	}
}

// A readiness says whether the server can do its work, and what of it cannot.
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// readyTime is how long the checks may take.
const readyTime = time.Second

// ready answers whether the server can do its work: 503 if the store or what the server
// remembers fails, or it is closing. What else is wrong is said, too.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	out, status := readiness{"ready", map[string]string{"driver": "off"}}, http.StatusOK
	if s.config.Driver != nil {
		out.Checks["driver"] = s.config.Driver.Status().Mode
	}
	for name, failing := range s.checked(ctx) {
		out.Checks[name] = "ok"
		if failing {
			out.Checks[name] = "failing"
			if s.config.Ready[name].Critical || name == "store" || name == "control" {
				status = http.StatusServiceUnavailable
			}
		}
	}
	select {
	case <-s.closing:
		out.Checks["server"], status = "closing", http.StatusServiceUnavailable
	default:
	}
	if status != http.StatusOK {
		out.Status = "not ready"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	marshal(w, out)
}

// intact returns what is wrong with the files of a store, if it has some.
func intact(kept any) error {
	if files, ok := kept.(interface{ Intact() error }); ok {
		return files.Intact()
	}
	return nil
}

// placed asks each store where its logs stand, and whether its files are there. Of the logs, those of machine
// names say at once, whoever writes meanwhile.
func (s *Server) placed(ctx context.Context) error {
	for _, t := range s.tenants {
		if _, err := t.Runner.Store().RosterPlace(ctx); err != nil {
			return err
		}
		if err := intact(t.Runner.Store()); err != nil {
			return err
		}
	}
	return nil
}

// checked does all checks at once, each as long as ctx lets it: one that has not come back by
// then has failed.
func (s *Server) checked(ctx context.Context) map[string]bool {
	checks := map[string]func(context.Context) error{
		"store": s.placed,
		"control": func(ctx context.Context) error {
			_, err := s.config.Control.Keys(ctx, control.Query{Limit: 1})
			return cmp.Or(err, intact(s.config.Control))
		},
	}
	for name, c := range s.config.Ready {
		checks[name] = c.Check
	}
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(checks))
	for name, check := range checks {
		go func() { results <- result{name, check(ctx)} }()
	}
	failing := map[string]bool{}
	for name := range checks {
		failing[name] = true
	}
	for range checks {
		select {
		case r := <-results:
			failing[r.name] = r.err != nil
		case <-ctx.Done():
			return failing
		}
	}
	return failing
}
