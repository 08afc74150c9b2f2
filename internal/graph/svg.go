package graph

import (
	"fmt"

	"github.com/dialai/dialai/machine"
)

// A picture is made in this order: scene (what is to be shown of the machine) decides colours
// and texts, label measures them, layout gives every state and edge its place: that is the
// Drawing, which whoever draws for themselves gets, too. svg_draw draws it, svg_panel the round
// beside it, and svg_legend explains only what the picture has. Everything is measured before
// anything is placed, since the boxes make the layout and the layout makes the card. Nothing
// depends on a font that has to be there: text.go estimates widths, rather too large than too
// small.

// Sizes of the card, in pixels.
const (
	pad        = 28
	header     = 64 // title and subtitle
	leastWidth = 440
	goodWidth  = 960 // a README shows this much without making letters tiny
	sidePanel  = 290
	betweenGap = 24
)

// SVG returns a picture of m, a card of its own that stands anywhere, in light
// and in dark mode: no script, no font and no link. Long names are wrapped or
// cut; their full text is in a <title>. A machine with too many states or
// transitions for an orderly drawing is drawn as a grid without labels.
func SVG(m *machine.Machine, v View) []byte {
	d := newCard(newScene(m, v))
	var c canvas
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="%s">`,
		d.size.w, d.size.h, d.size.w, d.size.h, fontFamily)
	c.add("<title>%s</title>", escapeXML(clean(m.Name())))
	c.add("<desc>%s</desc>", escapeXML(d.describe()))
	c.WriteString(style(d.noted()))
	c.add(`<rect class="dg-card" x="0.5" y="0.5" width="%d" height="%d" rx="14"/>`, d.size.w-1, d.size.h-1)
	d.header(&c)
	c.add(`<g transform="translate(%d %d)">`, d.diagram.x, d.diagram.y)
	d.edges(&c)
	d.states(&c)
	c.close()
	if d.panel != nil {
		d.panel.draw(&c, d.panelAt)
	}
	d.legend.draw(&c, pad, d.size.h-pad-d.legend.h+4)
	c.add("</svg>")
	return c.Bytes()
}

// A card is a scene with its drawing and the place of everything around that.
type card struct {
	*scene
	*Drawing
	size     size
	tone     tone
	diagram  point // where the drawing begins
	panel    *panel
	panelAt  Box
	legend   *legend
	title    string
	subtitle string
}

func newCard(s *scene) *card {
	d := &card{scene: s, Drawing: s.draw(), tone: toneOf(s.view.Status)}
	d.title = titleFont.cut(clean(s.m.Name()), 520)
	d.subtitle = s.subtitle()
	d.legend = &legend{items: d.Legend}
	d.compose()
	return d
}

// compose puts diagram, panel and legend onto the card: the panel beside the
// diagram if the card does not become too wide by that, else below.
func (d *card) compose() {
	head := titleFont.width(d.title)
	if d.tone.words != "" {
		head += 40 + labelFont.width(d.tone.words)*17/16
	}
	content := max(d.Width, head, leastWidth-2*pad)
	bodyHeight := d.Height
	top := pad + header
	room := content // for the diagram
	if r := d.view.Round; r != nil && d.Width+betweenGap+sidePanel <= goodWidth {
		d.panel = d.newPanel(sidePanel)
		room = max(d.Width, content-betweenGap-sidePanel)
		content = room + betweenGap + sidePanel
		bodyHeight = max(bodyHeight, d.panel.h)
		d.panelAt = Box{pad + content - sidePanel, top, sidePanel, d.panel.h}
	} else if r != nil {
		d.panel = d.newPanel(content)
		d.panelAt = Box{pad, top + bodyHeight + betweenGap, content, d.panel.h}
		bodyHeight += betweenGap + d.panel.h
	}
	d.diagram = point{pad + (room-d.Width)/2, top}
	if d.panel == nil || room < content {
		d.diagram.y += (bodyHeight - d.Height) / 2
	}
	d.legend.arrange(content)
	d.size = size{content + 2*pad, top + bodyHeight + betweenGap + d.legend.h + pad}
}

func (d *card) header(c *canvas) {
	c.text("title", pad, pad+18, d.title)
	c.text("sub", pad, pad+40, d.subtitle)
	if d.tone.words == "" || d.m.State(d.view.State) == nil {
		return
	}
	w := labelFont.width(d.tone.words)*17/16 + 24
	x := d.size.w - pad - w
	c.open(d.tone.class, "")
	c.rect("chip", Box{x, pad - 2, w, 26}, 13)
	c.text("chiptext", x+w/2, pad+15, d.tone.words)
	c.close()
}

// subtitle says in a few words what is drawn.
func (s *scene) subtitle() string {
	if s.m.State(s.view.State) == nil {
		return s.counts()
	}
	state := textFont.cut(clean(s.view.State), 220)
	if s.steps == 0 {
		return fmt.Sprintf("now in “%s”, no step taken yet", state)
	}
	return fmt.Sprintf("now in “%s”, after %s", state, plural(s.steps, "step"))
}

func (s *scene) counts() string {
	n := 0
	for i := range s.edges {
		n += len(s.edges[i].rows)
	}
	return plural(len(s.marks), "state") + ", " + plural(n, "transition")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// describe says in words what the picture shows, for those who do not see it.
func (d *card) describe() string {
	text := fmt.Sprintf("State machine with %s. It begins in %s; its goal is %s.",
		d.counts(), clean(d.m.Initial().Name), clean(d.m.Goal().Name))
	if d.m.State(d.view.State) != nil {
		text += fmt.Sprintf(" A session is in %s after %s", clean(d.view.State), plural(d.steps, "step"))
		if d.tone.words != "" {
			text += ": " + d.tone.words
		}
		text += "."
	}
	if r := d.view.Round; r != nil && r.Verdict != "" {
		text += " Verdict of the round: " + flat(r.Verdict) + "."
	}
	return text
}
