package guard

import "slices"

// A ring holds the newest items of a list. The zero ring is empty.
type ring[T any] struct {
	items []T
	first int // index of the oldest
}

func (r *ring[T]) len() int { return len(r.items) }

// at returns the i-th item, the oldest first, and the newest last.
func (r *ring[T]) at(i int) *T {
	if i += r.first; i >= len(r.items) {
		i -= len(r.items)
	}
	return &r.items[i]
}

// next returns the room of a new newest item, of at most limit. What is in it is
// the item that had to go, or the zero value.
func (r *ring[T]) next(limit int) *T {
	n := len(r.items)
	switch {
	case n == limit:
		out := &r.items[r.first]
		if r.first++; r.first == n {
			r.first = 0
		}
		return out
	case n > limit || r.first > 0: // the limit has changed
		r.items, r.first = r.list(), 0
		r.items = slices.Delete(r.items, 0, max(0, n-limit))
		return r.next(limit)
	case r.items == nil:
		r.items = make([]T, 0, min(limit, DefaultHistoryLimit)) // no more than it will need
	}
	var zero T
	r.items = append(r.items, zero)
	return &r.items[n]
}

func (r *ring[T]) clone() ring[T] { return ring[T]{slices.Clone(r.items), r.first} }

// list returns a copy of the items, the oldest first.
func (r *ring[T]) list() []T { return slices.Concat(r.items[r.first:], r.items[:r.first]) }
