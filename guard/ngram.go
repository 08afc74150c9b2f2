package guard

import (
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
	h, top := startOf(tokens[:n-1])
	dst = slices.Grow(dst, len(tokens)-n+1)
	room := dst[len(dst) : len(dst)+len(tokens)-n+1]
	first := uint64(0) // what the token that leaves the run counts in it
	for i, t := range tokens[n-1:] {
		h = h*prime1 + (t - first)
		room[i] = h * prime2 // the upper half, which marks are made of, depends on all of h
		first = tokens[i] * top
	}
	return dst[:len(dst)+len(room)]
}

// startOf hashes all but the last token of the first run, and returns what the
// first token of a run counts in the hash of the next one.
func startOf(tokens []uint64) (h, top uint64) {
	top = prime1
	for _, t := range tokens {
		h = h*prime1 + t
		top *= prime1
	}
	return h, top
}

// begin makes p the print of an output that nothing was read of yet.
func (p *print) begin() { p.marks = p.marks[:0] }

// end makes p the print of what was added.
func (p *print) end() {
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

// add adds the lowest mark of every window, where it changes. Marks are the upper
// halves of the hashes that appendNgrams returns; both are computed in one loop,
// since each alone waits for what it computed last.
func (p *print) add(tokens []uint64, n int) {
	count := len(tokens) - n + 1 // of n-grams
	if n < 1 || count < 1 {
		return
	}
	h, top := startOf(tokens[:n-1])
	in, out := tokens[n-1:], tokens[:count]
	p.marks = slices.Grow(p.marks, count)
	room := p.marks[len(p.marks) : len(p.marks)+count]
	ab, bc, c, last := uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(0)
	kept, first := 0, uint64(0)
	for i, t := range in[:len(out)] {
		h = h*prime1 + (t - first)
		first = out[i] * top
		d := uint32(h * prime2 >> 32)
		cd := min(c, d)
		m := min(ab, cd) // of the window that ends here
		room[kept] = m
		kept += differ(m, last)
		ab, bc, c, last = bc, cd, d, m
		if i == winnowWindow-1 { // the first whole window
			room[0], kept = m, 1
		}
	}
	if count < winnowWindow {
		room[0], kept = last, 1
	}
	p.marks = p.marks[:len(p.marks)+kept]
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

// lacking counts bits of p that q lacks: each is at least one mark that q lacks.
func (p *print) lacking(q *print) int {
	return bits.OnesCount64(p.seen[0]&^q.seen[0]) + bits.OnesCount64(p.seen[1]&^q.seen[1]) +
		bits.OnesCount64(p.seen[2]&^q.seen[2]) + bits.OnesCount64(p.seen[3]&^q.seen[3])
}

// shared counts the marks of p that are in q.
func (p *print) shared(q *print) (count int) {
	for _, m := range p.marks {
		if q.seen[m%printBits/64]&(1<<(m%64)) != 0 && slices.Contains(q.marks, m) {
			count++
		}
	}
	return count
}
