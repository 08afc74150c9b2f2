package guard

import (
	"cmp"
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
	printBits    = 512
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
	for range n {
		top *= prime1
	}
	for i, t := range tokens {
		h = h*prime1 + t
		if i >= n {
			h -= tokens[i-n] * top
		}
		if i >= n-1 {
			dst = append(dst, h*prime2) // the upper half, which marks are made of, depends on all of h
		}
	}
	return dst
}

// take makes p the print of an output's n-grams.
func (p *print) take(grams []uint64) {
	p.winnow(grams)
	p.distinct()
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
	if len(grams) == 0 {
		p.marks = p.marks[:0]
		return
	}
	p.marks = slices.Grow(p.marks[:0], len(grams))
	if len(grams) < winnowWindow {
		lowest := slices.MinFunc(grams, func(a, b uint64) int { return cmp.Compare(mark(a), mark(b)) })
		p.marks = append(p.marks, mark(lowest))
		return
	}
	marks := p.marks[:len(grams)]
	a, b, c := mark(grams[0]), mark(grams[1]), mark(grams[2])
	count, last := 0, ^min(a, b, c, mark(grams[3])) // not the first one
	for _, g := range grams[winnowWindow-1:] {
		d := mark(g)
		m := min(a, b, c, d)
		marks[count] = m
		news := 0 // without a branch, since nobody can predict it
		if m != last {
			news = 1
		}
		count += news
		last = m
		a, b, c = b, c, d
	}
	p.marks = marks[:count]
}

// distinct drops repeated marks. There are few, so those that have a bit of
// their own in a map of 4096 need not be looked for.
func (p *print) distinct() {
	var seen [64]uint64
	kept := p.marks[:0]
	for _, m := range p.marks {
		word, bit := &seen[m>>6%64], uint64(1)<<(m%64)
		if *word&bit != 0 && slices.Contains(kept, m) {
			continue
		}
		*word |= bit
		kept = append(kept, m)
	}
	p.marks = kept
}

// lowest keeps the maxPrint lowest marks. They are counted by their upper bits
// first, so that few have to be sorted.
func (p *print) lowest() {
	var counts [1024]uint16
	for _, m := range p.marks {
		counts[m>>22]++ // at most 65,535: longer outputs are cut before
	}
	limit, below := uint32(0), 0
	for below+int(counts[limit]) <= maxPrint {
		below += int(counts[limit])
		limit++
	}
	var room [64]uint32
	edge, kept := room[:0], p.marks[:0]
	for _, m := range p.marks {
		switch {
		case m>>22 < limit:
			kept = append(kept, m)
		case m>>22 == limit:
			edge = append(edge, m)
		}
	}
	slices.Sort(edge)
	p.marks = append(kept, edge[:maxPrint-below]...)
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
