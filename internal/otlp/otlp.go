// Package otlp sends traces and metrics to a collector: OTLP over HTTP, as binary
// protobuf or as JSON. The exporters of OpenTelemetry write what is sent; that it goes
// out as every call of the program does, and what is said if it does not, is decided
// here.
package otlp

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/dialai/dialai/webhook"
)

// ErrShutdown is returned by exports after Shutdown.
var ErrShutdown = errors.New("the exporter was shut down")

// nowhere is the address that the exporters of OpenTelemetry are given. They read the
// standard variables too: what these say of address, form and attempts is overruled, since
// where requests really go, and how, is the sender's to know.
const nowhere = "https://collector.invalid"

// Traces returns an exporter for spans, set up by the standard variables for traces. Those
// that the SDK reads itself are only checked. An error names the variable that is wrong and never holds a secret. The exporter
// may be used concurrently; its errors hold neither headers nor what was sent.
func Traces(e Env) (trace.SpanExporter, error) {
	s, err := e.sender(traces)
	if err = errors.Join(err, e.sampler(), e.resource(), e.numbers(spanNumbers)); err != nil {
		return nil, err
	}
	x, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(nowhere), otlptracehttp.WithHTTPClient(webhook.ClientOf(s.send)),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	return &spanExporter{x, s}, err
}

// Metrics returns an exporter for metrics, set up by the standard variables for
// metrics, under the promises of [Traces].
func Metrics(e Env) (metric.Exporter, error) {
	s, err := e.sender(metrics)
	if err = errors.Join(err, e.resource(), e.numbers(metricNumbers), e.aggregations()); err != nil {
		return nil, err
	}
	x, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(nowhere), otlpmetrichttp.WithHTTPClient(webhook.ClientOf(s.send)),
		otlpmetrichttp.WithCompression(otlpmetrichttp.NoCompression), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	return &metricExporter{x, s}, err
}

type spanExporter struct {
	*otlptrace.Exporter
	sender *sender
}

// ExportSpans implements trace.SpanExporter.
func (x *spanExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	return cause(x.Exporter.ExportSpans(ctx, spans))
}

// Shutdown implements trace.SpanExporter.
func (x *spanExporter) Shutdown(ctx context.Context) error { return x.sender.shutdown(ctx) }

type metricExporter struct {
	*otlpmetrichttp.Exporter
	sender *sender
}

// Export implements metric.Exporter. What the protocol does not have is left out and
// told in the error; without any metric nothing is sent.
func (x *metricExporter) Export(ctx context.Context, r *metricdata.ResourceMetrics) error {
	if !slices.ContainsFunc(r.ScopeMetrics, func(s metricdata.ScopeMetrics) bool { return len(s.Metrics) > 0 }) && !x.sender.stopped.Load() {
		return nil
	}
	return cause(x.Exporter.Export(ctx, r))
}

// Shutdown implements metric.Exporter.
func (x *metricExporter) Shutdown(ctx context.Context) error { return x.sender.shutdown(ctx) }

// cause returns the sender's own error, without what was put before it on its way through
// the exporters of OpenTelemetry.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
