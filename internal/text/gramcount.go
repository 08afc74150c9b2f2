package text

import "math/bits"

// A GramCounter counts the n-grams of one output in that and in others. Almost no
// n-gram of another output is among them, so a bit says first whether one may be.
// It is scratch memory, used again for the next output.
type GramCounter struct {
	Slots []gramCount // open addressing; at most half of them are taken
	seen  []uint64    // 64 bits for each slot
	shift int         // of an n-gram, for the index of its bit
}

type gramCount struct {
	gram  uint64
	times int64 // 0 if the slot is free
}

// Reset makes room for n n-grams.
func (c *GramCounter) Reset(n int) {
	size := 2 << bits.Len(uint(n))
	if cap(c.Slots) < size {
		c.Slots, c.seen = make([]gramCount, size), make([]uint64, size)
	}
	c.Slots, c.seen, c.shift = c.Slots[:size], c.seen[:size], 64-6-bits.TrailingZeros(uint(size))
	clear(c.Slots)
	clear(c.seen)
}

// slot returns where an n-gram is counted.
func (c *GramCounter) slot(gram uint64) *gramCount {
	for i := gram; ; i++ {
		s := &c.Slots[i&uint64(len(c.Slots)-1)]
		if s.times == 0 || s.gram == gram {
			return s
		}
	}
}

// Add counts an n-gram of the output and returns how often it occurs.
func (c *GramCounter) Add(gram uint64) int64 {
	i := gram >> c.shift
	c.seen[i/64] |= 1 << (i % 64)
	s := c.slot(gram)
	s.gram = gram
	s.times++
	return s.times
}

// More counts those n-grams of another output that occur in the output, and
// returns the most that one of them has occurred by now.
func (c *GramCounter) More(grams []uint64) (most int64) {
	seen, shift := c.seen, c.shift&63
	for _, g := range grams {
		i := g >> shift
		if seen[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		if s := c.slot(g); s.times > 0 {
			s.times++
			most = max(most, s.times)
		}
	}
	return most
}
