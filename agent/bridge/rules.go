package bridge

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Rules say by themselves what an agent may do, where they can be sure; the rest is the host's.
// A pattern is a Tool, or Tool(prefix*): the command of a shell tool that begins so.
//
// A shell can do anything in one line, so a prefix allows only a command of plain words: no
// quote, variable, redirection, second command. With a deny rule of a prefix for its tool, a
// line that is not plain is allowed by no rule, since what it runs is not known. Words are
// compared as they are written: /bin/rm and env rm are no rm that a rule denies, but none that a
// rule allows either.
type rules struct{ allow, deny []pattern }

type pattern struct {
	tool   string
	prefix string // "" is every use
}

var patternShape = regexp.MustCompile(`^([^\s()*]+)(?:\(([^*]+)\*\))?$`)

// patterns reads a list of patterns.
func (m members) patterns(name string) (list []pattern) {
	for _, text := range m.texts(name) {
		p := patternShape.FindStringSubmatch(text)
		if p == nil || p[2] != "" && spaced(p[2]) == "" {
			m.fail(name, "a pattern is Tool, or Tool(prefix*)")
			return nil
		}
		list = append(list, pattern{tool: p[1], prefix: spaced(p[2])})
	}
	return list
}

// spaced makes every space between words one.
func spaced(text string) string {
	fields := strings.Join(strings.Fields(text), " ")
	if strings.HasSuffix(text, " ") && fields != "" {
		fields += " "
	}
	return fields
}

// A ruling is what rules say of a use.
type ruling int

const (
	ask ruling = iota
	allow
	deny
)

// judge says what becomes of a use of a tool. Deny goes before allow.
func (r rules) judge(tool string, input json.RawMessage) ruling {
	command, known := commandOf(input)
	plain := known && len(command) <= longestPlain && plainCommand.MatchString(command)
	doubt := false
	for _, p := range r.deny {
		switch {
		case p.tool != tool:
		case p.prefix == "" || known && p.denies(command):
			return deny
		case !plain || p.within(command):
			doubt = true
		}
	}
	if !doubt && slices.ContainsFunc(r.allow, func(p pattern) bool {
		return p.tool == tool && (p.prefix == "" || plain && p.begins(command))
	}) {
		return allow
	}
	return ask
}

// plainCommand matches a line that is one command of plain words.
var plainCommand = regexp.MustCompile(`^[A-Za-z0-9_./:,@%+= \t-]+$`)

// longestPlain is how long a command may be that is looked into, in bytes.
const longestPlain = 64 << 10

// commandOf returns the command in the input of a shell tool.
func commandOf(input json.RawMessage) (command string, ok bool) {
	var of map[string]json.RawMessage
	if json.Unmarshal(input, &of) != nil || of["command"] == nil {
		return "", false
	}
	return command, json.Unmarshal(of["command"], &command) == nil && command != ""
}

// begins reports whether a command begins with the prefix, however it is spaced.
func (p pattern) begins(command string) bool { return strings.HasPrefix(spaced(command)+" ", p.prefix) }

// denies reports whether any of the commands in a line begins with the prefix.
func (p pattern) denies(line string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|\n\r(){}`$", r) }), p.begins)
}

// within reports whether the prefix begins elsewhere in a line, as behind env or a folder.
func (p pattern) within(line string) bool {
	line = spaced(line) + " "
	for i := range line {
		if (i == 0 || strings.ContainsRune(" /=", rune(line[i-1]))) && strings.HasPrefix(line[i:], p.prefix) {
			return true
		}
	}
	return false
}
