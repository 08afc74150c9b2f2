package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/docs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
)

// The operations as tools of the Model Context Protocol, at POST /mcp and over a pair of streams.
// A tool asks the same operations, by requests that never leave the process: they begin behind
// the authentication, with the caller of the request that the tool came with, and are recorded as
// any other. What a human says through a client has a method of its own in the log.

// newTools makes what offers the tools.
func (s *Server) newTools() (*mcp.Server, error) {
	c := s.config.MCP
	c.API, c.Version, c.Log = operations{s}, s.config.Version, s.config.Log
	c.Told = s.config.Metrics.Tool
	if s.config.Spans != nil {
		c.Trace = s.config.Spans.Call
	}
	c.MachineSchema, c.MachineGuide = string(machine.FileSchema()), docs.MachineFile
	return mcp.New(c)
}

// RunMCP serves a client of the tools over a pair of streams, for who has a credential, until the
// client leaves or ctx ends.
func (s *Server) RunMCP(ctx context.Context, credential string, in io.ReadCloser, out io.WriteCloser) error {
	p, err := s.config.Who.Authenticate(ctx, credential)
	if err != nil {
		return err
	}
	if ctx, err = s.enter(ctx, p, ""); err == nil && tenantOf(ctx) == nil {
		err = s.tenantRequired()
	}
	if err != nil {
		return err
	}
	tools, err := tenantOf(ctx).tools()
	if err != nil {
		return err
	}
	return tools.Run(ctx, in, out)
}

// serveMCP answers a request of streamable HTTP.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	tools, err := tenantOf(r.Context()).tools()
	if err != nil {
		writeProblem(w, r, s.problem(r.Context(), err))
		return
	}
	body, problem := readBody(r)
	if problem != nil {
		writeProblem(w, r, problem)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a caller that waits is not slow
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Header.Get("Mcp-Method") != "subscriptions/listen" {
		tools.ServeHTTP(w, r.WithContext(withAddress(r)))
		return
	}
	p := callerOf(r.Context())
	done, ok := s.limits.stream(p)
	if !ok {
		writeProblem(w, r, tooManyStreams(p))
		return
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	go s.endListening(ctx, cancel, p)
	tools.ServeHTTP(w, r.WithContext(withAddress(r.WithContext(ctx))))
}

// endListening ends a stream of updates when the server ends, or the credential is not good any
// more.
func (s *Server) endListening(ctx context.Context, end func(), p *Principal) {
	again := time.NewTicker(streamRecall)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.closing:
			end()
		case <-again.C:
			if _, err := s.still(ctx, p); errors.Is(err, ErrUnauthenticated) {
				end()
			}
		}
	}
}

// readBody reads the body of a request whole.
func readBody(r *http.Request) ([]byte, *api.Error) {
	body, err := io.ReadAll(r.Body)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &api.Error{Status: http.StatusRequestTimeout, Code: "too_slow", Detail: "the body did not come within 30 s", Retryable: true, ExitCode: 1}
	case errors.As(err, new(*http.MaxBytesError)) || len(body) > maxBody:
		return nil, &api.Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: "the body is larger than 1 MiB", ExitCode: 2}
	case err != nil:
		return nil, bad("bad_request", "the body was cut off, or its chunks are none")
	}
	return body, nil
}

// addressKey is where a context has the address from which tools are called.
type addressKey struct{}

// withAddress returns the context of a request that calls tools.
func withAddress(r *http.Request) context.Context {
	return context.WithValue(r.Context(), addressKey{}, r.RemoteAddr)
}

// operations are what tools are made of.
type operations struct{ *Server }

// Caller says who calls.
func (o operations) Caller(ctx context.Context) mcp.Caller {
	p := callerOf(ctx)
	if p == nil {
		return mcp.Caller{}
	}
	return mcp.Caller{
		Subject: p.Tenant + "/" + p.Subject, Anybody: p.Anybody,
		Form: func(machineName string) bool {
			return slices.ContainsFunc(p.Grants, func(g control.Grant) bool { return g.Elicit == control.ElicitForm && g.Covers(machineName) })
		},
		May: func(operation string) bool {
			needs, ok := o.needs[operation]
			own := *p
			return ok && own.may(needs, "")
		},
	}
}

// Do does what a request to an operation asks for.
func (o operations) Do(ctx context.Context, c mcp.Call) mcp.Answer {
	p := callerOf(ctx)
	at, err := url.ParseRequestURI(c.Path)
	if p == nil || err != nil {
		return mcp.Answer{Status: http.StatusUnauthorized}
	}
	own := *p // which notes what this request reads
	own.byTool, own.reads, own.payload, own.Method = true, nil, false, cmp.Or(c.Spoken, p.Method)
	at.RawQuery = c.Query.Encode()
	ctx = context.WithValue(context.WithValue(ctx, principalKey{}, &own), requestKey{}, cmp.Or(requestID(ctx), newID()))
	from, _ := ctx.Value(addressKey{}).(string)
	r := (&http.Request{
		Method: c.Method, URL: at, RequestURI: at.RequestURI(), Host: "localhost", RemoteAddr: cmp.Or(from, "stdio"), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(c.Body)), ContentLength: int64(len(c.Body)),
	}).WithContext(ctx)
	if c.Body == nil {
		r.Body = http.NoBody
		r.Header.Del("Content-Type")
	}
	w := &memoryWriter{header: http.Header{}}
	seen := &seenWriter{ResponseWriter: w}
	o.recovered(o.inner).ServeHTTP(seen, r)
	return mcp.Answer{Status: cmp.Or(seen.status, http.StatusOK), Body: w.body.Bytes()}
}

// Watch tells of what is committed to a session, or, if id is "", to any.
func (o operations) Watch(ctx context.Context, id string) (<-chan struct{}, func()) {
	if id == "" {
		return tenantOf(ctx).changes.watch(anySession)
	}
	key, err := session.ParseID(id)
	if err != nil {
		return nil, func() {}
	}
	return tenantOf(ctx).changes.watch(key)
}

// A memoryWriter keeps an answer.
type memoryWriter struct {
	header http.Header
	body   bytes.Buffer
}

// Header returns the header of the answer.
func (w *memoryWriter) Header() http.Header { return w.header }

// WriteHeader does nothing: whoever reads the answer has seen the status.
func (w *memoryWriter) WriteHeader(int) {}

// Write keeps a part of the answer.
func (w *memoryWriter) Write(text []byte) (int, error) { return w.body.Write(text) }
