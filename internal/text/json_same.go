package text

import (
	"bytes"
	"encoding/json"
)

// SameJSON compares two JSON values by what they mean, if normal is set without what
// disguises a loop. Nothing is null.
func SameJSON(a, b []byte, normal bool) bool {
	return bytes.Equal(canonicalOf(a, normal), canonicalOf(b, normal))
}

// Canonical writes a JSON value so that equal values are written alike: members
// sorted, numbers as digits and exponent, blanks and escapes gone.
func Canonical(data []byte) []byte { return canonicalOf(data, false) }

func canonicalOf(data []byte, normal bool) []byte {
	if len(data) == 0 {
		return []byte("null")
	}
	v, err := decoded(data)
	if err != nil {
		return data
	}
	if normal {
		v = normalValue(v, 0)
	}
	out, err := json.Marshal(canonicalValue(v)) // members of maps come sorted
	if err != nil {
		return data
	}
	return out
}

// decoded returns a JSON value with its numbers as they are written.
func decoded(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func canonicalValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = canonicalValue(member)
		}
	case []any:
		for i := range v {
			v[i] = canonicalValue(v[i])
		}
	case json.Number:
		var h JSONHasher
		if _, err := h.Hash([]byte(v)); err != nil || len(h.last.digits) == 0 {
			return 0
		}
		return map[string]any{string(h.last.digits): []any{h.last.exponent, h.last.negative}, "": nil}
	case string:
		return []any{v} // apart from numbers
	case embedded:
		return []any{"", canonicalValue(v.value)} // apart from what is no text
	}
	return v
}
