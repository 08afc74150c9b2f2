package trust

import (
	"slices"

	"github.com/dialai/dialai/exact"
)

// Asked returns which votes of a question would have been asked for, in waves, if
// everyone's answer is known and cost says what each costs, by vote: their indices
// in the order of asking, and why asking stopped. Humans' votes are not asked for,
// they are there from the start, as are those of who costs nothing from the first
// wave on. Judging the question with the votes of humans and those asked, and
// Partial set unless they are all, is what would have been decided.
func (l *Ledger) Asked(q Question, cost []exact.Money, a Asking) (asked []int, stop Stop) {
	all := q.Votes
	var left []int
	q.Votes = nil
	for i, v := range all {
		if v.Human {
			q.Votes = append(q.Votes, v)
		} else {
			left = append(left, i)
		}
	}
	for {
		open := make([]Open, len(left))
		for i, v := range left {
			open[i] = Open{SpecialistID: all[v].SpecialistID, Version: all[v].Version, Model: all[v].Model, OptionOrder: all[v].OptionOrder}
			if v < len(cost) {
				open[i].Cost = cost[v]
			}
		}
		w := l.Wave(q, open, a)
		if len(w.Ask) == 0 {
			return asked, w.Stop
		}
		for _, i := range w.Ask {
			asked = append(asked, left[i])
			q.Votes = append(q.Votes, all[left[i]])
		}
		left = slices.DeleteFunc(left, func(v int) bool { return slices.Contains(asked, v) })
	}
}
