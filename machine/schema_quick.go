package machine

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// Most schemas say of an object which members it has and of what type they are. Such
// a schema is compiled to a tree of quick nodes, which reads the bytes of a value once
// and allocates nothing. It only ever says yes: whatever it does not accept, because
// it violates the schema or because it is unusual, is left to the library, which also
// has the words for what is wrong. A test and a fuzz target hold both together.

// A quick node is what a value must satisfy. A nil *quick is satisfied by every value.
type quick struct {
	types    typeSet
	never    bool
	enum     []any // of strings, numbers as float64, bool and nil; nil for all values
	min, max *float64
	over     *float64 // exclusiveMinimum
	under    *float64 // exclusiveMaximum

	minLength, maxLength *int
	pattern              *regexp.Regexp

	items              *quick
	minItems, maxItems *int

	members            []quickMember // by name, as programs mostly write them
	required           uint64        // a bit for each of the members
	extra              *quick        // of other members
	minExtra, maxExtra *int          // how many members there are
}

// A quickMember is a member of an object by its name.
type quickMember struct {
	name  string
	value *quick
}

// A typeSet has a bit for each type of JSON Schema; 0 stands for all of them.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeObject
	typeArray
	typeNumber
	typeString
	typeInteger
)

// has reports whether a value of type t is allowed.
func (s typeSet) has(t typeSet) bool { return s == 0 || s&t != 0 }

// compileQuick returns the quick form of a schema, or ok false if it has none: what it
// says of a value is not all among what a quick node can say.
func compileQuick(s *jsonschema.Schema) (q *quick, ok bool) {
	if !plainSchema(s) {
		return nil, false
	}
	if s.Not != nil {
		return &quick{never: true}, true
	}
	q = &quick{
		enum: s.Enum, min: s.Minimum, max: s.Maximum, over: s.ExclusiveMinimum, under: s.ExclusiveMaximum,
		minLength: s.MinLength, maxLength: s.MaxLength, minItems: s.MinItems, maxItems: s.MaxItems,
		minExtra: s.MinProperties, maxExtra: s.MaxProperties,
	}
	for _, t := range append(slices.Clone(s.Types), s.Type) {
		if i := slices.Index(schemaTypes, t); i >= 0 {
			q.types |= 1 << i // they are in the same order
		}
	}
	if s.Const != nil {
		q.enum = []any{*s.Const}
	}
	if s.Pattern != "" {
		q.pattern = regexp.MustCompile(s.Pattern) // checkWords has compiled it
	}
	if q.items, ok = compileBelow(s.Items); !ok {
		return nil, false
	}
	if q.extra, ok = compileBelow(s.AdditionalProperties); !ok {
		return nil, false
	}
	if !q.compileMembers(s) {
		return nil, false
	}
	return q, true
}

// compileBelow is compileQuick of a schema that may be nil.
func compileBelow(s *jsonschema.Schema) (q *quick, ok bool) {
	if s == nil {
		return nil, true
	}
	return compileQuick(s)
}

// compileMembers compiles what a schema says of members by name.
func (q *quick) compileMembers(s *jsonschema.Schema) bool {
	names := slices.AppendSeq(slices.Clone(s.Required), maps.Keys(s.Properties))
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		below, ok := q.extra, true // what is required and not described is one of the others
		if described := s.Properties[name]; described != nil {
			below, ok = compileQuick(described)
		}
		if !ok {
			return false
		}
		if slices.Contains(s.Required, name) {
			q.required |= 1 << i
		}
		q.members = append(q.members, quickMember{name, below})
	}
	return len(names) <= 64
}

// plainSchema reports whether a schema says nothing of values but what a quick node
// can.
func plainSchema(s *jsonschema.Schema) bool {
	rest := *s
	rest.ID, rest.Schema, rest.Comment, rest.Title, rest.Description, rest.Default, rest.Examples = "", "", "", "", "", nil, nil
	rest.Deprecated, rest.ReadOnly, rest.WriteOnly, rest.Format, rest.Extra, rest.PropertyOrder = false, false, false, "", nil, nil
	if s.Not != nil { // false, as the library has it
		rest.Not = nil
		return reflect.ValueOf(*s.Not).IsZero() && reflect.ValueOf(rest).IsZero()
	}
	if !scalars(s.Enum) || s.Const != nil && (s.Enum != nil || !scalars([]any{*s.Const})) {
		return false
	}
	rest.Type, rest.Types, rest.Enum, rest.Const, rest.Pattern = "", nil, nil, nil, ""
	rest.Minimum, rest.Maximum, rest.ExclusiveMinimum, rest.ExclusiveMaximum = nil, nil, nil, nil
	rest.MinLength, rest.MaxLength, rest.MinItems, rest.MaxItems, rest.MinProperties, rest.MaxProperties = nil, nil, nil, nil, nil, nil
	rest.Items, rest.Required, rest.Properties, rest.AdditionalProperties = nil, nil, nil, nil
	return reflect.ValueOf(rest).IsZero()
}

// scalars reports whether there are no objects and arrays among the values.
func scalars(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool {
		switch v.(type) {
		case string, float64, bool, nil:
			return false
		}
		return true
	})
}

// accepts reports whether the bytes are one JSON value that satisfies q for certain.
func (q *quick) accepts(data []byte) bool {
	r := quickReader{data: data}
	if !r.value(q, 0) {
		return false
	}
	r.skip()
	return r.at == len(data)
}

// bounded reports whether a number is within the limits.
func (q *quick) bounded(f float64) bool {
	return (q.min == nil || f >= *q.min) && (q.max == nil || f <= *q.max) && (q.over == nil || f > *q.over) && (q.under == nil || f < *q.under)
}

// within reports whether a count is within two limits that may be nil.
func within(n int, low, high *int) bool {
	return (low == nil || n >= *low) && (high == nil || n <= *high)
}

// allows reports whether a text satisfies what is said of texts. One with escapes is
// only counted.
func (q *quick) allows(t quickText) bool {
	if q == nil || q.enum == nil && q.minLength == nil && q.maxLength == nil && q.pattern == nil {
		return true
	}
	if q.enum != nil && (t.escapes > 0 || !q.lists(t.raw)) {
		return false
	}
	if (q.minLength != nil || q.maxLength != nil) && !within(t.length(), q.minLength, q.maxLength) {
		return false
	}
	return q.pattern == nil || t.escapes == 0 && (!t.wide || utf8.Valid(t.raw)) && q.pattern.Match(t.raw)
}

// lists reports whether a text is among the values that are allowed.
func (q *quick) lists(text []byte) bool {
	for _, v := range q.enum {
		if s, ok := v.(string); ok && s == string(text) {
			return true
		}
	}
	return false
}
