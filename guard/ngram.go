package guard

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Repetition of outputs is found by their n-grams: runs of ngram_size tokens.
//
// In mode any_ngram all of an output's n-grams count. In mode overlap an output
// stands for itself by a print: of every window of four n-grams the lowest hash
// (winnowing; Schleimer, Wilkerson, Aiken 2003), and of those at most the 128
// lowest. Two outputs that share a long run of words share the hashes in it.

const (
	winnowWindow = 4
	maxPrint     = 128
	printBits    = 256
)

// A print stands for one output.
type print struct {
	marks []uint32               // distinct, at most maxPrint, in no order
	seen  [printBits / 64]uint64 // one bit for each mark, by its low bits
}

// appendNgrams appends a hash of every run of n tokens.
func appendNgrams(dst []uint64, tokens []uint64, n int) []uint64 {
	if n < 1 || len(tokens) < n {
		return dst
	}
	var h, top uint64 = 0, 1
	for _, t := range tokens[:n-1] {
		h = h*prime1 + t
		top *= prime1
	}
	dst = slices.Grow(dst, len(tokens)-n+1)
	room := dst[len(dst) : len(dst)+len(tokens)-n+1]
	first := uint64(0) // what the token that leaves the run counts in it
	for i, t := range tokens[n-1:] {
		h = h*prime1 + (t - first)
		room[i] = h * prime2 // the upper half, which marks are made of, depends on all of h
		first = tokens[i] * (top * prime1)
	}
	return dst[:len(dst)+len(room)]
}

// take makes p the print of an output's n-grams.
func (p *print) take(grams []uint64) {
	p.winnow(grams)
	if len(p.marks) <= 8*maxPrint {
		p.distinct()
	} else {
		p.sorted()
	}
	if len(p.marks) > maxPrint {
		p.lowest()
	}
	p.index()
}

// index sets the bits of the marks.
func (p *print) index() {
	p.seen = [printBits / 64]uint64{}
	for _, m := range p.marks {
		p.seen[m%printBits/64] |= 1 << (m % 64)
	}
}

// mark is the part of an n-gram's hash that prints keep.
func mark(gram uint64) uint32 { return uint32(gram >> 32) }

// winnow sets the marks to the lowest of every window, where it changes.
func (p *print) winnow(grams []uint64) {
	p.marks = p.marks[:0]
	if len(grams) == 0 {
		return
	}
	p.marks = slices.Grow(p.marks, len(grams))
	if len(grams) < winnowWindow {
		lowest := slices.MinFunc(grams, func(a, b uint64) int { return cmp.Compare(mark(a), mark(b)) })
		p.marks = append(p.marks, mark(lowest))
		return
	}
	marks := p.marks[:len(grams)]
	c := mark(grams[2])
	ab, bc := min(mark(grams[0]), mark(grams[1])), min(mark(grams[1]), c) // the lowest of pairs
	count, last := 0, ^min(ab, c, mark(grams[3]))                         // not the first one
	for _, g := range grams[winnowWindow-1:] {
		d := mark(g)
		cd := min(c, d)
		m := min(ab, cd)
		marks[count] = m
		count += differ(m, last)
		ab, bc, c, last = bc, cd, d, m
	}
	p.marks = marks[:count]
}

// differ returns 1 if a and b differ, else 0, without a branch, for where nobody
// can predict it.
func differ(a, b uint32) int { return int((uint64(a^b) + math.MaxUint32) >> 32) }

// distinctBits is how many bits tell marks apart at a glance.
const distinctBits = 1 << 14

// distinct drops repeated marks. There are few, so those that have a bit of
// their own need not be looked for.
func (p *print) distinct() {
	var seen [distinctBits / 64]uint64
	kept := p.marks[:0]
	for _, m := range p.marks {
		word, bit := &seen[m>>6%(distinctBits/64)], uint64(1)<<(m%64)
		if *word&bit != 0 && slices.Contains(kept, m) {
			continue
		}
		*word |= bit
		kept = append(kept, m)
	}
	p.marks = kept
}

// sorted is distinct for many marks: it sorts the lower ones, if those are enough.
func (p *print) sorted() {
	limit, _ := p.quantile(4 * maxPrint)
	low := p.behind()
	for _, m := range p.marks {
		if m>>24 <= limit {
			low = append(low, m)
		}
	}
	if low = sortedSet(low); len(low) >= maxPrint {
		p.marks = append(p.marks[:0], low...)
		return
	}
	p.marks = sortedSet(p.marks)
}

func sortedSet(marks []uint32) []uint32 {
	slices.Sort(marks)
	return slices.Compact(marks)
}

// behind returns room for as many marks as there are, behind them.
func (p *print) behind() []uint32 {
	p.marks = slices.Grow(p.marks, len(p.marks))
	return p.marks[len(p.marks):]
}

// lowest keeps the maxPrint lowest of more marks than that. They are counted by
// their upper bits first, so that few have to be sorted.
func (p *print) lowest() {
	limit, below := p.quantile(maxPrint)
	kept, edge := p.split(limit)
	slices.Sort(edge)
	p.marks = append(kept, edge[:maxPrint-below]...)
}

// quantile returns the greatest number that the upper eight bits of at most n
// marks are below, and of how many they are. There are more than n marks.
func (p *print) quantile(n int) (limit uint32, below int) {
	var counts [256]uint16 // at most 65,535: longer outputs are cut before
	for _, m := range p.marks {
		counts[m>>24]++
	}
	for below+int(counts[limit]) <= n {
		below += int(counts[limit])
		limit++
	}
	return limit, below
}

// split moves the marks whose upper eight bits are below limit to the front. Those
// where they equal it come behind all of them.
func (p *print) split(limit uint32) (kept, edge []uint32) {
	edge = p.behind()
	below := 0
	for _, m := range p.marks {
		if m>>24 == limit {
			edge = append(edge, m)
		}
		p.marks[below] = m
		below += int((m>>24 - limit) >> 31) // without a branch
	}
	return p.marks[:below], edge
}

// within reports whether at least need of p's marks are in q.
func (p *print) within(q *print, need int) bool {
	missing := 0
	for i, w := range p.seen {
		missing += bits.OnesCount64(w &^ q.seen[i]) // each such bit is a mark that q lacks
	}
	if len(p.marks)-missing < need {
		return false
	}
	found := 0
	for _, m := range p.marks {
		if q.seen[m%printBits/64]&(1<<(m%64)) != 0 && slices.Contains(q.marks, m) {
			found++
		}
	}
	return found >= need
}
