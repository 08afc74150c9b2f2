// Package lru remembers what was used last, up to a bound.
package lru

import (
	"iter"
	"maps"
)

// A Cache remembers values by their keys: the n that were used last at least, and twice
// as many at most. What is put or found belongs to the young of two generations; when
// that is full it becomes the old one, and what was old is forgotten. A Cache is made by
// [New] and must not be used concurrently.
type Cache[K comparable, V any] struct {
	n          int
	young, old map[K]V
}

// New returns an empty Cache that remembers at least n values.
func New[K comparable, V any](n int) *Cache[K, V] { return &Cache[K, V]{n: n, young: map[K]V{}} }

// Get returns the value of a key, and whether it is remembered.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	v, ok := c.young[k]
	if !ok {
		if v, ok = c.old[k]; ok {
			c.Put(k, v)
		}
	}
	return v, ok
}

// GetOr returns the value of a key, and if it is not remembered makes it and remembers it.
func (c *Cache[K, V]) GetOr(k K, make func() V) V {
	v, ok := c.Get(k)
	if !ok {
		v = make()
		c.Put(k, v)
	}
	return v
}

// Put remembers a value, whatever the key had before.
func (c *Cache[K, V]) Put(k K, v V) {
	if _, known := c.young[k]; !known && len(c.young) >= c.n {
		c.old, c.young = c.young, make(map[K]V, c.n)
	}
	c.young[k] = v
}

// Delete forgets a key.
func (c *Cache[K, V]) Delete(k K) {
	delete(c.young, k)
	delete(c.old, k)
}

// All yields everything that is remembered, in no order; a value may come twice. The
// Cache must not be used meanwhile.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, of := range [...]map[K]V{c.young, c.old} {
			for k, v := range maps.All(of) {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
