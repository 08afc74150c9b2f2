// Package plot draws curves as SVG.
//
// The functions take values and return text. The same chart gives the same bytes
// on every computer: coordinates are written with one decimal.
package plot

import (
	"fmt"
	"math"
	"strings"
)

// A Chart is a sheet of panels, one below the other, that share their x axis.
type Chart struct {
	Title, Subtitle string
	XLabel          string
	XMax            float64 // the axis goes from 0; it has to be above 0
	Panels          []Panel
	Notes           []string // below the panels, one line each
}

// A Panel has an y axis of its own.
type Panel struct {
	Title   string
	Percent bool    // y is a share, shown in percent
	Unit    string  // behind the numbers of the axis
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
	panelGap    = 62.
	lineHeight  = 18.
)

const style = `<style>
.pl{--card:#fff;--border:#e2e8f0;--text:#0f172a;--muted:#5b6b82;--grid:#e8edf4;--blue:#4f46e5;--green:#15803d;--amber:#b45309;--red:#be123c;--violet:#7e22ce;--gray:#64748b;font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:12px}
@media (prefers-color-scheme:dark){.pl{--card:#0f172a;--border:#27344a;--text:#e6edf6;--muted:#9aabc2;--grid:#1f2c42;--blue:#a5b4fc;--green:#6ee7a0;--amber:#fbbf4d;--red:#fda4b4;--violet:#d8b4fe;--gray:#94a3b8}}
</style>
`

// A sheet is the text of a chart under way.
type sheet struct {
	strings.Builder
	c *Chart
}

// SVG returns the chart as a picture that needs nothing but itself.
func SVG(c *Chart) []byte {
	s := &sheet{c: c}
	height := top + float64(len(c.Panels))*(panelHeight+panelGap) + float64(len(c.Notes))*lineHeight + 8
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" class="pl" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n", width, height, width, height, escape(c.Title))
	s.WriteString(style)
	fmt.Fprintf(s, `<rect width="%.0f" height="%.0f" rx="10" style="fill:var(--card,#fff);stroke:var(--border,#e2e8f0)"/>`+"\n", width, height)
	s.text(24, 36, "", "font-size:18px;font-weight:700;"+fill("text"), c.Title)
	s.text(24, 56, "", fill("muted"), c.Subtitle)
	for i := range c.Panels {
		s.panel(&c.Panels[i], top+float64(i)*(panelHeight+panelGap)+16)
	}
	for i, n := range c.Notes {
		s.text(24, top+float64(len(c.Panels))*(panelHeight+panelGap)+float64(i)*lineHeight+4, "", fill("muted"), n)
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}

// fallback gives a colour to programs that know no variables.
var fallback = map[string]string{
	"text": "#0f172a", "muted": "#5b6b82", "grid": "#e8edf4", "blue": "#4f46e5", "green": "#15803d", "amber": "#b45309", "red": "#be123c", "violet": "#7e22ce", "gray": "#64748b",
}

func paint(name string) string { return fmt.Sprintf("var(--%s,%s)", name, fallback[name]) }

func fill(name string) string { return "fill:" + paint(name) }

func (c Color) name() string { return colorNames[max(0, min(int(c), len(colorNames)-1))] }

func (s *sheet) text(x, y float64, anchor, style, text string) {
	if text == "" {
		return
	}
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f"%s style="%s">%s</text>`+"\n", x, y, anchor, style, escape(text))
}

func (s *sheet) line(x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" style="%s"/>`+"\n", x1, y1, x2, y2, style)
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
	s.text(left, y-14, "", "font-weight:700;"+fill("text"), p.Title)
	s.grid(p, f)
	for _, m := range p.Marks {
		s.line(f.px(m.X), y, f.px(m.X), y+panelHeight, "stroke-dasharray:2 3;stroke:"+paint("muted"))
		s.text(f.px(m.X)+4, y+11, "", "font-size:10px;"+fill("muted"), m.Name)
	}
	for _, l := range p.Levels {
		s.line(left, f.py(l.Y), width-right, f.py(l.Y), "stroke-width:1.5;stroke-dasharray:6 4;stroke:"+paint(l.Color.name()))
	}
	for i := range p.Series {
		s.series(&p.Series[i], f)
	}
	s.legend(p, y-14)
}

// top returns the end of the y axis: a round number.
func (p *Panel) top() float64 {
	if p.YMax > 0 {
		return p.YMax
	}
	most := 0.
	for i := range p.Series {
		for _, list := range [][]float64{p.Series[i].Y, p.Series[i].High} {
			for _, y := range list {
				if !math.IsNaN(y) && !math.IsInf(y, 0) {
					most = math.Max(most, y)
				}
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

// ceil returns the next number of 1, 2, 4, 5 or 10 times a power of ten.
func ceil(f float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(f)))
	for _, step := range []float64{1, 2, 4, 5} {
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
		s.line(left, y, width-right, y, "stroke:"+paint("grid"))
		s.text(left-8, y+4, "end", fill("muted"), p.number(share*f.yMax))
		x := f.px(share * f.xMax)
		s.line(x, f.y+panelHeight, x, f.y+panelHeight+4, "stroke:"+paint("muted"))
		s.text(x, f.y+panelHeight+17, "middle", fill("muted"), trim(share*f.xMax))
	}
	s.text(width-right, f.y+panelHeight+32, "end", "font-size:11px;"+fill("muted"), s.c.XLabel)
}

func (p *Panel) number(v float64) string {
	if p.Percent {
		return trim(100*v) + " %"
	}
	return trim(v) + p.Unit
}

// trim writes a number with as few digits as it needs, six at most.
func trim(v float64) string { return fmt.Sprintf("%.4g", v) }

func (s *sheet) series(r *Series, f frame) {
	color := paint(r.Color.name())
	if r.Low != nil && r.High != nil {
		fmt.Fprintf(s, `<path d="%s" style="fill:%s;opacity:.14"/>`+"\n", band(r, f), color)
	}
	for _, path := range paths(r, f) {
		fmt.Fprintf(s, `<path d="%s" style="fill:none;stroke:%s;stroke-width:2;stroke-linejoin:round;stroke-linecap:round"/>`+"\n", path, color)
	}
	for i := range r.X {
		if !math.IsNaN(r.Y[i]) && len(r.X) <= 60 {
			fmt.Fprintf(s, `<circle cx="%.1f" cy="%.1f" r="2.4" style="fill:%s"/>`+"\n", f.px(r.X[i]), f.py(r.Y[i]), color)
		}
	}
}

// paths returns the lines of a curve: one for each stretch without a gap.
func paths(r *Series, f frame) (list []string) {
	var b strings.Builder
	for i := range r.X {
		if math.IsNaN(r.Y[i]) {
			if b.Len() > 0 {
				list = append(list, b.String())
				b.Reset()
			}
			continue
		}
		command := "L"
		if b.Len() == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, f.px(r.X[i]), f.py(r.Y[i]))
	}
	if b.Len() > 0 {
		list = append(list, b.String())
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
		x -= 6.2 * float64(len([]rune(name)))
		s.text(x, y, "", fill("text"), name)
		x -= 26
		s.line(x, y-4, x+18, y-4, "stroke-width:2.5;"+dash+"stroke:"+paint(c.name()))
		x -= 14
	}
	for i := len(p.Levels) - 1; i >= 0; i-- {
		entry(p.Levels[i].Name, p.Levels[i].Color, "stroke-dasharray:6 4;")
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
