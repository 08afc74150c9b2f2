package bridge

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// members reads the fields of a command, and remembers the first that is wrong. Names are
// exactly these: one that differs in case is another field. null is as good as nothing.
type members struct {
	*reading
	path string // before the names of these
	of   map[string]json.RawMessage
}

// A reading is of one command.
type reading struct {
	wrong *fault
	asked []string // the paths of all fields that it may have
}

// fail says that a field is wrong, unless one before was. It does not show the value, which may
// be secret.
func (m members) fail(name, format string, args ...any) {
	if m.wrong == nil {
		m.wrong = &fault{badField, m.path + name + ": " + fmt.Sprintf(format, args...)}
	}
}

// get reads a field into v and reports whether it is there.
func (m members) get(name, what string, v any) bool {
	m.asked = append(m.asked, m.path+name)
	raw := m.of[name]
	if raw == nil || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, v) != nil {
		m.fail(name, "must be %s", what)
		return false
	}
	return true
}

// there says that a field must be there.
func (m members) there(name string) {
	if raw := m.of[name]; raw == nil || string(raw) == "null" {
		m.fail(name, "is missing")
	}
}

// text reads a text, "" if it is not there.
func (m members) text(name string) (v string) {
	m.get(name, "a string", &v)
	return v
}

// some reads a text that must be there, and not be empty.
func (m members) some(name string) string {
	m.there(name)
	v := m.text(name)
	if v == "" {
		m.fail(name, "must not be empty")
	}
	return v
}

// word reads a text that is an argument of a program.
func (m members) word(name string) string {
	v := m.text(name)
	if v != "" && !wordPattern.MatchString(v) {
		m.fail(name, "must not begin with - nor contain spaces")
	}
	return v
}

var wordPattern = regexp.MustCompile(`^[^-\s\x00][^\s\x00]*$`)

// oneOf reads a text that is one of those named, the first if it is not there.
func (m members) oneOf(name string, names ...string) string {
	v := m.text(name)
	if v == "" {
		return names[0]
	}
	for _, n := range names {
		if v == n {
			return v
		}
	}
	m.fail(name, "must be one of %q", names)
	return names[0]
}

func (m members) flag(name string) (v bool) {
	m.get(name, "true or false", &v)
	return v
}

// texts reads a list of texts, none of which is empty.
func (m members) texts(name string) (list []string) {
	var parts []json.RawMessage
	m.get(name, "a list of strings", &parts)
	for i, raw := range parts {
		var v string
		if json.Unmarshal(raw, &v) != nil || v == "" {
			m.fail(fmt.Sprintf("%s[%d]", name, i), "must be a string that is not empty")
			return nil
		}
		list = append(list, v)
	}
	return list
}

// object reads an object, an empty one if it is not there.
func (m members) object(name string) members {
	var of map[string]json.RawMessage
	m.get(name, "an object", &of)
	return members{m.reading, m.path + name + ".", of}
}

// objects reads a list of objects.
func (m members) objects(name string) (list []members) {
	var parts []json.RawMessage
	m.get(name, "a list of objects", &parts)
	for i, raw := range parts {
		at := fmt.Sprintf("%s[%d]", name, i)
		var of map[string]json.RawMessage
		if json.Unmarshal(raw, &of) != nil || of == nil {
			m.fail(at, "must be an object")
			return nil
		}
		list = append(list, members{m.reading, m.path + at + ".", of})
	}
	return list
}

// schema reads a JSON Schema, nil if it is not there. It is not checked, but for being an object.
func (m members) schema(name string) json.RawMessage {
	var of map[string]json.RawMessage
	if !m.get(name, "an object: a JSON Schema", &of) {
		return nil
	}
	return m.of[name]
}
