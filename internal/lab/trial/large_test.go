package trial_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/dialai/dialai/internal/lab/trial"
)

// large returns questions with three options, each answered by so many of 100 workers, who
// are right .4 to .9 of the time.
func large(questions, answers int) *trial.Data {
	d := &trial.Data{Classes: []string{"a", "b", "c"}, States: []string{"all"}, Questions: make([]trial.Question, questions)}
	rng := rand.New(rand.NewPCG(1, 17))
	for w := range 100 {
		d.Workers = append(d.Workers, trial.Worker{ID: fmt.Sprintf("w%02d", w), Cost: 1})
	}
	for i := range d.Questions {
		q := &d.Questions[i]
		q.ID, q.Truth = fmt.Sprintf("q%d", i), rng.IntN(3)
		for w := range 100 {
			if rng.IntN(100) >= answers {
				continue
			}
			a := trial.Answer{Worker: w, Class: q.Truth}
			if rng.Float64() > .4+.5*float64(w)/100 {
				a.Class = (q.Truth + 1 + rng.IntN(2)) % 3
			}
			q.Answers = append(q.Answers, a)
		}
	}
	return d
}

// BenchmarkMeasure measures everything that dialai bench decisions does at three sizes and
// five splits.
func BenchmarkMeasure(b *testing.B) {
	questions := 10_000
	if testing.Short() {
		questions = 100 // that it runs
	}
	for _, answers := range []int{10, 100} {
		d := large(questions, answers)
		o := trial.Options{Gold: []int{10, questions / 100, questions * 3 / 100}, Splits: 5, Strategies: trial.Strategies(), Seed: "1", MaxError: .1, Parallel: runtime.GOMAXPROCS(0)}
		b.Run(fmt.Sprintf("accuracies/%d", answers), func(b *testing.B) {
			for b.Loop() {
				trial.Accuracies(d, o)
			}
		})
		b.Run(fmt.Sprintf("sequentials/%d", answers), func(b *testing.B) {
			for b.Loop() {
				trial.Sequentials(d, o)
			}
		})
		o.Orders = 40
		b.Run(fmt.Sprintf("streams/%d", answers), func(b *testing.B) {
			for b.Loop() {
				trial.Streams(d, o)
			}
		})
	}
}
