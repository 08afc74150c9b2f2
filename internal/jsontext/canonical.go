package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns one JSON value in the form of RFC 8785 (JCS): no blanks, members
// sorted by the UTF-16 code units of their names, strings and numbers as ECMAScript
// writes them. Two texts that mean the same have the same form, on every machine.
// Numbers are those of float64, so that two that are no further apart than it can
// tell are the same; one beyond its range, for which the RFC has no form, keeps its
// digits. Half a surrogate pair, which the RFC refuses, is read as U+FFFD. It refuses
// what Compact refuses, but for these and numbers.
func Canonical(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the text is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	out, err := canonicalValue(make([]byte, 0, len(data)), dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the value")
	}
	return out, nil
}

func canonicalValue(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		if depth == MaxDepth {
			return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
		}
		if t == '{' {
			return canonicalObject(dst, dec, depth+1)
		}
		return canonicalArray(dst, dec, depth+1)
	case string:
		return AppendString(dst, t), nil
	case json.Number:
		return canonicalOrWritten(dst, t), nil
	case bool:
		return strconv.AppendBool(dst, t), nil
	}
	return append(dst, "null"...), nil
}

func canonicalOrWritten(dst []byte, n json.Number) []byte {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return append(dst, n...)
	}
	return AppendFloat(dst, f)
}

func canonicalArray(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for first := true; dec.More(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = canonicalValue(dst, dec, depth); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token() // the closing bracket
	return append(dst, ']'), err
}

// A canonicalMember is a member of an object, before its place is known.
type canonicalMember struct {
	name  string
	units []uint16
	value []byte
}

func canonicalObject(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	var members []canonicalMember
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := canonicalMember{name: tok.(string)}
		m.units = utf16.Encode([]rune(m.name))
		if m.value, err = canonicalValue(nil, dec, depth); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, err
	}
	slices.SortStableFunc(members, func(a, b canonicalMember) int { return slices.CompareFunc(a.units, b.units, cmp.Compare[uint16]) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			if m.name == members[i-1].name {
				return nil, fmt.Errorf("duplicate member %q", m.name)
			}
			dst = append(dst, ',')
		}
		dst = append(append(AppendString(dst, m.name), ':'), m.value...)
	}
	return append(dst, '}'), nil
}
