package trial

import "slices"

// A Report is everything that was measured.
type Report struct {
	Accuracies  []Accuracy
	Sequentials []Sequential
	Streams     []Stream
}

// Measure measures what o says, which must pass [Options.Check].
func Measure(d *Data, o Options) Report {
	r := Report{Accuracies: Accuracies(d, o)}
	if slices.Contains(o.Strategies, "bayes") {
		r.Sequentials = Sequentials(d, o)
	}
	if o.Orders > 0 {
		r.Streams = Streams(d, o)
	}
	for i := range r.Accuracies {
		a := &r.Accuracies[i]
		for _, s := range r.Sequentials {
			if a.Strategy == s.Strategy && a.N == s.N && s.Tau == usualTau {
				a.Votes, a.Cost = s.Votes, s.Cost
			}
		}
	}
	return r
}
