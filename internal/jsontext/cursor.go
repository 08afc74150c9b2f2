package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dialai/dialai/exact"
)

// A Cursor walks through one JSON value, and reads only what is asked for. It does not
// check what it passes over. It is for one goroutine; the zero Cursor has nothing to read.
type Cursor struct {
	B   []byte // what is read; what a Cursor returns may be parts of it
	Err error  // the first thing that was not as it should be: it ended the walk
	i   int
}

// Fail notes what was expected where the cursor is, unless something was before, and ends
// the walk.
func (c *Cursor) Fail(what string) {
	if c.Err == nil {
		c.Err = fmt.Errorf("%s expected at byte %d of the record", what, c.i)
	}
	c.i = len(c.B)
}

// next returns the next byte that is no blank, 0 at the end.
func (c *Cursor) next() byte {
	for c.i < len(c.B) {
		switch b := c.B[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// take consumes one byte.
func (c *Cursor) take(want byte) bool {
	if c.next() == want && c.i < len(c.B) {
		c.i++
		return true
	}
	return false
}

// Members calls f with the name of every member of an object; f has to consume
// the value.
func (c *Cursor) Members(f func(name []byte)) {
	if !c.take('{') {
		c.Fail("an object")
		return
	}
	for first := true; !c.take('}'); first = false {
		if !first && !c.take(',') {
			c.Fail("a comma")
			return
		}
		name := c.Raw()
		if len(name) < 2 || name[0] != '"' || !c.take(':') {
			c.Fail("a member")
			return
		}
		f(name[1 : len(name)-1])
	}
}

// Elements calls f before every element of an array; f has to consume it.
func (c *Cursor) Elements(f func()) {
	if !c.take('[') {
		c.Fail("an array")
		return
	}
	for first := true; !c.take(']'); first = false {
		if !first && !c.take(',') {
			c.Fail("a comma")
			return
		}
		f()
	}
}

// Raw consumes any value and returns its bytes.
func (c *Cursor) Raw() []byte {
	first := c.next()
	start := c.i
	switch first {
	case '"':
		c.quoted()
	case '{', '[':
		c.composite()
	case 0:
		c.Fail("a value")
	default:
		for c.i < len(c.B) && bytes.IndexByte(delimiters, c.B[c.i]) < 0 {
			c.i++
		}
		if c.i == start {
			c.Fail("a value")
		}
	}
	return c.B[start:c.i]
}

var delimiters = []byte(",]} \t\n\r")

// quoted consumes a string.
func (c *Cursor) quoted() {
	for c.i++; c.i < len(c.B); {
		j := bytes.IndexByte(c.B[c.i:], '"')
		if j < 0 {
			break
		}
		end := c.i + j
		slashes := 0
		for end-slashes > c.i && c.B[end-slashes-1] == '\\' {
			slashes++
		}
		if c.i = end + 1; slashes%2 == 0 {
			return
		}
	}
	c.Fail("the end of a string")
}

// composite consumes an object or an array.
func (c *Cursor) composite() {
	for depth := 0; c.i < len(c.B); {
		switch c.B[c.i] {
		case '"':
			c.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.i++
				return
			}
		}
		c.i++
	}
	c.Fail("the end of a value")
}

// Text consumes a string and returns what it says; the bytes may be those of the
// record.
func (c *Cursor) Text() []byte {
	raw := c.Raw()
	if len(raw) < 2 || raw[0] != '"' {
		c.Fail("a string")
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		c.Fail("a string")
	}
	return []byte(s)
}

// Int consumes a whole number.
func (c *Cursor) Int() int64 {
	n, err := strconv.ParseInt(string(c.Raw()), 10, 64)
	if err != nil {
		c.Fail("a whole number")
	}
	return n
}

// Bool consumes true or false.
func (c *Cursor) Bool() bool { return string(c.Raw()) == "true" }

// Money consumes an amount in dollars.
func (c *Cursor) Money() (m exact.Money) {
	if err := m.UnmarshalJSON(c.Raw()); err != nil {
		c.Fail("an amount of money")
	}
	return m
}

// Billionths consumes a number.
func (c *Cursor) Billionths() (b exact.Billionths) {
	if err := b.UnmarshalJSON(c.Raw()); err != nil {
		c.Fail("a number")
	}
	return b
}
