package trial_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/lab/trial"
)

var even = []float64{.5, .5}

// independent is a panel of independent workers, one per probability.
func independent(questions int, priors []float64, right ...float64) panel {
	p := panel{questions: questions, priors: priors}
	for _, r := range right {
		p.groups = append(p.groups, group{size: 1, right: r})
	}
	return p
}

func accuracies(d *trial.Data, splits int, gold ...int) map[string][]trial.Accuracy {
	return accuraciesOf(trial.Strategies(), d, splits, gold...)
}

func accuraciesOf(strategies []string, d *trial.Data, splits int, gold ...int) map[string][]trial.Accuracy {
	m := map[string][]trial.Accuracy{}
	for _, a := range trial.Accuracies(d, trial.Options{Gold: gold, Splits: splits, Strategies: strategies, Seed: "1", Parallel: 2}) {
		m[a.Strategy] = append(m[a.Strategy], a)
	}
	return m
}

// TestOptimum: with many human decisions bayes is within a point of the best that
// any rule can do on independent workers, which can be computed.
func TestOptimum(t *testing.T) {
	for _, c := range []struct {
		right             []float64
		majority, optimum float64
	}{{[]float64{.9, .6, .6, .6, .6}, .786, .900}, {[]float64{.8, .8, .3, .3, .3}, .491, .891}} {
		questions := 4000
		m := accuracies(independent(questions, even, c.right...).data("optimum"), 3, 300)
		if got, se := m["majority"][0].Accuracy, math.Sqrt(c.majority*(1-c.majority)/float64(questions)); math.Abs(got-c.majority) > 4*se {
			t.Errorf("of %v the majority is right in %.3f, want %.3f", c.right, got, c.majority)
		}
		if got, se := m["bayes"][0].Accuracy, math.Sqrt(c.optimum*(1-c.optimum)/float64(questions)); got < c.optimum-.01-2*se {
			t.Errorf("of %v bayes is right in %.3f, want %.3f within a point", c.right, got, c.optimum)
		}
	}
}

// TestColdStart: on crowds of many kinds, after few decisions, bayes is hardly ever
// worse than unweighted votes, nor than the margin, and its probabilities mean what
// they say.
func TestColdStart(t *testing.T) {
	spam := []float64{1, 0, 0, 0}
	for name, p := range map[string]panel{
		"crowd":     {questions: 400, priors: even, answers: 10, groups: []group{{size: 60, right: .85}, {size: 10, right: .6}, {size: 10, bias: even}}},
		"four":      {questions: 400, priors: []float64{.25, .25, .25, .25}, answers: 10, groups: []group{{size: 40, right: .7}, {size: 10, right: .4}, {size: 5, bias: spam}}},
		"rare":      {questions: 600, priors: []float64{.88, .12}, answers: 3, hard: .05, groups: []group{{size: 60, right: .93}, {size: 10, right: .6}, {size: 4, bias: []float64{.1, .9}}}},
		"judges":    {questions: 400, priors: even, states: 4, hard: .1, groups: []group{{size: 3, right: .85, copy: .6}, {size: 5, right: .65, copy: .7}, {size: 4, right: .55, copy: .5}}},
		"strong":    {questions: 400, priors: even, groups: []group{{size: 9, right: .92, copy: .2}}},
		"copies":    {questions: 400, priors: []float64{.25, .25, .25, .25}, groups: []group{{size: 3, right: .55, copy: .9}}},
		"adversary": {questions: 400, priors: even, groups: []group{{size: 5, right: .7}, {size: 4, right: .25, copy: .5}}},
	} {
		m := accuracies(p.data("cold start"), 10, 10, 30, 100)
		for i, b := range m["bayes"] {
			t.Logf("%s, n = %d: majority %.3f, margin %.3f, bayes %.3f, ece %.3f", name, b.N, m["majority"][i].Accuracy, m["alignmentMargin"][i].Accuracy, b.Accuracy, b.ECE)
			if b.Accuracy < m["majority"][i].Accuracy-.005 || b.Accuracy < m["alignmentMargin"][i].Accuracy-.005 {
				t.Errorf("%s, n = %d: bayes %.3f, majority %.3f, margin %.3f", name, b.N, b.Accuracy, m["majority"][i].Accuracy, m["alignmentMargin"][i].Accuracy)
			}
			if b.N == 100 && b.ECE > .08 {
				t.Errorf("%s: the calibration error is %.3f", name, b.ECE)
			}
			if math.IsNaN(b.LogLoss) || math.IsInf(b.LogLoss, 0) {
				t.Errorf("%s: the log-loss is %v", name, b.LogLoss)
			}
		}
	}
}

// TestPlainCrowd: where workers are many and hardly differ, and half of the questions
// are beyond everybody, there is nothing to learn but noise. What it costs against
// unweighted votes is bounded; without caution in the fit it is up to twice as much.
func TestPlainCrowd(t *testing.T) {
	crowd := panel{questions: 1000, priors: even, answers: 5, hard: .5, groups: []group{{size: 20, right: .55}, {size: 30, right: .62}, {size: 30, right: .7}}}
	lost := map[int]float64{}
	for i := range 6 {
		m := accuraciesOf([]string{"majority", "bayes"}, crowd.data(fmt.Sprint("plain", i)), 10, 10, 30, 100)
		for j, b := range m["bayes"] {
			lost[b.N] += (m["majority"][j].Accuracy - b.Accuracy) / 6
		}
	}
	for n, most := range map[int]float64{10: .011, 30: .012, 100: .0075} {
		t.Logf("n = %d: %.4f is lost", n, lost[n])
		if lost[n] > most {
			t.Errorf("n = %d: %.4f is lost against unweighted votes, want at most %v", n, lost[n], most)
		}
	}
}

// TestMeasureIsAFunction: however many goroutines, the same bytes; and the JSON
// has the members that are promised, no others.
func TestMeasureIsAFunction(t *testing.T) {
	d := panel{questions: 80, priors: even, groups: []group{{size: 5, right: .8}, {size: 3, right: .6, copy: .5}}}.data("function")
	o := trial.Options{Gold: []int{0, 10, 79, 80}, Splits: 3, Strategies: trial.Strategies(), Seed: "7", Orders: 3, MaxError: .2, Parallel: 1}
	first := trial.Measure(d, o)
	o.Parallel = 7
	if second := trial.Measure(d, o); !reflect.DeepEqual(first, second) {
		t.Error("the report depends on the number of goroutines")
	}
	if n := len(first.Accuracies); n != 3*8 || len(first.Sequentials) != 3*3 || len(first.Streams) != 3 {
		t.Fatalf("there are %d accuracies, %d sequentials, %d streams", n, len(first.Sequentials), len(first.Streams))
	}
	for want, v := range map[string]any{
		"[accuracy cost coverage95 ece eceByChance error95 kind logLoss n sd strategy votes]":       first.Accuracies[0],
		"[autoError eps humansAsked humansAskedSecondHalf kind runs runsAboveEps strategy]":         first.Streams[0],
		"[accuracy accuracyAll cost costAll everyone kind n questions strategy tau votes votesAll]": first.Sequentials[len(first.Sequentials)-1],
		"[autoError deserving kind model promoted rule runs states target traffic wrongly]":         trial.Collapse{},
	} {
		if got := members(t, v); got != want {
			t.Errorf("the members are %s, want %s", got, want)
		}
	}
	for _, a := range first.Accuracies {
		if a.Strategy == "bayes" && (a.Votes > 8 || a.Votes == 0) || a.Strategy == "majority" && a.Votes != 8 {
			t.Errorf("%s asks %v", a.Strategy, a.Votes)
		}
	}
}

// TestMeansOfOnes: where every answer is right, every mean is one, not a sum of
// rounded parts that lies above.
func TestMeansOfOnes(t *testing.T) {
	d := independent(190, even, 1, 1, 1).data("ones")
	o := trial.Options{Gold: []int{10, 30}, Splits: 7, Seed: "1", Parallel: 2}
	list := trial.Sequentials(d, o)
	for _, s := range list {
		if s.Accuracy != 1 || s.AccuracyAll != 1 || s.VotesAll != 3 || s.Votes > 3 {
			t.Errorf("%+v", s)
		}
	}
	if len(list) != 6 {
		t.Errorf("there are %d results", len(list))
	}
}

func members(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return sortedKeys(m)
}

// TestStreams: on a good panel bayes needs ever fewer humans and keeps its promise;
// the margin breaks it where voters err together.
func TestStreams(t *testing.T) {
	stream := func(p panel) map[string]trial.Stream {
		m := map[string]trial.Stream{}
		for _, s := range trial.Streams(p.data("stream"), trial.Options{Strategies: trial.Strategies(), Orders: 10, MaxError: .1, Seed: "1", Parallel: 2}) {
			m[s.Strategy] = s
		}
		return m
	}
	good := stream(panel{questions: 500, priors: even, groups: []group{{size: 5, right: .85}}})["bayes"]
	if good.HumansAsked > .5 || good.HumansAskedSecondHalf >= good.HumansAsked || good.RunsAboveEps > 0 || good.AutoError > .1 {
		t.Errorf("good voters: %+v", good)
	}
	copies := stream(panel{questions: 500, priors: []float64{.25, .25, .25, .25}, groups: []group{{size: 3, right: .55, copy: .9}}})
	if b := copies["bayes"]; b.HumansAsked != 1 || b.AutoError != 0 {
		t.Errorf("copies are believed: %+v", b)
	}
	if m := copies["alignmentMargin"]; m.RunsAboveEps != m.Runs {
		t.Errorf("the margin keeps a promise it cannot keep: %+v", m)
	}
}

func TestCollapses(t *testing.T) {
	m := &trial.Marks{Models: []string{"model"}, States: []string{"good", "bad", "fair"}}
	for i := range 600 {
		m.Questions = append(m.Questions, trial.Mark{State: i % 3, Right: []bool{i%3 == 0 && i%30 != 0 || i%3 == 1 && i%2 == 0 || i%3 == 2 && i%5 > 0 && i%35 > 0}})
	}
	list := trial.Collapses(m, "1", 2)
	if e := list[0]; e.Deserving != 1 || e.Promoted < .9 || e.Wrongly > .05 || e.AutoError > .2 || e.Traffic <= 0 {
		t.Errorf("by evidence: %+v", e)
	}
	if h := list[1]; h.Wrongly < .5 {
		t.Errorf("by five lucky answers: %+v", h)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := trial.Options{Gold: []int{1}, Splits: 1, Strategies: []string{"bayes"}, Orders: 1, MaxError: .1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(o *trial.Options){
		"strategy": func(o *trial.Options) { o.Strategies = []string{"bayes", "oracle"} }, "none": func(o *trial.Options) { o.Strategies = nil },
		"gold": func(o *trial.Options) { o.Gold = []int{-1} }, "no gold": func(o *trial.Options) { o.Gold = nil }, "splits": func(o *trial.Options) { o.Splits = 0 },
		"too many splits": func(o *trial.Options) { o.Splits = trial.MostRuns + 1 }, "too many orders": func(o *trial.Options) { o.Orders = trial.MostRuns + 1 },
		"a strategy twice": func(o *trial.Options) { o.Strategies = []string{"bayes", "majority", "bayes"} }, "gold twice": func(o *trial.Options) { o.Gold = []int{1, 1} },
		"orders": func(o *trial.Options) { o.Orders = -1 }, "eps": func(o *trial.Options) { o.MaxError = math.NaN() },
		"eps of nearly 0": func(o *trial.Options) { o.MaxError = 1e-12 }, "eps of nearly 1": func(o *trial.Options) { o.MaxError = 1 - 1e-12 },
	} {
		o := good
		spoil(&o)
		if err := o.Check(); err == nil || name == "strategy" && !errors.Is(err, trial.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProgress: pieces of all strategies come in turn, so that the pace says how long the rest
// takes, and each part says how many follow it.
func TestProgress(t *testing.T) {
	d, err := trial.Read(files("truth.csv", truths, "answer.csv", answers))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	o := trial.Options{Gold: []int{0, 1, 9}, Splits: 2, Strategies: []string{"majority", "bayes"}, Orders: 1, MaxError: .1}
	o.Progress = func(part string, done, of, follow int) {
		told = append(told, fmt.Sprintf("%s %d of %d, %d follow", part, done, of, follow))
	}
	trial.Measure(d, o)
	want := []string{
		"accuracies 1 of 8, 3 follow", "accuracies 2 of 8, 3 follow", "accuracies 3 of 8, 3 follow", "accuracies 4 of 8, 3 follow",
		"accuracies 5 of 8, 3 follow", "accuracies 6 of 8, 3 follow", "accuracies 7 of 8, 3 follow", "accuracies 8 of 8, 3 follow",
		"asking in turn, after 0 1 of 2, 2 follow", "asking in turn, after 0 2 of 2, 2 follow",
		"asking in turn, after 1 1 of 2, 1 follow", "asking in turn, after 1 2 of 2, 1 follow",
		"streams 1 of 1, 0 follow",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}
