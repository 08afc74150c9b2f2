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
// One application takes the length of the part, and something for itself.
const (
	workAtAll   = 64 << 20
	workPerByte = 32
	workOfOne   = 64
)

// fewBranches is how many schemas may be applied to one value uncounted.
const fewBranches = 32

// ErrSchemaWork is what [Schema.Validate] returns of a value that it does not check
// because that could take very long, or very much memory.
var ErrSchemaWork = errors.New("checking it would take too long: it is too long or nested too deep for a schema of so many branches")

// A workload counts what applying a schema to a value takes. It is nil for schemas that
// apply a few others to each part of any value.
type workload struct {
	*schemaGraph
	root *jsonschema.Schema
}

// newWorkload returns what counts for a schema; nil if there is nothing to count.
func newWorkload(root *jsonschema.Schema, g *schemaGraph) *workload {
	for _, s := range g.byPath {
		if objects, arrays := g.forks(s); objects > 1 || arrays > 1 || g.work[s] > fewBranches {
			return &workload{g, root}
		}
	}
	return nil
}

// forks returns how many schemas that lead on s applies at most to one member of an
// object, and to one item of an array.
func (g *schemaGraph) forks(s *jsonschema.Schema) (objects, arrays int) {
	objects, arrays = ownForks(s)
	for _, n := range g.next[s] {
		o, a := g.forks(n)
		objects, arrays = objects+o, arrays+a
	}
	return objects, arrays
}

func ownForks(s *jsonschema.Schema) (objects, arrays int) {
	named, items := false, false
	for _, c := range s.Properties {
		named = named || leadsOn(c)
	}
	if named || leadsOn(s.AdditionalProperties) {
		objects++
	}
	for _, c := range s.PatternProperties {
		if leadsOn(c) {
			objects++
		}
	}
	if leadsOn(s.UnevaluatedProperties) {
		objects++
	}
	for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray, {s.Items, s.AdditionalItems}} {
		for _, c := range list {
			items = items || leadsOn(c)
		}
	}
	if items {
		arrays++
	}
	for _, c := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
		if leadsOn(c) {
			arrays++
		}
	}
	return objects, arrays
}

// leadsOn reports whether a schema applies others; it may be nil.
func leadsOn(s *jsonschema.Schema) bool {
	return s != nil && (s.Ref != "" || s.DynamicRef != "" || len(subschemas(s)) > 0)
}

// A tally is one counting.
type tally struct {
	*workload
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

// check returns an error if checking v, of so many bytes, takes too long.
func (w *workload) check(v any, size int) error {
	c := &tally{workload: w, known: map[workKey]int{}, sizes: map[workKey]int{}, most: workAtAll + workPerByte*size}
	if c.of(w.root, v) > c.most {
		return ErrSchemaWork
	}
	return nil
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
	n := workOfOne + c.size(v)
	key, parts := keyOf(v)
	if !parts {
		return min(c.work[s]*n, c.most+1)
	}
	key.schema = s
	if n, known := c.known[key]; known {
		return n
	}
	if c.pairs += workOfOne; c.pairs > c.most {
		return c.pairs
	}
	if wrongType(s, v) {
		return n
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
