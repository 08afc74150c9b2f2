package text

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

// A Print stands for one output.
type Print struct {
	Marks []uint32               // distinct, at most maxPrint, in no order
	Seen  [printBits / 64]uint64 // one bit for each mark, by its low bits
}

// AppendNgrams appends a hash of every run of n tokens.
func AppendNgrams(dst []uint64, tokens []uint64, n int) []uint64 {
	if n < 1 || len(tokens) < n {
		return dst
	}
	h, top := startOf(tokens[:n-1])
	dst = slices.Grow(dst, len(tokens)-n+1)
	room := dst[len(dst) : len(dst)+len(tokens)-n+1]
	first := uint64(0) // what the token that leaves the run counts in it
	for i, t := range tokens[n-1:] {
		h = h*Prime1 + (t - first)
		room[i] = h * Prime2 // the upper half, which marks are made of, depends on all of h
		first = tokens[i] * top
	}
	return dst[:len(dst)+len(room)]
}

// startOf hashes all but the last token of the first run, and returns what the
// first token of a run counts in the hash of the next one.
func startOf(tokens []uint64) (h, top uint64) {
	top = Prime1
	for _, t := range tokens {
		h = h*Prime1 + t
		top *= Prime1
	}
	return h, top
}

// Begin makes p the print of an output that nothing was read of yet.
func (p *Print) Begin() { p.Marks = p.Marks[:0] }

// End makes p the print of what was added.
func (p *Print) End() {
	if len(p.Marks) <= 8*maxPrint {
		p.distinct()
	} else {
		p.sorted()
	}
	if len(p.Marks) > maxPrint {
		p.lowest()
	}
	p.Index()
}

// Index sets the bits of the marks.
func (p *Print) Index() {
	p.Seen = [printBits / 64]uint64{}
	for _, m := range p.Marks {
		p.Seen[m%printBits/64] |= 1 << (m % 64)
	}
}

// Add adds the lowest mark of every window, where it changes. Marks are the upper
// halves of the hashes that appendNgrams returns; both are computed in one loop,
// since each alone waits for what it computed last.
func (p *Print) Add(tokens []uint64, n int) {
	count := len(tokens) - n + 1 // of n-grams
	if n < 1 || count < 1 {
		return
	}
	h, top := startOf(tokens[:n-1])
	in, out := tokens[n-1:], tokens[:count]
	p.Marks = slices.Grow(p.Marks, count)
	room := p.Marks[len(p.Marks) : len(p.Marks)+count]
	ab, bc, c, last := uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(0)
	kept, first := 0, uint64(0)
	for i, t := range in[:len(out)] {
		h = h*Prime1 + (t - first)
		first = out[i] * top
		d := uint32(h * Prime2 >> 32)
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
	p.Marks = p.Marks[:len(p.Marks)+kept]
}

// differ returns 1 if a and b differ, else 0, without a branch, for where nobody
// can predict it.
func differ(a, b uint32) int { return int((uint64(a^b) + math.MaxUint32) >> 32) }

// distinctBits is how many bits tell marks apart at a glance.
const distinctBits = 1 << 14

// distinct drops repeated marks. There are few, so those that have a bit of
// their own need not be looked for.
func (p *Print) distinct() {
	var seen [distinctBits / 64]uint64
	kept := p.Marks[:0]
	for _, m := range p.Marks {
		word, bit := &seen[m>>6%(distinctBits/64)], uint64(1)<<(m%64)
		if *word&bit != 0 && slices.Contains(kept, m) {
			continue
		}
		*word |= bit
		kept = append(kept, m)
	}
	p.Marks = kept
}

// sorted is distinct for many marks: it sorts the lower ones, if those are enough.
func (p *Print) sorted() {
	limit, _ := p.quantile(4 * maxPrint)
	low := p.behind()
	for _, m := range p.Marks {
		if m>>24 <= limit {
			low = append(low, m)
		}
	}
	if low = sortedSet(low); len(low) >= maxPrint {
		p.Marks = append(p.Marks[:0], low...)
		return
	}
	p.Marks = sortedSet(p.Marks)
}

func sortedSet(marks []uint32) []uint32 {
	slices.Sort(marks)
	return slices.Compact(marks)
}

// behind returns room for as many marks as there are, behind them.
func (p *Print) behind() []uint32 {
	p.Marks = slices.Grow(p.Marks, len(p.Marks))
	return p.Marks[len(p.Marks):]
}

// lowest keeps the maxPrint lowest of more marks than that. They are counted by
// their upper bits first, so that few have to be sorted.
func (p *Print) lowest() {
	limit, below := p.quantile(maxPrint)
	kept, edge := p.split(limit)
	slices.Sort(edge)
	p.Marks = append(kept, edge[:maxPrint-below]...)
}

// quantile returns the greatest number that the upper eight bits of at most n
// marks are below, and of how many they are. There are more than n marks.
func (p *Print) quantile(n int) (limit uint32, below int) {
	var counts [256]uint16 // at most 65,535: longer outputs are cut before
	for _, m := range p.Marks {
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
func (p *Print) split(limit uint32) (kept, edge []uint32) {
	edge = p.behind()
	below := 0
	for _, m := range p.Marks {
		if m>>24 == limit {
			edge = append(edge, m)
		}
		p.Marks[below] = m
		below += int((m>>24 - limit) >> 31) // without a branch
	}
	return p.Marks[:below], edge
}

// Lacking counts bits of p that q lacks: each is at least one mark that q lacks.
func (p *Print) Lacking(q *Print) int {
	return bits.OnesCount64(p.Seen[0]&^q.Seen[0]) + bits.OnesCount64(p.Seen[1]&^q.Seen[1]) +
		bits.OnesCount64(p.Seen[2]&^q.Seen[2]) + bits.OnesCount64(p.Seen[3]&^q.Seen[3])
}

// Shared counts the marks of p that are in q.
func (p *Print) Shared(q *Print) (count int) {
	for _, m := range p.Marks {
		if q.Seen[m%printBits/64]&(1<<(m%64)) != 0 && slices.Contains(q.Marks, m) {
			count++
		}
	}
	return count
}
