// Package plot draws curves as SVG.
//
// The functions take values and return text. The same chart gives the same bytes
// on every computer: coordinates are written with one decimal.
package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Chart is a sheet of panels, one below the other, that share their x axis.
type Chart struct {
	Title, Subtitle string
	XLabel          string
	XMax            float64 // the axis goes from 0; it has to be above 0
	Panels          []Panel
}

// A Panel has an y axis of its own.
type Panel struct {
	Title   string
	Percent bool    // y is a share, shown in percent
	YMax    float64 // 0: as much as is needed
	Series  []Series
	Levels  []Level
	Marks   []Mark
}

// A Series is one curve. Points that are NaN leave a gap.
type Series struct {
	Name      string
	Color     Color
	X, Y      []float64
	Low, High []float64 // a band around the curve; nil for none
}

// A Level is a horizontal line, such as a promise.
type Level struct {
	Name  string
	Color Color
	Y     float64
}

// A Mark is a moment at which something happened.
type Mark struct {
	X    float64
	Name string
}

// A Color is one of a few that go with each other, on light and dark paper.
type Color int

// The colours.
const (
	Blue Color = iota
	Green
	Amber
	Red
	Violet
	Gray
)

var colorNames = [...]string{"blue", "green", "amber", "red", "violet", "gray"}

// The measures of the sheet.
const (
	width       = 860.
	left        = 64.
	right       = 24.
	top         = 84.
	panelHeight = 190.
	panelGap    = 68.
)

// The colours by name, on light and on dark paper.
var palette = []struct{ name, light, dark string }{
	{"text", "#0f172a", "#e6edf6"}, {"muted", "#5b6b82", "#9aabc2"}, {"grid", "#e8edf4", "#1f2c42"},
	{"blue", "#4f46e5", "#a5b4fc"}, {"green", "#15803d", "#6ee7a0"}, {"amber", "#b45309", "#fbbf4d"},
	{"red", "#be123c", "#fda4b4"}, {"violet", "#7e22ce", "#d8b4fe"}, {"gray", "#64748b", "#94a3b8"},
}

// style is the style sheet: for each colour a class that fills and one that strokes.
func style() string {
	var light, dark strings.Builder
	light.WriteString(".pl-card{fill:#ffffff;stroke:#e2e8f0}")
	dark.WriteString(".pl-card{fill:#0f172a;stroke:#27344a}")
	for _, c := range palette {
		fmt.Fprintf(&light, ".pl-%s{fill:%s}.pl-line-%s{fill:none;stroke:%s}", c.name, c.light, c.name, c.light)
		fmt.Fprintf(&dark, ".pl-%s{fill:%s}.pl-line-%s{stroke:%s}", c.name, c.dark, c.name, c.dark)
	}
	return "<style>.pl{font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:12px}" + light.String() +
		"@media (prefers-color-scheme:dark){" + dark.String() + "}</style>\n"
}

// A sheet is the text of a chart under way.
type sheet struct {
	strings.Builder
	c *Chart
}

// SVG returns the chart as a picture that needs nothing but itself.
func SVG(c *Chart) []byte {
	s := &sheet{c: c}
	height := top + float64(len(c.Panels))*(panelHeight+panelGap) + 8
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" class="pl" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n", width, height, width, height, escape(c.Title))
	s.WriteString(style())
	fmt.Fprintf(s, `<rect width="%.0f" height="%.0f" rx="10" class="pl-card"/>`+"\n", width, height)
	s.text(24, 36, "text", ` font-size="18" font-weight="700"`, c.Title)
	s.text(24, 56, "muted", "", c.Subtitle)
	for i := range c.Panels {
		s.panel(&c.Panels[i], top+float64(i)*(panelHeight+panelGap)+16)
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}

func (c Color) name() string { return colorNames[max(0, min(int(c), len(colorNames)-1))] }

// text writes a line of text. color is a name of the palette, more further
// attributes.
func (s *sheet) text(x, y float64, color, more, text string) {
	if text != "" {
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="pl-%s"%s>%s</text>`+"\n", x, y, color, more, escape(text))
	}
}

func (s *sheet) line(x1, y1, x2, y2 float64, attributes string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, attributes)
}

// A frame turns values into places.
type frame struct{ y, xMax, yMax float64 }

func (f frame) px(x float64) float64 {
	return left + math.Min(1, math.Max(0, x/f.xMax))*(width-left-right)
}

func (f frame) py(y float64) float64 {
	return f.y + panelHeight - math.Min(1, math.Max(0, y/f.yMax))*panelHeight
}

func (s *sheet) panel(p *Panel, y float64) {
	f := frame{y, s.c.XMax, p.top()}
	s.text(left, y-18, "text", ` font-weight="700"`, p.Title)
	s.grid(p, f)
	labelled := 0. // where the last label ends
	for _, m := range p.Marks {
		s.line(f.px(m.X), y, f.px(m.X), y+panelHeight, `class="pl-line-muted" stroke-dasharray="2 3"`)
		if x := f.px(m.X) - 4; x > labelled {
			s.text(x, y-4, "muted", ` font-size="10"`, m.Name)
			labelled = x + 5.6*float64(len(m.Name)) + 8
		}
	}
	for _, l := range p.Levels {
		s.line(left, f.py(l.Y), width-right, f.py(l.Y), `stroke-width="1.5" stroke-dasharray="6 4" class="pl-line-`+l.Color.name()+`"`)
	}
	for i := range p.Series {
		s.series(&p.Series[i], f)
	}
	s.legend(p, y-18)
}

// top returns the end of the y axis: a round number.
func (p *Panel) top() float64 {
	if p.YMax > 0 {
		return p.YMax
	}
	most := 0.
	for i := range p.Series {
		for _, y := range slices.Concat(p.Series[i].Y, p.Series[i].High) {
			if !math.IsNaN(y) && !math.IsInf(y, 0) {
				most = max(most, y)
			}
		}
	}
	for _, l := range p.Levels {
		most = math.Max(most, l.Y*1.25)
	}
	if most <= 0 {
		return 1
	}
	return ceil(most)
}

// ceil returns the next number of 1, 2, 4, 8 or 10 times a power of ten.
func ceil(f float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(f)))
	for _, step := range []float64{1, 2, 4, 8} {
		if f <= step*power*1.0000001 {
			return step * power
		}
	}
	return 10 * power
}

// ticks is into how many parts an axis is divided.
const ticks = 4

func (s *sheet) grid(p *Panel, f frame) {
	for i := range ticks + 1 {
		share := float64(i) / ticks
		y := f.py(share * f.yMax)
		s.line(left, y, width-right, y, `class="pl-line-grid"`)
		s.text(left-8, y+4, "muted", ` text-anchor="end"`, p.number(share*f.yMax))
		x := f.px(share * f.xMax)
		s.line(x, f.y+panelHeight, x, f.y+panelHeight+4, `class="pl-line-muted"`)
		s.text(x, f.y+panelHeight+17, "muted", ` text-anchor="middle"`, trim(share*f.xMax))
	}
	s.text(width-right, f.y+panelHeight+32, "muted", ` text-anchor="end" font-size="11"`, s.c.XLabel)
}

func (p *Panel) number(v float64) string {
	if p.Percent {
		return trim(100*v) + " %"
	}
	return trim(v)
}

// trim writes a number with as few digits as it needs, six at most.
func trim(v float64) string { return fmt.Sprintf("%.4g", v) }

func (s *sheet) series(r *Series, f frame) {
	color := r.Color.name()
	if r.Low != nil && r.High != nil {
		fmt.Fprintf(s, `<path d="%s" class="pl-%s" opacity=".14"/>`+"\n", band(r, f), color)
	}
	for _, path := range paths(r, f) {
		fmt.Fprintf(s, `<path d="%s" class="pl-line-%s" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>`+"\n", path, color)
	}
	for i := range r.X {
		if !math.IsNaN(r.Y[i]) && len(r.X) <= 60 {
			fmt.Fprintf(s, `<circle cx="%.1f" cy="%.1f" r="2.4" class="pl-%s"/>`+"\n", f.px(r.X[i]), f.py(r.Y[i]), color)
		}
	}
}

// paths returns the lines of a curve: one for each stretch without a gap.
func paths(r *Series, f frame) (list []string) {
	gap := true
	for i := range r.X {
		switch at := fmt.Sprintf("%.1f %.1f", f.px(r.X[i]), f.py(r.Y[i])); {
		case math.IsNaN(r.Y[i]):
			gap = true
		case gap:
			list, gap = append(list, "M"+at), false
		default:
			list[len(list)-1] += "L" + at
		}
	}
	return list
}

// band returns the outline of the area between Low and High.
func band(r *Series, f frame) string {
	var b strings.Builder
	for i := range r.X {
		fmt.Fprintf(&b, "%s%.1f %.1f", []string{"M", "L"}[min(i, 1)], f.px(r.X[i]), f.py(r.High[i]))
	}
	for i := len(r.X) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "L%.1f %.1f", f.px(r.X[i]), f.py(r.Low[i]))
	}
	return b.String() + "Z"
}

// legend names the curves, from the right edge.
func (s *sheet) legend(p *Panel, y float64) {
	x := width - right
	entry := func(name string, c Color, dash string) {
		if name == "" {
			return
		}
		x -= 6.9 * float64(len([]rune(name)))
		s.text(x, y, "text", "", name)
		x -= 26
		s.line(x, y-4, x+18, y-4, `stroke-width="2.5" `+dash+`class="pl-line-`+c.name()+`"`)
		x -= 14
	}
	for i := len(p.Levels) - 1; i >= 0; i-- {
		entry(p.Levels[i].Name, p.Levels[i].Color, `stroke-dasharray="6 4" `)
	}
	for i := len(p.Series) - 1; i >= 0; i-- {
		entry(p.Series[i].Name, p.Series[i].Color, "")
	}
}

// escape makes a text fit for XML; what XML cannot hold is left out.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(strings.ToValidUTF8(s, "�"))
}
