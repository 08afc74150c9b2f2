// Package trial measures strategies on questions whose answers are known: how
// often each is right after how many human decisions, whether its probabilities
// mean what they say, and how many humans it still asks under a promise.
//
// A [Data] is read from files, by [Read], or made by hand. Everything is a
// function of the data, the options and the seed.
package trial

import (
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// Machine is the name of the machine in which data are judged.
const Machine = "bench"

// A Data is a set of questions with the answers of workers and the truth.
type Data struct {
	Classes   []string // every truth and every answer, in byte order
	States    []string
	Workers   []Worker
	Questions []Question
	// Splits are orders of questions: of each, the first n are the human decisions
	// to learn from. Nil if the data bring none.
	Splits [][]int
	// Ignored counts answers to questions without a known truth.
	Ignored int
	// Warnings say what is probably not meant in the files, each with a place.
	Warnings []string
}

// A Worker is one who answers.
type Worker struct {
	ID    string
	Model string  // "" if unknown
	Order string  // in which it sees the options; "" if unknown
	Cost  float64 // of one answer
}

// A Question has a truth and answers.
type Question struct {
	ID      string
	State   int // index into Data.States
	Truth   int // index into Data.Classes
	Answers []Answer
}

// An Answer is what one worker said. A question has at most one per worker.
type Answer struct {
	Worker int // index into Data.Workers
	Class  int // index into Data.Classes
}

// Restrict returns the data with the answers of some workers only. It returns
// false and the name if a worker is unknown.
func (d *Data) Restrict(ids []string) (*Data, string, bool) {
	place := make([]int, len(d.Workers))
	for i := range place {
		place[i] = -1
	}
	c := *d
	c.Workers, c.Questions = nil, slices.Clone(d.Questions)
	found := map[string]bool{}
	for _, id := range ids {
		found[id] = false
	}
	for i, w := range d.Workers {
		if _, wanted := found[w.ID]; wanted {
			found[w.ID] = true
			place[i] = len(c.Workers)
			c.Workers = append(c.Workers, w)
		}
	}
	for _, id := range ids {
		if !found[id] {
			return nil, id, false
		}
	}
	for i := range c.Questions {
		q := &c.Questions[i]
		kept := []Answer{}
		for _, a := range q.Answers {
			if place[a.Worker] >= 0 {
				kept = append(kept, Answer{place[a.Worker], a.Class})
			}
		}
		q.Answers = kept
	}
	return &c, "", true
}

// order returns a seeded order of all questions.
func (d *Data) order(seed string, i int) []int {
	return trust.NewDraw("trial", seed, itoa(i)).Perm(len(d.Questions))
}

// splits returns n orders: the data's own, or seeded ones if it has none.
func (d *Data) splits(n int, seed string) [][]int {
	if len(d.Splits) > 0 {
		return d.Splits[:min(n, len(d.Splits))]
	}
	list := make([][]int, n)
	for i := range list {
		list[i] = d.order(seed, i)
	}
	return list
}

// question returns what the ledger is asked, with the options in Data.Classes.
func (d *Data) question(q *Question) trust.Question {
	a := trust.Question{Machine: Machine, State: d.States[q.State], Options: d.Classes, Votes: make([]trust.Vote, len(q.Answers))}
	for i, v := range q.Answers {
		w := &d.Workers[v.Worker]
		a.Votes[i] = trust.Vote{SpecialistID: w.ID, Model: w.Model, OptionOrder: w.Order, Option: v.Class}
	}
	return a
}

// outcome returns the question once a human has answered it.
func (d *Data) outcome(q *Question) trust.Outcome {
	o := trust.Outcome{
		Round: q.ID, Machine: Machine, State: d.States[q.State], Options: d.Classes, Truth: d.Classes[q.Truth],
		Source: trust.Forced, Blind: true, Proposals: make([]trust.OutcomeProposal, len(q.Answers)),
	}
	for i, v := range q.Answers {
		w := &d.Workers[v.Worker]
		o.Proposals[i] = trust.OutcomeProposal{SpecialistID: w.ID, Model: w.Model, OptionOrder: w.Order, Transition: d.Classes[v.Class], Cost: d.price(v)}
	}
	return o
}

// unruled returns the question as a round that no human has decided; nil if too few have
// answered.
func (d *Data) unruled(q *Question) *trust.Unruled {
	o := d.outcome(q)
	return trust.UnruledOf(o.Round, o.Machine, o.State, o.Options, o.Proposals)
}

// answers counts all answers.
func (d *Data) answers() int {
	n := 0
	for i := range d.Questions {
		n += len(d.Questions[i].Answers)
	}
	return n
}

// price returns what an answer costs, as money: a cost of 1 is a thousandth of a
// dollar.
func (d *Data) price(a Answer) exact.Money {
	return exact.Money(math.Round(d.Workers[a.Worker].Cost * 1e9))
}

// cost returns what all answers to a question cost.
func (d *Data) cost(q *Question) float64 {
	sum := 0.
	for _, a := range q.Answers {
		sum += d.Workers[a.Worker].Cost
	}
	return sum
}
