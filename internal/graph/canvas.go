package graph

import (
	"bytes"
	"fmt"
	"strings"
)

// A canvas collects the elements of an SVG.
type canvas struct{ bytes.Buffer }

// add writes a formatted line of markup; text in it must be escaped.
func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
	c.WriteByte('\n')
}

func (c *canvas) rect(class string, r rect, radius int) {
	c.add(`<rect class="dg-%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, class, r.x, r.y, r.w, r.h, radius)
}

func (c *canvas) text(class string, x, y int, s string) {
	c.add(`<text class="dg-%s" x="%d" y="%d">%s</text>`, class, x, y, escapeXML(s))
}

// textEnd writes text that ends at x.
func (c *canvas) textEnd(class string, x, y int, s string) {
	c.add(`<text class="dg-%s" x="%d" y="%d" text-anchor="end">%s</text>`, class, x, y, escapeXML(s))
}

// icon draws an icon whose upper left corner is at x, y.
func (c *canvas) icon(x, y int, d string) {
	c.add(`<path class="dg-icon" transform="translate(%d %d)" d="%s"/>`, x, y, d)
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
	c.rect("pill", rect{x, y - 7, w, 14}, 7)
	c.text("pilltext", x+w/2, y+4, s)
	return w
}

func pillWidth(s string) int { return max(14, pillFont.width(s)+10) }

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escapeXML(s string) string { return xmlEscapes.Replace(s) }
