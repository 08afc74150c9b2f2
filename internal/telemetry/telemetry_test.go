package telemetry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dialai/dialai/internal/telemetry"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
)

// observed asks a model once and returns the span and the metrics that come of it.
func observed(t *testing.T, content bool, reply llmtest.Reply) (tracetest.SpanStub, metricdata.ResourceMetrics) {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	s, err := llmtest.Start(llmtest.Script(reply))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := llm.New(llm.Config{
		Lookup:    func(name string) (string, bool) { return "sk-secret-key", name == "GEMINI_API_KEY" },
		Endpoints: map[string]string{"google": s.URL}, Observe: telemetry.Models(content),
	})
	m, err := c.Model("google/gemini-2.5-flash", "")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = m.Ask(t.Context(), &llm.Request{System: "be kind", User: "my card is 4111", Seed: 5, Purpose: llm.Ask, // what comes of it is in the span
		Origin: llm.Origin{SessionID: "the-session", SpecialistID: "reader", MachineName: "desk", State: "open", Round: 2}})
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &metrics); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.GetSpans()); n != 1 {
		t.Fatalf("%d spans", n)
	}
	return spans.GetSpans()[0], metrics
}

func texts(list []attribute.KeyValue) string {
	var b strings.Builder
	for _, kv := range list {
		fmt.Fprintf(&b, "%s=%s\n", kv.Key, kv.Value.String())
	}
	return b.String()
}

// TestSpan: the names of the conventions, and no content unless it is asked for.
func TestSpan(t *testing.T) {
	reply := llmtest.Reply{Text: "very private", Usage: llmtest.Usage{Input: 500, Output: 20, Cached: 100}}
	span, _ := observed(t, false, reply)
	if span.Name != "chat gemini-2.5-flash" || span.SpanKind.String() != "client" || span.Status.Code.String() != "Unset" {
		t.Errorf("the span is %q, %s, %v", span.Name, span.SpanKind, span.Status)
	}
	got := texts(span.Attributes)
	for _, want := range []string{
		"gen_ai.operation.name=chat", "gen_ai.provider.name=gcp.gemini", "gen_ai.request.model=gemini-2.5-flash", "gen_ai.response.model=gemini-2.5-flash",
		"gen_ai.request.max_tokens=1024", "gen_ai.request.temperature=0", "gen_ai.request.seed=5", "gen_ai.response.id=gen_1", `gen_ai.response.finish_reasons=["stop"]`,
		"gen_ai.usage.input_tokens=500", "gen_ai.usage.output_tokens=20", "gen_ai.usage.cache_read.input_tokens=100", "gen_ai.conversation.id=the-session",
		"dialai.specialist.id=reader", "dialai.machine.name=desk", "dialai.machine.state=open", "dialai.round=2", "dialai.purpose=ask", "server.address=127.0.0.1", "server.port=",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	for _, content := range []string{"private", "4111", "be kind", "secret-key"} {
		if strings.Contains(got, content) {
			t.Errorf("%q is in the span:\n%s", content, got)
		}
	}
	span, _ = observed(t, true, reply)
	got = texts(span.Attributes)
	for _, want := range []string{`gen_ai.system_instructions=[{"role":"system","parts":[{"type":"text","content":"be kind"}]}]`, `"content":"my card is 4111"`, `gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"very private"}]}]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret-key") {
		t.Error("the key is in the span")
	}
}

// TestFailedSpan: a failure has its kind, and not its text.
func TestFailedSpan(t *testing.T) {
	span, metrics := observed(t, false, llmtest.Reply{Status: 401, Body: `very private`})
	if got := texts(span.Attributes); !strings.Contains(got, "error.type=401") || span.Status.Code.String() != "Error" || strings.Contains(got+span.Status.Description, "private") {
		t.Errorf("%v\n%s", span.Status, got)
	}
	if names := histograms(metrics); names["gen_ai.client.operation.duration"] != 1 || names["gen_ai.client.token.usage"] != 0 {
		t.Errorf("recorded is %v", names)
	}
}

// histograms returns how often each was recorded.
func histograms(m metricdata.ResourceMetrics) map[string]uint64 {
	n := map[string]uint64{}
	for _, scope := range m.ScopeMetrics {
		for _, one := range scope.Metrics {
			switch data := one.Data.(type) {
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					n[one.Name] += p.Count
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					n[one.Name] += p.Count
				}
			}
		}
	}
	return n
}

// TestMetrics: tokens of both kinds, and seconds.
func TestMetrics(t *testing.T) {
	_, metrics := observed(t, false, llmtest.Reply{Text: "x"})
	if names := histograms(metrics); names["gen_ai.client.operation.duration"] != 1 || names["gen_ai.client.token.usage"] != 2 {
		t.Errorf("recorded is %v", names)
	}
}
