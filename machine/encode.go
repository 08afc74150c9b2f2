package machine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// The canonical form of a definition is what encoding/json makes of it: the fixed members
// in the order of the specification, which is that of the fields, absent ones left out, and
// states and transitions in written order. Sections and numbers are canonical before.

// asWritten are the escapes of encoding/json that RFC 8785 does not have.
var asWritten = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd")

// canonical returns def in canonical form.
func (def *Definition) canonical() []byte {
	text, err := jsontext.Marshal(def)
	if err != nil {
		panic("machine: " + err.Error()) // sections are JSON, and numbers finite
	}
	return []byte(asWritten.Replace(string(text)))
}

// The lists of states and transitions are objects in a file, whose members have their
// names.
type (
	stateList      []StateDefinition
	transitionList []TransitionDefinition
)

// MarshalJSON writes an object of states.
func (l stateList) MarshalJSON() ([]byte, error) {
	type plain StateDefinition
	return asObject(l, func(s *StateDefinition) (string, any) {
		return s.Name, struct {
			plain
			Name string `json:"name,omitempty"` // hides that of the state
		}{plain: plain(*s)}
	})
}

// MarshalJSON writes an object of transitions.
func (l transitionList) MarshalJSON() ([]byte, error) {
	type plain TransitionDefinition
	return asObject(l, func(t *TransitionDefinition) (string, any) {
		return t.Name, struct {
			plain
			Name string `json:"name,omitempty"`
		}{plain: plain(*t)}
	})
}

// asObject returns a list as an object, by what member says of each.
func asObject[T any](list []T, member func(*T) (name string, value any)) ([]byte, error) {
	b := []byte{'{'}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, value := member(&list[i])
		text, err := jsontext.Marshal(value)
		if err != nil {
			return nil, err
		}
		b = append(append(jsontext.AppendString(b, name), ':'), text...)
	}
	return append(b, '}'), nil
}

// MarshalJSON writes a wave that is as large as need be as "auto".
func (s Solicit) MarshalJSON() ([]byte, error) {
	type plain Solicit
	text, err := json.Marshal(plain(s))
	return bytes.Replace(text, []byte(`"wave":-1`), []byte(`"wave":"auto"`), 1), err
}
