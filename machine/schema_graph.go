package machine

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The library follows references as they come: a schema that leads back to
// itself would overflow the stack, which ends the process, and one that doubles
// itself thirty times would never finish. Such schemas are refused when they
// are compiled, as are words the library would only notice later.

// maxSchemaWork bounds how many subschemas are applied to one value.
const maxSchemaWork = 10_000

// A schemaGraph says which schemas are applied to a value that another one is
// applied to: by $ref, allOf, if and the like, but not by properties or items.
type schemaGraph struct {
	byPath  map[string]*jsonschema.Schema // by JSON pointer
	anchors map[string][]*jsonschema.Schema
	next    map[*jsonschema.Schema][]*jsonschema.Schema
	work    map[*jsonschema.Schema]int // 0 while it is being computed
}

// checkWords refuses types that there are not and patterns that do not compile, in s
// itself, which stands at path.
func checkWords(path string, s *jsonschema.Schema) error {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if types != nil && len(types) == 0 {
		return &SchemaError{path + "/type", fmt.Sprintf("type at #%s is an empty list: no value would satisfy it", path)}
	}
	for _, t := range types {
		if !slices.Contains(schemaTypes, t) {
			return &SchemaError{path + "/type", fmt.Sprintf("type %q at #%s is none of %s", t, path, strings.Join(schemaTypes, ", "))}
		}
	}
	patterns := map[string]string{path + "/pattern": s.Pattern}
	for p := range s.PatternProperties {
		patterns[path+"/patternProperties"+pointer("", p)] = p
	}
	for _, at := range slices.Sorted(maps.Keys(patterns)) {
		if _, err := regexp.Compile(patterns[at]); err != nil {
			return &SchemaError{at, fmt.Sprintf("the pattern at #%s does not compile: %v", at, PatternError(patterns[at], err))}
		}
	}
	return nil
}

// checkGraph returns what leads where in a schema, or an error unless a bounded number
// of schemas is applied to every value.
func checkGraph(root *jsonschema.Schema) (*schemaGraph, error) {
	g := &schemaGraph{
		byPath: map[string]*jsonschema.Schema{}, anchors: map[string][]*jsonschema.Schema{},
		next: map[*jsonschema.Schema][]*jsonschema.Schema{}, work: map[*jsonschema.Schema]int{},
	}
	for path, s := range schemas("", root) {
		if err := g.add(path, s); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(g.byPath)) {
		s := g.byPath[path]
		for _, ref := range []string{s.Ref, s.DynamicRef} {
			if err := g.follow(s, strings.TrimPrefix(ref, root.ID)); err != nil {
				return nil, err
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(g.byPath)) {
		if _, err := g.workOf(g.byPath[path], "#"+path); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add notes s, which stands at path, and what it applies to the same value.
func (g *schemaGraph) add(path string, s *jsonschema.Schema) error {
	if s.ID != "" && path != "" {
		return &SchemaError{path + "/$id", fmt.Sprintf("$id at #%s: only the root may have one", path)}
	}
	g.byPath[path] = s
	for _, name := range []string{s.Anchor, s.DynamicAnchor} {
		if name != "" {
			g.anchors[name] = append(g.anchors[name], s)
		}
	}
	for _, c := range subschemas(s) {
		if c.inPlace {
			g.next[s] = append(g.next[s], c.schema)
		}
	}
	return nil
}

var schemaTypes = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// follow notes what a reference of s leads to.
func (g *schemaGraph) follow(s *jsonschema.Schema, ref string) error {
	if ref == "" {
		return nil
	}
	u, err := url.Parse(ref)
	if err != nil || ref[0] != '#' {
		return fmt.Errorf("the reference %q leads out of the schema", ref)
	}
	if targets := g.anchors[u.Fragment]; targets != nil {
		g.next[s] = append(g.next[s], targets...)
		return nil
	}
	target := g.byPath[u.Fragment]
	if target == nil {
		return fmt.Errorf("the reference %q leads to no schema", ref)
	}
	g.next[s] = append(g.next[s], target)
	return nil
}

// workOf returns how many schemas are applied to a value for s.
func (g *schemaGraph) workOf(s *jsonschema.Schema, path string) (int, error) {
	if w, known := g.work[s]; known {
		if w == 0 {
			return 0, fmt.Errorf("the schema at %s is defined by itself: it would be applied to the same value for ever", path)
		}
		return w, nil
	}
	g.work[s] = 0
	total := 1
	for _, n := range g.next[s] {
		w, err := g.workOf(n, path)
		if err != nil {
			return 0, err
		}
		if total += w; total > maxSchemaWork {
			return 0, errors.New("its references multiply: more than " + strconv.Itoa(maxSchemaWork) + " schemas would be applied to one value")
		}
	}
	g.work[s] = total
	return total, nil
}

// A subschema is one schema inside another; inPlace says that it is applied to
// the same value and not to a part of it.
type subschema struct {
	path    string
	schema  *jsonschema.Schema
	inPlace bool
}

func subschemas(s *jsonschema.Schema) (all []subschema) {
	one := func(name string, c *jsonschema.Schema, inPlace bool) {
		if c != nil {
			all = append(all, subschema{"/" + name, c, inPlace})
		}
	}
	list := func(name string, cs []*jsonschema.Schema, inPlace bool) {
		for i, c := range cs {
			one(name+"/"+strconv.Itoa(i), c, inPlace)
		}
	}
	named := func(name string, cs map[string]*jsonschema.Schema, inPlace bool) {
		for key, c := range cs {
			one(name+pointer("", key), c, inPlace)
		}
	}
	list("allOf", s.AllOf, true)
	list("anyOf", s.AnyOf, true)
	list("oneOf", s.OneOf, true)
	one("not", s.Not, true)
	one("if", s.If, true)
	one("then", s.Then, true)
	one("else", s.Else, true)
	named("dependentSchemas", s.DependentSchemas, true)
	named("dependencies", s.DependencySchemas, true)
	named("$defs", s.Defs, false)
	named("definitions", s.Definitions, false)
	list("prefixItems", s.PrefixItems, false)
	one("items", s.Items, false)
	list("items", s.ItemsArray, false)
	one("additionalItems", s.AdditionalItems, false)
	one("contains", s.Contains, false)
	one("unevaluatedItems", s.UnevaluatedItems, false)
	named("properties", s.Properties, false)
	named("patternProperties", s.PatternProperties, false)
	one("additionalProperties", s.AdditionalProperties, false)
	one("propertyNames", s.PropertyNames, false)
	one("unevaluatedProperties", s.UnevaluatedProperties, false)
	one("contentSchema", s.ContentSchema, false)
	return all
}
