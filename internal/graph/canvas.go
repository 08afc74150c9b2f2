package graph

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A canvas collects the elements of an SVG.
type canvas struct{ bytes.Buffer }

// add writes a formatted line of markup; text in it must be escaped.
func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

func (c *canvas) rect(class string, r Box, radius int) {
	c.add(`<rect class="dg-%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, r.X, r.Y, r.W, r.H, radius)
}

func (c *canvas) text(class string, x, y int, s string) {
	c.add(`<text class="dg-%s" x="%d" y="%d">%s</text>`, class, x, y, escapeXML(s))
}

// textEnd writes text that ends at x.
func (c *canvas) textEnd(class string, x, y int, s string) {
	c.add(`<text class="dg-%s" x="%d" y="%d" text-anchor="end">%s</text>`, class, x, y, escapeXML(s))
}

// icon draws an icon whose upper left corner is at x, y.
func (c *canvas) icon(x, y int, name string) {
	c.add(`<path class="dg-icon" transform="translate(%d %d)" d="%s"/>`, x, y, icons[name])
}

// name writes a name in lines of one class, its icons before it.
func (c *canvas) name(class string, icons []Icon, lines []Text) {
	for _, i := range icons {
		c.icon(i.X, i.Y, i.Name)
	}
	for _, l := range lines {
		c.text(class, l.X, l.Y, l.Text)
	}
}

func (c *canvas) notes(list []Note) {
	for _, n := range list {
		for _, l := range n.Lines {
			c.text("note", l.X, l.Y, l.Text)
		}
	}
}

// arrow draws a line and its head.
func (c *canvas) arrow(r *Route) {
	c.WriteString(`<path class="dg-line" d="`)
	for i, s := range r.Line {
		c.WriteByte("MLC"[min(i, 1)+len(s)/6])
		for k, n := range s {
			if k > 0 {
				c.WriteByte(' ')
			}
			c.WriteString(strconv.Itoa(n))
		}
	}
	h := r.Head
	c.add(`"/><path class="dg-head" d="M%d %dL%d %d %d %dz"/>`, h[0], h[1], h[2], h[3], h[4], h[5])
}

// open begins a group; title, if any, is shown by a pointer that rests on it.
func (c *canvas) open(class, title string) {
	c.add(`<g class="%s">`, class)
	if title != "" {
		c.add("<title>%s</title>", escapeXML(title))
	}
}

func (c *canvas) close() { c.add("</g>") }

// pill draws a small rounded label from x, around y, and returns its width.
func (c *canvas) pill(x, y int, s string) int {
	w := pillWidth(s)
	c.rect("pill", Box{x, y - 7, w, 14}, 7)
	c.text("pilltext", x+w/2, y+4, s)
	return w
}

func pillWidth(s string) int { return max(14, pillFont.width(s)+10) }

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escapeXML(s string) string { return xmlEscapes.Replace(s) }
