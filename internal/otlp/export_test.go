package otlp

import "time"

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
