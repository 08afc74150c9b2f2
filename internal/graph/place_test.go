package graph_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/internal/graph"
)

// cost is what spread makes as small as it can.
func cost(places, want, weight []int) int {
	sum := 0
	for i := range places {
		sum += weight[i] * (places[i] - want[i]) * (places[i] - want[i])
	}
	return sum
}

// Places keep their distance, and moving any run of them by one step, where
// that is allowed, makes nothing better.
func TestSpread(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(7)
		want, weight, apart := make([]int, n), make([]int, n), make([]int, n)
		for i := range n {
			want[i], weight[i], apart[i] = rng.IntN(200)-100, 1+rng.IntN(9), rng.IntN(40)
		}
		places := graph.Spread(want, weight, apart)
		if !legal(places, apart) {
			t.Fatalf("seed %d: places %v are less than %v apart", seed, places, apart)
		}
		best := cost(places, want, weight)
		for from := range n {
			for to := from + 1; to <= n; to++ {
				for _, by := range []int{-2, 2} { // places are rounded, so one step may be as good
					moved := append([]int{}, places...)
					for i := from; i < to; i++ {
						moved[i] += by
					}
					if c := cost(moved, want, weight); legal(moved, apart) && c < best {
						t.Fatalf("seed %d: %v costs %d, %v only %d", seed, places, best, moved, c)
					}
				}
			}
		}
	}
}

func legal(places, apart []int) bool {
	for i := 1; i < len(places); i++ {
		if places[i]-places[i-1] < apart[i] {
			return false
		}
	}
	return true
}

func TestInversions(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		list := make([]int, rng.IntN(20))
		want := 0
		for i := range list {
			list[i] = rng.IntN(10)
			for _, before := range list[:i] {
				if before > list[i] {
					want++
				}
			}
		}
		if got := graph.Inversions(list, 10); got != want {
			t.Fatalf("seed %d: %d inversions in %v, want %d", seed, got, list, want)
		}
	}
}
