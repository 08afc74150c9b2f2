package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestLacks compares the groups that nobody is left for with trying every way in which humans
// may stand for groups.
func TestLacks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	people := []string{"a", "b", "c", "d"}
	for i := range 5000 {
		rule := machine.ApprovalRule{Each: make([]machine.Group, r.IntN(5))}
		for g := range rule.Each {
			for _, id := range people {
				if r.IntN(3) == 0 {
					rule.Each[g].Humans = append(rule.Each[g].Humans, id)
				}
			}
		}
		ids := slices.Clone(people)[:r.IntN(5)]
		r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		if got, want := len(rule.Each)-len(rule.Lacks(ids)), most(rule.Each, ids); got != want {
			t.Fatalf("case %d: %v stand for %d of %s, want %d", i, ids, got, fmt.Sprint(rule.Each), want)
		}
	}
}

// most returns for how many groups there can be another human each.
func most(groups []machine.Group, ids []string) (n int) {
	if len(groups) == 0 {
		return 0
	}
	n = most(groups[1:], ids)
	for i, id := range ids {
		if slices.Contains(groups[0].Humans, id) {
			n = max(n, 1+most(groups[1:], slices.Concat(ids[:i], ids[i+1:])))
		}
	}
	return n
}
