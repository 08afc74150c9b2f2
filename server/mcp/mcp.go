// Package mcp offers the operations of a server as tools of the Model Context Protocol.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/internal/seal"
)

// A tool is an operation of the API under another name: its arguments become the path, the query
// and the body of a request (call.go), and what the operation answers is the result, with the
// operation's own schemas (schema.go). So nothing is decided here: who may do what, what is
// withheld and what is recorded are the operation's matter, over HTTP as here. One table
// (tools.go) says which tool is which operation; a few tools are made of several (several.go).
//
// A client is a program that a model uses, so that its words are a model's. Where a human has to
// speak, a tool therefore only asks (rulings.go): it has the client put the question to whoever
// sits before it, or says where to answer. What the client is to send back with the answer is
// sealed (state.go), so that it fits that question only.
//
// Nothing is kept between two requests. The handle of everything is the id of a session.

// An API is what the tools are made of. Its methods take contexts that say who calls.
type API interface {
	// Caller says who calls.
	Caller(ctx context.Context) Caller
	// Do does what a request to an operation asks for, as whoever calls.
	Do(ctx context.Context, c Call) Answer
	// Watch returns a channel that has an element whenever something was committed to a session, or
	// to any if it is "", since the last one was taken, and what ends that.
	Watch(ctx context.Context, session string) (changed <-chan struct{}, end func())
	// OpenAPI returns the document that describes the operations.
	OpenAPI() ([]byte, error)
}

// A Caller is who calls. The zero Caller may do nothing.
type Caller struct {
	Subject string
	// Anybody says that the caller may act as every human whom a machine declares.
	Anybody bool
	// Form reports whether a human whom the caller may act as can rule by a form of the client, in
	// the sessions of a machine; nil is never.
	Form func(machineName string) bool
	// May reports whether the caller may do an operation at all; nil is never.
	May func(operation string) bool
}

// A Call is a request to an operation.
type Call struct {
	Method, Path string
	Query        url.Values
	Body         json.RawMessage // nil for none
	// Spoken says how a human has spoken whose word this is: SpokenForm or SpokenTool; "" for
	// what is no word of a human.
	Spoken string
}

// How a human has spoken, as the log has it.
const (
	SpokenForm = "elicitation" // they filled a form of their client in
	SpokenTool = "tool"        // the arguments of a tool count as their word
)

// An Answer is that of an operation: a body of JSON, a problem if Status is 400 or above.
type Answer struct {
	Status int
	Body   json.RawMessage
}

// Toolsets are the names of the parts of the tools that a server can offer.
func Toolsets() []string { return []string{"all", "dial", "run", "desk"} }

// A Config says what a Server is made of. API is required.
type Config struct {
	API     API
	Version string
	// Toolset is one of Toolsets; "" means all.
	Toolset string
	// Key seals what clients keep for the server; the zero Key means one that nobody else has, so
	// that the Server alone takes it back.
	Key seal.Key
	// Desk is the address at which humans answer questions, without a slash behind it; "" if
	// there is none that they could reach.
	Desk string
	// Form has humans rule by a form of the client, whoever calls.
	Form bool
	// ArgumentsRule has the arguments of a tool count as the word of the human whom the caller
	// is bound to.
	ArgumentsRule bool
	// MachineSchema and MachineGuide say how machine files are written: a JSON Schema, and a text
	// in Markdown. "" offers none.
	MachineSchema, MachineGuide string
	Now                         func() time.Time // nil means time.Now
	Log                         *slog.Logger     // nil is told nothing
	// Told is told of each request: its method and tool ("" for none, or "other"), and whether it
	// came to "ok", "refused" or "error"; nil is told nothing.
	Told func(ctx context.Context, method, tool, result string)
	// Trace begins the span of a request, of the trace that traceparent names; "" and what is none
	// name none. The context is that of what the request does; end is called with what Told is. nil
	// traces nothing.
	Trace func(ctx context.Context, traceparent string) (_ context.Context, end func(method, tool, result string))
}

// A Server offers the tools. It may be used concurrently.
type Server struct {
	config Config
	tools  map[string]*tool // by name
	sdk    *mcp.Server
	http   http.Handler

	mu       sync.Mutex
	followed map[string]int    // how many clients follow a resource, by its URI
	stops    map[string]func() // what ends that
}

const (
	maxBody  = 1 << 20
	cacheFor = 60 * time.Second
)

const instructions = `dialai runs decision processes: sessions move through the states of a machine, specialists propose transitions, an arbiter decides, and what needs a human waits in the inbox.

run_session or create_session starts one; its sessionId is the handle for everything else. You never decide for a human: where one is needed, ask_human puts the question to them or says where they can answer.`

// New returns a Server. The error is that of a document without an operation that a tool is of.
func New(c Config) (*Server, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Key == (seal.Key{}) {
		c.Key = seal.NewKey()
	}
	s := &Server{config: c, tools: map[string]*tool{}, followed: map[string]int{}, stops: map[string]func(){}}
	log := slog.New(warnings{c.Log.Handler()})
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "dialai", Title: "dialai", Version: c.Version}, &mcp.ServerOptions{
		Instructions: instructions, Logger: log, SubscribeHandler: s.follow, UnsubscribeHandler: s.unfollow,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}, Resources: &mcp.ResourceCapabilities{Subscribe: true}},
		SetCacheable: func(_ context.Context, req mcp.Request, cache *mcp.Cacheable) {
			cache.TTLMs, cache.CacheScope = int(cacheFor.Milliseconds()), "private"
			if _, reads := req.(*mcp.ReadResourceRequest); reads { // nobody reads what is stale
				cache.TTLMs = 0
			}
		},
	})
	text, err := c.API.OpenAPI()
	if err != nil {
		return nil, err
	}
	doc, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	for _, t := range allTools() {
		if c.Toolset != "" && c.Toolset != "all" && !slices.Contains(t.sets, c.Toolset) {
			continue
		}
		if err := doc.describe(t); err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.name, err)
		}
		s.tools[t.name] = t
		s.sdk.AddTool(t.described(), s.called(t))
	}
	s.addResources()
	s.addPrompts()
	s.sdk.AddReceivingMiddleware(s.permitted)
	s.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, Logger: log,
	})
	return s, nil
}

// ServeHTTP answers a request of streamable HTTP. Its context says who calls.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.ServeHTTP(w, r) }

// Run serves a client over a pair of streams until it leaves or ctx ends. ctx says who calls.
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return s.sdk.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// permitted leaves out of the list of tools what the caller may not do.
func (s *Server) permitted(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		end := func(string, string, string) {}
		if s.config.Trace != nil {
			ctx, end = s.config.Trace(ctx, traceparent(req))
		}
		result, err := next(ctx, method, req)
		told, tool, came := s.cameOf(method, req, result, err)
		if s.config.Told != nil {
			s.config.Told(ctx, told, tool, came)
		}
		end(told, tool, came)
		if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
			caller := s.config.API.Caller(ctx)
			list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return !s.tools[t.Name].offered(caller) })
		}
		return result, err
	}
}

// methods are those that are told of by their names.
var methods = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "subscriptions/listen"}

// traceparent returns the trace that a request says it belongs to, in its _meta; "" if it says none.
func traceparent(req mcp.Request) string {
	if p := req.GetParams(); p != nil && !reflect.ValueOf(p).IsNil() {
		text, _ := p.GetMeta()["traceparent"].(string) // what is no text names no trace
		return text
	}
	return ""
}

// cameOf returns what there is to tell of a request, in words that no client can choose.
func (s *Server) cameOf(method string, req mcp.Request, result mcp.Result, err error) (told, tool, came string) {
	came = "ok"
	if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && call != nil {
		if tool = call.Name; s.tools[tool] == nil {
			tool = "other"
		}
	}
	if called, ok := result.(*mcp.CallToolResult); ok && called != nil && called.IsError {
		came = "refused"
	}
	if err != nil {
		came = "error"
	}
	if !slices.Contains(methods, method) {
		method = "other"
	}
	return method, tool, came
}

// called is what a client comes to that calls a tool.
func (s *Server) called(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := &conversation{Server: s, tool: t, raw: req.Params.Arguments, state: req.Params.RequestState, responses: req.Params.InputResponses}
		if can := req.ClientCapabilities(); can != nil {
			c.elicits = can.Elicitation
		}
		return c.result(ctx), nil
	}
}

// warnings are what a log is told of the library: nothing of what goes well.
type warnings struct{ slog.Handler }

// Enabled reports whether a line is a warning, or worse.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}
