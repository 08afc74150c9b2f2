package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// readSection reads a section that stands alone, under the name it has in a guards
// section. The problems have JSON pointers relative to the section.
func readSection(name string, data []byte, members func(*reader) []member) []machine.Problem {
	root := "/" + name
	r := &reader{root: root}
	tidy, err := exact.Tidy(data)
	if err != nil {
		r.report(root, "bad-json", name+" is not one JSON value: "+err.Error(), "")
	} else {
		r.object(members(r))(root, tidy)
	}
	for i := range r.problems {
		r.problems[i].Path = strings.TrimPrefix(r.problems[i].Path, root)
	}
	return r.problems
}

// A reader reads a section and collects what is wrong with it.
type reader struct {
	problems []machine.Problem     // in the order in which they were found
	root     string                // the path of all that is read: a file of its own, perhaps
	stored   bool                  // a store holds the section: rules are no reason to refuse it
	earlier  machine.SchemaReading // how words of earlier drafts are taken
}

// A member is one member of an object: its name, and what takes its value. It has
// no name as a type, so that lists of members read as tables.
type member = struct {
	Name string
	Read func(path string, value []byte)
}

// report adds a problem.
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

// object reads an object with fixed members, each where it is in the list. At the
// path "" it is the section guards.
func (r *reader) object(members []member) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields := map[string]json.RawMessage{}
		if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be an object", nameOf(path)), "")
			return
		}
		known := make([]string, len(members))
		for i, m := range members {
			known[i] = m.Name
			if v, ok := fields[m.Name]; ok {
				m.Read(path+"/"+m.Name, v)
			}
		}
		names := slices.Sorted(maps.Keys(fields))
		p, foreign := machine.Foreign(nameOf(path), names, append(known, elsewhere...))
		if foreign = foreign && path == r.root; foreign {
			r.problems = append(r.problems, p)
		}
		for _, name := range names {
			hint := machine.DidYouMean(name, known)
			switch {
			case slices.Contains(known, name) || len(name) > 2 && name[:2] == "x-":
			case path == "" && name == "truth":
				r.report(path+"/"+name, "unsupported", "only machines can have a truth gate: nobody else knows what was asked", "remove it, or judge answers with guard.NewGate")
			case hint != "" || !foreign:
				r.report(path+"/"+name, "unknown-field", fmt.Sprintf("%s has no field %q", nameOf(path), name), hint)
			}
		}
	}
}

// elsewhere are members that only some sections guards have: where one is not
// known, the file is that of guards all the same.
var elsewhere = []string{"truth", "budget", "profile", "store"}

// nameOf returns what a message calls the value at a path: its last name.
func nameOf(path string) string {
	if path == "" {
		return "guards"
	}
	return path[bytes.LastIndexByte([]byte(path), '/')+1:]
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

// readList reads an array; read returns one of its items.
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
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			(*into)[name] = read(path+"/"+machine.EscapePointer(name), fields[name])
		}
	}
}

// each calls read with every item of an array; name is what a message calls it.
func (r *reader) each(name string, read func(path string, value []byte)) func(path string, value []byte) {
	return func(path string, value []byte) {
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil || items == nil {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be a list", name), "")
			return
		}
		for i, item := range items {
			read(fmt.Sprintf("%s/%d", path, i), item)
		}
	}
}
