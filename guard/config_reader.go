package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// A reader reads a section and collects what is wrong with it.
type reader struct {
	problems []machine.Problem
	root     string // the path of all that is read: a file of its own, perhaps
	stored   bool   // a store holds the section: rules are no reason to refuse it
	earlier  machine.SchemaReading
}

type member struct {
	name string
	read func(path string, value []byte)
}

func (r *reader) report(path, code, message, hint string) {
	r.problems = append(r.problems, machine.Problem{Path: path, Code: code, Message: message, Hint: hint})
}

// refuse is report for a rule of files: what is stored is read all the same. Every
// rule that an older program did not have is one of these.
func (r *reader) refuse(path, code, message, hint string) {
	if !r.stored {
		r.report(path, code, message, hint)
	}
}

// object reads an object with fixed members; section is its name, "" for guards.
func (r *reader) object(section string, members []member) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields := map[string]json.RawMessage{}
		if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be an object", nameOf(path)), "")
			return
		}
		known := make([]string, len(members))
		for i, m := range members {
			known[i] = m.name
			if v, ok := fields[m.name]; ok {
				m.read(path+"/"+m.name, v)
			}
		}
		names := sortedKeys(fields)
		p, foreign := machine.Foreign(nameOf(path), names, append(known, "truth"))
		if foreign = foreign && path == r.root; foreign {
			r.problems = append(r.problems, p)
		}
		for _, name := range names {
			hint := machine.DidYouMean(name, known)
			switch {
			case slices.Contains(known, name) || len(name) > 2 && name[:2] == "x-":
			case section == "" && name == "truth":
				r.report(path+"/"+name, "unsupported", "only machines can have a truth gate: nobody else knows what was asked", "remove it, or judge answers with guard.NewGate")
			case hint != "" || !foreign:
				r.report(path+"/"+name, "unknown-field", fmt.Sprintf("%s has no field %q", nameOf(path), name), hint)
			}
		}
	}
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func nameOf(path string) string {
	if path == "" {
		return "guards"
	}
	return path[bytes.LastIndexByte([]byte(path), '/')+1:]
}

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

func (r *reader) bool(into *bool) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) != "true" && string(value) != "false" {
			r.report(path, "wrong-type", fmt.Sprintf("%s is %s, not true or false", nameOf(path), value), "")
			return
		}
		*into = string(value) == "true"
	}
}

// orOff also takes false and null, which switch something off.
func (r *reader) orOff(read func(path string, value []byte), off func()) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) == "false" || string(value) == "null" {
			off()
			return
		}
		read(path, value)
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

// modelName reads the name of a model. What looks like a key is refused and not shown.
func (r *reader) modelName(into *string) func(path string, value []byte) {
	read := r.name(into)
	return func(path string, value []byte) {
		if Redact(string(value)) != string(value) {
			r.report(path, "bad-value", nameOf(path)+" holds what looks like a key", "keys belong into the environment, not into files")
			return
		}
		read(path, value)
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

// require reports members that an object lacks.
func (r *reader) require(path string, value []byte, names ...string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return // reported already
	}
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			r.report(path, "missing-field", fmt.Sprintf("%q is missing", name), "")
		}
	}
}

// readList reads an array.
func readList[T any](r *reader, into *[]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		var items []json.RawMessage
		if !bytes.HasPrefix(value, []byte("[")) || json.Unmarshal(value, &items) != nil {
			r.report(path, "wrong-type", nameOf(path)+" must be a list", "")
			return
		}
		*into = make([]T, len(items))
		for i, item := range items {
			(*into)[i] = read(fmt.Sprintf("%s/%d", path, i), item)
		}
	}
}

// readMap reads an object whose members are named freely.
func readMap[T any](r *reader, into *map[string]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields := map[string]json.RawMessage{}
		if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
			r.report(path, "wrong-type", nameOf(path)+" must be an object", "")
			return
		}
		*into = make(map[string]T, len(fields))
		for _, name := range sortedKeys(fields) {
			(*into)[name] = read(path+"/"+machine.EscapePointer(name), fields[name])
		}
	}
}

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

func (r *reader) optionalCount(into **int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		v := new(int64)
		before := len(r.problems)
		if r.count(v, 0)(path, value); len(r.problems) == before {
			*into = v
		}
	}
}

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
