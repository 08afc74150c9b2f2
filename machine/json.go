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

	"github.com/dialai/dialai/internal/jsontext"
)

// JSON into a tree with places. The decoder of the standard library gives tokens and
// offsets but no lines, so next counts lines and characters between tokens as it goes,
// each byte once. Errors of syntax have offsets only when the whole text is decoded, so
// it is decoded once more where one occurs.

// A jsonReader builds a tree from JSON tokens.
type jsonReader struct {
	data      []byte
	dec       *json.Decoder
	growth    growth
	offset    int // of the token last read
	line, col int // place of offset, kept up as tokens are read
	end       int // offset after the token last read
}

func parseJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	r := &jsonReader{data: data, dec: dec, line: 1, col: 1}
	root, err := r.value(1)
	if err != nil {
		return nil, r.failure(err)
	}
	if _, err := r.next(); err != io.EOF {
		return nil, &syntaxError{code: codeSyntax, message: "there is more after the end of the document", line: r.line, col: r.col}
	}
	return root, nil
}

// next reads a token and notes where it begins. A string holds no line break,
// so lines end only between tokens; each byte of the text is counted once.
func (r *jsonReader) next() (json.Token, error) {
	tok, err := r.dec.Token()
	at, start := r.end, r.offset
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		if r.data[at] == '\n' {
			r.line++
			r.col, start = 1, at+1
		}
		at++
	}
	r.col += utf8.RuneCount(r.data[start:at])
	r.offset = at
	if err == nil {
		r.end = int(r.dec.InputOffset())
	}
	return tok, err
}

// failure gives a decoder's error its place. The offsets of Decoder.Token are
// not those of the text, so the whole text is looked through once more.
func (r *jsonReader) failure(err error) error {
	var known *syntaxError
	if errors.As(err, &known) {
		return known
	}
	message := err.Error()
	var whole json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(r.data, &whole), &syntax) {
		at := int(syntax.Offset) - 1
		if message = syntax.Error(); endsEarly(r.data, at, message) {
			at, message = len(r.data), "the document ends too early"
		} else if bad, n := utf8.DecodeRune(r.data[at:]); n > 1 { // the library shows its first byte
			message = strings.Replace(message, fmt.Sprintf("%q", rune(r.data[at])), fmt.Sprintf("%q", bad), 1)
		}
		r.line, r.col = position(r.data, at)
	}
	return &syntaxError{code: codeSyntax, message: message, line: r.line, col: r.col}
}

// endsEarly reports whether an error at an offset is about the end of the text,
// where the library reads one more blank.
func endsEarly(data []byte, at int, message string) bool {
	return at < 0 || at == len(data)-1 &&
		(strings.HasPrefix(message, "unexpected end") || strings.HasPrefix(message, "invalid character ' '") && data[at] != ' ')
}

func (r *jsonReader) value(depth int) (*node, error) {
	tok, err := r.next()
	if err != nil {
		return nil, err
	}
	n := &node{line: r.line, col: r.col}
	if err := r.growth.add(n, depth, r.end-r.offset); err != nil {
		return nil, err
	}
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
			n.bad = tooLarge(n.text)
		}
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(t)
	}
	return n, nil
}

func tooLarge(number string) string {
	return fmt.Sprintf("the number %s is too large", clip(number, 40))
}

func (r *jsonReader) object(n *node, depth int) error {
	n.kind = objectNode
	for r.dec.More() {
		tok, err := r.next()
		if err != nil {
			return err
		}
		k := key{tok.(string), r.line, r.col}
		if err := r.checkString(k.name); err != nil {
			return err
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.keys = append(n.keys, k)
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
	if !strings.ContainsRune(s, utf8.RuneError) || jsontext.HalfPair(r.data[r.offset:r.end]) < 0 {
		return nil
	}
	return &syntaxError{code: codeSyntax, message: "the string holds half of a surrogate pair", line: r.line, col: r.col}
}
