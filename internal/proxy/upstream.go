package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Side is one of the two that a proxy stands between. It is for one Run.
type Side struct{ transport mcp.Transport }

// Stdio is an agent that has started this program, and talks to it over its stdin and stdout.
func Stdio(in io.Reader, out io.Writer) Side {
	return Side{&mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}}}
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Command reaches a server that is a program: it is started, and ends with the proxy. Its
// environment and where its errors go are those of cmd.
func Command(cmd *exec.Cmd) Side { return Side{&mcp.CommandTransport{Command: cmd}} }

// URL reaches a server at an address, through a transport that says which addresses may be
// called. Token is sent as a bearer token; "" sends none. Redirects are not followed. What the
// server says of its own accord comes with its answers: no stream of its own is opened for that.
func URL(address, token string, through http.RoundTripper) Side {
	h := &headers{next: through, token: token}
	c := &http.Client{Transport: h, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return Side{&remote{mcp.StreamableClientTransport{Endpoint: address, HTTPClient: c, DisableStandaloneSSE: true, MaxRetries: -1}, h}}
}

// A remote is a server at an address. Requests name the revision of the protocol that agent
// and server have agreed on, which the transport knows of its own clients only.
type remote struct {
	mcp.StreamableClientTransport
	headers *headers
}

// agreed notes the revision that the server has answered to initialize with.
func (r *remote) agreed(result json.RawMessage) {
	var in struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &in) == nil && in.ProtocolVersion != "" {
		r.headers.revision.Store(&in.ProtocolVersion)
	}
}

// headers adds to requests what the transport does not.
type headers struct {
	next     http.RoundTripper
	token    string
	revision atomic.Pointer[string] // nil before initialize was answered
}

// RoundTrip sends a request.
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	const revision = "Mcp-Protocol-Version"
	r = r.Clone(r.Context())
	if v := h.revision.Load(); v != nil && r.Header.Get(revision) == "" {
		r.Header.Set(revision, *v)
	}
	if h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token)
	}
	return h.next.RoundTrip(r)
}
