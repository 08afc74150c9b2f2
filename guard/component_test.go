package guard_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// wandering judges a walk through states, each step as it comes, and returns at
// which of them a cycle was found and how severe the last finding was. Each state
// is a letter; an upper case one brings news.
func wandering(t *testing.T, section, walk string, meta string) (found []int, worst verdict.Status) {
	t.Helper()
	c, problems := guard.Parse([]byte(section), false)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var s guard.State
	for i, at := range []byte(walk) {
		step := verdict.Step{Transition: "go", State: string(at | 0x20), FromState: "x", SessionMeta: json.RawMessage(meta)}
		if at < 'a' {
			step.MetaJSON = json.RawMessage(fmt.Sprint(i))
		}
		for _, r := range c.Check(s, step).Reasons {
			if r.Code == "loop_cycle" {
				found, worst = append(found, i), r.Class
			}
		}
		s = s.Advance(c, step)
	}
	return found, worst
}

const many = `{"loop_detection":{"max_state_visits":99}}`

// TestComponents: whoever wanders between a few states without news is in a loop,
// in whatever order; who learns something, sees new states, or has left some for
// good, is not.
func TestComponents(t *testing.T) {
	for _, c := range []struct {
		walk, meta string
		at         int // the first finding; -1 if there is none
		class      verdict.Status
	}{
		{"abcbacbca", `{"k":1}`, 8, verdict.Abort},
		{"abcbacbca", ``, 8, verdict.Warn}, // nobody knows what was learnt
		{"abcbacbc", `{"k":1}`, -1, 0},
		{"xyzabcbacbca", `{"k":1}`, 11, verdict.Abort},
		{"abcbaCbca", `{"k":1}`, -1, 0}, // news on the way
		{"abcbaCbcacbabcab", `{"k":1}`, 13, verdict.Abort},
		{"aaaabbbb", `{"k":1}`, -1, 0}, // it never came back
		{"aaabbb", `{"k":1}`, -1, 0},
		{"abbabaab", `{"k":1}`, 5, verdict.Abort},
		{"abcdefghiabcdefghibcadefghiabc", `{"k":1}`, -1, 0}, // more states than a cycle may have
		{"aabaaaaaabaa", `{"k":1}`, -1, 0},                   // b is too rare to be part of it
	} {
		found, class := wandering(t, many, c.walk, c.meta)
		first := -1
		if len(found) > 0 {
			first = found[0]
		}
		if first != c.at || class != c.class {
			t.Errorf("%s with %q: found at %v, %s; want at %d, %s", c.walk, c.meta, found, class, c.at, c.class)
		}
	}
}

// slowly says what component and cycle look for, in as many words as it takes.
func slowly(walk string) bool {
	for period := 2; period <= 8; period++ {
		if tail := 3 * period; len(walk) >= tail {
			w := walk[len(walk)-tail:]
			if w[:period] == w[period:2*period] && w[period:2*period] == w[2*period:] && slices.Max([]byte(w)) != slices.Min([]byte(w)) {
				return true
			}
		}
	}
	for states := 2; states <= 8 && 3*states <= len(walk); states++ {
		w := walk[len(walk)-3*states:]
		visits, next := map[byte]int{}, map[byte]map[byte]bool{}
		for i := range w {
			visits[w[i]]++
			if next[w[i]] == nil {
				next[w[i]] = map[byte]bool{w[i]: true}
			}
			if i > 0 {
				next[w[i-1]][w[i]] = true
			}
		}
		for range states { // Warshall
			for a := range next {
				for b := range next[a] {
					for c := range next[b] {
						next[a][c] = true
					}
				}
			}
		}
		all := len(visits) == states
		for a := range visits {
			all = all && visits[a] > 1 && len(next[a]) == states
		}
		if all {
			return true
		}
	}
	return false
}

// TestComponentsSlowly compares random walks with a slow second version.
func TestComponentsSlowly(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 300 {
		walk := make([]byte, 1+rng.IntN(30))
		letters := 2 + rng.IntN(4)
		for i := range walk {
			walk[i] = 'a' + byte(rng.IntN(letters))
		}
		found, _ := wandering(t, many, string(walk), `1`)
		for i := range walk {
			one := i > 0 && walk[i] == walk[i-1] && i > 1 && walk[i] == walk[i-2]
			if want := slowly(string(walk[:i+1])); slices.Contains(found, i) != want && !one {
				t.Fatalf("seed %d, %s: at %d found %t, want %t", seed, walk, i, !want, want)
			}
		}
	}
}
