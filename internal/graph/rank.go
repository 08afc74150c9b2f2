package graph

import "slices"

// From a machine to layers, the first steps of a layered drawing (Sugiyama, Tagawa and
// Toda 1981). acyclic says which edges are drawn against the flow: of every cycle those
// that go back in the order in which the states are written, or in the order of a
// breadth-first or depth-first search where that is fewer; always those that lead to
// the initial state. ranks then gives each state the length of the longest way to it,
// and moves states that have more edges ahead than behind as near to those as they may
// go.
//
// After that every edge that does not go back leads to a higher rank. Everything is in
// the order in which the file is written, so the same machine gives the same picture.

// A digraph is the shape of a machine: states are numbers, edges pairs.
type digraph struct {
	n       int
	initial int
	edges   []edge
	out     [][]int // edges by their source
}

func newDigraph(n, initial int, edges []edge) *digraph {
	g := &digraph{n: n, initial: initial, edges: edges, out: make([][]int, n)}
	for i, e := range edges {
		g.out[e.from] = append(g.out[e.from], i)
	}
	return g
}

// acyclic says which edges go back. The others form no cycle, and nothing leads
// to the initial state. Within a cycle the edges against the written order of
// states go back, or those against the order of a search where that is fewer:
// an author usually writes the states as the process goes.
func (g *digraph) acyclic() []bool {
	leads := g.reach()
	written := make([]int, g.n)
	for i := range written {
		written[i] = i
	}
	best := g.against(written, leads)
	for _, order := range [][]int{g.breadthFirst(), g.depthFirst()} {
		if back := g.against(order, leads); count(back) < count(best) {
			best = back
		}
	}
	return best
}

func count(set []bool) int {
	n := 0
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// against returns the edges of cycles that go back in order, and all that lead
// to the initial state.
func (g *digraph) against(order []int, leads [][]bool) []bool {
	at := make([]int, g.n)
	for i, v := range order {
		at[v] = i
	}
	back := make([]bool, len(g.edges))
	for i, e := range g.edges {
		back[i] = e.from != e.to && (e.to == g.initial || leads[e.to][e.from] && at[e.from] > at[e.to])
	}
	return back
}

func (g *digraph) breadthFirst() []int {
	seen := make([]bool, g.n)
	var order []int
	for _, root := range g.roots() {
		if seen[root] {
			continue
		}
		seen[root] = true
		order = append(order, root)
		for next := len(order) - 1; next < len(order); next++ {
			for _, i := range g.out[order[next]] {
				if to := g.edges[i].to; !seen[to] {
					seen[to] = true
					order = append(order, to)
				}
			}
		}
	}
	return order
}

// depthFirst returns the states so that an edge points back only if it closes a
// cycle of the search.
func (g *digraph) depthFirst() []int {
	seen := make([]bool, g.n)
	var order []int
	var visit func(v int)
	visit = func(v int) {
		seen[v] = true
		for _, i := range slices.Backward(g.out[v]) {
			if to := g.edges[i].to; !seen[to] {
				visit(to)
			}
		}
		order = append(order, v)
	}
	for _, root := range g.roots() {
		if !seen[root] {
			visit(root)
		}
	}
	slices.Reverse(order)
	return order
}

// roots returns all states, the initial one first.
func (g *digraph) roots() []int {
	list := []int{g.initial}
	for v := range g.n {
		if v != g.initial {
			list = append(list, v)
		}
	}
	return list
}

// reach says of every two states whether the first leads to the second.
func (g *digraph) reach() [][]bool {
	leads := make([][]bool, g.n)
	for from := range leads {
		leads[from] = make([]bool, g.n)
		for open := []int{from}; len(open) > 0; {
			v := open[len(open)-1]
			open = open[:len(open)-1]
			for _, i := range g.out[v] {
				if to := g.edges[i].to; !leads[from][to] {
					leads[from][to] = true
					open = append(open, to)
				}
			}
		}
	}
	return leads
}

// ranks gives every state a number such that every edge leads from a lower to a
// higher one, or back if back says so; self-loops apart.
func (g *digraph) ranks(back []bool) []int {
	next, prev := make([][]int, g.n), make([][]int, g.n)
	for i, e := range g.edges {
		from, to := e.from, e.to
		if back[i] {
			from, to = to, from
		}
		if from != to {
			next[from] = append(next[from], to)
			prev[to] = append(prev[to], from)
		}
	}
	order := sorted(next, prev)
	rank := make([]int, g.n)
	for _, v := range order {
		for _, p := range prev[v] {
			rank[v] = max(rank[v], rank[p]+1)
		}
	}
	for _, v := range slices.Backward(order) { // shorten edges where that shortens more than it lengthens
		if v == g.initial || len(next[v]) <= len(prev[v]) {
			continue
		}
		closest := rank[next[v][0]]
		for _, to := range next[v] {
			closest = min(closest, rank[to])
		}
		rank[v] = closest - 1
	}
	return rank
}

// sorted returns the states of an acyclic graph, sources first.
func sorted(next, prev [][]int) []int {
	open := make([]int, len(next))
	var order []int
	for v := range next {
		if open[v] = len(prev[v]); open[v] == 0 {
			order = append(order, v)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, to := range next[order[i]] {
			if open[to]--; open[to] == 0 {
				order = append(order, to)
			}
		}
	}
	return order
}
