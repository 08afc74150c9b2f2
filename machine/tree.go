package machine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
)

// One tree for JSON and YAML: values with line and column, members in the order in
// which they stand, twice if they do. A JSON pointer finds a value and the place of its
// name (at), so a check that knows only a path can be shown in the file.
//
// A file comes from anywhere, so its size, its depth and its number of values are
// bounded while the tree is built, after YAML's aliases are expanded (growth).
// appendJSON writes the canonical form that the digest of a definition is made of:
// members in their order, numbers and strings as RFC 8785 writes them, without members
// that begin with x- at the levels where those belong to others.

// Limits of one machine file.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 100_000
	maxNesting   = 64
)

// kind is the JSON type of a node.
type kind uint8

const (
	nullNode kind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// A node is one value of a machine file with its place: the same tree for JSON
// and for YAML, members in the order they were written.
type node struct {
	kind      kind
	line, col int
	text      string // a string's value, a number's JSON text, "true" or "false"
	bad       string // why a number cannot be used: NaN, infinite, too large
	keys      []key  // of an object
	items     []*node
	file      string // of its own, for a section that stands in one; else ""
}

type key struct {
	name      string
	line, col int
}

// unquoted reports whether quotes would make the text of n a string that can be used.
func (n *node) unquoted() bool { return (n.kind == numberNode || n.kind == boolNode) && n.bad == "" }

// child returns the member of that name, or nil.
func (n *node) child(name string) *node {
	for i, k := range n.keys {
		if k.name == name {
			return n.items[i]
		}
	}
	return nil
}

// at follows a JSON pointer as far as it goes and returns the node and, for a
// member of an object, the place of its key. Of members written twice it takes
// the one it can follow further, the last of equals.
func (n *node) at(path string) (found *node, name *key) {
	found, name, _ = n.follow(splitPointer(path))
	return found, name
}

// follow is at for the parts of a pointer. It also returns how many it followed.
func (n *node) follow(parts []string) (found *node, name *key, depth int) {
	found = n
	if len(parts) == 0 {
		return found, nil, 0
	}
	try := func(item *node, k *key) {
		f, name2, d := item.follow(parts[1:])
		if d+1 < depth {
			return
		}
		if d == 0 {
			name2 = k
		}
		found, name, depth = f, name2, d+1
	}
	switch n.kind {
	case objectNode:
		for i := range n.keys {
			if n.keys[i].name == parts[0] {
				try(n.items[i], &n.keys[i])
			}
		}
	case arrayNode:
		if i, err := strconv.Atoi(parts[0]); err == nil && i >= 0 && i < len(n.items) {
			try(n.items[i], nil)
		}
	}
	return found, name, depth
}

// fileAt returns the file of the value at a JSON pointer, "" for that of n.
func (n *node) fileAt(path string) (file string) {
	file = n.file
	for _, part := range splitPointer(path) {
		if n, _ = n.step(part); n == nil {
			break
		}
		if n.file != "" {
			file = n.file
		}
	}
	return file
}

// step returns the member or the item of n that one part of a JSON pointer
// names, and the key of a member; of members written twice, the last.
func (n *node) step(part string) (next *node, name *key) {
	switch n.kind {
	case objectNode:
		for i := range n.keys {
			if n.keys[i].name == part {
				next, name = n.items[i], &n.keys[i]
			}
		}
	case arrayNode:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
	}
	return next, name
}

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// pointer appends one reference token to a JSON pointer (RFC 6901).
func pointer(path, part string) string { return path + "/" + pointerEscape.Replace(part) }

func splitPointer(path string) []string {
	if path == "" {
		return nil
	}
	parts := strings.Split(path[1:], "/")
	for i, p := range parts {
		parts[i] = pointerUnescape.Replace(p)
	}
	return parts
}

// unusable returns the first number below n that no JSON can hold, or nil.
func (n *node) unusable() *node {
	if n.bad != "" {
		return n
	}
	for _, item := range n.items {
		if found := item.unusable(); found != nil {
			return found
		}
	}
	return nil
}

// appendJSON appends the canonical form of n, all of whose numbers are usable.
// Members whose names begin with "x-" are left out at the given number of
// levels.
func (n *node) appendJSON(dst []byte, extensions int) []byte {
	return n.appendWith(canonicalNumber, dst, extensions)
}

// canonicalNumber appends a number as RFC 8785 writes it.
func canonicalNumber(dst []byte, text string) []byte {
	f, _ := strconv.ParseFloat(text, 64)
	return jsontext.AppendFloat(dst, f)
}

// writtenNumber appends a number with the digits that it has in the file.
func writtenNumber(dst []byte, text string) []byte { return append(dst, text...) }

func (n *node) appendWith(number func(dst []byte, text string) []byte, dst []byte, extensions int) []byte {
	switch n.kind {
	case nullNode:
		return append(dst, "null"...)
	case boolNode:
		return append(dst, n.text...)
	case numberNode:
		return number(dst, n.text)
	case stringNode:
		return jsontext.AppendString(dst, n.text)
	case arrayNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendWith(number, dst, 0)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	first := true
	for i, k := range n.keys {
		if extensions > 0 && isExtension(k.name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsontext.AppendString(dst, k.name), ':')
		dst = n.items[i].appendWith(number, dst, extensions-1)
	}
	return append(dst, '}')
}

func isExtension(name string) bool { return strings.HasPrefix(name, "x-") }

// A syntaxError is a text that cannot be read as a tree.
type syntaxError struct {
	code      string
	message   string
	hint      string
	line, col int
}

func (e *syntaxError) Error() string { return e.message }

// A growth counts values and their text while a tree is built, so that no
// input, however its aliases multiply, costs more than the limits allow.
type growth struct{ nodes, bytes int }

// add counts n, which stands at the given depth and is written in size bytes.
func (g *growth) add(n *node, depth, size int) error {
	g.nodes++
	g.bytes += size
	message := ""
	switch {
	case g.nodes > maxNodes:
		message = fmt.Sprintf("the file has more than %d values", maxNodes)
	case g.bytes > maxFileBytes:
		message = fmt.Sprintf("with its aliases expanded, the file is larger than %d bytes", maxFileBytes)
	case depth > maxNesting:
		message = fmt.Sprintf("values are nested deeper than %d", maxNesting)
	default:
		return nil
	}
	return &syntaxError{code: "too-large", message: message, line: n.line, col: n.col}
}

// checkText refuses what is too large or not UTF-8, before any parser sees it.
func checkText(data []byte) ([]byte, *syntaxError) {
	if len(data) > maxFileBytes {
		return nil, &syntaxError{code: "too-large", message: fmt.Sprintf("the file is larger than %d bytes", maxFileBytes), line: 1, col: 1,
			hint: "a machine file holds states and specialists; keep data elsewhere"}
	}
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) {
		return nil, &syntaxError{code: codeSyntax, message: "the file is UTF-16, not UTF-8", line: 1, col: 1, hint: "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		line, col := position(data, at)
		return nil, &syntaxError{code: codeSyntax, message: fmt.Sprintf("byte 0x%02X is not UTF-8", data[at]), line: line, col: col, hint: "save the file as UTF-8"}
	}
	return data, nil
}

// position returns line and column, from 1, of a byte offset.
func position(data []byte, offset int) (line, col int) {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// clip shortens s for a message.
func clip(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "…"
}
