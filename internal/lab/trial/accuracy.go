package trial

import (
	"math"
	"slices"
)

// How good a strategy is after n human decisions. In each split the strategy learns
// from the first n questions and judges all others: accuracy (a tie counts as the share
// that holds the truth), log loss, calibration in ten bins (expected calibration
// error), and how often it was sure and wrong. Figures of one split are means over its
// questions; those that are told are means over splits, with their standard deviation.
// Splits come from the data or are drawn from the seed, so all strategies learn from
// the same questions.

// Options say what is measured.
type Options struct {
	Gold       []int // numbers of human decisions to learn from
	Splits     int   // orders, if the data bring none, or so many of them
	Strategies []string
	Seed       string
	Orders     int     // of streams; 0 for none
	MaxError   float64 // of streams
	Parallel   int     // goroutines; below 1 means 1

	// Progress, if set, is told how many of how many pieces of a part of the work are
	// done, and how many parts follow it, concurrently and not always in order.
	Progress func(part string, done, of, follow int)

	follow int // parts that follow the present one
}

// An Accuracy is how good a strategy is after n human decisions, on the questions
// it did not learn from.
type Accuracy struct {
	Kind     string  `json:"kind"` // "accuracy"
	Strategy string  `json:"strategy"`
	N        int     `json:"n"`
	Accuracy float64 `json:"accuracy"` // with all votes, mean over splits; a tie that holds the truth counts as its share
	SD       float64 `json:"sd"`       // of one split
	LogLoss  float64 `json:"logLoss"`  // P floored at a billionth
	ECE      float64 `json:"ece"`      // expected calibration error of the largest P, in 10 equal bins, mean over splits
	// ECEByChance is what ECE would be on as many questions if each P were exactly as often right as it says.
	ECEByChance float64 `json:"eceByChance"`
	Coverage95  float64 `json:"coverage95"`
	Error95     float64 `json:"error95"` // 0 without coverage
	Votes       float64 `json:"votes"`   // asked per question: of bayes until its probability reaches .95, of others all
	Cost        float64 `json:"cost"`    // of these
	// AccuracySequential is the accuracy with Votes only, where these are fewer than
	// all; nil for strategies that ask everyone. Accuracy is always that with all votes.
	AccuracySequential *float64 `json:"accuracySequential,omitempty"`
	// Bins are those of the calibration error, over all splits; Risks what is wrong among
	// the surest questions, from twenty to all. Charts are drawn of them.
	Bins  []Bin  `json:"-"`
	Risks []Risk `json:"-"`
}

// A Bin are claims whose largest P is about the same.
type Bin struct{ N, P, Right float64 } // how many claims; means of P and of being right

// A Risk says how often the surest claims are wrong.
type Risk struct{ Coverage, Error float64 } // share of the questions, and of these wrong

// bins of the calibration error.
const bins = 10

// A score adds up what a strategy said on the test questions of one split.
type score struct {
	n, right, loss, sure, wrong, votes, cost float64
	bin                                      [bins]struct{ n, right, p, variance float64 }
	steps                                    [steps]struct{ n, right float32 }
}

// steps are how finely claims are told apart by how sure they are: sixteen for each halving
// of what is left to 1.
const steps = 16 * 30

func (s *score) add(c Claim, truth int) {
	top, right := slices.Max(c.P), credit(c.P, truth)
	s.n++
	s.right += right
	s.loss -= math.Log(max(1e-9, c.P[truth]))
	if c.Certain {
		s.sure++
		s.wrong += 1 - right
	}
	b := &s.bin[min(bins-1, int(top*bins))]
	b.n, b.right, b.p, b.variance = b.n+1, b.right+right, b.p+top, b.variance+top*(1-top)
	step := &s.steps[min(steps-1, int(-16*math.Log2(max(1e-9, 1-top))))]
	step.n, step.right = step.n+1, step.right+float32(right)
}

func (s *score) ece() float64 {
	sum := 0.
	for _, b := range s.bin {
		sum += math.Abs(b.right - b.p)
	}
	return sum / max(1, s.n)
}

// eceByChance is what ece would be on average if each largest P were as often right as it says: how many are right in a bin is
// nearly normal then, and of a normal deviation the mean size is sqrt(2/pi) of its standard deviation.
func (s *score) eceByChance() float64 {
	sum := 0.
	for _, b := range s.bin {
		sum += math.Sqrt(2 / math.Pi * b.variance)
	}
	return sum / max(1, s.n)
}

// Accuracies measures every strategy after every number of decisions. Numbers that
// leave no question to test are left out; [Untested] says which.
func Accuracies(d *Data, o Options) []Accuracy {
	splits := d.splits(o.Splits, o.Seed)
	var jobs []job
	for _, n := range o.Gold {
		for _, name := range o.Strategies {
			if fits(d, splits, n) && (name != "stacking" || len(d.Classes) == 2) {
				jobs = append(jobs, job{name, n})
			}
		}
	}
	scores := make([]score, len(jobs)*len(splits))
	o.each("accuracies", len(scores), func(i int) {
		j, s := i%len(jobs), i/len(jobs) // all of a split before the next, so that pieces cost alike from first to last
		scores[j*len(splits)+s] = jobs[j].run(d, splits[s])
	})
	list := make([]Accuracy, len(jobs))
	for i, j := range jobs {
		list[i] = summary(j, scores[i*len(splits):(i+1)*len(splits)])
	}
	return list
}

// Untested returns the numbers of decisions that [Accuracies] leaves out: as many
// questions are not in every split, or none is left to test.
func Untested(d *Data, o Options) (list []int) {
	splits := d.splits(o.Splits, o.Seed)
	for _, n := range o.Gold {
		if !fits(d, splits, n) {
			list = append(list, n)
		}
	}
	return list
}

// Most returns the largest number of decisions that can be learned from: as many questions
// are in every split, and one is left to test.
func Most(d *Data, o Options) int {
	most := len(d.Questions) - 1
	for _, s := range d.splits(o.Splits, o.Seed) {
		most = min(most, len(s))
	}
	return most
}

// fits reports whether every split has n questions to learn from and the data one
// more to test.
func fits(d *Data, splits [][]int, n int) bool {
	return n >= 0 && n < len(d.Questions) && !slices.ContainsFunc(splits, func(s []int) bool { return len(s) < n })
}

type job struct {
	name string
	n    int
}

func (j job) run(d *Data, order []int) (s score) {
	st := newStrategy(j.name)
	gold := order[:j.n]
	st.learn(d, gold)
	learned := make([]bool, len(d.Questions))
	for _, i := range gold {
		learned[i] = true
	}
	for i := range d.Questions {
		if q := &d.Questions[i]; !learned[i] {
			s.add(st.judge(q), q.Truth)
			s.votes += float64(len(q.Answers))
			s.cost += d.cost(q)
		}
	}
	return s
}

func summary(j job, scores []score) Accuracy {
	a := Accuracy{Kind: "accuracy", Strategy: j.name, N: j.n}
	var all score
	var mean, square float64
	for i := range scores {
		s := &scores[i]
		acc := s.right / s.n
		mean, square = mean+acc, square+acc*acc
		a.ECE, a.ECEByChance = a.ECE+s.ece(), a.ECEByChance+s.eceByChance()
		all.n, all.loss, all.sure, all.wrong = all.n+s.n, all.loss+s.loss, all.sure+s.sure, all.wrong+s.wrong
		all.votes, all.cost = all.votes+s.votes, all.cost+s.cost
	}
	n := float64(len(scores))
	a.Accuracy = mean / n
	if n > 1 {
		a.SD = math.Sqrt(max(0, (square-mean*mean/n)/(n-1)))
	}
	a.LogLoss, a.ECE, a.ECEByChance, a.Coverage95 = all.loss/all.n, a.ECE/n, a.ECEByChance/n, all.sure/all.n
	if all.sure > 0 {
		a.Error95 = all.wrong / all.sure
	}
	a.Votes, a.Cost = all.votes/all.n, all.cost/all.n
	a.curves(scores, all.n)
	return a
}

// fewest is of how many claims a share says something.
const fewest = 20

// curves fills in what charts are drawn of. of is the number of all claims.
func (a *Accuracy) curves(scores []score, of float64) {
	for i := range bins {
		var b Bin
		for k := range scores {
			from := &scores[k].bin[i]
			b.N, b.P, b.Right = b.N+from.n, b.P+from.p, b.Right+from.right
		}
		if b.N > 0 {
			a.Bins = append(a.Bins, Bin{b.N, b.P / b.N, b.Right / b.N})
		}
	}
	var n, right float64
	for i := steps - 1; i >= 0; i-- {
		before := n
		for k := range scores {
			n, right = n+float64(scores[k].steps[i].n), right+float64(scores[k].steps[i].right)
		}
		if n > before && n >= fewest {
			a.Risks = append(a.Risks, Risk{n / of, 1 - right/n})
		}
	}
}
