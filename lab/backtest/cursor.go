package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dialai/dialai/exact"
)

// A cursor walks through one JSON value in the form in which a log stores it,
// and reads only what is asked for: a log has more in it than a back-test needs.
// The first thing that is not as it should be is kept in err, and ends the walk.
type cursor struct {
	b   []byte
	i   int
	err error
}

func (c *cursor) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s expected at byte %d of the record", what, c.i)
	}
	c.i = len(c.b)
}

// next returns the next byte that is no blank, 0 at the end.
func (c *cursor) next() byte {
	for c.i < len(c.b) {
		switch b := c.b[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// take consumes one byte.
func (c *cursor) take(want byte) bool {
	if c.next() == want && c.i < len(c.b) {
		c.i++
		return true
	}
	return false
}

// members calls f with the name of every member of an object; f has to consume
// the value.
func (c *cursor) members(f func(name []byte)) {
	if !c.take('{') {
		c.fail("an object")
		return
	}
	for first := true; !c.take('}'); first = false {
		if !first && !c.take(',') {
			c.fail("a comma")
			return
		}
		name := c.raw()
		if len(name) < 2 || name[0] != '"' || !c.take(':') {
			c.fail("a member")
			return
		}
		f(name[1 : len(name)-1])
	}
}

// elements calls f before every element of an array; f has to consume it.
func (c *cursor) elements(f func()) {
	if !c.take('[') {
		c.fail("an array")
		return
	}
	for first := true; !c.take(']'); first = false {
		if !first && !c.take(',') {
			c.fail("a comma")
			return
		}
		f()
	}
}

// raw consumes any value and returns its bytes.
func (c *cursor) raw() []byte {
	first := c.next()
	start := c.i
	switch first {
	case '"':
		c.quoted()
	case '{', '[':
		c.composite()
	case 0:
		c.fail("a value")
	default:
		for c.i < len(c.b) && bytes.IndexByte(delimiters, c.b[c.i]) < 0 {
			c.i++
		}
		if c.i == start {
			c.fail("a value")
		}
	}
	return c.b[start:c.i]
}

var delimiters = []byte(",]} \t\n\r")

// quoted consumes a string.
func (c *cursor) quoted() {
	for c.i++; c.i < len(c.b); {
		j := bytes.IndexByte(c.b[c.i:], '"')
		if j < 0 {
			break
		}
		end := c.i + j
		slashes := 0
		for end-slashes > c.i && c.b[end-slashes-1] == '\\' {
			slashes++
		}
		if c.i = end + 1; slashes%2 == 0 {
			return
		}
	}
	c.fail("the end of a string")
}

// composite consumes an object or an array.
func (c *cursor) composite() {
	for depth := 0; c.i < len(c.b); {
		switch c.b[c.i] {
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
	c.fail("the end of a value")
}

// text consumes a string and returns what it says; the bytes may be those of the
// record.
func (c *cursor) text() []byte {
	raw := c.raw()
	if len(raw) < 2 || raw[0] != '"' {
		c.fail("a string")
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		c.fail("a string")
	}
	return []byte(s)
}

func (c *cursor) int() int64 {
	n, err := strconv.ParseInt(string(c.raw()), 10, 64)
	if err != nil {
		c.fail("a whole number")
	}
	return n
}

func (c *cursor) bool() bool { return string(c.raw()) == "true" }

func (c *cursor) money() (m exact.Money) {
	if err := m.UnmarshalJSON(c.raw()); err != nil {
		c.fail("an amount of money")
	}
	return m
}

func (c *cursor) billionths() (b exact.Billionths) {
	if err := b.UnmarshalJSON(c.raw()); err != nil {
		c.fail("a number")
	}
	return b
}
