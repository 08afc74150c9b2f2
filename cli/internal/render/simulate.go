package render

import (
	"bufio"
	"fmt"
	"math"

	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/plot"
	"github.com/dialai/dialai/internal/lab/simulate"
)

// Simulation prints what a simulation came to.
func (st Style) Simulation(out *bufio.Writer, r *simulate.Report) error {
	if st.JSON {
		return Lines(out, jobs.SimulationLines(r))
	}
	s := &r.Summary
	if !st.Quiet {
		fmt.Fprintf(out, "Machine:       %s\n", Clean(r.Machine))
		fmt.Fprintf(out, "Rounds:        %d in each of %s, seed %d\n\n", s.Rounds, Plural(s.Runs, "run"), s.Seed)
		if err := printCurve(out, r); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if err := printVoters(out, r); err != nil {
			return err
		}
		printEvents(out, r)
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "Accuracy:      %s of the rounds ended as they should\n", percent(s.Accuracy))
	fmt.Fprintf(out, "Automatic:     %s\n", percent(s.Automatic))
	fmt.Fprintf(out, "Error:         %s\n", promised(s))
	fmt.Fprintf(out, "Humans asked:  %s, by quarter %s, %s, %s, %s\n", percent(s.Humans), percent(s.Quarters[0]), percent(s.Quarters[1]), percent(s.Quarters[2]), percent(s.Quarters[3]))
	fmt.Fprintf(out, "Human minutes: %v a run, looks at closed rounds included\n", s.HumanMinutes)
	fmt.Fprintf(out, "Cost:          $%s a run\n", s.CostUSD)
	if s.NEff > 0 {
		fmt.Fprintf(out, "Voters:        %d, effective %.1f\n", s.Voters, s.NEff)
	}
	if s.Promoted+s.Demoted > 0 {
		fmt.Fprintf(out, "Champions:     %s, %s\n", Plural(s.Promoted, "promotion"), Plural(s.Demoted, "demotion"))
	}
	return nil
}

// promised sets the error beside the promise.
func promised(s *simulate.Summary) string {
	text := Either(s.Automatic == 0, "nothing was decided automatically", percent(s.Error)+" of the automatic decisions") +
		When(s.Runs > 1, fmt.Sprintf(" (%s to %s of a run)", percent(s.RunError[0]), percent(s.RunError[1])))
	if p := s.Promise; p != nil {
		text += fmt.Sprintf("; promised are at most %s with confidence %s", percent(p.MaxError.Float()), p.Confidence)
	}
	return text
}

// mostPoints is how many rows of the learning curve people are shown.
const mostPoints = 10

func printCurve(out *bufio.Writer, r *simulate.Report) error {
	rows := [][]string{{"ROUNDS", "HUMANS", "AUTOMATIC", "ACCURACY", "ERROR", "ASKED", "COST USD"}}
	step := (len(r.Curve) + mostPoints - 1) / mostPoints
	for i := 0; i < len(r.Curve); i += step {
		p, last := r.Curve[i], r.Curve[min(i+step, len(r.Curve))-1]
		p.To = last.To
		if step > 1 {
			p = between(r.Curve[i:min(i+step, len(r.Curve))])
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d to %d", p.From, p.To), percent(p.Humans), percent(p.Automatic), percent(p.Accuracy), percent(p.Error),
			fmt.Sprintf("%.2f", p.Asked), fmt.Sprintf("%.4g", p.CostUSD),
		})
	}
	return Table(out, rows)
}

// between joins neighbouring points of a curve.
func between(list []simulate.Point) (sum simulate.Point) {
	n, automatic := 0., 0.
	sum.From, sum.To = list[0].From, list[len(list)-1].To
	for _, p := range list {
		w := float64(p.To - p.From + 1)
		n, automatic = n+w, automatic+w*p.Automatic
		sum.Humans, sum.Automatic, sum.Accuracy = sum.Humans+w*p.Humans, sum.Automatic+w*p.Automatic, sum.Accuracy+w*p.Accuracy
		sum.Error += w * p.Automatic * p.Error
		sum.Asked, sum.CostUSD = sum.Asked+w*p.Asked, sum.CostUSD+w*p.CostUSD
	}
	sum.Humans, sum.Automatic, sum.Accuracy = sum.Humans/n, sum.Automatic/n, sum.Accuracy/n
	sum.Asked, sum.CostUSD = sum.Asked/n, sum.CostUSD/n
	if automatic > 0 {
		sum.Error /= automatic
	}
	return sum
}

func printVoters(out *bufio.Writer, r *simulate.Report) error {
	return table(out, []string{"SPECIALIST", "TRUE P", "OBSERVED", "TRUST", "ASKED", "COST USD", "GROUP"}, r.Voters, func(v simulate.Record) []string {
		return []string{v.ID, fmt.Sprintf("%.3f", v.TrueP), fmt.Sprintf("%.3f", v.Observed), v.Trust.Text2(), percent(v.Share), v.CostUSD.String(), v.Group}
	})
}

// mostEvents is how many events people are shown.
const mostEvents = 20

func printEvents(out *bufio.Writer, r *simulate.Report) {
	for i, e := range r.Events {
		if i == 0 {
			fmt.Fprintln(out, "\nEvents of the first run:")
		}
		if i == mostEvents {
			fmt.Fprintf(out, "  and %d more: --json lists them all\n", len(r.Events)-i)
			return
		}
		fmt.Fprintf(out, "  round %d: %s%s\n", e.Round, e.What, aboutEvent(&e))
	}
}

func aboutEvent(e *simulate.Event) string {
	return When(e.State != "", " in "+Clean(e.State)) +
		When(e.Specialist != "", fmt.Sprintf(", %s, whose true p is %.3f", Clean(e.Specialist), e.TrueP)) +
		When(e.Why != "", " ("+Clean(e.Why)+")") +
		When(e.Tau > 0, ", tau "+e.Tau.String())
}

// Curves draws the learning curves.
func Curves(r *simulate.Report) []byte {
	s := &r.Summary
	x := make([]float64, len(r.Curve))
	list := func(of func(p *simulate.Point) float64) []float64 {
		y := make([]float64, len(r.Curve))
		for i := range y {
			y[i] = of(&r.Curve[i])
		}
		return y
	}
	for i, p := range r.Curve {
		x[i] = float64(p.From+p.To) / 2
	}
	share := plot.Panel{Title: "Who decides", Percent: true, YMax: 1, Series: []plot.Series{
		{Name: "humans asked", Color: plot.Blue, X: x, Y: list(func(p *simulate.Point) float64 { return p.Humans })},
		{Name: "accuracy", Color: plot.Green, X: x, Y: list(func(p *simulate.Point) float64 { return p.Accuracy })},
	}, Marks: marks(r)}
	if s.Runs > 1 {
		share.Series[0].Low = list(func(p *simulate.Point) float64 { return p.HumansLow })
		share.Series[0].High = list(func(p *simulate.Point) float64 { return p.HumansHigh })
	}
	wrong := plot.Panel{Title: "Error of automatic decisions", Percent: true, Series: []plot.Series{{Name: "error", Color: plot.Red, X: x, Y: list(func(p *simulate.Point) float64 {
		if p.Automatic == 0 {
			return math.NaN()
		}
		return p.Error
	})}}}
	if s.Promise != nil {
		wrong.Levels = []plot.Level{{Name: "promise", Color: plot.Amber, Y: s.Promise.MaxError.Float()}}
	}
	cost := plot.Panel{Title: "Voters asked per round", Series: []plot.Series{
		{Name: "asked", Color: plot.Violet, X: x, Y: list(func(p *simulate.Point) float64 { return p.Asked })},
		{Name: "effective", Color: plot.Gray, X: x, Y: list(func(p *simulate.Point) float64 { return p.NEff })},
	}}
	return plot.SVG(&plot.Chart{
		Title:    r.Machine,
		Subtitle: fmt.Sprintf("%d simulated rounds, %s, seed %d: accuracy %s, automatic %s, error %s, $%s a run", s.Rounds, Plural(s.Runs, "run"), s.Seed, percent(s.Accuracy), percent(s.Automatic), percent(s.Error), s.CostUSD),
		XLabel:   "round", XMax: float64(s.Rounds), Panels: []plot.Panel{share, wrong, cost},
	})
}

// mostMarks is how many events are marked in a plot.
const mostMarks = 8

func marks(r *simulate.Report) (list []plot.Mark) {
	for _, e := range r.Events {
		if len(list) < mostMarks && e.Tau == 0 {
			list = append(list, plot.Mark{X: float64(e.Round), Name: e.What})
		}
	}
	return list
}
