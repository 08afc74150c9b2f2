// Package server offers sessions, questions and rulings over HTTP.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/net/netutil"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/desk"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/telemetry/prom"
	"github.com/dialai/dialai/internal/telemetry/spans"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A request goes through these, in this order: recover, request id, host, origin, size
// (middleware.go); who calls (principal.go); what they may do, and the operation
// (operations.go, and a file for each kind of thing). Every operation is defined once, with
// register: the route, what it takes and answers, the permission it needs, and its place in
// the OpenAPI document all come from there.
//
// What an operation does to a session goes through the Runner and its compare-and-swap, with
// the precondition of the request inside. What it answers is read after that, so that nobody
// reads what is older than their own write. Errors of the engine become problems in one
// table (problems.go).

// A Config says what a Server is made of. Tenants, Who and Control are required.
type Config struct {
	Tenants []Tenant
	Driver  *driver.Driver // carries sessions on; nil if another process does, or nobody
	// Checks are those of definitions that are sent here. They include no file.
	Checks machine.Checks
	// Variable returns a variable of the environment that holds the secret of a service that
	// answers later; nil knows none.
	Variable func(name string) string
	// Who finds out who calls.
	Who Authenticator
	// Webhooks makes webhooks; nil makes none.
	Webhooks *notify.Maker
	// Control remembers requests: their receipts, and who did what.
	Control control.Store
	// Hosts are the names under which browsers may call; empty allows any. Ports do not count.
	Hosts []string
	// Proxies are in front of the server, if there are any: nobody else may call it, but over a
	// Unix socket, and they say for whom they do (X-Forwarded-For, X-Forwarded-Host).
	Proxies []netip.Prefix
	// Origins are those of pages elsewhere that may call, with a key.
	Origins []string
	// MCP says how the operations are offered as tools; its API, Version and Log are those of the
	// server.
	MCP mcp.Config
	// WaitMax is how long a request may wait for a session to settle; 0 means a minute.
	WaitMax time.Duration
	// Issuer is whose tokens Who takes, if any; callers without one are told.
	Issuer string
	// Login has people log in at an issuer; nil has nobody.
	Login *Login
	// PublicURL is the address that others call; "" means that of each request.
	PublicURL string
	// Rates bound what a key may ask for; the zero value bounds nothing.
	Rates   Rates
	Version string
	// Guards are those that steps may be judged by, by their names. None has a classifier.
	Guards map[string]*guard.Config
	// Registry has the arbiters of simulations that are somebody's own code, and Example returns a
	// payload that the parameters of a transition are likely to accept; nil knows none.
	Registry strategies.Registry
	Example  func(parameters []byte) []byte
	// Metrics count what is done, and are shown at /metrics; nil counts nothing.
	Metrics *prom.Metrics
	// Spans are told of requests; nil is told nothing.
	Spans *spans.Spans
	// Checks of readiness beside the store and the driver, by their names; each returns what is
	// wrong. One of a critical thing makes the server not ready.
	Ready map[string]ReadyCheck
	Log   *slog.Logger // is told of requests and faults; nil is told nothing
}

const (
	maxBody = 1 << 20
	maxPage = 200
	page    = 50
)

// A ReadyCheck looks at something that the server needs.
type ReadyCheck struct {
	Check    func(context.Context) error
	Critical bool // without it the server cannot do its work
}

// A Server is an http.Handler. It may be used concurrently.
type Server struct {
	config  Config
	handler http.Handler
	api     huma.API
	tenants map[string]*tenant
	home    string // homeOf them
	limits  *limits
	parsed  parsed
	notes   notes
	jobs    *jobQueue
	dryRuns chan struct{} // has one for each that goes on
	closing chan struct{}
	close   func()

	metricsApart atomic.Bool // the metrics have a listener of their own

	needs map[string]permission // by the id of the operation
	mux   *http.ServeMux
	inner http.Handler // the operations, for whoever the context says
}

// New returns a Server.
func New(c Config) *Server {
	if c.WaitMax <= 0 {
		c.WaitMax = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, tenants: map[string]*tenant{}, needs: map[string]permission{}, closing: make(chan struct{}), dryRuns: make(chan struct{}, maxDryRuns), limits: newLimits(c.Rates, time.Now), parsed: parsed{list: lru.New[control.Hash, *machine.Machine](maxParsed)}}
	for _, t := range c.Tenants {
		s.tenants[t.Name] = s.newTenant(t)
	}
	s.home = homeOf(s.tenants)
	s.notes.tenant = s.home
	s.jobs = newJobs(s)
	s.close = sync.OnceFunc(func() { close(s.closing) })
	mux := http.NewServeMux()
	s.api = humago.New(mux, describe(c.Version))
	aliases(s.api.OpenAPI().Components.Schemas)
	s.api.UseMiddleware(s.acceptable)
	s.register()
	s.describeCallback()
	s.open()
	s.illustrate()
	s.plain(mux)
	s.mux = mux
	s.inner = s.recorded(mux)
	s.handler = s.wrap()
	return s
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler { return s.handler }

// A Listening says where and how a Server is reached.
type Listening struct {
	Listeners []net.Listener
	// Certificate returns that of the server, for each connection; nil serves without TLS.
	// Unix sockets go without in any case.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Grace       time.Duration // how long requests may go on when it ends
	// Metrics is where the metrics are shown, to whoever can reach it; nil shows them at the
	// Listeners, to whoever may read.
	Metrics net.Listener
}

// Serve answers requests until ctx ends. Then streams say goodbye, and requests that wait
// for a session answer with where it stands; those under way have l.Grace. The error is that
// of a listener or a certificate, nil if ctx ended it.
func (s *Server) Serve(ctx context.Context, l Listening) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	hs := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: l.Certificate},
	}
	var work sync.WaitGroup
	for _, at := range l.Listeners {
		work.Go(func() {
			at := netutil.LimitListener(at, maxConns)
			var err error
			if l.Certificate != nil && at.Addr().Network() != "unix" {
				err = hs.ServeTLS(at, "", "")
			} else {
				err = hs.Serve(at)
			}
			if !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	shown := s.showMetrics(&work, l.Metrics, stop)
	work.Go(func() { s.count(ctx) })
	<-ctx.Done()
	s.close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Grace)
	defer cancel()
	if hs.Shutdown(grace) != nil {
		_ = hs.Close() // who has had their time
	}
	_ = shown.Close()
	work.Wait()
	s.jobs.close()
	for _, t := range s.tenants {
		t.hub.close()
	}
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		return why
	}
	return nil
}

// showMetrics shows the metrics at a listener of their own, until what it returns is closed.
func (s *Server) showMetrics(work *sync.WaitGroup, at net.Listener, failed func(error)) io.Closer {
	mux := http.NewServeMux()
	hs := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: bodyTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	if at == nil || s.config.Metrics == nil {
		return hs
	}
	s.metricsApart.Store(true)
	mux.Handle("GET /metrics", s.config.Metrics)
	work.Go(func() {
		if err := hs.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	})
	return hs
}

// describe returns the settings of the OpenAPI document and of bodies.
func describe(version string) huma.Config {
	setHuma()
	c := huma.DefaultConfig("dialai", cmp.Or(version, "dev"))
	c.Info.Description = "Sessions, questions and rulings. docs/server.md is the guide."
	c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": {Marshal: marshal, Unmarshal: unmarshal}, "json": {Marshal: marshal, Unmarshal: unmarshal}}
	c.DefaultFormat = "application/json"
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.Parameters = map[string]*huma.Param{"tenant": {Name: tenantHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(100)},
		Description: "whose the request is, where a server has several tenants and the caller administers all of them"}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "a key of dialai keys, or that in the file server-key"}}
	return c
}

// inTenant are the parameters of every operation.
func inTenant() []*huma.Param { return []*huma.Param{{Ref: "#/components/parameters/tenant"}} }

// schemaName names a type in the document: by its own name where that of the API, a session
// or a step is meant, else with that of its package.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch pkg := path.Base(t.PkgPath()); pkg {
	case "guard", "specialist", "arbiter", "machine", "explain", "graph":
		return strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	return name
}

// setHuma sets what the library keeps for all that use it.
var setHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true // else another spelling is a member twice
	huma.NewErrorWithContext = requestProblem
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError { // what the document says that problems are
		return requestProblem(nil, status, message, errs...)
	}
})

// marshal writes a body as --json prints it.
func marshal(w io.Writer, v any) error { return text.WriteJSON(w, v) }

// unmarshal reads a body: one value, no duplicate members, not too deep.
func unmarshal(data []byte, v any) error {
	tidy, err := jsontext.Tidy(data)
	if err != nil {
		return err
	}
	err = json.Unmarshal(tidy, v)
	if unfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // such as 1e3, which the document has be a whole number
		return fmt.Errorf("/%s: %s is no value of this: write whole numbers in digits", strings.ReplaceAll(strings.TrimPrefix(unfit.Field, "."), ".", "/"), unfit.Value)
	}
	return err
}

// aliases says what types are in JSON that are something else in Go.
func aliases(schemas huma.Registry) {
	for _, a := range []struct{ of, as reflect.Type }{
		{reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]()},
		{reflect.TypeFor[exact.Money](), reflect.TypeFor[float64]()},
		{reflect.TypeFor[exact.Billionths](), reflect.TypeFor[float64]()},
		{reflect.TypeFor[machine.Threshold](), reflect.TypeFor[float64]()},
		{reflect.TypeFor[machine.Duration](), reflect.TypeFor[string]()},
		{reflect.TypeFor[json.Number](), reflect.TypeFor[float64]()},
		{reflect.TypeFor[specialist.Time](), reflect.TypeFor[time.Time]()},
		{reflect.TypeFor[specialist.SessionID](), reflect.TypeFor[string]()},
		{reflect.TypeFor[session.Status](), reflect.TypeFor[string]()},
	} {
		schemas.RegisterTypeAlias(a.of, a.as)
	}
}

// open lets answers have members that the document does not know: later versions add some.
func (s *Server) open() {
	schemas := s.api.OpenAPI().Components.Schemas.Map()
	asked := map[string]bool{}
	for _, item := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op == nil {
				continue
			}
			if made, there := op.Responses["201"], op.Responses["200"]; made != nil && there != nil && made.Content == nil {
				made.Content = there.Content // the same, of what was made
			}
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Content {
				mark(media.Schema, schemas, asked)
			}
		}
	}
	for name, schema := range schemas {
		if !asked[name] && schema.Type == huma.TypeObject && schema.AdditionalProperties == false {
			schema.AdditionalProperties = true
		}
	}
}

// mark adds the names of the schemas that one refers to.
func mark(schema *huma.Schema, all map[string]*huma.Schema, seen map[string]bool) {
	if schema == nil {
		return
	}
	if name := refName(schema.Ref); name != "" {
		if !seen[name] {
			seen[name] = true
			mark(all[name], all, seen)
		}
		return
	}
	mark(schema.Items, all, seen)
	for _, member := range schema.Properties {
		mark(member, all, seen)
	}
}

func refName(ref string) string {
	const prefix = "#/components/schemas/"
	if len(ref) > len(prefix) {
		return ref[len(prefix):]
	}
	return ""
}

// OpenAPI returns the document that describes the API, as JSON.
func (s *Server) OpenAPI() ([]byte, error) { return json.MarshalIndent(s.api.OpenAPI(), "", "  ") }

// plain adds what is no operation: health, and what explains a problem.
func (s *Server) plain(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	if s.config.Metrics != nil {
		mux.HandleFunc("GET /metrics", s.serveMetrics)
	}
	mux.HandleFunc("GET /problems/{code}", explainProblem)
	mux.HandleFunc("GET /machine.schema.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		w.Write(machine.FileSchema())
	})
	mux.HandleFunc("POST "+callbackPath, s.callback)
	mux.HandleFunc("POST /t/{tenant}"+callbackPath, s.callback)
	mux.HandleFunc("GET "+resourcePath, s.describeResource)
	mux.HandleFunc("GET "+resourcePath+"/mcp", s.describeResource)
	mux.HandleFunc("POST /mcp", s.serveMCP)
	mux.HandleFunc("/gates", noGates)
	mux.HandleFunc("/gates/", noGates)
	mux.Handle("GET /dashboard", http.RedirectHandler(desk.Path, http.StatusSeeOther))
	mux.Handle("GET "+desk.Path, desk.Handler())
	mux.HandleFunc("POST "+sessionPath, s.signIn)
	mux.HandleFunc("DELETE "+sessionPath, s.signOut)
	mux.HandleFunc("GET "+sessionPath, func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, &api.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "a sign-in is made by POST, and ended by DELETE", ExitCode: 2})
	})
	mux.HandleFunc("GET /desk/login", s.beginLogin)
	mux.HandleFunc("GET "+callbackLogin, s.endLogin)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if wantsPage(r) {
			http.Redirect(w, r, desk.Path, http.StatusSeeOther)
			return
		}
		if forDIAL(r.URL.Path) {
			s.serveDIAL(w, r)
			return
		}
		nothingHere(mux, w, r)
	})
}

// wantsPage reports whether a browser asks for what is at the root.
func wantsPage(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// nothingHere answers where no route does: with the methods that there are, if the path is one.
func nothingHere(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := mux.Handler(other); pattern != "/" {
			methods = append(methods, m)
		}
	}
	if len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		writeProblem(w, r, &api.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: r.Method + " is not for this path", Hint: "it takes " + strings.Join(methods, ", "), ExitCode: 2})
		return
	}
	writeProblem(w, r, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "nothing is here", Hint: "/openapi.json has the paths; /v1 is where they begin"})
}
