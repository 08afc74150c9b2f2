package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Some files hold only a part of a machine: a guards file, a specialist, the panel of a
// simulation, what a session is started with. They are read by the same tree, decoder and
// checker as machine files, so their problems have places, hints and an order like those, and
// what looks like a secret is refused in them without being shown.

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

// ParseObject reads a file that holds one object of somebody's own, such as what a
// session is to start with, JSON or YAML by its name, and returns it as compact JSON.
// Without an extension in its name it may be either. Numbers keep their digits. The error
// is an *Error, each problem with its place.
func ParseObject(name string, data []byte) (json.RawMessage, error) {
	tree, err := readTree(name, data)
	if err != nil && filepath.Ext(name) == "" { // {a: 1} looks like JSON and is YAML
		if other, _ := readTree(name+".yaml", data); other != nil {
			tree, err = other, nil
		}
	}
	if err != nil {
		return nil, sectionError([]Problem{syntaxProblem(name, data, err.(*syntaxError))}, 0, nil)
	}
	d := &decoder{file: name, alone: true}
	var ignored []byte
	d.only(objectNode, "an object", d.raw(&ignored, 0))(tree, "", "it")
	if len(d.problems) > 0 {
		return nil, sectionError(d.problems, 0, nil)
	}
	return tree.appendWith(writtenNumber, nil, 0), nil
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
	if n.text == "" {
		return fail(`guards is "", which names no file`, "write the section in its place, or the path of a file that holds it, relative to the machine file")
	}
	name := n.text
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(d.file), name) // as whoever reads the message would name it
	}
	data, err := d.read(n.text)
	switch at, _ := errors.AsType[*fs.PathError](err); {
	case errors.Is(err, fs.ErrNotExist):
		return fail(fmt.Sprintf("guards names %q, and there is no such file", n.text), "the path is relative to the machine file: there would have to be a file "+name)
	case at != nil:
		return fail(fmt.Sprintf("the guards file %q cannot be read: %v", n.text, at.Err), "name a file in JSON or YAML, relative to the machine file")
	case err != nil:
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
