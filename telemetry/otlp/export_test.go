package otlp

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Hasten has an exporter wait hardly at all between attempts.
func Hasten(exporter any) {
	switch x := exporter.(type) {
	case *spanExporter:
		x.sender.retry.Base = time.Microsecond
	case *metricExporter:
		x.sender.retry.Base = time.Microsecond
	}
}

// AnswerOf returns what is read of an answer to a request that was not taken, and
// the error that the same answer is to one that was.
func AnswerOf(body []byte, json bool) (string, error) {
	s := &sender{signal: traces, json: json}
	return s.said(body), s.partial(body)
}

// JSONOf returns what is sent for metrics as JSON.
func JSONOf(r *metricdata.ResourceMetrics) string {
	m, _ := metricRequest(r)
	return string(appendJSON(nil, m))
}
