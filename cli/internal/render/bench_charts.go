package render

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/lab/plot"
	"github.com/dialai/dialai/internal/lab/trial"
)

// The charts of dialai bench decisions. There are three for each set of data: accuracy by
// human decisions; how often claims are right, by the probability they come with; and how
// often the surest questions are wrong, by how many these are. The last two are of the
// largest number of decisions that was measured. A page shows the charts of all sets, one
// set a row: pictures beside it, no script, nothing from a network.

// A Picture is a chart and the name of its file.
type Picture struct {
	File string
	SVG  []byte
}

// chartKinds end the names of the files, in the order of the page.
var chartKinds = []string{"learning", "reliability", "risk"}

// mostCurves is how many strategies a panel shows beside bayes, which each shows.
const mostCurves = 4

// BenchCharts draws what was measured on a set.
func BenchCharts(set string, r trial.Report, d *trial.Data) []Picture {
	last := 0
	for _, a := range r.Accuracies {
		last = max(last, a.N)
	}
	about := fmt.Sprintf("%s, %s", Plural(len(d.Questions), "question"), Plural(len(d.Workers), "worker"))
	after := fmt.Sprintf("%s, after %s", about, Plural(last, "human decision"))
	learning := benchPanels(r, "Accuracy", func(name string) (s plot.Series) {
		for _, a := range r.Accuracies {
			if a.Strategy == name {
				s.X, s.Y = append(s.X, float64(a.N)), append(s.Y, a.Accuracy)
			}
		}
		return s
	})
	reliability := benchPanels(r, "Right", func(name string) (s plot.Series) {
		for _, b := range accuracyOf(r, name, last).Bins {
			s.X, s.Y = append(s.X, b.P), append(s.Y, b.Right)
		}
		return s
	})
	for i := range reliability {
		reliability[i].Series = append(reliability[i].Series, plot.Series{Name: "as said", Color: plot.Gray, X: []float64{0, 1}, Y: []float64{0, 1}})
	}
	risk := benchPanels(r, "Wrong", func(name string) (s plot.Series) {
		for _, x := range accuracyOf(r, name, last).Risks {
			s.X, s.Y = append(s.X, x.Coverage), append(s.Y, x.Error)
		}
		return s
	})
	for i := range risk {
		risk[i].YMax = 0
	}
	return []Picture{
		{set + "-learning.svg", plot.SVG(&plot.Chart{Title: set + ": how strategies learn", Subtitle: about + ": accuracy on the others", XLabel: "human decisions learned from", XMax: math.Max(1, float64(last)), Panels: learning})},
		{set + "-reliability.svg", plot.SVG(&plot.Chart{Title: set + ": whether probabilities mean what they say", Subtitle: after + ": above the diagonal a strategy is too modest, below it too sure", XLabel: "probability that it claims", XMax: 1, Panels: reliability})},
		{set + "-risk.svg", plot.SVG(&plot.Chart{Title: set + ": how often the surest answers are wrong", Subtitle: after + ": the lower and the further right the better", XLabel: "share of the questions, the surest first", XMax: 1, Panels: risk})},
	}
}

func accuracyOf(r trial.Report, name string, n int) (a trial.Accuracy) {
	if i := slices.IndexFunc(r.Accuracies, func(a trial.Accuracy) bool { return a.Strategy == name && a.N == n }); i >= 0 {
		return r.Accuracies[i]
	}
	return a
}

// benchPanels makes panels of a few strategies each, and of bayes in each, if it was measured.
func benchPanels(r trial.Report, title string, curve func(name string) plot.Series) []plot.Panel {
	var names, bayes []string
	for _, a := range r.Accuracies {
		switch {
		case slices.Contains(names, a.Strategy) || slices.Contains(bayes, a.Strategy):
		case a.Strategy == "bayes":
			bayes = append(bayes, a.Strategy)
		default:
			names = append(names, a.Strategy)
		}
	}
	groups := slices.Collect(slices.Chunk(names, mostCurves))
	if len(groups) == 0 {
		groups = [][]string{nil}
	}
	var panels []plot.Panel
	for _, group := range groups {
		p := plot.Panel{Title: title, Percent: true, YMax: 1}
		for i, name := range slices.Concat(bayes, group) {
			s := curve(name)
			s.Name, s.Color = name, plot.Color(i)
			p.Series = append(p.Series, s)
		}
		panels = append(panels, p)
	}
	return panels
}

var benchPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>dialai bench decisions</title>
<style>
body { font-family: system-ui, sans-serif; margin: 1rem; background: Canvas; color: CanvasText; color-scheme: light dark; }
.set { display: grid; grid-template-columns: repeat(3, minmax(20rem, 1fr)); gap: 1rem; overflow-x: auto; }
.set img { width: 100%; }
</style>
<h1>Strategies on data whose truth is known</h1>
<p>Each row is a set. On the left: how accuracy grows with what humans have decided. In the middle:
of the answers that a strategy gives a probability, how many are right; on the diagonal it means
what it says. On the right: of the questions that it is surest of, how many are wrong.</p>
{{range .}}<h2>{{.Set}}</h2>
<div class="set">
{{range .Files}}<img src="{{.}}" alt="{{.}}">
{{end}}</div>
{{end}}</html>
`))

// BenchPage is the page of the sets of which all charts are among the names of files.
func BenchPage(names []string) ([]byte, error) {
	type row struct {
		Set   string
		Files []string
	}
	var rows []row
	for _, name := range names {
		set, is := strings.CutSuffix(name, "-"+chartKinds[0]+".svg")
		if !is {
			continue
		}
		r := row{Set: set}
		for _, kind := range chartKinds {
			if file := set + "-" + kind + ".svg"; slices.Contains(names, file) {
				r.Files = append(r.Files, "./"+file) // a set may be named like an address
			}
		}
		rows = append(rows, r)
	}
	var b bytes.Buffer
	err := benchPage.Execute(&b, rows)
	return b.Bytes(), err
}
