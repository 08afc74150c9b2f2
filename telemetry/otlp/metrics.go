package otlp

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// metricRequest returns what is sent for metrics. Those of a kind that the protocol
// does not have are left out, and the error names them; the request stands.
func metricRequest(r *metricdata.ResourceMetrics) (message, error) {
	var groups []group
	var unknown []error
	for _, s := range r.ScopeMetrics {
		items := within(&groups, s.Scope)
		for _, m := range s.Metrics {
			one, err := metricOf(m)
			if err != nil {
				unknown = append(unknown, err)
				continue
			}
			*items = append(*items, one)
		}
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return len(g.items) == 0 })
	if len(groups) == 0 {
		return nil, errors.Join(unknown...)
	}
	return message{}.set(1, "resourceMetrics", []message{grouped(r.Resource, "scopeMetrics", "metrics", groups)}), errors.Join(unknown...)
}

func metricOf(m metricdata.Metrics) (message, error) {
	n, name, data, t := dataOf(m.Data)
	if n == 0 {
		return nil, fmt.Errorf("metric %q is a %T, which OTLP does not have", m.Name, m.Data)
	}
	if t != nil {
		number := enum(*t)
		switch *t {
		case metricdata.CumulativeTemporality:
			number = 2
		case metricdata.DeltaTemporality:
			number = 1
		default:
			return nil, fmt.Errorf("metric %q has a temporality of %d, which OTLP does not have", m.Name, number)
		}
		data = data.put(2, "aggregationTemporality", number)
	}
	return message{}.put(1, "name", m.Name).put(2, "description", m.Description).put(3, "unit", m.Unit).set(n, name, data), nil
}

// dataOf returns the number and the name of a kind of metric, its points, and its
// temporality where that kind has one. The number of an unknown kind is 0.
func dataOf(data metricdata.Aggregation) (protowire.Number, string, message, *metricdata.Temporality) {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return 5, "gauge", points(numbers(d.DataPoints)), nil
	case metricdata.Gauge[float64]:
		return 5, "gauge", points(numbers(d.DataPoints)), nil
	case metricdata.Sum[int64]:
		return 7, "sum", points(numbers(d.DataPoints)).put(3, "isMonotonic", d.IsMonotonic), &d.Temporality
	case metricdata.Sum[float64]:
		return 7, "sum", points(numbers(d.DataPoints)).put(3, "isMonotonic", d.IsMonotonic), &d.Temporality
	case metricdata.Histogram[int64]:
		return 9, "histogram", points(histograms(d.DataPoints)), &d.Temporality
	case metricdata.Histogram[float64]:
		return 9, "histogram", points(histograms(d.DataPoints)), &d.Temporality
	case metricdata.ExponentialHistogram[int64]:
		return 10, "exponentialHistogram", points(exponentials(d.DataPoints)), &d.Temporality
	case metricdata.ExponentialHistogram[float64]:
		return 10, "exponentialHistogram", points(exponentials(d.DataPoints)), &d.Temporality
	case metricdata.Summary:
		return 11, "summary", points(summaries(d.DataPoints)), nil
	}
	return 0, "", nil, nil
}

func points(list []message) message { return message{}.put(1, "dataPoints", list) }

type number interface{ int64 | float64 }

// numberOf appends a value, of which protocol and JSON have one member for each type.
func numberOf[N number](m message, value N, asDouble, asInt protowire.Number) message {
	switch v := any(value).(type) {
	case int64:
		return m.set(asInt, "asInt", signed(v))
	case float64:
		return m.set(asDouble, "asDouble", v)
	}
	return m
}

func numbers[N number](points []metricdata.DataPoint[N]) (list []message) {
	for _, p := range points {
		m := message{}.put(2, "startTimeUnixNano", nanos(p.StartTime)).put(3, "timeUnixNano", nanos(p.Time))
		m = numberOf(m, p.Value, 4, 6)
		list = append(list, m.put(5, "exemplars", exemplars(p.Exemplars)).put(7, "attributes", keyValues(p.Attributes.ToSlice())))
	}
	return list
}

func histograms[N number](points []metricdata.HistogramDataPoint[N]) (list []message) {
	for _, p := range points {
		m := message{}.put(2, "startTimeUnixNano", nanos(p.StartTime)).put(3, "timeUnixNano", nanos(p.Time)).
			put(4, "count", fixed(p.Count)).set(5, "sum", float64(p.Sum)).
			put(6, "bucketCounts", fixeds(p.BucketCounts)).put(7, "explicitBounds", floats(p.Bounds)).
			put(8, "exemplars", exemplars(p.Exemplars)).put(9, "attributes", keyValues(p.Attributes.ToSlice()))
		list = append(list, extreme(extreme(m, 11, "min", p.Min), 12, "max", p.Max))
	}
	return list
}

func exponentials[N number](points []metricdata.ExponentialHistogramDataPoint[N]) (list []message) {
	for _, p := range points {
		m := message{}.put(1, "attributes", keyValues(p.Attributes.ToSlice())).
			put(2, "startTimeUnixNano", nanos(p.StartTime)).put(3, "timeUnixNano", nanos(p.Time)).
			put(4, "count", fixed(p.Count)).set(5, "sum", float64(p.Sum)).
			put(6, "scale", zigzag(p.Scale)).put(7, "zeroCount", fixed(p.ZeroCount)).
			put(8, "positive", bucketsOf(p.PositiveBucket)).put(9, "negative", bucketsOf(p.NegativeBucket)).
			put(11, "exemplars", exemplars(p.Exemplars))
		m = extreme(extreme(m, 12, "min", p.Min), 13, "max", p.Max)
		list = append(list, m.put(14, "zeroThreshold", p.ZeroThreshold))
	}
	return list
}

func bucketsOf(b metricdata.ExponentialBucket) message {
	return message{}.put(1, "offset", zigzag(b.Offset)).put(2, "bucketCounts", varints(b.Counts))
}

// extreme appends a least or greatest value, if there is one.
func extreme[N number](m message, n protowire.Number, name string, e metricdata.Extrema[N]) message {
	if v, ok := e.Value(); ok {
		return m.set(n, name, float64(v))
	}
	return m
}

func exemplars[N number](all []metricdata.Exemplar[N]) (list []message) {
	for _, e := range all {
		m := numberOf(message{}.put(2, "timeUnixNano", nanos(e.Time)), e.Value, 3, 6)
		list = append(list, m.put(4, "spanId", id(e.SpanID)).put(5, "traceId", id(e.TraceID)).put(7, "filteredAttributes", keyValues(e.FilteredAttributes)))
	}
	return list
}

func summaries(points []metricdata.SummaryDataPoint) (list []message) {
	for _, p := range points {
		var quantiles []message
		for _, q := range p.QuantileValues {
			quantiles = append(quantiles, message{}.put(1, "quantile", q.Quantile).put(2, "value", q.Value))
		}
		list = append(list, message{}.put(2, "startTimeUnixNano", nanos(p.StartTime)).put(3, "timeUnixNano", nanos(p.Time)).
			put(4, "count", fixed(p.Count)).put(5, "sum", p.Sum).put(6, "quantileValues", quantiles).
			put(7, "attributes", keyValues(p.Attributes.ToSlice())))
	}
	return list
}
