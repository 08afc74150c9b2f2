package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

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
}

type key struct {
	name      string
	line, col int
}

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
// member of an object, the place of its key.
func (n *node) at(path string) (found *node, name *key) {
	found = n
	for _, part := range splitPointer(path) {
		var next *node
		switch found.kind {
		case objectNode:
			for i := range found.keys {
				if found.keys[i].name == part {
					next, name = found.items[i], &found.keys[i]
				}
			}
		case arrayNode:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(found.items) {
				next, name = found.items[i], nil
			}
		}
		if next == nil {
			return found, name
		}
		found = next
	}
	return found, name
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

// appendJSON appends the canonical form of n, all of whose numbers are usable. Members whose names begin with
// "x-" are left out at the given number of levels.
func (n *node) appendJSON(dst []byte, extensions int) []byte {
	switch n.kind {
	case nullNode:
		return append(dst, "null"...)
	case boolNode:
		return append(dst, n.text...)
	case numberNode:
		f, _ := strconv.ParseFloat(n.text, 64)
		return exact.AppendFloat(dst, f)
	case stringNode:
		return exact.AppendString(dst, n.text)
	case arrayNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst, 0)
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
		dst = append(exact.AppendString(dst, k.name), ':')
		dst = n.items[i].appendJSON(dst, extensions-1)
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

// A growth counts nodes while a tree is built, so that no input, however its
// aliases multiply, costs more than the limits allow.
type growth struct{ nodes int }

func (g *growth) add(line, col, depth int) error {
	g.nodes++
	switch {
	case g.nodes > maxNodes:
		return &syntaxError{code: "too-large", message: fmt.Sprintf("the file has more than %d values", maxNodes), line: line, col: col}
	case depth > maxNesting:
		return &syntaxError{code: "too-large", message: fmt.Sprintf("values are nested deeper than %d", maxNesting), line: line, col: col}
	}
	return nil
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

// A jsonReader builds a tree from JSON tokens.
type jsonReader struct {
	data   []byte
	dec    *json.Decoder
	growth growth
	offset int // of the token last read
	line   int // place of offset, kept up as tokens are read
	start  int // offset at which that line starts
	end    int // offset after the token last read
}

func parseJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	r := &jsonReader{data: data, dec: dec, line: 1}
	root, err := r.value(1)
	if err != nil {
		return nil, r.failure(err)
	}
	if _, err := r.next(); err != io.EOF {
		line, col := r.place()
		return nil, &syntaxError{code: codeSyntax, message: "there is more after the end of the document", line: line, col: col}
	}
	return root, nil
}

// next reads a token and notes where it begins.
func (r *jsonReader) next() (json.Token, error) {
	tok, err := r.dec.Token()
	at := r.end
	for at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[at]) >= 0 {
		if r.data[at] == '\n' {
			r.line++
			r.start = at + 1
		}
		at++
	}
	r.offset = at
	if err == nil {
		r.end = int(r.dec.InputOffset())
	}
	return tok, err
}

func (r *jsonReader) place() (line, col int) {
	return r.line, utf8.RuneCount(r.data[r.start:r.offset]) + 1
}

// failure gives a decoder's error its place.
func (r *jsonReader) failure(err error) error {
	var known *syntaxError
	if errors.As(err, &known) {
		return known
	}
	line, col := r.place()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, col = position(r.data, max(0, int(syntax.Offset)-1))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		line, col = position(r.data, len(r.data))
		err = errors.New("the document ends too early")
	}
	return &syntaxError{code: codeSyntax, message: err.Error(), line: line, col: col}
}

func (r *jsonReader) value(depth int) (*node, error) {
	tok, err := r.next()
	if err != nil {
		return nil, err
	}
	line, col := r.place()
	if err := r.growth.add(line, col, depth); err != nil {
		return nil, err
	}
	n := &node{line: line, col: col}
	switch t := tok.(type) {
	case json.Delim:
		if t == '{' {
			return n, r.object(n, depth)
		}
		return n, r.array(n, depth)
	case string:
		n.kind, n.text = stringNode, t
		return n, r.checkString(t)
	case json.Number:
		n.kind, n.text = numberNode, t.String()
		if _, err := strconv.ParseFloat(n.text, 64); err != nil {
			n.bad = fmt.Sprintf("the number %s is too large", clip(n.text, 40))
		}
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(t)
	}
	return n, nil
}

func (r *jsonReader) object(n *node, depth int) error {
	n.kind = objectNode
	for r.dec.More() {
		tok, err := r.next()
		if err != nil {
			return err
		}
		line, col := r.place()
		name := tok.(string)
		if err := r.checkString(name); err != nil {
			return err
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key{name, line, col})
		n.items = append(n.items, item)
	}
	_, err := r.next()
	return err
}

func (r *jsonReader) array(n *node, depth int) error {
	n.kind = arrayNode
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.next()
	return err
}

// checkString refuses half a surrogate pair, which encoding/json would turn
// into U+FFFD without a word: two different names could become one.
func (r *jsonReader) checkString(s string) error {
	if !strings.ContainsRune(s, utf8.RuneError) || !loneSurrogate(r.data[r.offset:r.end]) {
		return nil
	}
	line, col := r.place()
	return &syntaxError{code: codeSyntax, message: "the string holds half of a surrogate pair", line: line, col: col}
}

// loneSurrogate reports whether raw, a valid JSON string, escapes a surrogate
// without its other half.
func loneSurrogate(raw []byte) bool {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		u, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
		return u, err == nil && u >= 0xD800 && u < 0xE000
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		u, surrogate := unit(i)
		if !surrogate {
			i++ // the escaped character
			continue
		}
		if low, ok := unit(i + 6); u >= 0xDC00 || !ok || low < 0xDC00 {
			return true
		}
		i += 11
	}
	return false
}

// clip shortens s for a message.
func clip(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes]) + "…"
}
