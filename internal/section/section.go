// Package section reads the sections of JSON that say what guards hold to, and
// collects everything that is wrong with them.
//
// Whoever owns a section lists its members, each with what takes its value:
//
//	r.Object([]section.Member{
//		{"max_steps", r.OptionalCount(&l.MaxSteps)},
//		{"cap_basis", r.OneOf(&l.CapBasis, "spend", "progress")},
//	})
//
// Such a reader is a function of a value and of its path, a JSON pointer. What is
// wrong is no error that ends the reading but a [machine.Problem] in
// [Reader].Problems; a value that is wrong is not taken over. A Reader is used by one
// goroutine, for one section.
package section

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// Parse reads a section that stands alone, under the name it has in a guards
// section. The problems have JSON pointers relative to the section.
func Parse(name string, data []byte, read func(*Reader) func(path string, value []byte)) []machine.Problem {
	root := "/" + name
	r := &Reader{root: root}
	tidy, err := jsontext.Tidy(data)
	if err != nil {
		r.Report(root, "bad-json", name+" is not one JSON value: "+err.Error(), "")
	} else {
		read(r)(root, tidy)
	}
	for i := range r.Problems {
		r.Problems[i].Path = strings.TrimPrefix(r.Problems[i].Path, root)
	}
	return r.Problems
}

// A Reader reads a section and collects what is wrong with it.
type Reader struct {
	Problems []machine.Problem     // in the order in which they were found
	root     string                // the path of all that is read: a file of its own, perhaps
	Stored   bool                  // a store holds the section: rules are no reason to refuse it
	Earlier  machine.SchemaReading // how words of earlier drafts are taken
}

// A Member is one member of an object: its name, and what takes its value. It has
// no name as a type, so that lists of members read as tables.
type Member = struct {
	Name string
	Read func(path string, value []byte)
}

// Report adds a problem.
func (r *Reader) Report(path, code, message, hint string) {
	r.Problems = append(r.Problems, machine.Problem{Path: path, Code: code, Message: message, Hint: hint})
}

// Refuse is Report for a rule of files: what is stored is read all the same. Every
// rule that an older program did not have is one of these.
func (r *Reader) Refuse(path, code, message, hint string) {
	if !r.Stored {
		r.Report(path, code, message, hint)
	}
}

// Object reads an object with fixed members, each where it is in the list. At the
// path "" it is the section guards.
func (r *Reader) Object(members []Member) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields, ok := r.fields(path, value)
		if !ok {
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
		p, foreign := machine.Foreign(NameOf(path), names, append(known, elsewhere...))
		if foreign = foreign && path == r.root; foreign {
			r.Problems = append(r.Problems, p)
		}
		for _, name := range names {
			hint := machine.DidYouMean(name, known)
			switch {
			case slices.Contains(known, name) || len(name) > 2 && strings.HasPrefix(name, "x-"):
			case path == "" && name == "truth":
				r.Report(path+"/"+name, "unsupported", "only machines can have a truth gate: nobody else knows what was asked", "remove it, or judge answers with guard/truth.Gate")
			case hint != "" || !foreign:
				r.Report(path+"/"+name, "unknown-field", fmt.Sprintf("%s has no field %q", NameOf(path), name), hint)
			}
		}
	}
}

// fields returns the members of an object, and reports what is none.
func (r *Reader) fields(path string, value []byte) (fields map[string]json.RawMessage, ok bool) {
	if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
		r.Report(path, "wrong-type", NameOf(path)+" must be an object", "")
		return nil, false
	}
	return fields, true
}

// elsewhere are members that only some sections guards have: where one is not
// known, the file is that of guards all the same.
var elsewhere = []string{"truth", "budget", "profile", "store"}

// NameOf returns what a message calls the value at a path: its last name.
func NameOf(path string) string {
	if path == "" {
		return "guards"
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// OrOff also takes false and null, which switch something off.
func (r *Reader) OrOff(read func(path string, value []byte), off func()) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) == "false" || string(value) == "null" {
			off()
			return
		}
		read(path, value)
	}
}

// Require reports members that an object lacks.
func (r *Reader) Require(path string, value []byte, names ...string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return // reported already
	}
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			r.Report(path, "missing-field", fmt.Sprintf("%q is missing", name), "")
		}
	}
}

// List reads an array; read returns one of its items.
func List[T any](r *Reader, into *[]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		list := []T{}
		before := len(r.Problems)
		r.Each(NameOf(path), func(path string, value []byte) { list = append(list, read(path, value)) })(path, value)
		if len(list) > 0 || len(r.Problems) == before {
			*into = list
		}
	}
}

// Map reads an object whose members are named freely.
func Map[T any](r *Reader, into *map[string]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields, ok := r.fields(path, value)
		if !ok {
			return
		}
		*into = make(map[string]T, len(fields))
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			(*into)[name] = read(path+"/"+machine.EscapePointer(name), fields[name])
		}
	}
}

// Each calls read with every item of an array; name is what a message calls it.
func (r *Reader) Each(name string, read func(path string, value []byte)) func(path string, value []byte) {
	return func(path string, value []byte) {
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil || items == nil {
			r.Report(path, "wrong-type", fmt.Sprintf("%s must be a list", name), "")
			return
		}
		for i, item := range items {
			read(fmt.Sprintf("%s/%d", path, i), item)
		}
	}
}
