package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dialai/dialai/exact"
)

// A message is one of the protocol's, before it is written in either form: its
// members, each with the number that protobuf has for it and the name that JSON has.
type message []member

type member struct {
	number protowire.Number
	name   string
	value  any // string, bool, float64, []byte, message, []message, or one of the kinds below
}

// The kinds of values that Go has no types of its own for. JSON has whole numbers of
// 64 bits as strings, and enumerations as numbers.
type (
	enum     int32
	zigzag   int32  // sint32
	count    uint32 // uint32
	bits     uint32 // fixed32
	whole    int64  // int64
	fixed    uint64 // fixed64
	signed   int64  // sfixed64
	id       []byte // bytes, which JSON has in hexadecimal
	fixeds   []uint64
	varints  []uint64
	floats   []float64
	packable interface{ fixeds | varints | floats }
)

// set appends a member, zero or not: for those that say by being there.
func (m message) set(n protowire.Number, name string, value any) message {
	return append(m, member{n, name, value})
}

// put appends a member unless it is zero, which is what its absence means.
func (m message) put(n protowire.Number, name string, value any) message {
	if isZero(value) {
		return m
	}
	return append(m, member{n, name, value})
}

func isZero(value any) bool {
	switch v := value.(type) {
	case []byte:
		return len(v) == 0
	case id:
		return len(v) == 0
	case message:
		return len(v) == 0
	case []message:
		return len(v) == 0
	case fixeds:
		return len(v) == 0
	case varints:
		return len(v) == 0
	case floats:
		return len(v) == 0
	}
	return value == "" || value == 0.0 || value == false || value == enum(0) || value == zigzag(0) || value == count(0) || value == bits(0) ||
		value == whole(0) || value == fixed(0) || value == signed(0)
}

// text returns what protobuf takes for a text: bytes that are no UTF-8 would make the
// whole request unreadable.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// appendProto appends m in protobuf's binary form.
func appendProto(b []byte, m message) []byte {
	for _, f := range m {
		if list, ok := f.value.([]message); ok {
			for _, one := range list {
				b = protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), appendProto(nil, one))
			}
			continue
		}
		b = appendValue(b, f.number, f.value)
	}
	return b
}

// appendValue appends one member that is no list of messages.
func appendValue(b []byte, n protowire.Number, value any) []byte {
	varint := func(v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	eight := func(v uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
	}
	bytes := func(v []byte) []byte { return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v) }
	switch v := value.(type) {
	case string:
		return bytes([]byte(text(v)))
	case bool:
		return varint(protowire.EncodeBool(v))
	case float64:
		return eight(math.Float64bits(v))
	case []byte:
		return bytes(v)
	case message:
		return bytes(appendProto(nil, v))
	case enum:
		return varint(uint64(v))
	case zigzag:
		return varint(protowire.EncodeZigZag(int64(v)))
	case count:
		return varint(uint64(v))
	case bits:
		return protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), uint32(v))
	case whole:
		return varint(uint64(v))
	case fixed:
		return eight(uint64(v))
	case signed:
		return eight(uint64(v))
	case id:
		return bytes(v)
	case fixeds:
		return bytes(packed(v, func(b []byte, i int) []byte { return protowire.AppendFixed64(b, v[i]) }))
	case varints:
		return bytes(packed(v, func(b []byte, i int) []byte { return protowire.AppendVarint(b, v[i]) }))
	case floats:
		return bytes(packed(v, func(b []byte, i int) []byte { return protowire.AppendFixed64(b, math.Float64bits(v[i])) }))
	}
	panic("otlp: a member of no known kind") // every kind has a test
}

func packed[L packable](list L, add func(b []byte, i int) []byte) (b []byte) {
	for i := range len(list) {
		b = add(b, i)
	}
	return b
}

// appendJSON appends m in the form that the protocol has for JSON.
func appendJSON(b []byte, m message) []byte {
	b = append(b, '{')
	for i, f := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(exact.AppendString(b, f.name), ':')
		b = appendJSONValue(b, f.value)
	}
	return append(b, '}')
}

func appendJSONValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return exact.AppendString(b, v) // which mends it
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return appendFloat(b, v)
	case []byte:
		return quoted(b, base64.StdEncoding.AppendEncode(nil, v))
	case message:
		return appendJSON(b, v)
	case []message:
		return list(b, v, func(b []byte, i int) []byte { return appendJSON(b, v[i]) })
	case enum:
		return strconv.AppendInt(b, int64(v), 10)
	case zigzag:
		return strconv.AppendInt(b, int64(v), 10)
	case count:
		return strconv.AppendUint(b, uint64(v), 10)
	case bits:
		return strconv.AppendUint(b, uint64(v), 10)
	case whole:
		return quoted(b, strconv.AppendInt(nil, int64(v), 10))
	case fixed:
		return quoted(b, strconv.AppendUint(nil, uint64(v), 10))
	case signed:
		return quoted(b, strconv.AppendInt(nil, int64(v), 10))
	case id:
		return quoted(b, hex.AppendEncode(nil, v))
	case fixeds:
		return list(b, v, func(b []byte, i int) []byte { return quoted(b, strconv.AppendUint(nil, v[i], 10)) })
	case varints:
		return list(b, v, func(b []byte, i int) []byte { return quoted(b, strconv.AppendUint(nil, v[i], 10)) })
	case floats:
		return list(b, v, func(b []byte, i int) []byte { return appendFloat(b, v[i]) })
	}
	panic("otlp: a member of no known kind") // every kind has a test
}

func list[E any, L ~[]E](b []byte, l L, add func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, i)
	}
	return append(b, ']')
}

func quoted(b, s []byte) []byte { return append(append(append(b, '"'), s...), '"') }

// appendFloat appends a number; JSON has strings for those that are none.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return exact.AppendFloat(b, f)
}
