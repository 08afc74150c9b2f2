package trust_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// A sized makes rounds whose panels differ in size, of four options: voters are right in .85 of the rounds
// that are not hard, and in a hard one all say the same, which is wrong.
type sized struct {
	d    *trust.Draw
	hard func(panel int) float64 // share of hard rounds
}

func (s sized) round(first, panel int) (trust.Question, int) {
	q := trust.Question{Machine: "desk", State: "open", Options: []string{"a", "b", "c", "d"}}
	truth, hard := s.d.Perm(4)[0], s.d.Float() < s.hard(panel)
	for i := range panel {
		v := trust.Vote{SpecialistID: fmt.Sprintf("voter %02d", first+i), Version: "1", Option: truth}
		if wrong := s.d.Float() >= .85; wrong || hard {
			v.Option = (truth + 1) % 4
			if !hard {
				v.Option = (truth + s.d.Perm(3)[0] + 1) % 4
			}
		}
		q.Votes = append(q.Votes, v)
	}
	return q, truth
}

// learned returns a ledger of n rounds, whose panels have these sizes in turn.
func (s sized) learned(t *testing.T, n int, panels ...int) *trust.Ledger {
	t.Helper()
	l := trust.New()
	for i := range n {
		if err := l.Add(outcome(s.round(i%3, panels[i%len(panels)]))); err != nil {
			t.Fatal(err)
		}
	}
	l.Refit("desk")
	return l
}

// cooling returns the temperature of the plain vote on a round.
func cooling(l *trust.Ledger, q trust.Question) float64 { return l.Judge(q).Experts[0].G.Float() }

// TestSingleAnswerIsNotCooled: who answers alone repeats nobody. Where twelve are wrong together in a
// fifth of their rounds, and every fourth round has one answer, that one is believed about as often as it
// is right (less by what those rounds took from everybody's record), and not as little as one of twelve.
func TestSingleAnswerIsNotCooled(t *testing.T) {
	for _, seed := range []string{"1", "2", "3"} {
		s := sized{trust.NewDraw("sizes", seed), func(panel int) float64 { return .2 * float64(min(1, panel/12)) }}
		l := s.learned(t, 160, 12, 12, 12, 1)
		const rounds = 400
		p, right := 0., 0.
		for i := range rounds {
			q, truth := s.round(i%3, 1)
			j := l.Judge(q)
			if p += j.P[j.Best].Float(); j.Best == truth {
				right++
			}
		}
		if p, right = p/rounds, right/rounds; math.Abs(p-right) > .15 {
			t.Errorf("seed %q: single answers are given %.3f, and are right in %.3f", seed, p, right)
		}
	}
}

// TestSizeIsLearned: a small panel is no surer by its size where outcomes do not say so: not where
// none of them had another size, nor where the small panels are those that are wrong together.
func TestSizeIsLearned(t *testing.T) {
	for _, seed := range []string{"1", "2", "3"} {
		even := sized{trust.NewDraw("even", seed), func(int) float64 { return .2 }}
		l := even.learned(t, 100, 12)
		one, _ := even.round(0, 1)
		twelve, _ := even.round(0, 12)
		if a, b := cooling(l, one), cooling(l, twelve); a != b {
			t.Errorf("seed %q: where all panels were of twelve, one answer has the temperature %v, twelve have %v", seed, a, b)
		}
		small := sized{trust.NewDraw("small", seed), func(panel int) float64 { return .3 * float64(4/panel) }}
		l = small.learned(t, 160, 4, 16)
		four, _ := small.round(0, 4)
		sixteen, _ := small.round(0, 16)
		if a, b := cooling(l, four), cooling(l, sixteen); a > b {
			t.Errorf("seed %q: four who are wrong together have the temperature %v, sixteen who are not have %v", seed, a, b)
		}
	}
}
