package trial_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/internal/lab/trial"
	"github.com/dialai/dialai/internal/trust"
)

// A group is a number of simulated workers that are alike.
type group struct {
	size  int
	right float64   // probability of the truth, if bias is nil
	copy  float64   // probability of saying what the whole group says
	bias  []float64 // probability of each answer whatever the truth, if it is a spammer
	rate  float64   // how much likelier than others to be asked, where not everybody is; 0 is 1
}

// A panel makes data. Per question each group draws one common fate, which each of
// its members shares with probability copy.
type panel struct {
	questions int
	priors    []float64
	answers   int // per question; 0 means everybody
	states    int
	hard      float64 // share of questions on which everyone but spammers guesses
	groups    []group
}

func choose(d *trust.Draw, p []float64) int {
	u := d.Float()
	for i, v := range p {
		if u -= v; u < 0 {
			return i
		}
	}
	return len(p) - 1
}

func (g group) answer(d *trust.Draw, truth, k int, u float64) int {
	if g.bias != nil {
		return choose(d, g.bias)
	}
	if u < g.right {
		return truth
	}
	return (truth + 1 + int(d.Float()*float64(k-1))) % k
}

func (p panel) data(seed string) *trial.Data {
	d := trust.NewDraw("panel", seed)
	k := len(p.priors)
	data := &trial.Data{}
	for i := range k {
		data.Classes = append(data.Classes, fmt.Sprintf("c%d", i))
	}
	for i := range max(1, p.states) {
		data.States = append(data.States, fmt.Sprintf("s%d", i))
	}
	var of []group
	var firsts []int
	for _, g := range p.groups {
		firsts = append(firsts, len(of))
		for range g.size {
			data.Workers = append(data.Workers, trial.Worker{ID: fmt.Sprintf("w%03d", len(of)), Cost: 1})
			of = append(of, g)
		}
	}
	for i := range p.questions {
		q := trial.Question{ID: fmt.Sprint(i), Truth: choose(d, p.priors), State: i % len(data.States)}
		hard := d.Float() < p.hard
		fates := make([]int, len(p.groups))
		for j, g := range p.groups {
			fates[j] = g.answer(d, q.Truth, k, d.Float())
		}
		asked := len(of)
		if p.answers > 0 {
			asked = p.answers
		}
		for _, w := range draw(d, of)[:asked] {
			g := of[w]
			j := len(firsts) - 1
			for firsts[j] > w {
				j--
			}
			class := fates[j]
			if hard && g.bias == nil {
				class = int(d.Float() * float64(k))
			} else if d.Float() >= g.copy {
				class = g.answer(d, q.Truth, k, d.Float())
			}
			q.Answers = append(q.Answers, trial.Answer{Worker: w, Class: class})
		}
		data.Questions = append(data.Questions, q)
	}
	return data
}

// draw returns the workers in a random order, those of a high rate rather at its beginning.
func draw(d *trust.Draw, of []group) []int {
	order := d.Perm(len(of))
	if !slices.ContainsFunc(of, func(g group) bool { return g.rate > 0 }) {
		return order
	}
	wait := make([]float64, len(of))
	for i, g := range of {
		wait[i] = -math.Log(1-d.Float()) / cmp.Or(g.rate, 1)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(wait[a], wait[b]) })
	return order
}

func sortedKeys(m map[string]any) string { return fmt.Sprint(slices.Sorted(maps.Keys(m))) }
