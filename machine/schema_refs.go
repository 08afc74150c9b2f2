package machine

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// unresolved says in other words which reference of a schema leads nowhere: out of it,
// where nothing is ever fetched from, or to a part that it does not have. Of others it
// returns err.
func unresolved(root *jsonschema.Schema, err error) error {
	found := eachSchema("", root, func(path string, s *jsonschema.Schema) error {
		for _, r := range [...]struct{ name, ref string }{{"$ref", s.Ref}, {"$dynamicRef", s.DynamicRef}} {
			if problem := nowhere(root, r.ref); problem != "" {
				return &SchemaError{path + "/" + r.name, fmt.Sprintf("%s %q at #%s %s", r.name, r.ref, path, problem)}
			}
		}
		return nil
	})
	if found == nil {
		return err
	}
	return found
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

// eachSchema calls f with s, which stands at path, and all below, until it returns an
// error; always in the same order.
func eachSchema(path string, s *jsonschema.Schema, f func(path string, s *jsonschema.Schema) error) error {
	err := f(path, s)
	below := subschemas(s)
	slices.SortFunc(below, func(a, b subschema) int { return strings.Compare(a.path, b.path) })
	for _, c := range below {
		if err == nil {
			err = eachSchema(path+c.path, c.schema, f)
		}
	}
	return err
}

var errFound = errors.New("found")

// has reports whether a schema has a part, by a JSON pointer or an anchor.
func has(root *jsonschema.Schema, part string) bool {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return eachSchema("", root, func(path string, s *jsonschema.Schema) error {
		if path == part || s.Anchor == part || s.DynamicAnchor == part {
			return errFound
		}
		return nil
	}) != nil
}
