package graph

import (
	"fmt"
	"strconv"
)

// The panel beside or below a machine shows one round: what was asked, who proposed what with
// which weight, and the verdict. Proposals stand in as many columns as fit, as even as
// possible; beyond twelve the rest is counted.

// A panel shows a round: what was asked, what was proposed, what came of it.
type panel struct {
	size
	shown   []Proposal
	more    int // proposals that are not shown
	round   *Round
	heading string
	prompt  []string
	verdict []string
	columns int // of proposals
	rows    int
	most    int64 // the highest weight, at least 1, in billionths
}

const (
	panelPad   = 18
	panelLine  = 18
	cellHeight = 58
	cellWidth  = 180
	cellGap    = 24

	mostProposals = 12
)

// newPanel returns the panel of the scene's round, of the given width.
func (s *scene) newPanel(width int) *panel {
	r := s.view.Round
	inner := width - 2*panelPad
	p := &panel{round: r, heading: "Round in progress", most: 1e9}
	if r.Number > 0 {
		p.heading = "Round " + strconv.Itoa(r.Number)
	}
	if r.Prompt != "" {
		p.prompt = textFont.wrap(flat(r.Prompt), inner, 4)
	}
	if r.Verdict != "" {
		p.verdict = font{13, true}.wrap(flat(r.Verdict), inner-iconRoom-4, 4)
	}
	p.shown = r.Proposals[:min(len(r.Proposals), mostProposals)]
	p.more = len(r.Proposals) - len(p.shown)
	n := len(p.shown)
	p.columns = max(1, min((inner+cellGap)/(cellWidth+cellGap), n))
	p.rows = (n + p.columns - 1) / p.columns
	if n > 0 {
		p.columns = (n + p.rows - 1) / p.rows // as even as possible
	}
	for _, x := range p.shown {
		p.most = max(p.most, int64(x.Weight))
	}
	p.w, p.h = width, p.height()
	return p
}

func (p *panel) height() int {
	h := panelPad + 14 + panelPad // heading
	if len(p.prompt) > 0 {
		h += 6 + panelLine*len(p.prompt)
	}
	if p.rows > 0 {
		h += 40 + p.rows*cellHeight
	}
	if len(p.verdict) > 0 {
		h += 14 + panelLine*len(p.verdict)
	}
	return h
}

// draw draws the panel into a box at least as high as the panel.
func (p *panel) draw(c *canvas, box Box) {
	c.open("dg-round", "")
	c.rect("panel", box, 10)
	x, y := box.X+panelPad, box.Y+panelPad+10
	c.text("small", x, y, p.heading)
	y += 6
	for _, line := range p.prompt {
		y += panelLine
		c.text("text", x, y, line)
	}
	if len(p.shown) > 0 {
		y += 30
		c.text("small", x, y, p.caption())
		y += 10
	}
	width := (p.w - 2*panelPad - (p.columns-1)*cellGap) / p.columns
	for i := range p.shown {
		row, column := i/p.columns, i%p.columns
		p.proposal(c, i, Box{x + column*(width+cellGap), y + row*cellHeight, width, cellHeight})
	}
	if len(p.verdict) > 0 {
		p.drawVerdict(c, x, box.Y+p.h-panelPad-panelLine*len(p.verdict)+4, p.w-2*panelPad)
	}
	c.close()
}

func (p *panel) caption() string {
	if p.more > 0 {
		return fmt.Sprintf("Proposals, the first %d of %d", len(p.shown), len(p.shown)+p.more)
	}
	return "Proposals"
}

// proposal draws who proposed what, and a bar for the weight.
func (p *panel) proposal(c *canvas, i int, at Box) {
	x := &p.shown[i]
	class, title := "dg-proposal", clean(x.Specialist)+" proposed "+clean(x.Transition)
	switch {
	case x.Transition == "":
		title = clean(x.Specialist) + " has not answered yet"
	case x.Transition == p.round.Winner:
		class += " dg-won"
	}
	c.open(class, title)
	icon := robotIcon
	if x.Human {
		icon = personIcon
	}
	c.icon(at.X, at.Y+2, icon)
	c.text("text", at.X+iconRoom+4, at.Y+14, textFont.cut(clean(x.Specialist), at.W-iconRoom-4-84))
	if x.Transition == "" {
		c.text("sub", at.X+iconRoom+4, at.Y+33, "not answered yet")
	} else {
		c.textEnd("sub", at.X+at.W, at.Y+14, "weight "+x.Weight.Text2())
		c.icon(at.X+iconRoom+4, at.Y+22, arrowIcon)
		c.text("strong", at.X+2*iconRoom+6, at.Y+33, font{13, true}.cut(clean(x.Transition), at.W-2*iconRoom-6))
		p.bar(c, Box{at.X + iconRoom + 4, at.Y + 42, at.W - iconRoom - 4, 4}, int64(x.Weight))
	}
	c.close()
}

func (p *panel) bar(c *canvas, at Box, weight int64) {
	c.rect("track", at, 2)
	if w := int(max(weight, 0) / (p.most / 1000) * int64(at.W) / 1000); w > 0 {
		c.rect("bar", Box{at.X, at.Y, max(w, 4), at.H}, 2)
	}
}

func (p *panel) drawVerdict(c *canvas, x, y, width int) {
	class, icon := "dg-wait", personIcon
	if p.round.Winner != "" {
		class, icon = "dg-won", checkIcon
	}
	c.open("dg-verdict "+class, flat(p.round.Verdict))
	c.add(`<path class="dg-rule" d="M%d %dh%d"/>`, x, y-14, width)
	c.icon(x, y, icon)
	for i, line := range p.verdict {
		c.text("strong", x+iconRoom+4, y+12+i*panelLine, line)
	}
	c.close()
}
