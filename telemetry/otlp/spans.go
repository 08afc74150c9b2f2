package otlp

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// spanRequest returns what is sent for spans: those of one resource together, and
// in it those of one scope, each in the order in which they came.
func spanRequest(spans []sdk.ReadOnlySpan) message {
	type of struct {
		resource *resource.Resource
		same     attribute.Distinct
		groups   []group
	}
	var all []of
	for _, s := range spans {
		same := s.Resource().Equivalent()
		i := slices.IndexFunc(all, func(o of) bool { return o.same == same })
		if i < 0 {
			i, all = len(all), append(all, of{resource: s.Resource(), same: same})
		}
		items := within(&all[i].groups, s.InstrumentationScope())
		*items = append(*items, spanOf(s))
	}
	var list []message
	for _, o := range all {
		list = append(list, grouped(o.resource, "scopeSpans", "spans", o.groups))
	}
	return message{}.put(1, "resourceSpans", list)
}

func spanOf(s sdk.ReadOnlySpan) message {
	c, parent := s.SpanContext(), s.Parent()
	traceID, spanID, parentID := c.TraceID(), c.SpanID(), parent.SpanID()
	m := message{}.put(1, "traceId", id(traceID[:])).put(2, "spanId", id(spanID[:])).put(3, "traceState", c.TraceState().String())
	if parentID.IsValid() {
		m = m.put(4, "parentSpanId", id(parentID[:]))
	}
	return m.put(5, "name", s.Name()).put(6, "kind", kindOf(s.SpanKind())).
		put(7, "startTimeUnixNano", nanos(s.StartTime())).put(8, "endTimeUnixNano", nanos(s.EndTime())).
		put(9, "attributes", keyValues(s.Attributes())).put(10, "droppedAttributesCount", dropped(s.DroppedAttributes())).
		put(11, "events", eventsOf(s.Events())).put(12, "droppedEventsCount", dropped(s.DroppedEvents())).
		put(13, "links", linksOf(s.Links())).put(14, "droppedLinksCount", dropped(s.DroppedLinks())).
		put(15, "status", statusOf(s.Status())).put(16, "flags", flagsOf(c.TraceFlags(), parent))
}

// kindOf returns the protocol's number, which is the API's but for unspecified
// kinds of other numbers.
func kindOf(k trace.SpanKind) enum {
	if k < trace.SpanKindUnspecified || k > trace.SpanKindConsumer {
		k = trace.SpanKindUnspecified
	}
	return enum(k)
}

func eventsOf(events []sdk.Event) (list []message) {
	for _, e := range events {
		list = append(list, message{}.put(1, "timeUnixNano", nanos(e.Time)).put(2, "name", e.Name).
			put(3, "attributes", keyValues(e.Attributes)).put(4, "droppedAttributesCount", dropped(e.DroppedAttributeCount)))
	}
	return list
}

func linksOf(links []sdk.Link) (list []message) {
	for _, l := range links {
		c := l.SpanContext
		traceID, spanID := c.TraceID(), c.SpanID()
		list = append(list, message{}.put(1, "traceId", id(traceID[:])).put(2, "spanId", id(spanID[:])).put(3, "traceState", c.TraceState().String()).
			put(4, "attributes", keyValues(l.Attributes)).put(5, "droppedAttributesCount", dropped(l.DroppedAttributeCount)).
			put(6, "flags", flagsOf(c.TraceFlags(), c)))
	}
	return list
}

// statusOf returns a status; the protocol and the API number codes differently.
func statusOf(s sdk.Status) message {
	code := enum(0)
	switch s.Code {
	case codes.Ok:
		code = 1
	case codes.Error:
		code = 2
	}
	return message{}.put(2, "message", s.Description).put(3, "code", code)
}

// The bits of flags above those of the trace: whether it is known if the other span
// is of another process, and whether it is.
const (
	flagKnowsRemote = 0x100
	flagRemote      = 0x200
)

func flagsOf(f trace.TraceFlags, other trace.SpanContext) bits {
	b := bits(f) | flagKnowsRemote
	if other.IsRemote() {
		b |= flagRemote
	}
	return b
}
