package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// SamePayload reports whether two payloads are the same JSON value: whatever the order
// of members and the form of numbers. No payload is an empty object. Numbers are
// compared digit by digit: two amounts that only a float64 cannot tell apart differ.
func SamePayload(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okX := readPayload(a)
	y, okY := readPayload(b)
	return okX && okY && sameJSON(x, y)
}

func readPayload(text json.RawMessage) (v any, ok bool) {
	if text == nil {
		return map[string]any{}, true
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return v, dec.Decode(&v) == nil
}

func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if w, there := b[name]; !there || !sameJSON(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && decimalOf(a) == decimalOf(b)
	}
	return a == b
}

// A decimal is a number as its digits, without zeros around them, and the power of ten
// of the last one.
type decimal struct {
	negative bool
	digits   string
	power    int64
}

func decimalOf(n json.Number) decimal {
	text, negative := strings.CutPrefix(string(n), "-")
	text, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}
	}
	short := strings.TrimRight(digits, "0")
	power, err := strconv.ParseInt(strings.TrimPrefix(exponent, "+"), 10, 32)
	if err != nil && exponent != "" {
		return decimal{negative, string(n), 0} // beyond all use: as it is written
	}
	return decimal{negative, short, power - int64(len(fraction)) + int64(len(digits)-len(short))}
}
