package otlp_test

import (
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dialai/dialai/internal/otlp"
)

// everyKind are attributes of every kind there is, and what they are on the wire.
func everyKind() ([]attribute.KeyValue, []*common.KeyValue) {
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	whole := func(n int64) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
	}
	real := func(f float64) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: f}}
	}
	truth := func(b bool) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
	}
	list := func(v ...*common.AnyValue) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: v}}}
	}
	from := []attribute.KeyValue{
		attribute.String("text", "a \"quoted\"\n\u2028 ü text"), attribute.String("no text", ""),
		attribute.Bool("true", true), attribute.Bool("false", false),
		attribute.Int64("least", math.MinInt64), attribute.Int64("zero", 0), attribute.Int64("most", math.MaxInt64),
		attribute.Float64("pi", math.Pi), attribute.Float64("none", 0), attribute.Float64("huge", 1e300), attribute.Float64("endless", math.Inf(1)), attribute.Float64("below", math.Inf(-1)), attribute.Float64("none at all", math.NaN()),
		attribute.BoolSlice("truths", []bool{true, false}), attribute.Int64Slice("wholes", []int64{-1, 0, 1}),
		attribute.Float64Slice("reals", []float64{-0.5, 0}), attribute.StringSlice("texts", []string{"a", ""}), attribute.StringSlice("no texts", nil),
		{Key: "bytes", Value: attribute.ByteSliceValue([]byte{0, 255, 7})},
		{Key: "mixed", Value: attribute.SliceValue(attribute.StringValue("x"), attribute.Int64Value(3))},
		{Key: "map", Value: attribute.MapValue(attribute.Bool("inner", true))},
		{Key: "empty", Value: attribute.Value{}},
	}
	values := []*common.AnyValue{
		text("a \"quoted\"\n\u2028 ü text"), text(""), truth(true), truth(false),
		whole(math.MinInt64), whole(0), whole(math.MaxInt64),
		real(math.Pi), real(0), real(1e300), real(math.Inf(1)), real(math.Inf(-1)), real(math.NaN()),
		list(truth(true), truth(false)), list(whole(-1), whole(0), whole(1)), list(real(-0.5), real(0)), list(text("a"), text("")), list(),
		{Value: &common.AnyValue_BytesValue{BytesValue: []byte{0, 255, 7}}}, list(text("x"), whole(3)),
		{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: []*common.KeyValue{{Key: "inner", Value: truth(true)}}}}}, {},
	}
	var to []*common.KeyValue
	for i, kv := range from {
		to = append(to, &common.KeyValue{Key: string(kv.Key), Value: values[i]})
	}
	return from, to
}

func idOf(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spanContext returns a context with an id made of a digit, and a trace state.
func spanContext(t *testing.T, digit byte, remote bool) trace.SpanContext {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=" + string('a'+digit))
	if err != nil {
		t.Fatal(err)
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0: 0xab, 15: digit}, SpanID: trace.SpanID{0: 0xcd, 7: digit}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: remote,
	})
}

// TestEverySpanMember: what the protocol has for a span arrives, in every form.
func TestEverySpanMember(t *testing.T) {
	attributes, onWire := everyKind()
	start := time.Unix(1_700_000_000, 123_456_789)
	one := resource.NewWithAttributes("https://schema.example/1", attribute.String("service.name", "dialai"), attribute.Int("number", 1))
	two := resource.NewSchemaless(attribute.String("service.name", "other"))
	scope := instrumentation.Scope{Name: "scope", Version: "v1.2", SchemaURL: "https://schema.example/2", Attributes: attribute.NewSet(attribute.Bool("a", true))}
	full := tracetest.SpanStub{
		Name: "full", SpanContext: spanContext(t, 1, false), Parent: spanContext(t, 2, true), SpanKind: trace.SpanKindClient,
		StartTime: start, EndTime: start.Add(time.Second), Attributes: attributes,
		Events:            []sdk.Event{{Name: "event", Time: start.Add(1), Attributes: attributes[:2], DroppedAttributeCount: 5}},
		Links:             []sdk.Link{{SpanContext: spanContext(t, 3, true), Attributes: attributes[3:5], DroppedAttributeCount: 6}, {SpanContext: spanContext(t, 4, false)}},
		Status:            sdk.Status{Code: codes.Error, Description: "it broke"},
		DroppedAttributes: 7, DroppedEvents: 8, DroppedLinks: math.MaxUint32 + 1,
		Resource: one, InstrumentationScope: scope,
	}
	bare := tracetest.SpanStub{Name: "bare", SpanContext: spanContext(t, 5, false), Status: sdk.Status{Code: codes.Ok}, Resource: one, InstrumentationScope: scope}
	elsewhere := tracetest.SpanStub{SpanContext: spanContext(t, 6, false), SpanKind: trace.SpanKind(99), DroppedLinks: -1, Resource: one}
	others := tracetest.SpanStub{Name: "others", SpanContext: spanContext(t, 7, false), SpanKind: trace.SpanKindInternal, Resource: two}
	at := func(d time.Duration) uint64 { return uint64(start.Add(d).UnixNano()) }
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	want := &tracepb.ExportTraceServiceRequest{ResourceSpans: []*spans.ResourceSpans{
		{
			SchemaUrl: "https://schema.example/1",
			Resource: &resources.Resource{Attributes: []*common.KeyValue{
				{Key: "number", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 1}}}, text("service.name", "dialai"),
			}},
			ScopeSpans: []*spans.ScopeSpans{
				{
					SchemaUrl: "https://schema.example/2",
					Scope: &common.InstrumentationScope{Name: "scope", Version: "v1.2", Attributes: []*common.KeyValue{
						{Key: "a", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
					}},
					Spans: []*spans.Span{
						{
							TraceId: idOf(t, "ab000000000000000000000000000001"), SpanId: idOf(t, "cd00000000000001"), TraceState: "vendor=b",
							ParentSpanId: idOf(t, "cd00000000000002"), Name: "full", Kind: spans.Span_SPAN_KIND_CLIENT,
							StartTimeUnixNano: at(0), EndTimeUnixNano: at(time.Second), Attributes: onWire, DroppedAttributesCount: 7,
							Events:             []*spans.Span_Event{{TimeUnixNano: at(1), Name: "event", Attributes: onWire[:2], DroppedAttributesCount: 5}},
							DroppedEventsCount: 8, DroppedLinksCount: math.MaxUint32, Flags: 0x301,
							Links: []*spans.Span_Link{
								{TraceId: idOf(t, "ab000000000000000000000000000003"), SpanId: idOf(t, "cd00000000000003"), Attributes: onWire[3:5], DroppedAttributesCount: 6, Flags: 0x301},
								{TraceId: idOf(t, "ab000000000000000000000000000004"), SpanId: idOf(t, "cd00000000000004"), Flags: 0x101},
							},
							Status: &spans.Status{Message: "it broke", Code: spans.Status_STATUS_CODE_ERROR},
						},
						{TraceId: idOf(t, "ab000000000000000000000000000005"), SpanId: idOf(t, "cd00000000000005"), TraceState: "vendor=f", Name: "bare", Flags: 0x101, Status: &spans.Status{Code: spans.Status_STATUS_CODE_OK}},
					},
				},
				{Spans: []*spans.Span{{TraceId: idOf(t, "ab000000000000000000000000000006"), SpanId: idOf(t, "cd00000000000006"), TraceState: "vendor=g", Flags: 0x101, Status: &spans.Status{}}}},
			},
		},
		{
			Resource: &resources.Resource{Attributes: []*common.KeyValue{text("service.name", "other")}},
			ScopeSpans: []*spans.ScopeSpans{{Spans: []*spans.Span{
				{TraceId: idOf(t, "ab000000000000000000000000000007"), SpanId: idOf(t, "cd00000000000007"), TraceState: "vendor=h", Name: "others", Kind: spans.Span_SPAN_KIND_INTERNAL, Flags: 0x101, Status: &spans.Status{}},
			}}},
		},
	}}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			c := collect(t, nil)
			x, err := otlp.Traces(env(append(form, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)...))
			if err != nil {
				t.Fatal(err)
			}
			if err := x.ExportSpans(t.Context(), tracetest.SpanStubs{full, others, bare, elsewhere}.Snapshots()); err != nil {
				t.Fatal(err)
			}
			got := c.only(t).spans(t)
			slices.SortFunc(got.ResourceSpans, func(a, b *spans.ResourceSpans) int { return strings.Compare(b.SchemaUrl, a.SchemaUrl) })
			same(t, got, want)
		})
	}
}

// TestSpansOfTheSDK: a span that the SDK has made arrives as the SDK shows it.
func TestSpansOfTheSDK(t *testing.T) {
	c := collect(t, nil)
	x, err := otlp.Traces(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/elsewhere?tenant=7"))
	if err != nil {
		t.Fatal(err)
	}
	kept := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithBatcher(x), sdk.WithSyncer(kept))
	tracer := provider.Tracer("the scope", trace.WithInstrumentationVersion("v3"))
	ctx, parent := tracer.Start(t.Context(), "parent")
	_, child := tracer.Start(ctx, "child", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.StringSlice("list", []string{"a", "b"})))
	child.AddEvent("happened", trace.WithAttributes(attribute.Int("n", 3)))
	child.End()
	parent.End()
	stubs := kept.GetSpans() // which Shutdown forgets
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.ExportSpans(t.Context(), stubs.Snapshots()); err == nil {
		t.Error("an exporter that was shut down takes spans")
	}
	a := c.only(t)
	if a.path != "/elsewhere" || a.query != "tenant=7" || a.header.Get("User-Agent") != "dialai" {
		t.Errorf("it arrived at %s?%s from %q", a.path, a.query, a.header.Get("User-Agent"))
	}
	groups := a.spans(t).ResourceSpans
	if len(groups) != 1 || len(groups[0].ScopeSpans) != 1 || len(groups[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("arrived is %v", groups)
	}
	if s := groups[0].ScopeSpans[0].Scope; s.Name != "the scope" || s.Version != "v3" {
		t.Errorf("the scope is %v", s)
	}
	if n := len(groups[0].Resource.Attributes); n == 0 || groups[0].SchemaUrl == "" {
		t.Errorf("the resource has %d attributes, schema %q", n, groups[0].SchemaUrl)
	}
	for i, got := range groups[0].ScopeSpans[0].Spans {
		stub := stubs[i]
		id, parentID := stub.SpanContext.SpanID(), stub.Parent.SpanID()
		if got.Name != stub.Name || string(got.SpanId) != string(id[:]) || got.StartTimeUnixNano != uint64(stub.StartTime.UnixNano()) || got.EndTimeUnixNano != uint64(stub.EndTime.UnixNano()) {
			t.Errorf("span %d is %v, want %+v", i, got, stub)
		}
		if parentID.IsValid() != (len(got.ParentSpanId) > 0) || parentID.IsValid() && string(got.ParentSpanId) != string(parentID[:]) {
			t.Errorf("the parent of %s is %x", got.Name, got.ParentSpanId)
		}
	}
	if got := groups[0].ScopeSpans[0].Spans[0]; got.Kind != spans.Span_SPAN_KIND_SERVER || len(got.Events) != 1 || got.Events[0].Attributes[0].Value.GetIntValue() != 3 || len(got.Attributes[0].Value.GetArrayValue().Values) != 2 {
		t.Errorf("the child is %v", got)
	}
}
