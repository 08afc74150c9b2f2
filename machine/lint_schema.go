package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// UnknownKeywords returns a finding for each word in a schema, and in those below it, that is
// none of JSON Schema, drafts 7 and 2020-12, and so checks nothing. path is where the schema
// stands; what is no schema has none.
func UnknownKeywords(path string, schema json.RawMessage) (found []Problem) {
	schema = bytes.TrimSpace(schema)
	var list []json.RawMessage
	if json.Unmarshal(schema, &list) == nil {
		for i, item := range list {
			found = append(found, UnknownKeywords(fmt.Sprintf("%s/%d", path, i), item)...)
		}
		return found
	}
	var own map[string]json.RawMessage
	_ = json.Unmarshal(schema, &own) // true and false are schemas too
	for _, name := range slices.Sorted(maps.Keys(own)) {
		at := pointer(path, name)
		switch below := wordValues[name]; {
		case strings.HasPrefix(name, "x-"):
		case below == nil:
			found = append(found, Problem{Path: at, Code: "unknown-keyword", Message: fmt.Sprintf("JSON Schema has no keyword %q, so it checks nothing", name),
				Hint: DidYouMean(name, slices.Sorted(maps.Keys(wordValues)))})
		case slices.Contains(below, named), slices.Contains(below, namedBoth):
			var schemas map[string]json.RawMessage
			_ = json.Unmarshal(own[name], &schemas) // what is not an object was refused
			for _, part := range slices.Sorted(maps.Keys(schemas)) {
				found = append(found, UnknownKeywords(pointer(at, part), schemas[part])...)
			}
		case slices.Contains(below, aSchema), slices.Contains(below, someOf):
			found = append(found, UnknownKeywords(at, own[name])...)
		}
	}
	return found
}

// schemas looks at the schemas of the input and of parameters.
func (l *linter) schemas() {
	found := UnknownKeywords("/input", l.def.Input)
	for i := range l.m.states {
		for j, t := range l.m.states[i].Transitions {
			found = append(found, UnknownKeywords(t.Path()+"/parameters", l.def.States[i].Transitions[j].Parameters)...)
		}
	}
	for _, p := range found {
		l.report(p.Path, true, p)
	}
	l.defaults()
}

// defaults looks for values that the input gives where there is none, and that it does not
// allow, or never gives.
func (l *linter) defaults() {
	w := violations{}
	if json.Unmarshal(l.def.Input, &w.root) != nil {
		return
	}
	root, _ := w.root.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	required, _ := root["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		part, _ := properties[name].(map[string]any)
		value, given := part["default"]
		at := pointer("/properties", name)
		p := Problem{Code: "INPUT003", Message: fmt.Sprintf("the default of %q is never used: a session must be started with that member", name), Hint: `remove the default, or the name from "required"`}
		w.found = nil
		switch {
		case !given:
			continue
		case slices.Contains(required, any(name)):
		default:
			if w.look(part, value, "", at); w.found == nil {
				continue
			}
			p.Message, p.Hint = fmt.Sprintf("the default of %q is not what its own schema wants: %s", name, w.found[0]), "data begins with it as it stands: write one that fits"
		}
		l.report("/input"+at+"/default", true, p)
	}
}
