// Package otlp sends traces and metrics to a collector: OTLP over HTTP, as binary
// protobuf or as JSON. It has what the SDK of OpenTelemetry wants of an exporter and
// nothing else, in particular no gRPC.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
)

// ErrShutdown is returned by exports after Shutdown.
var ErrShutdown = errors.New("the exporter was shut down")

// Traces returns an exporter for spans, set up by the standard variables for traces. Those
// that the SDK reads itself are only checked. An error names the variable that is wrong and never holds a secret. The exporter
// may be used concurrently; its errors hold neither headers nor what was sent.
func Traces(e Env) (trace.SpanExporter, error) {
	s, err := e.sender(traces)
	if err = errors.Join(err, e.sampler(), e.resource(), e.numbers(spanNumbers)); err != nil {
		return nil, err
	}
	return &spanExporter{s}, nil
}

// Metrics returns an exporter for metrics, set up by the standard variables for
// metrics, under the promises of [Traces].
func Metrics(e Env) (metric.Exporter, error) {
	s, err := e.sender(metrics)
	if err = errors.Join(err, e.resource(), e.numbers(metricNumbers)); err != nil {
		return nil, err
	}
	x := &metricExporter{sender: s}
	if x.temporality, err = e.temporality(); err != nil {
		return nil, err
	}
	if x.aggregation, err = e.aggregation(); err != nil {
		return nil, err
	}
	return x, nil
}

type spanExporter struct{ sender *sender }

// ExportSpans implements trace.SpanExporter.
func (x *spanExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if x.sender.stopped() {
		return ErrShutdown
	}
	if len(spans) == 0 {
		return nil
	}
	return x.sender.send(ctx, spanRequest(spans))
}

// Shutdown implements trace.SpanExporter.
func (x *spanExporter) Shutdown(ctx context.Context) error { return x.sender.shutdown(ctx) }

type metricExporter struct {
	sender      *sender
	temporality metric.TemporalitySelector
	aggregation metric.AggregationSelector
}

// Temporality implements metric.Exporter.
func (x *metricExporter) Temporality(k metric.InstrumentKind) metricdata.Temporality {
	return x.temporality(k)
}

// Aggregation implements metric.Exporter.
func (x *metricExporter) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return x.aggregation(k)
}

// Export implements metric.Exporter. What the protocol does not have is left out and
// told in the error; without any metric nothing is sent.
func (x *metricExporter) Export(ctx context.Context, r *metricdata.ResourceMetrics) error {
	if x.sender.stopped() {
		return ErrShutdown
	}
	request, err := metricRequest(r)
	if len(request) == 0 {
		return err
	}
	return errors.Join(err, x.sender.send(ctx, request))
}

// ForceFlush implements metric.Exporter; nothing is kept that could be flushed.
func (x *metricExporter) ForceFlush(ctx context.Context) error { return ctx.Err() }

// Shutdown implements metric.Exporter.
func (x *metricExporter) Shutdown(ctx context.Context) error { return x.sender.shutdown(ctx) }

// temporality reads how values are counted: from the beginning, or since the last
// time.
func (e Env) temporality() (metric.TemporalitySelector, error) {
	const name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	switch v := e.lower(name); v {
	case "", "cumulative":
		return metric.CumulativeTemporalitySelector, nil
	case "delta":
		return metric.DeltaTemporalitySelector, nil
	case "lowmemory":
		return metric.LowMemoryTemporalitySelector, nil
	default:
		return nil, wrong(name, v, "cumulative", "delta", "lowmemory")
	}
}

// aggregation reads what histograms become.
func (e Env) aggregation() (metric.AggregationSelector, error) {
	const name = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
	switch v := e.lower(name); v {
	case "", "explicit_bucket_histogram":
		return metric.DefaultAggregationSelector, nil
	case "base2_exponential_bucket_histogram":
		return exponential, nil
	default:
		return nil, wrong(name, v, "explicit_bucket_histogram", "base2_exponential_bucket_histogram")
	}
}

// exponential is the default but for histograms, whose size and scale are those that
// the specification has for the SDK.
func exponential(k metric.InstrumentKind) metric.Aggregation {
	if k == metric.InstrumentKindHistogram {
		return metric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
	}
	return metric.DefaultAggregationSelector(k)
}

// wrong says that a variable is none of the values that it may have.
func wrong(name, value string, allowed ...string) error {
	list := slices.Clone(allowed)
	for i, v := range list {
		list[i] = fmt.Sprintf("%q", v)
	}
	last := len(list) - 1
	text := list[last]
	if last > 0 {
		for _, v := range slices.Backward(list[:last]) {
			sep := ", "
			if text == list[last] {
				sep = " or "
			}
			text = v + sep + text
		}
	}
	return fmt.Errorf("%s is %q, it must be %s", name, value, text)
}
