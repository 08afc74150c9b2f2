package trust_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// TestInterval are Wilson's bounds at 90 %, worked out by hand.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{{31, 40, .651026, .864124}, {0, 10, 0, .212972}, {10, 10, .787028, 1}, {0, 0, 0, 1}} {
		if low, high := trust.Interval(c.k, c.n); !near(low.Float(), c.low, 1e-6) || !near(high.Float(), c.high, 1e-6) {
			t.Errorf("%d of %d: %s to %s, want %v to %v", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// pastLessons are outcomes of a crowd, some taken back, with looks of second humans between.
func pastLessons(n int) (list []trust.Lesson) {
	for i, o := range crowdOutcomes("history", n, 5, 3) {
		o.Session, o.Round = fmt.Sprint("session ", i/3), fmt.Sprint("round ", i)
		list = append(list, trust.Lesson{Outcome: &o})
		switch i % 7 {
		case 3:
			list = append(list, trust.Lesson{Retracts: &o})
		case 5:
			list = append(list, trust.Lesson{Second: &trust.SecondLook{Machine: o.Machine, State: o.State, Options: 3, FirstHuman: "ann", SecondHuman: "bob", First: "x", Second: "x"}})
		case 6: // settled at once, and one of which nobody knows yet
			list = append(list, trust.Lesson{Second: &trust.SecondLook{Machine: o.Machine, State: o.State, Options: 3, FirstHuman: "ann", SecondHuman: "bob", First: "x", Second: "y", Settled: "y"}},
				trust.Lesson{Second: &trust.SecondLook{Machine: o.Machine, State: o.State, Options: 3, FirstHuman: "ann", SecondHuman: "bob", First: "x", Second: "y"}})
		}
	}
	for i := range list {
		list[i].Seq, list[i].At = int64(i+1), specialist.Time(1000*i)
	}
	return list
}

// TestHistory compares every point with what a ledger of its own judges after each lesson.
func TestHistory(t *testing.T) {
	l, h := trust.New(), trust.NewHistory()
	want := map[string][]trust.Point{}
	heard := 0
	for _, x := range pastLessons(120) {
		if l.Learn(x) != nil || h.Learn(x) != nil {
			t.Fatal("a lesson is refused")
		}
		note := func(o *trust.Outcome, v trust.Vote) {
			w := l.Judge(trust.Question{Machine: o.Machine, State: o.State, Options: o.Options, Votes: []trust.Vote{v}}).Votes[0]
			key := o.Machine + "|" + o.State + "|" + v.SpecialistID
			p := trust.Point{Index: int64(len(want[key]) + 1), At: x.At, Trust: w.Trust, K: w.K, N: w.N, Level: w.Level, Session: o.Session, Round: o.Round, Retracted: x.Retracts != nil}
			want[key] = append(want[key], p)
			if points, _ := h.Series(o.Machine, o.State, v.SpecialistID, trust.ByDecisions); points[len(points)-1] != p {
				t.Fatalf("the newest point of %s is %+v, want %+v", key, points[len(points)-1], p)
			}
			heard++
		}
		for _, o := range []*trust.Outcome{x.Outcome, x.Retracts} {
			for i := 0; o != nil && i < len(o.Proposals); i++ {
				if p := &o.Proposals[i]; !p.Human && !p.Failed && !p.Replaced {
					note(o, trust.Vote{SpecialistID: p.SpecialistID, Version: p.Version})
				}
			}
		}
		if s := x.Second; s != nil && (s.First == s.Second || s.Settled != "") {
			for _, id := range []string{"ann", "bob"} {
				note(&trust.Outcome{Machine: s.Machine, State: s.State, Options: []string{"x", "y"}}, trust.Vote{SpecialistID: id, Human: true})
			}
		}
	}
	if heard < 300 || h.At() == 0 || asText(t, h.Ledger().Risks("desk")) != asText(t, l.Risks("desk")) {
		t.Fatalf("%d points, the newest of %s", heard, h.At())
	}
	for key, points := range want {
		of := strings.Split(key, "|")
		for _, by := range []trust.Axis{trust.ByDecisions, trust.ByDates} {
			if got, marks := h.Series(of[0], of[1], of[2], by); !reflect.DeepEqual(got, points) || len(marks) == 0 || marks[0].Index != 1 {
				t.Errorf("%s by %s: %d points, want %d: %+v", key, by, len(got), len(points), marks)
			}
		}
	}
	if points, marks := h.Series("desk", "nowhere", "ann", trust.ByDates); len(points)+len(marks) != 0 {
		t.Errorf("nobody has %d points", len(points))
	}
}

// TestHistoryMarks: a new version begins with what it inherits, and is marked; of many the
// newest marks stay.
func TestHistoryMarks(t *testing.T) {
	h := trust.NewHistory()
	learn := func(version string, at int) {
		o := outcome(ask(yesNo, 0), 0)
		o.Proposals[0].Version = version
		if err := h.Learn(trust.Lesson{Outcome: &o, At: specialist.Time(at)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, version := range []string{"1", "1", "2", "2", "1"} {
		learn(version, 10*(i+1))
	}
	points, marks := h.Series("desk", "open", "a", trust.ByDecisions)
	if text := fmt.Sprint(marks); len(points) != 5 || text != fmt.Sprint([]trust.VersionMark{{1, 10, "1"}, {3, 30, "2"}, {5, 50, "1"}}) {
		t.Errorf("%d points are marked %s", len(points), text)
	}
	if points[1].K != 2 || points[2].N != 1 || points[4].N != 3 { // of two, a fifth is inherited: .4; the third of version 1
		t.Errorf("the points are %+v", points)
	}
	for i := range 700 {
		learn(fmt.Sprint("v", i), 100+i)
	}
	if _, marks = h.Series("desk", "open", "a", trust.ByDecisions); len(marks) != trust.MostMarks || marks[len(marks)-1].Version != "v699" {
		t.Errorf("there are %d marks, the last %+v", len(marks), marks[len(marks)-1])
	}
}

// TestSeriesThinned: however many points come, at most 499 are left: the first, the newest, and
// the extremes of each part, which a slow second count finds too.
func TestSeriesThinned(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for _, n := range []int{1, 2, 3, 246, 247, 499, 500, 501, 4_000, 20_000} {
		all := make([]trust.Point, n)
		at := specialist.Time(1_700_000_000_000)
		for i := range all {
			at += specialist.Time(rng.Int64N(5_000))
			if rng.IntN(50) == 0 {
				at += 40_000_000 // nobody decided for a while
			}
			if rng.IntN(50) == 0 {
				at -= 9_000 // a clock was set back
			}
			all[i] = trust.Point{Index: int64(i + 1), At: at, Trust: exact.Billionths(rng.Int64N(1e9))}
		}
		for _, by := range []trust.Axis{trust.ByDecisions, trust.ByDates} {
			got, width := trust.Thinned(all, by)
			left := map[int64]bool{}
			for i, p := range got {
				if p != all[p.Index-1] || i > 0 && p.Index <= got[i-1].Index {
					t.Fatalf("%d by %s: point %d is %+v", n, by, i, p)
				}
				left[p.Index] = true
			}
			if len(got) > trust.MostPoints-1 || n < 200 && len(got) != n && by == trust.ByDecisions || !left[1] || !left[int64(n)] {
				t.Fatalf("%d by %s: %d are left", n, by, len(got))
			}
			if n >= 4_000 && len(got) < trust.MostPoints/4 {
				t.Errorf("%d by %s: only %d are left", n, by, len(got))
			}
			for _, p := range slowExtremes(all, by, width) {
				if !left[p] {
					t.Errorf("%d by %s: point %d is an extreme of its part, and gone", n, by, p)
				}
			}
		}
	}
}

// slowExtremes returns the indexes of the extremes of parts of a width.
func slowExtremes(all []trust.Point, by trust.Axis, width int64) (list []int64) {
	low, high := map[int64]trust.Point{}, map[int64]trust.Point{}
	newest := int64(0)
	for _, p := range all {
		place := p.Index - 1
		if by == trust.ByDates {
			place = int64(p.At - all[0].At)
		}
		newest = max(newest, place/width)
		if q, ok := low[newest]; !ok || p.Trust < q.Trust {
			low[newest] = p
		}
		if q, ok := high[newest]; !ok || p.Trust > q.Trust {
			high[newest] = p
		}
	}
	for _, of := range []map[int64]trust.Point{low, high} {
		for _, p := range of {
			list = append(list, p.Index)
		}
	}
	return list
}
