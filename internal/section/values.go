package section

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// Readers of single values: each takes a value and its path, reports what is wrong, and
// takes over only what is right. Money is read exactly and never through a float;
// counts are whole numbers up to 2^53, what every reader of JSON can tell apart. Some
// readers show the value in their message, others do not, for sections in which there
// may be secrets.

const shownValue = 60 // code points

// Shorten returns a value for a message, cut if it is long.
func Shorten(value []byte) string {
	text := []rune(string(bytes.TrimSpace(value)))
	if len(text) <= shownValue {
		return string(text)
	}
	return string(text[:shownValue]) + "…"
}

// single reads a value that parse takes, and reports any other as wrong: a format of
// the name and of the value, which %.0s does not show.
func single[T any](r *Reader, into *T, code, wrong string, parse func(value []byte) (v T, ok bool)) func(path string, value []byte) {
	return func(path string, value []byte) {
		v, ok := parse(value)
		if !ok {
			r.Report(path, code, fmt.Sprintf(wrong, NameOf(path), value), "")
			return
		}
		*into = v
	}
}

// optional reads into a value that may be nil, as read does.
func optional[T any](r *Reader, into **T, read func(into *T) func(path string, value []byte)) func(path string, value []byte) {
	return func(path string, value []byte) {
		v, before := new(T), len(r.Problems)
		if read(v)(path, value); len(r.Problems) == before {
			*into = v
		}
	}
}

// Money reads an amount of US dollars from 0.
func (r *Reader) Money(into *exact.Money) func(path string, value []byte) {
	return single(r, into, "out-of-range", "%s is %s, not an amount of US dollars from 0", func(value []byte) (exact.Money, bool) {
		m, err := exact.ParseMoney(string(value))
		return m, err == nil && m >= 0
	})
}

// Bool reads true or false.
func (r *Reader) Bool(into *bool) func(path string, value []byte) {
	return single(r, into, "wrong-type", "%s is %s, not true or false", boolOf)
}

func boolOf(value []byte) (b, ok bool) {
	b = string(value) == "true"
	return b, b || string(value) == "false"
}

// Ratio reads a number above 0, at most 1.
func (r *Reader) Ratio(into *exact.Billionths) func(path string, value []byte) {
	return single(r, into, "out-of-range", "%s is %s, not a number above 0 and at most 1", func(value []byte) (b exact.Billionths, ok bool) {
		err := b.UnmarshalJSON(value)
		return b, err == nil && b > 0 && b <= exact.One
	})
}

// Name reads a text that is not empty.
func (r *Reader) Name(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		if !bytes.HasPrefix(value, []byte(`"`)) || json.Unmarshal(value, into) != nil || *into == "" {
			r.Report(path, "bad-value", fmt.Sprintf("%s is %s, not a name", NameOf(path), value), "")
		}
	}
}

// URL reads the address of a service.
func (r *Reader) URL(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		r.Name(into)(path, value)
		if wrong := machine.BadURL("url", *into); *into != "" && wrong != "" {
			r.Report(path, "bad-url", wrong, machine.URLHint(*into, "https://example.com/classify"))
		}
	}
}

// Names reads a list of names; an empty list is not nil.
func (r *Reader) Names(into *[]string) func(path string, value []byte) {
	read := List(r, into, func(path string, value []byte) (name string) {
		r.Name(&name)(path, value)
		return name
	})
	return func(path string, value []byte) {
		if read(path, value); *into == nil {
			*into = []string{}
		}
	}
}

// CountWithin reads a whole number from least to most.
func (r *Reader) CountWithin(into *int64, least, most int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		before := len(r.Problems)
		if r.Count(into, least)(path, value); len(r.Problems) == before && *into > most {
			r.Report(path, "out-of-range", fmt.Sprintf("%s is %s, more than %d", NameOf(path), value, most), "")
		}
	}
}

// maxCount is the largest count: what every reader of JSON can tell from the next.
const maxCount = 1 << 53

// Count reads a whole number from least.
func (r *Reader) Count(into *int64, least int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		f, err := strconv.ParseFloat(string(value), 64)
		if err == nil && f > maxCount {
			r.Report(path, "out-of-range", fmt.Sprintf("%s is %s, more than %d", NameOf(path), value, int64(maxCount)), "")
			return
		}
		if err != nil || f != math.Trunc(f) || f < float64(least) {
			r.Report(path, "out-of-range", fmt.Sprintf("%s is %s, not a whole number from %d", NameOf(path), value, least), "")
			return
		}
		*into = int64(f)
	}
}

// OptionalCount reads a whole number from 0; nil stands for none.
func (r *Reader) OptionalCount(into **int64) func(path string, value []byte) {
	return optional(r, into, func(into *int64) func(path string, value []byte) { return r.Count(into, 0) })
}

// OneOf reads one of some texts.
func (r *Reader) OneOf(into *string, choices ...string) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		if json.Unmarshal(value, &s) != nil || !slices.Contains(choices, s) {
			r.Report(path, "bad-value", fmt.Sprintf("%s is %s", NameOf(path), value), fmt.Sprintf("it may be %q", choices))
			return
		}
		*into = s
	}
}

// OptionalMoney is Money for a value that may be nil.
func (r *Reader) OptionalMoney(into **exact.Money) func(path string, value []byte) {
	return optional(r, into, r.Money)
}

// Flag is Bool for values that a message does not show.
func (r *Reader) Flag(into *bool) func(path string, value []byte) {
	return single(r, into, "wrong-type", "%s must be true or false%.0s", boolOf)
}

// Text is Name for values that a message does not show.
func (r *Reader) Text(into *string) func(path string, value []byte) {
	return single(r, into, "wrong-type", "%s must be a string that is not empty%.0s", func(value []byte) (s string, ok bool) {
		ok = bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &s) == nil && s != ""
		return s, ok
	})
}

// Date reads a day, which begins at midnight UTC.
func (r *Reader) Date(into *time.Time) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		t, err := time.Time{}, json.Unmarshal(value, &s)
		if err == nil {
			t, err = time.Parse(time.DateOnly, s)
		}
		if err != nil {
			r.Report(path, "bad-value", fmt.Sprintf("%s is %s", NameOf(path), value), `write a day, such as "2026-01-31"`)
			return
		}
		*into = t
	}
}

// OptionalShare reads a number from 0 to 1.
func (r *Reader) OptionalShare(into **exact.Billionths) func(path string, value []byte) {
	return single(r, into, "out-of-range", "%s is %s, not a number from 0 to 1", func(value []byte) (*exact.Billionths, bool) {
		b := new(exact.Billionths)
		err := b.UnmarshalJSON(value)
		return b, err == nil && *b >= 0 && *b <= exact.One
	})
}

// Score reads a number from 0 to 1.
func (r *Reader) Score(into *float64) func(path string, value []byte) {
	return single(r, into, "out-of-range", "%s is %s, not a number from 0 to 1", func(value []byte) (float64, bool) {
		f, err := strconv.ParseFloat(string(value), 64)
		return f, err == nil && f >= 0 && f <= 1
	})
}

// Schema reads a JSON Schema.
func (r *Reader) Schema(into **machine.Schema) func(path string, value []byte) {
	return func(path string, value []byte) {
		s, err := machine.ReadSchema(value, r.Earlier)
		if err != nil {
			at := path
			if part, ok := errors.AsType[*machine.SchemaError](err); ok {
				at += part.Path
			}
			r.Refuse(at, "bad-schema", fmt.Sprintf("%s is no schema: %v", NameOf(path), err), "")
			return
		}
		*into = s
	}
}
