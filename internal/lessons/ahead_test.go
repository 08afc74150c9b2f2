package lessons_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
)

// A panel votes in rounds of a machine, of four options.
type panel struct {
	*kept
	d       *trust.Draw
	machine string
	voters  int
}

func (p *panel) votes() (list []trust.Vote) {
	truth := p.d.Perm(4)[0]
	for i := range p.voters {
		v := trust.Vote{SpecialistID: fmt.Sprintf("voter %02d", i), Version: "1", Model: fmt.Sprint("model ", i%4), Option: truth}
		if p.d.Float() >= .5+.4*float64(2*i/p.voters) {
			v.Option = p.d.Perm(4)[0]
		}
		list = append(list, v)
	}
	return list
}

var four = []string{"a", "b", "c", "d"}

func (p *panel) question() trust.Question {
	q := trust.Question{Machine: p.machine, State: "s", Options: four, Votes: p.votes()}
	q.Policy.Rounds = true
	return q
}

// commit adds lessons to the store: of rounds that a human decided, or that nobody did.
func (p *panel) commit(n int, ruled bool) {
	for range n {
		seq := int64(len(p.lessons) + 1)
		o := &trust.Outcome{Machine: p.machine, State: "s", Options: four, Truth: four[p.d.Perm(4)[0]], Source: trust.Forced, HumanID: "h", Round: fmt.Sprint(p.machine, seq)}
		for _, v := range p.votes() {
			o.Proposals = append(o.Proposals, trust.OutcomeProposal{SpecialistID: v.SpecialistID, Version: v.Version, Model: v.Model, Transition: four[v.Option]})
		}
		x := trust.Lesson{Seq: seq, Outcome: o}
		if !ruled {
			x = trust.Lesson{Seq: seq, Unruled: trust.UnruledOf(o.Round, o.Machine, o.State, o.Options, o.Proposals)}
		}
		p.lessons = append(p.lessons, x)
	}
}

func (p *panel) read(t testing.TB, f *lessons.Follower) (*trust.Ledger, int64) {
	t.Helper()
	l, place, err := f.Read(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return l, place
}

// Lessons is that of kept, without looking at what was read.
func (p *panel) Lessons(_ context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return (&kept{lessons: p.lessons[after:], fail: p.fail}).Lessons(context.Background(), after)
}

// untilDue commits rounds until one asks for a fit, which is made; from 1,000 on each 200th does after that.
func (p *panel) untilDue(t testing.TB, f *lessons.Follower) {
	t.Helper()
	for {
		p.commit(1, false)
		if q := p.question(); fitting(func() { l, _ := p.read(t, f); l.Judge(q) }) {
			return
		}
	}
}

// fitting reports whether a fit is made in do: that takes many thousand allocations, and nothing else does.
func fitting(do func()) bool {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.Mallocs-before.Mallocs > 3000
}

func bytesOf(l *trust.Ledger) []byte {
	c := wire.NewWriter()
	l.Code(c)
	l.CodeUnruled(c)
	return c.Bytes()
}

// TestReadAhead: whoever reads ahead, and however often, a decision is made by every lesson whose commit
// has returned, and by the same bits as in a process that does not.
func TestReadAhead(t *testing.T) {
	p := &panel{&kept{}, trust.NewDraw("ahead"), "desk", 5}
	f, other := lessons.New(), lessons.New()
	ahead := func() {
		if err := f.ReadAhead(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	p.commit(30, true)
	p.fail = 1
	ahead() // nobody has decided yet, so nothing is read
	p.fail = 0
	p.read(t, f)
	for i := range 60 {
		if p.commit(1+i%7, i%3 == 0); i%4 > 0 {
			ahead()
		}
		if i%5 == 4 {
			p.commit(1, i%2 == 0)
		}
		l, place := p.read(t, f)
		q := p.question()
		if got := int64(len(p.lessons)); place != got {
			t.Fatalf("what is decided by is of lesson %d, want %d", place, got)
		}
		want, _ := p.read(t, other)
		if got, want := fmt.Sprintf("%+v", l.Judge(q).P), fmt.Sprintf("%+v", want.Judge(q).P); got != want {
			t.Fatalf("at %d it judges %s, without reading ahead %s", place, got, want)
		}
		if i%10 == 0 && !bytes.Equal(bytesOf(l), bytesOf(want)) {
			t.Fatalf("at %d the ledgers have other bytes", place)
		}
	}
	p.read(t, f)
	p.commit(1, true)
	p.fail = int64(len(p.lessons))
	if err := f.ReadAhead(t.Context(), p); err == nil {
		t.Error("a store that cannot be read is no error")
	}
	if _, _, err := f.Read(t.Context(), p); err == nil {
		t.Error("a decision is made without the newest lesson")
	}
}

// TestReadAheadKeepsSnapshots: a snapshot is kept by whoever reads ahead past its lesson, once.
func TestReadAheadKeepsSnapshots(t *testing.T) {
	p := &panel{&kept{}, trust.NewDraw("ahead"), "desk", 3}
	f := lessons.New()
	p.read(t, f)
	p.commit(lessons.SnapshotEvery+1, true)
	if err := f.ReadAhead(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.read(t, f)
	if len(p.snapshots) != 1 || p.snapshots[0].Place != lessons.SnapshotEvery || !bytes.Equal(p.snapshots[0].Body, folded(t, p.lessons[:lessons.SnapshotEvery])) {
		t.Errorf("%d snapshots are kept, want one of %d lessons", len(p.snapshots), lessons.SnapshotEvery)
	}
}

// TestReadAheadMakesFits: a decision makes the fit that the newest lesson asks for unless somebody has read
// ahead; it makes none of another machine.
func TestReadAheadMakesFits(t *testing.T) {
	p := &panel{&kept{}, trust.NewDraw("ahead"), "desk", 7}
	other := &panel{p.kept, p.d, "other", 3}
	other.commit(25, true)
	p.commit(100, true)
	p.commit(150, false)
	f := lessons.New()
	decided := func(p *panel) bool {
		q := p.question()
		return fitting(func() { l, _ := p.read(t, f); l.Judge(q) })
	}
	if !decided(other) || !decided(p) {
		t.Error("the first decisions make no fit")
	}
	p.untilDue(t, f)
	if decided(p) {
		t.Error("a fit is made when nothing asks for it")
	}
	for _, by := range []string{"the decision", "whoever reads ahead"} {
		p.commit(trust.UnruledWindow/5, false)
		if by != "the decision" && !fitting(func() { _ = f.ReadAhead(t.Context(), p) }) {
			t.Error("whoever reads ahead makes no fit")
		}
		if decided(other) {
			t.Error("a decision makes the fit of another machine")
		}
		if decided(p) != (by == "the decision") {
			t.Errorf("the fit is to be made by %s, and is not", by)
		}
	}
}

// BenchmarkDecisionAfterRefit is a decision after the round for which what bayes decides by is fitted anew:
// that lesson is read, and a round is judged. "ahead": whoever is idle has read ahead in between; "other": the
// decision is of another machine. 500 outcomes and 1,000 rounds without a human's word are known.
func BenchmarkDecisionAfterRefit(b *testing.B) {
	for _, voters := range []int{5, 15} {
		for _, name := range []string{"next", "ahead", "other"} {
			b.Run(fmt.Sprintf("%d/%s", voters, name), func(b *testing.B) {
				p := &panel{&kept{}, trust.NewDraw("refit"), "desk", voters}
				by := p
				if name == "other" {
					by = &panel{p.kept, p.d, "other", voters}
					by.commit(50, true)
				}
				p.commit(500, true)
				p.commit(trust.UnruledWindow, false)
				f := lessons.New()
				q := by.question()
				decide := func() { l, _ := by.read(b, f); l.Judge(q) }
				decide()
				p.untilDue(b, f)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					p.commit(trust.UnruledWindow/5-1, false)
					decide()
					p.commit(1, false)
					if name == "ahead" {
						_ = f.ReadAhead(b.Context(), p)
					}
					b.StartTimer()
					decide()
				}
			})
		}
	}
}
