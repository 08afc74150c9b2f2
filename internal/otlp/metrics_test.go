package otlp_test

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	values "go.opentelemetry.io/proto/otlp/metrics/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/dialai/dialai/internal/otlp"
)

func ptr(f float64) *float64 { return &f }

// everyMetric has every kind of metric that the SDK knows, with every member, and
// what they are on the wire.
func everyMetric(t *testing.T) ([]metricdata.Metrics, []*values.Metric) {
	t.Helper()
	start := time.Unix(1_700_000_000, 1)
	end := start.Add(time.Minute)
	from, to := uint64(start.UnixNano()), uint64(end.UnixNano())
	set := attribute.NewSet(attribute.String("k", "v"))
	attributes := []*common.KeyValue{{Key: "k", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "v"}}}}
	filtered := []attribute.KeyValue{attribute.Int("n", 4)}
	left := []*common.KeyValue{{Key: "n", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 4}}}}
	c := spanContext(t, 1, false)
	traceID, spanID := c.TraceID(), c.SpanID()
	wholeExemplars := []metricdata.Exemplar[int64]{{FilteredAttributes: filtered, Time: end, Value: -3, SpanID: spanID[:], TraceID: traceID[:]}, {}}
	realExemplars := []metricdata.Exemplar[float64]{{Time: end, Value: 0.25}}
	wantWhole := []*values.Exemplar{{FilteredAttributes: left, TimeUnixNano: to, Value: &values.Exemplar_AsInt{AsInt: -3}, SpanId: spanID[:], TraceId: traceID[:]}, {Value: &values.Exemplar_AsInt{}}}
	wantReal := []*values.Exemplar{{TimeUnixNano: to, Value: &values.Exemplar_AsDouble{AsDouble: 0.25}}}
	return []metricdata.Metrics{
			{Name: "whole gauge", Description: "d", Unit: "{u}", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: set, Time: end, Value: math.MinInt64, Exemplars: wholeExemplars}, {}}}},
			{Name: "real gauge", Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{StartTime: start, Time: end, Value: math.NaN(), Exemplars: realExemplars}, {}}}},
			{Name: "whole sum", Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{{StartTime: start, Time: end, Value: 7}}}},
			{Name: "real sum", Data: metricdata.Sum[float64]{Temporality: metricdata.DeltaTemporality, DataPoints: []metricdata.DataPoint[float64]{{StartTime: start, Time: end, Value: -0.5}}}},
			{Name: "no points", Data: metricdata.Sum[float64]{Temporality: metricdata.DeltaTemporality}},
			{Name: "whole histogram", Data: metricdata.Histogram[int64]{Temporality: metricdata.DeltaTemporality, DataPoints: []metricdata.HistogramDataPoint[int64]{
				{Attributes: set, StartTime: start, Time: end, Count: 3, Sum: 0, Bounds: []float64{0, 2.5}, BucketCounts: []uint64{1, 0, math.MaxUint64}, Min: metricdata.NewExtrema[int64](0), Max: metricdata.NewExtrema[int64](9), Exemplars: wholeExemplars},
				{},
			}}},
			{Name: "real histogram", Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{
				{StartTime: start, Time: end, Count: 1, Sum: math.Inf(1), Exemplars: realExemplars},
			}}},
			{Name: "whole exponential", Data: metricdata.ExponentialHistogram[int64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.ExponentialHistogramDataPoint[int64]{
				{
					Attributes: set, StartTime: start, Time: end, Count: 12, Sum: 40, Scale: -3, ZeroCount: 2, ZeroThreshold: 0.125,
					PositiveBucket: metricdata.ExponentialBucket{Offset: -4, Counts: []uint64{1, 0, 300}}, NegativeBucket: metricdata.ExponentialBucket{Offset: 5, Counts: []uint64{1}},
					Min: metricdata.NewExtrema[int64](-2), Max: metricdata.NewExtrema[int64](8), Exemplars: wholeExemplars,
				},
				{},
			}}},
			{Name: "real exponential", Data: metricdata.ExponentialHistogram[float64]{Temporality: metricdata.DeltaTemporality, DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{Scale: 20, Sum: 1.5, Exemplars: realExemplars}}}},
			{Name: "summary", Data: metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{
				{Attributes: set, StartTime: start, Time: end, Count: 5, Sum: 2.5, QuantileValues: []metricdata.QuantileValue{{Quantile: 0, Value: 0}, {Quantile: 0.99, Value: 4}}},
			}}},
		}, []*values.Metric{
			{Name: "whole gauge", Description: "d", Unit: "{u}", Data: &values.Metric_Gauge{Gauge: &values.Gauge{DataPoints: []*values.NumberDataPoint{
				{Attributes: attributes, TimeUnixNano: to, Value: &values.NumberDataPoint_AsInt{AsInt: math.MinInt64}, Exemplars: wantWhole}, {Value: &values.NumberDataPoint_AsInt{}},
			}}}},
			{Name: "real gauge", Data: &values.Metric_Gauge{Gauge: &values.Gauge{DataPoints: []*values.NumberDataPoint{
				{StartTimeUnixNano: from, TimeUnixNano: to, Value: &values.NumberDataPoint_AsDouble{AsDouble: math.NaN()}, Exemplars: wantReal}, {Value: &values.NumberDataPoint_AsDouble{}},
			}}}},
			{Name: "whole sum", Data: &values.Metric_Sum{Sum: &values.Sum{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, IsMonotonic: true, DataPoints: []*values.NumberDataPoint{
				{StartTimeUnixNano: from, TimeUnixNano: to, Value: &values.NumberDataPoint_AsInt{AsInt: 7}},
			}}}},
			{Name: "real sum", Data: &values.Metric_Sum{Sum: &values.Sum{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: []*values.NumberDataPoint{
				{StartTimeUnixNano: from, TimeUnixNano: to, Value: &values.NumberDataPoint_AsDouble{AsDouble: -0.5}},
			}}}},
			{Name: "no points", Data: &values.Metric_Sum{Sum: &values.Sum{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA}}},
			{Name: "whole histogram", Data: &values.Metric_Histogram{Histogram: &values.Histogram{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: []*values.HistogramDataPoint{
				{Attributes: attributes, StartTimeUnixNano: from, TimeUnixNano: to, Count: 3, Sum: ptr(0), ExplicitBounds: []float64{0, 2.5}, BucketCounts: []uint64{1, 0, math.MaxUint64}, Min: ptr(0), Max: ptr(9), Exemplars: wantWhole},
				{Sum: ptr(0)},
			}}}},
			{Name: "real histogram", Data: &values.Metric_Histogram{Histogram: &values.Histogram{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*values.HistogramDataPoint{
				{StartTimeUnixNano: from, TimeUnixNano: to, Count: 1, Sum: ptr(math.Inf(1)), Exemplars: wantReal},
			}}}},
			{Name: "whole exponential", Data: &values.Metric_ExponentialHistogram{ExponentialHistogram: &values.ExponentialHistogram{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*values.ExponentialHistogramDataPoint{
				{
					Attributes: attributes, StartTimeUnixNano: from, TimeUnixNano: to, Count: 12, Sum: ptr(40), Scale: -3, ZeroCount: 2, ZeroThreshold: 0.125,
					Positive: &values.ExponentialHistogramDataPoint_Buckets{Offset: -4, BucketCounts: []uint64{1, 0, 300}}, Negative: &values.ExponentialHistogramDataPoint_Buckets{Offset: 5, BucketCounts: []uint64{1}},
					Min: ptr(-2), Max: ptr(8), Exemplars: wantWhole,
				},
				{Sum: ptr(0), Positive: &values.ExponentialHistogramDataPoint_Buckets{}, Negative: &values.ExponentialHistogramDataPoint_Buckets{}},
			}}}},
			{Name: "real exponential", Data: &values.Metric_ExponentialHistogram{ExponentialHistogram: &values.ExponentialHistogram{AggregationTemporality: values.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: []*values.ExponentialHistogramDataPoint{
				{Scale: 20, Sum: ptr(1.5), Exemplars: wantReal, Positive: &values.ExponentialHistogramDataPoint_Buckets{}, Negative: &values.ExponentialHistogramDataPoint_Buckets{}},
			}}}},
			{Name: "summary", Data: &values.Metric_Summary{Summary: &values.Summary{DataPoints: []*values.SummaryDataPoint{
				{Attributes: attributes, StartTimeUnixNano: from, TimeUnixNano: to, Count: 5, Sum: 2.5, QuantileValues: []*values.SummaryDataPoint_ValueAtQuantile{{}, {Quantile: 0.99, Value: 4}}},
			}}}},
		}
}

// TestEveryMetric: every kind of metric arrives with every member, in every form.
func TestEveryMetric(t *testing.T) {
	data, onWire := everyMetric(t)
	scope := instrumentation.Scope{Name: "scope", Version: "v1", SchemaURL: "https://schema.example/2"}
	sent := &metricdata.ResourceMetrics{
		Resource:     resource.NewWithAttributes("https://schema.example/1", attribute.String("service.name", "dialai")),
		ScopeMetrics: []metricdata.ScopeMetrics{{Scope: scope, Metrics: data}, {Scope: instrumentation.Scope{Name: "silent"}}},
	}
	want := &metricspb.ExportMetricsServiceRequest{ResourceMetrics: []*values.ResourceMetrics{{
		SchemaUrl: "https://schema.example/1",
		Resource: &resources.Resource{Attributes: []*common.KeyValue{
			{Key: "service.name", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "dialai"}}},
		}},
		ScopeMetrics: []*values.ScopeMetrics{{Scope: &common.InstrumentationScope{Name: "scope", Version: "v1"}, SchemaUrl: "https://schema.example/2", Metrics: onWire}, {Scope: &common.InstrumentationScope{Name: "silent"}}},
	}}}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			c := collect(t, nil)
			x, err := otlp.Metrics(env(append(form, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/base/")...))
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Export(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			a := c.only(t)
			same(t, a.metrics(t), want)
			if a.path != "/base/v1/metrics" {
				t.Errorf("it arrived at %s", a.path)
			}
			if err := errors.Join(x.ForceFlush(t.Context()), x.Shutdown(t.Context()), x.Shutdown(t.Context())); err != nil {
				t.Error(err)
			}
			if err := x.Export(t.Context(), sent); !errors.Is(err, otlp.ErrShutdown) {
				t.Errorf("after Shutdown it says %v", err)
			}
		})
	}
}

// TestUnknownMetrics: what the protocol does not have is told, and the rest is sent.
func TestUnknownMetrics(t *testing.T) {
	c := collect(t, nil)
	x, err := otlp.Metrics(env("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL))
	if err != nil {
		t.Fatal(err)
	}
	known := metricdata.Metrics{Name: "known", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Value: 1}}}}
	timeless := metricdata.Metrics{Name: "timeless", Data: metricdata.Sum[int64]{}}
	nothing := metricdata.Metrics{Name: "nothing"}
	of := func(m ...metricdata.Metrics) *metricdata.ResourceMetrics {
		return &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: m}}}
	}
	err = x.Export(t.Context(), of(timeless, known, nothing))
	if err == nil || !strings.Contains(err.Error(), "unknown temporality: undefinedTemporality") || !strings.Contains(err.Error(), "unknown aggregation: <nil>") {
		t.Errorf("the error is %v", err)
	}
	if got := c.only(t).metrics(t).ResourceMetrics[0].ScopeMetrics[0].Metrics; len(got) != 1 || got[0].Name != "known" {
		t.Errorf("arrived is %v", got)
	}
	if err := x.Export(t.Context(), &metricdata.ResourceMetrics{}); err != nil {
		t.Error(err)
	}
	c.only(t) // nothing was sent for that one
	if err := x.Export(t.Context(), of(nothing)); err == nil {
		t.Error("nothing to send, and nothing said")
	}
}

// TestMetricsOfTheSDK: the SDK counts as the variables say, and what it counted
// arrives with the span that it belongs to.
func TestMetricsOfTheSDK(t *testing.T) {
	for _, c := range []struct {
		temporality, histogram string
		counter, upDown, hist  metricdata.Temporality
		exponential            bool
	}{
		{"", "", metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, false},
		{"cumulative", "explicit_bucket_histogram", metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, false},
		{" Delta ", "Base2_Exponential_Bucket_Histogram", metricdata.DeltaTemporality, metricdata.CumulativeTemporality, metricdata.DeltaTemporality, true},
		{"lowmemory", "", metricdata.DeltaTemporality, metricdata.CumulativeTemporality, metricdata.DeltaTemporality, false},
	} {
		t.Run(c.temporality, func(t *testing.T) {
			at := collect(t, nil)
			t.Setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", c.temporality)
			t.Setenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", c.histogram)
			x, err := otlp.Metrics(otlp.Env{ReadFile: os.ReadFile, Lookup: func(name string) string {
				if name == "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" {
					return at.URL
				}
				return os.Getenv(name)
			}})
			if err != nil {
				t.Fatal(err)
			}
			provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(x)))
			meter := provider.Meter("m")
			counter, err1 := meter.Int64Counter("counter")
			upDown, err2 := meter.Float64UpDownCounter("up.and.down")
			histogram, err3 := meter.Int64Histogram("histogram", api.WithUnit("{token}"))
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			ctx := trace.ContextWithSpanContext(t.Context(), spanContext(t, 1, false))
			counter.Add(ctx, 3, api.WithAttributes(attribute.String("a", "b")))
			upDown.Add(ctx, -0.5)
			histogram.Record(ctx, 30)
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := at.only(t)
			if a.path != "/" && a.path != "" {
				t.Errorf("it arrived at %s", a.path)
			}
			list := a.metrics(t).ResourceMetrics[0].ScopeMetrics[0].Metrics
			if len(list) != 3 {
				t.Fatalf("arrived is %v", list)
			}
			wire := func(t metricdata.Temporality) values.AggregationTemporality {
				return map[metricdata.Temporality]values.AggregationTemporality{metricdata.CumulativeTemporality: 2, metricdata.DeltaTemporality: 1}[t]
			}
			sum := list[0].GetSum()
			if p := sum.GetDataPoints(); !sum.GetIsMonotonic() || sum.AggregationTemporality != wire(c.counter) || p[0].GetAsInt() != 3 || p[0].Attributes[0].Key != "a" || len(p[0].Exemplars) != 1 || len(p[0].Exemplars[0].TraceId) != 16 {
				t.Errorf("the counter is %v", list[0])
			}
			if s := list[1].GetSum(); s.GetIsMonotonic() || s.AggregationTemporality != wire(c.upDown) || s.DataPoints[0].GetAsDouble() != -0.5 {
				t.Errorf("the counter that goes up and down is %v", list[1])
			}
			if c.exponential {
				if h := list[2].GetExponentialHistogram(); h.GetAggregationTemporality() != wire(c.hist) || h.DataPoints[0].GetSum() != 30 || len(h.DataPoints[0].Positive.BucketCounts) != 1 || h.DataPoints[0].Scale != 20 {
					t.Errorf("the histogram is %v", list[2])
				}
			} else if h := list[2].GetHistogram(); h.GetAggregationTemporality() != wire(c.hist) || h.DataPoints[0].GetMax() != 30 || len(h.DataPoints[0].BucketCounts) != len(h.DataPoints[0].ExplicitBounds)+1 || list[2].Unit != "{token}" {
				t.Errorf("the histogram is %v", list[2])
			}
		})
	}
}

// TestJSONForm: JSON is as the specification of OTLP has it, where that is not what
// protobuf's own has.
func TestJSONForm(t *testing.T) {
	data, _ := everyMetric(t)
	c := collect(t, nil)
	x, err := otlp.Metrics(env("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Export(t.Context(), &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: data}}}); err != nil {
		t.Fatal(err)
	}
	got := string(c.only(t).body)
	for _, want := range []string{
		`"traceId":"ab000000000000000000000000000001"`, `"spanId":"cd00000000000001"`, `"aggregationTemporality":2`, `"asInt":"-9223372036854775808"`,
		`"asDouble":"NaN"`, `"sum":"Infinity"`, `"bucketCounts":["1","0","18446744073709551615"]`, `"explicitBounds":[0,2.5]`, `"scale":-3`, `"timeUnixNano":"1700000060000000001"`, `"isMonotonic":true`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}
