package trust_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// crowd returns a round of n specialists with a truth, the better half of whom are
// right in 9 of 10.
func crowd(d *trust.Draw, n, k int) (trust.Question, int) {
	q := trust.Question{Machine: "desk", State: fmt.Sprint("s", d.Perm(3)[0])}
	for i := range k {
		q.Options = append(q.Options, fmt.Sprint("option ", i))
	}
	truth := d.Perm(k)[0]
	for i := range n {
		v := trust.Vote{SpecialistID: fmt.Sprintf("voter %02d", i), Version: "1", Model: fmt.Sprint("model ", i%4), OptionOrder: fmt.Sprint(i % 2), Option: truth}
		if right := .5 + .4*float64(2*i/n); d.Float() >= right {
			v.Option = d.Perm(k)[0]
		}
		q.Votes = append(q.Votes, v)
	}
	return q, truth
}

// BenchmarkJudge judges a round with 16 proposals and 4 options, after 500
// outcomes. It should take 30 microseconds at most.
func BenchmarkJudge(b *testing.B) {
	d, l := trust.NewDraw("judge"), trust.New()
	for range 500 {
		if err := l.Add(outcome(crowd(d, 16, 4))); err != nil {
			b.Fatal(err)
		}
	}
	q, _ := crowd(d, 16, 4)
	b.ReportAllocs()
	for b.Loop() {
		l.Judge(q)
	}
}

// BenchmarkOutcomes adds outcomes of 16 proposals and 4 options, refits included.
// It should take 150 microseconds each at most.
func BenchmarkOutcomes(b *testing.B) {
	for _, total := range []int{500, 2000, 10_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			d := trust.NewDraw("outcomes")
			list := make([]trust.Outcome, total)
			for i := range list {
				list[i] = outcome(crowd(d, 16, 4))
			}
			for b.Loop() {
				l := trust.New()
				for _, o := range list {
					_ = l.Add(o)
					l.MakeFits()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*total), "µs/outcome")
		})
	}
}

// BenchmarkAddUnruled counts a round without a human's word, of 16 proposals and 4 options, where
// the window is full and 500 outcomes are known, with all fits.
func BenchmarkAddUnruled(b *testing.B) {
	d, l := trust.NewDraw("unruled"), trust.New()
	for range 500 {
		if err := l.Add(outcome(crowd(d, 16, 4))); err != nil {
			b.Fatal(err)
		}
	}
	enter := func(i int) {
		q, _ := crowd(d, 16, 4)
		o := outcome(q, 0)
		if err := l.AddUnruled(*trust.UnruledOf(fmt.Sprint(i), "desk", q.State, q.Options, o.Proposals)); err != nil {
			b.Fatal(err)
		}
		l.MakeFits()
	}
	for i := range trust.UnruledWindow {
		enter(i)
	}
	b.ReportAllocs()
	for i := trust.UnruledWindow; b.Loop(); i++ {
		enter(i)
	}
}

// BenchmarkRefitUnruled fits O and D anew where the window is full and 500 outcomes are known:
// what one in 200 rounds without a human's word costs whoever makes the fit: the next to judge the
// machine, unless somebody was idle before.
func BenchmarkRefitUnruled(b *testing.B) {
	for _, panel := range []int{5, 15} {
		b.Run(fmt.Sprint(panel), func(b *testing.B) {
			d, l := trust.NewDraw("refit"), trust.New()
			for range 500 {
				if err := l.Add(outcome(crowd(d, panel, 4))); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			enter := func(add func(trust.Unruled) error) {
				q, _ := crowd(d, panel, 4)
				o := outcome(q, 0)
				i++
				if err := add(*trust.UnruledOf(fmt.Sprint(i), "desk", q.State, q.Options, o.Proposals)); err != nil {
					b.Fatal(err)
				}
			}
			for range trust.UnruledWindow {
				enter(l.AddUnruled)
			}
			for b.Loop() {
				b.StopTimer()
				for range trust.UnruledWindow / 5 { // one more than it takes, so that each is due
					enter(l.EnterUnruled)
				}
				b.StartTimer()
				enter(l.AddUnruled)
				l.MakeFits()
			}
		})
	}
}
