package trust_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestOrigins: the records that are named make up the levels that a vote was pooled
// from, also what a version inherits of its predecessor.
func TestOrigins(t *testing.T) {
	l := trust.New()
	places := [][2]string{{"desk", "open"}, {"desk", "late"}, {"shop", "open"}}
	for i := range 60 {
		q := ask(yesNo, i%2, 0)
		q.Machine, q.State = places[i%3][0], places[i%3][1]
		add(t, l, outcome(q, i/3%2))
	}
	q := ask(yesNo, 0, 1)
	q.Machine, q.State = "desk", "open"
	for _, version := range []string{"", "next"} {
		q.Votes[0].Version = version
		v := l.Judge(q).Votes[0]
		sums := map[string]exact.Billionths{}
		origins := l.Origins("a", version)
		for _, o := range origins {
			level := trust.LevelGlobal
			switch {
			case o.Machine == "desk" && o.State == "open":
				level = trust.LevelState
			case o.Machine == "desk":
				level = trust.LevelMachine
			}
			sums[level] += o.N - o.K
		}
		if len(origins) != 3 || origins[0].State != "late" || len(v.Pooled) != 3 {
			t.Fatalf("version %q: origins %+v, pooled %+v", version, origins, v.Pooled)
		}
		for _, p := range v.Pooled {
			if d := sums[p.Level] - (p.N - p.K); d > exact.One/100 || d < -exact.One/100 {
				t.Errorf("version %q: origins %+v do not make up %+v", version, origins, p)
			}
		}
	}
	if l.Origins("nobody", "") != nil {
		t.Error("nobody has a record")
	}
}
