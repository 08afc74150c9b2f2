package payloads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
)

// An Object is a JSON object whose members keep their order.
type Object []Member

// A Member is one of an Object: its name, and its value as JSON.
type Member struct {
	Name  string
	Value json.RawMessage
}

// ObjectOf returns the members of a JSON object; nil if it is none.
func ObjectOf(text json.RawMessage) (o Object) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil
		}
		o = append(o, Member{fmt.Sprint(name), value})
	}
	return o
}

func (o Object) index(name string) int {
	return slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
}

// Has reports whether there is a member of that name.
func (o Object) Has(name string) bool { return o.index(name) >= 0 }

// Get returns a member, nil if there is none of that name.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].Value
	}
	return nil
}

// JSON returns the object as JSON.
func (o Object) JSON() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(jsontext.AppendString(b, m.Name), ':'), m.Value...)
	}
	return append(b, '}')
}
