package machine_test

import (
	"slices"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestViolations: all that is wrong with a value is said at once, each with its place.
func TestViolations(t *testing.T) {
	const purchase = `{"type":"object","required":["amount","buyer"],"additionalProperties":false,"properties":{
		"amount":{"type":"number","minimum":0},"count":{"type":"integer"},"buyer":{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":2},"vip":{"type":"boolean"}}},
		"lines":{"type":"array","items":{"type":"object","required":["sku"],"properties":{"sku":{"$ref":"#/$defs/sku"}}}},"kind":{"enum":["a","b"]}},
		"$defs":{"sku":{"type":"string","pattern":"^[A-Z]+$"}}}`
	for _, c := range []struct {
		schema, value string
		want          []string
	}{
		{purchase, `{"amount":5,"buyer":{"name":"Ann"}}`, nil},
		{purchase, ``, []string{"/amount: is missing; it must be a number", "/buyer: is missing; it must be an object"}},
		{purchase, `{"amuont":5,"buyer":{"name":1,"vip":"yes"},"amount":"5","count":1.5,"lines":[{"sku":"A"},{},3]}`, []string{
			"/amount: must be a number, not a text", `/amuont: is no known member; did you mean "amount"?`, "/buyer/name: must be a text, not a number", "/buyer/vip: must be true or false, not a text",
			"/count: must be a whole number, not a number", "/lines/1/sku: is missing", "/lines/2: must be an object, not a number"}},
		{purchase, `{"amount":-1,"buyer":{"name":"A"},"kind":"c","lines":[{"sku":"a"}]}`, []string{"/amount: minimum: -1 is less than 0", "/buyer/name", "/kind", "/lines/0/sku"}},
		{purchase, `{"amount":1e400,"buyer":{"name":"Ann"}}`, []string{": the number 1e400 is too large"}},
		{purchase, `[]`, []string{": must be an object, not an array"}},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"}}}`, `{}`, []string{""}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"type":"number"}}}`, `{"n":"x"}`, []string{"/n: must be a number, not a text"}},
		{`{"$id":"https://example.com/s","properties":{"n":{"type":"number"}}}`, `{"n":"x"}`, []string{""}},
	} {
		s, err := machine.NewSchema([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		found := s.Violations([]byte(c.value))
		for i, v := range found {
			switch {
			case i < len(c.want) && (c.want[i] == v.Path) && v.Problem != "": // what the library says is its own matter
				got = append(got, v.Path)
			case v.Path == "":
				got = append(got, ": "+v.Problem)
			default:
				got = append(got, v.String())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %.40s:\n%q, want\n%q", c.value, c.schema, got, c.want)
		}
	}
}
