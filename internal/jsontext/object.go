package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unsafe"
)

// An Object is a JSON object taken apart into its members, whose values stay as they are
// written until somebody asks. The zero Object has none. It never changes: With makes
// another, which shares the values. It may be used concurrently.
type Object struct {
	members []Member
	places  map[string]int // in members, by name; nil while they are few
}

// A Member is one member of an Object.
type Member struct {
	Name  string
	Value json.RawMessage // compact; never changed
}

// ReadObject takes JSON apart, which must not be changed afterwards. What is no object has
// no members. Of two members of one name the last one counts.
func ReadObject(data []byte) Object { return Object{}.WithJSON(data) }

// ObjectOf returns an Object of members, which it takes over. Of two of one name the last
// one counts.
func ObjectOf(members []Member) (o Object) {
	o.members = members[:0]
	for _, m := range members {
		o.put(m)
	}
	return o
}

// fewMembers is how many members are found faster one by one.
const fewMembers = 16

func (o *Object) put(m Member) {
	if i := o.index(m.Name); i >= 0 {
		o.members[i] = m
		return
	}
	o.members = append(o.members, m)
	switch n := len(o.members); {
	case o.places != nil:
		o.places[m.Name] = n - 1
	case n > fewMembers:
		o.places = make(map[string]int, 2*n)
		for i := range o.members {
			o.places[o.members[i].Name] = i
		}
	}
}

func (o Object) index(name string) int {
	if o.places != nil {
		if i, ok := o.places[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.members, func(m Member) bool { return m.Name == name })
}

// Members returns the members in their order. The caller must not change them.
func (o Object) Members() []Member { return o.members }

// Get returns the value of a member, nil if there is none.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o.members[i].Value
	}
	return nil
}

// Has reports whether there is a member of that name.
func (o Object) Has(name string) bool { return o.index(name) >= 0 }

// With returns o with members written over its own; new ones stand at the end.
func (o Object) With(members []Member) Object {
	next := o.clone(len(members))
	for _, m := range members {
		next.put(m)
	}
	return next
}

// WithJSON is With of the members of a JSON object, which must not be changed afterwards.
// What is no object has none.
func (o Object) WithJSON(data []byte) Object {
	if len(data) < len(`{"":0}`) || data[0] != '{' {
		return o
	}
	next := o.clone(min(1+bytes.Count(data, []byte{','}), fewMembers))
	c := Cursor{B: data}
	c.Members(func(quoted []byte) {
		name := unsafe.String(unsafe.SliceData(quoted), len(quoted))
		if slices.Contains(quoted, '\\') {
			text, _, _ := Unquote(slices.Concat([]byte{'"'}, quoted, []byte{'"'}), 0, nil)
			name = string(text)
		}
		next.put(Member{name, c.Raw()})
	})
	if c.Err != nil {
		return o
	}
	return next
}

// clone returns a copy of o with room for so many members more.
func (o Object) clone(room int) Object {
	return Object{append(make([]Member, 0, len(o.members)+room), o.members...), maps.Clone(o.places)}
}

// JSON returns o as compact JSON.
func (o Object) JSON() json.RawMessage { return o.Append(make([]byte, 0, o.Size())) }

// Append appends o as compact JSON.
func (o Object) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(AppendString(dst, m.Name), ':'), m.Value...)
	}
	return append(dst, '}')
}

// Size returns how long Append would make an empty text.
func (o Object) Size() int {
	n := len("{}") + max(0, len(o.members)-1)
	for _, m := range o.members {
		n += len(`"":`) + len(m.Name) + len(m.Value)
		if SkipPlain(unsafe.Slice(unsafe.StringData(m.Name), len(m.Name)), 0) < len(m.Name) {
			n += len(AppendString(nil, m.Name)) - len(`""`) - len(m.Name)
		}
	}
	return n
}

// MarshalJSON implements [encoding/json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return o.Append(nil), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (o *Object) UnmarshalJSON(data []byte) error {
	compact, err := Compact(data)
	if err == nil && compact[0] != '{' {
		err = fmt.Errorf("an object is expected, not %.20s", compact)
	}
	if err == nil {
		*o = ReadObject(compact)
	}
	return err
}
