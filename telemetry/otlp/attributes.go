package otlp

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// keyValues returns attributes in their order.
func keyValues(attributes []attribute.KeyValue) []message {
	list := make([]message, 0, len(attributes))
	for _, kv := range attributes {
		list = append(list, message{}.put(1, "key", string(kv.Key)).set(2, "value", anyValue(kv.Value)))
	}
	return list
}

// anyValue returns a value. One that is empty has no member.
func anyValue(v attribute.Value) message {
	switch v.Type() {
	case attribute.STRING:
		return message{}.set(1, "stringValue", v.AsString())
	case attribute.BOOL:
		return message{}.set(2, "boolValue", v.AsBool())
	case attribute.INT64:
		return message{}.set(3, "intValue", whole(v.AsInt64()))
	case attribute.FLOAT64:
		return message{}.set(4, "doubleValue", v.AsFloat64())
	case attribute.BYTESLICE:
		return message{}.set(7, "bytesValue", v.AsByteSlice())
	case attribute.MAP:
		return message{}.set(6, "kvlistValue", message{}.put(1, "values", keyValues(v.AsMap())))
	case attribute.EMPTY:
		return message{}
	}
	return message{}.set(5, "arrayValue", message{}.put(1, "values", values(v)))
}

// values returns the elements of a value that is a list.
func values(v attribute.Value) (list []message) {
	add := func(one attribute.Value) { list = append(list, anyValue(one)) }
	switch v.Type() {
	case attribute.BOOLSLICE:
		each(v.AsBoolSlice(), attribute.BoolValue, add)
	case attribute.INT64SLICE:
		each(v.AsInt64Slice(), attribute.Int64Value, add)
	case attribute.FLOAT64SLICE:
		each(v.AsFloat64Slice(), attribute.Float64Value, add)
	case attribute.STRINGSLICE:
		each(v.AsStringSlice(), attribute.StringValue, add)
	case attribute.SLICE:
		each(v.AsSlice(), func(one attribute.Value) attribute.Value { return one }, add)
	default: // of a later version of the API
		add(attribute.StringValue(v.String()))
	}
	return list
}

func each[E any](list []E, value func(E) attribute.Value, add func(attribute.Value)) {
	for _, one := range list {
		add(value(one))
	}
}

func resourceOf(r *resource.Resource) message {
	return message{}.put(1, "attributes", keyValues(r.Attributes()))
}

func scopeOf(s instrumentation.Scope) message {
	return message{}.put(1, "name", s.Name).put(2, "version", s.Version).put(3, "attributes", keyValues(s.Attributes.ToSlice()))
}

// A group is what one scope has said about one resource.
type group struct {
	scope instrumentation.Scope
	items []message
}

// grouped returns the groups of one resource as the protocol has them: names are
// those of the list of scopes and of what each holds.
func grouped(r *resource.Resource, scopes, items string, groups []group) message {
	var list []message
	for _, g := range groups {
		list = append(list, message{}.put(1, "scope", scopeOf(g.scope)).put(2, items, g.items).put(3, "schemaUrl", g.scope.SchemaURL))
	}
	return message{}.put(1, "resource", resourceOf(r)).put(2, scopes, list).put(3, "schemaUrl", r.SchemaURL())
}

// within returns the items of the scope's group, which it makes if there is none.
func within(groups *[]group, s instrumentation.Scope) *[]message {
	i := slices.IndexFunc(*groups, func(g group) bool { return g.scope == s })
	if i < 0 {
		i = len(*groups)
		*groups = append(*groups, group{scope: s})
	}
	return &(*groups)[i].items
}

// nanos returns a time in nanoseconds since 1970; 0 is no time.
func nanos(t time.Time) fixed {
	if t.IsZero() {
		return 0
	}
	return fixed(max(0, t.UnixNano()))
}

// dropped returns how many of something were left out.
func dropped(n int) count { return count(min(max(0, n), math.MaxUint32)) }
