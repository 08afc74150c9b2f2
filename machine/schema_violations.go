package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What is wrong with a value, all of it: whoever starts a session should not have to try
// once for each mistake. The JSON Schema library stops at the first; so objects and lists
// are walked through here by properties, required, additionalProperties and items, and
// the library is asked about each value below. What is left, such as anyOf, is said as
// the library says it of the whole.

// maxViolations bounds how many are listed.
const maxViolations = 50

// A Violation is one place at which a value does not satisfy a schema.
type Violation struct {
	Path    string // JSON pointer into the value; "" for the whole
	Problem string // a sentence about the value there
}

// String returns the violation in one line: where, and what.
func (v Violation) String() string {
	if v.Path == "" {
		return v.Problem
	}
	return v.Path + ": " + v.Problem
}

// Violations returns all that is wrong with one JSON value, nil if it satisfies s. Absent
// data counts as an empty object.
func (s *Schema) Violations(data []byte) []Violation {
	err := s.Validate(data)
	if err == nil {
		return nil
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	w := violations{}
	var value any
	if errors.Is(err, ErrSchemaWork) || json.Unmarshal([]byte(s.source), &w.root) != nil || json.Unmarshal(data, &value) != nil {
		return []Violation{{"", err.Error()}}
	}
	w.look(w.root, value, "", "")
	if w.found == nil {
		return []Violation{{"", err.Error()}}
	}
	return w.found
}

type violations struct {
	root  any
	found []Violation
}

func (w *violations) add(path, format string, args ...any) {
	if len(w.found) < maxViolations {
		w.found = append(w.found, Violation{path, fmt.Sprintf(format, args...)})
	}
}

// look compares a value with the part of the schema at a pointer.
func (w *violations) look(part, value any, path, at string) {
	schema, _ := part.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	if object, ok := value.(map[string]any); ok && properties != nil {
		w.members(schema, properties, object, path, at)
		return
	}
	if list, ok := value.([]any); ok {
		if items, ok := schema["items"].(map[string]any); ok {
			for i, v := range list {
				w.look(items, v, path+"/"+strconv.Itoa(i), at+"/items")
			}
			return
		}
	}
	want, _ := schema["type"].(string)
	switch err := w.check(value, at); {
	case err == nil:
	case want != "" && !hasType(value, want):
		w.add(path, "must be %s, not %s", article(want), article(typeOf(value)))
	default:
		w.add(path, "%s", withoutPlace(err))
	}
}

// withoutPlace returns what the library says of a value, without the place in the schema.
func withoutPlace(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		text = rest
	}
	return text
}

func (w *violations) members(schema, properties map[string]any, object map[string]any, path, at string) {
	var missing []string
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, there := object[name]; !there {
			missing = append(missing, name)
		}
	}
	known := slices.Sorted(maps.Keys(properties))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		part, declared := properties[name]
		hint := didYouMean(name, missing) // it may be meant by what is there instead
		switch {
		case declared:
			w.look(part, object[name], pointer(path, name), pointer(at+"/properties", name))
		case schema["additionalProperties"] == false:
			if hint = cmp.Or(hint, didYouMean(name, known)); hint == "" {
				w.add(pointer(path, name), "is no known member")
				continue
			}
			fallthrough
		case hint != "":
			w.add(pointer(path, name), "is no known member; %s", hint)
		}
	}
	for _, name := range missing {
		part, _ := properties[name].(map[string]any)
		if want, _ := part["type"].(string); want != "" {
			w.add(pointer(path, name), "is missing; it must be %s", article(want))
		} else {
			w.add(pointer(path, name), "is missing")
		}
	}
}

// check asks the library about a value and the part of the schema at a pointer.
func (w *violations) check(value any, at string) error {
	root, _ := w.root.(map[string]any)
	whole := map[string]any{"$ref": "#/$defs/" + wholeSchema + at}
	for _, word := range []string{"$schema", "$defs", "definitions"} { // so that references into them hold
		if value, ok := root[word]; ok {
			whole[word] = value
		}
	}
	defs, _ := root["$defs"].(map[string]any)
	defs = maps.Clone(defs)
	if defs == nil {
		defs = map[string]any{}
	}
	inner := maps.Clone(root)
	delete(inner, "$schema")
	defs[wholeSchema], whole["$defs"] = inner, defs
	part, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	schema, err := NewSchema(part)
	if err != nil {
		return nil // it is said of the whole
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return schema.Validate(data)
}

// wholeSchema is the name under which the whole schema stands in that of a part.
const wholeSchema = "__whole"

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func hasType(value any, want string) bool {
	is := typeOf(value)
	n, _ := value.(float64)
	return is == want || want == "integer" && is == "number" && n == float64(int64(n))
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "integer":
		return "a whole number"
	case "object", "array":
		return "an " + kind
	case "boolean":
		return "true or false"
	case "string":
		return "a text"
	}
	return "a " + kind
}
