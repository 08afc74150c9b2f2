package machine

import (
	"errors"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schemas may lead back to themselves by way of a part of the value. Where several
// lead on from one value to the same part of it, as the branches of an anyOf may, the
// library applies them to that part once for each, and so on: what that takes grows
// with a power of how deep the value is. And where a schema says no the library prints
// the value, once for each branch of an anyOf. So before it is asked, what it would read
// and print is counted, each pair of a schema and a part once.

// What applying schemas to a value may take: so much, and so many times its length.
// One application takes something for itself, and the length of the part where that is printed.
const (
	workAtAll   = 64 << 20
	workPerByte = 32
	workOfOne   = 64
)

// ErrSchemaWork is what [Schema.Validate] returns of a value that it does not check
// because that could take very long, or very much memory.
var ErrSchemaWork = errors.New("checking it would take too long: it is too long or nested too deep for a schema of so many branches")

// A tally is one counting.
type tally struct {
	*schemaGraph
	known map[workKey]int
	sizes map[workKey]int // of parts, whatever the schema
	most  int             // after which it is given up
	pairs int             // known so far
}

// A workKey is a schema and a part of a value that has parts itself.
type workKey struct {
	schema *jsonschema.Schema
	part   uintptr
	length int
}

// tooMuch reports whether checking v, of so many bytes, takes too long.
func (g *schemaGraph) tooMuch(v any, size int) bool {
	c := &tally{schemaGraph: g, known: map[workKey]int{}, sizes: map[workKey]int{}, most: workAtAll + workPerByte*size}
	return c.of(g.byPath[""], v) > c.most
}

// keyOf returns what v is known by, ok false for values without parts.
func keyOf(v any) (key workKey, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		return workKey{part: reflect.ValueOf(v).Pointer(), length: len(v)}, true
	case []any:
		return workKey{part: reflect.ValueOf(v).Pointer(), length: len(v)}, true
	}
	return key, false
}

// size returns about how long v is when it is printed.
func (c *tally) size(v any) (n int) {
	key, parts := keyOf(v)
	if text, ok := v.(string); ok {
		return len(text)
	} else if !parts {
		return 1
	}
	if n, known := c.sizes[key]; known {
		return n
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			n += len(name) + c.size(member) + 2
		}
	case []any:
		for _, item := range v {
			n += c.size(item) + 1
		}
	}
	c.sizes[key] = n
	return n
}

// of returns what applying s to v and its parts takes, or more than c.most.
func (c *tally) of(s *jsonschema.Schema, v any) int {
	if s == nil {
		return 0
	}
	key, parts := keyOf(v)
	if !parts {
		return min(c.work[s]*(workOfOne+c.size(v)), c.most+1)
	}
	key.schema = s
	if n, known := c.known[key]; known {
		return n
	}
	if c.pairs += workOfOne; c.pairs > c.most {
		return c.pairs
	}
	n := workOfOne
	if wrongType(s, v) {
		return n + c.size(v)
	}
	if s.Enum != nil || s.Const != nil || s.Contains != nil {
		n += c.size(v) // which is compared with others, and printed
	}
	for _, next := range c.next[s] {
		n = c.plus(n, c.of(next, v))
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			n = c.member(n, s, name, member)
		}
	case []any:
		for i, item := range v {
			n = c.item(n, s, i, item)
		}
	}
	c.known[key] = n
	return n
}

// wrongType reports whether the library goes no further because an object, or an
// array, is not what s wants.
func wrongType(s *jsonschema.Schema, v any) bool {
	is := "array"
	if _, object := v.(map[string]any); object {
		is = "object"
	}
	return s.Ref == "" && s.DynamicRef == "" && (s.Type != "" && s.Type != is || s.Types != nil && !slices.Contains(s.Types, is))
}

// member adds what is applied to one member of an object.
func (c *tally) member(n int, s *jsonschema.Schema, name string, v any) int {
	if own, named := s.Properties[name]; named {
		n = c.plus(n, c.of(own, v))
	} else {
		n = c.plus(n, c.of(s.AdditionalProperties, v))
	}
	for _, p := range s.PatternProperties {
		n = c.plus(n, c.of(p, v))
	}
	return c.plus(c.plus(n, c.of(s.UnevaluatedProperties, v)), c.of(s.PropertyNames, name))
}

// item adds what is applied to one item of an array.
func (c *tally) item(n int, s *jsonschema.Schema, i int, v any) int {
	switch {
	case i < len(s.PrefixItems):
		n = c.plus(n, c.of(s.PrefixItems[i], v))
	case i < len(s.ItemsArray):
		n = c.plus(n, c.of(s.ItemsArray[i], v))
	default:
		n = c.plus(n, c.of(s.Items, v))
		n = c.plus(n, c.of(s.AdditionalItems, v))
	}
	return c.plus(c.plus(n, c.of(s.Contains, v)), c.of(s.UnevaluatedItems, v))
}

// plus adds as long as that matters.
func (c *tally) plus(a, b int) int {
	return min(a+b, c.most+1)
}
