package guard

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/verdict"
)

// component finds a task that wanders between a few states without learning
// anything, in whatever order: cycle sees only orders that repeat. The newest
// visits, as many for each of their states as a cycle has repeats, know the same,
// come back to each state, and lead from the last of them to the first again: so
// the states are strongly connected by what the task did itself.
func (k *checking) component() {
	c := k.c.Loop.Cycle
	var states [maxPeriod]hash
	var counts [maxPeriod]int64
	distinct := int64(0)
	now := visit{k.look.state, k.look.output.context}
	for n := int64(1); n <= min(int64(k.m.visits.len())+1, c.MaxPeriod*c.Repeats); n++ {
		v := k.newest(n, now)
		if v.Context != now.Context {
			return // there was news
		}
		i := slices.Index(states[:distinct], v.State)
		if i < 0 {
			if distinct == c.MaxPeriod {
				return
			}
			i = int(distinct)
			states[i] = v.State
			distinct++
		}
		if counts[i]++; distinct > 1 && n == distinct*c.Repeats && k.connected(n, now, states[:distinct], counts[:distinct]) {
			class := verdict.Warn
			if now.Context != 0 {
				class = verdict.Abort // it is known that nothing was learnt
			}
			r := k.loop("loop_cycle", class, fmt.Sprintf("the last %d states are the same %d again and again, without news", n, distinct), nil)
			r.Limit, r.Seen = fmt.Sprint(c.Repeats), fmt.Sprint(c.Repeats)
			return
		}
	}
}

// maxPeriod is the greatest max_period of a cycle.
const maxPeriod = 8

// newest returns the n-th newest visit, from 1: that is the one being judged.
func (k *checking) newest(n int64, now visit) visit {
	if n == 1 {
		return now
	}
	return *k.m.visits.at(k.m.visits.len() + 1 - int(n))
}

// connected reports whether the newest n visits come to each of their states more
// than once, and whether what follows each state in them leads from the newest to
// the oldest: then every state leads to every other.
func (k *checking) connected(n int64, now visit, states []hash, counts []int64) bool {
	if slices.Min(counts) < 2 {
		return false
	}
	oldest := k.newest(n, now).State
	var reached [maxPeriod]bool
	reached[0] = true // the newest is the first of states
	for grown := true; grown; {
		grown = false
		for i := n; i > 1; i-- {
			from, to := k.newest(i, now).State, k.newest(i-1, now).State
			if a, b := slices.Index(states, from), slices.Index(states, to); reached[a] && !reached[b] {
				reached[b], grown = true, true
			}
		}
	}
	return reached[slices.Index(states, oldest)]
}
