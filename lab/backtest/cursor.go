package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
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
	raw := c.raw()
	if v, ok := decimal(raw, 12); ok {
		return exact.Money(v)
	}
	if err := m.UnmarshalJSON(raw); err != nil {
		c.fail("an amount of money")
	}
	return m
}

func (c *cursor) billionths() (b exact.Billionths) {
	raw := c.raw()
	if v, ok := decimal(raw, 9); ok {
		return exact.Billionths(v)
	}
	if err := b.UnmarshalJSON(raw); err != nil {
		c.fail("a number")
	}
	return b
}

// time consumes a moment. Those of one commit are the same, and so are most days.
func (c *cursor) time() (t specialist.Time) {
	raw := c.raw()
	if t, ok := moment(raw); ok {
		return t
	}
	if err := t.UnmarshalJSON(raw); err != nil {
		c.fail("a time")
	}
	return t
}

// moment reads a time in the one form that is stored, "2006-01-02T15:04:05.000Z".
func moment(raw []byte) (specialist.Time, bool) {
	const form = `"0000-00-00T00:00:00.000Z"`
	if len(raw) != len(form) {
		return 0, false
	}
	var n [7]int
	field := 0
	for i := 1; i < len(form)-1; i++ {
		switch b := raw[i]; {
		case form[i] != '0' && b == form[i]:
			field++
		case form[i] == '0' && b >= '0' && b <= '9':
			n[field] = n[field]*10 + int(b-'0')
		default:
			return 0, false
		}
	}
	day := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1e6, time.UTC)
	return specialist.TimeOf(day), true
}

// decimal reads a plain decimal number of not too many digits as a multiple of
// ten to the minus places.
func decimal(raw []byte, places int) (v int64, ok bool) {
	digits, negative := raw, false
	if len(raw) > 0 && raw[0] == '-' {
		digits, negative = raw[1:], true
	}
	after := -1
	for _, b := range digits {
		switch {
		case b == '.' && after < 0:
			after = 0
			continue
		case b < '0' || b > '9':
			return 0, false
		case after >= 0:
			after++
		}
		if v = v*10 + int64(b-'0'); v > 1<<40 {
			return 0, false
		}
	}
	after = max(after, 0)
	if after > places || len(digits) == 0 {
		return 0, false
	}
	for ; after < places; after++ {
		if v > (1<<62)/10 {
			return 0, false
		}
		v *= 10
	}
	if negative {
		v = -v
	}
	return v, true
}
