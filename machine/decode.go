package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dialai/dialai/exact"
)

// From a tree to a Definition. A file, JSON or YAML, becomes a tree of values with
// their places (tree.go); decode reads it by lists of fields, one for each kind of
// object, and reports everything that is wrong in form: a member of the wrong type, one
// that nobody knows (with what was probably meant), one that is written twice. What
// cannot be read stays absent, so that reading goes on and all problems are told at
// once; whether what was read makes sense is for check.go.
//
// Members whose names begin with x- belong to others. A section may stand in a file of
// its own: then problems name that file.

// readTree turns the text of a file into a tree. The name's extension says
// which language it is; without one (stdin) a text that begins with "{" is
// JSON and any other YAML.
func readTree(name string, data []byte) (*node, error) {
	data, bad := checkText(data)
	if bad != nil {
		return nil, bad
	}
	if isYAML(name, data) {
		return parseYAML(data)
	}
	return parseJSON(data)
}

func isYAML(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return true
	case ".json":
		return false
	}
	return !bytes.HasPrefix(bytes.TrimLeft(data, "\uFEFF \t\r\n"), []byte("{"))
}

// A decoder turns a tree into a Definition and collects every problem of form
// on the way. What a problem leaves unreadable stays absent.
type decoder struct {
	read     func(path string) ([]byte, error) // of a file that a section names; may be nil
	file     string
	included string // path of the section whose content another file holds; "" outside of one
	alone    bool   // the file holds a section alone
	problems []Problem
}

func (d *decoder) report(line, col int, p Problem) {
	p.File, p.Line, p.Column = d.file, line, col
	d.problems = append(d.problems, p)
}

func (d *decoder) wrongType(n *node, path, what, want string) {
	got := n.kind.String()
	if n.bad != "" {
		got = "this: " + n.bad
	}
	hint := ""
	if (want == "a string" || want == aTarget) && n.unquoted() {
		hint = inQuotes
	} else if n.kind == stringNode && (strings.HasPrefix(want, "a number") || strings.HasPrefix(want, "a whole number")) {
		hint = asNumber(n.text)
	}
	d.report(n.line, n.col, Problem{Path: path, Code: "wrong-type", Message: fmt.Sprintf("%s must be %s, not %s", what, want, got), Hint: hint})
}

const (
	aTarget  = "a target state or an object"
	inQuotes = "put it in quotes"
)

// asNumber says how to write a text as the number that it is, "" if it is none. Of per cents that
// is a share.
func asNumber(text string) string {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	if percent {
		v /= 100
	}
	return fmt.Sprintf("write %s without quotes in place of %q", strconv.FormatFloat(v, 'g', -1, 64), clip(text, 32))
}

// A field is one member of an object with fixed members.
type field struct {
	name string
	read func(n *node, path, what string)
}

// object reads an object with fixed members. what names it in messages.
func (d *decoder) object(n *node, path, what string, fields []field) bool {
	if n.kind != objectNode {
		d.wrongType(n, path, what, "an object")
		return false
	}
	foreign := path == "" && d.foreign(n, what, fields)
	if !foreign {
		d.duplicates(n, path)
	}
	for i, k := range n.keys {
		if isExtension(k.name) || path == "" && k.name == "$schema" {
			continue
		}
		f := findField(fields, k.name)
		if f == nil {
			d.unknownField(k, path, what, fields, foreign)
			continue
		}
		f.read(n.items[i], pointer(path, k.name), f.name)
	}
	return true
}

// foreign reports a file that is something else, see [Foreign].
func (d *decoder) foreign(n *node, what string, fields []field) bool {
	names := make([]string, len(n.keys))
	for i, k := range n.keys {
		names[i] = k.name
	}
	p, foreign := Foreign(what, names, namesOf(fields))
	if foreign {
		d.report(n.line, n.col, p)
	}
	return foreign
}

func (d *decoder) unknownField(k key, path, what string, fields []field, foreign bool) {
	p := Problem{Path: pointer(path, k.name), Code: codeUnknown, Message: fmt.Sprintf("%s has no field %q", what, clip(k.name, 128))}
	if len(d.problems) < maxProblems { // later ones are not listed
		known := namesOf(fields)
		p.Hint = cmp.Or(didYouMean(k.name, known), didYouMean(synonyms[k.name], known))
	}
	if p.Hint != "" || !foreign {
		d.report(k.line, k.col, p)
	}
}

func namesOf(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// synonyms are words that others use for a field, by which nobody would find it: their
// spelling is far from its.
var synonyms = map[string]string{
	"to": "target", "next": "target", "goto": "target", "nextState": "target", "targetState": "target",
	"initial": "initialState", "start": "initialState", "goal": "goalState", "end": "goalState", "name": "machineName", "id": "specialistId",
	"url": "strategyWebhookUrl", "webhookUrl": "strategyWebhookUrl", "model": "modelId", "strategy": "strategyFnName", "human": "isHuman", "threshold": "consensusThreshold",
}

func findField(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// duplicates reports members that are written twice; the last one counts.
func (d *decoder) duplicates(n *node, path string) {
	first := make(map[string]key, len(n.keys))
	for _, k := range n.keys {
		if f, twice := first[k.name]; twice {
			what, at := strconv.Quote(clip(k.name, 128)), pointer(path, k.name)
			if d.included != "" || d.alone { // it may be another file than the writer meant, and what is in it nobody's business
				what, at = "this name", d.included
			}
			d.report(k.line, k.col, Problem{Path: at, Code: "duplicate-key",
				Message: fmt.Sprintf("%s is already defined at line %d, column %d", what, f.line, f.col), Hint: "remove one of the two"})
			continue
		}
		first[k.name] = k
	}
}

// duplicatesBelow reports members written twice anywhere inside n.
func (d *decoder) duplicatesBelow(n *node, path string) {
	if n.kind == objectNode {
		d.duplicates(n, path)
	}
	for i, item := range n.items {
		part := strconv.Itoa(i)
		if n.kind == objectNode {
			part = n.keys[i].name
		}
		d.duplicatesBelow(item, pointer(path, part))
	}
}

// only returns what reads a value of one kind, which want names, with f.
func (d *decoder) only(k kind, want string, f func(n *node, path, what string)) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind != k || n.bad != "" {
			d.wrongType(n, path, what, want)
			return
		}
		f(n, path, what)
	}
}

func text[T ~string](d *decoder, into *T) func(n *node, path, what string) {
	return d.only(stringNode, "a string", func(n *node, _, _ string) { *into = T(n.text) })
}

// choice reads a text that is one of a few, which the rule in its field's tag names. What is no
// text at all is answered with them: in quotes it would be none of them either.
func choice[T ~string](d *decoder, owner any, into *T) func(n *node, path, what string) {
	read := text(d, into)
	return func(n *node, path, what string) {
		before := len(d.problems)
		read(n, path, what)
		if len(d.problems) > before {
			d.problems[before].Hint = itMayBe(choicesOf(owner, what))
		}
	}
}

func (d *decoder) flag(into *bool) func(n *node, path, what string) {
	return d.only(boolNode, "true or false", func(n *node, _, _ string) { *into = n.text == "true" })
}

func (d *decoder) optionalFlag(into **bool) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		before := len(d.problems)
		v := new(bool)
		if d.flag(v)(n, path, what); len(d.problems) == before {
			*into = v
		}
	}
}

func (d *decoder) float(into *float64) func(n *node, path, what string) {
	return d.only(numberNode, "a number", func(n *node, _, _ string) {
		v, _ := strconv.ParseFloat(n.text, 64) // the tree holds finite numbers
		*into = v + 0                          // -0 becomes 0, as in the canonical form
	})
}

func (d *decoder) count(into *int) func(n *node, path, what string) {
	return d.only(numberNode, "a whole number", func(n *node, path, what string) {
		v, _ := strconv.ParseFloat(n.text, 64)
		if v != math.Trunc(v) || v < 1 || v > math.MaxInt32 {
			d.report(n.line, n.col, Problem{Path: path, Code: "out-of-range", Message: fmt.Sprintf("%s is %s, not a whole number from 1", what, clip(n.text, 40))})
			return
		}
		*into = int(v) // 16.0 is 16, as in every JSON Schema
	})
}

func (d *decoder) threshold(into **Threshold) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind != numberNode {
			d.wrongType(n, path, what, "a number from 0 to 1")
			return
		}
		f, _ := strconv.ParseFloat(n.text, 64) // if it is not finite, n.bad says so
		t, err := NewThreshold(f)
		if n.bad != "" || err != nil {
			d.report(n.line, n.col, Problem{Path: path, Code: "bad-threshold", Message: fmt.Sprintf("%s is %s, not a number from 0 to 1", what, clip(n.text, 40)), Hint: thresholdHint(f)})
			return
		}
		*into = &t
	}
}

func (d *decoder) duration(into *Duration) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind != stringNode {
			d.report(n.line, n.col, Problem{Path: path, Code: "bad-duration", Message: fmt.Sprintf("%s must be a string such as \"30s\", not %s", what, n.kind), Hint: durationHint})
			return
		}
		v, err := time.ParseDuration(n.text)
		if err != nil || v <= 0 || v > maxDuration {
			d.report(n.line, n.col, Problem{Path: path, Code: "bad-duration", Message: fmt.Sprintf("%s is %q, not a duration above 0 and up to %s", what, clip(n.text, 40), Duration(maxDuration)), Hint: durationHint})
			return
		}
		*into = Duration(v)
	}
}

// maxDuration bounds every duration of a file: a year.
const maxDuration = 365 * 24 * time.Hour

func (d *decoder) money(into **exact.Money) func(n *node, path, what string) {
	return d.only(numberNode, "a number of US dollars", func(n *node, path, what string) {
		v, err := exact.ParseMoney(n.text)
		if err != nil || v < 0 {
			d.report(n.line, n.col, Problem{Path: path, Code: "out-of-range", Message: fmt.Sprintf("%s is %s, not an amount of US dollars from 0", what, clip(n.text, 40))})
			return
		}
		*into = &v
	})
}

// raw keeps a section as canonical JSON for the package that owns it.
// extensions is the number of levels at which "x-" members are left out.
func (d *decoder) raw(into *[]byte, extensions int) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		before := len(d.problems)
		d.duplicatesBelow(n, path)
		if bad := n.unusable(); bad != nil {
			d.report(bad.line, bad.col, Problem{Path: path, Code: "wrong-type", Message: bad.bad})
		}
		if len(d.problems) > before {
			return // nobody should look at what is there
		}
		*into = n.appendJSON(nil, extensions)
	}
}
