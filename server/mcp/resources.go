package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/api"
)

// What can be read without a tool: machines, sessions and their events, the inbox, and how machine
// files are written. What is read of the server is the answer of an operation, as a tool's is. A
// client may follow a session or the inbox; it is told that there is something new, never what.

const scheme = "dialai://"

// A readable is a resource that is an operation's answer.
type readable struct {
	uri, name, title, path string
	query                  url.Values
}

var readables = []readable{
	{scheme + "machines/{name}", "machine", "The newest definition of a machine", "/v1/machines/{name}", nil},
	{scheme + "sessions/{id}", "session", "A session, with its question if one is open", "/v1/sessions/{id}", nil},
	{scheme + "sessions/{id}/events", "events", "The log of a session, with secrets and personal data masked", "/v1/sessions/{id}/events", url.Values{"after": {"0"}, "limit": {"1000"}}},
	{scheme + "inbox", "inbox", "The questions that wait for a human", "/v1/inbox", nil},
}

// addResources offers what can be read.
func (s *Server) addResources() {
	for i := range readables {
		r := &readables[i]
		if !strings.Contains(r.uri, "{") {
			s.sdk.AddResource(&mcp.Resource{URI: r.uri, Name: r.name, Title: r.title, MIMEType: "application/json"}, s.read)
			continue
		}
		s.sdk.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: r.uri, Name: r.name, Title: r.title, MIMEType: "application/json"}, s.read)
	}
	for _, file := range []struct{ uri, name, title, kind, text string }{
		{scheme + "schema/machine", "machine-schema", "The JSON Schema of machine files", "application/schema+json", s.config.MachineSchema},
		{scheme + "docs/machine-file", "machine-file", "How machine files are written", "text/markdown", s.config.MachineGuide},
	} {
		if file.text != "" {
			s.sdk.AddResource(&mcp.Resource{URI: file.uri, Name: file.name, Title: file.title, MIMEType: file.kind}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: file.uri, MIMEType: file.kind, Text: file.text}}}, nil
			})
		}
	}
}

// callFor returns the request that reads a resource; false if there is none of that name.
func callFor(uri string) (Call, bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return Call{}, false
	}
	got := strings.Split(rest, "/")
	for i := range readables {
		r := &readables[i]
		want := strings.Split(strings.TrimPrefix(r.uri, scheme), "/")
		if len(got) != len(want) {
			continue
		}
		path, fits := r.path, true
		for i := range want {
			if !strings.HasPrefix(want[i], "{") {
				fits = fits && got[i] == want[i]
				continue
			}
			name, err := url.PathUnescape(got[i])
			fits = fits && err == nil && name != "" && name != "." && name != ".."
			path = strings.ReplaceAll(path, want[i], url.PathEscape(name))
		}
		if fits {
			return Call{Method: http.MethodGet, Path: path, Query: r.query}, true
		}
	}
	return Call{}, false
}

// read reads a resource.
func (s *Server) read(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	call, ok := callFor(req.Params.URI)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	o := s.operate(ctx, call)
	if o.problem != nil {
		return nil, notRead(req.Params.URI, o.problem)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: indented(o.body)}}}, nil
}

// notRead is the error of a resource that is not shown.
func notRead(uri string, p *api.Error) error {
	if p.Code == "not_found" {
		return mcp.ResourceNotFoundError(uri)
	}
	return &jsonrpc.Error{Code: codeDomain, Message: printable(p.Detail), Data: said(p)}
}

// follow has a client told when a session or the inbox changes.
func (s *Server) follow(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	call, ok := callFor(uri)
	id, isSession := strings.CutPrefix(call.Path, "/v1/sessions/")
	if id, _, _ = strings.Cut(id, "/"); !ok || !isSession && call.Path != "/v1/inbox" {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s does not change, or is nothing that can be followed", uri)}
	}
	if !isSession {
		id = ""
	}
	if o := s.operate(ctx, call); o.problem != nil {
		return notRead(uri, o.problem)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[uri]++; s.followed[uri] > 1 {
		return nil
	}
	changed, end := s.config.API.Watch(ctx, id)
	stop := make(chan struct{})
	s.stops[uri] = func() {
		close(stop)
		end()
	}
	go func() {
		for {
			select {
			case <-changed:
				_ = s.sdk.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri}) // whoever has gone is not told
			case <-stop:
				return
			}
		}
	}()
	return nil
}

// unfollow ends what follow began.
func (s *Server) unfollow(_ context.Context, req *mcp.UnsubscribeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	uri := req.Params.URI
	if s.followed[uri] == 0 {
		return nil
	}
	if s.followed[uri]--; s.followed[uri] == 0 {
		s.stops[uri]()
		delete(s.followed, uri)
		delete(s.stops, uri)
	}
	return nil
}
