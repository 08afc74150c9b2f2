package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The schemas of tools are those of their operations, out of the document of the API: an argument
// has that of the parameter or member that it becomes, the result that of the answer. What they
// refer to comes along, as tools stand alone.

// A document is what is read of the document of the API.
type document struct {
	operations map[string]described
	schemas    map[string]any
}

// described is an operation as the document has it.
type described struct {
	method, path string
	parameters   map[string]map[string]any // by place and name, such as "query limit"
	body         map[string]any            // nil if it takes none
	answer       map[string]any
}

// refTo is how the document names a schema, refHere how a tool does.
const (
	refTo   = "#/components/schemas/"
	refHere = "#/$defs/"
)

func readDocument(text []byte) (*document, error) {
	type content map[string]struct{ Schema map[string]any }
	var raw struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In, Description string
				Schema                map[string]any
			}
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	doc := &document{map[string]described{}, raw.Components.Schemas}
	for path, methods := range raw.Paths {
		for method, op := range methods {
			d := described{method: strings.ToUpper(method), path: path, parameters: map[string]map[string]any{}, body: op.RequestBody.Content["application/json"].Schema}
			for _, p := range op.Parameters {
				schema := maps.Clone(p.Schema)
				if p.Description != "" {
					schema["description"] = p.Description
				}
				d.parameters[p.In+" "+p.Name] = schema
			}
			for _, status := range []string{"200", "201"} {
				if schema := op.Responses[status].Content["application/json"].Schema; schema != nil {
					d.answer = schema
				}
			}
			doc.operations[op.OperationID] = d
		}
	}
	return doc, nil
}

// describe writes into a tool what the document says of its operation.
func (d *document) describe(t *tool) error {
	op, ok := d.operations[t.operation]
	if !ok {
		return fmt.Errorf("the API has no operation %s", t.operation)
	}
	t.method, t.path = op.method, op.path
	properties, required := map[string]any{}, []string{}
	for _, a := range t.in {
		schema, err := d.argument(&op, &a)
		if err != nil {
			return err
		}
		properties[a.name] = schema
		if a.required {
			required = append(required, a.name)
		}
	}
	t.input = d.alone(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	answer := op.answer
	if t.asks {
		answer = map[string]any{"type": "object", "anyOf": []any{op.answer, askedSchema}}
	}
	if t.answer != nil {
		answer = t.answer
	}
	t.output = d.alone(d.rooted(answer))
	return nil
}

// argument returns the schema of an argument.
func (d *document) argument(op *described, a *argument) (map[string]any, error) {
	if a.schema != nil {
		return a.schema, nil
	}
	name := a.name
	if a.as != "" {
		name = a.as
	}
	var schema map[string]any
	switch a.in {
	case inPath:
		schema = op.parameters["path "+name]
	case inQuery:
		schema = op.parameters["query "+name]
	case inBody:
		members, _ := d.rooted(op.body)["properties"].(map[string]any)
		schema, _ = members[name].(map[string]any)
	}
	if schema == nil {
		return nil, fmt.Errorf("the operation takes no %s", name)
	}
	return schema, nil
}

// rooted returns the schema that one refers to, itself if it does not.
func (d *document) rooted(schema map[string]any) map[string]any {
	if ref, ok := schema["$ref"].(string); ok {
		if target, ok := d.schemas[strings.TrimPrefix(ref, refTo)].(map[string]any); ok {
			return target
		}
	}
	return schema
}

// alone returns a schema with all that it refers to.
func (d *document) alone(schema map[string]any) map[string]any {
	defs := map[string]any{}
	out, _ := d.inline(schema, defs).(map[string]any)
	if len(defs) > 0 {
		out["$defs"] = defs
	}
	return out
}

// inline returns a copy of a part of a schema whose references lead into defs.
func (d *document) inline(part any, defs map[string]any) any {
	switch v := part.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			ref, ok := v[name].(string)
			if name != "$ref" || !ok || !strings.HasPrefix(ref, refTo) {
				out[name] = d.inline(v[name], defs)
				continue
			}
			target := strings.TrimPrefix(ref, refTo)
			out[name] = refHere + target
			if _, done := defs[target]; !done {
				defs[target] = true // while it is made, for what refers to itself
				defs[target] = d.inline(d.schemas[target], defs)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.inline(v[i], defs)
		}
		return out
	}
	return part
}
