package sim_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Rulings that their authors take back, and the obvious model of what is left of what
// humans have taught.

const takenBack = "what is taken back teaches nobody"

// retract has the human take back what they have ruled in a closed round.
func (h *human) retract(p *process, s *observed, round specialist.RoundKey) {
	a := &act{deed: retracts, s: s, round: round}
	h.begin(p, a, func(ctx context.Context) (runner.Arbitration, error) {
		_, err := p.r.Retract(ctx, runner.Retracting{SessionID: s.id, RoundID: round.ID(), SpecialistID: h.specialistID(), Note: "a mistake", Actor: h.actor()})
		return runner.Arbitration{}, err
	})
}

// regrets returns the newest closed round that a human has ruled on, as far as was seen.
func (h *human) regrets(saw *sight) (key specialist.RoundKey, any bool) {
	for e := saw.Last(); e != nil; e = e.Previous {
		if e.IsHuman && authored(e, h.id) && saw.Retracted(e.Round) == nil {
			return e.Key(saw.ID), true
		}
	}
	return key, false
}

// takenBack compares what a ruling that is taken back has taught with what leaves.
func (c *check) takenBack() error {
	for i, e := range c.events {
		switch d := e.Data.(type) {
		case *session.Learned:
			c.s.taught[c.keys[i]] = d
		case *session.Retracted:
			c.w.count("rulings retracted")
			key := d.Key(c.s.id)
			e := c.s.executed[key]
			switch {
			case e == nil || !e.IsHuman || !authored(e, d.SpecialistID):
				return fmt.Errorf("%s takes back round %d, and has not ruled there", d.SpecialistID, d.Round)
			case c.s.reviewed[key]:
				return fmt.Errorf("%s takes back round %d, which another human has reviewed", d.SpecialistID, d.Round)
			}
			was := c.s.taught[key]
			delete(c.s.taught, key)
			if was == nil {
				was = &session.Learned{}
			}
			if found, want := tallied(d.Comparisons), tallied(was.Comparisons); !reflect.DeepEqual(found, negative(want)) {
				return fmt.Errorf("round %d has taught %v, of which %v leaves", d.Round, want, found)
			}
			if was.Outcome != nil && (d.Lesson == nil || !reflect.DeepEqual(d.Lesson.Retracts, was.Outcome)) {
				return fmt.Errorf("the outcome of round %d stays", d.Round)
			}
		case *session.Reviewed:
			c.s.reviewed[specialist.RoundKey{Session: c.s.id, Round: d.Round, Attempt: d.Attempt}] = true
		}
	}
	return nil
}

// tallied sums comparisons.
func tallied(list []trust.Comparison) map[trust.Key][2]int64 {
	sum := map[trust.Key][2]int64{}
	for i := range list {
		one := list[i].Tally()
		was := sum[list[i].Key]
		sum[list[i].Key] = [2]int64{was[0] + one.Matching, was[1] + one.Total}
	}
	return sum
}

func negative(sum map[trust.Key][2]int64) map[trust.Key][2]int64 {
	next := map[trust.Key][2]int64{}
	for k, v := range sum {
		next[k] = [2]int64{-v[0], -v[1]}
	}
	return next
}

// whatIsLeft compares what the store has learned in all with what the logs have left of it.
func (w *world) whatIsLeft() {
	want, examples := map[trust.Key][2]int64{}, 0
	for _, s := range w.sessions {
		_, _ = w.base.Load(context.Background(), session.NewPrograms(), s.id) // looks whether somebody else has taught something
		for _, l := range s.taught {
			if l.Exemplar != nil {
				examples++
			}
			for k, v := range tallied(l.Comparisons) {
				was := want[k]
				want[k] = [2]int64{was[0] + v[0], was[1] + v[1]}
			}
		}
	}
	book, err := w.base.Book(context.Background(), w.machine.Name())
	if err != nil {
		w.fail(takenBack, "%v", err)
		return
	}
	found := map[trust.Key][2]int64{}
	for _, r := range book.Records(w.machine.Name()) {
		if r.TotalComparisons != 0 || r.MatchingChoices != 0 {
			found[trust.Key{SpecialistID: r.SpecialistID, State: r.State}] = [2]int64{r.MatchingChoices, r.TotalComparisons}
		}
	}
	maps.DeleteFunc(want, func(_ trust.Key, v [2]int64) bool { return v == [2]int64{} })
	if !maps.Equal(found, want) {
		w.fail(takenBack, "tallies are %v, by what was taught and not taken back %v", found, want)
	}
	list, err := w.base.Exemplars(context.Background(), w.machine.Name(), "", 0)
	if err != nil || len(list) != examples {
		w.fail(takenBack, "there are %d exemplars (%v), by what was taught and not taken back %d", len(list), err, examples)
	}
	if ids := slices.Collect(func(yield func(string) bool) {
		for _, e := range list {
			if !yield(e.ExemplarID) {
				return
			}
		}
	}); len(ids) != len(slices.Compact(slices.Sorted(slices.Values(ids)))) {
		w.fail(takenBack, "an exemplar is there twice: %v", ids)
	}
}
