package guard

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

// money reads an amount of US dollars from 0.
func (r *reader) money(into *exact.Money) func(path string, value []byte) {
	return func(path string, value []byte) {
		m, err := exact.ParseMoney(string(value))
		if err != nil || m < 0 {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not an amount of US dollars from 0", nameOf(path), value), "")
			return
		}
		*into = m
	}
}

// bool reads true or false.
func (r *reader) bool(into *bool) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) != "true" && string(value) != "false" {
			r.report(path, "wrong-type", fmt.Sprintf("%s is %s, not true or false", nameOf(path), value), "")
			return
		}
		*into = string(value) == "true"
	}
}

// ratio reads a number above 0, at most 1.
func (r *reader) ratio(into *exact.Billionths) func(path string, value []byte) {
	return func(path string, value []byte) {
		var b exact.Billionths
		if err := b.UnmarshalJSON(value); err != nil || b <= 0 || b > 1e9 {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a number above 0 and at most 1", nameOf(path), value), "")
			return
		}
		*into = b
	}
}

// name reads a text that is not empty.
func (r *reader) name(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		if !bytes.HasPrefix(value, []byte(`"`)) || json.Unmarshal(value, into) != nil || *into == "" {
			r.report(path, "bad-value", fmt.Sprintf("%s is %s, not a name", nameOf(path), value), "")
		}
	}
}

// url reads the address of a service.
func (r *reader) url(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		r.name(into)(path, value)
		if wrong := machine.BadURL("url", *into); *into != "" && wrong != "" {
			r.report(path, "bad-url", wrong, machine.URLHint(*into, "https://example.com/classify"))
		}
	}
}

// names reads a list of names; an empty list is not nil.
func (r *reader) names(into *[]string) func(path string, value []byte) {
	read := readList(r, into, func(path string, value []byte) (name string) {
		r.name(&name)(path, value)
		return name
	})
	return func(path string, value []byte) {
		if read(path, value); *into == nil {
			*into = []string{}
		}
	}
}

// countWithin reads a whole number from least to most.
func (r *reader) countWithin(into *int64, least, most int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		before := len(r.problems)
		if r.count(into, least)(path, value); len(r.problems) == before && *into > most {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, more than %d", nameOf(path), value, most), "")
		}
	}
}

// maxCount is the largest count: what every reader of JSON can tell from the next.
const maxCount = 1 << 53

// count reads a whole number from least.
func (r *reader) count(into *int64, least int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		f, err := strconv.ParseFloat(string(value), 64)
		if err == nil && f > maxCount {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, more than %d", nameOf(path), value, int64(maxCount)), "")
			return
		}
		if err != nil || f != math.Trunc(f) || f < float64(least) {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a whole number from %d", nameOf(path), value, least), "")
			return
		}
		*into = int64(f)
	}
}

// optionalCount reads a whole number from 0; nil stands for none.
func (r *reader) optionalCount(into **int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		v := new(int64)
		before := len(r.problems)
		if r.count(v, 0)(path, value); len(r.problems) == before {
			*into = v
		}
	}
}

// oneOf reads one of some texts.
func (r *reader) oneOf(into *string, choices ...string) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		if json.Unmarshal(value, &s) != nil || !slices.Contains(choices, s) {
			r.report(path, "bad-value", fmt.Sprintf("%s is %s", nameOf(path), value), fmt.Sprintf("it may be %q", choices))
			return
		}
		*into = s
	}
}

// optionalMoney is money for a value that may be nil.
func (r *reader) optionalMoney(into **exact.Money) func(path string, value []byte) {
	return func(path string, value []byte) {
		m := new(exact.Money)
		before := len(r.problems)
		if r.money(m)(path, value); len(r.problems) == before {
			*into = m
		}
	}
}

// flag is bool for values that a message does not show.
func (r *reader) flag(into *bool) func(path string, value []byte) {
	return func(path string, value []byte) {
		if s := string(value); s != "true" && s != "false" {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be true or false", nameOf(path)), "")
			return
		}
		*into = string(value) == "true"
	}
}

// text is name for values that a message does not show.
func (r *reader) text(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil || s == "" {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be a string that is not empty", nameOf(path)), "")
			return
		}
		*into = s
	}
}

// date reads a day, which begins at midnight UTC.
func (r *reader) date(into *time.Time) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		t, err := time.Time{}, json.Unmarshal(value, &s)
		if err == nil {
			t, err = time.Parse(time.DateOnly, s)
		}
		if err != nil {
			r.report(path, "bad-value", fmt.Sprintf("%s is %s", nameOf(path), value), `write a day, such as "2026-01-31"`)
			return
		}
		*into = t
	}
}

// share reads a number from 0 to 1.
func (r *reader) share(into **exact.Billionths) func(path string, value []byte) {
	return func(path string, value []byte) {
		b := new(exact.Billionths)
		if b.UnmarshalJSON(value) != nil || *b < 0 || *b > exact.One {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a number from 0 to 1", nameOf(path), value), "")
			return
		}
		*into = b
	}
}

// score reads a number from 0 to 1.
func (r *reader) score(into *float64) func(path string, value []byte) {
	return func(path string, value []byte) {
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a number from 0 to 1", nameOf(path), value), "")
			return
		}
		*into = f
	}
}

// schema reads a JSON Schema.
func (r *reader) schema(into **machine.Schema) func(path string, value []byte) {
	return func(path string, value []byte) {
		s, err := machine.ReadSchema(value, r.earlier)
		if err != nil {
			at := path
			if part, ok := errors.AsType[*machine.SchemaError](err); ok {
				at += part.Path
			}
			r.refuse(at, "bad-schema", fmt.Sprintf("%s is no schema: %v", nameOf(path), err), "")
			return
		}
		*into = s
	}
}
