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
	inTurn, streams := 0, min(1, o.Orders)
	if slices.Contains(o.Strategies, "bayes") {
		inTurn = len(o.Gold) - len(Untested(d, o))
	}
	o.follow = inTurn + streams
	r := Report{Accuracies: Accuracies(d, o)}
	if o.follow--; inTurn > 0 {
		r.Sequentials = Sequentials(d, o)
	}
	if o.follow = 0; streams > 0 {
		r.Streams = Streams(d, o)
	}
	for i := range r.Accuracies {
		a := &r.Accuracies[i]
		for j := range r.Sequentials {
			s := &r.Sequentials[j]
			if a.Strategy == s.Strategy && a.N == s.N && s.Tau == usualTau {
				a.Votes, a.Cost, a.AccuracySequential = s.Votes, s.Cost, &s.Accuracy
			}
		}
	}
	return r
}
