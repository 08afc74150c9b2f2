package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
)

// nested returns an object in an object, so many deep, around a value.
func nested(deep int, v string) string {
	return strings.Repeat(`{"a":`, deep) + v + strings.Repeat("}", deep)
}

// TestSchemaTakesBoundedTime: schemas that apply several of themselves to the same part
// of a value take twice as long, or more, for each level of it. They are not asked about
// values for which that would take too long, and about others as ever.
func TestSchemaTakesBoundedTime(t *testing.T) {
	var chain strings.Builder
	for i := range 60 {
		fmt.Fprintf(&chain, `"d%d":{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}}},`, i, i+1, i+1)
	}
	for _, schema := range []string{
		`{"type":"object","additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}`,
		`{"oneOf":[{"properties":{"a":{"$ref":"#"}},"required":["a"]},{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"type":"integer"}]}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`,
		`{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"additionalProperties":{"$ref":"#"}}]}`,
		`{"$defs":{` + chain.String() + `"d60":{"type":"object"}},"$ref":"#/$defs/d0"}`,
		`{"type":["object"],"properties":{"a":{"$dynamicRef":"#x"}},"unevaluatedProperties":{"$ref":"#"},"patternProperties":{"a":{"$ref":"#"}},"$dynamicAnchor":"x"}`,
	} {
		s, err := machine.NewSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for _, v := range []string{"1", `{"b":2}`, `["x"]`} {
			if err := s.Validate([]byte(nested(60, v))); !errors.Is(err, machine.ErrSchemaWork) {
				t.Errorf("%.60s: %v", schema, err)
			}
			if err := s.Validate([]byte(nested(5, v))); errors.Is(err, machine.ErrSchemaWork) {
				t.Errorf("%.60s is not asked about a value of five levels", schema)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%.60s took %s", schema, took)
		}
	}
}

// TestSchemaOfManyBranches: each branch that says no prints the value.
func TestSchemaOfManyBranches(t *testing.T) {
	s, err := machine.NewSchema([]byte(`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"string"},`, 3000), ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	large := `["` + strings.Repeat("x", 2<<20) + `"]`
	if err := s.Validate([]byte(large)); !errors.Is(err, machine.ErrSchemaWork) {
		t.Errorf("%.100v", err)
	}
	for _, v := range []string{`"x"`, `["xx"]`, `[1]`} {
		if err := s.Validate([]byte(v)); errors.Is(err, machine.ErrSchemaWork) {
			t.Errorf("it is not asked about %.20s", v)
		}
	}
}

// TestSchemaOfTrees: usual schemas that lead back to themselves are asked about large and
// deep values.
func TestSchemaOfTrees(t *testing.T) {
	const tree = `{"type":"object","properties":{"a":{"$ref":"#"},"list":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}`
	kind := func(name, members string) string {
		return `{"type":"object","required":["kind",` + members + `],"properties":{"kind":{"const":"` + name + `"},"left":{"$ref":"#"},"right":{"$ref":"#"}}}`
	}
	expression := `{"anyOf":[{"type":"number"},` + kind("add", `"left"`) + `,` + kind("mul", `"right"`) + `]}`
	deep := "1"
	for range 8 {
		deep = `{"kind":"mul","left":` + deep + `,"right":2}`
	}
	for _, c := range []struct{ schema, value string }{
		{tree, nested(60, "{}")},
		{tree, `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"a":{}},`, 50_000), ",") + `]}`},
		{expression, deep},
		{`{"type":"array","items":` + expression[:len(expression)-1] + `}}`, `[` + strings.TrimSuffix(strings.Repeat(`1,`, 20_000), ",") + `]`},
	} {
		s, err := machine.NewSchema([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate([]byte(c.value)); err != nil {
			t.Errorf("%.60s of %.60s: %.200v", c.schema, c.value, err)
		}
	}
}
