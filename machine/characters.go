package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A name is shown to people who decide by it, compared byte by byte, and part of keys,
// paths and commands: what cannot be seen has no place in it. Names are all keys of a
// file, and all texts that are not prose: targets, ids, models, addresses, variables.
// Prose is what people and models read and what engines run: prompts, descriptions,
// expressions, patterns, what is below a JSON Schema or an extension (x-).

// Hidden returns the first character of a name that cannot be seen or that changes
// how others are shown: control characters (C0, DEL, C1), format characters (category
// Cf: zero-width characters, bidirectional controls, soft hyphens, tags), line and
// paragraph separators, noncharacters, what is not UTF-8, which is returned as
// U+FFFD, what fonts may leave out (default ignorable characters, variation selectors and
// fillers included), what they draw as a blank (that of Braille, the null notehead of
// music, fillers of Khitan and of hieroglyphs), and spaces but U+0020, which they look
// like. at is its place, counted in characters from 1; 0 if
// there is none.
func Hidden(name string) (r rune, at int) { return firstOf(name, hidden) }

// IsHidden reports whether Hidden finds r wherever it stands in a name.
func IsHidden(r rune) bool { return hidden(r) }

// HiddenInProse is Hidden for prose, which may have tabs, line feeds, carriage returns
// and what some scripts and pictures are written with: all spaces, blanks,
// variation selectors and the two joiners (U+200C, U+200D).
func HiddenInProse(text string) (r rune, at int) { return firstOf(text, hiddenInProse) }

// The characters that names hold none of, and of which prose may hold some. Controls of
// C0 and DEL come first, by their number.
var (
	unseenCharacters = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point}
	writtenInProse   = []*unicode.RangeTable{unicode.Zs, unicode.Variation_Selector, blanks}
)

// blanks are letters and signs that are drawn as nothing: of Braille, Khitan, hieroglyphs
// and music. Their categories are those of what is seen, and no property tells of them.
var blanks = rangetable('\u2800', '\U00013441', '\U00013442', '\U00016FE4', '\U0001D159')

func rangetable(sorted ...rune) *unicode.RangeTable {
	t := &unicode.RangeTable{}
	for _, r := range sorted {
		if r <= 0xFFFF {
			t.R16 = append(t.R16, unicode.Range16{Lo: uint16(r), Hi: uint16(r), Stride: 1})
		} else {
			t.R32 = append(t.R32, unicode.Range32{Lo: uint32(r), Hi: uint32(r), Stride: 1})
		}
	}
	return t
}

func hidden(r rune) bool {
	return r < ' ' || r >= 0x7F && (unicode.IsOneOf(unseenCharacters, r) || unicode.IsOneOf(writtenInProse, r))
}

func hiddenInProse(r rune) bool {
	switch r {
	case '\t', '\n', '\r', 0x200C, 0x200D:
		return false
	}
	return r < ' ' || r >= 0x7F && unicode.IsOneOf(unseenCharacters, r)
}

func firstOf(s string, bad func(rune) bool) (r rune, at int) {
	for i, r := range s {
		if at++; bad(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return r, at
		}
	}
	return 0, 0
}

// Members of a file whose text is prose, and those below which all texts are.
var (
	proseMembers = []string{"prompt", "description", "strategyFn", "when", "subject"}
	proseBelow   = []string{"parameters", "input", "set", "schema", "output_schema", "arg_schemas", "forbidden_patterns"}
)

// A characterSearch looks for what is hidden in the names and the prose of a file.
type characterSearch struct {
	file  string
	found []Problem
}

// charactersIn returns what is hidden in the names and the prose of a file.
func charactersIn(file string, tree *node) []Problem {
	s := &characterSearch{file: file}
	s.search(tree, "", textOf{})
	return s.found
}

// characters returns what is hidden in a definition that was built in Go; a file has
// been searched, and has places.
func (m *Machine) characters() []Problem {
	if m.origin.tree != nil {
		return nil
	}
	tree, err := parseJSON(m.json)
	if err != nil {
		return []Problem{{Code: "bad-value", Message: err.Error()}} // a broken invariant: it has just been written
	}
	found := charactersIn("", tree)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}

// textOf says what the texts of a value are, and whether its members have names of
// somebody's own, which say nothing of what they hold.
type textOf struct{ prose, free bool }

// in returns the same of a member of that name.
func (t textOf) in(name string, value *node) textOf {
	switch {
	case t.prose || t.free:
		return textOf{prose: t.prose}
	case isExtension(name), slices.Contains(proseBelow, name), slices.Contains(proseMembers, name) && value.kind == stringNode:
		return textOf{prose: true}
	}
	return textOf{free: slices.Contains(freelyNamed, name)}
}

func (s *characterSearch) search(n *node, path string, of textOf) {
	if outer := s.file; n.file != "" {
		s.file = n.file
		defer func() { s.file = outer }()
	}
	if n.kind == stringNode {
		s.look(n.line, n.col, path, lastOf(path), n.text, of.prose)
	}
	for i, item := range n.items {
		if n.kind == arrayNode {
			s.search(item, fmt.Sprintf("%s/%d", path, i), of)
			continue
		}
		k := n.keys[i]
		s.look(k.line, k.col, path, "a name in "+lastOf(path), k.name, false)
		s.search(item, pointer(path, k.name), of.in(k.name, item))
	}
}

// look reports the first of what is hidden in a text, and shows none of it.
func (s *characterSearch) look(line, col int, path, what, text string, prose bool) {
	find, hint := Hidden, "write it anew: it may have been pasted along"
	if prose {
		find, hint = HiddenInProse, "remove it: line breaks, tabs, spaces, joiners and variation selectors are all that a text may hold of what cannot be seen"
	}
	r, at := find(text)
	if at == 0 || len(s.found) >= 10*maxProblems {
		return
	}
	s.found = append(s.found, Problem{File: s.file, Line: line, Column: col, Path: path, Code: "hidden-character",
		Message: fmt.Sprintf("%s holds U+%04X as character %d, which cannot be seen", strings.Trim(strconv.QuoteToASCII(what), `"`), r, at), Hint: hint})
}
