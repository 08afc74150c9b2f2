package guard_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

//go:generate go test -run ^TestSchema$ -write-schema .

var writeSchema = flag.Bool("write-schema", false, "write schema/guards.schema.json")

// TestSchema compares the published schema of guards files with the part of the
// schema of machine files that is about guards. That one is held to the loader by
// the tests of package machine.
func TestSchema(t *testing.T) {
	const path = "../schema/guards.schema.json"
	want := guardsSchema(t)
	if *writeSchema {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema/guards.schema.json is not up to date: go generate ./guard writes it")
	}
	schema, err := machine.NewSchema(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{
		`{}`, `{"profile":"compat"}`, `{"limits":{"max_steps":3,"output_max":10}}`, `{"limits":{"max_steps":-1}}`, `{"limit":{}}`, `{"forbidden_patterns":["a"]}`, `{"forbidden_patterns":"a"}`,
		`{"tool_calls":{"sequence":[{"tool":"a"}]}}`, `{"batch_loop":{"hardLimit":51}}`, `{"batch_loop":null}`, `{"budget":{"hard_limit_usd":1.5}}`, `{"budget":{"mode":"kill"}}`, `[]`, `{"loop_detection":{"cycle":false,"near":{"jaccard":0}}}`,
	} {
		loads := len(guard.Check([]byte(section), false)) == 0
		if err := schema.Validate([]byte(section)); (err == nil) != loads {
			t.Errorf("%s: the loader accepts it: %t, the schema: %v", section, loads, err)
		}
	}
}

// guardsSchema returns the guards of the schema of machine files as a schema of
// their own.
func guardsSchema(t *testing.T) []byte {
	t.Helper()
	var whole struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(machine.FileSchema(), &whole); err != nil {
		t.Fatal(err)
	}
	defs := map[string]json.RawMessage{}
	var add func(name string)
	add = func(name string) {
		if defs[name] != nil {
			return
		}
		defs[name] = whole.Defs[name]
		for _, part := range strings.Split(string(whole.Defs[name]), `"#/$defs/`)[1:] {
			used, _, _ := strings.Cut(part, `"`)
			add(used)
		}
	}
	add("guards")
	out, err := json.MarshalIndent(map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "https://raw.githubusercontent.com/dialai/dialai/main/schema/guards.schema.json",
		"$comment":    "Taken from the schema of machine files. A test compares the two.",
		"title":       "dialai guards",
		"description": "The guards section of a machine, or a guards file of its own.",
		"$ref":        "#/$defs/guards",
		"$defs":       defs,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}
