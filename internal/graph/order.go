package graph

import (
	"cmp"
	"slices"
)

// The order of the cells within each layer, such that few edges cross. Each sweep goes
// through the layers, forth and back in turns, and orders each by the mean place of the
// neighbours before, or after, it (the barycentre method); then neighbours are
// exchanged as long as that saves crossings. The best of up to 24 sweeps is kept.
// Crossings between two layers are the pairs of edges whose ends stand in falling
// order, which a Fenwick tree counts in n log n.
//
// Sorting is stable and means are whole numbers, so ties stay as written. Parts of the
// machine that are not connected never mix.

// sweeps is how often the order within the layers is worked over.
const sweeps = 24

// arrange orders the cells of every layer so that few edges cross. Cells of
// unconnected parts stay apart, and what makes no difference stays as written.
func (l *layout) arrange() {
	l.parts()
	for i := range l.layers {
		l.sort(i, true)
	}
	best, fewest := l.copyLayers(), l.crossings()
	for i := 0; i < sweeps && fewest > 0; i++ {
		for k := range l.layers {
			if i%2 == 0 {
				l.sort(k, true)
			} else {
				l.sort(len(l.layers)-1-k, false)
			}
		}
		l.swap()
		if n := l.crossings(); n < fewest {
			best, fewest = l.copyLayers(), n
		}
	}
	l.layers = best
	l.number()
}

func (l *layout) copyLayers() [][]int {
	list := make([][]int, len(l.layers))
	for i := range list {
		list[i] = slices.Clone(l.layers[i])
	}
	return list
}

// number notes the place of every cell in its layer.
func (l *layout) number() {
	for _, layer := range l.layers {
		for pos, c := range layer {
			l.cells[c].pos = pos
		}
	}
}

// parts numbers the connected parts: that of the initial state is the first.
func (l *layout) parts() {
	part := 0
	for _, root := range l.roots() {
		if l.cells[root].part > 0 {
			continue
		}
		part++
		l.cells[root].part = part
		for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
			c := &l.cells[queue[0]]
			for _, k := range slices.Concat(c.prev, c.next) {
				if l.cells[k.cell].part == 0 {
					l.cells[k.cell].part = part
					queue = append(queue, k.cell)
				}
			}
		}
	}
}

// sort orders a layer by the mean place of the neighbours before, or after, it.
func (l *layout) sort(layer int, before bool) {
	type place struct{ cell, part, mean int }
	list := make([]place, len(l.layers[layer]))
	for pos, c := range l.layers[layer] {
		links := l.cells[c].next
		if before {
			links = l.cells[c].prev
		}
		mean, sum := pos*1024, 0
		for _, k := range links {
			sum += l.cells[k.cell].pos
		}
		if len(links) > 0 {
			mean = sum * 1024 / len(links)
		}
		list[pos] = place{c, l.cells[c].part, mean}
	}
	slices.SortStableFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.mean, b.mean))
	})
	for pos, p := range list {
		l.layers[layer][pos] = p.cell
		l.cells[p.cell].pos = pos
	}
}

// swap exchanges neighbours in a layer as long as that saves crossings.
func (l *layout) swap() {
	for saved, pass := true, 0; saved && pass < 4; pass++ {
		saved = false
		for _, layer := range l.layers {
			for i := 1; i < len(layer); i++ {
				a, b := &l.cells[layer[i-1]], &l.cells[layer[i]]
				if a.part != b.part {
					continue
				}
				now := l.between(a.prev, b.prev) + l.between(a.next, b.next)
				then := l.between(b.prev, a.prev) + l.between(b.next, a.next)
				if then < now {
					layer[i-1], layer[i] = layer[i], layer[i-1]
					a.pos, b.pos = i, i-1
					saved = true
				}
			}
		}
	}
}

// between counts the crossings of the links of a cell with those of the one
// after it.
func (l *layout) between(first, second []link) int {
	n := 0
	for _, a := range first {
		for _, b := range second {
			if l.cells[a.cell].pos > l.cells[b.cell].pos {
				n++
			}
		}
	}
	return n
}

// crossings counts all crossings.
func (l *layout) crossings() int {
	n := 0
	for i := 1; i < len(l.layers); i++ {
		var ends []int
		for _, c := range l.layers[i-1] {
			from := len(ends)
			for _, k := range l.cells[c].next {
				ends = append(ends, l.cells[k.cell].pos)
			}
			slices.Sort(ends[from:])
		}
		n += inversions(ends, len(l.layers[i]))
	}
	return n
}

// inversions counts the pairs of values below n that stand in falling order.
func inversions(list []int, n int) int {
	tree := make([]int, n+1) // sums of how often values occurred so far, as a Fenwick tree
	total := 0
	for seen, v := range list {
		notAbove := 0
		for i := v + 1; i > 0; i -= i & -i {
			notAbove += tree[i]
		}
		total += seen - notAbove
		for i := v + 1; i <= n; i += i & -i {
			tree[i]++
		}
	}
	return total
}
