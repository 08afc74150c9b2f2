package trust

import (
	"cmp"
	"slices"
)

// Thinning as points come. A series keeps its first and its newest point, and cuts the axis into
// parts of equal width, of each of which the points of least and of most trust are kept. When
// there are too many parts, their width is doubled and neighbours become one, with the extremes
// of both: what is left depends on the points alone, not on when somebody looked.

// What is shown of a series at most.
const (
	MostPoints = 500
	MostMarks  = 500
)

// mostParts leaves room for the first point, the newest, and one of the present.
const mostParts = (MostPoints - 3) / 2

// A series is what is kept of one.
type series struct {
	n           int64 // points so far
	first, last Point
	versions    []VersionMark
	along       [2]parts // decisions, dates
}

// parts are those of one axis that hold points, in order.
type parts struct {
	from, width int64 // of the axis, and of each part
	list        []part
}

type part struct {
	number    int64
	low, high Point
}

// add appends a point, which gets its index here.
func (s *series) add(p Point, version string) {
	s.n++
	p.Index = s.n
	if s.n == 1 {
		s.first = p
	}
	if n := len(s.versions); n == 0 || s.versions[n-1].Version != version {
		s.versions = append(s.versions, VersionMark{p.Index, p.At, version})
		s.versions = s.versions[max(0, len(s.versions)-MostMarks):]
	}
	s.last = p
	s.along[0].add(p.Index, p)
	s.along[1].add(int64(p.At), p)
}

// add enters a point at a place of the axis; one before the last part, as of a clock that was
// set back, goes into that.
func (a *parts) add(place int64, p Point) {
	if len(a.list) == 0 {
		a.from, a.width = place, 1
	}
	one := part{(place - a.from) / a.width, p, p}
	if n := len(a.list); n > 0 && one.number <= a.list[n-1].number {
		a.list[n-1].take(&one)
		return
	}
	for a.list = append(a.list, one); len(a.list) > mostParts; {
		a.halve()
	}
}

// halve doubles the width of the parts.
func (a *parts) halve() {
	a.width *= 2
	left := a.list[:0]
	for _, p := range a.list {
		p.number /= 2
		if n := len(left); n > 0 && left[n-1].number == p.number {
			left[n-1].take(&p)
			continue
		}
		left = append(left, p)
	}
	a.list = left
}

// take enters the extremes of a later part; of equal ones the earlier stays.
func (p *part) take(later *part) {
	if later.low.Trust < p.low.Trust {
		p.low = later.low
	}
	if later.high.Trust > p.high.Trust {
		p.high = later.high
	}
}

// thinned returns what is left of the points along an axis, and the marks.
func (s *series) thinned(by Axis) ([]Point, []VersionMark) {
	a := &s.along[0]
	if by == ByDates {
		a = &s.along[1]
	}
	list := append(make([]Point, 0, 2*len(a.list)+2), s.first, s.last)
	for i := range a.list {
		list = append(list, a.list[i].low, a.list[i].high)
	}
	slices.SortFunc(list, func(p, q Point) int { return cmp.Compare(p.Index, q.Index) })
	return slices.CompactFunc(list, func(p, q Point) bool { return p.Index == q.Index }), slices.Clone(s.versions)
}
