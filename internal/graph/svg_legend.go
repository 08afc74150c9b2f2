package graph

// A legend explains the forms that occur in a picture, and only those.
type legend struct {
	size
	items []legendItem
}

type legendItem struct {
	draw func(c *canvas, x, y int) // a glyph of 26 by 14 around y
	text string
	at   point
	full string // shown where a pointer rests; "" if nothing is
}

const (
	glyphRoom  = 30
	legendLine = 20
)

// newLegend returns the legend of a scene; plain says that it is drawn without
// labels.
func (s *scene) newLegend(plain bool) *legend {
	l := &legend{}
	has := func(holds bool, text string, draw func(c *canvas, x, y int)) {
		if holds {
			l.items = append(l.items, legendItem{draw: draw, text: text})
		}
	}
	f := s.facts()
	has(true, "start", startGlyph)
	has(true, "goal", boxGlyph("dg-state dg-goal", true))
	has(f.final, "other intended end", boxGlyph("dg-state", true))
	has(f.dead, "dead end", boxGlyph("dg-state dg-dead", false))
	has(f.lost, "cannot be reached", boxGlyph("dg-state dg-lost", false))
	has(f.human, "humans decide", iconGlyph("dg-state", personIcon))
	has(f.hard && !plain, "irreversible", iconGlyph("dg-hard", lockIcon))
	has(f.signed && !plain, "takes approvals", iconGlyph("dg-hard", signIcon))
	has(f.taken && !plain, "steps taken, numbered", pillGlyph("1"))
	has(f.taken && plain, "step taken", lineGlyph("dg-taken"))
	has(f.open, "proposed", lineGlyph("dg-open"))
	has(s.won != nil, "won the round", lineGlyph("dg-won"))
	has(plain, "too many transitions to write their names", func(*canvas, int, int) {})
	groups, full := s.groups()
	for i, text := range groups {
		l.items = append(l.items, legendItem{draw: iconGlyph("dg-state", groupIcon), text: text, full: full[i]})
	}
	return l
}

// facts says what occurs in a scene.
func (s *scene) facts() (f struct{ final, dead, lost, human, hard, signed, taken, open bool }) {
	for i, mark := range s.marks {
		st := &s.m.States()[i]
		f.final = f.final || st.Final && !st.Goal
		f.dead = f.dead || mark.dead && !mark.current
		f.lost = f.lost || mark.lost
		f.human = f.human || mark.human
		for _, t := range st.Transitions {
			f.hard = f.hard || t.Irreversible
			f.signed = f.signed || t.Approvals != nil
			f.open = f.open || s.votes[t] > 0 && t != s.won
		}
	}
	f.taken = s.steps > 0
	return f
}

// arrange breaks the legend into lines of the given width.
func (l *legend) arrange(width int) {
	x, y := 0, 0
	for i := range l.items {
		item := &l.items[i]
		w := glyphRoom + smallFont.width(item.text)
		if x > 0 && x+w > width {
			x, y = 0, y+legendLine
		}
		item.at = point{x, y}
		x += w + 20
	}
	l.size = size{width, y + legendLine}
}

func (l *legend) draw(c *canvas, x, y int) {
	c.open("dg-legend", "")
	for _, item := range l.items {
		if item.full != "" {
			c.open("dg-group", item.full)
		}
		item.draw(c, x+item.at.x, y+item.at.y+legendLine/2)
		c.text("small", x+item.at.x+glyphRoom, y+item.at.y+legendLine/2+4, item.text)
		if item.full != "" {
			c.close()
		}
	}
	c.close()
}

func startGlyph(c *canvas, x, y int) {
	c.add(`<circle class="dg-dot" cx="%d" cy="%d" r="4"/>`, x+5, y)
	c.add(`<path class="dg-line" d="M%d %dh10"/><path class="dg-head" d="M%d %dl-6 -3v6z"/>`, x+8, y, x+23, y)
}

func boxGlyph(class string, ring bool) func(*canvas, int, int) {
	return func(c *canvas, x, y int) {
		c.open(class, "")
		c.rect("box", rect{x + 1, y - 7, 22, 14}, 4)
		if ring {
			c.rect("ring", rect{x + 4, y - 4, 16, 8}, 2)
		}
		c.close()
	}
}

func iconGlyph(class, icon string) func(*canvas, int, int) {
	return func(c *canvas, x, y int) {
		c.open(class, "")
		c.icon(x+8, y-7, icon)
		c.close()
	}
}

func pillGlyph(text string) func(*canvas, int, int) {
	return func(c *canvas, x, y int) { c.pill(x+8, y, text) }
}

func lineGlyph(class string) func(*canvas, int, int) {
	return func(c *canvas, x, y int) {
		c.add(`<g class="%s"><path class="dg-line" d="M%d %dh18"/><path class="dg-head" d="M%d %dl-7 -4v8z"/></g>`, class, x, y, x+24, y)
	}
}
