package graph_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A node is an element of an SVG that was read back.
type node struct {
	name  string
	attr  map[string]string
	text  string // its own, without that of its children
	child []*node
}

// read parses an SVG; anything that is not well-formed fails the test.
func read(t testing.TB, svg []byte) *node {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	root := &node{}
	stack := []*node{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				n.attr[a.Name.Local] = a.Value
			}
			top.child = append(top.child, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(token)
		}
	}
	if len(root.child) != 1 || root.child[0].name != "svg" {
		t.Fatalf("not one svg element:\n%s", svg)
	}
	return root.child[0]
}

// all returns n and everything in it that has one of its classes, in order.
func (n *node) all(class string) []*node {
	var list []*node
	if slices.Contains(strings.Fields(n.attr["class"]), class) {
		list = append(list, n)
	}
	for _, c := range n.child {
		list = append(list, c.all(class)...)
	}
	return list
}

// diagram returns the group with the diagram itself, without the legend.
func (n *node) diagram() *node {
	for _, c := range n.child {
		if c.name == "g" && c.attr["class"] == "" {
			return c
		}
	}
	return nil
}

// title returns the text of the title in n.
func (n *node) title() string {
	for _, c := range n.child {
		if c.name == "title" {
			return c.text
		}
	}
	return ""
}

// texts returns every text in n.
func (n *node) texts() []string {
	var list []string
	if n.name == "text" {
		list = append(list, n.text)
	}
	for _, c := range n.child {
		list = append(list, c.texts()...)
	}
	return list
}

type box struct{ x, y, w, h float64 }

func (n *node) box() box {
	number := func(name string) float64 {
		v, _ := strconv.ParseFloat(n.attr[name], 64)
		return v
	}
	return box{number("x"), number("y"), number("width"), number("height")}
}

func (a box) overlaps(b box) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

func (a box) inside(b box) bool {
	return a.x >= b.x && a.y >= b.y && a.x+a.w <= b.x+b.w && a.y+a.h <= b.y+b.h
}

// trace returns points all along a path of the commands M, L and C.
func trace(t testing.TB, d string) [][2]float64 {
	t.Helper()
	var points [][2]float64
	var at [2]float64
	for _, part := range strings.Split(strings.NewReplacer("M", "|M", "L", "|L", "C", "|C").Replace(d), "|")[1:] {
		var n []float64
		for _, f := range strings.Fields(part[1:]) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatalf("path %q: %v", d, err)
			}
			n = append(n, v)
		}
		c := [4][2]float64{at, at, {n[0], n[1]}, {n[0], n[1]}}
		if part[0] == 'C' {
			c = [4][2]float64{at, {n[0], n[1]}, {n[2], n[3]}, {n[4], n[5]}}
		}
		for i := range 65 {
			u := float64(i) / 64
			v := 1 - u
			var p [2]float64
			for k := range p {
				p[k] = v*v*v*c[0][k] + 3*v*v*u*c[1][k] + 3*v*u*u*c[2][k] + u*u*u*c[3][k]
			}
			if part[0] != 'M' {
				points = append(points, p)
			}
		}
		at = c[3]
	}
	return points
}

// entered reports whether one of the points lies inside b, half a pixel of
// margin apart.
func (b box) entered(points [][2]float64) bool {
	return slices.ContainsFunc(points, func(p [2]float64) bool {
		return p[0] > b.x+.5 && p[0] < b.x+b.w-.5 && p[1] > b.y+.5 && p[1] < b.y+b.h-.5
	})
}

// checkPicture checks what must hold for the geometry of every SVG with labels.
func checkPicture(t testing.TB, svg []byte) {
	t.Helper()
	root := read(t, svg)
	d := root.diagram()
	var states, labels []box
	for _, s := range d.all("dg-state") {
		states = append(states, s.all("dg-box")[0].box())
	}
	for _, l := range d.all("dg-behind") {
		labels = append(labels, l.box())
	}
	boxes := slices.Concat(states, labels)
	for i, a := range boxes {
		for _, b := range boxes[:i] {
			if a.overlaps(b) {
				t.Errorf("boxes %v and %v overlap", a, b)
			}
		}
	}
	checkInside(t, root, d, boxes)
	checkLines(t, d, states, labels)
}

// checkInside checks that no box leaves the card.
func checkInside(t testing.TB, root, diagram *node, boxes []box) {
	t.Helper()
	var dx, dy float64
	if _, err := fmt.Sscanf(diagram.attr["transform"], "translate(%g %g)", &dx, &dy); err != nil {
		t.Fatal(err)
	}
	card := root.all("dg-card")[0].box()
	for _, b := range boxes {
		b.x, b.y = b.x+dx, b.y+dy
		if !b.inside(card) {
			t.Errorf("box %v leaves the card %v", b, card)
		}
	}
}

// checkLines checks that lines pass through no state and through no label but
// their own.
func checkLines(t testing.TB, diagram *node, states, labels []box) {
	t.Helper()
	passed := make([]int, len(labels))
	for _, line := range diagram.all("dg-line") {
		points := trace(t, line.attr["d"])
		for _, s := range states {
			if s.entered(points) {
				t.Errorf("line %q passes through the state at %v", line.attr["d"], s)
			}
		}
		for i, l := range labels {
			if l.entered(points) {
				passed[i]++
			}
		}
	}
	for i, n := range passed {
		if n > 1 {
			t.Errorf("%d lines pass through the label at %v", n, labels[i])
		}
	}
}
