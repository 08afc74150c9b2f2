package sim_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Names of variables that choose what is played.
const (
	seedsVariable = "DIALAI_SIM_SEEDS" // how many seeds
	seedVariable  = "DIALAI_SIM_SEED"  // one seed, with its trace
	firstVariable = "DIALAI_SIM_FIRST" // the first of the seeds
)

func number(t *testing.T, name string, or uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return or
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n
}

// usual is how a seed is played: every tenth on a file.
func usual(seed uint64) settings {
	return settings{seed: seed, steps: 150, faults: 6, onDisk: seed%10 == 0}
}

// TestSim plays a number of seeds, from 1 on, and checks every invariant after every
// step. DIALAI_SIM_SEED plays one and prints what happens.
func TestSim(t *testing.T) {
	if seed := number(t, seedVariable, 0); seed != 0 {
		r := play(t, usual(seed))
		t.Logf("%s\n%v", r, r.stats)
		report(t, usual(seed), r)
		return
	}
	seeds := number(t, seedsVariable, defaultSeeds)
	first := number(t, firstVariable, 1)
	var next atomic.Uint64
	var mu sync.Mutex
	stats, found := map[string]int{}, 0
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1); n <= seeds; n = next.Add(1) {
					seed := first + n - 1
					r := play(t, usual(seed))
					if r.failed == nil && seed%10 == 0 {
						if again := play(t, usual(seed)); again.hash != r.hash {
							t.Errorf("seed %d is not played twice alike:\n%s", seed, differ(r, again))
						}
					}
					mu.Lock()
					for what, n := range r.stats {
						stats[what] += n
					}
					if r.failed != nil {
						found++
					}
					few := found <= 3
					mu.Unlock()
					if r.failed != nil && few {
						report(t, usual(seed), r)
					} else if r.failed != nil {
						t.Errorf("seed %d: %s", seed, r.failed.invariant)
					}
				}
			})
		}
	})
	for what := range stats {
		if strings.HasPrefix(what, "sent by ") {
			delete(stats, what)
		}
	}
	t.Logf("%d seeds from %d on: %v", seeds, first, stats)
}

// report prints a run that failed, shrunk.
func report(t *testing.T, s settings, r result) {
	t.Helper()
	if r.failed == nil {
		return
	}
	small := shrink(t, s, r)
	t.Errorf("seed %d: %s does not hold: %v\nshrunk from %d choices to %d:\n%s\nagain: DIALAI_SIM_SEED=%d go test ./sim -run 'TestSim$' -v",
		s.seed, small.failed.invariant, small.failed.err, len(r.tape), len(small.tape), small, s.seed)
}

// differ returns where two runs part.
func differ(a, b result) string {
	for i := range a.trace {
		if i >= len(b.trace) || a.trace[i] != b.trace[i] {
			return fmt.Sprintf("line %d was\n%s\nand then\n%s", i, a.trace[i], at(b.trace, i))
		}
	}
	return "the traces are alike, the logs are not"
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
