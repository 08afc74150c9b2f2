package machine

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// unresolved says in other words which reference of a schema leads nowhere: out of it,
// where nothing is ever fetched from, or to a part that it does not have. Of others it
// returns err.
func unresolved(root *jsonschema.Schema, err error) error {
	for path, s := range schemas("", root) {
		for _, r := range [...]struct{ name, ref string }{{"$ref", s.Ref}, {"$dynamicRef", s.DynamicRef}} {
			if problem := nowhere(root, r.ref); problem != "" {
				return &SchemaError{path + "/" + r.name, fmt.Sprintf("%s %q at #%s %s", r.name, r.ref, path, problem)}
			}
		}
	}
	return err
}

// nowhere says why a reference leads nowhere; "" if it does not.
func nowhere(root *jsonschema.Schema, ref string) string {
	outside, part, _ := strings.Cut(ref, "#")
	switch {
	case outside != "" && outside != root.ID:
		return `leads out of the schema, and nothing is fetched: copy what it names into $defs, and refer to it as "#/$defs/NAME"`
	case part != "" && !has(root, part):
		return "names a part that the schema does not have"
	}
	return ""
}

// schemas returns s, which stands at path, and all below, each with its path, always in the
// same order.
func schemas(path string, s *jsonschema.Schema) iter.Seq2[string, *jsonschema.Schema] {
	return func(yield func(string, *jsonschema.Schema) bool) { eachSchema(path, s, yield) }
}

func eachSchema(path string, s *jsonschema.Schema, yield func(string, *jsonschema.Schema) bool) (more bool) {
	if !yield(path, s) {
		return false
	}
	below := subschemas(s)
	slices.SortFunc(below, func(a, b subschema) int { return strings.Compare(a.path, b.path) })
	for _, c := range below {
		if !eachSchema(path+c.path, c.schema, yield) {
			return false
		}
	}
	return true
}

// has reports whether a schema has a part, by a JSON pointer or an anchor.
func has(root *jsonschema.Schema, part string) bool {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	for path, s := range schemas("", root) {
		if path == part || s.Anchor == part || s.DynamicAnchor == part {
			return true
		}
	}
	return false
}
