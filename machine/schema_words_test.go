package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestMistypedWords: a word of a schema whose value is of a type that it cannot have is
// named with its place, in the words of JSON and not in those of a library.
func TestMistypedWords(t *testing.T) {
	for source, want := range map[string]string{
		`{"exclusiveMinimum":true}`:              `/exclusiveMinimum: "exclusiveMinimum" at # must be a number, is true: write the bound itself, without "minimum"`,
		`{"maximum":5,"exclusiveMaximum":false}`: `/exclusiveMaximum: "exclusiveMaximum" at # must be a number, is false: leave it out`,
		`{"properties":{"n":{"required":true}}}`: `/properties/n/required: "required" at #/properties/n must be a list of texts, is true: list the name in "required" of the object`,
		`{"required":["a",5]}`:                   `/required/1: #/required/1 must be a text, is 5`,
		`{"minLength":"a"}`:                      `/minLength: "minLength" at # must be a whole number, is "a"`,
		`{"minLength":0.5}`:                      `/minLength: "minLength" at # must be a whole number, is 0.5`,
		`{"maxItems":1e30}`:                      `/maxItems: "maxItems" at # must be a whole number, is 1e+30`,
		`{"type":5}`:                             `/type: "type" at # must be a text, or a list of texts, is 5`,
		`{"type":["string",5]}`:                  `/type/1: #/type/1 must be a text, is 5`,
		`{"items":5}`:                            `/items: "items" at # must be a schema: an object, true or false, or a list of schemas, is 5`,
		`{"items":[5]}`:                          `/items/0: #/items/0 must be a schema: an object, true or false, is 5`,
		`{"dependencies":{"a":"b"}}`:             `/dependencies/a: #/dependencies/a must be a schema: an object, true or false, or a list of texts, is "b"`,
		`{"properties":[]}`:                      `/properties: "properties" at # must be an object of schemas, is a list`,
		`{"properties":{"n":5}}`:                 `/properties/n: #/properties/n must be a schema: an object, true or false, is 5`,
		`{"additionalProperties":5}`:             `/additionalProperties: "additionalProperties" at # must be a schema: an object, true or false, is 5`,
		`{"allOf":{}}`:                           `/allOf: "allOf" at # must be a list of schemas, is an object`,
		`{"enum":5}`:                             `/enum: "enum" at # must be a list, is 5`,
		`{"uniqueItems":"x"}`:                    `/uniqueItems: "uniqueItems" at # must be true or false, is "x"`,
		`{"dependentRequired":{"a":5}}`:          `/dependentRequired/a: #/dependentRequired/a must be a list of texts, is 5`,
		`{"$vocabulary":{"a":5}}`:                `/$vocabulary/a: #/$vocabulary/a must be true or false, is 5`,
		`{"$ref":5}`:                             `/$ref: "$ref" at # must be a text, is 5`,
		`{"examples":{}}`:                        `/examples: "examples" at # must be a list, is an object`,
	} {
		_, err := machine.NewSchema([]byte(source))
		part, ok := errors.AsType[*machine.SchemaError](err)
		if !ok {
			t.Errorf("%s: %v, which has no place", source, err)
			continue
		}
		if got := part.Path + ": " + part.Problem; got != want {
			t.Errorf("%s:\n got %s\nwant %s", source, got, want)
		}
	}
	for _, source := range []string{
		`{"type":["string","null"],"items":{"items":true},"dependencies":{"a":["b"],"c":{}},"$schema":"http://json-schema.org/draft-07/schema#","examples":[null,1],"const":true,"default":5}`,
		`{"minLength":3.0,"minimum":null,"x-own":{"minimum":"a"},"properties":{"minimum":{"type":"string"}}}`,
	} {
		if _, err := machine.NewSchema([]byte(source)); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestPlainViolation: numbers out of their bounds are told of as JSON writes them.
func TestPlainViolation(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"minimum":1}`, `0`, "minimum: 0 is less than 1"},
		{`{"maximum":0.5}`, `0.75`, "maximum: 0.75 is greater than 0.5"},
		{`{"exclusiveMinimum":-2}`, `-2`, "exclusiveMinimum: -2 is less than or equal to -2"},
		{`{"exclusiveMaximum":1.5}`, `0.1e2`, "exclusiveMaximum: 10 is greater than or equal to 1.5"},
		{`{"multipleOf":0.25}`, `0.1`, "multipleOf: 0.1 is not a multiple of 0.25"},
		{`{"properties":{"n":{"minimum":1}}}`, `{"n":-1e2}`, "minimum: -100 is less than 1"},
	} {
		s, err := machine.NewSchema([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate([]byte(c.value)); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %s", c.schema, c.value, err, c.want)
		}
	}
}
