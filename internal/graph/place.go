package graph

import "slices"

// Where the cells stand across their layers. Each cell is pulled to the weighted mean
// of its neighbours, layer by layer, forth and back, at last from both sides at once;
// then the inner cells of long edges are moved onto one line where that is free.
//
// Within a layer the order and the gaps are fixed, so where the cells can stand is a
// least-squares problem with an order: minimise the sum of weight (place - want)^2 such
// that each place is at least its gap behind the one before. spread solves it exactly
// but for rounding, by pooling adjacent violators: cells that touch form a block, which
// stands at its weighted mean.
//
// Places are whole numbers of sixteenths of a pixel until fix, so every computer comes
// to the same.

// fine is the number of steps per pixel while places are worked out.
const fine = 16

// place finds where the cells stand across: in their order, far enough apart,
// and as near to their neighbours as that allows. Places start at 0.
func (l *layout) place() {
	for i, layer := range l.layers {
		l.settle(i, make([]int, len(layer)), nil)
	}
	for i := range 48 {
		both := i >= 32
		for k := range l.layers {
			if i%2 == 0 {
				l.pull(k, true, both)
			} else {
				l.pull(len(l.layers)-1-k, both, true)
			}
		}
	}
	for range 6 { // one that gives way makes room for others
		for _, chain := range l.chains {
			l.straighten(chain)
		}
	}
	l.fix()
}

// pull moves the cells of a layer towards their neighbours before, or after it.
func (l *layout) pull(layer int, before, after bool) {
	want := make([]int, len(l.layers[layer]))
	weight := make([]int, len(want))
	for i, c := range l.layers[layer] {
		cell := &l.cells[c]
		sum := 0
		add := func(links []link) {
			for _, k := range links {
				sum += k.weight * l.cells[k.cell].at
				weight[i] += k.weight
			}
		}
		if before {
			add(cell.prev)
		}
		if after {
			add(cell.next)
		}
		if weight[i] == 0 {
			want[i], weight[i] = cell.at, 1
		} else {
			want[i] = nearest(sum, weight[i])
		}
	}
	l.settle(layer, want, weight)
}

// settle puts the cells of a layer where they want to be, as far as their order
// and the gaps between them allow.
func (l *layout) settle(layer int, want, weight []int) {
	cells := l.layers[layer]
	apart := make([]int, len(cells))
	for i := 1; i < len(cells); i++ {
		a, b := &l.cells[cells[i-1]], &l.cells[cells[i]]
		apart[i] = (a.after + gap(a, b) + b.before) * fine
	}
	for i, at := range spread(want, weight, apart) {
		l.cells[cells[i]].at = at
	}
}

// spread returns places such that each is at least apart[i] after the one
// before it and the weighted sum of the squared distances to want is least, but
// for rounding. No weights means equal ones.
func spread(want, weight, apart []int) []int {
	type block struct{ sum, weight, from int } // cells that touch each other
	var blocks []block
	offset := 0
	offsets := make([]int, len(want))
	for i, w := range want {
		offset += apart[i]
		offsets[i] = offset
		b := block{w - offset, 1, i}
		if weight != nil {
			b.sum, b.weight = b.sum*weight[i], weight[i]
		}
		for last := len(blocks) - 1; last >= 0 && blocks[last].sum*b.weight >= b.sum*blocks[last].weight; last-- {
			b = block{b.sum + blocks[last].sum, b.weight + blocks[last].weight, blocks[last].from}
			blocks = blocks[:last]
		}
		blocks = append(blocks, b)
	}
	places := make([]int, len(want))
	for i, b := range blocks {
		end := len(want)
		if i+1 < len(blocks) {
			end = blocks[i+1].from
		}
		for j := b.from; j < end; j++ {
			places[j] = nearest(b.sum, b.weight) + offsets[j]
		}
	}
	return places
}

// nearest returns a/b, for a positive b, rounded to the nearest.
func nearest(a, b int) int {
	if a < 0 {
		return -((b/2 - a) / b)
	}
	return (a + b/2) / b
}

// straighten moves the inner cells of a chain onto one line, or else those
// before and those after its label.
func (l *layout) straighten(chain []int) {
	if len(chain) == 0 {
		return
	}
	last := len(chain) - 1
	if l.line(chain[1:last], chain[0], chain[last]) {
		return
	}
	label := slices.IndexFunc(chain, func(c int) bool { return l.cells[c].label })
	l.line(chain[1:label], chain[0])
	l.line(chain[label+1:last], chain[last])
}

// line moves cells onto one line if there is one that is free in every layer,
// and reports whether there is: the nearest to where they are, or to where it
// runs straight into one of the states at its ends.
func (l *layout) line(inner []int, ends ...int) bool {
	if len(inner) == 0 {
		return true
	}
	low, high, sum := -1<<40, 1<<40, 0
	for _, c := range inner {
		from, to := l.free(c)
		low, high = max(low, from), min(high, to)
		sum += l.cells[c].at
	}
	if low > high {
		return false
	}
	at := nearest(sum, len(inner))
	for _, end := range ends {
		c := &l.cells[end]
		_, across := l.turn(c.box)
		side := (across/2 - portCorner) * fine
		if into := min(max(at, c.at-side), c.at+side); max(into-at, at-into) < 2*portCorner*fine {
			at = into
		}
	}
	for _, c := range inner {
		l.cells[c].at = min(max(at, low), high)
	}
	return true
}

// free returns where a cell can stand between its neighbours in its layer.
func (l *layout) free(c int) (low, high int) {
	low, high = -1<<40, 1<<40
	cell := &l.cells[c]
	layer := l.layers[cell.layer]
	if cell.pos > 0 {
		a := &l.cells[layer[cell.pos-1]]
		low = a.at + (a.after+gap(a, cell)+cell.before)*fine
	}
	if cell.pos+1 < len(layer) {
		b := &l.cells[layer[cell.pos+1]]
		high = b.at - (cell.after+gap(cell, b)+b.before)*fine
	}
	return low, high
}

// fix turns places into pixels from 0.
func (l *layout) fix() {
	var first []int
	for _, c := range l.cells {
		first = append(first, c.at-c.before*fine)
	}
	origin := slices.Min(first)
	for i := range l.cells {
		l.cells[i].at = (l.cells[i].at - origin + fine/2) / fine
	}
}
