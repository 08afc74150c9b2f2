package plot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/lab/plot"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

// TestSVG checks the picture of a chart with everything in it.
func TestSVG(t *testing.T) {
	c := &plot.Chart{
		Title: `a <b> & "c"` + "\x01\xff", Subtitle: "sub", XLabel: "round", XMax: 100,
		Panels: []plot.Panel{{
			Title: "share", Percent: true, YMax: 1, Levels: []plot.Level{{Name: "promise", Color: plot.Amber, Y: .1}}, Marks: []plot.Mark{{X: 50, Name: "drift"}, {X: 51, Name: "hidden"}},
			Series: []plot.Series{{Name: "humans", Color: plot.Blue, X: []float64{0, 25, 50, 75, 100}, Y: []float64{1, .5, math.NaN(), .25, 0}, Low: []float64{.9, .4, 0, .2, 0}, High: []float64{1, .6, 1, .3, .1}}},
		}, {Title: "cost", Series: []plot.Series{{Name: "cost", Color: plot.Red, X: []float64{0, 100}, Y: []float64{3, 7}}}}},
	}
	svg := plot.SVG(c)
	wellFormed(t, svg)
	text := string(svg)
	for _, want := range []string{
		"a &lt;b&gt; &amp; &quot;c&quot;", ">sub<", ">50 %<", ">100 %<", ">8<", ">humans<", ">promise<", ">drift<", ">round<",
		`d="M64.0 100.0L257.0 195.0"`,  // up to the gap
		`d="M643.0 242.5L836.0 290.0"`, // and from there on
		"prefers-color-scheme:dark",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	if strings.Contains(text, ">hidden<") {
		t.Error("labels of marks cover each other")
	}
	if again := plot.SVG(c); string(again) != text {
		t.Error("the same chart gives other bytes")
	}
}

// TestDegenerate draws charts with nothing in them, and with values that cannot be
// shown.
func TestDegenerate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range []plot.Panel{
		{}, {Series: []plot.Series{{}}}, {Series: []plot.Series{{X: []float64{1}, Y: []float64{0}}}},
		{Series: []plot.Series{{X: []float64{1, 2}, Y: []float64{nan, nan}}}}, {Series: []plot.Series{{X: []float64{-5, 500}, Y: []float64{inf, -inf}}}},
		{Series: []plot.Series{{X: []float64{1}, Y: []float64{1e300}, Color: 99}}},
	} {
		svg := plot.SVG(&plot.Chart{XMax: 10, Panels: []plot.Panel{p}})
		wellFormed(t, svg)
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%+v gives\n%s", p, svg)
		}
	}
}
