package machine

import (
	"encoding/json"
	"slices"
	"strings"
)

// ParseSection reads a file that holds one section of a machine, JSON or YAML by
// its name, and hands it to check, whose problems have JSON pointers into the
// section. What is wrong comes back as one *Error, each problem with its place. secret
// reports whether a text holds what looks like a secret, which is refused and not shown;
// it may be nil.
func ParseSection(name string, data []byte, secret func(text string) bool, check func(section []byte) []Problem) error {
	tree, err := readTree(name, data)
	if err != nil {
		return sectionError([]Problem{syntaxProblem(name, data, err.(*syntaxError))}, 0, secret)
	}
	d := &decoder{file: name, alone: true}
	var section []byte
	d.raw(&section, 1)(tree, "", "the file")
	if found := secretsIn(name, tree, secret); len(found) > 0 {
		return sectionError(found, 0, nil)
	}
	c := &checker{file: name, tree: tree, most: 10 * maxProblems}
	if len(d.problems) == 0 {
		found := check(section)
		if d.problems = hiddenIn(name, tree, found); len(d.problems) > 0 {
			found = nil // they might show it
		}
		for _, p := range found {
			c.report(p.Path, isAboutName(p), p)
		}
	}
	if problems := append(d.problems, c.problems...); len(problems) > 0 {
		return sectionError(problems, c.more, secret)
	}
	return nil
}

// hiddenIn is charactersIn for a file of which all this is wrong: of one that is
// something else it says nothing, not even where.
func hiddenIn(name string, tree *node, wrong []Problem) []Problem {
	if slices.ContainsFunc(wrong, func(p Problem) bool { return p.Code == codeForeign }) {
		return nil
	}
	return charactersIn(name, tree)
}

// ParseSpecialist reads a file that holds one specialist, as machine files list them,
// into s, which may hold what the file need not say. The rest is as in [ParseSection];
// what the values mean is not checked.
func ParseSpecialist(name string, data []byte, secret func(text string) bool, s *Specialist) error {
	tree, err := readTree(name, data)
	if err != nil {
		return sectionError([]Problem{syntaxProblem(name, data, err.(*syntaxError))}, 0, secret)
	}
	if found := secretsIn(name, tree, secret); len(found) > 0 {
		return sectionError(found, 0, nil)
	}
	d := &decoder{file: name, alone: true}
	d.specialist(tree, "", "a specialist", s)
	if problems := append(d.problems, hiddenIn(name, tree, d.problems)...); len(problems) > 0 {
		return sectionError(problems, 0, secret)
	}
	return nil
}

// MemberNames returns the names of the members of a file that holds an object, JSON or
// YAML by its name, in their order, those that are there twice among them: what the
// file is can be told before it is read. ok is false if it cannot be read at all.
func MemberNames(name string, data []byte) (names []string, ok bool) {
	tree, err := readTree(name, data)
	if err != nil {
		return nil, false
	}
	for _, k := range tree.keys {
		names = append(names, k.name)
	}
	return names, true
}

func sectionError(problems []Problem, more int, secret func(text string) bool) error {
	e := newError(problems, more, secret)
	e.section = true
	return e
}

// isAboutName reports whether a problem with a section is one with the name of a
// member, not with its value.
func isAboutName(p Problem) bool {
	return p.Code == codeUnknown || p.Code == "unsupported" || p.Code == "unknown-keyword"
}

// section reads a guards section: an object, or the path of a file that holds it.
func (d *decoder) section(into *json.RawMessage) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind == stringNode && !d.include(n, path) {
			return
		}
		outer := d.file
		if n.file != "" {
			d.file, d.included = n.file, path
		}
		d.raw((*[]byte)(into), 1)(n, path, what)
		d.file, d.included = outer, ""
	}
}

// include puts the content of a file in the place of the path that names it.
func (d *decoder) include(n *node, path string) bool {
	fail := func(message, hint string) bool {
		d.report(n.line, n.col, Problem{Path: path, Code: "bad-include", Message: message, Hint: hint})
		return false
	}
	if d.read == nil {
		return fail("guards names a file, but there is nothing to read it with", "write the section in its place")
	}
	name := n.text
	data, err := d.read(name)
	if err != nil {
		return fail("the guards file cannot be read: "+err.Error(), "the path is relative to the machine file")
	}
	tree, err := readTree(name, data)
	if err != nil {
		p := syntaxProblem(name, data, err.(*syntaxError))
		if p.Path = path; p.Code == codeSyntax { // it may be another file than the writer meant, and what is in it nobody's business
			language, _, _ := strings.Cut(p.Message, ":")
			p.Message, p.Hint = language, "nothing of a file that a machine file names is shown; dialai lint "+name+" says what is wrong with it"
		}
		d.problems = append(d.problems, p)
		return false
	}
	*n = *tree
	n.file = name
	return true
}
