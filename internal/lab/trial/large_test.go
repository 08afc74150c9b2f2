package trial_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/dialai/dialai/internal/lab/trial"
	"github.com/dialai/dialai/internal/trust"
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

// TestLargeSample: of a set of more than 60,000 answers a sample of the questions is asked in
// turn, the same however many goroutines measure, and as accurate as all of them within what a
// sample leaves open; fewer streams are run where nobody says how many. Smaller sets are
// measured whole.
func TestLargeSample(t *testing.T) {
	small, big := large(500, 50), large(1400, 50)
	if n := small.Orders(); n != trial.UsualOrders {
		t.Errorf("a small set has %d streams, want %d", n, trial.UsualOrders)
	}
	answers := 0
	for _, q := range big.Questions {
		answers += len(q.Answers)
	}
	if n := big.Orders(); n != trial.UsualOrders*60_000/answers {
		t.Errorf("of %d answers there are %d streams", answers, n)
	}
	if n := large(20_000, 100).Orders(); n != 4 {
		t.Errorf("a set of two million answers has %d streams, want 4", n)
	}
	o := trial.Options{Gold: []int{10}, Splits: 1, Strategies: []string{"bayes"}, Seed: "1", MaxError: .1, Parallel: 2}
	for _, s := range trial.Sequentials(small, o) {
		if s.Questions != 490 {
			t.Errorf("of a small set %d questions are asked in turn, want 490", s.Questions)
		}
	}
	all := trial.Accuracies(big, o)[0].Accuracy
	first := trial.Sequentials(big, o)
	for _, s := range first {
		if s.Questions != 1400*60_000/answers {
			t.Errorf("of 1,400 questions and %d answers %d are asked in turn", answers, s.Questions)
		}
		if math.Abs(s.AccuracyAll-all) > 4*math.Sqrt(.25/float64(s.Questions)) {
			t.Errorf("with all votes %.3f of the sample is right, %.3f of all", s.AccuracyAll, all)
		}
	}
	o.Parallel = 1
	if second := trial.Sequentials(big, o); !reflect.DeepEqual(first, second) {
		t.Error("the sample depends on the number of goroutines")
	}
}

// TestSequentialAsTheEngineDoes: where a replay says that asking in turn is not worth it, everyone is
// asked, and so it is counted; below 50 decisions nothing is known of that.
func TestSequentialAsTheEngineDoes(t *testing.T) {
	weak := panel{questions: 200, priors: even, groups: []group{{size: 5, right: .55}}}.data("weak")
	o := trial.Options{Gold: []int{20, 100}, Splits: 1, Strategies: []string{"bayes"}, MaxError: .1, Parallel: 1}
	all, list := 0, []trial.Sequential(nil)
	for seed := range 6 {
		o.Seed = fmt.Sprint(seed)
		list = append(list, trial.Sequentials(weak, o)...)
	}
	for _, s := range list {
		if (s.Everyone != nil) != (s.N >= trust.SavingsEvery) {
			t.Errorf("after %d decisions it is known of %v that it is not worth it", s.N, s.Everyone)
		}
		if s.Everyone == nil || *s.Everyone < 1 {
			continue
		}
		if all++; s.Votes != s.VotesAll || s.Accuracy != s.AccuracyAll || s.Cost != s.CostAll {
			t.Errorf("everyone is asked: %+v", s)
		}
	}
	if all == 0 {
		t.Error("of guessing voters it is said that asking in turn is worth it")
	}
}
