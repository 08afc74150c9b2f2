package lessons_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A kept is a store of lessons that keeps snapshots, and counts the lessons that are read.
type kept struct {
	session.TrustStore
	lessons   []trust.Lesson
	snapshots []session.LedgerSnapshot // the newest first
	read      int
	fail      int64 // the lesson that cannot be read; 0 for none
}

var errUnread = errors.New("cannot be read")

func (k *kept) Lessons(_ context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return func(yield func(trust.Lesson, error) bool) {
		for _, x := range k.lessons {
			if x.Seq <= after {
				continue
			}
			if x.Seq == k.fail {
				yield(trust.Lesson{}, errUnread)
				return
			}
			if k.read++; !yield(x, nil) {
				return
			}
		}
	}
}

func (k *kept) KeepLedger(_ context.Context, s session.LedgerSnapshot) error {
	k.snapshots = append([]session.LedgerSnapshot{s}, k.snapshots...)
	return nil
}

func (k *kept) LedgerSnapshots(context.Context) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		for _, s := range k.snapshots {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// some returns lessons of two machines at every second place, some of them of automatic decisions.
func some(n int) *kept {
	k := &kept{}
	d := trust.NewDraw("lessons")
	for i := range n {
		o := &trust.Outcome{Machine: fmt.Sprint("m", i%3%2), State: fmt.Sprint("s", i%5), Options: []string{"a", "b"}, Truth: "a", Pick: "a", P: exact.One * 9 / 10,
			Source: trust.Forced, HumanID: "h", Round: fmt.Sprint("round ", i), Automatic: i%4 == 0}
		for v := range 3 {
			p := trust.OutcomeProposal{SpecialistID: fmt.Sprint("voter ", v), Version: "1", Transition: "a"}
			if d.Float() < .3 {
				p.Transition = "b"
			}
			o.Proposals = append(o.Proposals, p)
		}
		x := trust.Lesson{Seq: int64(2*i + 1), Outcome: o}
		if i%400 == 399 {
			x = trust.Lesson{Seq: x.Seq, Retracts: k.lessons[i-1].Outcome}
		}
		k.lessons = append(k.lessons, x)
	}
	return k
}

func folded(t *testing.T, list []trust.Lesson) []byte {
	t.Helper()
	f := lessons.NewFold()
	for _, x := range list {
		if err := f.Learn(x); err != nil {
			t.Fatal(err)
		}
	}
	return f.Snapshot().Body
}

// state is all that a follower says of what it has read.
func state(t *testing.T, f *lessons.Follower, k *kept) string {
	t.Helper()
	l, place, err := f.Read(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(place)
	for _, name := range l.Machines() {
		q := trust.Question{Machine: name, State: "s1", Options: []string{"a", "b"}, Votes: []trust.Vote{{SpecialistID: "voter 1", Version: "1"}, {SpecialistID: "voter 2", Version: "1", Option: 1}}}
		s, n := f.Savings(&q, exact.One*8/10)
		said, err := json.Marshal(l.Judge(q))
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("\n%s: %s\n%v %d %t\n%d looks", name, said, s, n, f.Worth(&q, exact.One*8/10), f.Calibration(name, "").Report().Looks)
	}
	return text
}

// TestSnapshots: a snapshot is kept at the newest thousandth lesson that was folded past, whoever
// begins after it reads only what comes then, and both say the same.
func TestSnapshots(t *testing.T) {
	k := some(2210)
	first := state(t, lessons.New(), k)
	if len(k.snapshots) != 1 || k.snapshots[0].Place != k.lessons[1999].Seq || !bytes.Equal(k.snapshots[0].Body, folded(t, k.lessons[:2000])) {
		t.Fatalf("%d snapshots are kept, want one of the first 2,000 lessons", len(k.snapshots))
	}
	k.read = 0
	f := lessons.New()
	if got := state(t, f, k); got != first || k.read != 211 { // the last of the snapshot, to see that it is there
		t.Errorf("after the snapshot %d lessons were read, want 211:\n%s\nwant\n%s", k.read, got, first)
	}
	if len(k.snapshots) != 1 {
		t.Errorf("who folds past nothing keeps another: %d", len(k.snapshots))
	}
	k.lessons = some(3001).lessons
	got := state(t, f, k)
	alone := &kept{TrustStore: k.TrustStore, lessons: k.lessons}
	if want := state(t, lessons.New(), alone); got != want {
		t.Errorf("gone on from a snapshot:\n%s\nwant\n%s", got, want)
	}
	if len(k.snapshots) != 2 || !bytes.Equal(k.snapshots[0].Body, alone.snapshots[0].Body) {
		t.Error("gone on from a snapshot, the next one has other bytes")
	}
}

// TestSnapshotsThatDoNotFit: one of another format, place or store, and one that is damaged, is
// passed over for one before, or for none.
func TestSnapshotsThatDoNotFit(t *testing.T) {
	k := some(2100)
	want := state(t, lessons.New(), k)
	good := k.snapshots[0]
	older := session.LedgerSnapshot{Place: k.lessons[999].Seq, Format: lessons.Format, Body: folded(t, k.lessons[:1000])}
	for _, c := range []struct {
		what string
		bad  session.LedgerSnapshot
	}{
		{"another format", session.LedgerSnapshot{Place: good.Place, Format: good.Format + 1, Body: good.Body}},
		{"another place", session.LedgerSnapshot{Place: good.Place + 2, Format: good.Format, Body: good.Body}},
		{"an end", session.LedgerSnapshot{Place: good.Place, Format: good.Format, Body: good.Body[:len(good.Body)-1]}},
		{"no body", session.LedgerSnapshot{Place: good.Place, Format: good.Format}},
		{"no thousandth", session.LedgerSnapshot{Place: k.lessons[1500].Seq, Format: good.Format, Body: folded(t, k.lessons[:1501])}},
	} {
		k.snapshots, k.read = []session.LedgerSnapshot{c.bad, older}, 0
		if got := state(t, lessons.New(), k); got != want || k.read != 1101 {
			t.Errorf("%s: %d lessons were read, want those after the one before:\n%s\nwant\n%s", c.what, k.read, got, want)
		}
	}
	gone := &kept{lessons: slices.Concat(k.lessons[:1998], k.lessons[2000:]), snapshots: []session.LedgerSnapshot{good}}
	if got := state(t, lessons.New(), gone); got == want {
		t.Error("a snapshot of a place at which there is no lesson is taken")
	}
}

// TestReadGoesOn: a lesson that cannot be read is an error, and what came before is learned once.
func TestReadGoesOn(t *testing.T) {
	k := some(60)
	want := state(t, lessons.New(), k)
	f := lessons.New()
	k.fail = k.lessons[30].Seq
	for range 2 {
		if _, _, err := f.Read(t.Context(), k); !errors.Is(err, errUnread) {
			t.Fatalf("reading says %v", err)
		}
	}
	k.fail = 0
	if got := state(t, f, k); got != want {
		t.Errorf("after an error:\n%s\nwant\n%s", got, want)
	}
}

// TestSinceAndMarks: the marks of a state are those of its automatic decisions between two places.
func TestSinceAndMarks(t *testing.T) {
	k, f := some(200), lessons.New()
	after, upTo := k.lessons[40].Seq, k.lessons[160].Seq
	for range 2 { // the second time nothing is new
		l, marks, err := f.Since(t.Context(), k, "m0", "s0", after, upTo)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		outcomes := 0
		for _, x := range k.lessons[41:161] {
			if o := x.Outcome; o != nil && o.Machine == "m0" && o.State == "s0" {
				if outcomes++; o.Automatic && x.Seq > k.lessons[100].Seq {
					want = append(want, o.Round)
				}
			}
		}
		var got []string
		for _, m := range marks.After(k.lessons[100].Seq) {
			got = append(got, m.Round)
		}
		if !slices.Equal(got, want) || len(want) == 0 || l.N("m0") != int64(outcomes) {
			t.Errorf("of %d outcomes, want %d, the marks are %v, want %v", l.N("m0"), outcomes, got, want)
		}
	}
}

// TestFormat holds the bytes of a snapshot: if they change, lessons.Format has to rise, or
// trust.LedgerFormat, and the sum below with it.
func TestFormat(t *testing.T) {
	const format, sum = 257, "93d9abdc49daa71ad0256119f302f9fce2d759a046943e1de95c8b0f57fa6e41"
	if got := fmt.Sprintf("%x", sha256.Sum256(folded(t, some(120).lessons))); got != sum || lessons.Format != format {
		t.Errorf("format %d has the bytes %s, format %d had %s", lessons.Format, got, format, sum)
	}
}

// FuzzSnapshot: whatever is kept as a snapshot, reading does not panic, and what is said of the
// lessons is what they say or what a snapshot of their end says.
func FuzzSnapshot(f *testing.F) {
	k := some(1000)
	fold := lessons.NewFold()
	for _, x := range k.lessons {
		if err := fold.Learn(x); err != nil {
			f.Fatal(err)
		}
	}
	body := fold.Snapshot().Body
	f.Add(body)
	f.Add(body[:len(body)/2])
	f.Add([]byte{})
	last := k.lessons[999].Seq
	f.Fuzz(func(t *testing.T, data []byte) {
		k := &kept{lessons: k.lessons[999:], snapshots: []session.LedgerSnapshot{{Place: last, Format: lessons.Format, Body: data}}}
		if _, place, err := lessons.New().Read(t.Context(), k); err == nil && place != last {
			t.Errorf("the newest lesson is said to be %d, and not %d", place, last)
		}
	})
}

// BenchmarkSnapshot writes and reads what 2,000 lessons have come to, a full window.
func BenchmarkSnapshot(b *testing.B) {
	k := some(3000)
	f := lessons.NewFold()
	for _, x := range k.lessons {
		for v := range 13 {
			if o := x.Outcome; o != nil {
				o.Proposals = append(o.Proposals, trust.OutcomeProposal{SpecialistID: fmt.Sprint("other ", v), Version: "1", Transition: o.Options[v%2]})
			}
		}
		if err := f.Learn(x); err != nil {
			b.Fatal(err)
		}
	}
	s := f.Snapshot()
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			f.Snapshot()
		}
		b.ReportMetric(float64(len(s.Body)), "bytes")
	})
	b.Run("read", func(b *testing.B) {
		end := &kept{lessons: k.lessons[2999:], snapshots: []session.LedgerSnapshot{s}}
		for b.Loop() {
			if _, place, err := lessons.New().Read(b.Context(), end); err != nil || place != s.Place {
				b.Fatal(place, err)
			}
		}
	})
}
