// Package wire writes values as bytes that come out the same everywhere, and reads them.
//
// One function describes a type in both directions: it hands each member to a [Coder], which
// writes it or fills it in. So what is read cannot differ from what was written, and writing changes
// nothing: others may read the same value meanwhile. The bytes of a
// value are canonical: whole numbers take as few bytes as they can, the keys of maps ascend, a
// text that came before is a number, and reading refuses whatever is written in another way. What
// is read is no larger than a constant times its bytes, and reading never panics.
package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Coder writes values, or reads them. It must not be used concurrently. After an error nothing
// is read any more: values stay as they are.
type Coder struct {
	data    []byte // written so far, or still to be read
	reading bool
	err     error

	texts  []string
	textOf map[string]int
	shared []any
	number map[any]int
}

// NewWriter returns a Coder that writes.
func NewWriter() *Coder { return &Coder{textOf: map[string]int{}, number: map[any]int{}} }

// NewReader returns a Coder that reads data, which must not be changed meanwhile. What it fills in
// shares no memory with data.
func NewReader(data []byte) *Coder {
	return &Coder{data: data, reading: true, textOf: map[string]int{}}
}

// Reading reports whether c fills in what it is handed.
func (c *Coder) Reading() bool { return c.reading }

// Bytes returns what was written.
func (c *Coder) Bytes() []byte { return c.data }

// Close returns the first error of reading, or one if not everything was read.
func (c *Coder) Close() error {
	if c.err == nil && c.reading && len(c.data) > 0 {
		c.fail("%d bytes follow the end", len(c.data))
	}
	return c.err
}

// Err returns the first error of reading so far.
func (c *Coder) Err() error { return c.err }

// Check refuses what was read unless it is sound.
func (c *Coder) Check(sound bool, what string) {
	if c.reading && c.err == nil && !sound {
		c.err = errors.New(what)
	}
}

func (c *Coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// Int codes a whole number.
func Int[T ~int | ~int32 | ~int64](c *Coder, v *T) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	if c.err != nil {
		return
	}
	n, size := binary.Varint(c.data)
	if size <= 0 || size > 1 && c.data[size-1] == 0 || int64(T(n)) != n {
		c.fail("there is no whole number of its size, %d bytes before the end", len(c.data))
		return
	}
	*v, c.data = T(n), c.data[size:]
}

// Bits codes a number without a sign, such as a hash.
func Bits[T ~uint8 | ~uint32 | ~uint64](c *Coder, v *T) {
	n := int64(*v)
	if Int(c, &n); c.reading {
		c.Check(n == int64(T(n)), "a number has more bits than there is room for")
		*v = T(n)
	}
}

// Float codes a number by its bits.
func (c *Coder) Float(v *float64) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint64(c.data, math.Float64bits(*v))
		return
	}
	if b := c.take(8); b != nil {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// Bool codes a truth value.
func (c *Coder) Bool(v *bool) {
	if !c.reading {
		b := byte(0)
		if *v {
			b = 1
		}
		c.data = append(c.data, b)
		return
	}
	if b := c.take(1); b != nil {
		c.Check(b[0] <= 1, "a truth value is neither 0 nor 1")
		*v = b[0] == 1
	}
}

// take returns the next n bytes that are read, nil if there are not so many.
func (c *Coder) take(n int) []byte {
	if c.err == nil && n > len(c.data) {
		c.fail("it ends %d bytes early", n-len(c.data))
	}
	if c.err != nil {
		return nil
	}
	b := c.data[:n:n]
	c.data = c.data[n:]
	return b
}

// size codes a length. What is read is at most as many as bytes are left: every element takes one.
func (c *Coder) size(n int) int {
	Int(c, &n)
	if c.Check(n >= 0 && n <= len(c.data), "a length is longer than what follows"); c.err != nil {
		return 0
	}
	return n
}

// Text codes a text. One that came before takes the room of its number.
func Text[T ~string](c *Coder, v *T) {
	i, known := c.textOf[string(*v)]
	if !known || c.reading {
		i = len(c.texts)
	}
	Int(c, &i)
	if c.Check(i >= 0 && i <= len(c.texts), "a text has the number of none before it"); c.err != nil {
		return
	}
	if i < len(c.texts) {
		if c.reading {
			*v = T(c.texts[i])
		}
		return
	}
	text := string(*v)
	if n := c.size(len(text)); c.reading {
		text = string(c.take(n))
		_, known = c.textOf[text]
		c.Check(!known, "a text stands there twice")
	} else {
		c.data = append(c.data, text...)
	}
	c.textOf[text] = len(c.texts)
	c.texts = append(c.texts, text)
	if c.reading {
		*v = T(text)
	}
}

// Slice codes a list, each element by a function. One without elements is read as nil.
func Slice[T any](c *Coder, list *[]T, element func(*T)) {
	n := c.size(len(*list))
	if c.reading {
		*list = nil
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading { // grows with what is read, not with what is promised
			*list = append(*list, *new(T))
		}
		element(&(*list)[i])
	}
}

// Map codes a map by ascending keys, which compare orders. It is read as a map that is never nil.
func Map[K comparable, V any](c *Coder, m *map[K]V, compare func(a, b K) int, entry func(*K, *V)) {
	keys := slices.SortedFunc(maps.Keys(*m), compare)
	n := c.size(len(keys))
	if c.reading {
		*m = map[K]V{}
	}
	var before K
	for i := 0; i < n && c.err == nil; i++ {
		var k K
		var v V
		if !c.reading {
			k = keys[i]
			v = (*m)[k]
		}
		entry(&k, &v)
		if c.Check(i == 0 || compare(before, k) < 0, "the keys of a map do not ascend"); c.reading && c.err == nil {
			(*m)[k], before = v, k
		}
	}
}

// TextMap is Map for keys that are texts.
func TextMap[V any](c *Coder, m *map[string]V, value func(*V)) {
	Map(c, m, cmp.Compare[string], func(k *string, v *V) {
		Text(c, k)
		value(v)
	})
}

// Pointer codes what p points to, or that it is nil.
func Pointer[T any](c *Coder, p **T, value func(*T)) {
	there := *p != nil
	c.Bool(&there)
	if !there || c.err != nil {
		return
	}
	if c.reading {
		*p = new(T)
	}
	value(*p)
}

// Shared codes what p, which is not nil, points to. What many point to is written once, and read as
// one value to which all of them point.
func Shared[T any](c *Coder, p **T, value func(*T)) {
	i, known := c.number[*p]
	if !known || c.reading {
		i = len(c.shared)
	}
	Int(c, &i)
	if c.Check(i >= 0 && i <= len(c.shared), "what is shared has the number of nothing before it"); c.err != nil {
		return
	}
	if i < len(c.shared) {
		if is, ok := c.shared[i].(*T); ok {
			*p = is
			return
		}
		c.fail("what is shared is of another kind")
		return
	}
	if c.reading {
		*p = new(T)
	} else {
		c.number[*p] = i
	}
	c.shared = append(c.shared, *p)
	value(*p)
}
