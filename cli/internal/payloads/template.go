package payloads

import (
	"encoding/json"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/session"
)

// Placeholder stands in a template for what somebody has to write.
const Placeholder = "…"

// MaxTemplate is the longest payload that stands in a printed command, in bytes; a longer
// one is to be given on stdin.
const MaxTemplate = 1 << 10

// Template returns the payload in the printed command of a choice: what goes with it so
// far, or the names that its parameters require; "" if it needs none.
func Template(t session.InboxTransition) string {
	var s Schema
	switch {
	case len(t.MetaJSON) > MaxTemplate:
		return "-"
	case t.MetaJSON != nil:
		return string(t.MetaJSON)
	case !t.MetaJSONRequired:
		return ""
	case json.Unmarshal(t.Parameters, &s) != nil || len(s.Required) == 0:
		return Placeholder
	}
	return s.object(jsontext.Object{}, Schema.Blank)
}

// Skeleton returns an object with a value for each member that a schema requires, which
// it is likely to accept; "" if it requires none.
func Skeleton(schema json.RawMessage) string {
	return Completed(string(schema), nil, Schema.Example)
}

// Completed returns the members of a payload and a value for each other one that a
// schema requires; "" if it requires none.
func Completed(schema string, given json.RawMessage, value func(Schema) string) string {
	var s Schema
	if schema == "" || json.Unmarshal([]byte(schema), &s) != nil || len(s.Required) == 0 {
		return ""
	}
	return s.object(jsontext.ReadObject(given), value)
}

// Example returns a payload with what the parameters of a transition require; nil if that
// is nothing.
func Example(parameters []byte) []byte {
	if text := Skeleton(parameters); text != "" {
		return []byte(text)
	}
	return nil
}
