package llm

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// TestOrderWithinAModel: with two options those of one model see them in turns, and
// the first of each model in one base order.
func TestOrderWithinAModel(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b",
		"states":{"a":{"transitions":{"on":"b","back":"a"},"specialists":[{"role":"proposer","specialistId":"one"},{"role":"proposer","specialistId":"two"},{"role":"proposer","specialistId":"three"},{"role":"proposer","specialistId":"other"}]},"b":{}},
		"specialists":[{"role":"proposer","specialistId":"one","contextFn":"f","modelId":"x/m"},{"role":"proposer","specialistId":"other","contextFn":"f","modelId":"x/n"},
		{"role":"proposer","specialistId":"two","contextFn":"f","modelId":"x/m"},{"role":"proposer","specialistId":"three","contextFn":"f","modelId":"x/m"}]}`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	swapped := 0
	for round := range int32(200) {
		order := func(id string) []string {
			o := optionsOf(&specialist.Question{Machine: m, State: m.Initial(), Self: id, Key: specialist.RoundKey{Session: specialist.SessionID{1}, Round: round}})
			return o.names()
		}
		one, two, three, other := order("one"), order("two"), order("three"), order("other")
		if slices.Equal(one, two) || !slices.Equal(one, three) || !slices.Equal(one, other) {
			t.Fatalf("round %d: %v, %v, %v of one model, %v of another", round, one, two, three, other)
		}
		if one[0] == "back" {
			swapped++
		}
	}
	if swapped < 70 || swapped > 130 { // 4 standard errors around 100
		t.Errorf("the base order was swapped in %d of 200 rounds", swapped)
	}
}

// TestWrappedReferences: what a schema says of itself still holds where it is that of a
// member.
func TestWrappedReferences(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"array","items":{"$ref":"#/$defs/line"},"$defs":{"line":{"type":"number","minimum":1.50}}}`: `{"$defs":{"line":{"minimum":1.50,"type":"number"}},"items":{"$ref":"#/properties/value/$defs/line"},"type":"array"}`,
		`{"type":"array","items":{"$ref":"#"},"default":{"$ref":"#"}}`:                                       `{"default":{"$ref":"#"},"items":{"$ref":"#/properties/value"},"type":"array"}`,
		`{"type":["object","null"],"properties":{"$ref":{"type":"string"},"default":{"$ref":"#"}}}`:          `{"properties":{"$ref":{"type":"string"},"default":{"$ref":"#/properties/value"}},"type":["object","null"]}`,
		`{"type":"array","items":{"const":"<&>"}}`:                                                           `{"type":"array","items":{"const":"<&>"}}`,
	} {
		if _, inner := asObject(strings.Replace(schema, `"array"`, `"object"`, 1)); inner != strings.Contains(schema, `"null"`) {
			t.Errorf("%s of an object is wrapped: %t", schema, inner)
		}
		got, wrapped := asObject(schema)
		if full := `{"type":"object","properties":{"value":` + want + `},"required":["value"]}`; !wrapped || string(got) != full {
			t.Errorf("%s is wrapped as %s, want %s", schema, got, full)
		}
	}
}

// TestFunctionNames: names that Gemini does not take are told from all others.
func TestFunctionNames(t *testing.T) {
	for tool, want := range map[string]string{"pay": "pay", "_pay": "_pay", "2nd": "_2nd", "-x": "_-x", "_2nd": "__2nd", "__-": "___-", "_": "_", "": ""} {
		if got := functionName(tool); got != want || toolName(got) != tool {
			t.Errorf("%q is called %q, which is %q; want %q", tool, got, toolName(got), want)
		}
	}
	r := Request{Tools: []Tool{{Name: "2nd", Parameters: noParameters}}}
	if body := string(generate{}.encode(nil, "m", &r, 0)); !strings.Contains(body, `"name":"_2nd"`) || r.Tools[0].Name != "2nd" {
		t.Errorf("%s of %+v", body, r)
	}
	var said Response
	if err := (generate{}).decode([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"_2nd","args":{}}}]}}]}`), &said); err != nil || said.ToolCalls[0].Name != "2nd" {
		t.Errorf("%+v, %v", said, err)
	}
}

// TestAlternativesAreWrapped: parameters that are one of several things are those of a
// member, since no tool can have them.
func TestAlternativesAreWrapped(t *testing.T) {
	for _, word := range []string{`"oneOf":[{"required":["a"]}]`, `"anyOf":[{}]`, `"allOf":[{}]`, `"not":{"required":["b"]}`, `"enum":[{}]`, `"const":{}`} {
		for _, schema := range []string{`{"type":"object",` + word + `}`, `{` + word + `}`} {
			if got, wrapped := asObject(schema); !wrapped || string(got) != `{"type":"object","properties":{"value":`+schema+`},"required":["value"]}` {
				t.Errorf("%s is told as %s", schema, got)
			}
		}
	}
	if got, wrapped := asObject(`{"type":"object","properties":{"a":{"enum":[1]},"not":{}}}`); wrapped {
		t.Errorf("what is below is wrapped: %s", got)
	}
}

// TestOddNamesAreWrapped: one member with a name that Anthropic refuses would have it
// refuse every tool.
func TestOddNamesAreWrapped(t *testing.T) {
	for _, name := range []string{"größe", "filter[id]", "$top", "a b", "", strings.Repeat("x", 65)} {
		schema := `{"type":"object","properties":{"a":{},"` + name + `":{"type":"integer"}}}`
		if got, wrapped := asObject(schema); !wrapped || string(got) != `{"type":"object","properties":{"value":`+schema+`},"required":["value"]}` {
			t.Errorf("%q is told as %s", name, got)
		}
	}
	for _, schema := range []string{`{"type":"object","properties":{"aZ_.-9":{"properties":{"größe":{}}},"` + strings.Repeat("x", 64) + `":{}}}`, `{"type":"object","properties":{}}`} {
		if got, wrapped := asObject(schema); wrapped {
			t.Errorf("%s is wrapped: %s", schema, got)
		}
	}
}

// TestPayloadIsRequired (C7.5): where every option needs a payload the schema of an answer
// requires one; where only some do, the prompt says which.
func TestPayloadIsRequired(t *testing.T) {
	const needs = `{"target":"b","parameters":{"type":"object","required":["why"]}}`
	for other, want := range map[string]string{
		needs: `"required":["transitionName","reasoning","metaJson"]`,
		`{"target":"b","parameters":{"type":"object"}}`: `"required":["transitionName","reasoning"]`,
	} {
		m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":`+needs+`,"off":`+other+`}},"b":{}}}`), machine.Checks{})
		if err != nil {
			t.Fatal(err)
		}
		q := &specialist.Question{Machine: m, State: m.Initial()}
		o := optionsOf(q)
		if got := string(o.schema()); !strings.Contains(got, want) {
			t.Errorf("the schema is %s, want %s", got, want)
		}
		said := strings.Count(user(q, &o, bySchema, material{}), "its metaJson is required, and satisfies the JSON Schema ")
		if said != strings.Count(want, "metaJson")+1 {
			t.Errorf("the prompt says of %d options that they need a payload", said)
		}
	}
}
