package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dialai/dialai/internal/jsontext"
)

// This file and schema_graph.go are the only ones that know the JSON Schema
// library.

const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
)

// A Schema is a compiled JSON Schema (draft 2020-12, or 7 if "$schema" says so).
// It never changes and may be used concurrently. References out of the schema
// are refused; "format" only annotates.
type Schema struct {
	source   string
	resolved *jsonschema.Resolved
	graph    *schemaGraph
}

// A SchemaError says what is wrong with a part of a JSON Schema.
type SchemaError struct {
	Path    string // JSON pointer of the part within the schema; "" for the whole
	Problem string // a sentence that follows a colon
}

func (e *SchemaError) Error() string { return e.Problem }

// NewSchema compiles one JSON Schema: an object, or true, which everything
// satisfies, or false, which nothing does. The error is a *SchemaError where it is
// known which part is wrong. Words of earlier drafts, which check nothing, are errors.
func NewSchema(source []byte) (*Schema, error) { return ReadSchema(source, RefuseEarlier) }

// ReadSchema is NewSchema for a schema whose words of earlier drafts, unless it names its
// draft, are read in another way.
func ReadSchema(source []byte, reading SchemaReading) (*Schema, error) {
	if len(source) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema is larger than %d bytes", maxSchemaBytes)
	}
	if trimmed := bytes.TrimLeft(source, " \t\r\n"); len(trimmed) == 0 || !bytes.ContainsAny(trimmed[:1], "{tf") {
		return nil, errors.New("a schema must be an object, true or false")
	}
	if d := jsontext.Depth(source); d > maxSchemaDepth {
		return nil, fmt.Errorf("the schema is nested %d deep, more than %d", d, maxSchemaDepth)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(source, &s); err != nil {
		return nil, mistyped(source, err)
	}
	if !slices.Contains(drafts, s.Schema) {
		return nil, fmt.Errorf("$schema %q is not supported; %s is", s.Schema, drafts[1])
	}
	for path, part := range schemas("", &s) {
		if err := checkWords(path, part); err != nil {
			return nil, err
		}
	}
	if err := readDraft(&s, reading); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, unresolved(&s, err)
	}
	graph, err := checkGraph(&s)
	if err != nil {
		return nil, err
	}
	return &Schema{string(source), resolved, graph}, nil
}

// drafts are the values "$schema" may have.
var drafts = []string{"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#"}

// values returns how many values there are in a compact JSON text.
func values(data []byte) int {
	n := 1
	jsontext.Punctuation(data, func(at int) {
		switch data[at] {
		case ',':
			n++
		case '{', '[':
			if data[at+1] != data[at]+2 { // not empty
				n++
			}
		}
	})
	return n
}

// String returns the schema's source.
func (s *Schema) String() string { return s.source }

// Validate returns the first violation of s by one JSON value, or nil. Absent
// data counts as an empty object. A value that would take too long to check is a
// violation too, [ErrSchemaWork].
func (s *Schema) Validate(data []byte) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	// As float64: the library takes a json.Number for a string.
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		if number, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // nothing else fits no any
			return errors.New(tooLarge(strings.TrimPrefix(number.Value, "number ")))
		}
		return err
	}
	if s.graph.tooMuch(v, len(data)) {
		return ErrSchemaWork
	}
	return plainViolation(s.resolved.Validate(v))
}
