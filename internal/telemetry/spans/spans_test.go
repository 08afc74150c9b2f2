package spans_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dialai/dialai/internal/telemetry/spans"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// TestTraceOfARequest: what a caller's trace has led to is part of it: the request, what it
// commits, the step that another goroutine makes of it, and what a service is asked then.
func TestTraceOfARequest(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	s := spans.New()
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := httptest.NewRequest("POST", "/v1/sessions", nil)
	r.Header.Set("traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")
	ctx, id, end := s.Request(r)
	if id != traceID {
		t.Errorf("the request is of trace %s", id)
	}
	part := runner.Part{Session: specialist.SessionID{1}, MachineName: "claims", State: "review", Round: 1}
	named := func(name string) runner.Part { p := part; p.Name = name; return p }
	_, committed := s.Part(ctx, named(runner.PartCommit))
	committed(nil)
	end("POST /v1/sessions", 201)

	step, stepped := s.Part(t.Context(), named(runner.PartStep)) // of the driver
	ask, asked := s.Part(step, named(runner.PartAsk))
	sent := ""
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Traceparent") }))
	defer service.Close()
	target, err := webhook.OperatorOutbound(nil, service.URL).Target(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Post(ask, nil, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	asked(errors.New("a secret that was said"))
	stepped(nil)
	if !strings.HasPrefix(sent, "00-"+traceID+"-") {
		t.Errorf("the service is told %q", sent)
	}
	want := map[string]bool{"commit": true, "POST /v1/sessions": true, "ask": true, "dialai.step": true}
	for _, span := range recorder.Ended() {
		if delete(want, span.Name()); span.SpanContext().TraceID().String() != traceID {
			t.Errorf("%s is of trace %s", span.Name(), span.SpanContext().TraceID())
		}
		if strings.Contains(span.Status().Description, "secret") {
			t.Errorf("%s has what was said: %s", span.Name(), span.Status().Description)
		}
	}
	if len(want) > 0 {
		t.Errorf("there is no span %v", want)
	}
	if told := s.Traceparent(part.Session); !strings.HasPrefix(told, "00-"+traceID+"-") {
		t.Errorf("webhooks are told %q", told)
	}
	if told := s.Traceparent(specialist.SessionID{2}); told != "" {
		t.Errorf("of a session of which nothing is known webhooks are told %q", told)
	}
	if _, err := target.Post(t.Context(), nil, []byte("{}")); err != nil || sent != "" {
		t.Errorf("without a trace the service is told %q (%v)", sent, err)
	}
}
