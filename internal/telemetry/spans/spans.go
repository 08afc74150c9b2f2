// Package spans tells OpenTelemetry of the requests of a server and of the steps of sessions,
// without texts. It uses the API only: without a provider that somebody has set up globally it
// does nothing.
package spans

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A trace begins with a request, or with what its header traceparent names, or the member of
// _meta of a request of the Model Context Protocol. What the request
// commits to a session is part of it, and so is the step that the commit leads to, by whomever
// it is made in this process: who committed last is remembered for each session. What services
// and models are asked carries the trace on, and so do messages to webhooks.

const (
	scope       = "github.com/dialai/dialai/internal/telemetry/spans"
	sessionID   = "dialai.session.id"
	machineName = "dialai.machine.name"
	state       = "dialai.machine.state"
	round       = "dialai.round"

	remembered = 1 << 13 // sessions of which it is known what led to their next step
)

// Spans are told of requests and of parts of steps. They may be used concurrently.
type Spans struct {
	tracer trace.Tracer

	mu   sync.Mutex
	last *lru.Cache[specialist.SessionID, trace.SpanContext]
}

// New returns Spans that use the provider which is set up globally now.
func New() *Spans {
	return &Spans{tracer: otel.Tracer(scope), last: lru.New[specialist.SessionID, trace.SpanContext](remembered)}
}

var propagator propagation.TraceContext

// Request begins the span of a request. id is that of its trace; end is called with the route
// and the status of the answer.
func (s *Spans) Request(r *http.Request) (ctx context.Context, id string, end func(route string, status int)) {
	ctx = propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	if c := span.SpanContext(); c.HasTraceID() {
		id = c.TraceID().String()
	}
	return ctx, id, func(route string, status int) {
		if span.IsRecording() {
			span.SetName(route)
			span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
			if status >= 500 {
				span.SetStatus(codes.Error, http.StatusText(status))
			}
		}
		span.End()
	}
}

// Call begins the span of a request of the Model Context Protocol: of the trace that traceparent
// names, else of that of ctx. end is called with the method and the tool, "" for none, and whether
// it came to "ok", "refused" or "error".
func (s *Spans) Call(ctx context.Context, traceparent string) (_ context.Context, end func(method, tool, result string)) {
	ctx = propagator.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	ctx, span := s.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(method, tool, result string) {
		if span.IsRecording() {
			span.SetName(strings.TrimSuffix(method+" "+tool, " "))
			if result == "error" {
				span.SetStatus(codes.Error, "") // not its text, which may hold what was said
			}
		}
		span.End()
	}
}

// Traceparent returns what names the trace of which something was last committed to a session by
// this process, as W3C Trace Context writes it; "" if none is known.
func (s *Spans) Traceparent(id specialist.SessionID) string {
	s.mu.Lock()
	last, _ := s.last.Get(id)
	s.mu.Unlock()
	carrier := propagation.MapCarrier{}
	propagator.Inject(trace.ContextWithRemoteSpanContext(context.Background(), last), carrier)
	return carrier["traceparent"]
}

// Part begins the span of a part of a step; it is the Trace of a runner.Config.
func (s *Spans) Part(ctx context.Context, p runner.Part) (context.Context, func(error)) {
	if p.Name == runner.PartStep && !trace.SpanContextFromContext(ctx).IsValid() {
		s.mu.Lock()
		led, _ := s.last.Get(p.Session)
		s.mu.Unlock()
		ctx = trace.ContextWithRemoteSpanContext(ctx, led)
	}
	ctx, span := s.tracer.Start(ctx, p.Name)
	if span.IsRecording() {
		span.SetAttributes(attribute.String(sessionID, p.Session.String()), attribute.String(machineName, p.MachineName), attribute.String(state, p.State), attribute.Int(round, int(p.Round)))
	}
	at := span.SpanContext()
	switch {
	case !at.IsValid():
	case p.Name == runner.PartCommit:
		s.mu.Lock()
		s.last.Put(p.Session, at)
		s.mu.Unlock()
	case p.Name == runner.PartAsk || p.Name == runner.PartGate:
		carrier := propagation.MapCarrier{}
		propagator.Inject(ctx, carrier)
		ctx = webhook.WithTraceparent(ctx, carrier["traceparent"])
	}
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "") // not its text, which may hold what was said
		}
		span.End()
	}
}
