package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// earlier are schemas with words that check nothing in draft 2020-12: where the word
// stands, what is written instead, and a value that draft 7 refuses, if there is one.
var earlier = []struct{ schema, at, instead, bad, good string }{
	{`{"items":[{"type":"string"},{"type":"number"}]}`, "/items", "prefixItems", `[1,1]`, `["a",1,true]`},
	{`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, "/properties/a/items", "prefixItems", `{"a":["a","b"]}`, `{"a":["a"]}`},
	{`{"additionalItems":{"type":"string"}}`, "/additionalItems", "items", "", `[1]`},
	{`{"dependencies":{"card":["address"]}}`, "/dependencies", "dependentRequired", `{"card":1}`, `{"card":1,"address":"x"}`},
	{`{"dependencies":{"card":{"required":["address"]}}}`, "/dependencies", "dependentSchemas", `{"card":1}`, `{"card":1,"address":"x"}`},
	{`{"allOf":[{"not":{"dependencies":{"a":["b"]}}}]}`, "/allOf/0/not/dependencies", "dependentRequired", `{"a":1,"b":1}`, `{"a":1}`},
	{`{"definitions":{"list":{"items":[{"type":"string"}]}},"$ref":"#/definitions/list"}`, "/definitions/list/items", "prefixItems", `[1]`, `["a"]`},
	{`{"properties":{"a":{"$recursiveRef":"#"}}}`, "/properties/a/$recursiveRef", "$dynamicRef", "", `{}`},
	{`{"$recursiveAnchor":true}`, "/$recursiveAnchor", "$dynamicAnchor", "", `{}`},
}

// TestWordsOfEarlierDrafts (C9.1): they are errors with a position and the word to write
// instead; of draft 7 they are checked as it checks them, by name or by reading; what was
// stored is read as before.
func TestWordsOfEarlierDrafts(t *testing.T) {
	for _, c := range earlier {
		_, err := machine.NewSchema([]byte(c.schema))
		part, ok := errors.AsType[*machine.SchemaError](err)
		if !ok || part.Path != c.at || !strings.Contains(part.Problem, "write "+c.instead) {
			t.Errorf("%s: %v at %+v, want %s at %s", c.schema, err, part, c.instead, c.at)
		}
		stored, err := machine.ReadSchema([]byte(c.schema), machine.IgnoreEarlier)
		if err != nil || c.bad != "" && c.at != "/allOf/0/not/dependencies" && stored.Validate([]byte(c.bad)) != nil {
			t.Errorf("%s, stored, is refused or refuses: %v", c.schema, err)
		}
		for how, read := range map[string]func() (*machine.Schema, error){
			"named": func() (*machine.Schema, error) {
				return machine.NewSchema([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#",` + c.schema[1:]))
			},
			"compat": func() (*machine.Schema, error) { return machine.ReadSchema([]byte(c.schema), machine.CheckEarlier) },
		} {
			s, err := read()
			if err != nil {
				t.Errorf("%s, %s: %v", c.schema, how, err)
				continue
			}
			if c.bad != "" && s.Validate([]byte(c.bad)) == nil {
				t.Errorf("%s, %s: takes %s", c.schema, how, c.bad)
			}
			if err := s.Validate([]byte(c.good)); err != nil {
				t.Errorf("%s, %s: refuses %s: %v", c.schema, how, c.good, err)
			}
		}
	}
	for _, fine := range []string{`{"definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
		`{"properties":{"items":{},"dependencies":{},"additionalItems":{}}}`, `{"prefixItems":[{}],"items":false}`} {
		if _, err := machine.NewSchema([]byte(fine)); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
	s, err := machine.ReadSchema([]byte(`{"prefixItems":[{"type":"string"}]}`), machine.CheckEarlier)
	if err != nil || s.Validate([]byte(`[1]`)) == nil {
		t.Errorf("a schema of draft 2020-12 in a compat file checks nothing: %v", err)
	}
}

// TestParametersOfEarlierDrafts (C9.1): a machine file is refused with the place of the
// word, and a definition that a store holds is not.
func TestParametersOfEarlierDrafts(t *testing.T) {
	text := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{
  "t":{"target":"b","parameters":{"properties":{"list":{"items":[{"type":"string"}]}}}}}},"b":{}}}`
	_, err := machine.Parse("m.json", []byte(text), machine.Checks{})
	bad, ok := errors.AsType[*machine.Error](err)
	if !ok || len(bad.Problems) != 1 || bad.Problems[0].Line != 2 || bad.Problems[0].Column != strings.Index(text[strings.Index(text, "\n"):], `[{"type"`) {
		t.Errorf("%v", err)
	}
	if _, err := machine.Parse("m.json", []byte(text), machine.Checks{Stored: true}); err != nil {
		t.Errorf("stored: %v", err)
	}
}
