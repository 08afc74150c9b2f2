package machine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/strategies"
)

var update = flag.Bool("update", false, "rewrite the published copy of the schema")

// checks are the rules of machine files as the whole program has them.
func checks() machine.Checks {
	c := strategies.Checks()
	c.Guards, c.GuardsIn = guard.Check, guard.CheckIn
	return c
}

func TestFileSchemaIsPublished(t *testing.T) {
	const path = "../schema/machine.schema.json"
	want := machine.FileSchema()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not machine/schema.json; run go test ./machine -run Published -update", path)
	}
}

func TestFileSchemaBelongsToTheCaller(t *testing.T) {
	clear(machine.FileSchema())
	if !json.Valid(machine.FileSchema()) {
		t.Error("a caller changed the schema of all others")
	}
}

// A schemaNode is one schema of the published one.
type schemaNode = map[string]any

func publishedSchema(t testing.TB) schemaNode {
	var root schemaNode
	if err := json.Unmarshal(machine.FileSchema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// object returns the schema of one kind of object: the machine's ("") or a
// definition's.
func object(root schemaNode, name string) schemaNode {
	if name == "" {
		return root
	}
	return root["$defs"].(schemaNode)[name].(schemaNode)
}

func propertyNames(root schemaNode, name string) []string {
	var names []string
	for property := range object(root, name)["properties"].(schemaNode) {
		names = append(names, property)
	}
	slices.Sort(names)
	return names
}

// TestFileSchemaHasTheFieldsOfTheStructs fails if a struct or the schema gains
// a field alone.
func TestFileSchemaHasTheFieldsOfTheStructs(t *testing.T) {
	root := publishedSchema(t)
	for _, c := range []struct {
		name      string
		of        any
		keyed     string   // a field that is the key of the object instead
		schemaHas []string // fields that only files have
	}{
		{"", machine.Definition{}, "", []string{"$schema", "defaultState"}},
		{"state", machine.StateDefinition{}, "name", nil},
		{"transitionObject", machine.TransitionDefinition{}, "name", nil},
		{"specialist", machine.Specialist{}, "", nil},
		{"risk", machine.Risk{}, "", nil},
		{"solicitObject", machine.Solicit{}, "", nil},
	} {
		want := slices.Clone(c.schemaHas)
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != c.keyed {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := propertyNames(root, c.name); !slices.Equal(got, want) {
			t.Errorf("%T has the fields %q, the schema %q", c.of, want, got)
		}
	}
}

func TestFileSchemaNamesTheBuiltInStrategies(t *testing.T) {
	root := publishedSchema(t)
	for role, name := range map[machine.Role]string{machine.Proposer: "proposerMode", machine.Arbiter: "arbiterMode"} {
		choices := object(root, name)["properties"].(schemaNode)["strategyFnName"].(schemaNode)["anyOf"].([]any)[0].(schemaNode)["enum"].([]any)
		var got []string
		for _, c := range choices {
			got = append(got, c.(string))
		}
		if want := strategies.Names(role); !slices.Equal(got, want) {
			t.Errorf("the schema names the strategies %q of a %s, built in are %q", got, role, want)
		}
	}
}

// documented are the objects whose fields an editor shows.
var documented = []string{"", "state", "transitionObject", "specialist", "risk", "solicitObject",
	"guards", "stateGuards", "limits", "cost", "price", "tier", "loopDetection", "retry", "store", "packs", "pack",
	"classifier", "breaker", "truth", "thresholds", "prmOptions"}

// TestFileSchemaHelps holds the schema to what an editor needs: every field has
// a description, and every example and default is one that the field accepts.
func TestFileSchemaHelps(t *testing.T) {
	root := publishedSchema(t)
	for _, name := range documented {
		if object(root, name)["title"] == nil {
			t.Errorf("%q has no title", name)
		}
		for property, p := range object(root, name)["properties"].(schemaNode) {
			schema := p.(schemaNode)
			if text := described(root, schema); !strings.HasSuffix(text, ".") {
				t.Errorf("%s.%s: the description %q is no sentence", name, property, text)
			}
			var accepts *machine.Schema
			for _, example := range samples(schema) {
				if accepts == nil {
					accepts = compileNode(t, root, schema)
				}
				data, err := json.Marshal(example)
				if err != nil {
					t.Fatal(err)
				}
				if err := accepts.Validate(data); err != nil {
					t.Errorf("%s.%s: the schema refuses its own example %s: %v", name, property, data, err)
				}
			}
		}
	}
}

// described returns the description of a schema or of what it refers to.
func described(root, schema schemaNode) string {
	if text, ok := schema["description"].(string); ok {
		return text
	}
	if ref, ok := schema["$ref"].(string); ok {
		return described(root, object(root, strings.TrimPrefix(ref, "#/$defs/")))
	}
	return ""
}

func samples(schema schemaNode) []any {
	all, _ := schema["examples"].([]any)
	if d, ok := schema["default"]; ok {
		all = append(slices.Clone(all), d)
	}
	return all
}

// compileNode compiles one schema of the published one by itself, with the definitions
// that it needs.
func compileNode(t *testing.T, root, schema schemaNode) *machine.Schema {
	alone, defs := maps.Clone(schema), schemaNode{}
	need(root, schema, defs)
	alone["$defs"] = defs
	source, err := json.Marshal(alone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := machine.NewSchema(source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// need adds the definitions that part of a schema refers to, and those that they do.
func need(root schemaNode, part any, defs schemaNode) {
	switch part := part.(type) {
	case schemaNode:
		ref, _ := part["$ref"].(string)
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok && defs[name] == nil {
			defs[name] = object(root, name)
			need(root, defs[name], defs)
		}
		for _, p := range part {
			need(root, p, defs)
		}
	case []any:
		for _, p := range part {
			need(root, p, defs)
		}
	}
}

func TestFileSchemaNamesTheDefaults(t *testing.T) {
	root := publishedSchema(t)
	m := mustParse(t, "defaults.json", minimal)
	solicit := m.Initial().Solicit
	for _, c := range []struct {
		object, property string
		want             any
	}{
		{"solicitObject", "mode", string(solicit.Mode)},
		{"solicitObject", "maxParallel", float64(solicit.MaxParallel)},
		{"solicitObject", "wave", float64(solicit.Wave)},
		{"loopDetection", "max_state_visits", float64(guard.DefaultMaxStateVisits)},
		{"store", "history_limit", float64(guard.DefaultHistoryLimit)},
	} {
		got := object(root, c.object)["properties"].(schemaNode)[c.property].(schemaNode)["default"]
		if got != c.want {
			t.Errorf("%s.%s: the schema says the default is %v, it is %v", c.object, c.property, got, c.want)
		}
	}
	for property, want := range map[string]machine.Duration{"roundTimeout": solicit.RoundTimeout, "asyncTimeout": solicit.AsyncTimeout} {
		text, _ := json.Marshal(object(root, "solicitObject")["properties"].(schemaNode)[property].(schemaNode)["default"])
		var got machine.Duration
		if err := got.UnmarshalJSON(text); err != nil || got != want {
			t.Errorf("%s: the schema says the default is %s, it is %v", property, text, want)
		}
	}
}
