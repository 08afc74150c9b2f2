package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

func newSchema(t testing.TB, source string) *machine.Schema {
	t.Helper()
	s, err := machine.NewSchema([]byte(source))
	if err != nil {
		t.Fatalf("NewSchema(%.200s): %v", source, err)
	}
	return s
}

func TestSchemaValidate(t *testing.T) {
	const person = `{"type":"object","required":["reason"],"properties":{
		"reason":{"type":"string","minLength":2},"amount":{"type":"number","minimum":0,"exclusiveMaximum":100},"count":{"type":"integer"},
		"kind":{"enum":["a",1,null]},"exactly":{"const":1.5},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},"next":{"$ref":"#"}},
		"additionalProperties":false}`
	for _, c := range []struct {
		schema, value string
		fine          bool
	}{
		{person, `{"reason":"ok"}`, true}, {person, `{}`, false}, {person, ``, false}, {person, `{"reason":"é"}`, false}, {person, `{"reason":"éé"}`, true}, {person, `{"reason":7}`, false},
		{person, `{"reason":"ok","extra":1}`, false}, {person, `[]`, false}, {person, `null`, false}, {person, `"x"`, false},
		{person, `{"reason":"ok","amount":0}`, true}, {person, `{"reason":"ok","amount":99.999}`, true}, {person, `{"reason":"ok","amount":100}`, false}, {person, `{"reason":"ok","amount":-0.1}`, false},
		{person, `{"reason":"ok","amount":1e1}`, true}, {person, `{"reason":"ok","amount":"5"}`, false}, {person, `{"reason":"ok","amount":1e999}`, false}, {person, `{"reason":"ok","amount":1e-999}`, true},
		{person, `{"reason":"ok","count":3}`, true}, {person, `{"reason":"ok","count":3.0}`, true}, {person, `{"reason":"ok","count":3.5}`, false}, {person, `{"reason":"ok","count":12345678901234567890}`, true},
		{person, `{"reason":"ok","kind":1.0}`, true}, {person, `{"reason":"ok","kind":null}`, true}, {person, `{"reason":"ok","kind":"1"}`, false}, {person, `{"reason":"ok","exactly":15e-1}`, true}, {person, `{"reason":"ok","exactly":1}`, false},
		{person, `{"reason":"ok","tags":["a","b"]}`, true}, {person, `{"reason":"ok","tags":["a","a"]}`, false}, {person, `{"reason":"ok","tags":[1]}`, false},
		{person, `{"reason":"ok","next":{"reason":"ok"}}`, true}, {person, `{"reason":"ok","next":{}}`, false},
		{`{}`, ``, true}, {`{}`, `null`, true}, {`{"type":"null"}`, `null`, true}, {`{"type":["string","null"]}`, `7`, false}, {`{"format":"date"}`, `"no date"`, true},
		{`{}`, `{`, false}, {`{}`, `{} {}`, false}, {`{}`, `1 x`, false}, {`{}`, ` `, false}, {`{}`, "\xff", false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[7]`, false},
		{`{"$defs":{"a b/c~d":{"type":"string"}},"$ref":"#/$defs/a%20b~1c~0d"}`, `7`, false}, {`{"$defs":{"x":{"$anchor":"here","type":"string"}},"$ref":"#here"}`, `"s"`, true},
		{`{"$id":"https://example.com/s","$ref":"https://example.com/s#/$defs/x","$defs":{"x":{"type":"string"}}}`, `"s"`, true},
	} {
		if err := newSchema(t, c.schema).Validate([]byte(c.value)); (err == nil) != c.fine {
			t.Errorf("%.60s: Validate(%s) = %v", c.schema, c.value, err)
		}
	}
}

// TestSchemaValidateSurvives: no value is too deep for it.
func TestSchemaValidateSurvives(t *testing.T) {
	s := newSchema(t, `{"items":{"$ref":"#"},"properties":{"a":{"$ref":"#"}}}`)
	for _, value := range []string{
		strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000),
	} {
		if err := s.Validate([]byte(value)); err != nil {
			t.Errorf("a deep value: %v", err)
		}
	}
	if err := s.Validate([]byte(strings.Repeat("[", 1_000_000))); err == nil {
		t.Error("a value without end is valid")
	}
}

func TestNewSchemaRefuses(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	const itself = `the schema at %s is defined by itself: it would be applied to the same value for ever`
	for _, c := range []struct{ source, want string }{
		{``, `a schema must be an object, true or false`}, {` `, `a schema must be an object, true or false`}, {`[]`, `a schema must be an object, true or false`}, {`null`, `a schema must be an object, true or false`}, {`"x"`, `a schema must be an object, true or false`},
		{`{`, `unexpected end of JSON input`}, {`{} {}`, `invalid character '{' after top-level value`},
		{`{"$ref":"https://example.com/s.json"}`, `$ref "https://example.com/s.json" at # leads out of the schema`}, {`{"$ref":"other.json#/a"}`, `$ref "other.json#/a" at # leads out of the schema`}, {`{"$ref":"file:///etc/passwd"}`, `$ref "file:///etc/passwd" at # leads out of the schema`},
		{`{"items":{"$ref":"#/$defs/missing"}}`, `$ref "#/$defs/missing" at #/items names a part that the schema does not have`}, {`{"$dynamicRef":"#nowhere"}`, `$dynamicRef "#nowhere" at # names a part`},
		{`tru`, `invalid character`}, {`false false`, `invalid character 'f' after top-level value`}, {`{"properties":{"a":null}}`, `jsonschema`},
		{`{"pattern":"a("}`, "the pattern at #/pattern does not compile: missing closing ) at offset 1: `(`"},
		{`{"items":{"anyOf":[true,{"patternProperties":{"a/[":false}}]}}`, "the pattern at #/items/anyOf/1/patternProperties/a~1[ does not compile: missing closing ] at offset 2: `[`"}, {`{"type":7}`, `"type" at # must be a text, or a list of texts, is 7`},
		{`{"type":"objekt"}`, `type "objekt" at # is none of null, boolean, object, array, number, string, integer`},
		{`{"type":[]}`, `type at # is an empty list: no value would satisfy it`},
		{`{"items":{"type":["string",""]}}`, `type "" at #/items is none of null, boolean, object, array, number, string, integer`},
		{`{"properties":{"a":{"items":{"type":["string","int"]}}}}`, `type "int" at #/properties/a/items is none of null, boolean, object, array, number, string, integer`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, `$schema "http://json-schema.org/draft-04/schema#" is not supported; https://json-schema.org/draft/2020-12/schema is`},
		{`{"properties":{"a":{"$id":"https://example.com/a"}}}`, `$id at #/properties/a: only the root may have one`},
		{`{"$ref":"#"}`, fmt.Sprintf(itself, "#")}, {`{"allOf":[{"$ref":"#"}]}`, fmt.Sprintf(itself, "#")}, {`{"anyOf":[{"type":"string"},{"not":{"$ref":"#"}}]}`, fmt.Sprintf(itself, "#")},
		{`{"if":{},"then":{"$ref":"#/then"}}`, fmt.Sprintf(itself, "#")}, {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, fmt.Sprintf(itself, "#")}, {`{"oneOf":[{"else":{"$ref":"#"}}]}`, fmt.Sprintf(itself, "#")},
		{`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, fmt.Sprintf(itself, "#/$defs/a")},
		{`{"properties":{"a":{"$anchor":"loop","$ref":"#loop"}}}`, fmt.Sprintf(itself, "#/properties/a")}, {`{"$dynamicAnchor":"loop","not":{"$dynamicRef":"#loop"}}`, fmt.Sprintf(itself, "#")},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, fmt.Sprintf(itself, "#")},
		{`{"$defs":{` + doubling.String() + `"d40":{}},"$ref":"#/$defs/d0"}`, `its references multiply: more than 10000 schemas would be applied to one value`},
		{`{"title":"` + strings.Repeat("t", 64<<10) + `"}`, `the schema is larger than 65536 bytes`},
		{strings.Repeat(`{"not":`, 33) + `{}` + strings.Repeat(`}`, 33), `the schema is nested 34 deep, more than 32`},
	} {
		_, err := machine.NewSchema([]byte(c.source))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("NewSchema(%.100s) = %v, want %s", c.source, err, c.want)
		}
	}
}

// TestNewSchemaAccepts are schemas that refer to themselves, but to a part of
// the value, and words of the library's that look like references.
func TestNewSchemaAccepts(t *testing.T) {
	for _, source := range []string{
		"{}", " \n{\"a\":1}", `{"properties":{"a":{"$ref":"#"}}}`, `{"items":{"$ref":"#"}}`, `{"additionalProperties":{"allOf":[{"$ref":"#"}]}}`, `{"propertyNames":{"$ref":"#"}}`,
		`{"const":{"$ref":"#"},"enum":[{"$ref":"https://example.com"}],"default":{"$id":"x"},"examples":[{"type":"objekt"}]}`,
		`{"properties":{"type":{"type":"string"},"$ref":{},"$id":{}},"dependentRequired":{"type":["a","b"]}}`,
		`{"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"}}},"b":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}`,
		`{"prefixItems":[{"$ref":"#"}],"contains":{"$ref":"#"},"unevaluatedItems":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"},"patternProperties":{"a":{"$ref":"#"}}}`,
		string(compact(machine.FileSchema())),
	} {
		s := newSchema(t, source)
		if s.String() != source {
			t.Errorf("String = %.100s, want %.100s", s, source)
		}
	}
}
