package machine_test

import (
	"errors"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestReferencesThatLeadNowhere: a reference out of a schema is refused and says so, as
// does one to what is not there; the place is that of the reference.
func TestReferencesThatLeadNowhere(t *testing.T) {
	const outside = ` leads out of the schema, and nothing is fetched: copy what it names into $defs, and refer to it as "#/$defs/NAME"`
	for source, want := range map[string][2]string{
		`{"$ref":"http://x.example/s.json"}`:                                           {`$ref "http://x.example/s.json" at #` + outside, "/$ref"},
		`{"properties":{"a":{"$ref":"other.json#/b"}}}`:                                {`$ref "other.json#/b" at #/properties/a` + outside, "/properties/a/$ref"},
		`{"$id":"http://y/s.json","items":{"$ref":"http://y/t.json"}}`:                 {`$ref "http://y/t.json" at #/items` + outside, "/items/$ref"},
		`{"$dynamicRef":"file:///etc/passwd"}`:                                         {`$dynamicRef "file:///etc/passwd" at #` + outside, "/$dynamicRef"},
		`{"$ref":"#/$defs/none","$defs":{"some":{}}}`:                                  {`$ref "#/$defs/none" at # names a part that the schema does not have`, "/$ref"},
		`{"not":{"$ref":"#none"}}`:                                                     {`$ref "#none" at #/not names a part that the schema does not have`, "/not/$ref"},
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"string"}}}`:                   {},
		`{"$id":"http://y/s.json","$ref":"http://y/s.json#/$defs/a","$defs":{"a":{}}}`: {},
		`{"$ref":"#a","$defs":{"x":{"$anchor":"a"}}}`:                                  {},
	} {
		_, err := machine.NewSchema([]byte(source))
		if want[0] == "" {
			if err != nil {
				t.Errorf("%s: %v", source, err)
			}
			continue
		}
		part, ok := errors.AsType[*machine.SchemaError](err)
		if !ok || part.Problem != want[0] || part.Path != want[1] {
			t.Errorf("%s:\n got %v (%+v)\nwant %s at %s", source, err, part, want[0], want[1])
		}
	}
}
