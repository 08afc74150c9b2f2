package graph

// A legend explains the forms that occur in a picture, and only those.
type legend struct {
	size
	items []Entry
	at    []point // by item
}

const (
	glyphRoom  = 30
	legendLine = 20
)

// legend returns what the legend of a scene explains; plain says that it is drawn without
// labels.
func (s *scene) legend(plain bool) (list []Entry) {
	has := func(holds bool, mark Mark, text string) {
		if holds {
			list = append(list, Entry{Mark: mark, Text: text})
		}
	}
	f := s.facts()
	has(true, "start", "start")
	has(true, "goal", "goal")
	has(f.final, "final", "other intended end")
	has(f.dead, "deadEnd", "dead end")
	has(f.lost, "unreachable", "cannot be reached")
	has(f.human, "human", "humans decide")
	has(f.hard && !plain, "irreversible", "irreversible")
	has(f.signed && !plain, "approvals", "takes approvals")
	has(f.taken && !plain, "steps", "steps taken, numbered")
	has(f.taken && plain, "taken", "step taken")
	has(f.open, "proposed", "proposed")
	has(s.won != nil, "won", "won the round")
	has(plain, "plain", "too many transitions to write their names")
	groups, full := s.groups()
	for i, text := range groups {
		list = append(list, Entry{"group", text, full[i]})
	}
	return list
}

// glyph draws the form of 26 by 14, around y, that an entry of the legend explains.
func (c *canvas) glyph(mark Mark, x, y int) {
	switch mark {
	case "start":
		c.add(`<circle class="dg-dot" cx="%d" cy="%d" r="4"/>`, x+5, y)
		c.add(`<path class="dg-line" d="M%d %dh10"/><path class="dg-head" d="M%d %dl-6 -3v6z"/>`, x+8, y, x+23, y)
	case "goal":
		c.boxGlyph("dg-state dg-goal", true, x, y)
	case "final":
		c.boxGlyph("dg-state", true, x, y)
	case "deadEnd":
		c.boxGlyph("dg-state dg-dead", false, x, y)
	case "unreachable":
		c.boxGlyph("dg-state dg-lost", false, x, y)
	case "human":
		c.iconGlyph("dg-state", personIcon, x, y)
	case "group":
		c.iconGlyph("dg-state", groupIcon, x, y)
	case "irreversible":
		c.iconGlyph("dg-hard", lockIcon, x, y)
	case "approvals":
		c.iconGlyph("dg-hard", signIcon, x, y)
	case "steps":
		c.pill(x+8, y, "1")
	case "taken":
		c.lineGlyph("dg-taken", x, y)
	case "proposed":
		c.lineGlyph("dg-open", x, y)
	case "won":
		c.lineGlyph("dg-won", x, y)
	}
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
	for _, item := range l.items {
		w := glyphRoom + smallFont.width(item.Text)
		if x > 0 && x+w > width {
			x, y = 0, y+legendLine
		}
		l.at = append(l.at, point{x, y})
		x += w + 20
	}
	l.size = size{width, y + legendLine}
}

func (l *legend) draw(c *canvas, x, y int) {
	c.open("dg-legend", "")
	for i, item := range l.items {
		if item.Full != "" {
			c.open("dg-group", item.Full)
		}
		c.glyph(item.Mark, x+l.at[i].x, y+l.at[i].y+legendLine/2)
		c.text("small", x+l.at[i].x+glyphRoom, y+l.at[i].y+legendLine/2+4, item.Text)
		if item.Full != "" {
			c.close()
		}
	}
	c.close()
}

func (c *canvas) boxGlyph(class string, ring bool, x, y int) {
	c.open(class, "")
	c.rect("box", Box{x + 1, y - 7, 22, 14}, 4)
	if ring {
		c.rect("ring", Box{x + 4, y - 4, 16, 8}, 2)
	}
	c.close()
}

func (c *canvas) iconGlyph(class, icon string, x, y int) {
	c.open(class, "")
	c.icon(x+8, y-7, icon)
	c.close()
}

func (c *canvas) lineGlyph(class string, x, y int) {
	c.add(`<g class="%s"><path class="dg-line" d="M%d %dh18"/><path class="dg-head" d="M%d %dl-7 -4v8z"/></g>`, class, x, y, x+24, y)
}
