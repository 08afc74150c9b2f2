package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// Reading a panel: small functions, one for each kind of value, that report what is wrong and
// return something usable, so that one pass finds every problem.

// A decoder reads JSON and collects what is wrong with it.
type decoder struct{ problems []machine.Problem }

// bad reports a problem with the value of a member, whose name it adds.
func (d *decoder) bad(path, message, hint string) {
	if path != "" {
		message = field(path) + ": " + message
	}
	d.problems = append(d.problems, machine.Problem{Path: path, Code: "bad-panel", Message: message, Hint: hint})
}

// field returns a JSON pointer as people write it: "/drift/0/p" is drift[0].p.
func field(path string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch _, err := strconv.Atoi(part); {
		case err == nil:
			b.WriteString("[" + part + "]")
		case i > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}

func firstByte(raw json.RawMessage) byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// shown returns a value as messages show it: of a text as much as tells it from
// others, of what holds more only what it is.
func shown(raw json.RawMessage) string {
	switch firstByte(raw) {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	if text := []rune(string(raw)); len(text) > 24 {
		return string(text[:24]) + "…"
	}
	return string(raw)
}

// object reads an object whose members are all known.
func (d *decoder) object(raw json.RawMessage, path string, known ...string) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		if path == "" { // it may be another file than was meant, and what is in it nobody's business
			d.bad(path, "a panel has to be an object", "")
			return nil
		}
		d.bad(path, fmt.Sprintf("it is %s, and has to be an object", shown(raw)), "")
		return nil
	}
	p, foreign := machine.Foreign("a panel", slices.Collect(maps.Keys(m)), known)
	if foreign = foreign && path == ""; foreign {
		d.problems = append(d.problems, p)
	}
	maps.DeleteFunc(m, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, "x-") })
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if slices.Contains(known, name) {
			continue
		}
		delete(m, name)
		if hint := machine.DidYouMean(name, known); hint != "" || !foreign {
			hint = cmp.Or(hint, "known are "+strings.Join(known, ", "))
			d.problems = append(d.problems, machine.Problem{Path: path + "/" + machine.EscapePointer(name), Code: "unknown-field", Message: fmt.Sprintf("unknown field %q", name), Hint: hint})
		}
	}
	return m
}

// read reads a value that is there; ok is false if there is none, or it is not what it has
// to be.
func read[T any](d *decoder, raw json.RawMessage, path, what string, fits func(T) bool) (v T, ok bool) {
	if raw == nil {
		return v, false
	}
	if err := json.Unmarshal(raw, &v); err != nil || fits != nil && !fits(v) {
		d.bad(path, fmt.Sprintf("it is %s, and has to be %s", shown(raw), what), "")
		return v, false
	}
	return v, true
}

// list calls each with every element of a list that is there.
func (d *decoder) list(raw json.RawMessage, path string, most int, each func(raw json.RawMessage, path string)) {
	list, _ := read[[]json.RawMessage](d, raw, path, "a list", nil)
	if len(list) > most {
		d.bad(path, fmt.Sprintf("it has %d elements, more than %d", len(list), most), "")
		return
	}
	for i, e := range list {
		each(e, fmt.Sprintf("%s/%d", path, i))
	}
}

// names reads a list of different names, nil if there is none.
func (d *decoder) names(raw json.RawMessage, path string) (names []string) {
	d.list(raw, path, 256, func(raw json.RawMessage, path string) {
		name := d.name(raw, path)
		if slices.Contains(names, name) {
			d.bad(path, fmt.Sprintf("%q is listed twice", name), "")
		}
		names = append(names, name)
	})
	return names
}

// name reads a name.
func (d *decoder) name(raw json.RawMessage, path string) string {
	if raw == nil {
		d.bad(path, "it is missing", "")
	}
	name, _ := read(d, raw, path, "a name", func(s string) bool { return s != "" })
	return name
}

// number reads a number between two others, or takes one that stands for none.
func (d *decoder) number(raw json.RawMessage, path string, without, least, most float64) float64 {
	f, ok := read(d, raw, path, "a number", func(f *float64) bool { return f != nil })
	switch {
	case !ok:
		return without
	case *f < least || *f > most:
		d.bad(path, fmt.Sprintf("%v is not between %v and %v", *f, least, most), "")
		return without
	}
	return *f
}

func (d *decoder) money(raw json.RawMessage, path string) exact.Money {
	m, _ := read(d, raw, path, "an amount in US dollars, 0 or more", func(m exact.Money) bool { return m >= 0 })
	return max(m, 0)
}

func (d *decoder) flag(raw json.RawMessage, path string) bool {
	on, _ := read[bool](d, raw, path, "true or false", nil)
	return on
}
