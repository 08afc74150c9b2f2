package server

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
)

// What clients of DIAL expect at paths that are nobody else's: JSON-RPC at every one of them, with
// refusals of their own form; and gates, of which there are none yet.

// ownPaths begin those that are not DIAL's.
var ownPaths = []string{"/v1", "/mcp", "/desk", "/dashboard", "/problems", "/.well-known", "/openapi", "/machine.schema.json", "/healthz", "/readyz", "/metrics", "/gates"}

// forDIAL reports whether a path is one of DIAL's.
func forDIAL(path string) bool {
	if isCallback(path) {
		return false
	}
	for _, own := range ownPaths {
		if rest, ok := strings.CutPrefix(path, own); ok && (rest == "" || rest[0] == '/' || own == "/openapi") {
			return false
		}
	}
	return true
}

// refuseDIAL refuses as DIAL does.
func refuseDIAL(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = marshal(w, map[string]string{"error": why}) // whoever has gone does not read it
}

// methodOfDIAL answers requests to a path of DIAL's that are no POST, and reports whether it did.
func methodOfDIAL(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !forDIAL(r.URL.Path) || r.Method == http.MethodPost:
		return false
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, OPTIONS")
		refuseDIAL(w, http.StatusMethodNotAllowed, "Method not allowed")
	}
	return true
}

// unknownToDIAL refuses a caller whom nobody knows.
func unknownToDIAL(w http.ResponseWriter, r *http.Request) {
	if bearer(r) == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="dialai"`)
		refuseDIAL(w, http.StatusUnauthorized, "Missing or invalid Authorization header")
		return
	}
	refuseDIAL(w, http.StatusForbidden, "Invalid API token")
}

// serveDIAL answers JSON-RPC.
func (s *Server) serveDIAL(w http.ResponseWriter, r *http.Request) {
	tools, err := tenantOf(r.Context()).tools()
	if err != nil {
		writeProblem(w, r, s.problem(r.Context(), err))
		return
	}
	body, problem := readBody(r)
	if problem != nil {
		refuseDIAL(w, problem.Status, problem.Detail)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a caller that waits is not slow
	r.Body = io.NopCloser(bytes.NewReader(body))
	tools.ServeRPC(w, r.WithContext(withAddress(r)))
}

// noGates refuses what is about gates.
func noGates(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, &api.Error{Status: http.StatusNotImplemented, Code: "not_implemented", ExitCode: 2, Detail: "gates are not in this version", Hint: "a machine with one state decides as a gate would: POST /v1/sessions"})
}
