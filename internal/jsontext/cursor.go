package jsontext

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/dialai/dialai/exact"
)

// A walk over JSON that was written or checked by us: the codec of events reads by it,
// so it copies nothing but strings with escapes. It trusts the text: it passes over
// values without checking them, and a walk over damaged text ends with an error or with
// values that make no sense, never outside of it. The first error ends the walk, since
// Fail moves the cursor to the end; so callers look at Err once, afterwards.

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

// Peek returns the next byte that is no blank, 0 at the end.
func (c *Cursor) Peek() byte {
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

// Done reports whether nothing is left but blanks.
func (c *Cursor) Done() bool { return c.Peek() == 0 && c.i == len(c.B) }

// Members calls f with the name of every member of an object, as it is written between its
// quotes; f has to consume the value.
func (c *Cursor) Members(f func(quoted []byte)) {
	if c.Peek() != '{' {
		c.Fail("an object")
		return
	}
	c.i++
	for first := true; c.more('}', first); first = false {
		name := c.Quoted()
		if c.Peek() != ':' {
			c.Fail("a member")
			return
		}
		c.i++
		f(name)
	}
}

// Elements calls f before every element of an array; f has to consume it.
func (c *Cursor) Elements(f func()) {
	if c.Peek() != '[' {
		c.Fail("an array")
		return
	}
	c.i++
	for first := true; c.more(']', first); first = false {
		f()
	}
}

// more consumes the comma before the next member or element, or the end if there is none.
func (c *Cursor) more(end byte, first bool) bool {
	switch next := c.Peek(); {
	case next == end:
		c.i++
		return false
	case first:
		return true
	case next == ',':
		c.i++
		return true
	}
	c.Fail("a comma")
	return false
}

// Raw consumes any value and returns its bytes.
func (c *Cursor) Raw() []byte {
	first := c.Peek()
	start := c.i
	switch first {
	case '"':
		c.quoted()
	case '{', '[':
		c.composite()
	case 0:
		c.Fail("a value")
	default:
		for c.i < len(c.B) && !delimiter[c.B[c.i]] {
			c.i++
		}
		if c.i == start {
			c.Fail("a value")
		}
	}
	return c.B[start:c.i]
}

var delimiter = [256]bool{',': true, ']': true, '}': true, ' ': true, '\t': true, '\n': true, '\r': true}

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

// Quoted consumes a string and returns what is written between its quotes.
func (c *Cursor) Quoted() []byte {
	raw := c.Raw()
	if len(raw) < 2 || raw[0] != '"' {
		c.Fail("a string")
		return nil
	}
	return raw[1 : len(raw)-1]
}

// Text consumes a string and returns what it says; the bytes may be those of the
// record.
func (c *Cursor) Text() []byte {
	if c.Peek() != '"' {
		c.Fail("a string")
		return nil
	}
	text, _, next := Unquote(c.B, c.i, nil)
	if c.i = next; next == 0 {
		c.Fail("a string")
	}
	return text
}

// Int consumes a whole number.
func (c *Cursor) Int() int64 {
	n, err := strconv.ParseInt(string(c.Raw()), 10, 64)
	if err != nil {
		c.Fail("a whole number")
	}
	return n
}

// Billionths consumes a number.
func (c *Cursor) Billionths() (b exact.Billionths) {
	if err := b.UnmarshalJSON(c.Raw()); err != nil {
		c.Fail("a number")
	}
	return b
}
