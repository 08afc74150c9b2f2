package trial_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dialai/dialai/internal/lab/trial"
)

// synthetic are panels of the kinds that crowds and committees of models come in.
var synthetic = map[string]panel{
	"independent": {questions: 600, priors: even, groups: []group{{size: 2, right: .85}, {size: 5, right: .7}, {size: 4, right: .55}}},
	"correlated":  {questions: 600, priors: even, hard: .1, groups: []group{{size: 3, right: .8, copy: .6}, {size: 5, right: .65, copy: .7}, {size: 4, right: .6, copy: .5}}},
	"duplicates":  {questions: 600, priors: even, groups: []group{{size: 3, right: .65, copy: 1}, {size: 4, right: .75}, {size: 1, right: .85}}},
	"colluding":   {questions: 600, priors: even, groups: []group{{size: 3, right: .8}, {size: 4, right: .4, copy: 1}}},
	"prolific":    {questions: 600, priors: []float64{.2, .2, .2, .2, .2}, answers: 6, groups: []group{{size: 6, right: .75, rate: 40}, {size: 150, right: .4}, {size: 40, right: .8}}},
	"careless":    {questions: 600, priors: []float64{.5, .25, .25}, answers: 5, groups: []group{{size: 4, right: .9, rate: 20}, {size: 60, right: .35}, {size: 60, right: .65}}},
}

// TestSynthetic: on no kind of panel is bayes more than a point below unweighted votes, nor,
// from 30 decisions on, below the margin. At 10 that is not reached: here it is up to 1.2
// points below the margin (independent), with other seeds 1.9, and the test allows 2.5.
func TestSynthetic(t *testing.T) {
	for name, p := range synthetic {
		const seed = "synthetic"
		m := accuraciesOf([]string{"majority", "alignmentMargin", "bayes"}, p.data(seed), 10, 10, 30, 100)
		for i, b := range m["bayes"] {
			vote, margin := m["majority"][i].Accuracy, m["alignmentMargin"][i].Accuracy
			t.Logf("%s, seed %q, n = %d: majority %.3f, margin %.3f, bayes %.3f, log-loss %.3f, ece %.3f", name, seed, b.N, vote, margin, b.Accuracy, b.LogLoss, b.ECE)
			least := margin - .01
			if b.N == 10 {
				least = margin - .025
			}
			if b.Accuracy < vote-.01 || b.Accuracy < least {
				t.Errorf("%s, seed %q, n = %d: bayes %.3f, majority %.3f, margin %.3f", name, seed, b.N, b.Accuracy, vote, margin)
			}
			if b.N == 100 && b.ECE > .06 {
				t.Errorf("%s, seed %q: the calibration error is %.3f", name, seed, b.ECE)
			}
		}
	}
}

// TestCopies: exact copies of one judge, of which nobody says that they are of one model,
// move nothing by more than a fifth of a point once a hundred outcomes have shown them; by
// less than half a point after thirty; and however many there are, by hardly more than two
// after ten, which tell copies from judges that are merely alike the better the more there are.
func TestCopies(t *testing.T) {
	const seed = "dup"
	most := map[int]float64{10: .022, 30: .004, 100: .002}
	d := panel{questions: 1500, priors: even, groups: []group{{size: 1, right: .85}, {size: 2, right: .75}, {size: 2, right: .65}}}.data(seed)
	alone := accuraciesOf([]string{"bayes"}, d, 20, 10, 30, 100)["bayes"]
	for _, worker := range []int{0, 3} {
		for _, n := range []int{1, 4, 10} {
			for i, got := range accuraciesOf([]string{"bayes"}, copied(d, worker, n), 20, 10, 30, 100)["bayes"] {
				t.Logf("seed %q, n = %d, %d copies of %d: %.4f, without %.4f", seed, got.N, n, worker, got.Accuracy, alone[i].Accuracy)
				if math.Abs(got.Accuracy-alone[i].Accuracy) > most[got.N] {
					t.Errorf("seed %q, n = %d: %d copies of %d move the accuracy from %.4f to %.4f", seed, got.N, n, worker, alone[i].Accuracy, got.Accuracy)
				}
			}
		}
	}
}

// copied returns the data with exact copies of one worker.
func copied(d *trial.Data, w, copies int) *trial.Data {
	c := *d
	c.Workers = append([]trial.Worker{}, d.Workers...)
	for i := range copies {
		x := d.Workers[w]
		x.ID += fmt.Sprint("-copy", i)
		x.Model = ""
		c.Workers = append(c.Workers, x)
	}
	c.Questions = nil
	for _, q := range d.Questions {
		for _, a := range q.Answers {
			if a.Worker == w {
				for i := range copies {
					q.Answers = append(q.Answers[:len(q.Answers):len(q.Answers)], trial.Answer{Worker: len(d.Workers) + i, Class: a.Class})
				}
				break
			}
		}
		c.Questions = append(c.Questions, q)
	}
	return &c
}
