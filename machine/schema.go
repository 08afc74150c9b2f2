package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/jsonschema-go/jsonschema"
)

// This is the only file that knows the JSON Schema library.

const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
)

// A Schema is a compiled JSON Schema (draft 2020-12). It never changes and may
// be used concurrently. Remote references are refused; "format" only annotates.
type Schema struct {
	source   string
	resolved *jsonschema.Resolved
}

// NewSchema compiles one JSON Schema, which must be an object.
func NewSchema(source []byte) (*Schema, error) {
	if len(source) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema is larger than %d bytes", maxSchemaBytes)
	}
	if trimmed := bytes.TrimLeft(source, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errors.New("a schema must be an object")
	}
	if d := depth(source); d > maxSchemaDepth {
		return nil, fmt.Errorf("the schema is nested %d deep, more than %d", d, maxSchemaDepth)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(source, &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &Schema{string(source), resolved}, nil
}

// depth returns how deeply the brackets of a JSON text are nested.
func depth(data []byte) (deepest int) {
	now, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// String returns the schema's source.
func (s *Schema) String() string { return s.source }

// Validate returns the first violation of s by one JSON value, or nil. Absent
// data counts as an empty object.
func (s *Schema) Validate(data []byte) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("unexpected data after the value")
	}
	return s.resolved.Validate(v)
}
